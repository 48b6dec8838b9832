"""Rounds without the processor: of fixed shape, recorded once as a CUDA graph, and replayed.

A long search is thousands of rounds one after another, each of which is little work: what counts is how soon the next begins.
So nothing is read within a round. One that needs the processor (room, a wider list, a long look in the index, a value that
cannot be) finds that out before it writes anything; then it does nothing, and the processor does it by `Rounds.step`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from undershoot.heuristics.device_values import stays_on_device
from undershoot.search.device.lanes import RUNNING
from undershoot.search.device.nodes import MOST_COST
from undershoot.search.device.open_lists import Pushed, Taken
from undershoot.search.device.rounds import NoRoomError, Rounds
from undershoot.search.device.runs import MOST_RUNS, Runs
from undershoot.search.device.stacks import Stacks, Top

ROUNDS = {"cuda": 16, "cpu": 3}
"""Of searches in lock-step, after which the processor looks how far they are."""
FEW = 1 << 12
"""Children of a round all of which are evaluated: of more only a share, since the others mostly are known, or no children."""
SHARE = 3 / 4
TRIES = 2
"""Rounds that are not replayed before one is recorded: what is set up on first use must not be recorded."""


def replays_of(rounds: Rounds) -> "Replays | None":
    """Where values are found on the device, and the open lists can be replayed."""
    if not stays_on_device(rounds.values):
        return None
    if isinstance(rounds.open, Runs):
        return OfRuns(rounds, rounds.open)
    return OfStacks(rounds, rounds.open) if isinstance(rounds.open, Stacks) else None


class Replays(ABC):
    """Rounds of some searches."""

    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.device = rounds.lanes.device
        self.fine = torch.ones((), dtype=torch.bool, device=self.device)
        """Whether all rounds since the processor last looked went through."""
        self.most_h = torch.zeros((), dtype=torch.float64, device=self.device)
        self.graph: Any = None
        self.shape: tuple[object, ...] = ()
        """What the graph was recorded for: where everything is, and how large."""
        self.tried = 0

    @abstractmethod
    def run(self) -> int:
        """Some rounds. Returns how many searches go on."""

    @abstractmethod
    def parts(self) -> tuple[Tensor, ...]:
        """Of the open list: what is written to in place."""

    @abstractmethod
    def round(self) -> None:
        """One round."""

    def begin(self) -> None:
        """What the device has to know."""
        self.most_h.fill_(self.rounds.most_h)
        self.fine.fill_(True)

    def replay(self) -> None:
        """A round, which is recorded if it has not been."""
        if self.device.type != "cuda":
            self.round()
            return
        shape = self._where()
        if shape != self.shape:
            self.shape, self.graph, self.tried = shape, None, 0
        if self.graph is None and self.tried < TRIES:
            self.tried += 1
            self.round()
            return
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
                self.round()
        self.graph.replay()

    def _where(self) -> tuple[object, ...]:
        nodes, lanes = self.rounds.nodes, self.rounds.lanes
        parts = (*nodes.columns, nodes.slots, lanes.by_f, lanes.status, *self.parts())
        return tuple((part.data_ptr(), *part.shape) for part in parts)

    def take(self, taken: Taken, spans: tuple[int, int], has_room: Tensor, commit: Callable[[], None]) -> Pushed:
        """As `Rounds.step` goes on from there, but nothing is read, and nothing is written unless the round can end.

        spans: of f and g in the open list; has_room: bool[], whether that has room for all children; commit: takes the nodes
        out of it. Returns what is to be open.
        """
        rounds, nodes = self.rounds, self.rounds.nodes
        choice = rounds.judge(taken)
        rows, children = rounds.make(choice)
        order, looked = nodes.look_briefly(rows)
        most = len(order) if len(order) <= FEW else int(SHARE * len(order))
        is_new = torch.arange(most, device=self.device) < looked[1]
        brood = rounds.brood(rows, children, choice, order[:most], is_new)
        wrong, highest, most_g, _, _ = brood.numbers
        self.most_h.copy_(torch.where(wrong == 0, torch.maximum(self.most_h, highest), self.most_h))
        most_f = rounds.rules.g_factor * most_g + rounds.rules.h_factor * self.most_h
        self.fine.logical_and_(has_room & (wrong == 0) & (looked[0] == 0) & (looked[1] <= most))
        self.fine.logical_and_((nodes.count + looked[1] <= nodes.room) & (most_f < spans[0]))
        self.fine.logical_and_(most_g < min(spans[1], MOST_COST))
        # Should memory give out now, these count as open.
        rounds.expanding = torch.where(choice.is_expanded & self.fine, choice.taken.number, nodes.room).flatten()
        commit()
        rounds.close(choice, self.fine)
        nodes.unclaim(rows, ~self.fine)
        return rounds.store(choice, brood, self.fine)

    def numbers(self, used: Tensor) -> Tensor:
        """int64[6]: whether it is fine, how many searches run, nodes, entries in the open list, the largest h, and the least
        that a search expanded."""
        lanes = self.rounds.lanes
        runs = (lanes.status == RUNNING).sum()
        parts = (self.fine, runs, self.rounds.nodes.count, used, self.most_h, lanes.expanded.amin())
        return torch.stack([part.long() for part in parts])


class OfStacks(Replays):
    """Of searches in lock-step."""

    def __init__(self, rounds: Rounds, stacks: Stacks) -> None:
        super().__init__(rounds)
        self.stacks = stacks

    def parts(self) -> tuple[Tensor, ...]:
        """See `Replays`."""
        stacks = self.stacks
        return stacks.held, stacks.head, stacks.tail, stacks.node, stacks.next

    def run(self) -> int:
        """See `Replays`."""
        rounds, stacks = self.rounds, self.stacks
        try:
            rounds.make_room(rounds.children, stacks.f_span - 1, 0)
        except NoRoomError:
            return rounds.step()
        self.begin()
        try:
            for _ in range(ROUNDS[self.device.type]):
                self.replay()
        finally:
            fine, running, rounds.nodes.stored, stacks.used_at_most, rounds.most_h, _ = self.numbers(stacks.used).tolist()
        return int(running) if fine else rounds.step()

    def round(self) -> None:
        """See `Replays`."""
        stacks = self.stacks
        top: Top = stacks.top(self.rounds.wanted())
        taken = Taken(top.number, top.f, top.g, top.is_there)
        has_room = stacks.used + self.rounds.children < len(stacks.node)
        spans = (stacks.f_span, stacks.g_span)
        stacks.push(self.take(taken, spans, has_room, lambda: stacks.pop(top, top.is_there & self.fine)))
        self.rounds.expanding = None


class OfRuns(Replays):
    """Of one search that takes many nodes in each round: which, the processor plans, who reads what a round pushed."""

    def __init__(self, rounds: Rounds, runs: Runs) -> None:
        super().__init__(rounds)
        self.runs = runs
        self.given = torch.zeros(MOST_RUNS, 5, dtype=torch.int64)
        if self.device.type == "cuda":
            self.given = self.given.pin_memory()
        self.plan = self.given.to(self.device)
        self.counts = torch.zeros(0, dtype=torch.int64, device=self.device)
        """int64[F * G]: see `Runs.place`."""

    def parts(self) -> tuple[Tensor, ...]:
        """See `Replays`."""
        return self.runs.node, self.counts

    def run(self) -> int:
        """See `Replays`."""
        rounds, runs = self.rounds, self.runs
        try:
            rounds.make_room(rounds.children, runs.f_span - 1, 0)
        except NoRoomError:
            return rounds.step()
        plan = runs.plan(max(1, min(rounds.most_left, rounds.rules.per_step)))
        if not 0 < len(plan) <= MOST_RUNS:
            runs.put_back(plan)
            return rounds.step()
        if len(self.counts) != runs.f_span * runs.g_span:
            self.counts = torch.zeros(runs.f_span * runs.g_span, dtype=torch.int64, device=self.device)
        self.given.zero_()[: len(plan)] = torch.tensor(plan)
        self.plan.copy_(self.given, non_blocking=True)
        self.begin()
        try:
            self.replay()
        finally:
            read = torch.cat([self.numbers(runs.end), self.counts]).cpu().numpy()
            fine, running, rounds.nodes.stored, _, rounds.most_h, expanded = read[:6].tolist()
        if not fine:
            runs.put_back(plan)
            return rounds.step()
        runs.note(read[6:])
        rounds.most_left = rounds.rules.most_expanded - expanded
        return int(running)

    def round(self) -> None:
        """See `Replays`."""
        runs = self.runs
        has_room = runs.end + self.rounds.children <= len(runs.node)
        taken = runs.planned(self.plan, self.rounds.rules.per_step)
        self.counts.copy_(runs.place(self.take(taken, (runs.f_span, runs.g_span), has_room, lambda: None)))
        self.rounds.expanding = None
