"""A network on a pattern: what it says of every arrangement, in whole numbers."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from undershoot.arrays import F32, I64, U8, freeze_arrays
from undershoot.errors import UndershootError
from undershoot.heuristics.whole_numbers import WholeNetwork
from undershoot.kernels.encodings import read
from undershoot.kernels.networks import Perceptron, outputs, perceptron
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.residuals import Residuals, code_counts, codes_at, encoding_of, sums_of
from undershoot.puzzles.encoding import Encoding

MOST_LEVELS = 255
"""That a network may have, and that a listed arrangement may stand above h0's shares: searches remember them in a byte."""


@dataclass(frozen=True, eq=False)
class PatternNetwork:
    """h0's shares, and a step for each level from the first on whose sum lies above its threshold; some may be listed."""

    pattern: Pattern
    network: WholeNetwork
    residuals: Residuals
    thresholds: tuple[int, ...]
    pairs: bool = True
    """Whether it sees pairs of pieces."""
    listed: I64 = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """int64[E], rising: the numbers of arrangements that are looked up."""
    listed_costs: U8 = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    """uint8[E]: what is said of them."""

    def __post_init__(self) -> None:
        freeze_arrays(self)
        levels = self.network.widths[-1]
        if len(self.thresholds) != levels or levels > MOST_LEVELS:
            raise UndershootError(
                f"{len(self.thresholds)} thresholds came for {levels} levels; at most {MOST_LEVELS} are allowed"
            )
        if self.network.widths[0] != self.encoding.width:
            raise UndershootError(
                f"the network takes {self.network.widths[0]} inputs, but arrangements of this pattern are encoded in "
                f"{self.encoding.width}; it belongs to another pattern"
            )
        counts = code_counts(self.pattern.folded)
        if self.residuals.share.shape != (len(counts), max(counts)) or self.residuals.step < 1:
            raise UndershootError(
                f"h0's shares came for {self.residuals.share.shape} pieces and codes; this pattern has others"
            )
        size, numbers = int(self.pattern.folded.size), self.listed
        if numbers.ndim != 1:
            raise UndershootError(f"listed arrangements are a row of numbers; an array of {numbers.ndim} axes came")
        # Compared, not subtracted: differences of what a file holds may wrap around.
        is_in_order = bool((numbers[1:] > numbers[:-1]).all() and ((numbers >= 0) & (numbers < size)).all())
        if numbers.dtype != np.int64 or numbers.shape != self.listed_costs.shape or not is_in_order:
            raise UndershootError(f"listed arrangements are rising numbers below {size:,}, each with a cost")
        above = self.listed_costs.astype(np.int64) - sums_of(self.residuals.share, self.listed_codes)
        if (above < 0).any() or (above % self.residuals.step).any() or (above > MOST_LEVELS * self.residuals.step).any():
            raise UndershootError("a listed arrangement costs what is no whole number of steps above h0's shares")

    @cached_property
    def encoding(self) -> Encoding:
        """How it sees an arrangement."""
        return encoding_of(self.pattern, self.pairs)

    @property
    def sees_pairs(self) -> bool:
        """A single piece has none."""
        return self.encoding.reading is not None and self.encoding.reading.pairs

    @cached_property
    def listed_codes(self) -> U8:
        """uint8[E, k]."""
        return codes_at(self.pattern.folded, self.listed)

    @cached_property
    def listed_levels(self) -> I64:
        """int64[E]: what is said of them, in steps above h0's shares."""
        above = self.listed_costs.astype(np.int64) - sums_of(self.residuals.share, self.listed_codes)
        return np.asarray(above // self.residuals.step, dtype=np.int64)

    @cached_property
    def _compiled(self) -> Perceptron:
        whole = self.network
        return perceptron(self.encoding.features, whole.weights, whole.biases, whole.scales[:-1])

    def sums(self, codes: U8) -> F32:
        """float32[B, levels], whole. codes: uint8[B, k]."""
        return outputs(self._compiled, read(self.encoding, codes))

    def values(self, numbers: I64) -> I64:
        """int64[B]: of the arrangements with these numbers."""
        codes = codes_at(self.pattern.folded, numbers)
        passed = self.sums(codes) > np.array(self.thresholds, dtype=np.float32)
        levels = np.where(passed.all(axis=1), passed.shape[1], passed.argmin(axis=1))
        values = np.asarray(sums_of(self.residuals.share, codes) + self.residuals.step * levels, dtype=np.int64)
        if len(self.listed):
            at = np.minimum(np.searchsorted(self.listed, numbers), len(self.listed) - 1)
            values = np.where(self.listed[at] == numbers, self.listed_costs[at], values)
        return values
