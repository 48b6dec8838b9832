"""Analytic lower bounds as data: sums of costs by cell and value, and by neighbouring values."""

from dataclasses import dataclass

import numpy as np

from undershoot.arrays import F32, I32, States, freeze_arrays


@dataclass(frozen=True, eq=False)
class BaseHeuristic:
    """h0(s) = ceil((sum_i cell_cost[i, s[i]] + sum_i pair_cost[s[i], s[i+1]]) / divisor), never above the true cost.

    Manhattan distance, the number of lights over five and the gap heuristic are all of this form.
    """

    name: str
    cell_cost: I32
    """int32[n, m]."""
    pair_cost: I32 | None = None
    """int32[m, m]."""
    divisor: int = 1

    def __post_init__(self) -> None:
        freeze_arrays(self)

    def __call__(self, states: States) -> F32:
        """float32[B], whole numbers."""
        total = self.cell_cost[np.arange(states.shape[1]), states].sum(axis=1)
        if self.pair_cost is not None:
            total = total + self.pair_cost[states[:, :-1], states[:, 1:]].sum(axis=1)
        return np.asarray(-(-total // self.divisor), dtype=np.float32)


def zero_heuristic(cells: int, values: int) -> BaseHeuristic:
    """Knows nothing: 0 everywhere."""
    return BaseHeuristic("zero", np.zeros((cells, values), dtype=np.int32))
