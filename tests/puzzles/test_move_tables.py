"""Tables that are malformed, or unusual."""

from dataclasses import replace

import numpy as np
import pytest

import undershoot as us
from undershoot.errors import MoveTableError
from undershoot.puzzles.groups import PermutationGroup
from undershoot.puzzles.moves import MoveTable


def ring(**changes: object) -> MoveTable:
    """Three cells in a ring that can be rotated one way only."""
    fields: dict[str, object] = {
        "source": np.array([[[2, 0, 1]]], dtype=np.uint8),
        "shift": np.zeros((1, 1, 3), dtype=np.uint8),
        "modulus": np.full(3, 3, dtype=np.uint16),
        "legal": np.ones((1, 1), dtype=np.bool_),
        "cost": np.array([1], dtype=np.int32),
        "action_names": ("turn",),
        "goals": np.array([[0, 1, 2]], dtype=np.uint8),
    }
    return MoveTable(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"source": np.array([[[2, 0, 0]]], np.uint8)}, "move turn is not a permutation"),
        ({"source": np.array([[[0, 1, 2]]], np.uint8)}, "move turn does nothing"),
        ({"modulus": np.array([3, 3, 4], np.uint16)}, "different modulus"),
        ({"shift": np.full((1, 1, 3), 3, np.uint8)}, "adds more than the modulus"),
        ({"cost": np.array([0], np.int32)}, "costs are whole numbers from 1"),
        ({"goals": np.array([[0, 1, 3]], np.uint8)}, "a goal holds a value"),
        ({"goals": np.array([[0, 1, 2], [0, 1, 2]], np.uint8)}, "two goals are the same"),
        ({"goals": np.zeros((0, 3), np.uint8)}, "at least one row"),
        ({"cursor": 0}, "1 contexts; with a cursor there is one a cell"),
        ({"legal": np.ones((1, 2), np.bool_)}, "legal has shape"),
    ],
)
def test_malformed_tables_are_refused_with_a_sentence(changes: dict[str, object], part: str) -> None:
    with pytest.raises(MoveTableError, match=part):
        ring(**changes)


def test_two_moves_of_one_name_are_refused() -> None:
    with pytest.raises(MoveTableError, match='two moves are called "turn"'):
        ring(
            source=np.array([[[2, 0, 1], [1, 2, 0]]], np.uint8),
            shift=np.zeros((1, 2, 3), np.uint8),
            legal=np.ones((1, 2), np.bool_),
            cost=np.ones(2, np.int32),
            action_names=("turn", "turn"),
        )


def test_a_table_that_cannot_be_walked_backwards_is_not_called_reversible() -> None:
    table = ring()
    assert not table.is_reversible
    assert us.puzzle("tiles-3x3").table.is_reversible


def test_false_symmetries_are_refused() -> None:
    table = us.puzzle("tiles-3x3").table
    with pytest.raises(MoveTableError, match="no image under it"):
        table.with_symmetries([(np.array([1, 0, 2, 3, 4, 5, 6, 7, 8]), np.arange(9))])
    with pytest.raises(MoveTableError, match="does not map goals to goals"):
        table.with_symmetries([(np.arange(9), np.array([0, 2, 1, 3, 4, 5, 6, 7, 8]))])
    with pytest.raises(MoveTableError, match="keep the cursor"):
        table.with_symmetries([(np.arange(9), np.array([1, 0, 2, 3, 4, 5, 6, 7, 8]))])
    with pytest.raises(MoveTableError, match="a permutation of the cells"):
        table.with_symmetries([(np.zeros(9), np.arange(9))])


def test_actions_alike_are_searched_once_and_the_cheapest_is_kept() -> None:
    table = us.puzzle("lights-out-1x2").table
    assert table.alike.tolist() == [0, 0]
    dear = replace(table, cost=np.array([3, 2], dtype=np.int32))
    assert dear.alike.tolist() == [1, 1]
    _, legal = us.successors(dear, dear.goals)
    assert legal.tolist() == [[False, True]]
    # The other one may still be played.
    assert us.apply(dear, dear.goals, np.array([0])).tolist() == [[1, 1]]


def test_group_membership_and_sampling_agree_with_listing_the_group() -> None:
    generators = np.array([[1, 2, 3, 4, 0], [1, 0, 3, 2, 4]], dtype=np.uint8)
    listed, waiting = {bytes(range(5))}, [bytes(range(5))]
    while waiting:
        element = waiting.pop()
        for g in generators:
            image = bytes(int(g[i]) for i in element)
            if image not in listed:
                listed.add(image)
                waiting.append(image)
    group = PermutationGroup(generators)
    assert group.order == len(listed) == 60
    from itertools import permutations

    everything = np.array(list(permutations(range(5))), dtype=np.uint8)
    assert group.contains(everything).tolist() == [bytes(row.tolist()) in listed for row in everything]
    rows, counts = np.unique(group.sample(np.random.default_rng(1), 60_000), axis=0, return_counts=True)
    assert len(rows) == 60
    assert (abs(counts - 1000) < 5 * np.sqrt(1000)).all()


@pytest.mark.parametrize(
    ("name", "states"), [("topspin-8-4", 20160), ("topspin-8-3", 576), ("topspin-6-5", 6), ("topspin-7-2", 5040)]
)
def test_solvable_orders_of_topspin_are_the_reachable_ones(name: str, states: int) -> None:
    puzzle = us.puzzle(name)
    table = us.oracle(puzzle)
    assert table.states == puzzle.space.size == states
    orders = np.random.default_rng(2).permuted(np.tile(np.arange(puzzle.table.cells, dtype=np.uint8), (300, 1)), axis=1)
    orders = np.concatenate([orders, puzzle.sample(50, 3)])
    assert (puzzle.is_solvable(orders) == (table.distance(orders) != us.UNKNOWN)).all()


def test_more_moves_than_searches_can_number_are_refused() -> None:
    table, many = us.puzzle("pancake-2").table, 65_536
    with pytest.raises(us.UndershootError, match="there are 65,536 moves; a puzzle has 1 to 65,535"):
        replace(
            table,
            source=np.repeat(table.source, many, axis=1),
            shift=np.repeat(table.shift, many, axis=1),
            legal=np.repeat(table.legal, many, axis=1),
            cost=np.repeat(table.cost, many),
            action_names=tuple(map(str, range(many))),
        )
