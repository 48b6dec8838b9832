"""Rounds of many searches without the processor: of fixed shape, recorded once as a CUDA graph, and replayed.

Longer searches are thousands of rounds one after another, each of which is little work: what counts is how soon the next
begins. So nothing is read in between. A round that needs the processor (room, a wider list, a long look in the index, a value
that cannot be) finds that out before it writes anything, and so do all that follow: they do nothing, and the processor does
that round by `Rounds.step`.
"""

from typing import Any

import torch
from torch import Tensor

from undershoot.heuristics.device_values import stays_on_device
from undershoot.search.device.lanes import RUNNING
from undershoot.search.device.nodes import MOST_COST
from undershoot.search.device.open_lists import Stacks, Taken
from undershoot.search.device.rounds import NoRoomError, Rounds

ROUNDS = {"cuda": 16, "cpu": 3}
"""After which the processor looks how far the searches are."""
FEW = 1 << 12
"""Children of a round all of which are evaluated: of more only half, since the others mostly are known, or no children."""
TRIES = 2
"""Rounds that are not replayed before one is recorded: what is set up on first use must not be recorded."""


class Replays:
    """Of searches that take one node in each round from stacks."""

    def __init__(self, rounds: Rounds, stacks: Stacks) -> None:
        self.rounds, self.stacks = rounds, stacks
        device = rounds.lanes.device
        self.fine = torch.ones((), dtype=torch.bool, device=device)
        """Whether all rounds since the processor last looked went through."""
        self.most_h = torch.zeros((), dtype=torch.float64, device=device)
        self.graph: Any = None
        self.shape: tuple[object, ...] = ()
        """What the graph was recorded for: where everything is, and how large."""
        self.tried = 0

    def run(self) -> int:
        """Some rounds. Returns how many searches go on."""
        rounds = self.rounds
        try:
            rounds.make_room(rounds.children, self.stacks.f_span - 1, 0)
        except NoRoomError:
            return rounds.step()
        self.most_h.fill_(rounds.most_h)
        self.fine.fill_(True)
        try:
            for _ in range(ROUNDS[self.fine.device.type]):
                self._replay()
        finally:
            fine, running, stored, used, most_h = self._reading().tolist()
            rounds.nodes.stored, self.stacks.used_at_most, rounds.most_h = int(stored), int(used), int(most_h)
        return int(running) if fine else rounds.step()

    def _reading(self) -> Tensor:
        lanes, nodes = self.rounds.lanes, self.rounds.nodes
        numbers = (self.fine, (lanes.status == RUNNING).sum(), nodes.count, self.stacks.used, self.most_h)
        return torch.stack([number.double() for number in numbers])

    def _replay(self) -> None:
        if self.fine.device.type != "cuda":
            self._round()
            return
        shape = self._where()
        if shape != self.shape:
            self.shape, self.graph, self.tried = shape, None, 0
        if self.graph is None and self.tried < TRIES:
            self.tried += 1
            self._round()
            return
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
                self._round()
        self.graph.replay()

    def _where(self) -> tuple[object, ...]:
        """All that is written to in place."""
        nodes, stacks, lanes = self.rounds.nodes, self.stacks, self.rounds.lanes
        parts = (*nodes.columns, nodes.slots, stacks.held, stacks.head, stacks.tail, stacks.node, stacks.next, lanes.by_f)
        return (lanes.status.data_ptr(), *((part.data_ptr(), *part.shape) for part in parts))

    def _round(self) -> None:
        """As `Rounds.step`, but nothing is read, and nothing is written unless the round can end."""
        rounds, stacks, lanes = self.rounds, self.stacks, self.rounds.lanes
        top = stacks.top(lanes.status == RUNNING)
        choice = rounds.judge(Taken(*(part[:, None] for part in (top.number, top.f, top.g, top.is_there))))
        rows, children = rounds.make(choice)
        order, looked = rounds.nodes.look_briefly(rows)
        most = len(order) if len(order) <= FEW else len(order) // 2
        is_new = torch.arange(most, device=order.device) < looked[1]
        brood = rounds.brood(rows, children, choice, order[:most], is_new)
        self.most_h.copy_(torch.where(brood.numbers[0] == 0, torch.maximum(self.most_h, brood.numbers[1]), self.most_h))
        self.fine.logical_and_(self._goes(brood.numbers, looked, most))
        # Should memory give out now, these count as open.
        rounds.expanding = torch.where(choice.is_expanded & self.fine, choice.taken.number, rounds.nodes.room).flatten()
        stacks.pop(top, top.is_there & self.fine)
        rounds.close(choice, self.fine)
        rounds.nodes.unclaim(rows, ~self.fine)
        rounds.store(choice, brood, self.fine)
        rounds.expanding = None

    def _goes(self, numbers: Tensor, looked: Tensor, most: int) -> Tensor:
        """bool[]: whether there is room for all that a round found. numbers: see `RoundKernels.read`; looked: how many rows
        have not been found yet, and how many are new."""
        rules, nodes, stacks = self.rounds.rules, self.rounds.nodes, self.stacks
        most_g = numbers[2]
        most_f = rules.g_factor * most_g + rules.h_factor * self.most_h
        is_found = (numbers[0] == 0) & (looked[0] == 0) & (looked[1] <= most)
        has_room = (nodes.count + looked[1] <= nodes.room) & (stacks.used + self.rounds.children < len(stacks.node))
        return is_found & has_room & (most_f < stacks.f_span) & (most_g < min(stacks.g_span, MOST_COST))


def replays_of(rounds: Rounds) -> Replays | None:
    """Where searches take one node in each round, from lists that are on the device, by values that are found there."""
    if rounds.rules.per_step > 1 or not stays_on_device(rounds.values) or not isinstance(rounds.open, Stacks):
        return None
    return Replays(rounds, rounds.open)
