"""Playing one step, inside compiled loops."""

import numpy as np

from undershoot.arrays import Number, States
from undershoot.kernels.compiler import inner
from undershoot.kernels.plan import Plan


@inner
def play_step(plan: Plan, context: Number, step: Number, states: States, before: Number, after: Number) -> None:
    """Write states[after], uint8[R, n], for the step from states[before], whose context this is."""
    for i in range(plan.modulus.shape[0]):
        states[after, i] = states[before, i]
    for k in range(plan.changes[context, step]):
        cell = np.int64(plan.cell[context, step, k])
        value = np.int64(states[before, plan.origin[context, step, k]]) + np.int64(plan.shift[context, step, k])
        if value >= plan.modulus[cell]:
            value -= np.int64(plan.modulus[cell])
        states[after, cell] = value


@inner
def step_on(plan: Plan, context: Number, step: Number, states: States, row: Number) -> None:
    """Play a step on states[row] itself. The row after it is free to work in."""
    if plan.slides:
        landing = np.uint64(plan.landing[context, step])
        states[row, context], states[row, landing] = states[row, landing], plan.cursor
        return
    count = plan.changes[context, step]
    for k in range(count):
        value = np.int64(states[row, plan.origin[context, step, k]]) + np.int64(plan.shift[context, step, k])
        if value >= plan.modulus[plan.cell[context, step, k]]:
            value -= np.int64(plan.modulus[plan.cell[context, step, k]])
        states[row + 1, k] = value
    for k in range(count):
        states[row, plan.cell[context, step, k]] = states[row + 1, k]


@inner
def step_back(plan: Plan, context: Number, step: Number, states: States, row: Number) -> None:
    """Take back a step that was played from this context. The row after it is free to work in."""
    if plan.slides:
        landing = np.uint64(plan.landing[context, step])
        states[row, landing], states[row, context] = states[row, context], plan.cursor
        return
    count = plan.changes[context, step]
    for k in range(count):
        cell = plan.cell[context, step, k]
        value = np.int64(states[row, cell]) - np.int64(plan.shift[context, step, k])
        states[row + 1, k] = value + np.int64(plan.modulus[cell]) if value < 0 else value
    for k in range(count):
        states[row, plan.origin[context, step, k]] = states[row + 1, k]
