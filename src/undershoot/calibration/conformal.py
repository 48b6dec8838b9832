"""At most a wanted share of overestimates."""

from undershoot.arrays import AnyArray
from undershoot.calibration.calibrator import DRAWN, Calibrator, Fitted, Wanted
from undershoot.calibration.evidence import Evidence, of_states, order_statistic
from undershoot.calibration.populations import LabelSource
from undershoot.guarantees import Guarantee, Standing
from undershoot.heuristics.neural import LearnedHeuristic


def conformal(evidence: Evidence, alpha: float, confidence: float | None) -> tuple[float, Guarantee]:
    """t = an order statistic of the scores, as small as `alpha` and `confidence` allow; see `order_statistic`."""
    scores = evidence.sound_scores("conformal")
    return order_statistic("conformal", scores, alpha, confidence), Guarantee(
        Standing.SAMPLED,
        population=evidence.population,
        violation_rate=alpha,
        confidence=confidence,
        labels=len(scores),
    )


def fit(network: LearnedHeuristic, wanted: Wanted, scores: AnyArray | None) -> Fitted:
    """From states drawn for it."""
    evidence = of_states(network, wanted)
    margin, guarantee = conformal(evidence, wanted.alpha, wanted.confidence)
    return Fitted(guarantee, margin, labels=len(evidence.scores), population=evidence.population)


CALIBRATOR = Calibrator(
    "conformal",
    "a wanted rate of overestimates",
    DRAWN | {"alpha"},
    frozenset({LabelSource.EXACT, LabelSource.LOWER}),
    fit,
    holds_on_average=True,
)
