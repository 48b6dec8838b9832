"""No overestimate anywhere."""

from undershoot.arrays import AnyArray
from undershoot.guarantees import PROVEN, Guarantee, Standing


def exhaustive(scores: AnyArray, within: int | None = None) -> tuple[float, Guarantee]:
    """t = max over all states of [network - true cost]; scores: float64[N], of every state but the goals."""
    t = float(scores.max()) if len(scores) else 0.0
    return t, PROVEN if within is None else Guarantee(Standing.PROVEN, within=within)
