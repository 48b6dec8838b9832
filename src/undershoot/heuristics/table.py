"""The exact cost, looked up."""

from dataclasses import dataclass

import numpy as np

from undershoot.arrays import F32, States
from undershoot.errors import UnsolvableState
from undershoot.guarantees import PROVEN, Guarantee
from undershoot.oracles.distance_table import UNKNOWN, DistanceTable


@dataclass(frozen=True, eq=False)
class TableHeuristic:
    """Perfect inside a distance table. Outside a ball of radius R every state costs more than R, so R + 1."""

    distances: DistanceTable
    name: str = "table"
    guarantee: Guarantee = PROVEN
    is_whole: bool = True

    @property
    def fingerprint(self) -> str:
        """Of the table's puzzle."""
        return self.distances.table.fingerprint

    def __call__(self, states: States) -> F32:
        """float32[B]; UnsolvableState for one that the whole space does not hold."""
        distance = self.distances.distance(states)
        unknown = distance == UNKNOWN
        if unknown.any():
            if self.distances.radius is None:
                state = states[int(np.argmax(unknown))].tolist()
                raise UnsolvableState(f"the table of all solvable states does not hold this one: {state}")
            distance = np.where(unknown, self.distances.radius + 1, distance)
        return distance.astype(np.float32)
