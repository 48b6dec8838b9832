"""IDA* as a prover beside searches that share what they know: it ends its iterations at the cost of the best solution."""

from contextlib import AbstractContextManager
from threading import Event
from typing import Any

from undershoot.errors import TooDear
from undershoot.guarantees import Heuristic
from undershoot.search.depth_first import NEVER, CutOff
from undershoot.search.ida import SECONDS_A_SLICE, Deepening, Start
from undershoot.search.known import Known, Turns
from undershoot.search.options import SearchOptions
from undershoot.search.results import Status
from undershoot.search.shares import Who

CHARGE_WITH_OTHERS = 3.0
"""For each second on the shared thread once the proof takes long, where other threads are for it alone."""


class Prover(Deepening):
    """Raises the lower bound with each iteration, and offers what it finds. Limits are those of `known`."""

    def __init__(
        self, known: Known, start: Start, heuristic: Heuristic, guide: Any, threads: int, cut: CutOff, turns: Turns
    ) -> None:
        """heuristic: never overestimates. turns: of those that share its first thread."""
        super().__init__(known.puzzle, start, heuristic, guide, SearchOptions(), threads, cut, Event())
        self.known, self.turns, self.bound = known, turns, 0

    def prove(self) -> None:
        """Search until both bounds meet, a limit strikes, or it turns out that there is no solution."""
        try:
            ending = self.run()
        except TooDear:  # the others may go on
            self.known.leave(Who.TREE)
            return
        finally:
            self.turns.release(Who.TREE)
        if self.actions is not None:
            self.known.offer(self.actions)
        if ending.status is Status.UNSOLVABLE:
            self.known.end(Status.UNSOLVABLE)

    def turn(self, worker: int) -> AbstractContextManager[None]:
        """See `Deepening`. The turn is kept across iterations and subtrees, many of which are short."""
        if not self.known.shares.has(Who.TREE):
            self.turns.release(Who.TREE)
            self.known.wait_for_expansions(Who.TREE)
        if worker:
            return super().turn(worker)
        charge = CHARGE_WITH_OTHERS if self.threads > 1 and self.known.takes_long else 1.0
        return self.turns.taken(Who.TREE, charge, SECONDS_A_SLICE)

    def rest(self, worker: int) -> None:
        """See `Deepening`."""
        if worker == 0:
            self.turns.release(Who.TREE)

    def _iterate(self, bound: int) -> tuple[int, int]:
        self.bound = bound
        next_bound, next_base = super()._iterate(bound)
        if not self._is_vain():
            return next_bound, next_base
        # It may not have ended, and then nothing follows from what it cut off; but from what the other search has proven.
        return min(self.known.lower, NEVER), NEVER

    def _is_vain(self) -> bool:
        return self.known.lower > self.bound

    def _raise_bound(self, lower: int) -> None:
        super()._raise_bound(lower)
        self.known.raise_bound(self.lower)

    def _is_over(self) -> bool:
        return self.known.is_over or super()._is_over()

    def _look_at_limits(self, goes_on: bool) -> None:
        pass  # `known` does

    def _reserve(self, size: int) -> int:
        size = self.known.reserve(size, Who.TREE)
        with self.lock:
            self.counts["expanded"] += size
        return size

    def _count(self, done: dict[str, int], reserved: int) -> None:
        super()._count(done, reserved)
        made = done["generated"]
        self.known.count(Who.TREE, expanded=done["expanded"] - reserved, generated=made, evaluated=made)
