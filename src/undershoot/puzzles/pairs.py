"""What two steps in a row come to: which of them need not be tried."""

from enum import IntEnum
from functools import cached_property

import numpy as np

from undershoot.arrays import I32, I64, U8, U64, Bools
from undershoot.puzzles.moves import MoveTable, Steps

SEED = 41
AT_ONCE = 1 << 20
"""Cells of pairs that are looked at together."""


class Pair(IntEnum):
    """What two steps in a row come to."""

    NEW = 0
    UNDONE = 1
    """Nothing: the second undoes the first."""
    ONE_STEP = 2
    """What one step does as cheaply: two turns of one face of a cube."""
    EXCHANGED = 3
    """What the same two actions do in the other order; marked is the order that has the smaller action second."""


def classify_pairs(table: MoveTable, steps: Steps) -> U8:
    """uint8[C, S, S] of `Pair`: step y after step x from context c; NEW also for illegal ones."""
    width, cells = steps.source.shape[1:]
    result = np.full((*steps.legal.shape, width), Pair.NEW, dtype=np.uint8)
    contexts, first = np.nonzero(steps.legal)
    kinds, rows = Pairs(table, steps), max(1, AT_ONCE // (width * cells))
    for begin in range(0, len(first), rows):
        c, x = contexts[begin : begin + rows], first[begin : begin + rows]
        result[c, x] = kinds.after(c, x)
    return result


class Pairs:
    """What pairs of steps come to, as far as one asks."""

    def __init__(self, table: MoveTable, steps: Steps) -> None:
        self.table, self.steps = table, steps
        random = np.random.default_rng(SEED)
        self.factors: U64 = random.integers(2**64, size=(2, table.cells), dtype=np.uint64)
        self.of_context: U64 = random.integers(2**64, size=len(steps.legal), dtype=np.uint64)

    @cached_property
    def singles(self) -> tuple[U64, I64]:
        """The hashes of all legal steps from all contexts, in order, and the steps."""
        contexts, single = np.nonzero(self.steps.legal)
        found = self._hashes(contexts, self.steps.source[contexts, single], self.steps.shift[contexts, single])
        order = np.argsort(found, kind="stable")
        return found[order], single[order]

    @cached_property
    def step_of(self) -> I64:
        """int64[C, A]: the legal step that plays an action; -1 for none."""
        result = np.full((len(self.steps.legal), self.table.actions), -1, dtype=np.int64)
        contexts, step = np.nonzero(self.steps.legal)
        result[contexts, self.steps.action[contexts, step]] = step
        return result

    def after(self, contexts: I64, steps: I64) -> U8:
        """uint8[K, S] of `Pair`: each step after these legal ones from these contexts, int64[K]."""
        result = np.full((len(steps), self.steps.legal.shape[1]), Pair.NEW, dtype=np.uint8)
        row, y = np.nonzero(self.steps.legal[self.steps.landing[contexts, steps]])
        result[row, y] = self._kinds(contexts[row], steps[row], y)
        return result

    def _kinds(self, c: I64, x: I64, y: I64) -> U8:
        steps, source, shift = self.steps, *self._composed(c, x, y)
        then = steps.landing[c, x]
        result = np.full(len(y), Pair.NEW, dtype=np.uint8)
        result[self._is_exchanged(c, steps.action[c, x], steps.action[then, y], source, shift)] = Pair.EXCHANGED
        result[self._is_one_step(c, source, shift, steps.cost[c, x] + steps.cost[then, y])] = Pair.ONE_STEP
        result[(source == np.arange(self.table.cells)).all(1) & ~shift.any(1)] = Pair.UNDONE
        return result

    def _composed(self, c: I64, x: I64, y: I64) -> tuple[U8, U8]:
        """uint8[K, n] each: the cells that contents come from by x and then y, and what is added to them."""
        steps = self.steps
        then = steps.landing[c, x]
        order = steps.source[then, y]
        shift = np.take_along_axis(steps.shift[c, x], order, 1).astype(np.uint16) + steps.shift[then, y]
        return np.take_along_axis(steps.source[c, x], order, 1), (shift % self.table.modulus).astype(np.uint8)

    def _hashes(self, c: I64, source: U8, shift: U8) -> U64:
        hashes = source.astype(np.uint64) @ self.factors[0] + shift.astype(np.uint64) @ self.factors[1]
        return np.asarray(hashes + self.of_context[c])

    def _is_one_step(self, c: I64, source: U8, shift: U8, cost: I32) -> Bools:
        """Whether a single step does the same, as cheaply."""
        hashes, numbers = self.singles
        single = numbers[np.minimum(np.searchsorted(hashes, self._hashes(c, source, shift)), len(hashes) - 1)]
        is_same = (self.steps.source[c, single] == source).all(1) & (self.steps.shift[c, single] == shift).all(1)
        return np.asarray(is_same & self.steps.legal[c, single] & (self.steps.cost[c, single] <= cost))

    def _is_exchanged(self, c: I64, first: I32, second: I32, source: U8, shift: U8) -> Bools:
        """Whether the second action can come first, does the same then, and has the smaller number."""
        x = self.step_of[c, second]
        y = self.step_of[self.steps.landing[c, x], first]
        result = (second < first) & (x >= 0) & (y >= 0)
        there = np.flatnonzero(result)
        other_source, other_shift = self._composed(c[there], x[there], y[there])
        result[there] = (other_source == source[there]).all(1) & (other_shift == shift[there]).all(1)
        return np.asarray(result)
