import numpy as np
import pytest

import undershoot as us
from undershoot.errors import IllegalMove, MalformedState, UnsolvableState


def test_exactly_half_of_all_orders_are_solvable_and_they_are_the_reachable_ones() -> None:
    puzzle = us.puzzle("tiles-2x3")
    from itertools import permutations

    orders = np.array(list(permutations(range(6))), dtype=np.uint8)
    known = us.oracle(puzzle).distance(orders) != us.UNKNOWN
    assert known.sum() == 360
    assert (puzzle.is_solvable(orders) == known).all()


def test_uniform_states_are_uniform() -> None:
    puzzle = us.puzzle("tiles-2x2")
    rows, counts = np.unique(puzzle.sample(12_000, 3), axis=0, return_counts=True)
    assert len(rows) == 12
    assert (abs(counts - 1000) < 5 * np.sqrt(1000)).all()


def test_a_move_is_named_after_the_way_the_tile_goes() -> None:
    puzzle = us.puzzle("tiles-3x3")
    assert puzzle.format(puzzle.parse("D")) == "1 2 3 / 4 5 0 / 7 8 6"
    assert puzzle.format(puzzle.parse("R R D")) == "1 2 3 / 0 5 6 / 4 7 8"
    with pytest.raises(IllegalMove, match="move 1, U, is not possible there; possible are: D R"):
        puzzle.parse("U")


def test_boards_may_be_written_in_the_usual_ways() -> None:
    puzzle = us.puzzle("8-puzzle")
    board = puzzle.parse("1 2 3 / 4 5 6 / 7 0 8")
    for text in ("1 2 3 4 5 6 7 0 8", "123456708", "123 456 708", "1,2,3,4,5,6,7,0,8", "[1, 2, 3, 4, 5, 6, 7, 0, 8]"):
        assert (puzzle.parse(text) == board).all()


def test_blank_first_is_the_same_puzzle_seen_from_the_other_end() -> None:
    first, last = us.puzzle("tiles-3x3-blank-first"), us.puzzle("tiles-3x3")
    states = first.sample(500, 5)
    turned = ((9 - states[:, ::-1].astype(int)) % 9).astype(np.uint8)
    assert (us.oracle(first).distance(states) == us.oracle(last).distance(turned)).all()
    assert (first.base_heuristic(states) == last.base_heuristic(turned)).all()


@pytest.mark.parametrize(
    ("text", "error", "part"),
    [
        ("1 2 3 4 5 6 8 7 0", UnsolvableState, "odd parity.*1 2 3 / 4 5 6 / 8 7 0"),
        ("1 2 3 4 5 6 7 7 0", MalformedState, '"7" occurs 2 times; it must occur once'),
        ("1 2 3 4 5 6 7 8", MalformedState, "8 values came; a state has 9"),
        ("12345678", MalformedState, "8 values came; a state has 9"),
        ("D R Q", MalformedState, '"Q" is neither a move nor a value'),
        ("D R 5", MalformedState, "moves and values are mixed"),
        ("1 2 3 4 5 6 7 9 0", MalformedState, '"9" is neither a move nor a value'),
        (" ", MalformedState, "empty"),
    ],
)
def test_bad_boards_are_refused_with_the_reason(text: str, error: type[Exception], part: str) -> None:
    with pytest.raises(error, match=part):
        us.puzzle("tiles-3x3").parse(text)
