"""A* on a device: rounds of many searches at once, as tensor operations of one shape.

In a round every search takes its best nodes; all their children are made, looked up, and evaluated where they are new; what is
new or reached more cheaply goes into the open lists. Until everything is known, and there is room for it, nothing is changed:
so a round that cannot end has not begun.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from undershoot.heuristics.device_values import Values
from undershoot.search.device.lanes import (
    NEVER,
    OVER_BUDGET,
    RUNNING,
    SOLVED,
    UNSOLVABLE,
    Lanes,
    Rules,
)
from undershoot.search.device.nodes import CLOSED, COST_SHIFT, MOST_COST, NO_RANK, Nodes, Rows
from undershoot.search.device.open_lists import OpenList, Pushed, Taken, span_for
from undershoot.search.device.packing import Children, Packing, Steps

MOST_VALUE = 32_000
"""Of a heuristic: kept in 16 bits."""
ARRIVAL = (1 << (COST_SHIFT - 1)) - 1


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
    """Which of the nodes that were taken are expanded."""

    taken: Taken
    words: Tensor
    """int64[W, L * k]."""
    rank: Tensor
    """int64[L, k]."""
    is_goal: Tensor
    """bool[L, k]."""
    is_expanded: Tensor
    """bool[L, k]; goals, too."""
    status: Tensor
    """int64[L]: afterwards."""


@dataclass(frozen=True, eq=False)
class Brood:
    """Their children, M = L * k * S rows."""

    children: Children
    made: Tensor
    """bool[M]: the others are steps that are not legal, or lead back."""
    cost: Tensor
    """int64[M]: g."""
    rows: Rows
    slot: Tensor
    """int64[M]: the place in the index of those that are new."""
    new: Tensor
    """int64[N]: the rows that are, one for each state."""
    h: Tensor
    """float64[N]: of these."""


class Rounds:
    """The searches in the lanes."""

    def __init__(
        self,
        packing: Packing,
        steps: Steps,
        values: Values,
        rules: Rules,
        lanes: Lanes,
        nodes: Nodes,
        open_list: OpenList,
        memory: int,
    ) -> None:
        self.packing, self.steps, self.values, self.rules = packing, steps, values, rules
        self.lanes, self.nodes, self.open, self.memory = lanes, nodes, open_list, memory
        self.peak_bytes = 0
        self.most_h = 0
        self.expanding: Tensor | None = None
        """int64[P]: nodes that count as open, since their children may not all be stored."""

    def begin(self, where: Tensor, keys: Tensor, states: Tensor) -> None:
        """Let searches begin in these lanes, int64[E], from states, int64[E, n]; their nodes have these keys."""
        count = len(where)
        h = self._checked(states)
        self._make_room(count + self.lanes.count, *self._highest(h, torch.zeros_like(keys)))
        words = self.packing.pack(states)
        rows = self.nodes.rows(words, keys, torch.ones_like(keys, dtype=torch.bool))
        slot = self.nodes.look(rows)
        first = self.nodes.stored
        self.nodes.add(words, keys, h, slot)
        numbers = torch.arange(first, first + count, device=keys.device)
        self.nodes.rank[numbers] = self.steps.begin(states) << 1
        self.lanes.begin(where, keys, numbers)
        self.open.clear(where)
        pushed = torch.full((self.lanes.count, 1), self.nodes.room, device=keys.device)
        pushed[where, 0] = numbers
        f = torch.zeros_like(pushed)
        f[where, 0] = (self.rules.h_factor * h).long()
        self.open.push(Pushed(pushed, f, torch.zeros_like(pushed), pushed < self.nodes.room))

    def step(self) -> int:
        """One round. Returns how many searches were running when it began."""
        children = self.lanes.count * self.rules.per_step * self.steps.steps
        self._make_room(children, 0, 0)
        choice = self._choose()
        brood = self._brood(choice)
        f, g = self._highest(brood.h, torch.where(brood.made, brood.cost, 0))
        if g > MOST_COST:
            raise TooDearError
        self._make_room(0, f, g)
        running = int((self.lanes.status == RUNNING).sum())
        self.expanding = torch.where(choice.is_expanded, choice.taken.number, self.nodes.room).flatten()
        self._expand(choice)
        self._store(choice, brood)
        self.expanding = None
        return running

    def _make_room(self, more: int, f: int, g: int) -> None:
        """For so many nodes and entries more, and f and g up to these."""
        need = self.nodes.bytes_with(more) + self.open.bytes_with(more, f, g)
        if need > self.memory:
            raise NoRoomError
        self.nodes.make_room(more)
        self.open.make_room(more, f, g)
        self.lanes.widen(span_for(1, f // self.rules.g_factor))
        self.peak_bytes = max(self.peak_bytes, self.nodes.bytes + self.open.bytes)

    def _highest(self, h: Tensor, g: Tensor) -> tuple[int, int]:
        """The largest f and g that can come up."""
        least = torch.zeros(1, dtype=torch.float64, device=h.device)
        highest = torch.stack([torch.cat([h, least]).amax(), g.amax().double()]).tolist()
        self.most_h = max(self.most_h, int(highest[0]))
        return int(self.rules.g_factor * highest[1] + self.rules.h_factor * self.most_h), int(highest[1])

    def _checked(self, states: Tensor) -> Tensor:
        """float64[B]: values, of states, int64[B, n]."""
        values = self.values(states).double()
        is_right = (values >= self.rules.least_value) & (values <= MOST_VALUE) & (values == values.floor())
        if not bool(is_right.all()):
            row = int((~is_right).int().argmax())
            raise WrongValueError(states[row], float(values[row]))
        return values

    def _choose(self) -> Choice:
        """Take the best nodes. A search ends if it has none, none below its best solution, or may expand no more."""
        lanes, rules = self.lanes, self.rules
        runs = lanes.status == RUNNING
        left = rules.most_expanded - lanes.expanded
        taken = self.open.take(torch.where(runs, left.clamp(1, rules.per_step), 0))
        rank = self.nodes.rank[taken.number]
        is_current = taken.is_there & (rank >> COST_SHIFT == taken.g) & (rank & CLOSED == 0)
        words = self.nodes.words[:, taken.number.flatten()]
        is_goal = self.steps.is_goal(words).view(rank.shape) & is_current
        reached = torch.where(is_goal, taken.g, NEVER)
        best = torch.minimum(lanes.incumbent[:, None], reached.cummin(1)[0])
        best_before = torch.cat([lanes.incumbent[:, None], best[:, :-1]], dim=1)
        is_wanted = is_current & (taken.f < best_before * rules.g_factor)
        is_empty, is_stale = ~taken.is_there.any(1), ~is_current.any(1)
        is_over = is_empty | ~(is_stale | is_wanted.any(1))
        ends = torch.where(lanes.incumbent < NEVER, SOLVED, UNSOLVABLE)
        status = torch.where(is_over, ends, torch.where(is_wanted.any(1) & (left <= 0), OVER_BUDGET, RUNNING))
        is_expanded = is_wanted & (left > 0)[:, None]
        if rules.per_step == 1:
            status = torch.where((is_expanded & is_goal).any(1), SOLVED, status)
        return Choice(taken, words, rank, is_goal, is_expanded, torch.where(runs, status, lanes.status))

    def _brood(self, choice: Choice) -> Brood:
        """Make the children, look them up, and evaluate those that are new."""
        arrival = (choice.rank.flatten() >> 1) & ARRIVAL
        parents = (choice.is_expanded & ~choice.is_goal).flatten()
        arrival = torch.where(parents, arrival, 0)
        children = self.steps.children(choice.words, arrival)
        made = (children.legal & ~children.is_back & parents[:, None]).flatten()
        cost = (choice.taken.g.flatten()[:, None] + children.price).flatten()
        lane = self.lanes.key.repeat_interleave(len(made) // self.lanes.count, output_size=len(made))
        rows = self.nodes.rows(children.words.flatten(1), lane, made)
        slot = self.nodes.look(rows)
        new = (rows.found == -1 - torch.arange(len(made), device=made.device)).nonzero()[:, 0]
        h = self._checked(self.packing.unpack(rows.words[:, new]))
        return Brood(children, made, cost, rows, slot, new, h)

    def _expand(self, choice: Choice) -> None:
        """Close the nodes, and note goals."""
        lanes, taken, is_expanded = self.lanes, choice.taken, choice.is_expanded
        self.nodes.rank[torch.where(is_expanded, taken.number, self.nodes.room)] = choice.rank | CLOSED
        self.nodes.rank[self.nodes.room] = NO_RANK
        lanes.status = choice.status
        lanes.expanded = lanes.expanded + is_expanded.sum(1)
        level = torch.div(taken.f, self.rules.g_factor, rounding_mode="floor")
        lanes.by_f.scatter_add_(1, level.clamp_max(lanes.by_f.shape[1] - 1), is_expanded.int())
        cost, which = torch.where(choice.is_goal & is_expanded, taken.g, NEVER).min(1)
        lanes.goal = torch.where(cost < lanes.incumbent, taken.number.gather(1, which[:, None])[:, 0], lanes.goal)
        lanes.incumbent = torch.minimum(lanes.incumbent, cost)

    def _store(self, choice: Choice, brood: Brood) -> None:
        """Store new nodes, and let what is new or reached more cheaply be open.

        Of several ways to one node the cheapest counts, and of these the first: each bids its cost and its row, and who reads
        its own bid has won.
        """
        nodes, lanes, found, nowhere = self.nodes, self.lanes, brood.rows.found, self.nodes.room
        first, row = nodes.stored, torch.arange(len(found), device=found.device)
        nodes.add(brood.rows.words[:, brood.new], brood.rows.lane[brood.new], brood.h, brood.slot[brood.new])
        number = torch.full_like(found, nowhere)
        number[brood.new] = torch.arange(first, nodes.stored, device=found.device)
        node = torch.where(found > 0, found - 1, number[(-1 - found).clamp_min(0)])
        node = torch.where(brood.made, node, nowhere)
        before = nodes.rank[node]
        is_better = brood.made & (brood.cost < before >> COST_SHIFT)
        bid = (brood.cost << COST_SHIFT) | (row << 1)
        nodes.rank.scatter_reduce_(0, torch.where(is_better, node, nowhere), torch.where(is_better, bid, NO_RANK), "amin")
        wins = is_better & (nodes.rank[node] == bid)
        target = torch.where(wins, node, nowhere)
        nodes.rank[target] = (brood.cost << COST_SHIFT) | (brood.children.arrival.flatten() << 1)
        nodes.rank[nowhere] = NO_RANK
        parent = choice.taken.number.flatten().repeat_interleave(self.steps.steps, output_size=len(found))
        nodes.parent[target] = parent.int()
        by_lane = (lanes.count, -1)
        lanes.reopened = lanes.reopened + (wins & (before & CLOSED == 1)).view(by_lane).sum(1)
        is_new = torch.zeros_like(found).index_fill_(0, brood.new, 1)
        lanes.evaluated = lanes.evaluated + is_new.view(by_lane).sum(1)
        parents = (choice.is_expanded & ~choice.is_goal).flatten()[:, None]
        lanes.generated = lanes.generated + (brood.children.legal & parents).view(by_lane).sum(1)
        f = self.rules.g_factor * brood.cost + self.rules.h_factor * nodes.h[node].long()
        self.open.push(Pushed(*(part.view(by_lane) for part in (node, f, brood.cost, wins))))
