"""Sums and maxima of pattern tables inside compiled loops, for any puzzle with pieces."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U8, U16, Number, States, frozen
from undershoot.kernels.bits import ones
from undershoot.kernels.compiler import inner
from undershoot.kernels.guides import implements, kept_size, make_kept, update_kept, value_of, values_after
from undershoot.kernels.plan import Plan
from undershoot.kernels.prefetch import prefetch
from undershoot.pattern_tables.looks import Look
from undershoot.pattern_tables.packing import NO_HALF
from undershoot.pattern_tables.pattern import UNREACHED
from undershoot.puzzles.pieces import NOWHERE, Pieces

ONE, NONE = np.uint64(1), np.uint64(0)
UNKNOWN = -1
"""Kept in the first place if a piece is missing: the state is none of this puzzle."""


class SlotLooks(NamedTuple):
    """Keeps the slot of every piece, and if a look asks for it, of every piece in the inverse of the state, as if there were
    twice as many pieces. The value is the largest of several sums of looks."""

    after: U8
    """uint8[C * A, n]: where an action from a context sends a slot."""
    actions: Number
    lifts: "Lifts"
    inverses: "Inverses"
    ends: I64
    """int64[L]: where the pieces of each look end in what follows."""
    offsets: I64
    """int64[L]: where the table of each look begins in `entries`."""
    is_last: U8
    """uint8[L]: whether a sum ends with this look."""
    pieces: U16
    """uint16[K]: which piece is asked for."""
    is_first: U8
    """uint8[K]: whether a kind of pieces begins, whose places are counted anew."""
    place: U8
    """uint8[K, 256]: the place that stands for its slot."""
    weight: I64
    """int64[K, 256]: what its turn adds to the number."""
    place_weight: I64
    """int64[K]."""
    entries: U8
    is_packed: Number
    """Whether two entries share a byte."""


class Inverses(NamedTuple):
    """How the inverse of a state changes with a step: there the moves that led here are undone, the last one first.

    A sticker that stands on cell c came from cell Y(c); in the inverse it stands there. After a step it is Y(the cell that the
    step brings to c): sticker `sticker` of piece `origin`, wherever that piece stands.
    """

    is_used: Number
    origin: U8
    """uint8[A, P]."""
    sticker: U8
    """uint8[A, P]."""
    cell: U8
    """uint8[w, n]: the cell of a sticker of a piece that stands in a slot."""
    home: U8
    """uint8[P]: the slots of the goal."""
    width: U8
    """uint8[P]: how many stickers a piece has."""
    piece_of: I32
    """int32[n]: the piece whose home is this slot; -1 for none."""


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


def inverses_of(pieces: Pieces, is_used: bool) -> Inverses:
    """For compiled code."""
    table = pieces.table
    homes = [home[0] for home in pieces.cells]
    piece_of = np.full(table.cells, -1, dtype=np.int32)
    piece_of[homes] = np.arange(len(pieces))
    origin, sticker = np.zeros((2, table.actions, len(pieces)), dtype=np.uint8)
    where = {cell: (p, t) for p, home in enumerate(pieces.cells) for t, cell in enumerate(home)}
    for action in range(table.actions if is_used else 0):
        before = np.argsort(pieces.after[0, action])
        for p, home in enumerate(homes):
            origin[action, p], sticker[action, p] = where[int(before[home])]
    return Inverses(
        is_used,
        frozen(origin),
        frozen(sticker),
        frozen(np.maximum(pieces.stickers.T, 0).astype(np.uint8)),
        frozen(np.array(homes, dtype=np.uint8)),
        frozen(np.array([len(home) for home in pieces.cells], dtype=np.uint8)),
        frozen(piece_of),
    )


def slot_looks(pieces: Pieces, sums: Sequence[Sequence[Look[Any]]], entries: U8, offsets: I64, is_packed: bool) -> SlotLooks:
    """entries: the tables of all looks in one piece of memory; offsets: int64[L], the entry that each begins with."""
    looks = [look for group in sums for look in group]
    asked, first, place, weight, place_weight, ends = [], [], [], [], [], []
    for look in looks:
        how = look.table.pattern.folded
        for i, (piece, slots) in enumerate(zip(look.asked.tolist(), look.slots, strict=True)):
            asked.append(piece + len(pieces) if look.is_inverse else piece)
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
        inverses_of(pieces, any(look.is_inverse for look in looks)),
        frozen(np.array(ends, dtype=np.int64)),
        frozen(offsets),
        frozen(np.array(last, dtype=np.uint8)),
        frozen(np.array(asked, dtype=np.uint16)),
        frozen(np.array(first, dtype=np.uint8)),
        frozen(np.array(place)),
        frozen(np.array(weight)),
        frozen(np.array(place_weight, dtype=np.int64)),
        entries,
        is_packed,
    )


@implements(kept_size, SlotLooks)
def _slots_kept(guide: SlotLooks) -> Number:
    return max(2, guide.lifts.count * (1 + guide.inverses.is_used))


@implements(make_kept, SlotLooks)
def _make(guide: SlotLooks, states: States, row: Number, kept: I32, at: Number) -> None:
    if lift(guide.lifts, states, row, kept, at) and guide.inverses.is_used:
        _invert(guide.inverses, guide.lifts.count, kept, at)


@inner
def lift(how: Lifts, states: States, row: Number, kept: I32, at: Number) -> Number:
    """Write the slot of every piece to kept[at], UNKNOWN for the first if the state is none of this puzzle; whether it is."""
    found, seen = 0, 0
    for p in range(how.count):
        kept[at, p] = NOWHERE
    for q in range(how.slots.shape[0]):
        code = 0
        for j in range(how.cells.shape[1]):
            code += (np.int64(states[row, how.cells[q, j]]) + 1) * how.factors[q, j]
        piece = how.piece[how.kind[q], code]
        if piece >= 0:
            found += kept[at, piece] == NOWHERE
            seen += 1
            kept[at, piece] = how.slots[q]
    is_whole = found == how.count and seen == found  # otherwise a piece is missing, or there twice
    if not is_whole:
        kept[at, 0] = UNKNOWN
    return is_whole


@inner
def _invert(inverses: Inverses, count: Number, kept: I32, at: Number) -> None:
    """Write the slots of the inverse after those of the state."""
    for p in range(count):
        for t in range(inverses.width[p]):
            other = inverses.piece_of[inverses.cell[t, kept[at, p]]]
            if other >= 0:
                kept[at, count + other] = inverses.cell[t, inverses.home[p]]


@implements(update_kept, SlotLooks)
def _slots_after(
    guide: SlotLooks, plan: Plan, context: Number, step: Number, states: States, row: Number, kept: I32, at: Number, to: Number
) -> None:
    for p in range(guide.lifts.count * (1 + guide.inverses.is_used)):
        kept[to, p] = _slot_after(guide, context, step, kept, at, np.uint64(p))


@inner
def _slot_after(guide: SlotLooks, context: Number, step: Number, kept: I32, at: Number, piece: Number) -> Number:
    """Where a piece of the state, or after these of its inverse, stands one step further on."""
    count = np.uint64(guide.lifts.count)
    if piece < count:
        move = np.uint64(context) * np.uint64(guide.actions) + np.uint64(step)
        return guide.after[move, np.uint64(kept[at, piece])]
    how, piece = guide.inverses, piece - count
    slot = np.uint64(kept[at, count + np.uint64(how.origin[step, piece])])
    return how.cell[np.uint64(how.sticker[step, piece]), slot]


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
        total += _entry(guide, number)
        if guide.is_last[look]:
            largest, total = max(largest, total), np.int64(0)
    return np.float32(largest)


@inner
def _entry(guide: SlotLooks, number: Number) -> Number:
    """What the tables say at this number."""
    if not guide.is_packed:
        return np.int64(guide.entries[number])
    half = np.int64(guide.entries[number >> ONE] >> np.uint8((number & ONE) << np.uint64(2))) & np.int64(15)
    return half if half < NO_HALF else np.int64(UNREACHED)


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
                prefetch(guide.entries, values[2, k] >> np.int64(guide.is_packed))
        for k in range(count):
            step = np.uint64(steps[first + k])
            if max(values[0, k], values[1, k]) <= room - np.int64(plan.cost[context, step]):
                values[1, k] += _entry(guide, np.uint64(values[2, k]))
            if guide.is_last[look]:
                values[0, k], values[1, k] = max(values[0, k], values[1, k]), 0
        begin = end


@inner
def _number_after(
    guide: SlotLooks, look: Number, begin: Number, end: Number, context: Number, step: Number, kept: I32, at: Number
) -> Number:
    """Where the entry is that a look sees one step further on."""
    number, occupied, k = np.uint64(guide.offsets[look]), NONE, begin
    while k < end:
        slot = np.uint64(_slot_after(guide, context, step, kept, at, np.uint64(guide.pieces[k])))
        occupied = NONE if guide.is_first[k] else occupied
        number, occupied = _next_digit(guide, k, slot, number, occupied)
        k += ONE
    return np.int64(number)
