"""No overestimate anywhere, with the worst states listed."""

import numpy as np

from undershoot.arrays import AnyArray, Bools
from undershoot.errors import UndershootError


def exceptions(scores: AnyArray, share: float) -> tuple[float, Bools]:
    """t = the smallest margin that leaves at most `share` of all states above their true cost; these are listed.

    scores: float64[N], of every state but the goals. Returns t, and which states are listed.
    """
    if not 0 <= share < 1:
        raise UndershootError(f"the share of listed states is {share}; allowed are numbers from 0 to below 1")
    most = int(share * len(scores))
    t = float(np.partition(scores, len(scores) - 1 - most)[len(scores) - 1 - most])
    return t, scores > t
