"""Encodings of pieces, pairs and presses, of states as they are and of canonical ones."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

import commands
import undershoot as us
from undershoot.arrays import AnyArray, States
from undershoot.errors import NotAvailable
from undershoot.kernels.cpu import pack
from undershoot.kernels.encodings import dense, read
from undershoot.kernels.scrambles import deepest, scrambles_up_to
from undershoot.kernels.tensor_encodings import TensorEncoding
from undershoot.puzzles.puzzle import Puzzle

CASES = [
    ("cube-2x2", "pieces"),
    ("cube-2x2", "pairs"),
    ("cube-3x3", "pairs"),
    ("tiles-3x3", "pieces"),
    ("tiles-3x3", "pairs"),
    ("topspin-8-4", "pairs"),
    ("lights-out-3x3", "pairs"),
    ("lights-out-5x5", "presses"),
    ("lights-out-5x5", "pieces"),
]
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA"))]


def some_states(puzzle: Puzzle) -> States:
    near = scrambles_up_to(puzzle.table, 300, deepest(puzzle.table, 6), 1).states
    far = scrambles_up_to(puzzle.table, 1500, deepest(puzzle.table, 40), 2).states
    return np.concatenate([puzzle.table.goals, near, far])


def orbits(puzzle: Puzzle, states: States) -> AnyArray:
    """The same number for states that are images of one another: the least key of all images."""
    images = np.stack([pack(puzzle.table, symmetry.image(states)) for symmetry in puzzle.table.symmetries])
    least = [min(map(tuple, images[:, b].tolist())) for b in range(len(states))]
    _, numbers = np.unique([str(key) for key in least], return_inverse=True)
    return np.asarray(numbers)


@pytest.mark.parametrize("canonical", [False, True])
@pytest.mark.parametrize(("name", "encoding"), CASES)
def test_states_are_seen_alike_exactly_if_they_are_the_same_or_images(name: str, encoding: str, canonical: bool) -> None:
    puzzle = us.puzzle(name)
    states = some_states(puzzle)
    inputs = dense(puzzle.encoded(encoding, canonical), states)
    _, seen = np.unique(np.packbits(inputs.astype(bool), axis=1), axis=0, return_inverse=True)
    meant = orbits(puzzle, states) if canonical else np.unique(states, axis=0, return_inverse=True)[1]
    pairs = set(zip(seen.ravel().tolist(), meant.ravel().tolist(), strict=True))
    assert len(pairs) == len(set(seen.ravel().tolist())) == len(set(meant.ravel().tolist()))
    assert (inputs.sum(axis=1) == puzzle.encoded(encoding, canonical).active).all()


@pytest.mark.parametrize(("name", "encoding"), CASES)
def test_all_images_of_a_state_are_seen_alike(name: str, encoding: str) -> None:
    puzzle = us.puzzle(name)
    states, how = some_states(puzzle), puzzle.encoded(encoding, canonical=True)
    for symmetry in puzzle.table.symmetries:
        assert (read(how, symmetry.image(states)) == read(how, states)).all()


def test_a_pair_of_corners_has_an_input_for_everything_it_can_hold() -> None:
    cube = us.puzzle("cube-2x2")
    assert (len(cube.pieces), cube.encoded("pieces").width, cube.encoded("pairs").width) == (7, 7 * 21, 21 * 21 * 18)
    distances = us.oracle(cube, radius=7)
    chunks = [distances.states_of_rows(row, min(row + 1000, distances.states)) for row in range(0, distances.states, 1000)]
    assert np.any([dense(cube.encoded("pairs"), states).any(axis=0) for states in chunks], axis=0).all()
    tiles = us.puzzle("tiles-3x3")
    assert tiles.encoded("pairs").width == len(list(combinations(range(9), 2))) * 9 * 8


@pytest.mark.parametrize("name", ["lights-out-3x3", "lights-out-2x4", "lights-out-4x4", "lights-out-5x5"])
def test_presses_solve_the_state(name: str) -> None:
    puzzle = us.puzzle(name)
    states = puzzle.sample(500, 1)
    presses = read(puzzle.encoded("presses"), states).astype(np.int64)
    assert ((presses @ puzzle.table.shift[0].astype(np.int64)) % 2 == states).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("canonical", [False, True])
@pytest.mark.parametrize(("name", "encoding"), CASES)
def test_torch_reads_the_same_tokens(name: str, encoding: str, canonical: bool, device: str) -> None:
    puzzle = us.puzzle(name)
    how, states = puzzle.encoded(encoding, canonical), some_states(puzzle)
    there = TensorEncoding(how, device)
    given = torch.from_numpy(states).to(device)
    assert there.reading is not None
    assert (there.reading(given).cpu().numpy() == read(how, states)).all()
    assert (there.dense(there.active(given)).cpu().numpy() == dense(how, states)).all()


def test_encodings_that_cannot_be_are_refused() -> None:
    cube, pancakes = us.puzzle("cube-2x2"), us.puzzle("pancake-7")
    with pytest.raises(us.UndershootError, match="no encoding `presses`; it is for Lights Out"):
        cube.encoded("presses")
    with pytest.raises(us.UndershootError, match="has no symmetries given"):
        pancakes.encoded("pairs", canonical=True)
    with pytest.raises(us.UndershootError, match="takes states as they are"):
        cube.encoded("cells", canonical=True)
    with pytest.raises(us.UndershootError, match="there are cells, pieces, pairs and presses"):
        cube.encoded("corners")


def two_dials(folder: Path, symbols: int) -> Puzzle:
    """Two pieces of two cells, each of which can hold symbols^2 things."""
    path = folder / "dials.toml"
    listed = ", ".join(f'"v{value}"' for value in range(symbols))
    path.write_text(
        f'name = "dials"\ngoal = "v0 v0 v0 v0"\nsymbols = [{listed}]\npieces = ["1 2", "3 4"]\n[moves]\n'
        'a = { cycles = "(1 3)(2 4)", add = { 1 = 1 } }\nb = { add = { 2 = 1 } }\n'
    )
    return us.puzzle(path)


def test_the_largest_tokens_are_read_alike_everywhere(tmp_path: Path) -> None:
    puzzle = two_dials(tmp_path, 16)
    how, states = puzzle.encoded("pairs"), scrambles_up_to(puzzle.table, 2000, 200, 1).states
    here = read(how, np.concatenate([states, np.full((1, 4), 15, dtype=np.uint8)]))
    there = TensorEncoding(how, "cpu").reading
    assert here.max() == 2**16 - 1
    assert there is not None
    assert (there(torch.from_numpy(states)).numpy() == here[:-1]).all()


def test_tokens_that_would_wrap_around_are_refused(tmp_path: Path) -> None:
    """Kernels hold them in 16 bits and tensors in 64: a network would say one thing on one device, another on another."""
    puzzle = two_dials(tmp_path, 17)
    with pytest.raises(NotAvailable, match=r"a piece can hold 2\d\d contents or more, .* `pairs` at most 256 .*=pieces"):
        puzzle.encoded("pairs")
    assert read(puzzle.encoded("pieces"), np.full((1, 4), 16, dtype=np.uint8)).max() == 17**2 - 1


def test_pieces_that_hold_more_than_can_be_numbered_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undershoot.puzzles.encoding.TOKENS", 200)  # finding 2^16 contents takes long
    with pytest.raises(NotAvailable, match=r"or more, and with the encoding `pieces` at most 200 .* encoding=cells"):
        two_dials(tmp_path, 17).encoded("pieces")


@pytest.mark.parametrize("encoding", ["pieces", "pairs"])
def test_pieces_of_many_cells_are_refused_before_anything_large_is_made(tmp_path: Path, encoding: str) -> None:
    goal, swap = " ".join(f"s{i}" for i in range(32)), "".join(f"({i} {i + 16})" for i in range(1, 17))
    halves = [" ".join(map(str, range(first, first + 16))) for first in (1, 17)]
    path = tmp_path / "wide.toml"
    path.write_text(f'name = "wide"\ngoal = "{goal}"\npieces = ["{halves[0]}", "{halves[1]}"]\n[moves]\nm = "{swap}"\n')
    with pytest.raises(NotAvailable, match=r"2 pieces of up to 16 cells with 32 symbols .* 10\^24 entries.* encoding=cells"):
        us.puzzle(path).encoded(encoding)
    error = commands.undershoot(
        "train", str(path), "--set", f"encoding={encoding}", "--out", str(tmp_path / "b"), code=2
    ).stderr
    assert "at most 134,217,728 are allowed" in " ".join(error.split())


def test_pairs_of_many_cells_are_refused_before_anything_large_is_made(tmp_path: Path) -> None:
    path = tmp_path / "long.toml"
    path.write_text(f'name = "long"\ngoal = "{" ".join(f"s{i}" for i in range(250))}"\n[moves]\nm = "(1 2)"\n')
    with pytest.raises(NotAvailable, match=r"pairs of 250 pieces with 250 contents need .* use --set encoding=pieces"):
        us.puzzle(path).encoded("pairs")


@pytest.mark.parametrize("canonical", [False, True])
def test_values_out_of_range_are_not_read(canonical: bool) -> None:
    cube = us.puzzle("cube-2x2")
    with pytest.raises(ValueError, match="out of range"):
        read(cube.encoded("pairs", canonical), np.full((1, 24), 255, dtype=np.uint8))


def test_a_puzzle_of_one_cell_has_no_pairs(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(
        'name = "one"\ngoal = "3"\nsymbols = ["0", "1", "2", "3"]\n[moves]\nm = { add = { 1 = 1 } }\n'
    )
    with pytest.raises(us.UndershootError, match="pairs are of two or more pieces, and there is 1; use --set encoding=pieces"):
        us.puzzle(str(tmp_path / "one.toml")).encoded("pairs")
