"""The open list of one search on a device that takes many nodes at once."""

from heapq import heappop, heappush

import torch
from torch import Tensor

from undershoot.arrays import I64
from undershoot.search.device.open_lists import FIRST_ENTRIES, FIRST_SPAN, Pushed, Taken, span_for

MOST_RUNS = 1 << 9
"""That a step may take from when it is replayed."""


class Runs:
    """For one search: entries in the order in which they were pushed, those of one bucket and step next to each other as a run.

    Which runs there are, the processor knows: it reads how many entries of each bucket a step pushed.
    """

    def __init__(self, per_step: int, deep: bool, device: torch.device, entries: int = FIRST_ENTRIES) -> None:
        self.per_step, self.deep, self.device = per_step, deep, device
        self.f_span = self.g_span = FIRST_SPAN
        self.node = torch.zeros(entries, dtype=torch.int32, device=device)
        self.used = 0
        self.end = torch.zeros((), dtype=torch.int64, device=device)
        """int64[]: `used` as the device knows it; between steps they are equal."""
        self.runs: dict[tuple[int, int], list[tuple[int, int]]] = {}
        """By f and g, or f and -g for the largest first: (first, end) of runs, the oldest first."""
        self.order: list[tuple[int, int]] = []
        """A heap of the keys of `runs`."""

    @property
    def bytes(self) -> int:
        """Of the entries."""
        return 4 * self.node.numel()

    def bytes_with(self, more: int, f: int, g: int) -> int:
        """While they are moved."""
        span_for(self.f_span, f)
        return self.bytes if self.used + more <= len(self.node) else self.bytes + 4 * self._entries_for(more)

    def _entries_for(self, more: int) -> int:
        return max(len(self.node) * 3 // 2, self.used + more)

    def make_room(self, more: int, f: int, g: int) -> None:
        """A longer column."""
        self.f_span, self.g_span = span_for(self.f_span, f), span_for(self.g_span, g)
        if self.used + more > len(self.node):
            longer = torch.zeros(self._entries_for(more), dtype=torch.int32, device=self.device)
            longer[: self.used] = self.node[: self.used]
            self.node = longer

    def push(self, pushed: Pushed) -> None:
        """It waits for the device once."""
        self.note(self.place(pushed).cpu().numpy())

    def place(self, pushed: Pushed) -> Tensor:
        """Write the entries, and return how many there are in each bucket, int64[F * G]; `note` must come to know that."""
        buckets = self.f_span * self.g_span
        bucket = torch.where(pushed.is_meant, pushed.f * self.g_span + pushed.g, buckets)[0]
        key = bucket.to(torch.int16 if buckets < 1 << 15 else torch.int32)
        in_order, order = torch.sort(key, stable=True)
        self.node[self.end + torch.arange(len(order), device=self.device)] = pushed.number[0, order].int()
        self.end += pushed.is_meant.sum()
        ends = torch.searchsorted(in_order, torch.arange(buckets, device=self.device, dtype=key.dtype), right=True)
        return torch.diff(ends, prepend=ends.new_zeros(1))

    def note(self, counts: I64) -> None:
        """The runs that were written. counts: see `place`."""
        for bucket in counts.nonzero()[0].tolist():
            f, g = divmod(bucket, self.g_span)
            end = self.used + int(counts[bucket])
            self._runs_at((f, -g if self.deep else g)).append((self.used, end))
            self.used = end

    def _runs_at(self, place: tuple[int, int]) -> list[tuple[int, int]]:
        if place not in self.runs:
            self.runs[place] = []
            heappush(self.order, place)
        return self.runs[place]

    def take(self, most: Tensor, highest: int) -> Taken:
        """The best, run by run."""
        plan = self.plan(highest)
        count = sum(part[-1] for part in plan)
        if not plan:
            nothing = torch.zeros(1, 1, dtype=torch.int64, device=self.device)
            return Taken(nothing, nothing, nothing, nothing > 0)
        return self.planned(torch.tensor(plan).to(self.device, non_blocking=True), count)

    def plan(self, wanted: int) -> list[list[int]]:
        """Take the best out, run by run: the first entry, in which direction they follow, f, g, and how many."""
        plan = []
        while wanted and self.order:
            place = self.order[0]
            runs = self.runs[place]
            first, end = runs.pop(-1 if self.deep else 0)
            count = min(wanted, end - first)
            f, g = place[0], abs(place[1])
            if self.deep:
                plan.append([end - 1, -1, f, g, count])
                rest = (first, end - count)
            else:
                plan.append([first, 1, f, g, count])
                rest = (first + count, end)
            if rest[0] < rest[1]:
                runs.insert(len(runs) if self.deep else 0, rest)
            if not runs:
                heappop(self.order)
                del self.runs[place]
            wanted -= count
        return plan

    def put_back(self, plan: list[list[int]]) -> None:
        """What was taken out, as if it never had been."""
        for start, direction, f, g, count in reversed(plan):
            runs = self._runs_at((f, -g if self.deep else g))
            if direction < 0:
                runs.append((start + 1 - count, start + 1))
            else:
                runs.insert(0, (start, start + count))

    def planned(self, plan: Tensor, most: int) -> Taken:
        """The entries of a plan, int64[R, 5], filled up with zeros if need be, as so many rows."""
        ends = plan[:, 4].cumsum(0)
        row = torch.arange(most, device=self.device)
        run = torch.searchsorted(ends, row, right=True).clamp_max(len(plan) - 1)
        start, direction, f, g, count = plan[run].T
        is_there = row < ends[-1]
        entry = torch.where(is_there, start + direction * (row - ends[run] + count), 0)
        return Taken(self.node[entry].long()[None], f[None], g[None], is_there[None])

    def clear(self, lanes: Tensor) -> None:
        """Nothing is open."""
        self.used = 0
        self.end.zero_()
        self.runs.clear()
        self.order.clear()
