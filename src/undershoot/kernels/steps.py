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
