"""What everybody shares cannot be written to."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import undershoot as us
from subjects import PYRAMINX
from undershoot.arrays import AnyArray, States
from undershoot.kernels.plan import backward_plan, forward_plan, packing_of
from undershoot.oracles.neighbour_keys import neighbour_keys
from undershoot.search.results import Status


def arrays_in(thing: Any, where: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """All arrays that can be reached from an object by its attributes, tuples and lists."""
    if id(thing) in seen or isinstance(thing, (str, bytes, int, float, type(None), np.random.Generator)):
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        yield where, thing
    elif isinstance(thing, dict):
        for key, value in thing.items():
            yield from arrays_in(value, f"{where}[{key!r}]", seen)
    elif isinstance(thing, (tuple, list)):
        for number, value in enumerate(thing):
            yield from arrays_in(value, f"{where}[{number}]", seen)
    elif type(thing).__module__.startswith("undershoot"):
        for name, value in vars(thing).items() if hasattr(thing, "__dict__") else ():
            yield from arrays_in(value, f"{where}.{name}", seen)
        bound = getattr(thing, "__self__", None)
        yield from arrays_in(bound, f"{where}.self", seen)


def writable(thing: Any, name: str) -> list[str]:
    found = list(arrays_in(thing, name, set()))
    assert found, f"no arrays in {name}"
    return [where for where, array in found if array.size and can_be_opened(array)]


def can_be_opened(array: Any) -> bool:
    """Whether it, or an array whose memory it shares, can be written to, or made so by its flags."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        try:
            array.flags.writeable = True
        except ValueError:
            array = array.base
        else:
            array.flags.writeable = False
            return True
    return False


@pytest.mark.parametrize(
    "name", ["tiles-3x3", "cube-2x2", "cube-2x2-qtm", "lights-out-3x3", "pancake-6", "topspin-8-4", PYRAMINX]
)
def test_puzzles_and_plans(name: str) -> None:
    puzzle = us.puzzle(name)
    table = puzzle.table
    puzzle.cost_parity(table.goals) if puzzle.has_cost_parity else None
    puzzle.encoded("pieces")
    for part in (table.alike, table.landing, table.inverse, table.forward, table.backward):
        assert not writable([part], "derived")
    assert not writable(puzzle, "puzzle")
    for plan in (forward_plan(table), backward_plan(table), packing_of(table)):
        assert not writable(plan, "plan")
    assert not writable(neighbour_keys(table, table.backward, packing_of(table)), "neighbours")


@pytest.mark.parametrize("name", ["learned", "base", "table", "paper"])
def test_heuristics_networks_and_tables(name: str) -> None:
    for puzzle in (us.puzzle("tiles-3x3"), us.puzzle("lights-out-3x3")):
        heuristic = us.heuristic(puzzle, name)
        heuristic(puzzle.table.goals)
        assert not writable(heuristic, name)


def test_the_goal_stays_where_it_is() -> None:
    table = us.puzzle("tiles-3x3").table
    with pytest.raises(ValueError, match="read-only"):
        table.goals[:1][:] = table.goals[:1][:, ::-1]
    mine = table.goals.copy()
    other = dataclasses.replace(table, goals=mine)
    mine[:] = mine[:, ::-1]
    assert (other.goals == table.goals).all()


def test_a_table_of_distances_is_not_changed_by_who_looks_at_it() -> None:
    distances = us.oracle(us.puzzle("tiles-2x3"))
    with pytest.raises(ValueError, match="read-only"):
        distances.keys[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        distances.histogram[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        distances.index[0] = 5


ROWS = (
    "583276014 275604138 102453786 785316204 618257304 175286430 238671054 680751423 "
    "201638475 123450786 531087264 102453786 861075324 102453786 123450786 301657428"
)


def test_a_search_that_cannot_begin_says_nothing_of_an_earlier_one() -> None:
    """It found no room in its first round, in memory where another search had left the value of its own start."""
    puzzle = us.puzzle("tiles-3x3")
    oracle, factors = us.oracle(puzzle), np.array([3, 7, 11, 19, 23, 29, 31, 37, 41])

    def perfect_or_nothing(states: States) -> AnyArray:
        return np.where((states.astype(int) @ factors) % 3 == 0, oracle.distance(states.copy()), 0)

    proven = us.check(us.wrap(puzzle, perfect_or_nothing, name="mine")).heuristic
    states = np.array([[int(digit) for digit in row] for row in ROWS.split()], dtype=np.uint8)
    options = us.SearchOptions(max_memory=3_033_108, expand_per_step=700)
    results = us.solve_many(puzzle, states, proven, options, lock_step=2)
    assert any(result.status is Status.MEMORY for result in results)
    for result, cost in zip(results, oracle.distance(states), strict=True):
        assert result.lower_bound <= cost


@pytest.mark.parametrize("algorithm", list(us.Algorithm))
def test_states_that_change_during_a_search_are_those_from_before(algorithm: us.Algorithm) -> None:
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(8, seed=3)
    costs = us.oracle(puzzle).distance(states).tolist()

    def write(done: int) -> None:
        states[:] = puzzle.table.goals[0]

    results = us.solve_many(
        puzzle, states, us.heuristic(puzzle, "base"), us.SearchOptions(algorithm=algorithm), lock_step=1, progress=write
    )
    assert (states == puzzle.table.goals[0]).all()
    assert [result.cost for result in results] == costs


def test_masked_arrays_are_no_states() -> None:
    """What numpy leaves out of its sums, compiled code reads."""
    puzzle = us.puzzle("tiles-2x3")
    state = puzzle.parse("1 4 2 / 3 5 0")
    masked = np.ma.MaskedArray(state, mask=state == 5)
    for name in ("base", "patterns", "table"):
        heuristic = us.heuristic(puzzle, name)
        assert us.solve(puzzle, state, heuristic).cost == 16
        assert us.solve(puzzle, np.asmatrix(state), heuristic).cost == 16
        with pytest.raises(us.UndershootError, match=r"states must be an array uint8\[B, 6\]; MaskedArray came"):
            us.solve(puzzle, masked, heuristic, us.SearchOptions(max_expanded=0))
    table = puzzle.table
    with pytest.raises(us.UndershootError, match="goals must be an array of uint8; a masked one came"):
        dataclasses.replace(table, goals=np.ma.MaskedArray(table.goals, mask=table.goals == 5))


def test_symmetries_that_are_none_any_more_are_refused() -> None:
    """A table copied with other costs, or another goal, has other symmetries."""
    table = us.puzzle("tiles-3x3").table
    with pytest.raises(us.UndershootError, match="this is no symmetry"):
        dataclasses.replace(table, cost=np.array([3, 3, 1, 1], dtype=np.int32))
    with pytest.raises(us.UndershootError, match="this is no symmetry"):
        dataclasses.replace(table, goals=np.array([[1, 2, 3, 4, 5, 6, 8, 7, 0]], dtype=np.uint8))
    wrong = table.symmetries[0]._replace(actions=np.zeros(4, dtype=np.int32))
    assert (
        dataclasses.replace(table, symmetries=(wrong,)).symmetries[0].actions.tolist() == table.symmetries[0].actions.tolist()
    )
