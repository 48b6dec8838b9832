"""Sliding tiles with tables so large that the memory is waited for: it is asked for the entries of all children at once."""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U16, Number, States
from undershoot.heuristics.sliding_looks import ALL_PLACES, NO_LOOK, NONE, ONE, SlidingLooks, number_of, slide_at
from undershoot.kernels.compiler import inner
from undershoot.kernels.guides import implements, kept_size, make_kept, update_kept, value_of, values_after
from undershoot.kernels.plan import Plan
from undershoot.kernels.prefetch import prefetch

UNKNOWN = -1
ASKED = np.uint64(2)
"""Of so many sums the entries of all children are asked for before the first is read."""


class FarLooks(NamedTuple):
    """Keeps what `SlidingLooks` keep, and for each step and sum the entry that changes, once that was looked up."""

    near: SlidingLooks
    steps: Number
    """How many there are, legal or not."""


@implements(kept_size, FarLooks)
def _size(guide: FarLooks) -> Number:
    return kept_size(guide.near) + guide.steps * guide.near.place.shape[0]


@implements(make_kept, FarLooks)
def _make(guide: FarLooks, states: States, row: Number, kept: I32, at: Number) -> None:
    make_kept(guide.near, states, row, kept, at)
    _forget_entries(guide, kept, at)


@implements(value_of, FarLooks)
def _value(guide: FarLooks, states: States, row: Number, kept: I32, at: Number) -> Number:
    return value_of(guide.near, states, row, kept, at)


@inner
def _entry_at(guide: FarLooks, g: Number, step: Number) -> Number:
    """Where the entry that a step changes in a sum is kept."""
    groups = np.uint64(guide.near.place.shape[0])
    return np.uint64(2) * np.uint64(guide.near.group.shape[0]) + (ONE + np.uint64(step)) * groups + np.uint64(g)


@inner
def _forget_entries(guide: FarLooks, kept: I32, at: Number) -> None:
    first = _entry_at(guide, 0, 0)
    for k in range(guide.steps * guide.near.place.shape[0]):
        kept[at, first + np.uint64(k)] = UNKNOWN


@inner
def _number_after(near: SlidingLooks, look: Number, by: Number, kept: I32, at: Number) -> Number:
    """Where the entry is that a look sees after a slide."""
    if look == NO_LOOK:
        return NONE
    return number_of(near, look, (np.uint64(kept[at, look]) + by) & ALL_PLACES)


@implements(update_kept, FarLooks)
def _update(
    guide: FarLooks,
    plan: Plan,
    context: Number,
    step: Number,
    states: States,
    row: Number,
    kept: I32,
    at: Number,
    to: Number,
) -> None:
    near, looks, groups = guide.near, np.uint64(guide.near.group.shape[0]), guide.near.place.shape[0]
    value = np.uint64(states[row, np.uint64(plan.landing[context, step])])
    for k in range(2 * near.group.shape[0] + groups):
        kept[to, k] = kept[at, k]
    _forget_entries(guide, kept, to)
    for g in range(groups):
        slide = near.slides[slide_at(near, plan, g, context, step, value)]
        look, by = np.uint64(slide.look), np.uint64(slide.by)
        if look == NO_LOOK:
            continue
        entry = np.int64(kept[at, _entry_at(guide, g, step)])
        if entry == UNKNOWN:
            entry = np.int64(near.entries[_number_after(near, look, by, kept, at)])
        kept[to, look], kept[to, looks + look] = np.int64((np.uint64(kept[at, look]) + by) & ALL_PLACES), entry
        kept[to, looks + looks + np.uint64(g)] += entry - np.int64(kept[at, looks + look])


@implements(values_after, FarLooks)
def _largest_sums_after(
    guide: FarLooks,
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
    near, looks, groups = guide.near, np.uint64(guide.near.group.shape[0]), np.uint64(guide.near.place.shape[0])
    for k in range(count):
        step = np.uint64(steps[first + k])
        value = np.uint64(states[row, np.uint64(plan.landing[context, step])])
        for g in range(min(groups, ASKED)):
            slide = near.slides[slide_at(near, plan, g, context, step, value)]
            number = _number_after(near, np.uint64(slide.look), np.uint64(slide.by), kept, at)
            prefetch(near.entries, number)
            values[ONE + g, k] = number
    for k in range(count):
        step = np.uint64(steps[first + k])
        value = np.uint64(states[row, np.uint64(plan.landing[context, step])])
        enough, largest = room - np.int64(plan.cost[context, step]), np.int64(0)
        for g in range(groups):
            slide = near.slides[slide_at(near, plan, g, context, step, value)]
            look, by, total = np.uint64(slide.look), np.uint64(slide.by), np.int64(kept[at, looks + looks + g])
            if look != NO_LOOK:
                number = np.uint64(values[ONE + g, k]) if g < ASKED else _number_after(near, look, by, kept, at)
                entry = np.int64(near.entries[number])
                kept[at, _entry_at(guide, g, step)] = entry
                total += entry - np.int64(kept[at, looks + look])
            largest = max(largest, total)
            if total > enough:
                break
        values[0, k] = largest
