"""Faults that are planted in pattern tables, for whatever verifies them."""

from collections.abc import Callable

import numpy as np

from undershoot.arrays import U8
from undershoot.pattern_tables.pattern import Pattern


def one(by: int) -> Callable[[U8, Pattern], None]:
    def change(entries: U8, pattern: Pattern) -> None:
        row = int(np.flatnonzero((entries > 3) & (entries < 200))[7])
        entries[row] = int(entries[row]) + by

    return change


def region_down(entries: U8, pattern: Pattern) -> None:
    """All places of the cursor beside one arrangement cost one less."""
    block = entries.reshape(-1, int(pattern.ranking.choices[-1]))
    row = int(np.flatnonzero((block > 3).all(axis=1) & (block < 255).all(axis=1))[0])
    block[row] -= 1


def missing(entries: U8, pattern: Pattern) -> None:
    entries[int(np.flatnonzero(entries == 5)[3])] = 255


def cut_off(entries: U8, pattern: Pattern) -> None:
    np.minimum(entries, 6, out=entries, where=entries < 255)
