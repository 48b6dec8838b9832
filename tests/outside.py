"""A heuristic that searches must ask in batches, though it could be inside their loop."""

from dataclasses import dataclass

from undershoot.arrays import F32, States
from undershoot.guarantees import Guarantee, Heuristic, Rounding


@dataclass(frozen=True, eq=False)
class Outside:
    """Another heuristic without its guide."""

    inner: Heuristic

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint

    @property
    def guarantee(self) -> Guarantee:
        return self.inner.guarantee

    @property
    def rounding(self) -> Rounding:
        return self.inner.rounding

    def __call__(self, states: States) -> F32:
        return self.inner(states)
