"""What everybody shares cannot be written to."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import undershoot as us
from subjects import PYRAMINX
from undershoot.kernels.plan import backward_plan, forward_plan, packing_of
from undershoot.oracles.neighbour_keys import neighbour_keys


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
