"""No overestimate in the sample."""

from undershoot.arrays import AnyArray
from undershoot.calibration.calibrator import DRAWN, Calibrator, Fitted, Wanted
from undershoot.calibration.evidence import Evidence, of_states
from undershoot.calibration.populations import LabelSource
from undershoot.errors import UndershootError
from undershoot.guarantees import Guarantee, Standing, check_confidence
from undershoot.heuristics.neural import LearnedHeuristic


def maximum(evidence: Evidence, confidence: float | None) -> tuple[float, Guarantee]:
    """t = max over the sample of the scores.

    If the share above t in the population were more than alpha, all n draws would have missed it, which has probability at
    most (1 - alpha)^n. So with confidence 1 - beta it is at most alpha = 1 - beta^(1/n).
    """
    if confidence is None:
        raise UndershootError("`max` needs a confidence between 0 and 1")
    check_confidence(confidence)
    scores = evidence.sound_scores("max")
    rate = 1 - (1 - confidence) ** (1 / len(scores))
    return float(scores.max()), Guarantee(
        Standing.SAMPLED,
        population=evidence.population,
        violation_rate=rate,
        confidence=confidence,
        labels=len(scores),
    )


def fit(network: LearnedHeuristic, wanted: Wanted, scores: AnyArray | None) -> Fitted:
    """From states drawn for it."""
    evidence = of_states(network, wanted)
    margin, guarantee = maximum(evidence, wanted.confidence)
    return Fitted(guarantee, margin, labels=len(evidence.scores), population=evidence.population)


CALIBRATOR = Calibrator("max", "no overestimate in a sample", DRAWN, frozenset({LabelSource.EXACT, LabelSource.LOWER}), fit)
