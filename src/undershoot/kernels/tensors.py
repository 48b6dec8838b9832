"""The same tables applied by torch, on any device."""

import torch
from torch import Tensor

from undershoot.errors import IllegalMove, NotAvailable
from undershoot.kernels.plan import packing_of
from undershoot.kernels.scrambles import DEPTHS, FACTOR_1, FACTOR_2, GAMMA, ROW_FACTOR, ROWS, ScrambleRule, followers
from undershoot.puzzles.moves import MoveTable


class TensorMoves:
    """successors, apply, is_goal and pack for uint8[B, n] tensors on one device.

    States are trusted: values out of range are not looked for, since that would wait for the device.
    """

    def __init__(self, table: MoveTable, device: torch.device | str = "cpu") -> None:
        self.table, self.device = table, torch.device(device)
        forward, packing = table.forward, packing_of(table)
        self.source = torch.tensor(forward.source).to(self.device, torch.int64)
        self.shift = torch.tensor(forward.shift).to(self.device, torch.int16)
        self.modulus = torch.tensor(table.modulus.astype("int16")).to(self.device)
        self.legal = torch.tensor(forward.legal).to(self.device)
        self.goals = torch.tensor(table.goals).to(self.device)
        self.alike = torch.tensor(table.alike).to(self.device, torch.int64)
        self.word = torch.tensor(packing.word).to(self.device, torch.int64)
        # uint64 sums wrap around exactly like int64 ones.
        self.weight = torch.tensor(packing.weight.view("int64")).to(self.device)
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
        if len(self.goals) == 1:
            return (states == self.goals).all(dim=1)
        return (states[:, None] == self.goals).all(dim=2).any(dim=1)

    def pack(self, states: Tensor) -> Tensor:
        """int64[B, W]: the bits of the keys that the CPU packs as uint64."""
        keys = torch.zeros(len(states), self.words, dtype=torch.int64, device=self.device)
        return keys.index_add_(1, self.word, states.to(torch.int64) * self.weight)


class TensorScrambles:
    """The scrambles that `scrambles_up_to` makes for the same seed, made on one device without waiting for it."""

    def __init__(self, table: MoveTable, max_depth: int, rule: ScrambleRule, device: torch.device | str) -> None:
        steps = table.backward
        if not steps.legal.any(axis=1).all():
            raise NotAvailable("this puzzle has states that no move leads to; its scrambles are made on the CPU only")
        self.table, self.max_depth, self.device = table, max_depth, torch.device(device)
        self.distinct = rule is ScrambleRule.PROPER and table.presses_commute
        self.source = torch.tensor(steps.source).to(self.device, torch.int64)
        self.shift = torch.tensor(steps.shift).to(self.device, torch.int16)
        self.landing = torch.tensor(steps.landing).to(self.device, torch.int64)
        self.cost = torch.tensor(steps.cost).to(self.device, torch.int64)
        self.follows = torch.tensor(followers(table, rule)).to(self.device)
        self.presses = torch.tensor(steps.legal[0].nonzero()[0]).to(self.device, torch.int64)
        self.modulus = torch.tensor(table.modulus.astype("int16")).to(self.device)
        self.goals = torch.tensor(table.goals).to(self.device)
        first = (table.goals == table.cursor).argmax(axis=1) if table.cursor is not None else table.goals[:, 0] * 0
        self.first_context = torch.tensor(first).to(self.device, torch.int64)

    def __call__(self, count: int, depth: Tensor, seed: Tensor) -> tuple[Tensor, Tensor]:
        """uint8[count, n], and what the walks cost, int64[count]; depth and seed are int64 tensors of one number, the depth at
        most `max_depth`."""
        rows = torch.arange(count, device=self.device)
        depths = 1 + _below(_seeded(seed ^ signed(DEPTHS), rows), depth)[1]
        random, goal = _below(_seeded(seed, rows), len(self.goals))
        states, context = self.goals[goal], self.first_context[goal]
        width = self.follows.shape[2]
        before, last = context, torch.full_like(context, width)
        choices = self.presses.expand(count, -1).clone() if self.distinct else self.presses
        cost = torch.zeros_like(context)
        for step in range(self.max_depth):
            if self.distinct:
                random, k = _below(random, len(self.presses) - step)
                s = choices.gather(1, step + k[:, None])[:, 0]
                choices.scatter_(1, step + k[:, None], choices[:, step : step + 1].clone())
            else:
                allowed = self.follows[before, last].cumsum(dim=1)
                random, k = _below(random, allowed[:, -1])
                s = (allowed > k[:, None]).to(torch.uint8).argmax(dim=1)
            walks = step < depths
            moved = states.gather(1, self.source[context, s])
            if self.table.shift.any():
                moved = ((moved + self.shift[context, s]) % self.modulus).to(torch.uint8)
            states = torch.where(walks[:, None], moved, states)
            cost += torch.where(walks, self.cost[context, s], 0)
            before, last = torch.where(walks, context, before), torch.where(walks, s, last)
            context = torch.where(walks, self.landing[context, s], context)
        return states, cost


def random_rows(count: int, bound: int, seed: Tensor) -> Tensor:
    """int64[count], those of the CPU for the same seed."""
    rows = torch.arange(count, device=seed.device)
    return _below(_seeded(seed ^ signed(ROWS), rows), bound)[1]


def signed(number: int) -> int:
    """The int64 with the bits of this uint64."""
    return number - 2**64 if number >= 2**63 else number


def _shifted_right(x: Tensor, bits: int) -> Tensor:
    """As if x were unsigned."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _random(state: Tensor) -> tuple[Tensor, Tensor]:
    """splitmix64 for every element: the next state, and 64 random bits. int64 wraps around like uint64."""
    state = state + signed(GAMMA)
    z = (state ^ _shifted_right(state, 30)) * signed(FACTOR_1)
    z = (z ^ _shifted_right(z, 27)) * signed(FACTOR_2)
    return state, z ^ _shifted_right(z, 31)


def _below(state: Tensor, bound: Tensor | int) -> tuple[Tensor, Tensor]:
    state, bits = _random(state)
    return state, (_shifted_right(bits, 32) * bound) >> 32


def _seeded(seed: Tensor, rows: Tensor) -> Tensor:
    return _random(_random(seed)[1] ^ (rows * signed(ROW_FACTOR)))[1]
