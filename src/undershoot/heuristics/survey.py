"""A heuristic against the true cost of every state."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from undershoot.arrays import F32, AnyArray, States
from undershoot.heuristics.neural import evaluate
from undershoot.oracles.distance_table import DistanceTable

CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class Survey:
    """What a heuristic says on every state of a distance table."""

    states: int
    mean_h: float
    mean_true: float
    supremum: float
    """The largest h - h*; at most 0 if it never overestimates."""
    overestimates: int
    by_cost: AnyArray
    """float64[C, 3], for each true cost: states, mean of h, standard deviation of h."""

    @property
    def admissible_share(self) -> float:
        """The share of states with h <= h*."""
        return 1 - self.overestimates / self.states


def survey(
    heuristic: Callable[[States], F32],
    distances: DistanceTable,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Survey:
    """Evaluate every state, a chunk at a time. progress: called with how many are done."""
    costs = np.repeat(np.arange(len(distances.histogram), dtype=np.uint16), distances.histogram)
    sums = np.zeros((len(distances.histogram), 3))
    supremum, above = -np.inf, 0
    for start in range(0, distances.states, CHUNK * threads):
        stop = min(start + CHUNK * threads, distances.states)
        values = evaluate(heuristic, distances.states_of_rows(start, stop), threads).astype(np.float64)
        cost = costs[start:stop]
        excess = values - cost
        supremum, above = max(supremum, float(excess.max())), above + int((excess > 0).sum())
        for column, weights in enumerate((None, values, values * values)):
            sums[:, column] += np.bincount(cost, weights=weights, minlength=len(sums))
        if progress is not None:
            progress(stop)
    count = np.maximum(sums[:, 0], 1)
    mean = sums[:, 1] / count
    deviation = np.sqrt(np.maximum(sums[:, 2] / count - mean * mean, 0))
    return Survey(
        distances.states,
        float(sums[:, 1].sum() / distances.states),
        distances.mean,
        supremum,
        above,
        np.stack([sums[:, 0], mean, deviation], axis=1),
    )
