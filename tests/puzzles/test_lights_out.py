from itertools import product

import numpy as np
import pytest

import undershoot as us
from undershoot.errors import MalformedState, UnsolvableState
from undershoot.kernels.encodings import dense as encoded


@pytest.mark.parametrize("size", ["1x2", "2x2", "2x3", "3x3", "1x5", "4x4"])
def test_solvable_are_exactly_the_sums_of_presses(size: str) -> None:
    puzzle = us.puzzle(f"lights-out-{size}")
    n = puzzle.table.cells
    presses = np.array(list(product((0, 1), repeat=n)), dtype=np.uint8)
    made = {row.tobytes() for row in (presses @ puzzle.table.shift[0] % 2).astype(np.uint8)}
    assert puzzle.space.size == len(made)
    assert puzzle.is_solvable(presses).tolist() == [row.tobytes() in made for row in presses]


@pytest.mark.parametrize(("rows", "columns"), [(r, c) for r in range(1, 9) for c in range(r, 9)])
def test_every_size_has_a_press_parity(rows: int, columns: int) -> None:
    puzzle = us.puzzle(f"lights-out-{rows}x{columns}")
    presses = np.random.default_rng(rows * 8 + columns).integers(0, 2, size=(50, rows * columns), dtype=np.uint8)
    states = (presses @ puzzle.table.shift[0] % 2).astype(np.uint8)
    assert (puzzle.cost_parity(states) == presses.sum(axis=1) % 2).all()


def test_uniform_states_are_uniform() -> None:
    puzzle = us.puzzle("lights-out-2x3")
    rows, counts = np.unique(puzzle.sample(64_000, 3), axis=0, return_counts=True)
    assert len(rows) == puzzle.space.size
    expected = 64_000 / len(rows)
    assert (abs(counts - expected) < 5 * np.sqrt(expected)).all()


def test_presses_are_named_like_cells_of_a_spreadsheet() -> None:
    puzzle = us.puzzle("lights-out-2x3")
    assert puzzle.format(puzzle.parse("A1")) == "110 100"
    assert puzzle.format(puzzle.parse("C2")) == "001 011"
    assert puzzle.format(puzzle.parse("A1 A1")) == "000 000"


def test_five_bits_a_cell_are_its_light_and_its_neighbours() -> None:
    puzzle = us.puzzle("lights-out-3x3")
    state = puzzle.parse("110 001 010") if puzzle.is_solvable(np.array([[1, 1, 0, 0, 0, 1, 0, 1, 0]], np.uint8))[0] else None
    assert state is not None
    bits = encoded(puzzle.encoding, state)[0].reshape(9, 5)
    board = state.reshape(3, 3)
    for r, c in product(range(3), repeat=2):
        expected = [
            board[rr, cc] if 0 <= rr < 3 and 0 <= cc < 3 else 0
            for rr, cc in ((r, c), (r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1))
        ]
        assert bits[r * 3 + c].tolist() == expected


def test_bad_lights_are_refused_with_the_reason() -> None:
    puzzle = us.puzzle("lights-out-5x5")
    with pytest.raises(UnsolvableState, match="no set of presses"):
        puzzle.parse("10000 00000 00000 00000 00000")
    with pytest.raises(MalformedState, match='"2" is neither'):
        puzzle.parse("2" + "0" * 24)
    with pytest.raises(MalformedState, match="2 values came"):
        puzzle.parse("0 0")
