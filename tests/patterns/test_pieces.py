"""Pieces and slots, on every kind of puzzle."""

from pathlib import Path

import numpy as np
import pytest

import undershoot as us
from undershoot.errors import MalformedState, NotAvailable
from undershoot.puzzles.pieces import pieces_of

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PYRAMINX = str(EXAMPLES / "pyraminx.toml")
PUZZLES = ["tiles-2x3", "tiles-3x3", "cube-2x2", "cube-3x3", "cube-3x3-qtm", "topspin-8-4", "pancake-7", PYRAMINX]


@pytest.mark.parametrize("name", PUZZLES)
def test_moves_send_slots_to_slots(name: str) -> None:
    puzzle = us.puzzle(name)
    pieces = pieces_of(puzzle)
    states = us.scramble(puzzle.table, np.full(40, 25), 3).states
    slots = pieces.slots_of(states)
    for action in range(puzzle.table.actions):
        contexts = puzzle.table.contexts_of(states)
        legal = puzzle.table.legal[contexts, action]
        after = us.apply(puzzle.table, states[legal], np.full(int(legal.sum()), action))
        expected = np.take_along_axis(pieces.after[contexts[legal], action], slots[legal].astype(int), axis=1)
        assert (pieces.slots_of(after) == expected).all()


def test_the_cube_has_eight_corners_and_twelve_edges_whose_turns_are_balanced() -> None:
    pieces = pieces_of(us.puzzle("cube-3x3"))
    assert [(kind.places, kind.turns, kind.is_balanced) for kind in pieces.kinds] == [(8, 3, True), (12, 2, True)]


def test_a_state_without_one_of_the_pieces_is_refused() -> None:
    puzzle = us.puzzle("cube-3x3")
    broken = puzzle.table.goals.copy()
    edge, corner = pieces_of(puzzle).cells[8], pieces_of(puzzle).cells[0]
    broken[0, edge[0]], broken[0, corner[1]] = broken[0, corner[1]], broken[0, edge[0]]
    with pytest.raises(MalformedState, match="lacks a piece"):
        pieces_of(puzzle).slots_of(broken)


def test_what_has_no_pieces_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotAvailable, match="algebra solves it"):
        pieces_of(us.puzzle("lights-out-3x3"))
    path = tmp_path / "twins.toml"
    path.write_text('name = "twins"\ngoal = "a a b"\n[moves]\nturn = "(1 2 3)"\n')
    with pytest.raises(NotAvailable, match="pieces = "):
        pieces_of(us.puzzle(path))
    path.write_text('name = "adds"\ngoal = "a b c"\n[moves]\nx = { cycles = "(1 2)", add = { 3 = 1 } }\n')
    with pytest.raises(NotAvailable, match="change values"):
        pieces_of(us.puzzle(path))


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ('["1 2"]', "tears pieces apart"),
        ('["1 9"]', "numbers from 1 to 4"),
        ('["1 2", "2 3"]', "belongs to two pieces"),
        ("[1]", "list of texts"),
    ],
)
def test_pieces_in_a_puzzle_file_are_checked(tmp_path: Path, pieces: str, message: str) -> None:
    path = tmp_path / "four.toml"
    path.write_text(f'name = "four"\ngoal = "a b c d"\npieces = {pieces}\n[moves]\nturn = "(1 3 2 4)"\n')
    with pytest.raises(us.UndershootError, match=message):
        us.puzzle(path)
