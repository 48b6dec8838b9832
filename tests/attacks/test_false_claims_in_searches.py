"""Heuristics that claim to be proven and are not: a search that sees it stops, and says so."""

from dataclasses import dataclass

import numpy as np
import pytest

import undershoot as us
from undershoot.arrays import F32, States
from undershoot.errors import Contradiction
from undershoot.guarantees import PROVEN, Guarantee, OptimalityKind, Rounding, Standing
from undershoot.oracles.breadth_first import explore
from undershoot.search.astar import astar_batch
from undershoot.search.options import SearchOptions

PUZZLE = us.puzzle("tiles-2x3")
DISTANCES = explore(PUZZLE)


@dataclass(frozen=True, eq=False)
class Liar:
    """The true cost, and more on some rows of the table of distances."""

    more: dict[int, float]
    guarantee: Guarantee = PROVEN
    rounding: Rounding = Rounding.INTEGER
    name: str = "liar"
    fingerprint: str = PUZZLE.table.fingerprint
    less: float = 0.0

    def __call__(self, states: States) -> F32:
        rows, cost = DISTANCES.look_up(states)
        more = np.array([self.more.get(int(row), 0.0) for row in rows])
        return np.asarray(np.maximum(cost - self.less + more, 0), dtype=np.float32)


def optimal_path(row: int) -> list[int]:
    """Rows of the states of the solution that a perfect heuristic leads to."""
    start = DISTANCES.states_of_rows(row, row + 1)
    result = us.solve(PUZZLE, start, us.heuristic(PUZZLE, "table"))
    rows, state, names = [row], start, PUZZLE.table.action_names
    for action in result.actions:
        state = us.apply(PUZZLE.table, state, np.array([names.index(action)]))
        rows.append(int(DISTANCES.look_up(state)[0][0]))
    return rows


FAR = DISTANCES.states - 1
START = DISTANCES.states_of_rows(FAR, FAR + 1)


@pytest.mark.parametrize("options", [SearchOptions(), SearchOptions(weight=3), SearchOptions(expand_per_step=4)], ids=str)
@pytest.mark.parametrize("step", [0, 1, 5, -2])
def test_an_overestimate_along_the_solution_is_named(options: SearchOptions, step: int) -> None:
    row = optimal_path(FAR)[step]
    # Everything is raised so that whatever solution comes out meets it.
    liar = Liar(dict.fromkeys(range(1, DISTANCES.states), 2.0))
    with pytest.raises(Contradiction, match=r"liar.* claims that it never overestimates"):
        us.solve(PUZZLE, DISTANCES.states_of_rows(row, row + 1), liar, options)


def test_one_overestimate_on_every_optimal_path_is_named() -> None:
    """Raised a little on one state only, the last before the goal: A* goes through it all the same."""
    lasts = np.flatnonzero(DISTANCES.true_costs() == 1)
    liar = Liar(dict.fromkeys(lasts.tolist(), 0.5), rounding=Rounding.NONE)
    with pytest.raises(Contradiction, match=r"says 1.5 of a state from which a solution costs 1"):
        us.solve(PUZZLE, START, liar)


def test_a_goal_that_costs_something_is_named() -> None:
    with pytest.raises(Contradiction, match=r"says 3 of a state from which a solution costs 0"):
        us.solve(PUZZLE, START, Liar({0: 3.0}))
    with pytest.raises(Contradiction):
        us.solve(PUZZLE, PUZZLE.table.goals, Liar({0: 3.0}))


def test_in_lock_step_the_batch_stops() -> None:
    states = DISTANCES.states_of_rows(0, DISTANCES.states)
    with pytest.raises(Contradiction):
        astar_batch(PUZZLE, states, Liar(dict.fromkeys(range(100, 200), 2.0)), lock_step=50)
    with pytest.raises(Contradiction):
        astar_batch(PUZZLE, states, Liar(dict.fromkeys(range(100, 200), 2.0)), threads=2)


def test_a_claim_within_a_ball_is_held_to_it_and_no_further() -> None:
    within = Guarantee(Standing.PROVEN, within=6)
    near, far = (np.flatnonzero(DISTANCES.true_costs() == cost).tolist() for cost in (4, 9))
    with pytest.raises(Contradiction, match="never overestimates within 6 of the goal"):
        us.solve(PUZZLE, START, Liar(dict.fromkeys(near, 2.0), within))
    result = us.solve(PUZZLE, START, Liar(dict.fromkeys(far, 2.0), within))
    assert result.overestimates > 0
    assert result.optimality.kind is not OptimalityKind.PROVEN or result.cost == len(DISTANCES.histogram) - 1


@pytest.mark.parametrize("standing", [Standing.NONE, Standing.SAMPLED])
def test_who_claims_nothing_is_not_contradicted(standing: Standing) -> None:
    result = us.solve(PUZZLE, START, Liar(dict.fromkeys(range(1, DISTANCES.states), 2.0), Guarantee(standing)))
    assert result.overestimates > 0


def test_whatever_is_raised_nothing_false_is_called_proven() -> None:
    """Random lies: either the search stops, or what it says is true."""
    random, stopped = np.random.default_rng(1), 0
    for _ in range(300):
        rows = random.choice(np.arange(1, DISTANCES.states), 3, replace=False)
        liar = Liar({int(row): float(random.integers(1, 5)) for row in rows}, less=float(random.integers(0, 3)))
        start = int(random.integers(1, DISTANCES.states))
        try:
            result = us.solve(PUZZLE, DISTANCES.states_of_rows(start, start + 1), liar)
        except Contradiction:
            stopped += 1
            continue
        # What a single false value hides, no search can see; but along the solution nothing was above its cost.
        assert result.overestimates == 0
    assert stopped > 0


def test_the_larger_of_a_liar_and_an_honest_one_is_found_out() -> None:
    both = us.heuristic(PUZZLE, "base")
    from undershoot.heuristics.combined import Largest

    with pytest.raises(Contradiction):
        us.solve(PUZZLE, START, Largest((both, Liar(dict.fromkeys(range(1, DISTANCES.states), 2.0)))))
