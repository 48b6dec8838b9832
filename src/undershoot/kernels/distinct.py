"""Which rows of a batch are new, and which were seen before."""

import numpy as np

from undershoot.arrays import I64, Number, States
from undershoot.kernels.compiler import compiled
from undershoot.kernels.hashing import finished, mixed


@compiled
def distinct(states: States) -> tuple[I64, I64]:
    """int64[D], the rows where each distinct state comes first, and int64[B], for every row which of them it equals."""
    count, n = states.shape
    size = 16
    while size < 2 * count:
        size *= 2
    slots = np.full(size, -1, dtype=np.int64)
    first, which = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    found: Number = 0
    for b in range(count):
        h: Number = np.uint64(0)
        word: Number = np.uint64(0)
        for i in range(n):
            word = (word << np.uint64(8)) | np.uint64(states[b, i])
            if i & 7 == 7 or i == n - 1:
                h = mixed(h, word)
                word = np.uint64(0)
        slot = np.int64((finished(h) >> np.uint64(32)) & np.uint64(size - 1))
        while slots[slot] >= 0:
            equal = True
            other = first[slots[slot]]
            for i in range(n):
                equal &= states[other, i] == states[b, i]
            if equal:
                break
            slot = (slot + 1) & (size - 1)
        if slots[slot] < 0:
            slots[slot] = found
            first[found] = b
            found += 1
        which[b] = slots[slot]
    return first[:found].copy(), which
