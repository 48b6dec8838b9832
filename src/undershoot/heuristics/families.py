"""What the outputs of a network say about the cost, lowered by a margin t.

One number h: h_t = h - t. Levels, output k large where the cost is at least k, for k from 1 to K: h_t = how many levels from
the first on lie above t. Both fall as t grows. The score of a state and a label is the smallest t for which h_t is at most the
label.

The outputs of a network of whole numbers are its whole sums, below 2^24; a sum of 1 stands for the output's scale. Margins are
then whole thresholds on whole sums: no rounding follows the sums, so what lies exactly on the edge does so on every device.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, inf, isinf
from typing import Any

import numpy as np
import numpy.typing as npt

from undershoot.arrays import F32, I64, AnyArray

Margins = npt.NDArray[Any]
"""As `Family.lowered` takes them: float32 for floats, whole float64 for whole sums."""
BEYOND = 2**24
"""No whole sum reaches it, either side of 0."""


@dataclass(frozen=True)
class Family:
    """How the outputs of one network are read."""

    levels: int
    """K, or 0 for one number."""
    scales: tuple[float, ...] = ()
    """What a whole sum of 1 stands for, of each output; empty for a network of floats."""

    def values(self, raw: F32) -> F32:
        """float32[B]: h_0. raw: float32[B] or float32[B, K]."""
        if self.levels:
            return self.lowered(raw, np.zeros(1, dtype=np.float32)).astype(np.float32)
        return np.asarray(raw * np.float32(self.scales[0]) if self.scales else raw, dtype=np.float32)

    def margins(self, t: Any) -> Margins:
        """What `lowered` takes for margins t in units of cost, one or several; rounded up where they must be rounded."""
        given = [t] if np.ndim(t) == 0 else list(t)
        if not self.scales:
            exact = np.array(given, dtype=np.float64)
            single = exact.astype(np.float32)
            return np.where(single < exact, np.nextafter(single, np.float32(np.inf)), single)
        if not self.levels:
            return np.array([_threshold(one, self.scales[0], ceil) for one in given], dtype=np.float64)
        # A whole sum lies above t / scale exactly if it lies above that rounded down.
        if len(given) == self.levels:
            return np.array([_threshold(one, s, floor) for one, s in zip(given, self.scales, strict=True)], dtype=np.float64)
        if len(given) > 1:
            raise ValueError("margins of levels are one, or one for each")
        return np.array([_threshold(given[0], scale, floor) for scale in self.scales], dtype=np.float64)

    def lowered(self, raw: F32, margins: Margins) -> AnyArray:
        """[B]: h_t; float64 and exact for whole sums. margins: [1] or [B]; for levels [1], [K], [B, 1] or [B, K]."""
        if self.levels:
            passed = raw > margins
            return np.asarray(np.where(passed.all(axis=1), raw.shape[1], passed.argmin(axis=1)), dtype=np.float32)
        if self.scales:
            # 25 bits times 24 bits: float64 holds every such product.
            return np.asarray((raw.astype(np.float64) - margins) * self.scales[0])
        return np.asarray(raw - margins, dtype=np.float32)

    def scores(self, raw: F32, costs: AnyArray) -> AnyArray:
        """float64[B], in units of cost. For levels, the least of those up to the one above the label; minus infinity if there
        is none above."""
        if not self.levels:
            return self._scores_of_number(raw, costs)
        above = np.floor(costs).astype(np.int64)
        inside = np.minimum(above, self.levels - 1)
        scaled = raw.astype(np.float64) * (np.array(self.scales) if self.scales else 1.0)  # exact, as above
        least = np.minimum.accumulate(scaled, axis=1)[np.arange(len(raw)), inside]
        return np.where(above < self.levels, least, -np.inf)

    def _scores_of_number(self, raw: F32, costs: AnyArray) -> AnyArray:
        if not self.scales:
            return raw.astype(np.float64) - costs
        # The least whole T with (sum - T) * scale <= cost is sum - floor(cost / scale).
        scale = Fraction(self.scales[0])
        distinct, which = np.unique(costs, return_inverse=True)
        steps = np.array([float(min(floor(Fraction(float(cost)) / scale), 2 * BEYOND)) for cost in distinct])
        return np.asarray((raw.astype(np.float64) - steps[which]) * self.scales[0])

    def groups(self, raw: F32, count: int) -> I64:
        """int64[B]: the group of each state by what the network says, rounded down, among `count`.

        What is no number is in the first, and lowered it is still none: whoever asked for values refuses it.
        """
        if self.levels:
            said: AnyArray = self.values(raw)
        else:
            said = raw.astype(np.float64) * (self.scales[0] if self.scales else 1.0)
        return np.clip(np.floor(np.where(np.isnan(said), 0, said)), 0, count - 1).astype(np.int64)


def _threshold(t: float, scale: float, rounded: Any) -> float:
    """t / scale as a whole number, exactly; what no sum reaches stands for infinity."""
    if isinf(t):
        return float(BEYOND if t == inf else -BEYOND)
    return float(min(max(rounded(Fraction(t) / Fraction(scale)), -BEYOND), BEYOND))
