"""Sums and maxima of pattern tables inside compiled loops, for any puzzle with pieces."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U8, U16, Number, States, frozen
from undershoot.kernels.bits import ones
from undershoot.kernels.compiler import inner
from undershoot.kernels.guides import implements, kept_size, make_kept, update_kept, value_of, values_after
from undershoot.kernels.plan import Plan
from undershoot.kernels.prefetch import prefetch
from undershoot.pattern_tables.looks import Look
from undershoot.puzzles.pieces import NOWHERE, Pieces

ONE, NONE = np.uint64(1), np.uint64(0)
UNKNOWN = -1
"""Kept in the first place if a piece is missing: the state is none of this puzzle."""


class SlotLooks(NamedTuple):
    """Keeps the slot of every piece. The value is the largest of several sums of looks."""

    after: U8
    """uint8[C * A, n]: where an action from a context sends a slot."""
    actions: Number
    lifts: "Lifts"
    ends: I64
    """int64[L]: where the pieces of each look end in what follows."""
    offsets: I64
    """int64[L]: where the table of each look begins in `entries`."""
    is_last: U8
    """uint8[L]: whether a sum ends with this look."""
    pieces: U8
    """uint8[K]: which piece is asked for."""
    is_first: U8
    """uint8[K]: whether a kind of pieces begins, whose places are counted anew."""
    place: U8
    """uint8[K, 256]: the place that stands for its slot."""
    weight: I64
    """int64[K, 256]: what its turn adds to the number."""
    place_weight: I64
    """int64[K]."""
    entries: U8


class Lifts(NamedTuple):
    """How a state is read as slots of pieces."""

    slots: U8
    """uint8[Q]: all slots."""
    cells: I32
    """int32[Q, w]: their stickers; where there are fewer, any cell with factor 0."""
    factors: I32
    """int32[Q, w]."""
    kind: I32
    """int32[Q]: of the pieces that stand there."""
    piece: I32
    """int32[kinds, codes]: which piece of a kind shows these colours; -1 for none."""
    count: Number
    """How many pieces there are."""


def lifts_of(pieces: Pieces) -> Lifts:
    """For compiled code."""
    base, width = pieces.table.values + 1, pieces.stickers.shape[1]
    slots = np.flatnonzero(pieces.stickers[:, 0] >= 0)
    cells = pieces.stickers[slots]
    factors = np.where(cells >= 0, base ** np.arange(width), 0).astype(np.int32)
    kinds = frozen(pieces.kind_of_slot[slots])
    return Lifts(
        frozen(slots.astype(np.uint8)),
        frozen(np.maximum(cells, 0)),
        frozen(factors),
        kinds,
        frozen(pieces.piece_by_code),
        len(pieces),
    )


def slot_looks(pieces: Pieces, sums: Sequence[Sequence[Look]], entries: U8, offsets: I64) -> SlotLooks:
    """entries: the tables of all looks in one piece of memory; offsets: int64[L], where each begins."""
    looks = [look for group in sums for look in group]
    asked, first, place, weight, place_weight, ends = [], [], [], [], [], []
    for look in looks:
        how = look.table.pattern.folded
        for i, (piece, slots) in enumerate(zip(look.asked.tolist(), look.slots, strict=True)):
            asked.append(piece)
            first.append(i == 0 or how.kind[i] != how.kind[i - 1])
            row = np.zeros(256, dtype=np.int64)
            row[: len(slots)] = pieces.place[slots]
            place.append(row.astype(np.uint8))
            turned = np.zeros(256, dtype=np.int64)
            turned[: len(slots)] = pieces.turn[slots] * how.turn_weight[i]
            weight.append(turned)
            place_weight.append(how.place_weight[i])
        ends.append(len(asked))
    last = [number == len(group) - 1 for group in sums for number in range(len(group))]
    contexts, actions, cells = pieces.after.shape
    return SlotLooks(
        frozen(pieces.after.reshape(contexts * actions, cells)),
        actions,
        lifts_of(pieces),
        frozen(np.array(ends, dtype=np.int64)),
        frozen(offsets),
        frozen(np.array(last, dtype=np.uint8)),
        frozen(np.array(asked, dtype=np.uint8)),
        frozen(np.array(first, dtype=np.uint8)),
        frozen(np.array(place)),
        frozen(np.array(weight)),
        frozen(np.array(place_weight, dtype=np.int64)),
        entries,
    )


@implements(kept_size, SlotLooks)
def _slots_kept(guide: SlotLooks) -> Number:
    return max(2, guide.lifts.count)


@implements(make_kept, SlotLooks)
def _lift(guide: SlotLooks, states: States, row: Number, kept: I32, at: Number) -> None:
    how, found = guide.lifts, 0
    for p in range(how.count):
        kept[at, p] = NOWHERE
    for q in range(how.slots.shape[0]):
        code = 0
        for j in range(how.cells.shape[1]):
            code += (np.int64(states[row, how.cells[q, j]]) + 1) * how.factors[q, j]
        piece = how.piece[how.kind[q], code]
        if piece >= 0:
            found += kept[at, piece] == NOWHERE
            kept[at, piece] = how.slots[q]
    if found < how.count:
        kept[at, 0] = UNKNOWN


@implements(update_kept, SlotLooks)
def _slots_after(
    guide: SlotLooks, plan: Plan, context: Number, step: Number, states: States, row: Number, kept: I32, at: Number, to: Number
) -> None:
    move = np.uint64(context) * np.uint64(guide.actions) + np.uint64(step)
    for p in range(guide.lifts.count):
        kept[to, p] = guide.after[move, np.uint64(kept[at, p])]


@implements(value_of, SlotLooks)
def _largest_sum(guide: SlotLooks, states: States, row: Number, kept: I32, at: Number) -> Number:
    if kept[at, 0] == UNKNOWN:
        return np.float32(np.nan)
    largest, total, k = np.int64(0), np.int64(0), np.uint64(0)
    for look in range(guide.ends.shape[0]):
        number, occupied = np.uint64(guide.offsets[look]), NONE
        while k < np.uint64(guide.ends[look]):
            slot = np.uint64(kept[at, guide.pieces[k]])
            occupied = NONE if guide.is_first[k] else occupied
            number, occupied = _next_digit(guide, k, slot, number, occupied)
            k += ONE
        total += np.int64(guide.entries[number])
        if guide.is_last[look]:
            largest, total = max(largest, total), np.int64(0)
    return np.float32(largest)


@inner
def _next_digit(guide: SlotLooks, k: Number, slot: Number, number: Number, occupied: Number) -> Number:
    """The number and the occupied places with one more piece."""
    place = np.uint64(guide.place[k, slot])
    bit = ONE << place
    free = place - ones(occupied & (bit - ONE))
    return number + free * np.uint64(guide.place_weight[k]) + np.uint64(guide.weight[k, slot]), occupied | bit


@implements(values_after, SlotLooks)
def _largest_sums_after(
    guide: SlotLooks,
    plan: Plan,
    context: Number,
    steps: U16,
    first: Number,
    count: Number,
    states: States,
    row: Number,
    kept: I32,
    at: Number,
    room: Number,
    values: I64,
) -> None:
    """Look by look: the entries of all children that no look has cut off yet are on their way before the first is read."""
    for k in range(count):
        values[0, k], values[1, k] = 0, 0  # the largest sum, and the one that is added up
    begin = NONE
    for look in range(guide.ends.shape[0]):
        end = np.uint64(guide.ends[look])
        for k in range(count):
            step = np.uint64(steps[first + k])
            if max(values[0, k], values[1, k]) <= room - np.int64(plan.cost[context, step]):
                values[2, k] = _number_after(guide, look, begin, end, context, step, kept, at)
                prefetch(guide.entries, values[2, k])
        for k in range(count):
            step = np.uint64(steps[first + k])
            if max(values[0, k], values[1, k]) <= room - np.int64(plan.cost[context, step]):
                values[1, k] += np.int64(guide.entries[np.uint64(values[2, k])])
            if guide.is_last[look]:
                values[0, k], values[1, k] = max(values[0, k], values[1, k]), 0
        begin = end


@inner
def _number_after(
    guide: SlotLooks, look: Number, begin: Number, end: Number, context: Number, step: Number, kept: I32, at: Number
) -> Number:
    """Where the entry is that a look sees one step further on."""
    move = np.uint64(context) * np.uint64(guide.actions) + step
    number, occupied, k = np.uint64(guide.offsets[look]), NONE, begin
    while k < end:
        slot = np.uint64(guide.after[move, np.uint64(kept[at, guide.pieces[k]])])
        occupied = NONE if guide.is_first[k] else occupied
        number, occupied = _next_digit(guide, k, slot, number, occupied)
        k += ONE
    return np.int64(number)
