"""Open lists on a device: nodes by whole f and g, ties as on the processor.

A node that is reached more cheaply is pushed again; what it leaves behind is skipped when it comes up, since the node is closed
or has another g by then. Two kinds: `Stacks` for many searches that take a few nodes each, linked lists that never leave the
device; `Runs` for one search that takes many.
"""

from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from undershoot.errors import UndershootError
from undershoot.kernels.fused import Fused

FIRST_SPAN = 32
MOST_SPAN = 1 << 11
FIRST_ENTRIES = 1 << 12


@dataclass(frozen=True, eq=False)
class Taken:
    """The best nodes of L searches, k for each, the best first."""

    number: Tensor
    """int64[L, k]: nodes."""
    f: Tensor
    """int64[L, k]."""
    g: Tensor
    """int64[L, k]: with which they were pushed."""
    is_there: Tensor
    """bool[L, k]: whether there was one."""


@dataclass(frozen=True, eq=False)
class Pushed:
    """What goes into the open lists of L searches, up to K nodes for each, in this order."""

    number: Tensor
    """int64[L, K]: nodes."""
    f: Tensor
    """int64[L, K]."""
    g: Tensor
    """int64[L, K]."""
    is_meant: Tensor
    """bool[L, K]: the others are left out."""


class Top(NamedTuple):
    """The best node of each of L searches, where it lies in its list: int64[L], and bool[L] whether there is one."""

    bucket: Tensor
    entry: Tensor
    number: Tensor
    f: Tensor
    g: Tensor
    is_there: Tensor


class OpenList(Protocol):
    """Of L searches."""

    @property
    def bytes(self) -> int:
        """What it takes."""

    def bytes_with(self, more: int, f: int, g: int) -> int:
        """What it takes with room for so many entries more, and f and g up to these, while it is moved there."""

    def make_room(self, more: int, f: int, g: int) -> None:
        """For that."""

    def push(self, pushed: Pushed) -> None:
        """Into the lists; there must be room."""

    def take(self, most: Tensor, highest: int) -> Taken:
        """Of each search the best, up to most, int64[L]. highest: the largest of these."""

    def clear(self, lanes: Tensor) -> None:
        """Empty the lists of these searches, int64[E]."""


def span_for(span: int, value: int) -> int:
    """A power of two above the value, and not below `span`."""
    if value >= MOST_SPAN:
        raise UndershootError(f"values of f from {MOST_SPAN:,} on are not searched on a device; leave out --device")
    while span <= value:
        span *= 2
    return span


