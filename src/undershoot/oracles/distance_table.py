"""DistanceTable: what a breadth-first search found, ready to be asked."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from undershoot.arrays import I32, I64, U16, U64, AnyArray, Keys, States, frozen, sealed
from undershoot.errors import UndershootError
from undershoot.kernels.cpu import pack, unpack
from undershoot.oracles.state_index import build_index, look_up, slots_for
from undershoot.puzzles.moves import MoveTable

UNKNOWN = -1
"""The distance of a state outside the ball; or, where the whole space is known, of one that cannot be solved.

Examples:
    >>> tiles = us.puzzle("tiles-2x3")
    >>> far = tiles.parse("4 5 0 / 1 2 3")
    >>> us.oracle(tiles, radius=5).distance(far)[0] == us.UNKNOWN
    np.True_
"""


@dataclass(frozen=True, eq=False)
class DistanceTable:
    """The exact cost to the goal of every state, or of every state within `radius`.

    Examples:
        >>> tiles = us.puzzle("tiles-2x3")
        >>> table = us.oracle(tiles)
        >>> print(table.distance(tiles.parse("4 5 0 / 1 2 3")))
        [21]
        >>> farthest = table.states_of_rows(table.states - 1, table.states)
        >>> tiles.format(farthest)
        '4 5 0 / 1 2 3'
    """

    table: MoveTable
    keys: Keys
    """uint64[N, W], ordered by distance."""
    histogram: I64
    """int64[D + 1], how many states there are at each distance."""
    radius: int | None
    """None for the whole space."""
    is_bipartite: bool
    """Whether no move joins two states at distances that its cost, mod 2, forbids."""
    seconds: float
    """What the search took; of a table that was read from a file, as that says, which nothing verifies."""
    cached: Path | None = None
    """The file that it was read from; None if it was computed just now."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", sealed(self.keys))  # large, so not copied
        object.__setattr__(self, "histogram", frozen(self.histogram))

    def __repr__(self) -> str:
        return f"<DistanceTable of {len(self.keys):,} states, as far as {len(self.histogram) - 1}>"

    @classmethod
    def from_search(
        cls, table: MoveTable, keys: Keys, distance: U16, radius: int | None, is_bipartite: bool, seconds: float
    ) -> "DistanceTable":
        """keys uint64[N, W] and distance uint16[N] in any order."""
        if (distance[1:] < distance[:-1]).any():
            keys = keys[np.argsort(distance, kind="stable")]
        return cls(table, keys, np.bincount(distance).astype(np.int64), radius, is_bipartite, seconds)

    @property
    def states(self) -> int:
        """N, how many states are known."""
        return len(self.keys)

    @property
    def mean(self) -> float:
        """The mean distance of the known states."""
        return float(self.histogram @ np.arange(len(self.histogram)) / self.states)

    def true_costs(self, kind: npt.DTypeLike = np.int32) -> AnyArray:
        """[N] of this type: the costs of all states, in their order."""
        return np.repeat(np.arange(len(self.histogram), dtype=kind), self.histogram)

    @cached_property
    def index(self) -> U64:
        """The hash index over the keys; see `state_index`."""
        return sealed(build_index(self.keys, self.true_costs(np.uint16), slots_for(self.states)))

    def look_up(self, states: States) -> tuple[I64, I32]:
        """int64[B] and int32[B]: each state's row in the order of `keys`, and its distance; UNKNOWN where it is absent."""
        return look_up(self.keys, self.index, pack(self.table, states), UNKNOWN)

    def distance(self, states: States) -> I32:
        """int32[B]: the exact cost to the goal, UNKNOWN where the table does not say."""
        return self.look_up(states)[1]

    def states_of_rows(self, start: int, stop: int) -> States:
        """uint8[stop - start, n]: the states of a range of rows; row 0 is a goal, the last row is farthest."""
        return unpack(self.table, self.keys[start:stop])

    def states_of(self, rows: I64) -> States:
        """uint8[B, n]: the states of these rows."""
        return unpack(self.table, self.keys[rows])

    def within(self, radius: int) -> "DistanceTable":
        """The part of this table inside a smaller ball."""
        if radius < 0 or (self.radius is not None and radius > self.radius):
            raise UndershootError(f"this table goes from 0 to {self.radius}; a radius of {radius} was asked for")
        histogram = np.trim_zeros(self.histogram[: radius + 1], "b")
        keys = self.keys[: histogram.sum()]
        return DistanceTable(self.table, keys, histogram, radius, self.is_bipartite, self.seconds, self.cached)
