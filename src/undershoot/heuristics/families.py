"""What the outputs of a network say about the cost, lowered by a margin t.

One number h, float32[B]: h_t = h - t. Levels, float32[B, K], output k large where the cost is at least k, for k from 1 to K:
h_t = how many levels from the first on lie above t. Both fall as t grows. The score of a state and a label is the smallest t
for which h_t is at most the label.
"""

import numpy as np

from undershoot.arrays import F32, I64, AnyArray


def lowered(raw: F32, t: F32) -> F32:
    """float32[B]: h_t. t: [1] or [B]; for levels [1], [K] (one for each level) or [B, 1]."""
    if raw.ndim == 1:
        return np.asarray(raw - t, dtype=np.float32)
    passed = raw > t
    return np.asarray(np.where(passed.all(axis=1), raw.shape[1], passed.argmin(axis=1)), dtype=np.float32)


def scores(raw: F32, costs: AnyArray) -> AnyArray:
    """float64[B]. For levels, the least of those up to the one above the label; minus infinity if there is none above."""
    if raw.ndim == 1:
        return raw.astype(np.float64) - costs
    above = np.floor(costs).astype(np.int64)
    inside = np.minimum(above, raw.shape[1] - 1)
    least = np.minimum.accumulate(raw, axis=1)[np.arange(len(raw)), inside].astype(np.float64)
    return np.where(above < raw.shape[1], least, -np.inf)


def groups_of(raw: F32, count: int) -> I64:
    """int64[B]: the group of each state by what the network says, rounded down, among `count`."""
    values = raw if raw.ndim == 1 else lowered(raw, np.zeros(1, dtype=np.float32))
    return np.clip(np.floor(values), 0, count - 1).astype(np.int64)
