"""A heuristic against the true cost of every state."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from undershoot.arrays import F32, I64, AnyArray, States
from undershoot.heuristics.neural import evaluate
from undershoot.kernels.cpu import successors
from undershoot.kernels.plan import forward_plan
from undershoot.oracles.distance_table import UNKNOWN, DistanceTable

CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class Survey:
    """What a heuristic says on every state of a distance table."""

    states: int
    mean_h: float
    mean_true: float
    supremum: float
    """The largest h - h* over states that are not goals; at most 0 if it never overestimates."""
    overestimates: int
    by_cost: AnyArray
    """float64[C, 3], for each true cost: states, mean of h, standard deviation of h."""

    @classmethod
    def of(cls, values: F32, distances: DistanceTable) -> "Survey":
        """values: float32[N], those of all states in the order of the table."""
        costs = distances.true_costs()
        excess = values - costs
        count = np.maximum(distances.histogram, 1)
        mean = np.bincount(costs, weights=values) / count
        squares = np.bincount(costs, weights=np.square(values, dtype=np.float64)) / count
        goals = int(distances.histogram[0])
        return cls(
            distances.states,
            float(values.sum(dtype=np.float64) / len(values)),  # exact for whole values
            distances.mean,
            float(excess[goals:].max(initial=-np.inf)) if goals < distances.states else 0.0,
            int((excess > 0).sum()),
            np.stack([distances.histogram, mean, np.sqrt(np.maximum(squares - mean * mean, 0))], axis=1),
        )

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
    """Evaluate every state. progress: called with how many are done."""
    return Survey.of(values_of_space(heuristic, distances, threads, progress), distances)


def values_of_space(
    heuristic: Callable[[States], F32],
    distances: DistanceTable,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> F32:
    """float32[N] or [N, K]: what a heuristic or a network says of all states of a table, in its order."""
    parts = []
    for start in range(0, distances.states, CHUNK * threads):
        stop = min(start + CHUNK * threads, distances.states)
        parts.append(evaluate(heuristic, distances.states_of_rows(start, stop), threads))
        if progress is not None:
            progress(stop)
    return np.concatenate(parts)


def compare_moves(values: F32, distances: DistanceTable, rows: I64) -> tuple[int, int]:
    """How many moves there are from the states of these rows to states of the table, and how many are inconsistent.

    values: float32[N], those of all states. A move is inconsistent if h(s) > cost + h(s').
    """
    states = distances.states_of(rows)
    children, legal = successors(distances.table, states)
    landed, _ = distances.look_up(children[legal])
    known = landed != UNKNOWN
    cost = forward_plan(distances.table).cost[distances.table.contexts_of(states)][legal][known]
    here = np.repeat(values[rows], legal.sum(axis=1))[known]
    return int(known.sum()), int((here > values[landed[known]] + cost).sum())
