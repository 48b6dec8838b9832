"""Additive patterns of puzzles with a cursor, compiled: where the cursor goes alone costs nothing.

A *region* is what the cursor reaches without moving a followed piece, as a mask of places. All entries of a region are equal.
"""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U8, U64, Bools, Number, frozen
from undershoot.errors import NotAvailable
from undershoot.kernels.bits import ones
from undershoot.kernels.compiler import compiled_loop, inner
from undershoot.pattern_tables.pattern import MOST, UNREACHED, Pattern
from undershoot.pattern_tables.ranking import Ranking, rank, unrank_places

ONE, NONE = np.uint64(1), np.uint64(0)
NO_COST = 1 << 30
"""Of what has no solution."""


class CursorSteps(NamedTuple):
    """Steps by the cursor's place, with what they move besides it."""

    legal: Bools
    """bool[N, S]."""
    cost: I32
    """int32[N, S]."""
    landing: U8
    """uint8[N, S]: the cursor's place afterwards."""
    moved: U64
    """uint64[N, S]: the places from which other pieces are moved, as a mask."""
    after: U8
    """uint8[N, S, n]: where a slot goes."""
    slot: U8
    """uint8[N]: the slot of a place."""


def cursor_steps(pattern: Pattern, backward: bool) -> CursorSteps:
    """The steps of a puzzle with a cursor."""
    pieces, table = pattern.pieces, pattern.pieces.table
    if not table.is_reversible or len(pieces.kinds) != 1:
        raise NotAvailable(
            "patterns of this puzzle cannot be added: not every move can be undone, or the cursor keeps to itself"
        )
    steps = table.backward if backward else table.forward
    slots = pieces.kinds[0].slots[:, 0]
    shape = (len(slots), steps.legal.shape[1])
    landing, moved = np.zeros(shape, dtype=np.uint8), np.zeros(shape, dtype=np.uint64)
    after = np.zeros((*shape, table.cells), dtype=np.uint8)
    for place, slot in enumerate(slots.tolist()):
        for step in np.flatnonzero(steps.legal[slot]):
            after[place, step] = np.argsort(steps.source[slot, step])
            landing[place, step] = pieces.place[after[place, step, slot]]
            for other in slots[after[place, step, slots] != slots].tolist():
                if other != slot:
                    moved[place, step] |= np.uint64(1 << int(pieces.place[other]))
    legal, cost = np.ascontiguousarray(steps.legal[slots]), np.ascontiguousarray(steps.cost[slots])
    return CursorSteps(frozen(legal), frozen(cost), frozen(landing), frozen(moved), frozen(after), slots.copy())


@inner
def _occupied(how: Ranking, slots: I64) -> Number:
    mask = NONE
    for i in range(how.kind.shape[0]):
        mask |= ONE << np.uint64(how.place[slots[i]])
    return mask


@inner
def _region(steps: CursorSteps, place: Number, occupied: Number) -> Number:
    """All places that the cursor reaches from this one without moving a followed piece."""
    region = ONE << np.uint64(place)
    fresh = region
    while fresh != NONE:
        first = np.int64(ones((fresh & (~fresh + ONE)) - ONE))
        fresh &= fresh - ONE
        for step in range(steps.legal.shape[1]):
            if steps.legal[first, step] and steps.moved[first, step] & occupied == NONE:
                bit = ONE << np.uint64(steps.landing[first, step])
                fresh |= bit & ~region
                region |= bit
    return region


@inner
def _among_free(occupied: Number, place: Number) -> Number:
    """The number of a free place among the free ones."""
    return np.int64(place) - np.int64(ones(occupied & ((ONE << np.uint64(place)) - ONE)))


@inner
def _lower_region(entries: U8, start: Number, occupied: Number, region: Number, cost: Number) -> None:
    """Write the cost of a region of the arrangement whose entries begin at `start`."""
    while region != NONE:
        bit = region & (~region + ONE)
        region ^= bit
        entries[start + np.int64(ones((bit - ONE) & ~occupied))] = cost


@inner
def _leave(how: Ranking, steps: CursorSteps, place: Number, step: Number, slots: I64, moved: I64) -> Number:
    """Write the arrangement after the step to `moved`; returns its number."""
    for i in range(how.kind.shape[0]):
        moved[i] = steps.after[place, step, slots[i]]
    return rank(how, moved)


@inner
def _has_byte(word: Number, byte: Number) -> Number:
    """Whether one of the eight bytes of a word is this one."""
    low = np.uint64(0x0101010101010101)
    same = word ^ (low * np.uint64(byte))
    return ((same - low) & ~same & np.uint64(0x8080808080808080)) != NONE


