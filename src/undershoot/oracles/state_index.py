"""A hash index over stored keys. Keys are compared word for word, never by hash alone.

A slot is a 64-bit word: 1 + the row of the key (32 bits; 0 for an empty slot), 16 further bits of its hash, which spare
most looks at the wrong keys, and 16 bits for its distance, which spare a look elsewhere.
"""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U16, U64, Keys, Number, States, read_only
from undershoot.kernels.compiler import called, compiled
from undershoot.kernels.hashing import finished, mixed
from undershoot.kernels.plan import Packing
from undershoot.kernels.prefetch import prefetch

Words = tuple[int, ...]
"""The numbers of a key's words, (0, 1, ...). As a tuple, so that loops over them are compiled for their number."""

MAX_DISTANCE = 2**16 - 1
MAX_LOAD = 0.6
BATCH = 512
MAX_ROWS = 2**32 - 2
ROW = np.uint64(0xFFFFFFFF)
TAG = np.uint64(0xFFFF00000000)
DISTANCE_BITS = np.uint64(48)


def slots_for(count: int) -> int:
    """A power of two that keeps an index of `count` keys sparse enough."""
    return 1 << max(10, int(count / MAX_LOAD).bit_length())


def word_numbers(keys: Keys) -> Words:
    """(0, ..., W - 1) for keys uint64[N, W]."""
    return tuple(range(keys.shape[1]))


def build_index(keys: Keys, distance: U16, slots: int) -> U64:
    """uint64[slots] for distinct keys, uint64[N, W], and their distances, uint16[N]."""
    index = np.zeros(slots, dtype=np.uint64)
    _fill(read_only(keys), read_only(distance), index, word_numbers(keys))
    return index


def look_up(keys: Keys, index: U64, wanted: Keys, absent: int) -> tuple[I64, I32]:
    """int64[B] and int32[B]: the row and the distance of each wanted key, `absent` for those that are not there."""
    found = np.empty(len(wanted), dtype=np.uint64)
    _look_up(read_only(keys), read_only(index), read_only(wanted), word_numbers(keys), found)
    there = found != 0
    rows = np.where(there, (found & ROW).astype(np.int64) - 1, absent)
    return rows, np.where(there, (found >> DISTANCE_BITS).astype(np.int32), np.int32(absent))


@compiled
def key_hash(keys: Keys, row: Number, words: Words) -> Number:
    """64 mixed bits of the key in a row."""
    h: Number = np.uint64(0)
    for w in words:
        h = mixed(h, keys[row, w])
    return finished(h)


@compiled
def home_slot(h: Number, mask: Number) -> Number:
    """Where the search for a key with this hash begins; it goes on slot by slot. mask: slots - 1."""
    return (h >> np.uint64(24)) & mask


@compiled
def entry(row: int, h: Number, distance: Number) -> Number:
    """The slot of a stored key; its tag is the low bits of the hash, which `home_slot` leaves out."""
    return np.uint64(row + 1) | ((h << np.uint64(32)) & TAG) | (np.uint64(distance) << DISTANCE_BITS)


@compiled
def same_key(keys: Keys, row: Number, others: Keys, other: Number, words: Words) -> Number:
    """Whether keys[row] and others[other] agree in every word."""
    for w in words:
        if keys[row, w] != others[other, w]:
            return False
    return True


@compiled
def find_slots(keys: Keys, index: U64, wanted: Keys, count: Number, words: Words, hashes: U64, slots: U64) -> None:
    """For the first `count` rows of `wanted` write the hash, and the slot that holds the key or the empty one for it.

    Best a few hundred at a time: the memory is asked for all first slots before any is read.
    """
    mask, one = np.uint64(index.shape[0] - 1), np.uint64(1)
    for b in range(count):
        hashes[b] = key_hash(wanted, b, words)
        prefetch(index, np.int64(home_slot(hashes[b], mask)))
    for b in range(count):
        slot, tag = home_slot(hashes[b], mask), hashes[b] << np.uint64(32)
        while True:
            occupant = index[slot]
            if occupant == 0:
                break
            if ((occupant ^ tag) & TAG) == 0 and same_key(keys, (occupant & ROW) - one, wanted, b, words):
                break
            slot = (slot + one) & mask
        slots[b] = slot


@compiled
def _look_up(keys: Keys, index: U64, wanted: Keys, words: Words, found: U64) -> None:
    hashes, slots = np.empty(BATCH, dtype=np.uint64), np.empty(BATCH, dtype=np.uint64)
    for start in range(0, wanted.shape[0], BATCH):
        count = min(BATCH, wanted.shape[0] - start)
        find_slots(keys, index, wanted[start : start + count], count, words, hashes, slots)
        for b in range(count):
            found[start + b] = index[slots[b]]


@compiled
def _fill(keys: Keys, distance: U16, index: U64, words: Words) -> None:
    mask, one = np.uint64(index.shape[0] - 1), np.uint64(1)
    for row in range(keys.shape[0]):
        h = key_hash(keys, row, words)
        slot = home_slot(h, mask)
        while index[slot]:
            slot = (slot + one) & mask
        index[slot] = entry(row, h, distance[row])


class Costs(NamedTuple):
    """Costs of listed states, to be looked up one by one."""

    packing: Packing
    keys: Keys
    slots: U64
    """The index over them."""
    words: Words
    wanted: Keys
    """uint64[1, W], to work in."""


def costs_of(packing: Packing, keys: Keys, index: U64) -> Costs:
    """For one thread."""
    return Costs(packing, keys, index, word_numbers(keys), np.zeros((1, keys.shape[1]), dtype=np.uint64))


@called
def cost_of(costs: Costs, states: States, row: Number, absent: Number) -> Number:
    """The cost of states[row], or `absent`."""
    packing, wanted, index, keys = costs.packing, costs.wanted, costs.slots, costs.keys
    for w in costs.words:
        wanted[0, w] = 0
    for i in range(packing.word.shape[0]):
        wanted[0, packing.word[i]] += np.uint64(states[row, i]) * packing.weight[i]
    bits: Number = np.uint64(0)
    for w in costs.words:
        bits = mixed(bits, wanted[0, w])
    bits = finished(bits)
    mask, tag = np.uint64(index.shape[0] - 1), bits << np.uint64(32)
    slot = (bits >> np.uint64(24)) & mask
    while index[slot] != 0:
        occupant = index[slot]
        if ((occupant ^ tag) & TAG) == 0:
            same = True
            for w in costs.words:
                same &= keys[(occupant & ROW) - np.uint64(1), w] == wanted[0, w]
            if same:
                return np.int64(occupant >> DISTANCE_BITS)
        slot = (slot + np.uint64(1)) & mask
    return absent
