"""What tables of patterns take: while they are made, in searches, and on disk."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from undershoot.errors import SpaceTooLarge
from undershoot.oracles.size import available_memory, bytes_text
from undershoot.pattern_tables.looks import distinct_patterns
from undershoot.pattern_tables.packing import packed_size
from undershoot.pattern_tables.pattern import Pattern

MOST_SPARSE = 1 << 26
"""Bytes up to which searches have a table with entries for places that two pieces share, too: the places are the number."""


def place_bits(pattern: Pattern) -> int:
    """How many bits a place takes, where tiles slide."""
    return (len(pattern.pieces.kinds[0].slots) - 1).bit_length()


def is_sparse(pattern: Pattern) -> bool:
    """Whether searches write the table out by places, which is quicker to ask where tiles slide."""
    return pattern.is_additive and 1 << (place_bits(pattern) * len(pattern.followed)) <= MOST_SPARSE


def making_bytes(pattern: Pattern) -> int:
    """While it is made: all entries, those without the cursor's places, and packed."""
    kept = int(pattern.folded.size)
    return int(pattern.ranking.size) + (kept if pattern.has_cursor else 0) + packed_size(kept)


def memory_of(patterns: Sequence[Pattern], bytes_of: Callable[[Pattern], int | None] = lambda pattern: None) -> int:
    """The most that a set takes while its tables are made, one after another, and then searched with: a byte an entry, though
    where costs are small it will be half of one. bytes_of: of tables that are made already; None for others."""
    taken = peak = 0
    tables = distinct_patterns(patterns)
    for pattern in tables:
        size = bytes_of(pattern)
        if size is None:
            peak, size = max(peak, taken + making_bytes(pattern)), int(pattern.folded.size)
        taken += size
    return max(peak, taken + sum(1 << (place_bits(one) * len(one.followed)) for one in tables if is_sparse(one)))


def check_memory(patterns: Sequence[Pattern], bytes_of: Callable[[Pattern], int | None] = lambda pattern: None) -> None:
    """Refuse what would not fit before anything is made. Parameters as in `memory_of`."""
    need, memory = memory_of(patterns, bytes_of), available_memory()
    if need > memory:
        largest = max(patterns, key=lambda pattern: int(pattern.ranking.size))
        of_all = "" if len(patterns) == 1 else f"the largest of {len(patterns)} patterns, "
        raise SpaceTooLarge(
            f"{of_all}a pattern of {len(largest.followed)} pieces, has {largest.ranking.size:,} arrangements, a byte each; "
            f"in all that takes {bytes_text(need)}, and {bytes_text(memory)} are free: follow fewer pieces"
        )


def disk_bytes(pattern: Pattern) -> int:
    """What its file takes at least; up to twice as much if costs are large."""
    return packed_size(int(pattern.folded.size))


def free_disk(path: Path) -> int | None:
    """Bytes that a file there may take; None if the system does not say."""
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        status = os.statvfs(folder)
    except (OSError, AttributeError):
        return None
    return status.f_bavail * status.f_frsize
