"""The same tables applied by torch, on any device."""

import torch
from torch import Tensor

from undershoot.errors import IllegalMove
from undershoot.kernels.plan import packing_of
from undershoot.puzzles.moves import MoveTable


class TensorMoves:
    """successors, apply, is_goal and pack for uint8[B, n] tensors on one device.

    States are trusted: values out of range are not looked for, since that would wait for the device.
    """

    def __init__(self, table: MoveTable, device: torch.device | str = "cpu") -> None:
        self.table, self.device = table, torch.device(device)
        forward, packing = table.forward, packing_of(table)
        self.source = torch.from_numpy(forward.source).to(self.device, torch.int64)
        self.shift = torch.from_numpy(forward.shift).to(self.device, torch.int16)
        self.modulus = torch.from_numpy(table.modulus.astype("int16")).to(self.device)
        self.legal = torch.from_numpy(forward.legal).to(self.device)
        self.goals = torch.from_numpy(table.goals).to(self.device)
        self.alike = torch.from_numpy(table.alike).to(self.device, torch.int64)
        self.word = torch.from_numpy(packing.word).to(self.device, torch.int64)
        # uint64 sums wrap around exactly like int64 ones.
        self.weight = torch.from_numpy(packing.weight.view("int64")).to(self.device)
        self.words = int(packing.word[-1]) + 1

    def contexts(self, states: Tensor) -> Tensor:
        """int64[B]: the cell of the cursor, or 0."""
        if self.table.cursor is None:
            return torch.zeros(len(states), dtype=torch.int64, device=self.device)
        return (states == self.table.cursor).to(torch.uint8).argmax(dim=1)

    def successors(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """uint8[B, A, n] and bool[B, A]: the child by every action, and whether it is legal among distinct effects."""
        c = self.contexts(states)
        source, legal = self.source[c], self.legal[c]
        moved = states[:, None].expand(source.shape).gather(2, source)
        return self._shifted(moved, self.shift[c]), legal

    def apply(self, states: Tensor, actions: Tensor) -> Tensor:
        """uint8[B, n]: each state after its action."""
        c, a = self.contexts(states), self.alike[actions]
        if not bool(self.legal[c, a].all()):
            row = int(torch.nonzero(~self.legal[c, a])[0, 0])
            name = self.table.action_names[int(actions[row])]
            raise IllegalMove(f"action {name} is not legal in state {row}: {states[row].tolist()}")
        return self._shifted(states.gather(1, self.source[c, a]), self.shift[c, a])

    def _shifted(self, moved: Tensor, shift: Tensor) -> Tensor:
        if not self.table.shift.any():
            return moved
        return ((moved + shift) % self.modulus).to(torch.uint8)

    def is_goal(self, states: Tensor) -> Tensor:
        """bool[B]."""
        return (states[:, None] == self.goals).all(dim=2).any(dim=1)

    def pack(self, states: Tensor) -> Tensor:
        """int64[B, W]: the bits of the keys that the CPU packs as uint64."""
        keys = torch.zeros(len(states), self.words, dtype=torch.int64, device=self.device)
        return keys.index_add_(1, self.word, states.to(torch.int64) * self.weight)
