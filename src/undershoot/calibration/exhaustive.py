"""No overestimate anywhere."""

from undershoot.arrays import AnyArray
from undershoot.calibration.calibrator import Calibrator, Fitted, Wanted
from undershoot.calibration.evidence import scores_of_space
from undershoot.calibration.levels import level_margins
from undershoot.calibration.populations import LabelSource, whole_space
from undershoot.guarantees import PROVEN, Guarantee, Standing
from undershoot.heuristics import wording
from undershoot.heuristics.neural import LearnedHeuristic
from undershoot.oracles.cache import oracle


def exhaustive(scores: AnyArray) -> float:
    """t = max over all states of [network - true cost]; scores: float64[N], of every state but the goals."""
    return float(scores.max()) if len(scores) else 0.0


def fit(network: LearnedHeuristic, wanted: Wanted, scores: AnyArray | None) -> Fitted:
    """From every state, or from every state of a ball."""
    ball = wanted.ball
    distances = whole_space(network.puzzle, "`exhaustive`") if ball is None else oracle(network.puzzle, radius=ball)
    goals = int(distances.histogram[0])
    margin: float = 0.0
    margins: tuple[float, ...] = ()
    if network.family.levels:
        margins, _ = level_margins(network, distances, 0.0, wanted.threads)
    else:
        every = scores_of_space(network, distances, wanted.threads) if scores is None else scores
        margin = exhaustive(every[goals:])
    return Fitted(
        PROVEN if ball is None else Guarantee(Standing.PROVEN, within=ball),
        margin,
        level_margins=margins,
        labels=distances.states - goals,
        population=wording.all_states(ball),
    )


CALIBRATOR = Calibrator(
    "exhaustive",
    "no overestimate on any state",
    frozenset({"ball", "population", "depths"}),
    frozenset({LabelSource.EXACT}),
    fit,
)
