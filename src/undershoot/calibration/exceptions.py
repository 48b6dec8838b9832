"""No overestimate anywhere, with the worst states listed."""

import numpy as np

from undershoot.arrays import AnyArray, Bools
from undershoot.calibration.calibrator import Calibrator, Fitted, Wanted
from undershoot.calibration.evidence import scores_of_space
from undershoot.calibration.levels import level_margins
from undershoot.calibration.populations import LabelSource, whole_space
from undershoot.errors import UndershootError
from undershoot.guarantees import PROVEN
from undershoot.heuristics import wording
from undershoot.heuristics.neural import LearnedHeuristic


def exceptions(scores: AnyArray, share: float) -> tuple[float, Bools]:
    """t = the smallest margin that leaves at most `share` of all states above their true cost; these are listed.

    scores: float64[N], of every state but the goals. Returns t, and which states are listed.
    """
    if not 0 <= share < 1:
        raise UndershootError(f"the share of listed states (--listed) is {share}; allowed are numbers from 0 to below 1")
    if not len(scores):
        return 0.0, np.zeros(0, dtype=np.bool_)
    most = int(share * len(scores))
    t = float(np.partition(scores, len(scores) - 1 - most)[len(scores) - 1 - most])
    return t, scores > t


def fit(network: LearnedHeuristic, wanted: Wanted, scores: AnyArray | None) -> Fitted:
    """From every state."""
    distances = whole_space(network.puzzle, "`exceptions`")
    goals = int(distances.histogram[0])
    margin: float = 0.0
    margins: tuple[float, ...] = ()
    if network.family.levels:
        margins, rows = level_margins(network, distances, wanted.listed, wanted.threads)
    else:
        every = scores_of_space(network, distances, wanted.threads) if scores is None else scores
        margin, is_listed = exceptions(every[goals:], wanted.listed)
        rows = goals + np.flatnonzero(is_listed)
    return Fitted(
        PROVEN,
        margin,
        level_margins=margins,
        exceptions=distances.keys[rows],
        exception_costs=distances.true_costs(np.uint16)[rows],
        labels=distances.states - goals,
        population=wording.all_states(),
    )


CALIBRATOR = Calibrator(
    "exceptions",
    "no overestimate on any state; the worst are listed",
    frozenset({"listed", "population", "depths"}),
    frozenset({LabelSource.EXACT}),
    fit,
)
