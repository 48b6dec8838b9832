"""Solutions in two stages, ever shorter: the first stage in all ways of growing cost, the second as cheaply as it can.

It finds solutions, and proves nothing.
"""

import time
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from undershoot.arrays import I32, U8, frozen
from undershoot.kernels.plan import forward_plan
from undershoot.search.depth_first import tree_moves
from undershoot.search.known import NO_COST, Known
from undershoot.search.staged_walks import (
    DEPTH,
    EXHAUSTED,
    EXPANDED,
    FOUND,
    LENGTH,
    MADE,
    SEARCHING,
    STATUS,
    Two,
    Walk,
    make_walk,
    plant,
    walk_on,
)
from undershoot.search.stages import Stages

FIRST_SLICE, SECONDS_A_SLICE = 5_000, 0.002
MOST_IN_SECOND = 5_000
"""Nodes that one end of the first stage may have in the second: others may be shorter."""


@lru_cache(maxsize=8)
def _two(stages: Stages) -> Two:
    """For the compiled loop."""
    plan = forward_plan(stages.table)
    labelled = plan._replace(modulus=frozen(np.full(stages.table.cells, 256, dtype=np.uint16)))
    is_fewer = np.zeros(stages.table.actions, dtype=np.bool_)
    is_fewer[list(stages.fewer)] = True
    return Two(labelled, tree_moves(stages.table), stages.first, stages.second, frozen(is_fewer))


class Aspect:
    """One way to look at the start: through a symmetry, and as it is or inverted."""

    def __init__(self, stages: Stages, labels: U8, number: int, is_inverse: bool) -> None:
        self.table, self.is_inverse = stages.table, is_inverse
        cells, self.back = stages.aspects[number]
        seen = np.argsort(cells)[labels[cells]]
        self.walk = make_walk(_two(stages), (np.argsort(seen) if is_inverse else seen).astype(np.uint8))

    def solution(self) -> I32:
        """What was found, as actions from the start itself."""
        walk = self.walk
        first, second = walk.first.steps[: walk.progress[DEPTH]], walk.second.steps[: walk.progress[LENGTH]]
        actions = np.concatenate([first, second])
        if self.is_inverse:
            actions = self.table.inverse[0][actions[::-1]]
        return np.asarray(self.back[actions], dtype=np.int32)


class Staged:
    """From one start."""

    def __init__(self, known: Known, stages: Stages, with_inverse: bool = True) -> None:
        """with_inverse: look also at the start turned about, which the same moves solve in the other direction."""
        self.known, self.two = known, _two(stages)
        labels = stages.labels_of(known.start)
        both = (False, True) if with_inverse else (False,)
        ways = [(number, inverse) for inverse in both for number in range(len(stages.aspects))]
        self.aspects = [Aspect(stages, labels, *way) for way in ways]
        self.slice_size = FIRST_SLICE

    def compile(self) -> None:
        """Compile everything, or fetch it from the cache, so that no limit is charged for it."""
        walk = self.aspects[0].walk
        walk_on(walk, self.two, plant(walk, self.two), -1, 0, 0)

    def slices(self) -> Iterator[None]:
        """Search; control comes back after each slice. It ends when the first stage alone would cost too much."""
        bound = min((int(plant(aspect.walk, self.two)) for aspect in self.aspects), default=0)
        while 0 <= bound <= min(self.known.most_useful_cost, NO_COST // 2):
            yield from self._exhaust([aspect for aspect in self.aspects if plant(aspect.walk, self.two) <= bound], bound)
            bound += 1

    def _exhaust(self, aspects: list[Aspect], bound: int) -> Iterator[None]:
        """All first stages of this cost, of all aspects in turns."""
        while aspects and bound <= self.known.most_useful_cost and not self.known.is_over:
            for aspect in list(aspects):
                status = self._go_on(aspect.walk, bound)
                if status == FOUND:
                    self.known.offer(aspect.solution())
                elif status == EXHAUSTED:
                    aspects.remove(aspect)
                yield

    def _go_on(self, walk: Walk, bound: int) -> int:
        """For one slice."""
        before, began = walk.progress.copy(), time.perf_counter()
        most = self.known.reserve(self.slice_size)
        walk_on(walk, self.two, bound, self.known.most_useful_cost, most, MOST_IN_SECOND)
        expanded, made = (walk.progress - before)[[EXPANDED, MADE]].tolist()
        self.known.count(expanded=expanded - most, generated=made, evaluated=made)
        seconds = max(1e-6, time.perf_counter() - began)
        if walk.progress[STATUS] == SEARCHING:
            self.slice_size = max(100, min(int(most * SECONDS_A_SLICE / seconds), 4 * most))
        return int(walk.progress[STATUS])
