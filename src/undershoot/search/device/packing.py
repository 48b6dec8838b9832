"""States in words of 64 bits, and steps from them, as tensor operations.

A cell takes as many bits as its values need, so that a 15-puzzle is one word. A batch of words is int64[W, B], a row for each
word, so that neighbouring threads of a device read neighbouring states.
"""

import numpy as np
import torch
from torch import Tensor

from undershoot.errors import NotAvailable
from undershoot.kernels.plan import forward_plan
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.problem import Problem

MOST_WORDS = 8
WORD_BITS = 64


def words_of(table: MoveTable) -> int:
    """How many words a state takes."""
    return _places(table)[0][-1] + 1


def check_packs(puzzle: Problem) -> None:
    """Refuse a puzzle whose states take too many words."""
    words = words_of(puzzle.table)
    if words > MOST_WORDS:
        raise NotAvailable(
            f"A* on a device packs a state into at most {MOST_WORDS} words of {WORD_BITS} bits, and a state of {puzzle.name} "
            f"takes {words}; leave out --device"
        )


def _places(table: MoveTable) -> tuple[list[int], list[int], list[int]]:
    """For each cell its word, its first bit there, and how many bits it takes."""
    word, first, bits = [], [], []
    used, words = 0, 0
    for modulus in table.modulus.tolist():
        need = max(1, (modulus - 1).bit_length())
        if used + need > WORD_BITS:
            used, words = 0, words + 1
        word.append(words)
        first.append(used)
        bits.append(need)
        used += need
    return word, first, bits


class Packing:
    """How cells lie in words."""

    def __init__(self, table: MoveTable, device: torch.device) -> None:
        word, first, bits = _places(table)
        self.cells, self.words = table.cells, word[-1] + 1
        self.word_of, self.first_bit = np.array(word), np.array(first)
        self.word = torch.tensor(word, device=device)
        self.shift = torch.tensor(first, device=device)
        self.mask = torch.tensor([(1 << count) - 1 for count in bits], device=device)
        self.ranges = [(word.index(w), word.index(w) + word.count(w)) for w in range(self.words)]
        """The first cell of each word, and the first after it."""

    def pack(self, states: Tensor) -> Tensor:
        """int64[W, B], of int64[B, n]."""
        moved = states << self.shift
        return torch.stack([moved[:, begin:end].sum(1) for begin, end in self.ranges])

    def unpack(self, words: Tensor) -> Tensor:
        """int64[B, n], of int64[W, B]."""
        # What a shift to the right brings in from the sign lies above the bits of a cell.
        return (words[self.word].T >> self.shift) & self.mask


class Steps:
    """The steps of a puzzle from packed states.

    An *arrival* c * S + s says that step s led here from context c; C * S + c, that a search began here in context c.
    """

    def __init__(self, table: MoveTable, packing: Packing, device: torch.device) -> None:
        plan = forward_plan(table)
        contexts, steps = plan.legal.shape
        self.table, self.packing, self.steps, self.contexts = table, packing, steps, contexts
        self.step = torch.arange(steps, device=device)
        self.legal = torch.tensor(plan.legal.ravel(), device=device)
        self.price = torch.tensor(plan.cost.ravel().astype(np.int64), device=device)
        back = np.where(table.inverse >= 0, table.alike[table.inverse], -1)
        self.back = torch.tensor(np.concatenate([back.ravel(), np.full(contexts, -1)]), device=device)
        """int64[arrivals]: the step that leads back, -1 for none."""
        self.context = torch.tensor(np.concatenate([plan.landing.ravel(), np.arange(contexts)]), device=device).long()
        """int64[arrivals]."""
        self.shifts = bool(table.shift.any())
        most = self.changes = plan.cell.shape[2]
        is_change = np.arange(most) < plan.changes[:, :, None]
        cell = plan.cell.astype(np.int64)
        self.cell = torch.tensor(cell.reshape(-1, most), device=device)
        """int64[C * S, K]: the cells that a step changes; those after the last change count for nothing."""
        self.origin = torch.tensor(plan.origin.astype(np.int64).reshape(-1, most), device=device)
        self.added = torch.tensor(plan.shift.astype(np.int64).reshape(-1, most), device=device)
        self.modulus = torch.tensor(table.modulus.astype(np.int64)[cell].reshape(-1, most), device=device)
        weight = np.where(is_change, np.uint64(1) << packing.first_bit[cell].astype(np.uint64), np.uint64(0)).view(np.int64)
        parts = [np.where(packing.word_of[cell] == w, weight, 0).reshape(-1, most) for w in range(packing.words)]
        self.weight = torch.tensor(np.stack(parts), device=device)
        """int64[W, C * S, K]: by how much a word grows when a changed cell grows by 1."""
        self.goals = packing.pack(torch.tensor(table.goals, device=device).long())
        """int64[W, G]."""

    def begin(self, states: Tensor) -> Tensor:
        """int64[B]: the arrivals of starts, int64[B, n]."""
        first = torch.full((len(states),), self.contexts * self.steps, device=states.device)
        return first if self.table.cursor is None else first + (states == self.table.cursor).int().argmax(1)

    def children(self, words: Tensor, arrival: Tensor) -> tuple[Tensor, ...]:
        """By every step from int64[W, P], reached as int64[P] says: their words int64[W, P * S], what the step costs
        int64[P, S], how they are reached int64[P, S], whether the step is legal and whether it leads back, bool[P, S]."""
        count = words.shape[1]
        cells = self.packing.unpack(words)
        rows = self.context[arrival][:, None] * self.steps + self.step
        shape = (count, self.steps, self.changes)
        before = cells.gather(1, self.cell[rows].view(count, -1)).view(shape)
        after = cells.gather(1, self.origin[rows].view(count, -1)).view(shape)
        if self.shifts:
            after = after + self.added[rows]
            after = torch.where(after >= self.modulus[rows], after - self.modulus[rows], after)
        change = after - before
        parts = [words[w][:, None] + (change * self.weight[w][rows]).sum(2) for w in range(self.packing.words)]
        is_back = self.step == self.back[arrival][:, None]
        return torch.stack(parts).flatten(1), self.price[rows], rows, self.legal[rows], is_back

    def is_goal(self, words: Tensor) -> Tensor:
        """bool[B], of int64[W, B]."""
        return (words[:, :, None] == self.goals[:, None, :]).all(0).any(1)
