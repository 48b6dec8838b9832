"""The paper's offset."""

from undershoot.arrays import AnyArray
from undershoot.calibration.calibrator import Calibrator, Fitted, Wanted
from undershoot.calibration.evidence import Evidence, of_states
from undershoot.calibration.populations import LabelSource, Population
from undershoot.guarantees import NO_GUARANTEE, Guarantee
from undershoot.heuristics.neural import LearnedHeuristic


def scramble(evidence: Evidence) -> tuple[float, Guarantee]:
    """t = max(0, max over the sample of [network - scramble cost]).

    A scramble's cost is at least the true cost, so t is at most what is needed: nothing is known about overestimates.
    """
    return max(0.0, float(evidence.scores.max(initial=0.0))), NO_GUARANTEE


def fit(network: LearnedHeuristic, wanted: Wanted, scores: AnyArray | None) -> Fitted:
    """From scrambles and what they cost. The paper adds no margin for arithmetic."""
    evidence = of_states(network, wanted, Population.SCRAMBLES, LabelSource.SCRAMBLE)
    margin, guarantee = scramble(evidence)
    return Fitted(guarantee, margin, labels=len(evidence.scores), population=evidence.population)


CALIBRATOR = Calibrator(
    "scramble",
    "the paper's offset over scrambles; says nothing about overestimates",
    frozenset({"n", "depths"}),
    frozenset({LabelSource.SCRAMBLE}),
    fit,
    allows_for_arithmetic=False,
    tried_on=Population.SCRAMBLES,
)
