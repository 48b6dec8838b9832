"""What follows from how a search ended, and that nothing follows from a solution that is none."""

from dataclasses import replace

import numpy as np
import pytest

import undershoot as us
from undershoot.errors import Contradiction
from undershoot.kernels.cpu import solution_costs
from undershoot.search.conclusions import Ending, check_answers, conclude
from undershoot.search.results import Status

PUZZLE = us.puzzle("tiles-2x3")
GUIDE = us.heuristic(PUZZLE, "base")
STARTS = PUZZLE.sample(20, 3)


def ending_of(start: np.ndarray) -> Ending:
    """As a search that found an optimal solution hands it over."""
    result = us.solve(PUZZLE, start[None], GUIDE)
    assert result.cost is not None
    actions = np.array([PUZZLE.table.action_names.index(name) for name in result.actions], dtype=np.int32)
    path = [start[None]]
    for action in actions:
        path.append(us.apply(PUZZLE.table, path[-1], np.array([action])))
    states = np.concatenate(path[:-1]) if len(actions) else start[None][:0]
    values, first = GUIDE(states), float(GUIDE(start[None])[0])
    return Ending(
        Status.SOLVED,
        result.cost,
        actions,
        states,
        values,
        first,
        np.inf,
        1,
        0,
        1,
        1,
        0,
        1,
        seconds=0.0,
        weight=1.0,
        goes_by_f=True,
        algorithm=us.Algorithm.ASTAR,
    )


def test_solutions_are_played_and_what_they_cost_is_stated() -> None:
    endings = [ending_of(start) for start in STARTS]
    found = conclude(PUZZLE, GUIDE, STARTS, endings)
    assert [result.cost for result in found] == us.oracle(PUZZLE).distance(STARTS).tolist()
    assert conclude(PUZZLE, GUIDE, STARTS[:0], []) == []


@pytest.mark.parametrize("which", [0, 7, 19])
def test_a_solution_that_leads_elsewhere_is_refused(which: int) -> None:
    endings = [ending_of(start) for start in STARTS]
    shortened = replace(
        endings[which],
        actions=endings[which].actions[:-1],
        path=endings[which].path[:-1],
        path_values=endings[which].path_values[:-1],
    )
    endings[which] = shortened
    with pytest.raises(Contradiction, match="its moves do not solve it when they are played") as refusal:
        conclude(PUZZLE, GUIDE, STARTS, endings)
    assert PUZZLE.format(STARTS[which : which + 1]) in str(refusal.value)


def test_a_solution_of_another_cost_is_refused() -> None:
    right = ending_of(STARTS[0])
    assert right.cost is not None
    with pytest.raises(Contradiction, match=rf"cost {right.cost + 2}, but its moves cost {right.cost} when"):
        conclude(PUZZLE, GUIDE, STARTS[:1], [replace(right, cost=right.cost + 2)])


def test_a_solution_from_another_start_is_refused() -> None:
    with pytest.raises(Contradiction, match="do not solve it"):
        conclude(PUZZLE, GUIDE, STARTS[1:2], [ending_of(STARTS[0])])


def test_actions_that_are_not_legal_or_not_there_solve_nothing() -> None:
    table = PUZZLE.table
    blocked = int(np.flatnonzero(~table.legal[5])[0])  # the blank of the goal is in cell 5
    for action in (blocked, -1, table.actions):
        costs = solution_costs(table, table.goals, np.array([action], dtype=np.int32), np.array([1]))
        assert costs.tolist() == [-1]


def test_a_search_that_stopped_at_its_start_has_nothing_to_play() -> None:
    goal = PUZZLE.table.goals
    stopped = us.solve(PUZZLE, goal, GUIDE, us.SearchOptions(max_expanded=0))
    assert stopped.cost is None


@pytest.mark.parametrize("name", ["cube-2x2", "lights-out-3x3", "pancake-8", "tiles-3x3"])
def test_costs_of_solutions_are_those_of_searches(name: str) -> None:
    puzzle = us.puzzle(name)
    states = us.scramble(puzzle.table, np.full(30, 5), 1).states
    found = us.solve_many(puzzle, states, us.heuristic(puzzle, "base"))
    names = puzzle.table.action_names
    actions = np.array([names.index(action) for result in found for action in result.actions], dtype=np.int32)
    ends = np.cumsum([len(result.actions) for result in found])
    assert solution_costs(puzzle.table, states, actions, ends).tolist() == [result.cost for result in found]


def test_a_search_that_does_not_go_by_f_proves_nothing_by_ending() -> None:
    costs = us.oracle(PUZZLE).distance(STARTS)
    far = int(np.argmax(costs - GUIDE(STARTS)))
    ended = replace(ending_of(STARTS[far]), open_bound=0.0)
    (by_f,) = conclude(PUZZLE, GUIDE, STARTS[far : far + 1], [ended])
    (other,) = conclude(PUZZLE, GUIDE, STARTS[far : far + 1], [replace(ended, goes_by_f=False)])
    assert (by_f.lower_bound, str(by_f.optimality)) == (costs[far], "optimal, proven")
    assert other.lower_bound == GUIDE(STARTS[far : far + 1])[0] < costs[far]
    assert str(other.optimality).startswith("at most")


@pytest.mark.parametrize(
    "lie",
    [
        {"cost": 3},
        {"actions": ("U", "D", "U")},
        {"actions": ("nowhere",)},
        {"lower_bound": 10_000},
        {"cost": 1, "actions": ("U",)},
    ],
)
def test_answers_of_workers_are_played(lie: dict[str, object]) -> None:
    results = conclude(PUZZLE, GUIDE, STARTS, [ending_of(start) for start in STARTS])
    check_answers(PUZZLE, STARTS, results)
    false = replace(results[7], **lie)  # type: ignore[arg-type]
    with pytest.raises(Contradiction, match=r"when they are played|below what is known"):
        check_answers(PUZZLE, STARTS, [*results[:7], false, *results[8:]])
    with pytest.raises(Contradiction, match="answers to 19 came back"):
        check_answers(PUZZLE, STARTS[:20], results[:19])
