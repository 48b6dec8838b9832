"""Entries in half a byte each, where the costs of a pattern are small: twice as many fit into memory, and into its caches."""

from collections.abc import Iterator

import numpy as np

from undershoot.arrays import U8
from undershoot.pattern_tables.pattern import UNREACHED

MOST_HALF, NO_HALF = 14, 15
"""The largest cost that half a byte holds, and what stands for UNREACHED."""
AT_ONCE = 1 << 22


def can_pack(entries: U8) -> bool:
    """Whether all costs fit."""
    parts = (entries[first : first + AT_ONCE] for first in range(0, len(entries), AT_ONCE))
    return all(bool(((part <= MOST_HALF) | (part == UNREACHED)).all()) for part in parts)


def packed_size(size: int) -> int:
    """How many bytes hold so many entries."""
    return -(-size // 2)


def pack(entries: U8) -> U8:
    """uint8[half as many]: two to a byte, the first in its lower half."""
    result = np.full(packed_size(len(entries)), NO_HALF, dtype=np.uint8)
    for first in range(0, len(entries), AT_ONCE):
        part = np.minimum(entries[first : first + AT_ONCE], NO_HALF)
        target = result[first // 2 : (first + len(part) + 1) // 2]
        target[:] = part[::2]
        target[: len(part) // 2] |= part[1::2] << 4
    return result


def unpacked_parts(packed: U8, size: int) -> Iterator[U8]:
    """uint8[B] each: a byte an entry, piece by piece."""
    for first in range(0, size, AT_ONCE):
        last = min(first + AT_ONCE, size)
        both = packed[first // 2 : (last + 1) // 2]
        part = np.stack([both & 15, both >> 4], axis=1).ravel()[: last - first]
        part[part == NO_HALF] = UNREACHED
        yield part


def unpack(packed: U8, size: int) -> U8:
    """uint8[size]: a byte an entry."""
    result, first = np.empty(size, dtype=np.uint8), 0
    for part in unpacked_parts(packed, size):
        result[first : first + len(part)] = part
        first += len(part)
    return result
