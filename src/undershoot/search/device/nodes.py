"""The nodes of searches on a device: distinct states that each has seen, with the cheapest way to it so far; and their index.

Columns of one length, which grow. What is to be left out of an operation of fixed shape is sent to the last place, which
belongs to no node.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from undershoot.kernels.fused import Fused

COST_SHIFT = 40
"""`rank` has g from here on, then the arrival, and whether the node was expanded in the lowest bit."""
CLOSED = 1
MOST_COST = (1 << 20) - 1
NO_RANK = (1 << 62) - 2
"""Of a node that nothing has reached yet; above every other, and open."""
NO_PARENT = -1
WINDOW = 8
"""Slots of the index that are looked at together."""
SPARSE = 3
"""There are at least so many slots for each node."""
FIRST_NODES = 1 << 12
GROWTH = 1.5
MOST_NODES = (1 << 31) - 2
FACTORS = (-7046029254386353131, -2962539073087996525)
"""Odd numbers whose bits are mixed, as in `kernels.hashing`."""


def spread(words: Sequence[Tensor], lane: Tensor) -> Tensor:
    """int64[B], not negative: mixed bits of states, int64[B] for each word, and of the searches that they belong to."""
    mixed = lane * FACTORS[1]
    for word in words:
        mixed = (mixed ^ word) * FACTORS[0]
        mixed = mixed ^ ((mixed >> 32) & 0xFFFFFFFF)
    return ((mixed * FACTORS[1]) >> 20) & ((1 << 43) - 1)


@dataclass(eq=False)
class Rows:
    """States that are looked up, B of them."""

    words: Tensor
    """int64[W, B]."""
    lane: Tensor
    """int64[B]: the searches that they belong to."""
    place: Tensor
    """int64[B]: where in the index the look goes on."""
    waits: Tensor
    """bool[B]: whether it does."""
    found: Tensor
    """int64[B]: 1 + a node; or the row that claimed a slot for the same state: -1 - that row. 0 as long as it is not known."""
    slot: Tensor
    """int64[B]: which slot it claimed."""


class Nodes:
    """Numbers of nodes are places in these columns."""

    def __init__(self, words: int, device: torch.device, many: bool, room: int = FIRST_NODES) -> None:
        """many: whether they belong to several searches."""
        self.device, self.stored, self.room = device, 0, room
        self.words = torch.zeros(words, room + 1, dtype=torch.int64, device=device)
        self.rank = torch.full((room + 1,), NO_RANK, dtype=torch.int64, device=device)
        self.parent = torch.full((room + 1,), NO_PARENT, dtype=torch.int32, device=device)
        self.h = torch.zeros(room + 1, dtype=torch.int16, device=device)
        self.lane = torch.zeros(room + 1 if many else 1, dtype=torch.int32, device=device)
        self.many = many
        self.slots = torch.zeros(_slots_for(room) + 1, dtype=torch.int32, device=device)
        """int32[slots + 1]: 1 + a node, 0 for none; within a step also -1 - the row of a new state."""
        self.count = torch.zeros((), dtype=torch.int64, device=device)
        """int64[]: `stored` as the device knows it; between rounds they are equal."""
        self.window = torch.arange(WINDOW, device=device)
        self.looks = look_kernels(words, many, str(device))

    @property
    def columns(self) -> tuple[Tensor, ...]:
        """All but the index."""
        return (self.words, self.rank, self.parent, self.h, *((self.lane,) if self.many else ()))

    @property
    def bytes(self) -> int:
        """Of all of them."""
        return sum(part.numel() * part.element_size() for part in (*self.columns, self.slots))

    def bytes_with(self, more: int) -> int:
        """What they take with room for so many more nodes, while they are moved there."""
        if self.stored + more <= self.room:
            return self.bytes
        room = self._room_for(more)
        each = sum(part.element_size() * (len(part) if part.dim() == 2 else 1) for part in self.columns)
        largest = self.words.numel() * 8  # one column at a time is there twice
        return each * (room + 1) + 4 * _slots_for(room) + largest

    def _room_for(self, more: int) -> int:
        return min(max(int(self.room * GROWTH), self.stored + more), MOST_NODES)

    def make_room(self, more: int) -> None:
        """For so many nodes more."""
        if self.stored + more <= self.room:
            return
        room = self._room_for(more)
        self.words = _longer(self.words, room, 0)
        self.rank = _longer(self.rank, room, NO_RANK)
        self.parent = _longer(self.parent, room, NO_PARENT)
        self.h = _longer(self.h, room, 0)
        if self.many:
            self.lane = _longer(self.lane, room, 0)
        self.room = room
        if _slots_for(room) > len(self.slots) - 1:
            self.slots = torch.zeros(0, dtype=torch.int32, device=self.device)
            self.slots = torch.zeros(_slots_for(room) + 1, dtype=torch.int32, device=self.device)
            self._index_all()

    def forget(self, is_kept: Tensor) -> Tensor:
        """Only some nodes, bool[stored], with the nodes that led to them. Returns the new number of each, int64[room + 1]."""
        numbers = is_kept.nonzero()[:, 0]
        count = len(numbers)
        where = torch.full((self.room + 1,), self.room, device=self.device)
        where[numbers] = torch.arange(count, device=self.device)
        for column in self.columns:
            column[..., :count] = column[..., numbers]
        parents = self.parent[:count].long()
        self.parent[:count] = torch.where(parents < 0, NO_PARENT, where[parents.clamp_min(0)]).int()
        self.rank[count:], self.parent[count:] = NO_RANK, NO_PARENT
        self.know(count)
        self.slots.zero_()
        self._index_all()
        return where

    def know(self, stored: int) -> None:
        """That there are so many."""
        self.stored = stored
        self.count.fill_(stored)

    def _index_all(self) -> None:
        """Put all nodes into an empty index, some at a time."""
        chunk = 1 << 20
        for first in range(0, self.stored, chunk):
            numbers = torch.arange(first, min(first + chunk, self.stored), device=self.device)
            rows = self.rows(self.words[:, numbers], self.lane_of(numbers), torch.ones_like(numbers, dtype=torch.bool))
            while bool(rows.waits.any()):
                places = (rows.place[:, None] + self.window) & (len(self.slots) - 2)
                is_free = self.slots[places] == 0
                free = places.gather(1, is_free.int().argmax(1, keepdim=True))[:, 0]
                wants = rows.waits & is_free.any(1)
                self.slots[torch.where(wants, free, len(self.slots) - 1)] = (numbers + 1).int()
                rows.waits &= ~(wants & (self.slots[free] == numbers + 1))
                rows.place = torch.where(is_free.any(1), rows.place, rows.place + WINDOW)
        self.slots[-1:].fill_(0)

    def lane_of(self, numbers: Tensor) -> Tensor:
        """int64: the searches that nodes belong to."""
        return self.lane[numbers].long() if self.many else torch.zeros_like(numbers)

    def cost(self, numbers: Tensor) -> Tensor:
        """int64: g."""
        return self.rank[numbers] >> COST_SHIFT

    def rows(self, words: Tensor, lane: Tensor, waits: Tensor, place: Tensor | None = None) -> Rows:
        """Nothing of these is known yet."""
        place = spread(list(words), lane) if place is None else place
        return Rows(words, lane, place, waits, torch.zeros_like(lane), torch.zeros_like(lane))

    def look(self, rows: Rows) -> tuple[Tensor, int]:
        """Find the nodes of all rows that wait; where there is none, one row claims the free slot.

        Returns int64[B], the first rows of which are those that claimed one, and how many did. It waits for the device once,
        and again where a look needs more than two windows.
        """
        new_rows, numbers = self.look_briefly(rows)
        left, new = numbers.tolist()
        if left:
            self._look_on(rows, torch.arange(len(rows.lane), device=self.device))
            new_rows, numbers = _summary(rows)
            _, new = numbers.tolist()
        return new_rows, new

    def look_briefly(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """In two windows, without waiting for the device: the first of what `look` returns; and how many rows wait for another
        window, and how many claimed a slot, int64[2]."""
        row = torch.arange(len(rows.lane), device=self.device)
        for has_claims in (False, True):
            rows.place, rows.waits, rows.found, rows.slot = self._look_once(rows, None, row, has_claims)
        return _summary(rows)

    def _look_on(self, rows: Rows, row: Tensor) -> None:
        """Until nothing waits any more: few do."""
        left = rows.waits.nonzero()[:, 0]
        while len(left):
            place, waits, found, slot = self._look_once(rows, left, row[left], True)
            rows.place[left], rows.waits[left], rows.found[left], rows.slot[left] = place, waits, found, slot
            left = left[waits]

    def _look_once(self, rows: Rows, those: Tensor | None, row: Tensor, has_claims: bool) -> tuple[Tensor, ...]:
        """Look at the next window of slots for rows with these numbers, or for all: their place, waits, found and slot.

        Several rows may claim one slot: the last that wrote owns it. Who reads another row there has its state already found,
        if it is the same, or looks again. has_claims: whether some are claimed already.
        """
        parts: tuple[Tensor, ...] = (rows.words, rows.lane, rows.place, rows.waits, rows.found, rows.slot)
        if those is not None:
            parts = tuple(part[..., those] for part in parts)
        seek = self.looks.seek_again if has_claims else self.looks.seek
        there, who, is_end, target = seek(*parts[:4], self.slots, self.words, self.lane, rows.words, rows.lane)
        self.slots[target] = (-1 - row).int()
        result: tuple[Tensor, ...] = self.looks.settle(*parts, row, there, who, is_end, self.slots, rows.words, rows.lane)
        return result

    def add(self, rows: Rows, those: Tensor, h: Tensor, is_new: Tensor) -> Tensor:
        """Store the states of those rows, int64[K], that are new, bool[K], in the slots that they claimed; nothing has reached
        them yet. Returns int64[B]: the node of each row, and `room` of those that were not stored.

        Their number is read by nobody here: who called changes `stored`.
        """
        number = torch.where(is_new, self.count + is_new.cumsum(0) - 1, self.room)
        self.words[:, number] = rows.words[:, those]
        self.h[number] = h.to(torch.int16)
        if self.many:
            self.lane[number] = rows.lane[those].int()
        self.slots[torch.where(is_new, rows.slot[those], len(self.slots) - 1)] = (number + 1).int()
        self.slots[-1:].fill_(0)
        self.count += is_new.sum()
        result = torch.full((len(rows.lane) + 1,), self.room, device=self.device)
        result[torch.where(is_new, those, len(rows.lane))] = number
        return result[:-1]

    def unclaim(self, rows: Rows, undoes: Tensor) -> None:
        """Free the slots that rows claimed, if it comes to that, bool[]: nothing was stored."""
        row = torch.arange(len(rows.lane), device=self.device)
        self.slots.index_fill_(0, torch.where((rows.found == -1 - row) & undoes, rows.slot, len(self.slots) - 1), 0)


@cache
def look_kernels(words: int, many: bool, device: str) -> "LookKernels":
    """Compiled once for all searches."""
    return LookKernels(words, many, torch.device(device))


class LookKernels:
    """Functions that a compiler makes kernels of."""

    def __init__(self, words: int, many: bool, device: torch.device) -> None:
        first, again = (Look(words, many, has_claims) for has_claims in (False, True))
        self.seek, self.seek_again = Fused(first.seek, device), Fused(again.seek, device)
        self.settle = Fused(again.settle, device)


class Look:
    """How rows are looked up, for a compiler. Looking does not write: what to write where is returned."""

    def __init__(self, words: int, many: bool, has_claims: bool) -> None:
        """words: of a state. has_claims: whether some slots may be claimed already."""
        self.words, self.many, self.has_claims = words, many, has_claims

    def seek(
        self,
        words: Tensor,
        lane: Tensor,
        place: Tensor,
        waits: Tensor,
        slots: Tensor,
        held: Tensor,
        held_lane: Tensor,
        row_words: Tensor,
        row_lane: Tensor,
    ) -> tuple[Tensor, ...]:
        """(there, who, is_end, target): the first slot of the window that is free or holds the state, 1 + its node, whether
        there is one; and where to write the claim. held, held_lane: of nodes; row_words, row_lane: of all rows."""
        trash = slots.shape[0] - 1
        places = (place[:, None] + torch.arange(WINDOW, device=place.device)) & (trash - 1)
        occupant = slots[places].long()
        node, row = (occupant - 1).clamp_min(0), (-1 - occupant).clamp_min(0)
        same = occupant != 0
        for w in range(self.words):
            other = held[w][node]
            if self.has_claims:
                other = torch.where(occupant < 0, row_words[w][row], other)
            same = same & (other == words[w][:, None])
        if self.many:
            other = held_lane[node].long()
            if self.has_claims:
                other = torch.where(occupant < 0, row_lane[row], other)
            same = same & (other == lane[:, None])
        ends = (occupant == 0) | same
        first, is_end = ends.int().argmax(1, keepdim=True), ends.any(1)
        there, who = places.gather(1, first)[:, 0], occupant.gather(1, first)[:, 0]
        return there, who, is_end, torch.where(waits & is_end & (who == 0), there, trash)

    def settle(
        self,
        words: Tensor,
        lane: Tensor,
        place: Tensor,
        waits: Tensor,
        found: Tensor,
        slot: Tensor,
        row: Tensor,
        there: Tensor,
        who: Tensor,
        is_end: Tensor,
        slots: Tensor,
        row_words: Tensor,
        row_lane: Tensor,
    ) -> tuple[Tensor, ...]:
        """(place, waits, found, slot) once all claims are written."""
        claims = waits & is_end & (who == 0)
        owner = torch.where(claims, slots[there].long(), who)
        is_own = claims & (owner == -1 - row)
        other = (-1 - owner).clamp_min(0)
        is_same = claims & (lane == row_lane[other])
        for w in range(self.words):
            is_same = is_same & (words[w] == row_words[w][other])
        is_known = is_own | is_same | (waits & is_end & (who != 0))
        place = torch.where(is_end, place, place + WINDOW)
        return place, waits & ~is_known, torch.where(is_known, owner, found), torch.where(is_own, there, slot)


def _summary(rows: Rows) -> tuple[Tensor, Tensor]:
    """Those that claimed a slot, int64[B], first; how many wait, and how many claimed one, int64[2]."""
    row = torch.arange(len(rows.lane), device=rows.lane.device)
    is_new = rows.found == -1 - row
    order = is_new.cumsum(0)
    new_rows = torch.zeros(len(row) + 1, dtype=torch.int64, device=row.device)
    new_rows[torch.where(is_new, order - 1, len(row))] = row
    return new_rows[:-1], torch.stack([rows.waits.sum(), order[-1]])


def _slots_for(room: int) -> int:
    return 1 << (SPARSE * room - 1).bit_length()


def _longer(column: Tensor, room: int, value: int) -> Tensor:
    """The same column with more places, of which the new ones, and the last, hold a value."""
    kept = column.shape[-1] - 1
    result = torch.full((*column.shape[:-1], room + 1), value, dtype=column.dtype, device=column.device)
    result[..., :kept] = column[..., :kept]
    return result
