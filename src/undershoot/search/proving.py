"""IDA* as the prover of two searches that share what they know: it ends its iterations at the cost of the best solution."""

from contextlib import AbstractContextManager
from threading import Event
from typing import Any

from undershoot.guarantees import Heuristic
from undershoot.search.depth_first import COUNTERS, CutOff
from undershoot.search.ida import Deepening, Start
from undershoot.search.known import Known, Turns
from undershoot.search.options import SearchOptions
from undershoot.search.results import Status


class Prover(Deepening):
    """Raises the lower bound with each iteration, and offers what it finds. Limits are those of `known`."""

    def __init__(
        self, known: Known, start: Start, heuristic: Heuristic, guide: Any, threads: int, cut: CutOff, turns: Turns
    ) -> None:
        """heuristic: never overestimates. turns: of those that share its first thread."""
        super().__init__(known.puzzle, start, heuristic, guide, SearchOptions(), threads, cut, Event())
        self.known, self.turns = known, turns

    def compile(self) -> None:
        """Compile everything, or fetch it from the cache, so that no limit is charged for it."""
        self._iterate_alone(-1)
        self.counts = dict.fromkeys(COUNTERS, 0)

    def prove(self) -> None:
        """Search until both bounds meet, a limit strikes, or it turns out that there is no solution."""
        ending = self.run()
        if self.actions is not None:
            self.known.offer(self.actions)
        if ending.status is Status.UNSOLVABLE:
            self.known.end(Status.UNSOLVABLE)

    def turn(self, worker: int) -> AbstractContextManager[None]:
        """See `Deepening`."""
        return self.turns.taken() if worker == 0 else super().turn(worker)

    def _raise_bound(self, lower: int) -> None:
        super()._raise_bound(lower)
        self.known.raise_bound(self.lower)

    def _is_over(self) -> bool:
        return self.known.is_over or super()._is_over()

    def _look_at_limits(self, goes_on: bool) -> None:
        pass  # `known` does

    def _reserve(self, size: int) -> int:
        size = self.known.reserve(size)
        with self.lock:
            self.counts["expanded"] += size
        return size

    def _count(self, done: dict[str, int], reserved: int) -> None:
        super()._count(done, reserved)
        self.known.count(expanded=done["expanded"] - reserved, generated=done["generated"], evaluated=done["generated"])
