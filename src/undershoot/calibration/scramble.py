"""The paper's offset."""

from undershoot.calibration.evidence import Evidence
from undershoot.guarantees import NO_GUARANTEE, Guarantee


def scramble(evidence: Evidence) -> tuple[float, Guarantee]:
    """t = max(0, max over the sample of [network - scramble cost]).

    A scramble's cost is at least the true cost, so t is at most what is needed: nothing is known about overestimates.
    """
    return max(0.0, float(evidence.scores.max(initial=0.0))), NO_GUARANTEE
