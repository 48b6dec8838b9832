"""Heuristics made from others: the largest of several, and rounded up."""

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from undershoot.arrays import F32, I32, AnyArray, Number, States
from undershoot.errors import NotAvailable, UndershootError
from undershoot.guarantees import Guarantee, Heuristic, Rounding, one_line
from undershoot.kernels.guides import guide_of, implements, kept_size, make_kept, update_kept, value_of
from undershoot.kernels.plan import Plan
from undershoot.kernels.rounding import RoundUp, rounded_up, rounding_up
from undershoot.puzzles.problem import Problem


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

    def __repr__(self) -> str:
        return one_line(self)

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        return np.asarray(np.maximum.reduce([member(states) for member in self.members]), dtype=np.float32)

    def guide(self) -> Any:
        """For searches, if every member has one."""
        guides = [guide_of(member) for member in self.members]
        return None if any(guide is None for guide in guides) else reduce(Larger, guides)


class Larger(NamedTuple):
    """The larger of two guides. It keeps nothing, but lets each work in the row beside a state."""

    first: Any
    second: Any


@dataclass(frozen=True, eq=False)
class Rounded:
    """Another heuristic, rounded up; negative values become 0."""

    inner: Heuristic
    puzzle: Problem
    rounding: Rounding

    def __post_init__(self) -> None:
        if self.rounding is Rounding.PARITY and not self.puzzle.has_cost_parity:
            raise NotAvailable(f"{self.puzzle.name} has no parity to round to; use integer (--rounding integer)")

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

    def __repr__(self) -> str:
        return one_line(self)

    def __call__(self, states: States) -> F32:
        """float32[B], whole."""
        return round_up(self.puzzle, self.rounding, np.maximum(self.inner(states), 0), states)

    def guide(self) -> Any:
        """For searches, if the inner one has one."""
        inner = guide_of(self.inner)
        return None if inner is None else RoundedUp(inner, rounding_up(self.puzzle, self.rounding))


class RoundedUp(NamedTuple):
    """A guide, rounded up. Keeps nothing, as `Larger`."""

    inner: Any
    rounding: RoundUp


@implements(kept_size, Larger)
def _size_of_larger(guide: Larger) -> Number:
    # Never 1: of a single number a search would think that it is kept.
    return max(2, kept_size(guide.first), kept_size(guide.second))


@implements(make_kept, Larger)
@implements(make_kept, RoundedUp)
def _make_nothing(guide: Any, states: States, row: Number, kept: I32, at: Number) -> None:
    pass


@implements(update_kept, Larger)
@implements(update_kept, RoundedUp)
def _update_nothing(
    guide: Any, plan: Plan, context: Number, step: Number, states: States, row: Number, kept: I32, at: Number, to: Number
) -> None:
    pass


@implements(value_of, Larger)
def _larger(guide: Larger, states: States, row: Number, kept: I32, at: Number) -> Number:
    make_kept(guide.first, states, row, kept, at)
    first = value_of(guide.first, states, row, kept, at)
    make_kept(guide.second, states, row, kept, at)
    second = value_of(guide.second, states, row, kept, at)
    return first if first > second or np.isnan(first) else second


@implements(kept_size, RoundedUp)
def _size_of_rounded(guide: RoundedUp) -> Number:
    return max(2, kept_size(guide.inner))


@implements(value_of, RoundedUp)
def _rounded(guide: RoundedUp, states: States, row: Number, kept: I32, at: Number) -> Number:
    make_kept(guide.inner, states, row, kept, at)
    value = np.float64(value_of(guide.inner, states, row, kept, at))
    return rounded_up(guide.rounding, 0.0 if value < 0 else value, states, row)


def round_up(puzzle: Problem, rounding: Rounding, values: AnyArray, states: States) -> F32:
    """float32[B]: values from 0 rounded up as the mode says. Safe where they do not overestimate, since costs are whole."""
    if rounding is Rounding.NONE:
        return values.astype(np.float32)
    whole = np.ceil(values)
    if rounding is Rounding.PARITY:
        with np.errstate(invalid="ignore"):  # what is no number stays none, and is refused by who asked
            whole = whole + ((whole.astype(np.int64) ^ puzzle.cost_parity(states)) & 1)
    return whole.astype(np.float32)


def best_rounding(puzzle: Problem) -> Rounding:
    """The one that raises values most, of those that the puzzle allows."""
    return Rounding.PARITY if puzzle.has_cost_parity else Rounding.INTEGER


def rounded(heuristic: Heuristic, puzzle: Problem, rounding: Rounding) -> Heuristic:
    """The heuristic with this rounding."""
    return heuristic if rounding is Rounding.NONE else Rounded(heuristic, puzzle, rounding)
