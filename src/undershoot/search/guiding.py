"""The guided half of two searches: whatever finds solutions, in turns; most of them for what found the last one."""

import time
from collections.abc import Iterator
from typing import NamedTuple

from undershoot.search.known import NO_COST, Known, Turns
from undershoot.search.shares import Who

MOST_TURNS = 3
"""Turns that the part which found the last solution has for one of each other's."""


class Pace(NamedTuple):
    """How much of the time is for solutions. A turn of any proof takes 0.02 s."""

    before: float
    """Seconds of a turn, before there is a solution."""
    later: float
    """And after it."""
    charge: float
    """What is charged for each second."""
    charge_after: float
    """The same, from the first solution on until the proof takes long, since one that ends soon needs no cheaper solutions."""
    charge_late: float
    """And from then on."""


ON_ONE_CORE = Pace(0.03, 0.004, 2.0, 5.0, 1.2)
"""Beside two proofs, each of which gets more than a third."""
ON_CORES = Pace(0.03, 0.004, 2.0, 5.0, 0.65)
"""On the first of several threads, of which A* gets more than a third; IDA* has the others."""
ON_DEVICE = Pace(0.03, 0.02, 1.0, 3.0, 1.0)
"""Beside one, which gets half."""


class Guided:
    """Parts are iterators that search for a short while at a time."""

    def __init__(self, known: Known, parts: list[Iterator[None]], turns: Turns, pace: Pace = ON_ONE_CORE) -> None:
        self.known, self.parts, self.turns, self.pace = known, parts, turns, pace

    def search(self) -> None:
        """Until it is over, or no part has anything more to try."""
        while self.parts and not self.known.is_over:
            for part in list(self.parts):
                before = self.known.cost
                turns = MOST_TURNS if part is self.parts[0] else 1
                if not all(self._turn(part) for _ in range(turns)):
                    self.parts.remove(part)
                elif self.known.cost < before:
                    self.parts = [part, *(other for other in self.parts if other is not part)]
                    break

    def _turn(self, part: Iterator[None]) -> bool:
        """Let a part search for one turn; whether there is more to do."""
        self.known.wait_for_expansions(Who.GUIDED)
        with self.turns.taken(Who.GUIDED, self._charge()):
            before, until = self.known.cost, time.perf_counter() + self._seconds()
            while time.perf_counter() < until and not self.known.is_over:
                if next(part, self) is self:
                    return False
                if self.known.cost < before:
                    break
        return True

    def _seconds(self) -> float:
        return self.pace.before if self.known.cost == NO_COST else self.pace.later

    def _charge(self) -> float:
        if self.known.takes_long:
            return self.pace.charge_late
        return self.pace.charge if self.known.cost == NO_COST else self.pace.charge_after
