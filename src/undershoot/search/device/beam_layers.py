"""The layers of a beam on a device: the children of some of its states, and the best of those of a whole layer.

A state is told apart by 64 bits of hash in tables that forget, as on the cores: one that is taken for another is lost, and one
that was forgotten is searched twice. Neither makes anything false, since nothing is concluded from what a beam leaves out.
"""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from undershoot.kernels.fused import SMALL, Fused
from undershoot.puzzles.moves import MoveTable
from undershoot.search.device.nodes import FACTORS
from undershoot.search.device.packing import Packing, Steps

FIXED_POINT, LARGEST = 2048.0, 2.0**20
"""What a child is sorted by is a whole number of 2048ths, up to that of this f, with bits of its hash below."""
NO_VALUE = (1 << 32) - 1
LOWER_BITS = 31
MOST_HELD = 4
"""Children are held until there are so many times more than wanted; then only the best go on."""


class Layer(NamedTuple):
    """B states at the same number of steps from the start."""

    words: Tensor
    """int64[W, B]."""
    arrivals: Tensor
    """int64[B]: see `Steps`."""
    costs: Tensor
    """int32[B]: g."""

    def part(self, first: int, last: int) -> "Layer":
        """Some of them."""
        return Layer(self.words[:, first:last], self.arrivals[first:last], self.costs[first:last])


class Made(NamedTuple):
    """All children of P states, by S steps of each."""

    words: Tensor
    """int64[W, P * S]."""
    hashes: Tensor
    """int64[P * S]."""
    costs: Tensor
    """int32[P * S]: g."""
    counts: Tensor
    """bool[P * S]: the step is legal, and does not lead straight back."""
    is_goal: Tensor
    """bool[P * S]: and leads to a goal."""


class Children(NamedTuple):
    """M of a layer, from which the next one is chosen."""

    words: Tensor
    """int64[W, M]."""
    rows: Tensor
    """int32[M]: p * S + s for step s from state p of the layer."""
    keys: Tensor
    """int64[M]: f, and below it bits of the hash, by which equal f are put into an order that is as good as random."""

    def chosen(self, which: Tensor) -> "Children":
        """Those that are listed, int64[K]."""
        return Children(self.words[:, which], self.rows[which], self.keys[which])


@lru_cache(maxsize=4)
def growing(table: MoveTable, device: torch.device) -> "Growing":
    """Compiled once for a puzzle."""
    return Growing(table, device)


class Growing:
    """Makes children."""

    def __init__(self, table: MoveTable, device: torch.device) -> None:
        self.packing = Packing(table, device)
        self.steps = Steps(table, self.packing, device)
        self._make = Fused(self._children, device)

    def compile(self, layer: Layer) -> None:
        """By the children of a layer of one."""
        many = torch.zeros(2 * SMALL, dtype=torch.int64, device=layer.words.device)
        self.children(Layer(layer.words[:, many], layer.arrivals[many], layer.costs[many]))

    def children(self, layer: Layer) -> Made:
        """Of these states."""
        return Made(*self._make(*layer))

    def _children(self, words: Tensor, arrivals: Tensor, costs: Tensor) -> tuple[Tensor, ...]:
        made, price, _, legal, is_back = self.steps.children(words, arrivals)
        counts = (legal & ~is_back).flatten()
        reached = (costs[:, None] + price).int().flatten()
        return made, hashes_of(made), reached, counts, self.steps.is_goal(made) & counts

    def next_layer(self, layer: Layer, children: Children) -> Layer:
        """Of children of a layer."""
        parents, steps = children.rows // self.steps.steps, children.rows % self.steps.steps
        arrivals = self.steps.context[layer.arrivals[parents]] * self.steps.steps + steps
        return Layer(children.words, arrivals, (layer.costs[parents] + self.steps.price[arrivals]).int())


def numbers_of(marked: Tensor) -> Tensor:
    """int64[K]: which of bool[B] are true. The device is waited for once, whatever is chosen by that."""
    return marked.nonzero()[:, 0]


def hashes_of(words: Tensor) -> Tensor:
    """int64[B], of int64[W, B]: all bits mixed."""
    mixed = torch.zeros_like(words[0])
    for word in words:
        mixed = (mixed ^ word) * FACTORS[0]
        mixed = mixed ^ ((mixed >> 32) & 0xFFFFFFFF)
    mixed = mixed * FACTORS[1]
    return mixed ^ ((mixed >> 29) & 0x7FFFFFFFF)


def sort_keys(costs: Tensor, values: Tensor, hashes: Tensor, salt: int) -> Tensor:
    """int64[B]: by f, and where that is equal by the hash; what is no number comes last."""
    f = costs.double() + values.double().clamp_min(0.0)
    upper = torch.where(f <= LARGEST, f * FIXED_POINT, float(NO_VALUE)).long()
    lower = ((hashes ^ salt) * FACTORS[0] >> (63 - LOWER_BITS)) & ((1 << LOWER_BITS) - 1)
    return (upper << LOWER_BITS) | lower


class Marks:
    """Which hashes were met, as far as that is remembered."""

    def __init__(self, room: int, device: torch.device) -> None:
        """room: a power of two."""
        self.mask, self.device = room - 1, device
        self.marks = torch.zeros(room, dtype=torch.int64, device=device)
        self.owner = torch.full((room,), -1, dtype=torch.int64, device=device)
        """int64[room]: the number of the mark that came last of all; numbers only grow."""
        self.count = 0

    def lack(self, marks: Tensor) -> Tensor:
        """bool[B]: whether each of int64[B] was not met, or is forgotten."""
        return self.marks[marks & self.mask] != marks

    def claim(self, marks: Tensor) -> Tensor:
        """bool[B]: whether each of int64[B] was not met, and is the first of its kind here. They are met now.

        Where several fall into one place the first of them has it, in whatever order the device writes.
        """
        size, place = len(marks), marks & self.mask
        is_new = self.marks[place] != marks
        rank = torch.arange(size - 1, -1, -1, device=self.device)
        self.owner.scatter_reduce_(0, place, rank + self.count, "amax")
        winner = size - 1 - (self.owner[place] - self.count)
        owned_by = marks[winner]
        self.marks[place] = owned_by
        self.count += size
        return is_new & ((size - 1 - rank == winner) | (owned_by != marks))


class Best:
    """The best children of a layer, and some more."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.parts: list[Children] = []
        self.held = 0
        self.limit: Tensor | None = None
        """int64: the key that children must be below, from when one was left out."""

    @property
    def was_cut(self) -> bool:
        """Whether any was left out."""
        return self.limit is not None

    def add(self, children: Children) -> None:
        """Children of the same layer."""
        if self.limit is not None:
            children = children.chosen(numbers_of(children.keys < self.limit))
        self.parts.append(children)
        self.held += len(children.keys)
        if self.held > MOST_HELD * self.width:
            self._cut()

    def _cut(self) -> None:
        words, rows, keys = zip(*self.parts, strict=True)
        everything = Children(torch.cat(words, 1), torch.cat(rows), torch.cat(keys))
        if self.held > self.width:
            least = torch.topk(everything.keys, self.width, largest=False, sorted=False)
            self.limit = least.values.max()
            everything = everything.chosen(least.indices)
        self.parts, self.held = [everything], len(everything.keys)

    def taken(self) -> Children | None:
        """At most as many as wanted, in the order of their parents."""
        if not self.parts:
            return None
        self._cut()
        return self.parts[0].chosen(self.parts[0].rows.argsort())
