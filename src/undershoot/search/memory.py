"""Regions of large arrays, handed out and given back inside compiled code.

An array is reserved once, as large as the limit allows, and the system hands out its pages as they are touched. A region that
is the last of its array grows in place; others move to twice the room, and what they leave is used again. What counts against
the limit is the part of each array that was ever touched, since its pages stay with the process.

Places and sizes of regions count items, such as nodes, of so many words each.
"""

import mmap

import numpy as np

from undershoot.arrays import U64, Number, Records
from undershoot.kernels.compiler import inner

SIZE_CLASSES = 64
POOL = np.dtype(
    [
        ("unit", np.int64),  # words of an item
        ("limit", np.int64),  # items of the array
        ("top", np.int64),  # items in use, up to the end of the last region
        ("touched", np.int64),  # items ever in use
        ("free", np.int64, (SIZE_CLASSES,)),  # for each power of two, the first of a list of free regions; -1 for none
    ]
)
"""One for each array, and a last one, in words, for all together."""


def reserved(words: int, huge: bool) -> U64:
    """An array whose pages the system hands out when they are touched."""
    if not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.empty(words, dtype=np.uint64)
    memory = mmap.mmap(-1, max(8, 8 * words), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE if huge else mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype=np.uint64)[:words]


def make_pools(words: list[int], units: list[int], total_words: int) -> Records:
    """POOL[P + 1] for P arrays of so many words, in items of so many words."""
    pools = np.zeros(len(words) + 1, dtype=POOL)
    pools["unit"] = [*units, 1]
    pools["limit"] = [*(size // unit for size, unit in zip(words, units, strict=True)), total_words]
    pools["free"] = -1
    return pools


@inner
def _size_class(items: Number) -> Number:
    """The exponent of the largest power of two that is not above `items`."""
    k = 0
    while (np.int64(2) << k) <= items:
        k += 1
    return k


@inner
def _room(pools: Records, which: Number) -> Number:
    """How many items there are beyond the last region of an array."""
    pool, total = pools[which], pools[pools.shape[0] - 1]
    untouched = min(pool.limit - pool.touched, (total.limit - total.touched) // pool.unit)
    return pool.touched - pool.top + untouched


@inner
def _extend(pools: Records, which: Number, items: Number) -> None:
    pool, total = pools[which], pools[pools.shape[0] - 1]
    pool.top += items
    more = max(np.int64(0), pool.top - pool.touched)
    pool.touched += more
    total.touched += more * pool.unit


@inner
def take(words: U64, pools: Records, which: Number, items: Number) -> Number:
    """The place of a region of so many items, a power of two; -1 if there is no room. words: those of the array."""
    pool, k = pools[which], _size_class(items)
    place = pool.free[k]
    if place >= 0:
        pool.free[k] = np.int64(words[place * pool.unit])  # the first word of a free region leads to the next
        return place
    if items > _room(pools, which):
        return np.int64(-1)
    place = pool.top
    _extend(pools, which, items)
    return place


@inner
def release(words: U64, pools: Records, which: Number, place: Number, size: Number) -> None:
    """Give a region back, in pieces that are powers of two."""
    pool = pools[which]
    if place + size == pool.top:
        pool.top -= size
        return
    while size > 0:
        k = _size_class(size)
        words[place * pool.unit] = np.uint64(pool.free[k])
        pool.free[k] = place
        place += np.int64(1) << k
        size -= np.int64(1) << k


@inner
def enlarge(words: U64, pools: Records, which: Number, place: Number, size: Number, need: Number) -> tuple[Number, Number]:
    """A region with the same contents and at least `need` items: its place and size; place -1 if there is no room.

    Rather one that was given back than a larger piece of the array; rather longer in place than moved.
    """
    pool = pools[which]
    wanted = np.int64(1) << _size_class(2 * size)
    while wanted < need:
        wanted *= 2
    if place + size == pool.top and pool.free[_size_class(wanted)] < 0:
        more = min(max(need, size + size // 8) - size, _room(pools, which))
        if size + more < need:
            return np.int64(-1), np.int64(0)
        _extend(pools, which, more)
        return place, size + more
    moved = take(words, pools, which, wanted)
    if moved < 0:
        return np.int64(-1), np.int64(0)
    for w in range(size * pool.unit):
        words[moved * pool.unit + w] = words[place * pool.unit + w]
    release(words, pools, which, place, size)
    return moved, wanted
