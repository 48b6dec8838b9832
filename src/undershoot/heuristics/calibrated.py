"""A network moved down so far that something is known about it."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from undershoot.arrays import F32, U16, U64, Keys, States, freeze_arrays, frozen, sealed
from undershoot.errors import NotAvailable, UndershootError
from undershoot.guarantees import Guarantee, Rounding, one_line
from undershoot.heuristics.analytic import base
from undershoot.heuristics.combined import round_up
from undershoot.heuristics.families import Margins
from undershoot.heuristics.learned_guides import Calibrated, Uncalibrated
from undershoot.heuristics.neural import LearnedHeuristic
from undershoot.kernels.cpu import is_goal, pack
from undershoot.kernels.guides import guide_of
from undershoot.kernels.plan import packing_of
from undershoot.kernels.rounding import rounding_up
from undershoot.oracles.state_index import build_index, costs_of, look_up, slots_for
from undershoot.puzzles.problem import Problem

FLOAT_MARGIN = 1e-3
"""What floating-point sums may differ by between machines, and much more; added to every margin of a float network."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far down, how it is rounded, and what is known then."""

    method: str
    guarantee: Guarantee
    margin: float = 0.0
    """t of h_t, see `families`, in units of cost. May be negative. For whole numbers, what a whole threshold stands for."""
    group_margins: tuple[float, ...] = ()
    """Instead of `margin`, one for each group; group k holds the states on which the network says k to k + 1 (the last: k or
    more; the first also less than 0). Infinite where the answer is h0."""
    level_margins: tuple[float, ...] = ()
    """Instead of `margin`, one for each level; minus infinity where every state passes."""
    arithmetic_margin: float = FLOAT_MARGIN
    """eta: subtracted as well; 0 for whole-number networks."""
    rounding: Rounding = Rounding.INTEGER
    exceptions: Keys = field(default_factory=lambda: np.zeros((0, 1), dtype=np.uint64))
    """uint64[E, W]: states that are looked up."""
    exception_costs: U16 = field(default_factory=lambda: np.zeros(0, dtype=np.uint16))
    """uint16[E], their values."""
    labels: int = 0
    """How many the margin was fitted to."""
    population: str = ""
    """Where they come from."""

    def __post_init__(self) -> None:
        freeze_arrays(self)

    @property
    def has_several_margins(self) -> bool:
        """One for each group, or one for each level."""
        return bool(self.group_margins or self.level_margins)


@dataclass(frozen=True, eq=False)
class CalibratedHeuristic:
    """round_up(max(h0, network - margin)), goals 0, listed states as listed."""

    network: LearnedHeuristic
    calibration: Calibration

    def __post_init__(self) -> None:
        levels, margins = self.network.family.levels, len(self.calibration.level_margins)
        if margins and margins != levels:
            raise UndershootError(f"the calibration has a margin for each of {margins} levels, but the network has {levels}")
        if self.network.is_exact and self.calibration.arithmetic_margin:
            raise UndershootError("the calibration has a margin for arithmetic, but the network is one of whole numbers")
        if self.calibration.rounding is Rounding.PARITY and not self.puzzle.has_cost_parity:
            raise NotAvailable(f"{self.puzzle.name} has no parity to round to; use integer (--rounding integer)")

    @property
    def puzzle(self) -> Problem:
        """Whose states it takes."""
        return self.network.puzzle

    @property
    def name(self) -> str:
        """The network's, and the method."""
        return f"{self.network.name}, {self.calibration.method}"

    @property
    def fingerprint(self) -> str:
        """Of its puzzle."""
        return self.network.fingerprint

    @property
    def guarantee(self) -> Guarantee:
        """By the calibration."""
        return self.calibration.guarantee

    @property
    def rounding(self) -> Rounding:
        """Applied last."""
        return self.calibration.rounding

    @cached_property
    def _index(self) -> U64:
        keys = self.calibration.exceptions
        return sealed(build_index(keys, self.calibration.exception_costs, slots_for(len(keys))))

    @cached_property
    def margins(self) -> Margins:
        """[1], or [K] with one for each level; with groups, a row for each."""
        family, eta = self.network.family, self.calibration.arithmetic_margin
        if self.calibration.group_margins:
            return frozen(np.stack([family.margins(t + eta) for t in self.calibration.group_margins]))
        t = np.array(self.calibration.level_margins or [self.calibration.margin]) + eta
        return frozen(family.margins(t))

    def __repr__(self) -> str:
        return one_line(self)

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        return self.from_raw(self.network.raw(states), states)

    def guide(self) -> Calibrated | None:
        """For searches, if the network has one."""
        learned = guide_of(self.network)
        if not isinstance(learned, Uncalibrated):
            return None
        margins = np.asarray(np.atleast_2d(self.margins), dtype=np.float64)
        margins = np.broadcast_to(margins, (len(margins), max(1, self.network.family.levels)))
        exceptions = costs_of(packing_of(self.puzzle.table), self.calibration.exceptions, self._index)
        rounding = rounding_up(self.puzzle, self.rounding)
        has_exceptions = len(self.calibration.exceptions) > 0
        return Calibrated(learned, frozen(margins), rounding, has_exceptions, exceptions)

    def from_raw(self, raw: F32, states: States) -> F32:
        """float32[B], where the network's answers are known already."""
        family, margins = self.network.family, self.margins
        if self.calibration.group_margins:
            margins = margins[family.groups(raw, len(margins))]
            margins = margins if family.levels else margins[:, 0]
        values = np.maximum(base(self.puzzle)(states), family.lowered(raw, margins))
        values = round_up(self.puzzle, self.calibration.rounding, values, states)
        if len(self.calibration.exceptions):
            _, listed = look_up(self.calibration.exceptions, self._index, pack(self.puzzle.table, states), -1)
            values = np.where(listed >= 0, listed, values)
        return np.where(is_goal(self.puzzle.table, states), 0, values).astype(np.float32)
