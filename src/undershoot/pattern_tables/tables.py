"""PatternTable: what every arrangement of a pattern costs, made, verified, and ready to be asked."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from undershoot.arrays import I64, U8, frozen, sealed
from undershoot.errors import UndershootError, what_came
from undershoot.pattern_tables.making import make_entries
from undershoot.pattern_tables.packing import can_pack, pack, unpack, unpacked_parts
from undershoot.pattern_tables.pattern import UNREACHED, Pattern
from undershoot.pattern_tables.verification import verify_entries

AT_ONCE = 1 << 24
SECONDS_A_SLIDE, SECONDS_A_STATE = 0.09e-6, 0.45e-6
"""For each arrangement, as `benchmarks/patterns.py tables` shows."""
AUTO = "auto"
DEVICES = (AUTO, "cpu", "cuda")
CUDA_FROM = 1 << 24
"""Entries of a table that is worth loading torch for; the cores make smaller ones in a few seconds."""


@dataclass(frozen=True, eq=False)
class PatternTable:
    """The costs of a pattern, the least over all places of the cursor where there is one."""

    pattern: Pattern
    entries: U8
    """uint8[size] by `pattern.folded`; 255 for what has no solution. Two to a byte if `is_packed`: see `packing`."""
    seconds: float
    """What making and verifying it took."""
    is_packed: bool = False
    cached: Path | None = None
    """The file that it was read from; None if it was made just now."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", sealed(self.entries))  # large, so not copied

    def __repr__(self) -> str:
        return f"<PatternTable of {len(self.pattern.followed)} pieces: {len(self.entries):,} bytes>"

    def lie_in(self, memory: U8) -> None:
        """The same entries, in memory that holds them, too: so they are there once."""
        object.__setattr__(self, "entries", sealed(memory))

    @cached_property
    def histogram(self) -> I64:
        """int64[D + 1]: how many arrangements there are of each cost."""
        counts = np.zeros(256, dtype=np.int64)
        size = int(self.pattern.folded.size)
        whole = (self.entries[first : first + AT_ONCE] for first in range(0, size, AT_ONCE))
        for part in unpacked_parts(self.entries, size) if self.is_packed else whole:
            counts += np.bincount(part, minlength=256)
        counts = counts[:UNREACHED]
        return frozen(counts[: 1 + int(np.flatnonzero(counts)[-1])])

    def unpacked(self) -> U8:
        """uint8[size], a byte an entry."""
        return unpack(self.entries, int(self.pattern.folded.size)) if self.is_packed else self.entries

    @property
    def largest(self) -> int:
        """The largest cost."""
        return len(self.histogram) - 1

    @property
    def mean(self) -> float:
        """Over all arrangements that have a solution."""
        return float(self.histogram @ np.arange(len(self.histogram)) / self.histogram.sum())


def make_table(
    pattern: Pattern,
    threads: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    device: str = AUTO,
) -> PatternTable:
    """Search, verify, fold, pack. progress: called with what is being done, how much of it is, and how much there is.

    device: cpu for the cores, cuda, or auto, which takes cuda for large tables where there is one with enough memory.
    """
    report = progress or (lambda what, done, of: None)
    making, verifying = partial(report, "making"), partial(report, "verifying")
    on_cuda = takes_cuda(pattern, device)
    began = time.perf_counter()
    if on_cuda:
        from undershoot.pattern_tables.device import make_folded_on

        folded = make_folded_on(pattern, "cuda", making, verifying)
    else:
        entries = make_entries(pattern, threads, making)
        verify_entries(pattern, entries, threads, verifying)
        folded = fold(pattern, entries)
    is_packed = can_pack(folded)
    return PatternTable(pattern, pack(folded) if is_packed else folded, time.perf_counter() - began, is_packed)


def expected_seconds(pattern: Pattern) -> float:
    """About what making and verifying takes on two cores, compiling not counted, to choose by."""
    return float(pattern.ranking.size) * (SECONDS_A_SLIDE if pattern.has_regions else SECONDS_A_STATE)


def check_device(device: str) -> None:
    """Refuse what is not the name of one."""
    if device not in DEVICES:
        raise UndershootError(f"the device is {what_came(device)}; allowed are {', '.join(DEVICES)}")


def takes_cuda(pattern: Pattern, device: str) -> bool:
    """Whether a table is made on a CUDA device; torch is loaded only if it may be."""
    check_device(device)
    if device == "cpu" or (device == AUTO and pattern.ranking.size < CUDA_FROM):
        return False
    import torch

    if not torch.cuda.is_available():
        if device == AUTO:
            return False
        raise UndershootError("the device is cuda, but torch finds none here; use --device cpu")
    from undershoot.pattern_tables.device import free_memory, needed_memory

    return device == "cuda" or needed_memory(pattern) <= free_memory(torch.device("cuda"))


def fold(pattern: Pattern, entries: U8) -> U8:
    """uint8[size] by `pattern.folded`: the least over all places of the cursor."""
    if not pattern.has_cursor:
        return entries
    # Turns vary fastest, then the cursor's places, then those of the followed pieces.
    cursors, block = int(pattern.ranking.choices[-1]), int(pattern.ranking.block)
    rows = int(pattern.ranking.size) // (cursors * block)
    result = np.empty((rows, block), dtype=np.uint8)
    for first in range(0, rows, step := max(1, AT_ONCE // (cursors * block))):
        part = entries[first * cursors * block : (first + step) * cursors * block].reshape(-1, cursors, block)
        part.min(axis=1, out=result[first : first + step])
    return result.ravel()
