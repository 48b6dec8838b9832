"""Pairs of steps: what two in a row come to."""

from enum import IntEnum

import numpy as np

from undershoot.arrays import U8
from undershoot.puzzles.moves import MoveTable, Steps


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
    contexts, width, cells = steps.source.shape
    result = np.full((contexts, width, width), Pair.NEW, dtype=np.uint8)
    identity = np.arange(cells, dtype=np.uint8).tobytes() + bytes(cells)
    for c in range(contexts):
        single = {
            steps.source[c, x].tobytes() + steps.shift[c, x].tobytes(): int(steps.cost[c, x])
            for x in np.flatnonzero(steps.legal[c])
        }
        compositions = _compositions(table, steps, c)
        actions = {(x, y): (int(steps.action[c, x]), int(steps.action[steps.landing[c, x], y])) for x, y in compositions}
        by_actions = {actions[pair]: effect for pair, effect in compositions.items()}
        for (x, y), effect in compositions.items():
            first, second = actions[x, y]
            if effect == identity:
                result[c, x, y] = Pair.UNDONE
            elif effect in single and single[effect] <= steps.cost[c, x] + steps.cost[steps.landing[c, x], y]:
                result[c, x, y] = Pair.ONE_STEP
            elif second < first and by_actions.get((second, first)) == effect:
                result[c, x, y] = Pair.EXCHANGED
    return result


def _compositions(table: MoveTable, steps: Steps, c: int) -> dict[tuple[int, int], bytes]:
    """The effect of x and then y, for all legal pairs of steps from context c."""
    result = {}
    for x in np.flatnonzero(steps.legal[c]).tolist():
        then = steps.landing[c, x]
        ys = np.flatnonzero(steps.legal[then])
        order = steps.source[then, ys]
        source = steps.source[c, x][order]
        shift = ((steps.shift[c, x][order].astype(np.uint16) + steps.shift[then, ys]) % table.modulus).astype(np.uint8)
        for k, y in enumerate(ys.tolist()):
            result[x, y] = source[k].tobytes() + shift[k].tobytes()
    return result
