"""How far a search is, for who watches it."""

import time
from collections.abc import Callable
from dataclasses import dataclass

EVERY, SHARE = 0.1, 0.05
"""Seconds between two glimpses, at least, and the share of the time that making them may take."""


@dataclass(frozen=True)
class Glimpse:
    """What is known of a search that is under way."""

    expanded: int
    lower_bound: int
    """No solution is cheaper, as in a `Result`."""
    seconds: float


class Watching:
    """Calls `watch` now and then, so seldom that a search is hardly slower for it."""

    def __init__(self, watch: Callable[[Glimpse], None] | None) -> None:
        self.watch = watch
        self._due = 0.0

    def look(self, glimpse: Callable[[], Glimpse]) -> None:
        """Make a glimpse and show it, if it is time."""
        began = time.perf_counter()
        if self.watch is None or began < self._due:
            return
        self.watch(glimpse())
        now = time.perf_counter()
        self._due = now + max(EVERY, (now - began) / SHARE)
