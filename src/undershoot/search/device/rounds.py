"""A* on a device: rounds of many searches at once, as tensor operations of one shape.

In a round every search takes its best nodes; all their children are made, looked up, and evaluated where they are new; what is
new or reached more cheaply goes into the open lists. Until everything is known, and there is room for it, nothing is changed:
so a round that cannot end has not begun.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from undershoot.heuristics.device_values import Values
from undershoot.search.device.lanes import COUNTERS, RUNNING, Lanes, Rules
from undershoot.search.device.nodes import MOST_COST, NO_RANK, Nodes, Rows
from undershoot.search.device.open_lists import OpenList, Pushed, Taken, span_for
from undershoot.search.device.stacks import Stacks
from undershoot.search.device.step_kernels import MOST_VALUE, RoundKernels


class NoRoomError(Exception):
    """The limit of memory is reached."""


class WrongValueError(Exception):
    """A heuristic gave a value that no search can go on with."""

    def __init__(self, state: Tensor, value: float) -> None:
        super().__init__()
        self.state, self.value = state, value


class TooDearError(Exception):
    """Costs are too large for nodes."""


@dataclass(frozen=True, eq=False)
class Choice:
    """Which of the nodes that were taken, P = L * k, are expanded, and what becomes of the searches."""

    taken: Taken
    words: Tensor
    """int64[W, P]."""
    arrival: Tensor
    """int64[P]: see `Steps`."""
    closed: Tensor
    """int64[P]: `rank` of the nodes once they are expanded."""
    target: Tensor
    """int64[P]: where to write that."""
    level: Tensor
    """int64[L, k]: f, rounded down."""
    is_expanded: Tensor
    """bool[L, k]; goals, too."""
    has_children: Tensor
    """bool[P]: without goals."""
    status: Tensor
    """int64[L], afterwards; the others likewise."""
    expanded: Tensor
    incumbent: Tensor
    goal: Tensor


class Children(NamedTuple):
    """Of the nodes that are expanded, M = P * S rows."""

    made: Tensor
    """bool[M]: the others are steps that are not legal, or lead back."""
    cost: Tensor
    """int64[M]: g."""
    rank: Tensor
    """int64[M]: what a node that is reached so has."""
    generated: Tensor
    """int64[P]: how many children each parent has."""


@dataclass(frozen=True, eq=False)
class Brood:
    """Children that were looked up and evaluated."""

    children: Children
    rows: Rows
    new: Tensor
    """int64[C]: rows, of which the first are new, one for each state."""
    is_new: Tensor
    """bool[C]: which."""
    states: Tensor
    """int64[C, n]: of these; and their values, float64[C]."""
    h: Tensor
    numbers: Tensor
    """float64[5]: see `RoundKernels.read`."""


class Rounds:
    """The searches in the lanes."""

    def __init__(
        self,
        kernels: RoundKernels,
        values: Values,
        rules: Rules,
        lanes: Lanes,
        nodes: Nodes,
        open_list: OpenList,
        memory: int,
    ) -> None:
        self.kernels, self.packing, self.steps = kernels, kernels.packing, kernels.steps
        self.values, self.rules = values, rules
        self.lanes, self.nodes, self.open, self.memory = lanes, nodes, open_list, memory
        self.peak_bytes = 0
        self.most_h, self.most_left = 0, rules.most_expanded
        self.expanding: Tensor | None = None
        """int64[P]: nodes that count as open, since their children may not all be stored."""
        self.has_taken = False
        """Whether some nodes are in no open list: a search can only go on if that step ends."""
        self.goes = torch.ones((), dtype=torch.bool, device=lanes.device)

    @property
    def children(self) -> int:
        """Of a round, at most: M."""
        return self.lanes.count * self.rules.per_step * int(self.steps.steps)

    def begin(self, where: Tensor, keys: Tensor, states: Tensor) -> None:
        """Let searches begin in these lanes, int64[E], from states, int64[E, n]; their nodes have these keys."""
        h, all_of_them = self.values(states).double(), torch.ones_like(keys, dtype=torch.bool)
        numbers = self.kernels.read(h, all_of_them, torch.zeros_like(keys), all_of_them, keys, keys.clone())
        f, _, _, _ = self._checked(numbers, h, states)
        self.make_room(len(where) + self.children, f, 0)
        rows = self.nodes.rows(self.packing.pack(states), keys, all_of_them)
        self.nodes.look(rows)
        number = self.nodes.add(rows, torch.arange(len(keys), device=keys.device), h, all_of_them)
        self.nodes.stored += len(where)
        self.nodes.rank[number] = self.steps.begin(states) << 1
        self.lanes.begin(where, keys, number)
        self.open.clear(where)
        # As many places as a round has, so that nothing is compiled for this alone.
        pushed = torch.full((self.lanes.count, self.children // self.lanes.count), self.nodes.room, device=keys.device)
        pushed[where, 0] = number
        f_of, g_of = torch.zeros_like(pushed), torch.zeros_like(pushed)
        f_of[where, 0] = (self.rules.h_factor * h).long()
        self.open.push(Pushed(pushed, f_of, g_of, pushed < self.nodes.room))
        self.most_left = self.rules.most_expanded

    def step(self) -> int:
        """One round. Returns how many searches go on."""
        self.has_taken = False
        self.make_room(self.children, 0, 0)
        self.has_taken = True
        choice = self.judge(self.open.take(self.wanted(), max(1, min(self.most_left, self.rules.per_step))))
        rows, children = self.make(choice)
        order, count = self.nodes.look(rows)
        brood = self.brood(rows, children, choice, order[:count], torch.ones_like(order[:count], dtype=torch.bool))
        f, g, running, expanded = self._checked(brood.numbers, brood.h, brood.states)
        if g > MOST_COST:
            raise TooDearError
        self.make_room(0, f, g)
        self.expanding = torch.where(choice.is_expanded, choice.taken.number, self.nodes.room).flatten()
        self.close(choice, self.goes)
        self.open.push(self.store(choice, brood, self.goes))
        self.nodes.stored += count
        self.expanding, self.most_left = None, self.rules.most_expanded - expanded
        return running

    def wanted(self) -> Tensor:
        """int64[L]: how many nodes each search takes in a round, at most."""
        left = self.rules.most_expanded - self.lanes.expanded
        return torch.where(self.lanes.status == RUNNING, left.clamp(1, self.rules.per_step), 0)

    def forget_others(self) -> None:
        """Forget all nodes but those of searches that run."""
        lanes, nodes = self.lanes, self.nodes
        if not isinstance(self.open, Stacks) or not nodes.many:
            return
        runs = lanes.status == RUNNING
        is_kept = torch.isin(nodes.lane[: nodes.stored].long(), lanes.key[runs])
        self.open.clear((~runs).nonzero()[:, 0])
        where = nodes.forget(is_kept)
        self.open.forget(where)
        lanes.renumber(torch.where(where < nodes.room, where, -1))

    def narrow(self, kept: Tensor) -> None:
        """Only these lanes, int64[K]; in the others nothing runs, and nothing is to be reported."""
        if isinstance(self.open, Stacks):
            self.lanes.narrow(kept)
            self.open.narrow(kept)

    def make_room(self, more: int, f: int, g: int) -> None:
        """For so many nodes and entries more, and f and g up to these."""
        need = self.nodes.bytes_with(more) + self.open.bytes_with(more, f, g)
        if need > self.memory:
            raise NoRoomError
        self.nodes.make_room(more)
        self.open.make_room(more, f, g)
        self.lanes.widen(span_for(1, f // self.rules.g_factor))
        self.peak_bytes = max(self.peak_bytes, self.nodes.bytes + self.open.bytes)

    def _checked(self, numbers: Tensor, h: Tensor, states: Tensor) -> tuple[int, int, int, int]:
        """What the processor has to know: the largest f and g that can come up, how many searches go on, and the least that one
        of them expanded. A value that cannot be is refused. numbers: see `RoundKernels.read`; h: of states, int64[B, n]."""
        wrong, highest, most_g, running, least_expanded = numbers.tolist()
        if wrong:
            row = int((~((h >= 0) & (h <= MOST_VALUE) & (h == h.floor()))).int().argmax())
            raise WrongValueError(states[row], float(h[row]))
        self.most_h = max(self.most_h, int(highest))
        most_f = self.rules.g_factor * int(most_g) + self.rules.h_factor * self.most_h
        return most_f, int(most_g), int(running), int(least_expanded)

    def judge(self, taken: Taken) -> Choice:
        """See what follows of the best nodes."""
        lanes, nodes = self.lanes, self.nodes
        words = nodes.words[:, taken.number.flatten()]
        parts = (taken.number, taken.f, taken.g, taken.is_there, nodes.rank[taken.number])
        columns = (lanes.status, lanes.expanded, lanes.incumbent, lanes.goal)
        return Choice(taken, words, *self.kernels.judged(words, *parts, *columns, self.rules.most_expanded, nodes.room))

    def make(self, choice: Choice) -> tuple[Rows, Children]:
        """All children; nothing is known of them yet."""
        words, lane, place, *children = self.kernels.made(
            choice.words, choice.arrival, choice.has_children, choice.taken.g, self.lanes.key
        )
        made = Children(*children)
        return self.nodes.rows(words, lane, made.made, place), made

    def brood(self, rows: Rows, children: Children, choice: Choice, new: Tensor, is_new: Tensor) -> Brood:
        """Evaluate what is new, once all are looked up. new, is_new: see `Brood`."""
        states = self.packing.unpack(rows.words[:, new])
        h = self.values(states).double()
        numbers = self.kernels.read(h, is_new, children.cost, children.made, choice.status, choice.expanded)
        return Brood(children, rows, new, is_new, states, h, numbers)

    def close(self, choice: Choice, goes: Tensor) -> None:
        """Close the nodes, and note goals; if it comes to that, bool[]."""
        lanes, rank = self.lanes, self.nodes.rank
        rank[torch.where(goes, choice.target, self.nodes.room)] = choice.closed
        rank[-1:].fill_(NO_RANK)
        for name in ("status", "expanded", "incumbent", "goal"):
            column: Tensor = getattr(lanes, name)
            column.copy_(torch.where(goes, getattr(choice, name), column))
        level = choice.level.clamp_max(lanes.by_f.shape[1] - 1)
        lanes.by_f.scatter_add_(1, level, (choice.is_expanded & goes).int())

    def store(self, choice: Choice, brood: Brood, goes: Tensor) -> Pushed:
        """Store new nodes; if it comes to that, bool[]. What is new or reached more cheaply is to be open.

        Of several ways to one node the cheapest counts, and of these the first: each bids its cost and its row, and who reads
        its own bid has won.
        """
        nodes, lanes, found, children = self.nodes, self.lanes, brood.rows.found, brood.children
        number = nodes.add(brood.rows, brood.new, brood.h, brood.is_new & goes)
        made, cost = children.made & goes, children.cost
        node, before, bid, target = self.kernels.bids(found, number, made, cost, nodes.rank, nodes.room)
        nodes.rank.scatter_reduce_(0, target, bid, "amin")
        wins, target, f, reopened = self.kernels.won(node, before, bid, cost, nodes.rank, nodes.h, nodes.room)
        nodes.rank[target] = children.rank
        nodes.rank[-1:].fill_(NO_RANK)
        parent = choice.taken.number.flatten().repeat_interleave(self.steps.steps, output_size=len(found))
        nodes.parent[target] = parent.int()
        by_lane = (lanes.count, -1)
        counts = torch.stack([children.generated.view(by_lane).sum(1) * goes, *self._counts(number, reopened)])
        for name, more in zip(COUNTERS[1:], counts, strict=True):
            getattr(lanes, name).add_(more)
        return Pushed(*(part.view(by_lane) for part in (node, f, cost, wins)))

    def _counts(self, number: Tensor, reopened: Tensor) -> Tensor:
        """int64[2, L]: how many were evaluated, and reopened."""
        return torch.stack([number < self.nodes.room, reopened]).view(2, self.lanes.count, -1).sum(2)
