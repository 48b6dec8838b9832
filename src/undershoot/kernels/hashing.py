"""Mixing words into hashes."""

import numpy as np

from undershoot.arrays import Number
from undershoot.kernels.compiler import compiled


@compiled
def mixed(h: Number, word: Number) -> Number:
    """The hash so far with one more word."""
    h = (h ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


@compiled
def finished(h: Number) -> Number:
    """Well spread bits; the upper ones are the best."""
    return h * np.uint64(0xD6E8FEB86659FD93)
