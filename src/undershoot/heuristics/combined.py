"""Heuristics made from others: the largest of several, and rounded up."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from undershoot.arrays import F32, AnyArray, States
from undershoot.errors import NotAvailable, UndershootError
from undershoot.guarantees import Guarantee, Heuristic, Rounding
from undershoot.puzzles.puzzle import Puzzle


@dataclass(frozen=True, eq=False)
class Largest:
    """The largest value of several heuristics of one puzzle."""

    members: tuple[Heuristic, ...]

    def __post_init__(self) -> None:
        if not self.members:
            raise UndershootError("the largest of no heuristics was asked for; give at least one")
        if len({member.fingerprint for member in self.members}) > 1:
            raise UndershootError(f"these heuristics belong to different puzzles: {self.name}")

    @property
    def name(self) -> str:
        """max(...)."""
        return f"max({', '.join(member.name for member in self.members)})"

    @property
    def fingerprint(self) -> str:
        """Of their puzzle."""
        return self.members[0].fingerprint

    @property
    def guarantee(self) -> Guarantee:
        """What follows from those of the members."""
        return reduce(Guarantee.joined, (member.guarantee for member in self.members))

    @property
    def rounding(self) -> Rounding:
        """The one of all members, if they agree."""
        kinds = {member.rounding for member in self.members}
        if len(kinds) == 1:
            return kinds.pop()
        return Rounding.NONE if Rounding.NONE in kinds else Rounding.INTEGER

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        return np.asarray(np.maximum.reduce([member(states) for member in self.members]), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Rounded:
    """Another heuristic, rounded up; negative values become 0."""

    inner: Heuristic
    puzzle: Puzzle
    rounding: Rounding

    def __post_init__(self) -> None:
        if self.rounding is Rounding.PARITY and not self.puzzle.has_cost_parity:
            raise NotAvailable(f"{self.puzzle.name} has no parity to round to; use integer")

    @property
    def name(self) -> str:
        """The inner one's, and how it is rounded."""
        return f"{self.inner.name}, rounded up" + (" to parity" if self.rounding is Rounding.PARITY else "")

    @property
    def fingerprint(self) -> str:
        """Of its puzzle."""
        return self.inner.fingerprint

    @property
    def guarantee(self) -> Guarantee:
        """Unchanged: h <= h* implies ceil(h) <= h*, since h* is whole, and of this parity."""
        return self.inner.guarantee

    def __call__(self, states: States) -> F32:
        """float32[B], whole."""
        return round_up(self.puzzle, self.rounding, np.maximum(self.inner(states), 0), states)


def round_up(puzzle: Puzzle, rounding: Rounding, values: AnyArray, states: States) -> F32:
    """float32[B]: values from 0 rounded up as the mode says. Safe where they do not overestimate, since costs are whole."""
    if rounding is Rounding.NONE:
        return values.astype(np.float32)
    whole = np.ceil(values)
    if rounding is Rounding.PARITY:
        whole = whole + ((whole.astype(np.int64) ^ puzzle.cost_parity(states)) & 1)
    return whole.astype(np.float32)


def best_rounding(puzzle: Puzzle) -> Rounding:
    """The one that raises values most, of those that the puzzle allows."""
    return Rounding.PARITY if puzzle.has_cost_parity else Rounding.INTEGER


def rounded(heuristic: Heuristic, puzzle: Puzzle, rounding: Rounding) -> Heuristic:
    """The heuristic with this rounding."""
    return heuristic if rounding is Rounding.NONE else Rounded(heuristic, puzzle, rounding)
