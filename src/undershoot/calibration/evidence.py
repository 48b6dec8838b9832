"""What a margin is fitted to: scores of labelled states.

h_t does not overestimate a label exactly if t is at least the score (see `families`). Methods see scores only.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from undershoot.arrays import I64, AnyArray
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.populations import LabelSource, Population, draw
from undershoot.errors import UndershootError
from undershoot.guarantees import LabelKind, Labels
from undershoot.heuristics.families import Family
from undershoot.heuristics.neural import LearnedHeuristic, evaluate
from undershoot.oracles.distance_table import DistanceTable

MOST_GROUPS = 256
CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class Evidence:
    """Scores of independent draws from a population, goals left out."""

    population: str
    scores: AnyArray
    """float64[N]: of states; for `trajectory`, of instances: the largest score along an optimal path, and infinite where none
    was proven to be one."""
    kind: LabelKind
    groups: I64
    """int64[N]: the groups of the states, by what the network says; see `Family.groups`."""

    def sound_scores(self, method: str) -> AnyArray:
        """The scores; refused if the labels may lie above the true cost, or if there are none."""
        if not len(self.scores):
            raise UndershootError(f"`{method}` has no labels to go by")
        if self.kind is LabelKind.UPPER:
            raise UndershootError(
                f"`{method}` needs exact costs or lower bounds, but these {len(self.scores):,} labels are upper bounds "
                "(scramble depth); a margin fitted to them is too small. Use --labels exact, or --labels lower"
            )
        return self.scores


def score(family: Family, raw: AnyArray, labels: Labels) -> AnyArray:
    """float64[N]: the smallest t for which h_t is at most the label."""
    if not np.isfinite(raw).all():
        raise UndershootError("the network gives values that are not finite; its weights are too large")
    return family.scores(raw, labels.costs)


def of_states(
    network: LearnedHeuristic,
    wanted: Wanted,
    population: Population | None = None,
    source: LabelSource | None = None,
) -> Evidence:
    """Scores of states drawn from the wanted population, with the wanted labels; or from and with others."""
    source = source or wanted.labels or LabelSource.EXACT
    sample = draw(
        network.puzzle, population or wanted.population, source, wanted.n, wanted.seed, wanted.depths, threads=wanted.threads
    )
    raw = evaluate(network.raw, sample.states, wanted.threads)
    groups = network.family.groups(raw, MOST_GROUPS + 1)
    return Evidence(sample.population, score(network.family, raw, sample.labels), sample.labels.kind, groups)


def scores_of_space(network: LearnedHeuristic, distances: DistanceTable, threads: int) -> AnyArray:
    """float64[N] for every state of a table, in its order."""
    result = np.empty(distances.states)
    true_cost = distances.true_costs(np.float32)
    for start in range(0, distances.states, CHUNK * threads):
        stop = min(start + CHUNK * threads, distances.states)
        raw = evaluate(network.raw, distances.states_of_rows(start, stop), threads)
        result[start:stop] = score(network.family, raw, Labels(LabelKind.EXACT, true_cost[start:stop]))
    return result


LEAST_RATE = 1e-9
"""Of violations, that can be asked for."""


def order_statistic(method: str, scores: AnyArray, alpha: float, confidence: float | None) -> float:
    """The smallest of the scores that, as a margin, leaves at most `alpha` of the population above it.

    Let t be the k-th smallest of n scores. The share of the population above t is at most a Beta(n - k + 1, k) variable, and
    equal to it where scores have no ties. Its mean is (n - k + 1) / (n + 1): on average over draws, k >= (n + 1)(1 - alpha)
    is enough. With a confidence, k is the least for which that variable is at most alpha with that probability.
    """
    n = len(scores)
    _check(alpha, confidence)
    if confidence is None:
        k = math.ceil((n + 1) * (1 - alpha) - 1e-9)
        needed = math.ceil(1 / alpha - 1 - 1e-9)
    else:
        ranks = np.arange(1, n + 1)
        good = stats.beta.cdf(alpha, n - ranks + 1, ranks) >= confidence
        k = int(ranks[good][0]) if good.any() else n + 1
        needed = math.ceil(math.log(1 - confidence) / math.log1p(-alpha) - 1e-9)
    if k > n:
        how = "on average" if confidence is None else f"with confidence {confidence}"
        raise UndershootError(f"`{method}` has {n:,} labels; for a rate of at most {alpha} {how} it needs {needed:,} (--n)")
    return float(np.partition(scores, k - 1)[k - 1])


def _check(alpha: float, confidence: float | None) -> None:
    if not LEAST_RATE <= alpha < 1:
        raise UndershootError(f"--alpha is {alpha}; allowed are numbers from {LEAST_RATE:g} to below 1")
    if confidence is not None and not 0 < confidence < 1:  # groups share one out, and may come above the highest
        raise UndershootError(f"the --confidence is {confidence}; allowed are numbers between 0 and 1, without them")
