"""A network moved down so far that something is known about it."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from undershoot.arrays import F32, U16, U64, Keys, States
from undershoot.errors import NotAvailable, UndershootError
from undershoot.guarantees import Guarantee, Rounding
from undershoot.heuristics.analytic import base
from undershoot.heuristics.combined import round_up
from undershoot.heuristics.families import groups_of, lowered
from undershoot.heuristics.neural import LearnedHeuristic
from undershoot.kernels.cpu import is_goal, pack
from undershoot.oracles.state_index import build_index, look_up, slots_for
from undershoot.puzzles.puzzle import Puzzle

FLOAT_MARGIN = 1e-3
"""What floating-point sums may differ by between machines, and much more; added to every margin of a float network."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far down, how it is rounded, and what is known then."""

    method: str
    guarantee: Guarantee
    margin: float = 0.0
    """t of h_t, see `families`. May be negative."""
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

    @property
    def has_several_margins(self) -> bool:
        """One for each group, or one for each level."""
        return bool(self.group_margins or self.level_margins)

    def margins(self, raw: F32) -> F32:
        """t as `lowered` takes it, rounded up so that single precision takes nothing back."""
        t = np.array(self.level_margins or self.group_margins or [self.margin], dtype=np.float64) + self.arithmetic_margin
        single = t.astype(np.float32)
        single = np.where(single < t, np.nextafter(single, np.float32(np.inf)), single)
        if not self.group_margins:
            return single
        return single[groups_of(raw, len(single))].reshape(len(raw), *[1] * (raw.ndim - 1))


@dataclass(frozen=True, eq=False)
class CalibratedHeuristic:
    """round_up(max(h0, network - margin)), goals 0, listed states as listed."""

    network: LearnedHeuristic
    calibration: Calibration

    def __post_init__(self) -> None:
        if self.calibration.level_margins and not self.network.has_levels:
            raise UndershootError("the calibration has a margin for each level, but the network has no levels")
        if self.calibration.rounding is Rounding.PARITY and not self.puzzle.has_cost_parity:
            raise NotAvailable(f"{self.puzzle.name} has no parity to round to; use integer")

    @property
    def puzzle(self) -> Puzzle:
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
        return build_index(keys, self.calibration.exception_costs, slots_for(len(keys)))

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        return self.from_raw(self.network.raw(states), states)

    def from_raw(self, raw: F32, states: States) -> F32:
        """float32[B], where the network's answers are known already."""
        values = np.maximum(base(self.puzzle)(states), lowered(raw, self.calibration.margins(raw)))
        values = round_up(self.puzzle, self.calibration.rounding, values, states)
        if len(self.calibration.exceptions):
            _, listed = look_up(self.calibration.exceptions, self._index, pack(self.puzzle.table, states), -1)
            values = np.where(listed >= 0, listed, values)
        return np.where(is_goal(self.puzzle.table, states), 0, values).astype(np.float32)