class Stacks:
    """Linked lists of entries, one for each search, f and g."""

    def __init__(self, lanes: int, per_step: int, deep: bool, device: torch.device, entries: int = FIRST_ENTRIES) -> None:
        """deep: the largest g comes first, and of one g the newest; otherwise the smallest and the oldest."""
        self.lanes, self.per_step, self.deep, self.device = lanes, per_step, deep, device
        self.f_span = self.g_span = FIRST_SPAN
        self.held = torch.zeros(lanes, self.f_span, dtype=torch.int32, device=device)
        """int32[L, F]: entries."""
        self.head = torch.zeros(self._buckets + 1, dtype=torch.int32, device=device)
        """int32[L * F * G + 1]: 1 + the first entry; 0 for none. The last is a place for what is left out."""
        self.tail = torch.zeros(1 if deep else self._buckets + 1, dtype=torch.int32, device=device)
        self.node = torch.zeros(entries + 1, dtype=torch.int32, device=device)
        self.next = torch.zeros(entries + 1, dtype=torch.int32, device=device)
        """int32[entries + 1]: 1 + the entry that follows."""
        self.used = torch.zeros((), dtype=torch.int64, device=device)
        self.used_at_most = 0
        self.lane = torch.arange(lanes, device=device)
        self.kernels = stack_kernels(deep, str(device))

    @property
    def _buckets(self) -> int:
        return self.lanes * self.f_span * self.g_span

    @property
    def bytes(self) -> int:
        """Of all of it."""
        return 4 * sum(part.numel() for part in (self.held, self.head, self.tail, self.node, self.next))

    def bytes_with(self, more: int, f: int, g: int) -> int:
        """With room for more, while one part is there twice."""
        if self.used_at_most + more > len(self.node) - 1:
            self.used_at_most = int(self.used)
        f_span, g_span = span_for(self.f_span, f), span_for(self.g_span, g)
        buckets, entries = self.lanes * f_span * g_span, self._entries_for(more)
        grown = 4 * (self.lanes * f_span + buckets * (1 if self.deep else 2) + 2 * entries)
        twice = 4 * max(self._buckets if buckets > self._buckets else 0, self.used_at_most)
        return grown + twice if grown > self.bytes else self.bytes

    def _entries_for(self, more: int) -> int:
        have = len(self.node) - 1
        return have if self.used_at_most + more <= have else max(2 * have, self.used_at_most + more)

    def make_room(self, more: int, f: int, g: int) -> None:
        """Wider spans, and longer columns."""
        f_span, g_span = span_for(self.f_span, f), span_for(self.g_span, g)
        if (f_span, g_span) != (self.f_span, self.g_span):
            old = (self.lanes, self.f_span, self.g_span)
            self.f_span, self.g_span = f_span, g_span
            self.held = torch.nn.functional.pad(self.held, (0, f_span - old[1]))
            self.head = self._widened(self.head, old)
            self.tail = self.tail if self.deep else self._widened(self.tail, old)
        entries = self._entries_for(more)
        if entries > len(self.node) - 1:
            longer = entries - (len(self.node) - 1)
            self.node = torch.nn.functional.pad(self.node, (0, longer))
            self.next = torch.nn.functional.pad(self.next, (0, longer))

    def _widened(self, heads: Tensor, old: tuple[int, int, int]) -> Tensor:
        result = torch.zeros(self._buckets + 1, dtype=torch.int32, device=self.device)
        inside = result[:-1].view(self.lanes, self.f_span, self.g_span)
        inside[:, : old[1], : old[2]] = heads[:-1].view(old)
        return result

    def push(self, pushed: Pushed) -> None:
        """Entries of one bucket are linked to each other first: those of a search are few, so each is compared with each."""
        spare, nowhere = len(self.node) - 1, len(self.head) - 1
        parts = (pushed.f, pushed.g, pushed.is_meant, self.head, self.used, self.f_span, self.g_span, spare, nowhere)
        link, entry, following, bucket, last, used = self.kernels.links(self.lane, *parts)
        self.used.copy_(used)
        self.used_at_most += pushed.number.numel()
        self.node[entry] = pushed.number.int()
        self.next[entry] = following
        if self.deep:
            self.head[last] = link
        else:
            is_empty = self.head[bucket] == 0
            # Only the first of those that go into a bucket has it here.
            self.next[torch.where(is_empty, spare, (self.tail[bucket] - 1).clamp_min(0))] = link
            self.head[torch.where(is_empty, bucket, nowhere)] = link
            self.tail[last] = link
        self.head[-1] = 0
        self.held.scatter_add_(1, pushed.f.clamp(0, self.f_span - 1), pushed.is_meant.int())

    def take(self, most: Tensor, highest: int) -> Taken:
        """One after another."""
        parts = []
        for turn in range(highest):
            top = self.top(most > turn)
            self.pop(top, top.is_there)
            parts.append((top.number, top.f, top.g, top.is_there))
        number, f, g, is_there = (torch.stack(part, dim=1) for part in zip(*parts, strict=True))
        return Taken(number, f, g, is_there)

    def top(self, wants: Tensor) -> "Top":
        """The best node of each search that wants one, bool[L]; it stays where it is."""
        spare, nowhere = len(self.node) - 1, len(self.head) - 1
        parts = (self.held, self.head, self.f_span, self.g_span, spare, nowhere)
        bucket, entry, f, g, is_there = self.kernels.best(self.lane, wants, *parts)
        return Top(bucket, entry, self.node[entry].long(), f, g, is_there)

    def pop(self, top: "Top", takes: Tensor) -> None:
        """Of those searches, bool[L], that have one."""
        self.head[torch.where(takes, top.bucket, len(self.head) - 1)] = self.next[top.entry]
        self.head[-1] = 0
        self.held.scatter_add_(1, top.f[:, None], -takes.int()[:, None])

    def narrow(self, kept: Tensor) -> None:
        """Only the lists of these searches, int64[K]."""
        self.held = self.held[kept]
        self.head = self._heads_of(self.head, kept)
        self.tail = self.tail if self.deep else self._heads_of(self.tail, kept)
        self.lanes, self.lane = len(kept), torch.arange(len(kept), device=self.device)

    def _heads_of(self, heads: Tensor, kept: Tensor) -> Tensor:
        return torch.nn.functional.pad(heads[:-1].view(self.lanes, -1)[kept].flatten(), (0, 1))

    def forget(self, where: Tensor) -> None:
        """Nodes have new numbers, int64[room + 1], or are forgotten with all of their search: the last number."""
        used = int(self.used)
        numbers = where[self.node[:used].long()]
        is_kept = numbers < len(where) - 1
        link = torch.zeros(used + 1, dtype=torch.int32, device=self.device)
        link[1:] = torch.where(is_kept, is_kept.cumsum(0), 0)
        count = int(link.max())
        following = link[self.next[:used].long()]
        self.node[:count], self.next[:count] = numbers[is_kept].int(), following[is_kept]
        self.head, self.tail = (link[heads.clamp_max(used).long()] for heads in (self.head, self.tail))
        self.used.fill_(count)
        self.used_at_most = count

    def clear(self, lanes: Tensor) -> None:
        """Of these searches; entries are not used again."""
        self.held[lanes] = 0
        self.head[:-1].view(self.lanes, -1)[lanes] = 0