@compiled_loop
def write_goals(how: Ranking, steps: CursorSteps, entries: U8, goals: I64) -> None:
    """The regions of the goals cost 0. goals: int64[G, k + 1], slots, the cursor's last."""
    free = steps.legal.shape[0] - how.kind.shape[0]
    for g in range(goals.shape[0]):
        slots = goals[g]
        occupied = _occupied(how, slots)
        region = _region(steps, np.int64(how.place[slots[how.kind.shape[0]]]), occupied)
        _lower_region(entries, free * rank(how, slots), occupied, region, 0)


@compiled_loop
def push_regions(
    how: Ranking, steps: CursorSteps, entries: U8, words: U64, first: Number, last: Number, level: Number, work: I64
) -> Number:
    """Expand what costs `level` in arrangements first..last; returns how many regions were written.

    entries: uint8[arrangements * free places]; words: the same memory.
    """
    free = steps.legal.shape[0] - how.kind.shape[0]
    slots, moved, written = work[0], work[1], np.int64(0)
    word, number = first * free >> 3, first
    while number < last:
        while word << 3 < last * free and not _has_byte(words[word], level):
            word += 1
        number = max(number, (word << 3) // free)
        # All arrangements that have a part in this word.
        while number < last and number * free < (word + 1) << 3:
            found = False
            for k in range(free):
                found |= entries[number * free + k] == level
            if found:
                written += _expand_arrangement(how, steps, entries, number, free, level, slots, moved)
            number += 1
        word += 1
    return written


@inner
def _expand_arrangement(
    how: Ranking, steps: CursorSteps, entries: U8, number: Number, free: Number, level: Number, slots: I64, moved: I64
) -> Number:
    unrank_places(how, number, slots)
    occupied, written = _occupied(how, slots), np.int64(0)
    for place in range(steps.legal.shape[0]):
        if (occupied >> np.uint64(place)) & ONE or entries[number * free + _among_free(occupied, place)] != level:
            continue
        for step in range(steps.legal.shape[1]):
            if not steps.legal[place, step] or steps.moved[place, step] & occupied == NONE:
                continue
            cost = level + np.int64(steps.cost[place, step])
            start = free * _leave(how, steps, place, step, slots, moved)
            there = _occupied(how, moved)
            landing = np.int64(steps.landing[place, step])
            if entries[start + _among_free(there, landing)] > cost:
                # All writers of this level write the same, so several threads may.
                _lower_region(entries, start, there, _region(steps, landing, there), cost)
                written += 1
    return written


@compiled_loop
def check_regions(how: Ranking, steps: CursorSteps, entries: U8, goals: I64, first: Number, last: Number, work: I64) -> Number:
    """The first entry in arrangements first..last that is not what it must be; -1 if there is none, less if one does not fit.

    It must be 0 for a region with a goal, and otherwise the least over the moves that leave it of what these cost and what the
    region costs that they lead to. steps: forwards. goals: int64[G], the numbers of their entries.
    """
    free = steps.legal.shape[0] - how.kind.shape[0]
    slots, moved = work[0], work[1]
    every = ~NONE >> np.uint64(64 - steps.legal.shape[0])
    for number in range(first, last):
        unrank_places(how, number, slots)
        occupied = _occupied(how, slots)
        left = every & ~occupied
        while left != NONE:
            place = np.int64(ones((left & (~left + ONE)) - ONE))
            region = _region(steps, place, occupied)
            left &= ~region
            due = _due(how, steps, entries, goals, number * free, occupied, region, slots, moved)
            while region != NONE:
                bit = region & (~region + ONE)
                region ^= bit
                entry = number * free + np.int64(ones((bit - ONE) & ~occupied))
                if NO_COST > due > MOST:
                    return np.int64(-2 - entry)
                if entries[entry] != (np.int64(UNREACHED) if due == NO_COST else due):
                    return np.int64(entry)
    return np.int64(-1)


@inner
def _due(
    how: Ranking,
    steps: CursorSteps,
    entries: U8,
    goals: I64,
    start: Number,
    occupied: Number,
    region: Number,
    slots: I64,
    moved: I64,
) -> Number:
    """What a region must cost, by its neighbours; NO_COST if none of them has a solution."""
    least, free, rest = np.int64(NO_COST), steps.legal.shape[0] - how.kind.shape[0], region
    while rest != NONE:
        bit = rest & (~rest + ONE)
        rest ^= bit
        place = np.int64(ones(bit - ONE))
        for g in range(goals.shape[0]):
            if goals[g] == start + _among_free(occupied, place):
                return np.int64(0)
        for step in range(steps.legal.shape[1]):
            if steps.legal[place, step] and steps.moved[place, step] & occupied != NONE:
                there = free * _leave(how, steps, place, step, slots, moved)
                cost = np.int64(entries[there + _among_free(_occupied(how, moved), steps.landing[place, step])])
                if cost < UNREACHED:
                    least = min(least, cost + np.int64(steps.cost[place, step]))
    return least
