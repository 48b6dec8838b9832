"""A margin for each group of states."""

import math

import numpy as np

from undershoot.arrays import AnyArray
from undershoot.calibration.calibrator import DRAWN, Calibrator, Fitted, Wanted
from undershoot.calibration.evidence import LEAST_RATE, MOST_GROUPS, Evidence, of_states, order_statistic
from undershoot.calibration.populations import LabelSource
from undershoot.errors import UndershootError
from undershoot.guarantees import Guarantee, Standing
from undershoot.heuristics.neural import LearnedHeuristic


def grouped(evidence: Evidence, alpha: float, confidence: float | None) -> tuple[tuple[float, ...], Guarantee]:
    """t_g = an order statistic of the scores of group g, by what the network says rounded down, which is known at test time.

    Within a group the draws are independent draws of the group. Each of the G groups seen fails with probability at most
    (1 - confidence) / G, so all hold together with the confidence. A group that was not seen, or too seldom, answers h0.
    """
    if confidence is None:
        raise UndershootError("`grouped` needs a confidence between 0 and 1 (--confidence)")
    scores = evidence.sound_scores("grouped")
    count = 1 + int(np.minimum(evidence.groups, MOST_GROUPS - 1).max())
    group = np.minimum(evidence.groups, count)  # one more, for what is above all that was seen
    seen = np.unique(group)
    each = 1 - (1 - confidence) / len(seen)
    margins = [math.inf] * (count + 1)
    for g in seen.tolist():
        try:
            margins[g] = order_statistic("grouped", scores[group == g], alpha, each)
        except UndershootError:
            if not LEAST_RATE <= alpha < 1 or not 0 < confidence < 1:
                raise
    fitted = sum(margin < math.inf for margin in margins)
    if not fitted:
        needed = math.ceil(math.log(1 - each) / math.log1p(-alpha))
        raise UndershootError(
            f"`grouped` finds no group of at least {needed:,} labels among {len(scores):,}; draw more with --n"
        )
    return tuple(margins), Guarantee(
        Standing.SAMPLED,
        population=evidence.population,
        violation_rate=alpha,
        confidence=confidence,
        labels=len(scores),
        groups=fitted,
    )


def fit(network: LearnedHeuristic, wanted: Wanted, scores: AnyArray | None) -> Fitted:
    """From states drawn for it."""
    evidence = of_states(network, wanted)
    margins, guarantee = grouped(evidence, wanted.alpha, wanted.confidence)
    return Fitted(guarantee, group_margins=margins, labels=len(evidence.scores), population=evidence.population)


CALIBRATOR = Calibrator(
    "grouped",
    "a wanted rate in every group of states by what the network says",
    DRAWN | {"alpha"},
    frozenset({LabelSource.EXACT, LabelSource.LOWER}),
    fit,
)
