"""What two searches of one instance know together: the best solution, the best bound, and what of the limits is left."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, Event
from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, States
from undershoot.kernels.cpu import solution_costs
from undershoot.puzzles.problem import Problem
from undershoot.search.options import SearchOptions
from undershoot.search.results import Status

NO_COST = 2**40
"""Of no solution at all."""


class Snapshot(NamedTuple):
    """What was known at one moment."""

    seconds: float
    cost: int
    actions: I32
    lower: int
    status: Status | None
    counts: dict[str, int]


class Known:
    """Threads share it, and whoever waits for `changed` is told when a bound has moved or the search has ended."""

    def __init__(
        self, puzzle: Problem, start: States, lower: int, options: SearchOptions, stopped: Event | None = None
    ) -> None:
        """stopped: set by others to end the search."""
        self.puzzle = puzzle
        self.start = start
        self.options = options
        self.began = time.perf_counter()
        self.lower = lower
        """No solution costs less."""
        self.cost = NO_COST
        self.actions: I32 = np.zeros(0, dtype=np.int32)
        self.parity = int(puzzle.cost_parity(start)[0]) if puzzle.has_cost_parity else None
        self.counts = dict.fromkeys(("expanded", "generated", "evaluated", "stored"), 0)
        self.status: Status | None = None
        """How the search ended; None as long as it goes on."""
        self.changed = Condition()
        self.stopped = stopped or Event()

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to do, or no more time to do it in. Once it is, it stays so."""
        self._look_at_clock()
        return self.status is not None

    def _look_at_clock(self) -> None:
        limit = self.options.max_seconds
        if self.status is None and (self.stopped.is_set() or (limit is not None and self.seconds >= limit)):
            self.end(Status.TIME)

    def begin(self) -> None:
        """Limits count from now on."""
        self.began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.perf_counter() - self.began

    @property
    def most_useful_cost(self) -> int:
        """What the next solution may cost, at most, to be better than the best."""
        return self.cost - (1 if self.parity is None else 2)

    def next_after(self, last: Snapshot | None, between: float) -> Snapshot:
        """Wait until a bound has moved, or it is over. between: seconds after which the clock is looked at again."""
        with self.changed:
            while last is not None and (self.cost, self.lower, self.status) == (last.cost, last.lower, last.status):
                self.changed.wait(between)
                self._look_at_clock()
            return Snapshot(self.seconds, self.cost, self.actions, self.lower, self.status, dict(self.counts))

    def end(self, status: Status) -> None:
        """Stop both searches; the first reason counts."""
        with self.changed:
            self.status = self.status or status
            self.changed.notify_all()

    def raise_bound(self, lower: int) -> None:
        """Every solution costs at least so much, which is proven."""
        with self.changed:
            if self.parity is not None and lower < NO_COST:
                lower += (lower ^ self.parity) & 1
            self.lower = max(self.lower, lower)
            self._settle()

    def offer(self, actions: I32) -> bool:
        """A solution, perhaps. It counts if it is one, which playing it shows, and cheaper than the best so far."""
        actions = np.ascontiguousarray(actions, dtype=np.int32)
        ends = np.array([len(actions)], dtype=np.int64)
        cost = int(solution_costs(self.puzzle.table, self.start, actions, ends)[0])
        with self.changed:
            if not 0 <= cost < self.cost:
                return False
            self.cost, self.actions = cost, actions
            self._settle()
            return True

    def _settle(self) -> None:
        if self.cost <= self.lower:
            self.status = Status.SOLVED  # also if a limit has struck meanwhile
        self.changed.notify_all()

    def reserve(self, size: int) -> int:
        """So many expansions may be made, of those that were asked for; they are counted already. At most half of what is
        left: some of them may be given back, and others must not find nothing meanwhile."""
        limit = self.options.max_expanded
        with self.changed:
            if limit is not None:
                left = max(0, limit - self.counts["expanded"])
                size = min(size, -(-left // 2))
            self.counts["expanded"] += size
        if size == 0:
            self.end(Status.BUDGET)
        return size

    def count(self, **more: int) -> None:
        """Work that was done; of what is stored, the most at a time."""
        with self.changed:
            for name, number in more.items():
                self.counts[name] = max(self.counts[name], number) if name == "stored" else self.counts[name] + number


class Turns:
    """For searches that share a thread: one of them works at a time, and who has waited longest is next."""

    def __init__(self) -> None:
        self.waiting: deque[object] = deque()
        self.changed = Condition()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for one's turn, which lasts until the end of what is within."""
        mine = object()
        with self.changed:
            self.waiting.append(mine)
            self.changed.wait_for(lambda: self.waiting[0] is mine)
        try:
            yield
        finally:
            with self.changed:
                self.waiting.popleft()
                self.changed.notify_all()
