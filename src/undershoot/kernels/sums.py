"""Sums of costs by cell and value, and by neighbouring values: the analytic heuristics, as a guide.

It keeps the sum. One step changes it by what the changed cells cost before and after.
"""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, Number, States, read_only
from undershoot.kernels.compiler import inner
from undershoot.kernels.guides import implements, kept_size, make_kept, update_kept, value_after, value_of
from undershoot.kernels.plan import Plan
from undershoot.kernels.steps import play_step
from undershoot.puzzles.base_heuristics import BaseHeuristic

NO_PAIRS = read_only(np.zeros((0, 0), dtype=np.int32))


class Sums(NamedTuple):
    """See `BaseHeuristic`."""

    cell_cost: I32
    """int32[n, m]."""
    pair_cost: I32
    """int32[m, m], or int32[0, 0] for none."""
    divisor: Number


def sums(formula: BaseHeuristic) -> Sums:
    """A formula, for compiled code."""
    return Sums(formula.cell_cost, NO_PAIRS if formula.pair_cost is None else formula.pair_cost, formula.divisor)


@inner
def sum_of(formula: Sums, states: States, row: Number) -> Number:
    """int64: the sum for states[row], uint8[R, n or more]."""
    total = np.int64(0)
    for i in range(formula.cell_cost.shape[0]):
        total += formula.cell_cost[i, states[row, i]]
        if i > 0 and formula.pair_cost.shape[0] > 0:
            total += formula.pair_cost[states[row, i - 1], states[row, i]]
    return total


@inner
def shared_out(formula: Sums, total: Number) -> Number:
    """float32: the value that follows from a sum."""
    # Most divisors are 1, and division is slow.
    return np.float32(total if formula.divisor == 1 else -(-total // formula.divisor))


@implements(kept_size, Sums)
def _one_number(guide: Sums) -> Number:
    return 1


@implements(make_kept, Sums)
def _make_sum(guide: Sums, states: States, row: Number, kept: I32) -> None:
    kept[row, 0] = sum_of(guide, states, row)


@implements(update_kept, Sums)
def _update_sum(
    guide: Sums, plan: Plan, context: Number, step: Number, states: States, before: Number, after: Number, kept: I32
) -> None:
    if guide.pair_cost.shape[0] > 0:
        kept[after, 0] = sum_of(guide, states, after)
        return
    total = np.int64(kept[before, 0])
    for k in range(plan.changes[context, step]):
        cell = plan.cell[context, step, k]
        total += guide.cell_cost[cell, states[after, cell]] - guide.cell_cost[cell, states[before, cell]]
    kept[after, 0] = total


@implements(value_of, Sums)
def _value_of_sum(guide: Sums, states: States, row: Number, kept: I32) -> Number:
    return shared_out(guide, np.int64(kept[row, 0]))


@implements(value_after, Sums)
def _sum_after(
    guide: Sums, plan: Plan, context: Number, step: Number, states: States, row: Number, kept: I32, enough: Number
) -> Number:
    if guide.pair_cost.shape[0] > 0:
        play_step(plan, context, step, states, row, row + 1)
        return shared_out(guide, sum_of(guide, states, row + 1))
    total = np.int64(kept[row, 0])
    for k in range(plan.changes[context, step]):
        cell = plan.cell[context, step, k]
        value = np.int64(states[row, plan.origin[context, step, k]]) + np.int64(plan.shift[context, step, k])
        if value >= plan.modulus[cell]:
            value -= np.int64(plan.modulus[cell])
        total += guide.cell_cost[cell, value] - guide.cell_cost[cell, states[row, cell]]
    return shared_out(guide, total)