@cache
def stack_kernels(deep: bool, device: str) -> "StackKernels":
    """Compiled once for all searches."""
    return StackKernels(deep, torch.device(device))


class StackKernels:
    """Functions that a compiler makes kernels of."""

    def __init__(self, deep: bool, device: torch.device) -> None:
        self.deep = deep
        self.links, self.best = Fused(self._links, device), Fused(self._best, device)

    def _links(
        self,
        lane: Tensor,
        f: Tensor,
        g: Tensor,
        is_meant: Tensor,
        head: Tensor,
        used: Tensor,
        f_span: int,
        g_span: int,
        spare: int,
        nowhere: int,
    ) -> tuple[Tensor, ...]:
        """For each node 1 + its entry, the entry, and 1 + what follows it; the bucket whose list it continues, if it is the
        first to go there, and the bucket if it is the last; how many entries are then used."""
        count = f.shape[1]
        bucket = (lane[:, None] * f_span + f) * g_span + g
        order = torch.arange(count, device=lane.device)
        together = (bucket[:, :, None] == bucket[:, None, :]) & is_meant[:, :, None] & is_meant[:, None, :]
        before = torch.where(together & (order < order[:, None]), order, -1).amax(2)
        after = torch.where(together & (order > order[:, None]), order, count).amin(2)
        is_first, is_last = before < 0, after == count
        link = used + is_meant.flatten().cumsum(0).view(is_meant.shape)
        bucket = torch.where(is_meant, bucket, nowhere)
        if self.deep:
            following = torch.where(is_first, head[bucket].long(), link.gather(1, before.clamp_min(0)))
        else:
            following = torch.where(is_last, 0, link.gather(1, after.clamp_max(count - 1)))
        return (
            link.int(),
            torch.where(is_meant, link - 1, spare),
            following.int(),
            torch.where(is_first, bucket, nowhere),
            torch.where(is_last, bucket, nowhere),
            used + is_meant.sum(),
        )

    def _best(
        self, lane: Tensor, wants: Tensor, held: Tensor, head: Tensor, f_span: int, g_span: int, spare: int, nowhere: int
    ) -> tuple[Tensor, ...]:
        """The bucket, the first entry, f and g of the best node of each search, and whether it has one and wants it."""
        holds = held > 0
        is_there = wants & holds.any(1)
        f = holds.int().argmax(1)
        layer = lane * f_span + f
        heads = head[:-1].view(-1, g_span)[layer] != 0
        g = g_span - 1 - heads.flip(1).int().argmax(1) if self.deep else heads.int().argmax(1)
        bucket = torch.where(is_there, layer * g_span + g, nowhere)
        return bucket, torch.where(is_there, head[bucket].long() - 1, spare), f, g, is_there


