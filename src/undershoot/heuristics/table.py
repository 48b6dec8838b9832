"""The exact cost, looked up."""

from dataclasses import dataclass

import numpy as np

from undershoot.arrays import F32, States
from undershoot.guarantees import PROVEN, Guarantee, Rounding
from undershoot.oracles.distance_table import UNKNOWN, DistanceTable


@dataclass(frozen=True, eq=False)
class TableHeuristic:
    """Perfect inside a distance table. Outside it one more than the farthest state.

    Beyond a ball every state costs that much or more; from a state that the whole space does not hold no goal is reached.
    """

    distances: DistanceTable
    name: str = "table"
    guarantee: Guarantee = PROVEN
    rounding: Rounding = Rounding.INTEGER

    @property
    def fingerprint(self) -> str:
        """Of the table's puzzle."""
        return self.distances.table.fingerprint

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        distance = self.distances.distance(states)
        radius = self.distances.radius
        outside = len(self.distances.histogram) if radius is None else radius + 1
        return np.where(distance == UNKNOWN, outside, distance).astype(np.float32)
