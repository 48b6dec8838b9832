"""What is known, and how surely: of labels, of heuristics, and of solutions."""

from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from enum import StrEnum
from typing import Protocol

import numpy as np

from undershoot.arrays import F32, States
from undershoot.errors import UndershootError

HIGHEST_CONFIDENCE = 1 - 1e-9
"""Quantiles are computed to some twelve digits."""


def at_most(bound: float) -> str:
    """With four digits that count, never less than the bound."""
    return f"{_rounded_up(_meant(bound)):g}"


def at_least(bound: float) -> str:
    """With four digits that count, or as many nines as it takes, never more than the bound."""
    return f"{(1 - _rounded_up(1 - _meant(bound))).normalize():f}" if 0 < bound < 1 else f"{bound:g}"


def check_confidence(confidence: float | None) -> None:
    """Refuse what is no probability, or one so near to 1 that arithmetic does not tell it apart."""
    if confidence is not None and not 0 < confidence < 1:
        raise UndershootError(f"--confidence is {confidence}; allowed are numbers between 0 and 1, without them")
    if confidence is not None and confidence > HIGHEST_CONFIDENCE:
        raise UndershootError(f"--confidence is {confidence}; the highest that arithmetic bears out is {HIGHEST_CONFIDENCE}")


def _meant(value: float) -> Decimal:
    """What a float prints as: 0.05, not the binary number just above it. But 1 is meant by 1 alone."""
    meant = Decimal(f"{value:.12g}")
    return meant if meant != 1 else Decimal(value)


def _rounded_up(value: Decimal) -> Decimal:
    return Context(prec=4, rounding=ROUND_CEILING).create_decimal(value)


