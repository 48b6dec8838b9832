"""Pattern tables by breadth-first search from the goals backwards, over an array with one byte for every arrangement.

Level by level the array is read through: what costs exactly d is expanded. Where few arrangements are left, these look for one
of cost d among those they lead to instead. Writing is safe for several threads: within a level all write the same number.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from undershoot.arrays import I64, U8, U64, Number
from undershoot.kernels.compiler import compiled_loop
from undershoot.pattern_tables.pattern import MOST, UNREACHED, Pattern
from undershoot.pattern_tables.ranking import Ranking, rank, rank_of, turn_pieces, unrank_places
from undershoot.pattern_tables.regions import cursor_steps, push_regions, write_goals
from undershoot.pattern_tables.room import check_memory
from undershoot.pattern_tables.steps import SlotSteps, context_of, move, steps_of

CHUNK = 1 << 20
"""Entries that a thread takes at once, about; between them the process can be interrupted."""


@compiled_loop
def push(how: Ranking, steps: SlotSteps, entries: U8, first: Number, last: Number, level: Number, work: I64) -> Number:
    """Expand what costs `level` in blocks first..last; returns how many entries were written."""
    count, written = how.kind.shape[0], np.int64(0)
    base, slots, moved = work[0], work[1], work[2]
    for block in range(first, last):
        is_open = False
        for turned in range(how.block):
            if entries[block * how.block + turned] != level:
                continue
            if not is_open:
                unrank_places(how, block, base)
                is_open = True
            turn_pieces(how, turned, base, slots)
            context = context_of(steps, slots, count)
            for step in range(steps.legal.shape[1]):
                if not steps.legal[context, step]:
                    continue
                cost = level + move(steps, context, step, count, slots, moved)
                if cost == level:
                    continue  # none of the followed pieces moved, and there is no cursor
                number = rank(how, moved)
                if entries[number] > cost:  # never if it is above MOST; verification finds what is then missing
                    entries[number] = cost
                    written += 1
    return written


@compiled_loop
def pull(how: Ranking, steps: SlotSteps, entries: U8, first: Number, last: Number, level: Number, work: I64) -> Number:
    """In blocks first..last, what is not reached and leads to something of cost `level` costs one more. Returns how many."""
    count, found = how.kind.shape[0], np.int64(0)
    base, slots, moved = work[0], work[1], work[2]
    for block in range(first, last):
        is_open = False
        for turned in range(how.block):
            if entries[block * how.block + turned] != UNREACHED:
                continue
            if not is_open:
                unrank_places(how, block, base)
                is_open = True
            turn_pieces(how, turned, base, slots)
            context = context_of(steps, slots, count)
            for step in range(steps.legal.shape[1]):
                if not steps.legal[context, step]:
                    continue
                move(steps, context, step, count, slots, moved)
                if entries[rank(how, moved)] == level:
                    entries[block * how.block + turned] = level + 1
                    found += 1
                    break
    return found


def make_entries(pattern: Pattern, threads: int | None = None, progress: Callable[[int, int], None] | None = None) -> U8:
    """uint8[size]: what every arrangement costs, with the cursor's places where there is a cursor; 255 if it has no solution.

    threads: by default as many as there are cores. progress: called with (arrangements reached, all of them).
    """
    how = pattern.ranking
    check_memory([pattern])
    words = np.full((int(how.size) + 7) // 8, 2**64 - 1, dtype=np.uint64)
    levels = _Levels(pattern, words, threads or os.cpu_count() or 1)
    with levels.pool:
        level, furthest, reached = 0, 0, len(pattern.goals)
        newest = reached
        while level <= min(furthest, MOST):
            newest = levels.expand(level, newest, int(how.size) - reached)
            reached = min(reached + newest, int(how.size))
            if newest:
                furthest = level + levels.dearest
            if progress is not None:
                progress(reached, int(how.size))
            level += 1
    return levels.entries


class _Levels:
    """The array while it is filled."""

    def __init__(self, pattern: Pattern, words: U64, threads: int) -> None:
        self.how, self.words = pattern.ranking, words
        self.entries: U8 = words.view(np.uint8)[: int(self.how.size)]
        table = pattern.pieces.table
        costs = np.unique(table.backward.cost[table.backward.legal])
        self.dearest = int(costs[-1])
        # Two threads that write different numbers to one entry could keep the wrong one.
        self.pool = ThreadPoolExecutor(threads if len(costs) == 1 else 1)
        self.has_regions = pattern.has_regions
        self.can_pull = self.dearest == 1 and not pattern.is_additive
        if self.has_regions:
            self.folded, self.cursor_steps = pattern.folded, cursor_steps(pattern, backward=True)
            write_goals(self.folded, self.cursor_steps, self.entries, pattern.goals.astype(np.int64))
        else:
            self.backward, self.forward = steps_of(pattern, backward=True), steps_of(pattern, backward=False)
            for goal in pattern.goals:
                self.entries[rank_of(self.how, goal.astype(np.int64))] = 0

    def expand(self, level: int, newest: int, left: int) -> int:
        """Go on from what costs `level`, about `newest` of them; `left` are not reached. Returns how many were, about."""
        if self.has_regions:
            most, free = int(self.folded.size), int(self.how.choices[-1])
            return self._run(
                most, CHUNK // free, push_regions, self.folded, self.cursor_steps, self.entries, self.words, level=level
            )
        kernel, steps = (pull, self.forward) if self.can_pull and left < newest else (push, self.backward)
        block = int(self.how.block)
        return self._run(
            int(self.how.size) // block, max(1, CHUNK // block), kernel, self.how, steps, self.entries, level=level
        )

    def _run(self, size: int, step: int, kernel: Callable[..., int], *arguments: Any, level: int) -> int:
        def one(first: int) -> int:
            work = np.zeros((3, len(self.how.kind)), dtype=np.int64)
            return kernel(*arguments, first, min(first + step, size), level, work)

        return sum(self.pool.map(one, range(0, size, step)))
