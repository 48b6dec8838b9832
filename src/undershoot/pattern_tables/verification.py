"""Verifying pattern tables: not believed but checked, before the cursor is folded away.

An entry must be 0 for the image of a goal, and otherwise the least over all moves that cost the pattern something of that cost
and the entry they lead to. Costs are positive, so only the true costs do that. (Entries that moves of the cursor alone connect
would justify each other: a table cut off at a constant would pass. So these are checked as one; see `regions`.)
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from undershoot.arrays import I64, U8, Number
from undershoot.errors import NotAvailable, UndershootError
from undershoot.kernels.compiler import compiled_loop
from undershoot.pattern_tables.pattern import MOST, TOO_DEAR, UNREACHED, Pattern
from undershoot.pattern_tables.ranking import Ranking, rank, rank_of, turn_pieces, unrank_places
from undershoot.pattern_tables.regions import NO_COST, check_regions, cursor_steps
from undershoot.pattern_tables.steps import SlotSteps, context_of, move, steps_of

CHUNK = 1 << 20


class WrongPatternTable(UndershootError):
    """A table of costs that are not the costs of its pattern."""


def verify_entries(
    pattern: Pattern, entries: U8, threads: int | None = None, progress: Callable[[int, int], None] | None = None
) -> None:
    """WrongPatternTable unless every entry is the true cost of its arrangement.

    entries: uint8[size], with the cursor's places where there is one; 255 for what has no solution. progress: called with
    (entries checked, all of them).
    """
    how = pattern.ranking
    if entries.shape != (how.size,) or entries.dtype != np.uint8:
        raise WrongPatternTable(f"the table has shape {entries.shape}; the pattern has {how.size:,} arrangements")
    goals = np.array([rank_of(how, goal.astype(np.int64)) for goal in pattern.goals], dtype=np.int64)
    block = int(how.choices[-1]) if pattern.has_regions else int(how.block)
    size, step = int(how.size) // block, max(1, CHUNK // block)
    arguments: Any = (how, steps_of(pattern, backward=False))
    if pattern.has_regions:
        arguments = (pattern.folded, cursor_steps(pattern, backward=False))

    def check(first: int) -> int:
        work, last = np.zeros((3, len(how.kind)), dtype=np.int64), min(first + step, size)
        kernel: Any = check_regions if pattern.has_regions else check_entries
        return int(kernel(*arguments, entries, goals, first, last, work))

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        for number, wrong in enumerate(pool.map(check, range(0, size, step))):
            if wrong < -1:
                raise NotAvailable(TOO_DEAR)
            if wrong >= 0:
                raise WrongPatternTable(f"entry {wrong:,} of the table is {entries[wrong]}, which does not follow from others")
            if progress is not None:
                progress(min((number + 1) * step, size) * block, int(how.size))


@compiled_loop
def check_entries(how: Ranking, steps: SlotSteps, entries: U8, goals: I64, first: Number, last: Number, work: I64) -> Number:
    """The first entry in blocks first..last that is not what it must be; -1 if there is none, less if one does not fit.

    steps: forwards.
    """
    count, base, slots, moved = how.kind.shape[0], work[0], work[1], work[2]
    for block in range(first, last):
        unrank_places(how, block, base)
        for turned in range(how.block):
            entry = block * how.block + turned
            turn_pieces(how, turned, base, slots)
            context, due = context_of(steps, slots, count), np.int64(NO_COST)
            for step in range(steps.legal.shape[1]):
                if not steps.legal[context, step]:
                    continue
                cost = move(steps, context, step, count, slots, moved)
                if cost > 0:
                    there = np.int64(entries[rank(how, moved)])
                    due = min(due, there + cost) if there < UNREACHED else due
            for g in range(goals.shape[0]):
                due = np.int64(0) if goals[g] == entry else due
            if NO_COST > due > MOST:
                return np.int64(-2 - entry)
            if entries[entry] != (np.int64(UNREACHED) if due == NO_COST else due):
                return np.int64(entry)
    return np.int64(-1)
