"""The exact cost, looked up."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from undershoot.arrays import F32, I32, Number, States
from undershoot.guarantees import PROVEN, Guarantee, Rounding, one_line
from undershoot.kernels.guides import implements, keeps_nothing, value_of
from undershoot.kernels.plan import packing_of
from undershoot.oracles.distance_table import UNKNOWN, DistanceTable
from undershoot.oracles.state_index import Costs, cost_of, costs_of


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

    @property
    def outside(self) -> int:
        """The value of a state that is not in the table."""
        radius = self.distances.radius
        return len(self.distances.histogram) if radius is None else radius + 1

    def __repr__(self) -> str:
        return one_line(self)

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        distance = self.distances.distance(states)
        return np.where(distance == UNKNOWN, self.outside, distance).astype(np.float32)

    def guide(self) -> "LookUp":
        """For searches."""
        distances = self.distances
        return LookUp(costs_of(packing_of(distances.table), distances.keys, distances.index), self.outside)


@keeps_nothing
class LookUp(NamedTuple):
    """`TableHeuristic`, for compiled code."""

    costs: Costs
    outside: Number


@implements(value_of, LookUp)
def _value_by_look_up(guide: LookUp, states: States, row: Number, kept: I32, at: Number) -> Number:
    return np.float32(cost_of(guide.costs, states, row, np.int64(guide.outside)))
