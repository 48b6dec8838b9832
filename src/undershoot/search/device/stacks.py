"""Open lists of many searches on a device: linked lists of entries, one for each search, f and g."""

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from undershoot.kernels.fused import Fused
from undershoot.search.device.open_lists import FIRST_ENTRIES, FIRST_SPAN, Pushed, Taken, span_for


class Top(NamedTuple):
    """The best node of each of L searches, where it lies in its list: int64[L], and bool[L] whether there is one."""

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
        self.head[-1:].fill_(0)
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
        self.head[-1:].fill_(0)
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
