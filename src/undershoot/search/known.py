"""What searches of one instance know together: the best solution, the best bound, and what of the limits is left."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Condition, Event
from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, States
from undershoot.kernels.cpu import solution_costs
from undershoot.puzzles.problem import Problem
from undershoot.search.options import SearchOptions
from undershoot.search.results import Status
from undershoot.search.shares import Shares, Who

NO_COST = 2**40
"""Of no solution at all."""
PATIENCE, PATIENT_SHARE = 2.0, 0.05
"""Seconds after which a proof is likely to take long, and the share of a limit of time that is waited at most."""


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
        self,
        puzzle: Problem,
        start: States,
        lower: int,
        options: SearchOptions,
        stopped: Event | None = None,
        who: Sequence[Who] = (Who.GUIDED,),
    ) -> None:
        """stopped: set by others to end the search. who: searches."""
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
        self.shares = Shares(options.max_expanded, who)
        self.searching = set(who)
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
    def takes_long(self) -> bool:
        """Whether the proof is likely to."""
        limit = self.options.max_seconds
        return self.seconds >= (PATIENCE if limit is None else min(PATIENCE, PATIENT_SHARE * limit))

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

    def reserve(self, size: int, who: Who = Who.GUIDED) -> int:
        """So many expansions may be made, of those that were asked for; they are counted already."""
        with self.changed:
            size = self.shares.take(who, size)
            self.counts["expanded"] += size
            if not self.shares.has(who):
                self.changed.notify_all()  # others may wait for that
        return size

    def wait_for_expansions(self, who: Who, between: float = 0.05) -> None:
        """Until something is left of its share of the limit, or it is over; `between`: see `next_after`."""
        with self.changed:
            while not self.shares.has(who) and self.status is None:
                if self.shares.is_spent:
                    self.end(Status.BUDGET)
                else:
                    self.changed.wait(between)
                    self._look_at_clock()

    def wait_until_long(self, between: float = 0.02) -> None:
        """Until the proof is likely to take long, its share of the limit is used up, or it is over."""
        with self.changed:
            while self.status is None and self.shares.has(Who.TREE) and not self.takes_long:
                self.changed.wait(between)
                self._look_at_clock()

    def leave(self, who: Who) -> None:
        """One of the searches has nothing more to do. IDA* leaves before both bounds meet only if costs are too high for it."""
        with self.changed:
            self.shares.leave(who)
            self.searching.discard(who)
            if not self.searching:
                self.end(Status.COST)
            self.changed.notify_all()

    def count(self, who: Who = Who.GUIDED, **more: int) -> None:
        """Work that was done, less what was counted already; of what is stored, the most at a time."""
        with self.changed:
            self.shares.give_back(who, -more.get("expanded", 0))
            for name, number in more.items():
                self.counts[name] = max(self.counts[name], number) if name == "stored" else self.counts[name] + number


class Turns:
    """For searches that share a thread: one of them works at a time, and of those that wait who has worked least is next.

    What counts is seconds, not turns: who was held up, or whose turns are short, catches up.
    """

    def __init__(self) -> None:
        self.used: dict[Who, float] = dict.fromkeys(Who, 0.0)
        """Seconds, times what they are charged with."""
        self.waiting: list[Who] = []
        self.holder: Who | None = None
        self.since = self._charged = 0.0
        self.changed = Condition()

    @contextmanager
    def taken(self, who: Who, charge: float = 1.0, keep: float = 0.0) -> Iterator[None]:
        """Wait for one's turn, which lasts until the end of what is within. charge: for each second. keep: seconds that a turn
        lasts at least; until then it is kept for who comes back for it, and `release` ends it."""
        self._take(who)
        try:
            yield
        finally:
            with self.changed:
                now = time.perf_counter()
                self.used[who] += charge * (now - self._charged)
                self._charged = now
            if now - self.since >= keep:
                self.release(who)

    def _take(self, who: Who) -> None:
        with self.changed:
            if self.holder is not who:
                self.waiting.append(who)
                self.changed.wait_for(lambda: self.holder is None and min(self.waiting, key=self._used) is who)
                self.waiting.remove(who)
                self.holder, self.since = who, time.perf_counter()
            self._charged = time.perf_counter()

    def _used(self, who: Who) -> float:
        return self.used[who]

    def release(self, who: Who) -> None:
        """A turn that was kept ends."""
        with self.changed:
            if self.holder is who:
                self.holder = None
                self.changed.notify_all()
