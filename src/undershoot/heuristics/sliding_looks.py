"""Sums and maxima of pattern tables inside compiled loops, for sliding tiles: one step moves one piece."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U8, U16, Number, Records, States, frozen, sealed
from undershoot.kernels.bits import ones
from undershoot.kernels.compiler import compiled_loop, inner
from undershoot.kernels.guides import implements, kept_size, make_kept, update_kept, value_after, value_of
from undershoot.kernels.plan import Plan, forward_plan
from undershoot.pattern_tables.looks import Look
from undershoot.pattern_tables.pattern import UNREACHED
from undershoot.pattern_tables.ranking import Ranking, unrank_places
from undershoot.pattern_tables.room import is_sparse, place_bits
from undershoot.pattern_tables.tables import PatternTable
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.pieces import Pieces

ONE, NONE = np.uint64(1), np.uint64(0)
PLACE_BITS = 32
"""So many of them hold the places that a look keeps."""
ALL_PLACES = np.uint64(2**PLACE_BITS - 1)
SLIDE = np.dtype([("by", np.uint32), ("look", np.uint32)])
"""By how much the places of a look change, mod 2^32, and of which; NO_LOOK for none."""
NO_LOOK = np.uint64(255)
UNKNOWN = -1
"""Kept in the first place if a piece is missing: the state is none of this puzzle."""


class SlidingLooks(NamedTuple):
    """For puzzles whose steps exchange the cursor with one piece. With dense tables only as a part of `FarLooks`.

    Keeps, for each look, the places of its pieces as one number, and its entry; and for each sum its value.
    """

    values: Number
    """How many values the cells can hold: one more than the largest."""
    bits: Number
    """How many a place takes."""
    place: U8
    """uint8[G, n]: the place of a cell as each sum sees it."""
    look: U8
    """uint8[G, m]: which look follows the piece with this value; 255 for none."""
    shift: U8
    """uint8[G, m]: where its place stands in the number."""
    slides: Records
    """SLIDE[G * C * S * m]: what becomes of each sum when a step from a context moves the piece with this value."""
    group: U8
    """uint8[L]: to which sum a look belongs."""
    longest: Number
    """How many pieces a look follows at most."""
    sizes: U16
    """uint16[L]: how many pieces it follows."""
    is_dense: U8
    """uint8[L]: whether its table has no entries for places that two pieces share."""
    offsets: I64
    """int64[L]."""
    entries: U8
    goal_values: U8
    """uint8[n]: all values, to see whether one is missing."""


def can_slide(pieces: Pieces, sums: Sequence[Sequence[Look[Any]]]) -> bool:
    """Whether `sliding_looks`, or `network_looks`, can be made of them."""
    every = [look.table.pattern for group in sums for look in group]
    fits = all(one.is_additive and place_bits(one) * len(one.followed) <= PLACE_BITS for one in every)
    alike = all(look.symmetry is group[0].symmetry for group in sums for look in group)
    fits &= len(every) < int(NO_LOOK)  # numbers of looks are bytes
    return fits and alike and forward_plan(pieces.table).slides and pieces.table.cells == len(pieces)


def sliding_looks(pieces: Pieces, sums: Sequence[Sequence[Look[PatternTable]]]) -> SlidingLooks:
    """For puzzles where `can_slide`."""
    table = pieces.table
    looks = [look for group in sums for look in group]
    bits = place_bits(looks[0].table.pattern)
    place = np.zeros((len(sums), table.cells), dtype=np.uint8)
    which = np.full((len(sums), table.values), NO_LOOK, dtype=np.uint8)
    shift = np.zeros((len(sums), table.values), dtype=np.uint8)
    group_of: list[int] = []
    for g, group in enumerate(sums):
        for look in group:
            place[g] = pieces.place[look.slots[0]]
            for i, piece in enumerate(look.asked.tolist()):
                value = table.goals[0, pieces.cells[piece][0]]
                which[g, value], shift[g, value] = len(group_of), bits * i
            group_of.append(g)
    tables = list({id(look.table): look.table for look in looks}.values())
    entries, starts = joined(tables, bits)
    offset_of = {id(table): start for table, start in zip(tables, starts.tolist(), strict=True)}
    return SlidingLooks(
        table.values,
        bits,
        frozen(place),
        frozen(which),
        frozen(shift),
        _slides(table, place, which, shift),
        frozen(np.array(group_of, dtype=np.uint8)),
        max(len(look.asked) for look in looks),
        frozen(np.array([len(look.asked) for look in looks], dtype=np.uint16)),
        frozen(np.array([not is_sparse(look.table.pattern) for look in looks], dtype=np.uint8)),
        frozen(np.array([offset_of[id(look.table)] for look in looks], dtype=np.int64)),
        entries,
        frozen(np.unique(table.goals[0])),
    )


def _slides(table: MoveTable, place: U8, which: U8, shift: U8) -> Records:
    """Of every step from every context, with every value that it may move."""
    plan = forward_plan(table)
    contexts, steps = plan.legal.shape
    result = np.zeros((len(place), contexts, steps, table.values), dtype=SLIDE)
    for g, c, s, value in np.ndindex(*result.shape):
        by = int(place[g, c]) - int(place[g, plan.landing[c, s]]) << int(shift[g, value])
        result[g, c, s, value] = by % 2**PLACE_BITS, which[g, value]
    return frozen(result.ravel())


def joined(tables: Sequence[PatternTable], bits: int = 0, as_packed: bool = False) -> tuple[U8, I64]:
    """All of them in one piece of memory, and where each begins; a table that looks the same there has its entries there from
    now on. bits: of a place; tables that are to be sparse are written out by them. as_packed: two entries to a byte."""

    def width(table: PatternTable) -> int:
        if bits and is_sparse(table.pattern):
            return 1 << (bits * len(table.pattern.followed))
        return len(table.entries) if as_packed else int(table.pattern.folded.size)

    starts = np.cumsum([0, *map(width, tables)]).astype(np.int64)
    entries = np.empty(starts[-1], dtype=np.uint8)
    for table, start, end in zip(tables, starts, starts[1:], strict=False):
        part, how = entries[start:end], table.pattern.folded
        if bits and is_sparse(table.pattern):
            part[:] = UNREACHED
            spread_out(how, table.unpacked(), bits, part, np.zeros(len(how.kind), dtype=np.int64))
        else:
            part[:] = table.entries if as_packed else table.unpacked()
            if table.is_packed == as_packed:
                table.lie_in(part)
    return sealed(entries), starts[:-1]


@compiled_loop
def spread_out(how: Ranking, entries: U8, bits: Number, result: U8, slots: I64) -> None:
    """Write every entry to where its places are: to the number that these are, the first in the lowest bits."""
    for number in range(entries.shape[0]):
        unrank_places(how, number, slots)
        code = np.int64(0)
        for i in range(slots.shape[0]):
            code |= np.int64(how.place[slots[i]]) << (bits * i)
        result[code] = entries[number]


@implements(kept_size, SlidingLooks)
def _sliding_size(guide: SlidingLooks) -> Number:
    return 2 * guide.group.shape[0] + guide.place.shape[0]


@inner
def number_of(guide: SlidingLooks, look: Number, code: Number) -> Number:
    """Where the tables have what they say of these places.

    All looks take as many turns, since a loop that ends now sooner, now later costs more than the turns that it saves.
    """
    number = np.uint64(guide.offsets[look])
    if not guide.is_dense[look]:
        return number + code
    places, occupied, digits, bits = np.uint64(guide.place.shape[1]), NONE, NONE, np.uint64(guide.bits)
    mask, size = (ONE << bits) - ONE, np.uint64(guide.sizes[look])
    for turn in range(guide.longest):
        k = np.uint64(turn)
        place = (code >> (k * bits)) & mask
        bit = ONE << place
        free = place - ones(occupied & (bit - ONE))
        digits = digits * (places - k if k < size else ONE) + (free if k < size else NONE)
        occupied |= bit
    return number + digits


@inner
def _near_entry(guide: SlidingLooks, look: Number, code: Number) -> Number:
    """What a table that is not dense says of these places."""
    return np.int64(guide.entries[np.uint64(guide.offsets[look]) + code])


@implements(make_kept, SlidingLooks)
def _places_kept(guide: SlidingLooks, states: States, row: Number, kept: I32, at: Number) -> None:
    looks, groups, found = guide.group.shape[0], guide.place.shape[0], 0
    for k in range(2 * looks + groups):
        kept[at, k] = 0
    for value in guide.goal_values:
        for i in range(guide.place.shape[1]):
            if states[row, i] == value:
                found += 1
                for g in range(groups):
                    look = guide.look[g, value]
                    if look < NO_LOOK:
                        kept[at, look] += np.int64(guide.place[g, i]) << np.int64(guide.shift[g, value])
                break
    for look in range(looks):
        if found == guide.goal_values.shape[0]:
            number = number_of(guide, np.uint64(look), np.uint64(kept[at, look]) & ALL_PLACES)
            kept[at, looks + look] = guide.entries[number]
            kept[at, 2 * looks + guide.group[look]] += kept[at, looks + look]
    if found < guide.goal_values.shape[0]:
        kept[at, 2 * looks] = UNKNOWN


@inner
def slide_at(guide: SlidingLooks, plan: Plan, g: Number, context: Number, step: Number, value: Number) -> Number:
    """Where `slides` has this one."""
    moves = np.uint64(plan.legal.shape[0]) * np.uint64(plan.legal.shape[1])
    move = np.uint64(g) * moves + np.uint64(context) * np.uint64(plan.legal.shape[1]) + np.uint64(step)
    return move * np.uint64(guide.values) + value


@implements(update_kept, SlidingLooks)
def _update_places(
    guide: SlidingLooks,
    plan: Plan,
    context: Number,
    step: Number,
    states: States,
    row: Number,
    kept: I32,
    at: Number,
    to: Number,
) -> None:
    looks, groups = np.uint64(guide.group.shape[0]), guide.place.shape[0]
    value = np.uint64(states[row, np.uint64(plan.landing[context, step])])
    for k in range(2 * guide.group.shape[0] + groups):
        kept[to, k] = kept[at, k]
    for g in range(groups):
        slide = guide.slides[slide_at(guide, plan, g, context, step, value)]
        look = np.uint64(slide.look)
        if look == NO_LOOK:
            continue
        code = (np.uint64(kept[at, look]) + np.uint64(slide.by)) & ALL_PLACES
        entry = _near_entry(guide, look, code)
        kept[to, look], kept[to, looks + look] = np.int64(code), entry
        kept[to, looks + looks + np.uint64(g)] += entry - np.int64(kept[at, looks + look])


@implements(value_of, SlidingLooks)
def _largest_sliding_sum(guide: SlidingLooks, states: States, row: Number, kept: I32, at: Number) -> Number:
    looks, largest = guide.group.shape[0], np.int64(0)
    if kept[at, 2 * looks] == UNKNOWN:
        return np.float32(np.nan)
    for g in range(guide.place.shape[0]):
        largest = max(largest, np.int64(kept[at, 2 * looks + g]))
    return np.float32(largest)


@implements(value_after, SlidingLooks)
def _value_after_slide(
    guide: SlidingLooks,
    plan: Plan,
    context: Number,
    step: Number,
    states: States,
    row: Number,
    kept: I32,
    at: Number,
    enough: Number,
) -> Number:
    looks, largest = np.uint64(guide.group.shape[0]), np.int64(0)
    value = np.uint64(states[row, np.uint64(plan.landing[context, step])])
    for g in range(guide.place.shape[0]):
        slide = guide.slides[slide_at(guide, plan, g, context, step, value)]
        look = np.uint64(slide.look)
        total = np.int64(kept[at, looks + looks + np.uint64(g)])
        if look != NO_LOOK:
            code = (np.uint64(kept[at, look]) + np.uint64(slide.by)) & ALL_PLACES
            total += _near_entry(guide, look, code) - np.int64(kept[at, looks + look])
        if total > enough:
            return total
        largest = max(largest, total)
    return largest
