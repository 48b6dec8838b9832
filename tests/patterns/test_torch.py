"""Tables made and verified with torch are those of the compiled loops, and nothing wrong gets through."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import undershoot as us
from odd_puzzles import FILES
from planted import cut_off, missing, one, region_down
from undershoot.arrays import U8
from undershoot.errors import NotAvailable, SpaceTooLarge
from undershoot.pattern_tables import device
from undershoot.pattern_tables.device import Work, fold_on, make_entries_on, make_folded_on, verify_entries_on
from undershoot.pattern_tables.making import make_entries
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.tables import fold, make_table
from undershoot.pattern_tables.tensors import TensorSteps
from undershoot.pattern_tables.verification import WrongPatternTable, verify_entries
from undershoot.puzzles.pieces import pieces_of

NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=NEEDS_CUDA)]
PYRAMINX = str(Path(__file__).parent.parent.parent / "examples" / "pyraminx.toml")


PATTERNS = [
    ("tiles-2x3", (0, 1, 2), True),
    ("tiles-2x3", (0, 1, 2, 3, 4), True),
    ("tiles-2x3", (0, 1, 2, 3, 4), False),
    ("tiles-2x4", (0, 1, 4, 5), True),
    ("tiles-3x3", (0, 1, 3, 4), True),
    ("tiles-3x3", (5, 6), True),
    ("tiles-3x3", (0, 1, 2), False),
    ("tiles-3x3-blank-first", (0, 3, 7), True),
    ("cube-2x2", (0, 1, 2), False),
    ("cube-2x2", (1, 3, 5, 6), False),
    ("cube-2x2-qtm", (0, 4, 2), False),
    ("cube-2x2", (0, 1), True),
    ("cube-3x3", (0, 1, 8, 9), False),
    ("topspin-8-4", (0, 1, 2, 3), False),
    ("pancake-8", (0, 1, 2, 3, 4), False),
    (PYRAMINX, (0, 1, 2, 3), False),
    (PYRAMINX, (2, 4, 5, 6, 7, 8), False),
    ("swaps", (0, 1, 2, 5), True),
    ("prices", (0, 1, 4, 7), True),
    ("prices", (0, 1, 4), False),
    ("goals", (0, 1, 4), True),
    ("goals", (0, 1, 4, 6), False),
    ("costs", (0, 1, 2, 4), False),
    ("costs", (0, 4), True),
    ("unreachable", (0, 1, 3, 4), False),
    ("dead ends", (0, 1, 3), False),
    ("two kinds", (0, 1), False),
]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors: waiting for other threads would take most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def known(folder: Path, name: str, followed: tuple[int, ...], is_additive: bool) -> tuple[Pattern, U8]:
    """A pattern, and its entries as the compiled loops make them."""
    path = folder / f"{name}.toml"
    if name in FILES:
        path.write_text(f'name = "odd"\n{FILES[name]}')
    pieces = pieces_of(us.puzzle(path if name in FILES else name))
    movable = [piece for piece in range(len(pieces)) if piece != pieces.cursor]
    pattern = Pattern(pieces, tuple(movable[piece] for piece in followed if piece < len(movable)), is_additive)
    entries = make_entries(pattern)
    entries.flags.writeable = False
    return pattern, entries


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("puzzles")


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize(("name", "followed", "is_additive"), PATTERNS)
def test_entries_are_those_of_the_compiled_loops(
    name: str, followed: tuple[int, ...], is_additive: bool, where: str, folder: Path
) -> None:
    pattern, entries = known(folder, name, followed, is_additive)
    for chunk in (None, 50_000 + len(name)):
        work = Work(pattern, where, chunk)
        made = make_entries_on(pattern, where, work=work)
        assert (made.cpu().numpy() == entries).all()
        verify_entries_on(pattern, made, work=work)
    assert (fold_on(pattern, made) == fold(pattern, entries)).all()


@pytest.mark.parametrize(("name", "followed", "is_additive"), PATTERNS[:1] + PATTERNS[6:7])
def test_the_size_of_batches_does_not_matter(name: str, followed: tuple[int, ...], is_additive: bool, folder: Path) -> None:
    pattern, entries = known(folder, name, followed, is_additive)
    for chunk in (97, 5_003):
        work = Work(pattern, "cpu", chunk)
        made = make_entries_on(pattern, "cpu", work=work)
        assert (made.numpy() == entries).all()
        verify_entries_on(pattern, made, work=work)


def several(entries: U8, pattern: Pattern) -> None:
    rows = np.flatnonzero((entries > 3) & (entries < 200))
    entries[rows[::7]] += np.uint8(1)


def goal_up(entries: U8, pattern: Pattern) -> None:
    entries[entries == 0] = 2


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("change", [one(1), one(-1), region_down, missing, several, cut_off, goal_up])
@pytest.mark.parametrize(("name", "followed", "is_additive"), [PATTERNS[i] for i in (4, 6, 9, 17, 18)])
def test_the_same_faults_are_found(
    name: str, followed: tuple[int, ...], is_additive: bool, change: Callable[[U8, Pattern], None], where: str, folder: Path
) -> None:
    if change is region_down and name == "cube-2x2":
        pytest.skip("it has no cursor")
    pattern, right = known(folder, name, followed, is_additive)
    entries = right.copy()
    change(entries, pattern)
    with pytest.raises(WrongPatternTable) as expected:
        verify_entries(pattern, entries)
    for chunk in (None, 20_011):
        with pytest.raises(WrongPatternTable) as found:
            verify_entries_on(pattern, torch.tensor(entries, device=where), work=Work(pattern, where, chunk))
        assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize(("name", "followed"), [("dear", (0, 1, 2)), ("far", (0,))])
def test_costs_that_do_not_fit_are_refused(name: str, followed: tuple[int, ...], where: str, folder: Path) -> None:
    pattern, entries = known(folder, name, followed, False)
    made = make_entries_on(pattern, where)
    assert (made.cpu().numpy() == entries).all()
    with pytest.raises(NotAvailable, match="above 254 do not fit"):
        verify_entries(pattern, entries)
    with pytest.raises(NotAvailable, match="above 254 do not fit"):
        verify_entries_on(pattern, made)


def test_a_table_of_another_shape_is_refused(folder: Path) -> None:
    pattern, entries = known(folder, *PATTERNS[0])
    wrongs: list[Any] = [entries[1:], entries.astype(np.int16)]
    for wrong in wrongs:
        with pytest.raises(WrongPatternTable) as expected:
            verify_entries(pattern, wrong)
        with pytest.raises(WrongPatternTable) as found:
            verify_entries_on(pattern, torch.tensor(wrong))
        assert str(found.value) == str(expected.value)


def test_what_cannot_be_added_says_so(folder: Path) -> None:
    with pytest.raises(NotAvailable, match="cannot be added"):
        known(folder, "dead ends", (0, 1, 3), True)
    pattern, _ = known(folder, "dead ends", (0, 1, 3), False)
    with pytest.raises(NotAvailable, match="cannot be added"):
        make_entries_on(Pattern(pattern.pieces, pattern.followed, True), "cpu")


@pytest.mark.parametrize("name", ["tiles-4x4", "tiles-5x5", "cube-3x3", "tiles-6x6"])
def test_large_numbers_come_back(name: str) -> None:
    pieces = pieces_of(us.puzzle(name))
    movable = [piece for piece in range(len(pieces)) if piece != pieces.cursor]
    for count in (2, 8, 10):
        pattern = Pattern(pieces, tuple(movable[-count:]), is_additive=False)
        size = int(pattern.ranking.size)
        if size > 2**62:
            continue
        steps = TensorSteps(pattern, backward=False, device="cpu")
        numbers = torch.tensor(np.random.default_rng(1).integers(0, size, 500))
        numbers[:2] = torch.tensor([0, size - 1])
        assert (steps.ranking.numbers_of(steps.ranking.codes_of(numbers)) == numbers).all()
        back = TensorSteps(pattern, backward=True, device="cpu")
        targets, prices = steps.neighbours(numbers)
        is_step = (prices > 0).expand_as(targets)
        assert (back.neighbours(targets[is_step])[0] == numbers.expand_as(targets)[is_step]).any(0).all()


def test_progress_is_reported_and_can_interrupt(folder: Path) -> None:
    pattern, _ = known(folder, *PATTERNS[4])
    seen: list[tuple[str, int, int]] = []
    make_folded_on(pattern, "cpu", lambda *n: seen.append(("making", *n)), lambda *n: seen.append(("verifying", *n)))
    size = int(pattern.ranking.size)
    assert {doing for doing, _, _ in seen} == {"making", "verifying"}
    assert all(done <= of == size for _, done, of in seen)
    assert seen[-1] == ("verifying", size, size)

    def stop(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_entries_on(pattern, "cpu", stop)


def test_too_little_memory_is_said_before_it_starts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern, _ = known(folder, *PATTERNS[4])
    monkeypatch.setattr(device, "free_memory", lambda where: 1000)
    with pytest.raises(SpaceTooLarge, match=r"takes .* on the device cpu, where 1 kB are free: follow fewer pieces"):
        make_entries_on(pattern, "cpu")


def test_smaller_memory_means_smaller_chunks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern, _ = known(folder, "cube-2x2", (0, 1, 2, 3, 4), False)
    whole = Work(pattern, "cpu").chunk
    monkeypatch.setattr(device, "LEAST_CHUNK", 1 << 10)
    monkeypatch.setattr(device, "free_memory", lambda where: 100 << 20)
    assert (1 << 10) < Work(pattern, "cpu").chunk < whole


def test_devices_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-2x3")
    with pytest.raises(us.UndershootError, match='the device is "gpu"; allowed are auto, cpu, cuda'):
        us.patterns(puzzle, "3-2", device="gpu")
    pattern = Pattern(pieces_of(puzzle), (0, 1), is_additive=True)
    assert (make_table(pattern, device="cpu").unpacked() == make_table(pattern).unpacked()).all()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(us.UndershootError, match="torch finds none here"):
        make_table(pattern, device="cuda")


@NEEDS_CUDA
def test_a_table_made_on_cuda_is_that_of_the_cores(folder: Path) -> None:
    for key in (PATTERNS[4], PATTERNS[9]):
        pattern, entries = known(folder, *key)
        assert (make_table(pattern, device="cuda").unpacked() == fold(pattern, entries)).all()
        work = Work(pattern, "cuda", fused=True)
        made = make_entries_on(pattern, "cuda", work=work)
        verify_entries_on(pattern, made, work=work)
        assert work.due.compiled is not None
        assert (made.cpu().numpy() == entries).all()
