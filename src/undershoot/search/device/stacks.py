"""Open lists of many searches on a device: linked lists of entries, one for each search, f and g."""

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from undershoot.kernels.fused import Fused
from undershoot.search.device.open_lists import FIRST_ENTRIES, FIRST_SPAN, Pushed, Taken, span_for


class Top(NamedTuple):
    """The best k nodes of each of L searches, the best first, and where they lie: int64[L, k]; bool[L, k] whether there are."""

    bucket: Tensor
    entry: Tensor
    number: Tensor
    f: Tensor
    g: Tensor
    is_there: Tensor


class Stacks:
    """Linked lists of entries, one for each search, f and g."""

    def __init__(self, lanes: int, per_step: int, deep: bool, device: torch.device, entries: int = FIRST_ENTRIES) -> None:
        """deep: the largest g comes first, and of one g the newest; otherwise the smallest and the oldest."""
        self.lanes, self.per_step, self.deep, self.device = lanes, per_step, deep, device
        self.f_span = self.g_span = FIRST_SPAN
        self.held = torch.zeros(lanes, self.f_span, dtype=torch.int32, device=device)
        """int32[L, F]: how many entries."""
        self.head = torch.zeros(self._buckets + 1, dtype=torch.int32, device=device)
        """int32[L * F * G + 1]: 1 + the first entry; 0 for none. The last is a place for what is left out."""
        self.filled = torch.zeros(self._buckets + 1 if per_step > 1 else 1, dtype=torch.int32, device=device)
        """int32[L * F * G + 1]: how many entries; none where only the first is ever asked for."""
        self.tail = torch.zeros(1 if deep else self._buckets + 1, dtype=torch.int32, device=device)
        self.node = torch.zeros(entries + 1, dtype=torch.int32, device=device)
        self.next = torch.zeros(entries + 1, dtype=torch.int32, device=device)
        """int32[entries + 1]: 1 + the entry that follows."""
        self.used = torch.zeros((), dtype=torch.int64, device=device)
        self.used_at_most = 0
        self.lane = torch.arange(lanes, device=device)
        self.kernels = stack_kernels(deep, per_step, str(device))

    @property
    def _buckets(self) -> int:
        return self.lanes * self.f_span * self.g_span

    @property
    def bytes(self) -> int:
        """Of all of it."""
        return 4 * sum(part.numel() for part in (self.held, self.head, self.filled, self.tail, self.node, self.next))

    def bytes_with(self, more: int, f: int, g: int) -> int:
        """With room for more, while one part is there twice."""
        if self.used_at_most + more > len(self.node) - 1:
            self.used_at_most = int(self.used)
        f_span, g_span = span_for(self.f_span, f), span_for(self.g_span, g)
        buckets, entries = self.lanes * f_span * g_span, self._entries_for(more)
        grown = 4 * (self.lanes * f_span + buckets * (1 + (self.per_step > 1) + (not self.deep)) + 2 * entries)
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
            self.head, self.filled, self.tail = (self._widened(part, old) for part in (self.head, self.filled, self.tail))
        entries = self._entries_for(more)
        if entries > len(self.node) - 1:
            longer = entries - (len(self.node) - 1)
            self.node = torch.nn.functional.pad(self.node, (0, longer))
            self.next = torch.nn.functional.pad(self.next, (0, longer))

    def _widened(self, buckets: Tensor, old: tuple[int, int, int]) -> Tensor:
        if len(buckets) == 1:
            return buckets
        result = torch.zeros(self._buckets + 1, dtype=torch.int32, device=self.device)
        inside = result[:-1].view(self.lanes, self.f_span, self.g_span)
        inside[:, : old[1], : old[2]] = buckets[:-1].view(old)
        return result

    def push(self, pushed: Pushed) -> None:
        """Entries of one bucket are linked to each other first: those of a search are few, so each is compared with each."""
        spare, nowhere = len(self.node) - 1, len(self.head) - 1
        parts = (pushed.f, pushed.g, pushed.is_meant, self.head, self.used, self.f_span, self.g_span, spare, nowhere)
        link, entry, following, first, last, used = self.kernels.links(self.lane, *parts)
        self.used.copy_(used)
        self.used_at_most += pushed.number.numel()
        self.node[entry] = pushed.number.int()
        self.next[entry] = following
        if self.deep:
            self.head[last] = link
        else:
            is_empty = self.head[first] == 0
            self.next[torch.where(is_empty, spare, (self.tail[first] - 1).clamp_min(0))] = link
            self.head[torch.where(is_empty, first, nowhere)] = link
            self.tail[last] = link
        self.head[-1:].fill_(0)
        self._count(pushed.f, pushed.g, pushed.is_meant.int())

    def _count(self, f: Tensor, g: Tensor, more: Tensor) -> None:
        """So many entries more, int32[L, K]. What is left out adds nothing somewhere: not all in one place, for which a device
        would have it wait."""
        f, g = f.clamp(0, self.f_span - 1), g.clamp(0, self.g_span - 1)
        self.held.scatter_add_(1, f, more)
        if self.per_step > 1:
            bucket = (self.lane[:, None] * self.f_span + f) * self.g_span + g
            self.filled.scatter_add_(0, bucket.flatten(), more.flatten())

    def take(self, most: Tensor, highest: int) -> Taken:
        """All at once: no more than `per_step`."""
        top = self.top(most)
        self.pop(top, top.is_there)
        return Taken(top.number, top.f, top.g, top.is_there)

    def top(self, most: Tensor) -> "Top":
        """The best nodes of each search, up to most, int64[L]; they stay where they are."""
        spare, nowhere = len(self.node) - 1, len(self.head) - 1
        parts = (self.held, self.filled, self.head, self.next, self.f_span, self.g_span, spare, nowhere)
        bucket, entry, f, g, is_there = self.kernels.best(self.lane, most, *parts)
        return Top(bucket, entry, self.node[entry].long(), f, g, is_there)

    def pop(self, top: "Top", takes: Tensor) -> None:
        """The first of them, as many as takes, bool[L, k], has."""
        goes_on = torch.zeros_like(takes)
        goes_on[:, :-1] = takes[:, 1:] & (top.bucket[:, 1:] == top.bucket[:, :-1])
        self.head[torch.where(takes & ~goes_on, top.bucket, len(self.head) - 1)] = self.next[top.entry]
        self.head[-1:].fill_(0)
        self._count(top.f, top.g, -takes.int())

    def narrow(self, kept: Tensor) -> None:
        """Only the lists of these searches, int64[K]."""
        self.held = self.held[kept]
        self.head, self.filled, self.tail = (self._buckets_of(part, kept) for part in (self.head, self.filled, self.tail))
        self.lanes, self.lane = len(kept), torch.arange(len(kept), device=self.device)

    def _buckets_of(self, buckets: Tensor, kept: Tensor) -> Tensor:
        if len(buckets) == 1:
            return buckets
        return torch.nn.functional.pad(buckets[:-1].view(self.lanes, -1)[kept].flatten(), (0, 1))

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
        for buckets in (self.head, self.filled):
            if len(buckets) > 1:
                buckets[:-1].view(self.lanes, -1)[lanes] = 0


