"""Which states can be solved, how many there are, and how to draw one at random."""

from collections.abc import Callable
from functools import cached_property
from math import factorial, prod
from typing import Protocol

import numpy as np

from undershoot.arrays import I64, Bools, States
from undershoot.puzzles.groups import PermutationGroup
from undershoot.puzzles.moves import MoveTable


class Space(Protocol):
    """The solvable states of a puzzle, as far as they are understood without enumerating them."""

    @property
    def size(self) -> int:
        """How many states there are, or at most this many if not `size_is_exact`."""

    @property
    def size_is_exact(self) -> bool:
        """Whether `size` is their number."""

    @property
    def defects(self) -> Callable[[States], I64] | None:
        """int64[B]: 0 for a solvable state, otherwise 1 + the number of its sentence in `reasons`; None if unknown.

        Reads states that hold the right values; where these are wrong it may say so too.
        """

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a state cannot be solved: sentences that begin in lower case, about "it"."""

    @property
    def sample(self) -> Callable[[np.random.Generator, int], States] | None:
        """uint8[count, n]: independent states, each equally likely; None if that cannot be done."""


def arrangements(table: MoveTable) -> int:
    """At most this many states, by counting the ways to fill the cells."""
    if table.shift.any():
        return prod(table.modulus.tolist())
    counts = [np.unique(goal, return_counts=True)[1] for goal in table.goals]
    return sum(factorial(table.cells) // prod(factorial(int(k)) for k in count) for count in counts)


class AllPermutations:
    """Every order of n distinct values can be solved."""

    size_is_exact = True
    reasons: tuple[str, ...] = ()

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.size = factorial(cells)

    def defects(self, states: States) -> I64:
        """0: nothing can be wrong."""
        return np.zeros(len(states), dtype=np.int64)

    def sample(self, random: np.random.Generator, count: int) -> States:
        """A random order each."""
        return random.permuted(np.tile(np.arange(self.cells, dtype=np.uint8), (count, 1)), axis=1)


class OrbitSpace:
    """What the moves of a permutation puzzle make of its goal, by way of the group they generate."""

    def __init__(self, table: MoveTable) -> None:
        self.table = table
        self.reasons: tuple[str, ...] = ("its pieces stand in an order that no sequence of moves can produce",)
        self.defects = self._membership if len(table.goals) == 1 and table.has_distinct_values else None
        self.sample = self.images_of_goal if len(table.goals) == 1 else None

    @cached_property
    def group(self) -> PermutationGroup:
        """The group of the moves; images[i] is the cell that the value on cell i goes to."""
        return PermutationGroup(np.argsort(self.table.source[0], axis=1).astype(np.uint8))

    @cached_property
    def size(self) -> int:
        """The order of the group; with equal values on several cells there may be fewer states."""
        return min(self.group.order * len(self.table.goals), arrangements(self.table))

    @property
    def size_is_exact(self) -> bool:
        """Distinct values show every element of the group."""
        return self.defects is not None

    def _membership(self, states: States) -> I64:
        where = np.argsort(states, axis=1)
        ranks = np.argsort(np.argsort(self.table.goals[0]))  # not all values need occur
        images = where[:, ranks].astype(np.uint8)
        inside: Bools = self.group.contains(images)
        return (~inside).astype(np.int64)

    def images_of_goal(self, random: np.random.Generator, count: int) -> States:
        """uint8[count, n]: what random elements of the group make of the goal."""
        # A uniform group element takes the goal to a uniform state: every state has equally many elements behind it.
        images = self.group.sample(random, count)
        states = np.empty_like(images)
        np.put_along_axis(states, images.astype(np.int64), np.broadcast_to(self.table.goals[0], images.shape), axis=1)
        return states


class UnknownSpace:
    """Only a bound on the number of states is known."""

    size_is_exact = False
    reasons: tuple[str, ...] = ()
    defects = None
    sample = None

    def __init__(self, table: MoveTable) -> None:
        self.size = arrangements(table)
