"""Sums of costs by cell and value, and by neighbouring values: the analytic heuristics, as a guide.

It keeps the sum. One step changes it by what the changed cells cost before and after.
"""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, Number, States, frozen
from undershoot.kernels.compiler import inner
from undershoot.kernels.guides import implements, keeps_nothing, kept_size, make_kept, update_kept, value_after, value_of
from undershoot.kernels.plan import Plan, forward_plan
from undershoot.puzzles.base_heuristics import BaseHeuristic
from undershoot.puzzles.moves import MoveTable

NO_PAIRS = frozen(np.zeros((0, 0), dtype=np.int32))


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


@keeps_nothing
class PairSums(NamedTuple):
    """Sums with costs of neighbours, which a step may change anywhere: they are added up for each state."""

    formula: Sums


class SlidingSums(NamedTuple):
    """Sums where every step exchanges the cursor, which costs nothing, with what stands where it lands."""

    formula: Sums
    change: I32
    """int32[n * n * m], flat: by what the sum changes when a value goes from one cell to another."""


def guide_by_sums(table: MoveTable, formula: BaseHeuristic) -> Sums | PairSums | SlidingSums:
    """A formula as a guide."""
    made = sums(formula)
    if formula.pair_cost is not None:
        return PairSums(made)
    if not forward_plan(table).slides or formula.divisor != 1 or formula.cell_cost[:, table.cursor].any():
        return made
    change = formula.cell_cost[None] - formula.cell_cost[:, None]
    return SlidingSums(made, frozen(np.ascontiguousarray(change).ravel()))


@implements(kept_size, SlidingSums)
def _one_sum(guide: SlidingSums) -> Number:
    return 1


@implements(make_kept, SlidingSums)
def _make_sliding_sum(guide: SlidingSums, states: States, row: Number, kept: I32, at: Number) -> None:
    kept[at, 0] = sum_of(guide.formula, states, row)


@inner
def _sum_after_slide(
    guide: SlidingSums, plan: Plan, context: Number, step: Number, states: States, row: Number, kept: I32, at: Number
) -> Number:
    cells, values = np.uint64(guide.formula.cell_cost.shape[0]), np.uint64(guide.formula.cell_cost.shape[1])
    landing = np.uint64(plan.landing[context, step])
    return kept[at, 0] + guide.change[(landing * cells + np.uint64(context)) * values + np.uint64(states[row, landing])]


@implements(update_kept, SlidingSums)
def _update_sliding_sum(
    guide: SlidingSums,
    plan: Plan,
    context: Number,
    step: Number,
    states: States,
    row: Number,
    kept: I32,
    at: Number,
    to: Number,
) -> None:
    kept[to, 0] = _sum_after_slide(guide, plan, context, step, states, row, kept, at)


@implements(value_of, SlidingSums)
def _value_of_sliding_sum(guide: SlidingSums, states: States, row: Number, kept: I32, at: Number) -> Number:
    return np.float32(kept[at, 0])


@implements(value_after, SlidingSums)
def _value_after_slide(
    guide: SlidingSums,
    plan: Plan,
    context: Number,
    step: Number,
    states: States,
    row: Number,
    kept: I32,
    at: Number,
    enough: Number,
) -> Number:
    return np.int64(_sum_after_slide(guide, plan, context, step, states, row, kept, at))


@implements(value_of, PairSums)
def _value_of_pairs(guide: PairSums, states: States, row: Number, kept: I32, at: Number) -> Number:
    return shared_out(guide.formula, sum_of(guide.formula, states, row))


@implements(kept_size, Sums)
def _one_number(guide: Sums) -> Number:
    return 1


@implements(make_kept, Sums)
def _make_sum(guide: Sums, states: States, row: Number, kept: I32, at: Number) -> None:
    kept[at, 0] = sum_of(guide, states, row)


@inner
def _sum_after(
    guide: Sums, plan: Plan, context: Number, step: Number, states: States, row: Number, kept: I32, at: Number
) -> Number:
    total = np.int64(kept[at, 0])
    for k in range(plan.changes[context, step]):
        cell = plan.cell[context, step, k]
        value = np.int64(states[row, plan.origin[context, step, k]]) + np.int64(plan.shift[context, step, k])
        if value >= plan.modulus[cell]:
            value -= np.int64(plan.modulus[cell])
        total += guide.cell_cost[cell, value] - guide.cell_cost[cell, states[row, cell]]
    return total


@implements(update_kept, Sums)
def _update_sum(
    guide: Sums, plan: Plan, context: Number, step: Number, states: States, row: Number, kept: I32, at: Number, to: Number
) -> None:
    kept[to, 0] = _sum_after(guide, plan, context, step, states, row, kept, at)


@implements(value_of, Sums)
def _value_of_sum(guide: Sums, states: States, row: Number, kept: I32, at: Number) -> Number:
    return shared_out(guide, np.int64(kept[at, 0]))


@implements(value_after, Sums)
def _value_one_step_on(
    guide: Sums, plan: Plan, context: Number, step: Number, states: States, row: Number, kept: I32, at: Number, enough: Number
) -> Number:
    return shared_out(guide, _sum_after(guide, plan, context, step, states, row, kept, at))