@cache
def stack_kernels(deep: bool, per_step: int, device: str) -> "StackKernels":
    """Compiled once for all searches."""
    return StackKernels(deep, per_step, torch.device(device))


class StackKernels:
    """Functions that a compiler makes kernels of."""

    def __init__(self, deep: bool, per_step: int, device: torch.device) -> None:
        self.deep, self.per_step = deep, per_step
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
        self,
        lane: Tensor,
        most: Tensor,
        held: Tensor,
        filled: Tensor,
        head: Tensor,
        following: Tensor,
        f_span: int,
        g_span: int,
        spare: int,
        nowhere: int,
    ) -> tuple[Tensor, ...]:
        """The bucket, the entry, f and g of the best nodes of each search, and whether there is one and it wants so many.

        The place of a node in its layer of one f, and in its bucket, is how many lie before it; from the head of the list it is
        then so many steps.
        """
        turn = torch.arange(self.per_step, device=lane.device)
        below = held.cumsum(1)
        is_there = turn < torch.minimum(most, below[:, -1])[:, None]
        f = (below[:, None, :] <= turn[:, None]).sum(2).clamp_max(f_span - 1)
        place = turn - torch.where(f > 0, below.gather(1, (f - 1).clamp_min(0)), 0)
        layer = lane[:, None] * f_span + f
        counts = filled[:-1].view(-1, g_span)[layer] if self.per_step > 1 else head[:-1].view(-1, g_span)[layer] != 0
        before = (counts.flip(2) if self.deep else counts).cumsum(2)
        nth = (before <= place[:, :, None]).sum(2).clamp_max(g_span - 1)
        place = place - torch.where(nth > 0, before.gather(2, (nth - 1).clamp_min(0)[:, :, None])[:, :, 0], 0)
        g = g_span - 1 - nth if self.deep else nth
        bucket = torch.where(is_there, layer * g_span + g, nowhere)
        place = torch.where(is_there, place, 0)
        entry = torch.where(is_there, head[bucket].long() - 1, spare)
        for step in range(self.per_step - 1):
            entry = torch.where(step < place, following[entry].long() - 1, entry)
        return bucket, entry, f, g, is_there
