"""A network on a pattern: what it says of every arrangement, in whole numbers."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from undershoot.arrays import I64
from undershoot.errors import UndershootError
from undershoot.heuristics.whole_numbers import WholeNetwork
from undershoot.kernels.encodings import read
from undershoot.kernels.networks import Perceptron, outputs, perceptron
from undershoot.pattern_tables.making import UNREACHED
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.residuals import Residuals, codes_of, encoding_of, sums_of
from undershoot.pattern_tables.tables import PatternTable
from undershoot.puzzles.encoding import Encoding

AT_ONCE = 1 << 15


@dataclass(frozen=True, eq=False)
class PatternNetwork:
    """h0's shares, and a step for each level from the first on whose sum lies above its threshold."""

    pattern: Pattern
    network: WholeNetwork
    residuals: Residuals
    thresholds: tuple[int, ...]
    pairs: bool = True
    """Whether it sees pairs of pieces."""

    def __post_init__(self) -> None:
        if len(self.thresholds) != self.network.widths[-1]:
            raise UndershootError(f"{len(self.thresholds)} thresholds came for {self.network.widths[-1]} levels")
        if self.network.widths[0] != self.encoding.width:
            raise UndershootError(
                f"the network takes {self.network.widths[0]} inputs, but arrangements of this pattern are encoded in "
                f"{self.encoding.width}; it belongs to another pattern"
            )

    @cached_property
    def encoding(self) -> Encoding:
        """How it sees an arrangement."""
        return encoding_of(self.pattern, self.pairs)

    @property
    def sees_pairs(self) -> bool:
        """A single piece has none."""
        return self.encoding.reading is not None and self.encoding.reading.pairs

    @cached_property
    def _compiled(self) -> Perceptron:
        whole = self.network
        return perceptron(self.encoding.features, whole.weights, whole.biases, whole.scales[:-1])

    def values(self, first: int, count: int) -> I64:
        """int64[count]: of the arrangements from number `first` on."""
        codes = codes_of(self.pattern.folded, first, count)
        passed = outputs(self._compiled, read(self.encoding, codes)) > np.array(self.thresholds, dtype=np.float32)
        levels = np.where(passed.all(axis=1), passed.shape[1], passed.argmin(axis=1))
        return np.asarray(sums_of(self.residuals.share, codes) + self.residuals.step * levels, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PatternFindings:
    """What a check of every arrangement found."""

    arrangements: int
    """That have a solution."""
    violations: int
    """With a value above what they cost."""
    first: int | None
    """The number of the first of these."""
    mean: float
    """Of the values."""
    mean_cost: float


def check_every_arrangement(
    network: PatternNetwork, table: PatternTable, threads: int = 1, progress: Callable[[int, int], None] | None = None
) -> PatternFindings:
    """Compare every value with the table, which was made and verified here, or was checked by who made it.

    A network that is nowhere above the cost of an arrangement is nowhere above that of a state that looks like it.
    """
    if table.pattern.followed != network.pattern.followed or table.pattern.is_additive != network.pattern.is_additive:
        raise UndershootError("this table is of another pattern than the network")
    if table.pattern.pieces.table.fingerprint != network.pattern.pieces.table.fingerprint:
        raise UndershootError("this table is of another puzzle than the network")
    entries = table.unpacked()
    starts = range(0, len(entries), AT_ONCE)

    def compare(first: int) -> tuple[int, int, int, int, int]:
        costs = entries[first : first + AT_ONCE].astype(np.int64)
        values, has_solution = network.values(first, len(costs)), costs < UNREACHED
        above = np.flatnonzero((values > costs) & has_solution)
        wrong = first + int(above[0]) if len(above) else -1
        return int(has_solution.sum()), len(above), wrong, int(values[has_solution].sum()), int(costs[has_solution].sum())

    total = np.zeros(5, dtype=np.int64)
    wrong: int | None = None
    with ThreadPoolExecutor(threads) as pool:
        for done, part in enumerate(pool.map(compare, starts), start=1):
            wrong = part[2] if wrong is None and part[2] >= 0 else wrong
            total += np.array(part)
            if progress is not None:
                progress(min(done * AT_ONCE, len(entries)), len(entries))
    count, violations, _, values, costs = total.tolist()
    return PatternFindings(count, violations, wrong, values / count, costs / count)
