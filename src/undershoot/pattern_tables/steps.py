"""Steps between the arrangements of a pattern, compiled."""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U8, Bools, Number, frozen
from undershoot.kernels.compiler import inner
from undershoot.pattern_tables.pattern import Pattern


class SlotSteps(NamedTuple):
    """All steps forwards, or all backwards."""

    after: U8
    """uint8[C, S, n]: where a step from this context sends a slot."""
    legal: Bools
    """bool[C, S]."""
    cost: I32
    """int32[C, S]."""
    has_cursor: Number
    is_additive: Number


def steps_of(pattern: Pattern, backward: bool) -> SlotSteps:
    """The steps of the puzzle, as they act on slots."""
    table = pattern.pieces.table
    steps = table.backward if backward else table.forward
    after = np.zeros_like(steps.source)
    for c, s in np.argwhere(steps.legal):
        after[c, s] = np.argsort(steps.source[c, s])
    return SlotSteps(frozen(after), steps.legal, steps.cost, pattern.has_cursor, pattern.is_additive)


@inner
def move(steps: SlotSteps, context: Number, step: Number, count: Number, slots: I64, moved: I64) -> Number:
    """Write where the first `count` slots go to `moved`; returns what the step costs the pattern."""
    is_touched = False
    for i in range(count):
        moved[i] = steps.after[context, step, slots[i]]
        # The cursor comes last. It is not followed, so its moves are free.
        is_touched |= (moved[i] != slots[i]) & (i < count - steps.has_cursor)
    if steps.is_additive and not is_touched:
        return np.int64(0)
    return np.int64(steps.cost[context, step])


@inner
def context_of(steps: SlotSteps, slots: I64, count: Number) -> Number:
    """The context of an arrangement."""
    return slots[count - 1] if steps.has_cursor else np.int64(0)