class LabelKind(StrEnum):
    """How a label relates to the true cost of its state."""

    EXACT = "exact"
    LOWER = "lower"
    """At most the true cost."""
    UPPER = "upper"
    """At least the true cost, like the cost of a scramble."""


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known about the costs of some states, all of one kind."""

    kind: LabelKind
    costs: F32
    """float32[N]."""

    def __post_init__(self) -> None:
        if not np.isfinite(self.costs).all() or (self.costs < 0).any():
            raise UndershootError("labels are costs: numbers from 0")

    def __len__(self) -> int:
        return len(self.costs)


class Standing(StrEnum):
    """How a claim of admissibility is founded."""

    PROVEN = "proven"
    SAMPLED = "sampled"
    NONE = "none"


class Subject(StrEnum):
    """What a SAMPLED rate counts."""

    STATES = "states"
    """States on which the heuristic overestimates."""
    SOLUTIONS = "solutions"
    """Instances on which A* with the heuristic may miss the optimum."""


@dataclass(frozen=True)
class Guarantee:
    """What is known about a heuristic staying at or below the true cost. Prints as one true sentence."""

    standing: Standing
    within: int | None = None
    """PROVEN: only for states at most this far from the goal; None for all."""
    population: str = ""
    """SAMPLED: what the states or instances were drawn from."""
    violation_rate: float = 0.0
    """SAMPLED: the share of violations in the population is at most this."""
    confidence: float | None = None
    """SAMPLED: with at least this probability over the draws of labels; None: on average over them."""
    labels: int = 0
    """SAMPLED: from so many labels."""
    subject: Subject = Subject.STATES
    groups: int = 0
    """SAMPLED: the rate holds in each of so many groups; 0 for the population as a whole."""
    claim: str = ""
    """NONE: what somebody says without proof, and how it could be established."""
    provided: str = ""
    """What all that is known rests on besides, and nobody can check: see `wrap`."""

    @property
    def label(self) -> str:
        """In a word or three: proven, proven within 5, sampled, none; "provided" if it rests on what nobody can check."""
        known = self.standing.value if self.within is None else f"{self.standing.value} within {self.within}"
        return f"{known}, provided" if self.provided and self.standing is not Standing.NONE else known

    @property
    def is_proven(self) -> bool:
        """On every state."""
        return self.standing is Standing.PROVEN and self.within is None

    @property
    def solution_probability(self) -> float | None:
        """1 minus the share of instances that are searched to the end with a cost above the optimum, over labels and all
        instances drawn alike, at least; None if nothing is known. Of what a limit stops nothing is said."""
        if self.standing is not Standing.SAMPLED or self.subject is not Subject.SOLUTIONS:
            return None
        return max(0.0, 1 - self._average_rate)

    @property
    def _average_rate(self) -> float:
        """A rate that fails to hold with some probability is, on average over the draws, exceeded by no more than that."""
        return min(1.0, self.violation_rate + (0.0 if self.confidence is None else 1 - self.confidence))

    @property
    def sentence(self) -> str:
        """With a capital letter and a full stop."""
        text = str(self) if self.standing is Standing.NONE else f"it {self}"
        return f"{text[0].upper()}{text[1:]}."

    def __str__(self) -> str:
        if self.standing is Standing.NONE:
            return "nothing is known about overestimates" + (f" ({self.claim})" if self.claim else "")
        return self._known + (f", provided that {self.provided}" if self.provided else "")

    @property
    def _known(self) -> str:
        """PROVEN, SAMPLED: what is known, without what it rests on."""
        if self.standing is Standing.PROVEN:
            return "never overestimates" if self.within is None else f"never overestimates within {self.within} of the goal"
        how = "on average over draws of" if self.confidence is None else f"with confidence {at_least(self.confidence)} from"
        if self.subject is Subject.SOLUTIONS:
            share = f"lets A* find an optimum on at least {at_least(1 - self.violation_rate)} of {self.population}"
            return f"{share}, {how} {self.labels:,} instances"
        where = f"{self.population}" + (f" in each of {self.groups} groups" if self.groups else "")
        return f"overestimates on at most {at_most(self.violation_rate)} of {where}, {how} {self.labels:,} labels"

    def joined(self, other: "Guarantee") -> "Guarantee":
        """What is known of the larger of two heuristics."""
        conditions = dict.fromkeys(condition for condition in (self.provided, other.provided) if condition)
        return replace(self._joined(other), provided=" and ".join(conditions))

    def _joined(self, other: "Guarantee") -> "Guarantee":
        if self.standing is Standing.PROVEN and other.standing is Standing.PROVEN:
            limits = [limit for limit in (self.within, other.within) if limit is not None]
            return Guarantee(Standing.PROVEN, within=min(limits) if limits else None)
        if self.is_proven:
            return other
        if other.is_proven:
            return self
        alike = (self.population, self.subject) == (other.population, other.subject)
        # Two paths on which each never overestimates need not be the same one, so rates of solutions do not add.
        if self.standing is other.standing is Standing.SAMPLED and alike and self.subject is Subject.STATES:
            average = self.confidence is None or other.confidence is None
            rates = (self._average_rate, other._average_rate) if average else (self.violation_rate, other.violation_rate)
            return Guarantee(
                Standing.SAMPLED,
                population=self.population,
                violation_rate=min(1.0, sum(rates)),
                confidence=None if average else max(0.0, (self.confidence or 0) + (other.confidence or 0) - 1),
                labels=min(self.labels, other.labels),
            )
        return NO_GUARANTEE


PROVEN = Guarantee(Standing.PROVEN)
NO_GUARANTEE = Guarantee(Standing.NONE)


class OptimalityKind(StrEnum):
    """How near to the optimum a solution is known to be."""

    PROVEN = "proven"
    CALIBRATED = "calibrated"
    BOUNDED = "bounded"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Optimality:
    """What is proven about a solution. Prints as one true sentence."""

    kind: OptimalityKind
    factor: float | None = None
    """BOUNDED: the cost is at most this times the optimum."""
    probability: float | None = None
    """CALIBRATED: at most 1 minus this of the population are searched to the end with a cost above the optimum."""
    population: str = ""
    """CALIBRATED: what instances must be drawn from, all of them, also those whose search a limit stops."""
    provided: str = ""
    """What it rests on besides, as in the guarantee of the heuristic; without a solution, what the lower bound does."""

    def __str__(self) -> str:
        is_said = self.provided and self.kind is not OptimalityKind.UNKNOWN
        return self._known + (f", provided that {self.provided}" if is_said else "")

    @property
    def _known(self) -> str:
        if self.kind is OptimalityKind.PROVEN:
            return "optimal, proven"
        if self.kind is OptimalityKind.CALIBRATED:
            rate = at_most(1 - (self.probability or 0))
            return f"of all {self.population}, at most {rate} are searched to the end with a cost above the optimum"
        if self.kind is OptimalityKind.BOUNDED:
            return f"at most {at_most(self.factor or 1)} times the optimal cost, proven"
        return "nothing is proven about its distance from the optimum"


class Rounding(StrEnum):
    """How far values are rounded up. Costs are whole, so no rounding makes an admissible value overestimate."""

    NONE = "none"
    INTEGER = "integer"
    """To a whole number."""
    PARITY = "parity"
    """To a whole number of the parity that all solutions of the state have."""


class Heuristic(Protocol):
    """An estimate of the cost to the goal."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def fingerprint(self) -> str:
        """Of the move table whose states it takes."""

    @property
    def guarantee(self) -> Guarantee:
        """What is known about overestimates."""

    @property
    def rounding(self) -> Rounding:
        """Which values it gives: with INTEGER and PARITY they are whole numbers from 0, and searches are faster."""

    def __call__(self, states: States) -> F32:
        """float32[B] for states uint8[B, n]; 0 for goals."""


def one_line(heuristic: Heuristic) -> str:
    """For whoever prints it: what it is called, and what is known of it, but not what it holds."""
    return f"<{type(heuristic).__name__} {heuristic.name}: {heuristic.guarantee}>"