class Runs:
    """For one search: entries in the order in which they were pushed, those of one bucket and step next to each other as a run.

    Which runs there are, the processor knows: it reads how many entries of each bucket a step pushed.
    """

    def __init__(self, per_step: int, deep: bool, device: torch.device, entries: int = FIRST_ENTRIES) -> None:
        self.per_step, self.deep, self.device = per_step, deep, device
        self.f_span = self.g_span = FIRST_SPAN
        self.node = torch.zeros(entries, dtype=torch.int32, device=device)
        self.used = 0
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
        buckets = self.f_span * self.g_span
        bucket = torch.where(pushed.is_meant, pushed.f * self.g_span + pushed.g, buckets)[0]
        counts = torch.zeros(buckets + 1, dtype=torch.int32, device=self.device)
        counts.scatter_add_(0, bucket, torch.ones_like(bucket, dtype=torch.int32))
        key = bucket.to(torch.int16 if buckets < 1 << 15 else torch.int32)
        order = torch.sort(key, stable=True)[1]
        self.node[self.used : self.used + len(order)] = pushed.number[0, order].int()
        found = counts[:-1].cpu().numpy()
        for bucket_number in found.nonzero()[0].tolist():
            f, g = divmod(bucket_number, self.g_span)
            place = (f, -g if self.deep else g)
            if place not in self.runs:
                self.runs[place] = []
                heappush(self.order, place)
            end = self.used + int(found[bucket_number])
            self.runs[place].append((self.used, end))
            self.used = end

    def take(self, most: Tensor, highest: int) -> Taken:
        """The best, run by run."""
        wanted, plan = highest, []
        while wanted and self.order:
            place = self.order[0]
            runs = self.runs[place]
            first, end = runs.pop(-1 if self.deep else 0)
            count = min(wanted, end - first)
            f, g = place[0], abs(place[1])
            if self.deep:
                plan.append((end - 1, -1, f, g, count))
                rest = (first, end - count)
            else:
                plan.append((first, 1, f, g, count))
                rest = (first + count, end)
            if rest[0] < rest[1]:
                runs.insert(len(runs) if self.deep else 0, rest)
            if not runs:
                heappop(self.order)
                del self.runs[place]
            wanted -= count
        return self._taken(plan)

    def _taken(self, plan: list[tuple[int, int, int, int, int]]) -> Taken:
        """plan: from which entry on, in which direction, with which f and g, how many."""
        if not plan:
            nothing = torch.zeros(1, 1, dtype=torch.int64, device=self.device)
            return Taken(nothing, nothing, nothing, nothing > 0)
        count = sum(part[-1] for part in plan)
        columns = torch.tensor(plan).T.to(self.device, non_blocking=True)
        begins = columns[4].cumsum(0) - columns[4]
        number = torch.arange(count, device=self.device)
        run = torch.searchsorted(begins, number, right=True) - 1
        start, direction, f, g, _ = columns[:, run]
        node = self.node[start + direction * (number - begins[run])].long()
        return Taken(node[None], f[None], g[None], torch.ones_like(f[None], dtype=torch.bool))

    def clear(self, lanes: Tensor) -> None:
        """Nothing is open."""
        self.used = 0
        self.runs.clear()
        self.order.clear()
