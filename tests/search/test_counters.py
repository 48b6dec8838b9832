"""Numbers of nodes and entries have so many bits and no more: a search stops before they run out, with a true bound."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import undershoot as us
from outside import Outside
from undershoot.bundles.bundle import Bundle
from undershoot.search import lifecycle, running
from undershoot.search.results import Status
from undershoot.search.workspace import MOST_ENTRIES, MOST_NODES, Rules, Workspace

PUZZLE = us.puzzle("tiles-3x3")
STATES = PUZZLE.sample(40, 3)


@pytest.fixture(scope="module")
def true_cost() -> np.ndarray:
    return us.oracle(PUZZLE).distance(STATES)


def guides() -> dict[str, Any]:
    """Inside the loop and outside, with buckets and with a heap."""
    from test_bundles import some_network

    base, network = us.heuristic(PUZZLE, "base"), Bundle(PUZZLE, some_network(PUZZLE)).raw
    return {"loop": base, "heap in the loop": network, "buckets": Outside(base), "heap": Outside(network)}


@pytest.mark.parametrize("kind", ["loop", "heap in the loop", "buckets", "heap"])
@pytest.mark.parametrize("field", ["most_nodes", "most_entries"])
def test_a_search_stops_before_its_numbers_run_out(
    kind: str, field: str, true_cost: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "Rules", partial(Rules, **{field: 700}))
    results = us.solve_many(PUZZLE, STATES, guides()[kind])
    kinds = {result.status for result in results}
    assert Status.MEMORY in kinds
    assert kinds <= {Status.MEMORY, Status.SOLVED}
    for result, cost in zip(results, true_cost, strict=True):
        assert result.lower_bound <= cost
        assert result.stored <= 700 or field != "most_nodes"
        assert result.status is Status.SOLVED or result.cost is None


def test_serial_numbers_do_not_run_over(true_cost: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after four billion pushes: the serial number of a heap shares a word with g."""
    begin = lifecycle.begin

    def late(workspace: Workspace, where: np.ndarray, *rest: Any) -> Any:
        rows = begin(workspace, where, *rest)
        workspace.searches["pushes"][where] = 2**32 - 300
        return rows

    monkeypatch.setattr(lifecycle, "begin", late)
    results = us.solve_many(PUZZLE, STATES, guides()["heap"])
    assert {result.status for result in results} <= {Status.MEMORY, Status.SOLVED}
    assert sum(result.status is Status.MEMORY for result in results) > 20
    assert all(result.lower_bound <= cost for result, cost in zip(results, true_cost, strict=True))


def test_the_limits_are_what_the_words_hold() -> None:
    assert MOST_NODES < 2**31
    assert MOST_ENTRIES < 2**32
    assert (Rules._field_defaults["most_nodes"], Rules._field_defaults["most_entries"]) == (MOST_NODES, MOST_ENTRIES)
