"""Values of pattern tables by tensor operations: what the compiled code says, bit for bit."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import undershoot as us
from odd_puzzles import odd_puzzle
from subjects import PYRAMINX
from undershoot.arrays import States
from undershoot.errors import MalformedState
from undershoot.heuristics import device_patterns
from undershoot.heuristics.device_patterns import DevicePatterns, DeviceTable, made_on_device, on_device
from undershoot.heuristics.patterns import PatternHeuristic
from undershoot.kernels.scrambles import scramble
from undershoot.kernels.tensor_pieces import TensorPieces
from undershoot.pattern_tables.looks import Look
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.ranking import rank_of
from undershoot.pattern_tables.sets import pattern_set
from undershoot.puzzles.pieces import pieces_of
from undershoot.puzzles.puzzle import Puzzle

EVERY_SUM = 1000


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors: waiting for other threads would take most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def some_states(puzzle: Puzzle) -> States:
    """All, if they are not many; otherwise some, goals among them."""
    if puzzle.space.size <= 200_000:
        known = us.oracle(puzzle)
        return known.states_of_rows(0, known.states)
    if puzzle.definition:
        return scramble(puzzle.table, np.arange(4000) % 40, seed=1).states
    return np.concatenate([puzzle.sample(4000, seed=1), puzzle.table.goals])


def check(puzzle: Puzzle, heuristic: PatternHeuristic) -> DevicePatterns:
    """The same values; returns what says them."""
    there = on_device(heuristic, "cpu", later=EVERY_SUM)
    states = some_states(puzzle)
    expected = heuristic(states)
    found = there(states)
    assert found.dtype == expected.dtype
    assert (found == expected).all(), np.flatnonzero(found != expected)[:5]
    assert (there.guarantee, there.rounding, there.name) == (heuristic.guarantee, heuristic.rounding, heuristic.name)
    return there


@pytest.mark.parametrize(
    ("name", "patterns"),
    [
        ("tiles-2x2", "3"),
        ("tiles-2x3", "3-2"),
        ("tiles-2x4", "1 2 5 6 / 3 4 7"),
        ("tiles-3x3", "4-4+reflected"),
        ("tiles-3x3", "2-2-2-2"),
        ("tiles-3x3", "1 2 3"),
        ("tiles-3x3-blank-first", "4-4+reflected"),
        ("tiles-4x4", "3-3-3-3-3+reflected"),
        ("tiles-4x4-blank-first", "4-4-4-3+reflected"),
        ("tiles-6x6", "2-2-2-2-2-2-2-2-2-2-2-2-2-2-2-2-2-1+reflected"),
        ("cube-2x2", "4+4+inverse"),
        ("cube-2x2", "3+3+symmetric+inverse"),
        ("cube-2x2-qtm", "4+4+symmetric"),
        ("cube-3x3", "4+4+inverse"),
        ("cube-3x3", "3+3+symmetric+inverse"),
        ("cube-3x3-qtm", "UF UR UFR / DL DB BL DLF"),
        ("pancake-2", "all"),
        ("pancake-8", "4+4"),
        ("pancake-20", "4+4+4"),
        ("topspin-8-4", "4+4+inverse"),
        ("topspin-8-4", "all"),
        ("topspin-9-3", "4+5+symmetric"),
        ("topspin-10-4", "4+4"),
        (PYRAMINX, "1+1+1+1+6"),
        (PYRAMINX, "3+4"),
    ],
)
def test_values_are_those_of_the_compiled_code(name: str, patterns: str) -> None:
    puzzle = us.puzzle(name)
    check(puzzle, us.patterns(puzzle, patterns))


ODD = [
    ("swaps", "1 2 3 / 4 5"),
    ("prices", "1 2 3 / 4 5 6 7 8"),
    ("goals", "1 2 3 4 / 5 6"),
    ("costs", "a b c e / d f"),
    ("unreachable", "a b d / c e f"),
    ("dead ends", "a b d e"),
    ("two kinds", "a / c d"),
]


@pytest.mark.parametrize(("name", "patterns"), ODD)
def test_values_of_odd_puzzles_are_those_of_the_compiled_code(tmp_path: Path, name: str, patterns: str) -> None:
    puzzle = odd_puzzle(tmp_path, name)
    check(puzzle, us.patterns(puzzle, patterns))


def test_what_has_no_solution_is_infinitely_far(tmp_path: Path) -> None:
    puzzle = odd_puzzle(tmp_path, "unreachable")
    turned = puzzle.table.goals[:, [3, 4, 5, 0, 1, 2]]  # the two threes cannot change places
    heuristic = us.patterns(puzzle, "a b c d e f")
    there = on_device(heuristic, "cpu")
    swapped = puzzle.table.goals[:, [1, 0, 2, 3, 4, 5]]
    assert there(swapped).tolist() == [np.inf]
    assert heuristic(swapped).tolist() == [255]
    for asked in (heuristic, there):
        with pytest.raises(MalformedState):
            asked(turned)


def test_tables_of_half_bytes_and_of_bytes_say_the_same() -> None:
    puzzle = us.puzzle("cube-2x2")
    heuristic = us.patterns(puzzle, "4")
    states = puzzle.sample(5000, seed=2)
    packed = on_device(heuristic, "cpu")
    assert all(look.table.is_packed for group in packed.sums for look in group)
    (table,) = heuristic.tables
    whole = DeviceTable(table.pattern, torch.tensor(table.unpacked()), False)
    sums = tuple(tuple(Look(whole, look.symmetry, look.is_inverse) for look in group) for group in heuristic.sums)
    unpacked = DevicePatterns("unpacked", packed.moves, sums, len(sums))
    assert unpacked.bytes == 2 * packed.bytes
    assert (unpacked(states) == packed(states)).all()


@pytest.mark.parametrize(
    ("name", "patterns"),
    [("tiles-3x3", "4-4+reflected"), ("cube-2x2", "4+4+inverse"), (PYRAMINX, "3+4"), ("topspin-9-3", "4+5+symmetric")],
)
def test_tables_that_are_made_there_say_the_same(name: str, patterns: str) -> None:
    puzzle = us.puzzle(name)
    told: list[tuple[str, str]] = []
    made = made_on_device(puzzle, pattern_set(puzzle, patterns), "cpu", lambda pieces, doing, *_: told.append((pieces, doing)))
    states = some_states(puzzle)
    assert (made(states) == us.patterns(puzzle, patterns)(states)).all()
    assert {doing for _, doing in told} == {"making", "verifying"}


def test_the_last_of_many_sums_are_left_out_which_never_says_more() -> None:
    puzzle = us.puzzle("cube-2x2")
    heuristic = us.patterns(puzzle, "3+3+symmetric+inverse")
    states = puzzle.sample(5000, seed=3)
    few, all_of_them = (on_device(heuristic, "cpu", later) for later in (2, EVERY_SUM))
    assert len(few.sums) == few.first + 2 < len(all_of_them.sums)
    assert (few(states) <= all_of_them(states)).all()
    assert (few(states) < all_of_them(states)).any()


def test_batches_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("cube-2x2")
    there = on_device(us.patterns(puzzle, "4+4+inverse"), "cpu")
    states = puzzle.sample(1000, seed=4)
    at_once = there(states)
    monkeypatch.setattr(device_patterns, "AT_ONCE", 7)
    assert (there(states) == at_once).all()
    assert there(states[:0]).shape == (0,)


def test_states_that_lack_a_piece_are_refused() -> None:
    puzzle = us.puzzle("tiles-3x3")
    there = on_device(us.patterns(puzzle, "4-4"), "cpu")
    twice = puzzle.table.goals.copy()
    twice[0, 0] = twice[0, 1]
    with pytest.raises(MalformedState):
        there(twice)


def test_tables_that_share_a_piece_are_not_added() -> None:
    puzzle = us.puzzle("tiles-3x3")
    there = on_device(us.patterns(puzzle, "4-4"), "cpu")
    (group,) = there.sums
    with pytest.raises(us.UndershootError, match="share a piece"):
        DevicePatterns("twice", there.moves, ((*group, group[0]),), 1)


def test_numbers_of_wide_turns_do_not_wrap_around(tmp_path: Path) -> None:
    """Seven dials with twelve positions: 35,831,808 ways to turn them, in one place each, so that words pass 32 bits."""
    cycles = [[dial * 12 + k + 1 for k in range(12)] for dial in range(7)]
    symbols = " ".join(["a"] + ["b"] * 11) + " "
    moves = "\n".join(f'm{d} = "({" ".join(map(str, cycle))})"' for d, cycle in enumerate(cycles))
    listed = ", ".join('"' + " ".join(map(str, cycle)) + '"' for cycle in cycles)
    path = tmp_path / "dials.toml"
    path.write_text(f'name = "dials"\ngoal = "{7 * symbols}"\npieces = [{listed}]\n[moves]\n{moves}\n')
    puzzle = us.puzzle(path)
    pieces = pieces_of(puzzle)
    pattern = Pattern(pieces, tuple(range(7)), False)
    assert int(pattern.folded.block) == 12**7
    entries = torch.zeros(12**7, dtype=torch.uint8)
    moves_there = TensorPieces(pieces, "cpu")
    there = DevicePatterns("dials", moves_there, ((Look(DeviceTable(pattern, entries, False)),),), 1)
    states = scramble(puzzle.table, np.full(50, 60), seed=0).states
    slots = pieces.slots_of(states).astype(np.int64)
    numbers = [int(rank_of(pattern.folded, row[pattern.folded.pieces])) for row in slots]
    assert max(numbers) > 1 << 23
    entries[torch.tensor(numbers)] = torch.arange(1, 51, dtype=torch.uint8)
    assert there(states).tolist() == [int(entries[number]) for number in numbers]
    assert len(set(there(states).tolist())) > 40
