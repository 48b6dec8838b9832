"""Memory for many searches at once: nodes, hash index and open list of each are regions of four large arrays.

The arrays are reserved once, as large as the limit allows, and the system hands out their pages as they are touched. A
region that is the last of its array grows in place; others move to twice the room, and what they leave is used again.
What counts against the limit is the part of each array that was ever touched, since its pages stay with the process.
"""

import mmap
from typing import NamedTuple

import numpy as np

from undershoot.arrays import F32, I32, I64, U8, U64, AnyArray, Number
from undershoot.kernels.compiler import compiled

NODES, INDEX, HEADS, ENTRIES, TOTAL = range(5)
TOP, TOUCHED, LIMIT, FREE = range(4)
"""Columns of `pools`: words in use up to the last region; words ever in use; the number of words; and from FREE on, by size,
a list of free regions. Row TOTAL is for all arrays together."""
HUGE_PAGES_FROM = 1 << 28
"""Bytes of a limit from where on pages of 2 MiB, which are faster, waste little of it."""

# Columns of `slots`: one row for each search that is under way.
# First where its regions are, then, from COUNTERS on, how far it has come.
(
    NODES_AT,
    NODES_SIZE,
    INDEX_AT,
    INDEX_SIZE,
    HEADS_AT,
    HEADS_SIZE,
    SPAN,
    ENTRIES_AT,
    ENTRIES_SIZE,
    STATUS,
    COUNT,
    USED,
    UNUSED,
    LEAST,
    SERIAL,
    PENDING,
    FIRST_ROW,
    EXPANDED,
    GENERATED,
    EVALUATED,
    REOPENED,
    GOAL,
    INCUMBENT,
    COLUMNS,
) = range(24)
COUNTERS = STATUS

IDLE, RUNNING, SOLVED, UNSOLVABLE, OVER_BUDGET, OUT_OF_MEMORY, OUT_OF_TIME, NEEDS_HEAP, TOO_DEAR = range(9)


class Workspace(NamedTuple):
    """Arrays for M searches. See the constants above for columns."""

    nodes: U64
    nodes32: I32
    """The same memory."""
    nodes_float: F32
    """The same memory."""
    hashed: U64
    """The hash index."""
    heads: U64
    entries: U64
    entries_float: AnyArray
    """float64, the same memory."""
    pools: I64
    """int64[5, FREE + 64]."""
    slots: I64
    """int64[M, COLUMNS]."""
    pending: I64
    """int64[M, P]: children that wait to be pushed, -1 for none."""
    is_new: U8
    """uint8[M, P]: whether they wait for the heuristic."""
    parent: U64
    """uint64[SW]."""
    children: U64
    """uint64[S, SW]: children of a node, and below their hashes, sums of the analytic heuristic, and steps."""
    hashes: U64
    sums: I64
    steps: I64


def _reserved(words: int, huge: bool) -> U64:
    """An array whose pages the system hands out when they are touched."""
    if not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.empty(words, dtype=np.uint64)
    memory = mmap.mmap(-1, max(8, 8 * words), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype=np.uint64)[:words]


def make_workspace(searches: int, per_step: int, steps: int, state_words: int, memory: int) -> Workspace:
    """For so many searches at once, each with up to `per_step` times `steps` new nodes a round, in so many bytes."""
    children = per_step * steps + 1
    total = memory // 8
    huge = memory >= HUGE_PAGES_FROM
    nodes, entries = _reserved(total, huge), _reserved(total // 2, huge)
    index, heads = _reserved(total // 2, huge), _reserved(total // 2, huge)
    pools = np.zeros((5, FREE + 64), dtype=np.int64)
    pools[:TOTAL, LIMIT] = [len(nodes), len(index), len(heads), len(entries)]
    pools[TOTAL, LIMIT] = total
    pools[:, FREE:] = -1
    return Workspace(
        nodes,
        nodes.view(np.int32),
        nodes.view(np.float32),
        index,
        heads,
        entries,
        entries.view(np.float64),
        pools,
        np.zeros((searches, COLUMNS), dtype=np.int64),
        np.zeros((searches, children), dtype=np.int64),
        np.zeros((searches, children), dtype=np.uint8),
        np.zeros(state_words, dtype=np.uint64),
        np.zeros((steps, state_words), dtype=np.uint64),
        np.zeros(steps, dtype=np.uint64),
        np.zeros(steps, dtype=np.int64),
        np.zeros(steps, dtype=np.int64),
    )


@compiled
def _size_class(words: Number) -> Number:
    """The exponent of the largest power of two that is not above `words`."""
    k = 0
    while (np.int64(2) << k) <= words:
        k += 1
    return k


@compiled
def take(array: U64, pools: I64, which: Number, words: Number) -> Number:
    """The first word of a region of `words` words (a power of two); -1 if there is no room."""
    k = _size_class(words)
    at = pools[which, FREE + k]
    if at >= 0:
        pools[which, FREE + k] = np.int64(array[at])
        return at
    at = pools[which, TOP]
    if words > _room(pools, which):
        return np.int64(-1)
    _extend(pools, which, words)
    return at


@compiled
def _room(pools: I64, which: Number) -> Number:
    """How many words there are beyond the last region of an array."""
    untouched = min(pools[which, LIMIT] - pools[which, TOUCHED], pools[TOTAL, LIMIT] - pools[TOTAL, TOUCHED])
    return pools[which, TOUCHED] - pools[which, TOP] + untouched


@compiled
def _extend(pools: I64, which: Number, words: Number) -> None:
    pools[which, TOP] += words
    more = max(np.int64(0), pools[which, TOP] - pools[which, TOUCHED])
    pools[which, TOUCHED] += more
    pools[TOTAL, TOUCHED] += more


@compiled
def release(array: U64, pools: I64, which: Number, at: Number, size: Number) -> None:
    """Give a region back, in pieces that are powers of two."""
    if at + size == pools[which, TOP]:
        pools[which, TOP] -= size
        return
    while size > 0:
        k = _size_class(size)
        array[at] = np.uint64(pools[which, FREE + k])
        pools[which, FREE + k] = at
        at += np.int64(1) << k
        size -= np.int64(1) << k


@compiled
def enlarge(array: U64, pools: I64, which: Number, at: Number, size: Number, need: Number) -> tuple[Number, Number]:
    """A region with the same contents and at least `need` words: its place and size; place -1 if there is no room.

    Rather one that was given back than a larger piece of the array; rather longer in place than moved.
    """
    wanted = np.int64(1) << _size_class(2 * size)
    while wanted < need:
        wanted *= 2
    if at + size == pools[which, TOP] and pools[which, FREE + _size_class(wanted)] < 0:
        more = min(max(need, size + size // 8) - size, _room(pools, which))
        if size + more < need:
            return np.int64(-1), np.int64(0)
        _extend(pools, which, more)
        return at, size + more
    new = take(array, pools, which, wanted)
    if new < 0:
        return np.int64(-1), np.int64(0)
    for i in range(size):
        array[new + i] = array[at + i]
    release(array, pools, which, at, size)
    return new, wanted
