"""What a method of calibration is: what it reads, which labels it takes, how it fits, and what may be said then."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from undershoot.arrays import U16, AnyArray, Keys
from undershoot.calibration.populations import LabelSource, Population
from undershoot.errors import UndershootError
from undershoot.guarantees import Guarantee, Rounding, check_confidence
from undershoot.heuristics.calibrated import FLOAT_MARGIN, Calibration
from undershoot.heuristics.neural import LearnedHeuristic


@dataclass(frozen=True)
class Wanted:
    """What a calibration should reach, and from what.

    Examples:
        >>> from pathlib import Path
        >>> wanted = us.Wanted(alpha=0.1, n=500)
        >>> done = us.calibrate("lights-out-3x3-paper", "conformal", wanted, out=Path("mine"))
        >>> known = done.calibration.guarantee
        >>> known.violation_rate, known.confidence, known.population
        (0.1, 0.95, 'uniform states')
    """

    alpha: float = 0.05
    confidence: float | None = 0.95
    """None: on average over draws (`conformal` and `trajectory`)."""
    n: int = 10_000
    """Labels to fit to."""
    population: Population = Population.UNIFORM
    labels: LabelSource | None = None
    """None: the kind that the method is made for."""
    depths: tuple[int, ...] | None = None
    """Of scrambles; None for 1 to 10, as far as the puzzle has them."""
    rounding: Rounding = Rounding.INTEGER
    listed: float = 0.01
    """`exceptions`: the share of all states that may be listed."""
    ball: int | None = None
    """`exhaustive`: only states within this cost of the goal."""
    seed: int = 0
    threads: int = 1


DRAWN = frozenset({"n", "population", "labels", "depths", "confidence"})
"""What methods read that draw states."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a method found: margins as in `Calibration`, and what is known then."""

    guarantee: Guarantee
    margin: float = 0.0
    group_margins: tuple[float, ...] = ()
    level_margins: tuple[float, ...] = ()
    exceptions: Keys = field(default_factory=lambda: np.zeros((0, 1), dtype=np.uint64))
    exception_costs: U16 = field(default_factory=lambda: np.zeros(0, dtype=np.uint16))
    labels: int = 0
    population: str = ""


@dataclass(frozen=True)
class Calibrator:
    """One method. A file of its own makes it, and a line of the catalogue names it."""

    name: str
    summary: str
    """In a few words: what there is then."""
    reads: frozenset[str]
    """The fields of `Wanted` that it goes by, besides those that all do. (Where no states are drawn to fit to, the population
    is that of the fresh states on which the result is tried.)"""
    takes: frozenset[LabelSource]
    """The labels that it is sound with."""
    fit: Callable[[LearnedHeuristic, Wanted, AnyArray | None], Fitted]
    """From a network or function, what is wanted, and all scores where they are known already; see `scores_of_space`."""
    holds_on_average: bool = False
    """Whether there is a form without a confidence, that holds on average over draws."""
    allows_for_arithmetic: bool = True
    """Whether margins of float networks are enlarged by what sums may differ by."""
    tried_on: Population | None = None
    """Of the fresh states on which the result is tried; None for the population that is wanted."""

    def __call__(self, network: LearnedHeuristic, wanted: Wanted, scores: AnyArray | None = None) -> Calibration:
        """Fit; what does not go together is refused."""
        self._check(wanted)
        found = self.fit(network, wanted, scores)
        return Calibration(
            self.name,
            replace(found.guarantee, provided=network.guarantee.provided),
            found.margin,
            found.group_margins,
            found.level_margins,
            FLOAT_MARGIN if self.allows_for_arithmetic and not network.is_exact else 0.0,
            wanted.rounding,
            found.exceptions,
            found.exception_costs,
            found.labels,
            found.population,
        )

    def _check(self, wanted: Wanted) -> None:
        if wanted.ball is not None and "ball" not in self.reads:
            raise UndershootError(f"a ball (--ball) is for `exhaustive`; `{self.name}` was asked for")
        if wanted.labels is not None and "labels" not in self.reads:
            raise UndershootError(f"`{self.name}` has labels of its own; leave --labels out")
        if wanted.labels is not None and wanted.labels not in self.takes:
            bounds = {LabelSource.SCRAMBLE: "upper bounds (scramble depth)", LabelSource.LOWER: "lower bounds"}[wanted.labels]
            needs = " or ".join(f"--labels {source}" for source in LabelSource if source in self.takes)
            raise UndershootError(f"`{self.name}` is not sound with these labels, which are {bounds}; use {needs}")
        if wanted.confidence is None and "confidence" in self.reads and not self.holds_on_average:
            raise UndershootError(
                f"`{self.name}` has no form that holds on average over draws (confidence 0); "
                "give a --confidence between 0 and 1, or use `conformal`"
            )
        if "confidence" in self.reads:
            check_confidence(wanted.confidence)
