"""At most a wanted share of overestimates."""

from undershoot.calibration.evidence import Evidence, order_statistic
from undershoot.guarantees import Guarantee, Standing


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
