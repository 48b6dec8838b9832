"""The nodes of searches on a device: distinct states that each has seen, with the cheapest way to it so far; and their index.

Columns of one length, which grow. What is to be left out of an operation of fixed shape is sent to the last place, which
belongs to no node.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

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


def spread(words: Tensor, lane: Tensor) -> Tensor:
    """int64[B], not negative: mixed bits of states, int64[W, B], and of the searches that they belong to."""
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
    """int64[B]: 1 + a node; or the first row with the same new state: -1 - that row. 0 as long as it is not known."""


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
        self.window = torch.arange(WINDOW, device=device)

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
        self.slots[-1] = 0

    def lane_of(self, numbers: Tensor) -> Tensor:
        """int64: the searches that nodes belong to."""
        return self.lane[numbers].long() if self.many else torch.zeros_like(numbers)

    def cost(self, numbers: Tensor) -> Tensor:
        """int64: g."""
        return self.rank[numbers] >> COST_SHIFT

    def rows(self, words: Tensor, lane: Tensor, waits: Tensor) -> Rows:
        """Nothing of these is known yet."""
        return Rows(words, lane, spread(words, lane), waits.clone(), torch.zeros_like(lane))

    def look(self, rows: Rows) -> Tensor:
        """Find the nodes of all rows that wait; where there is none, one row claims the free slot. Returns their slots, int64[B].

        It waits for the device once, and again where a look needs more than two windows.
        """
        slot = torch.full_like(rows.lane, len(self.slots) - 1)
        every = torch.arange(len(slot), device=self.device)
        self._look_once(rows, every, slot, is_first=True)
        self._look_once(rows, every, slot, is_first=False)
        left = rows.waits.nonzero()[:, 0]
        while len(left):
            self._look_once(rows, left, slot, is_first=False)
            left = left[rows.waits[left]]
        return slot

    def _look_once(self, rows: Rows, those: Tensor, slot: Tensor, is_first: bool) -> None:
        """Look at the next window of slots for the rows with these numbers, int64[K].

        is_first: no slot is claimed yet. Several rows may claim one: the last that wrote owns it. Who reads another row there
        has its state already found, if it is the same, or looks again.
        """
        waits, place = rows.waits[those], rows.place[those]
        places = (place[:, None] + self.window) & (len(self.slots) - 2)
        occupant = self.slots[places].long()
        ends = (occupant == 0) | self._holds(rows, those, occupant, is_first)
        first, is_end = ends.int().argmax(1, keepdim=True), ends.any(1)
        there, who = places.gather(1, first)[:, 0], occupant.gather(1, first)[:, 0]
        claims = waits & is_end & (who == 0)
        self.slots[torch.where(claims, there, len(self.slots) - 1)] = (-1 - those).int()
        owner = torch.where(claims, self.slots[there].long(), who)
        is_own = claims & (owner == -1 - those)
        is_same = claims & self._same_row(rows, those, (-1 - owner).clamp_min(0))
        is_known = is_own | is_same | (waits & is_end & (who != 0))
        slot[those] = torch.where(is_own, there, slot[those])
        rows.found[those] = torch.where(is_known, owner, rows.found[those])
        rows.waits[those] = waits & ~is_known
        rows.place[those] = torch.where(is_end, place, place + WINDOW)

    def _holds(self, rows: Rows, those: Tensor, occupant: Tensor, is_first: bool) -> Tensor:
        """bool[K, WINDOW]: whether the occupants of slots have the states of these rows."""
        node = (occupant - 1).clamp_min(0)
        row = None if is_first else (-1 - occupant).clamp_min(0)
        same = occupant != 0
        for w in range(len(self.words)):
            held = self.words[w][node]
            if row is not None:
                held = torch.where(occupant < 0, rows.words[w][row], held)
            same = same & (held == rows.words[w][those][:, None])
        if self.many:
            lane = self.lane[node].long()
            if row is not None:
                lane = torch.where(occupant < 0, rows.lane[row], lane)
            same = same & (lane == rows.lane[those][:, None])
        return same

    def _same_row(self, rows: Rows, those: Tensor, others: Tensor) -> Tensor:
        """bool[K]: whether two rows have the same state in the same search."""
        same = rows.lane[those] == rows.lane[others]
        for word in rows.words:
            same = same & (word[those] == word[others])
        return same

    def add(self, words: Tensor, lane: Tensor, h: Tensor, slot: Tensor) -> None:
        """Store K new states, int64[W, K], in the slots that they claimed; nothing has reached them yet."""
        first, end = self.stored, self.stored + words.shape[1]
        self.words[:, first:end] = words
        self.rank[first:end] = NO_RANK
        self.parent[first:end] = NO_PARENT
        self.h[first:end] = h.to(torch.int16)
        if self.many:
            self.lane[first:end] = lane.int()
        self.slots[slot] = torch.arange(first + 1, end + 1, dtype=torch.int32, device=self.device)
        self.stored = end


def _slots_for(room: int) -> int:
    return 1 << (SPARSE * room - 1).bit_length()


def _longer(column: Tensor, room: int, value: int) -> Tensor:
    """The same column with more places, of which the new ones, and the last, hold a value."""
    kept = column.shape[-1] - 1
    result = torch.full((*column.shape[:-1], room + 1), value, dtype=column.dtype, device=column.device)
    result[..., :kept] = column[..., :kept]
    return result
