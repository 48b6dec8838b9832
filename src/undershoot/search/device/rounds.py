"""A* on a device: rounds of many searches at once, as tensor operations of one shape.

In a round every search takes its best nodes; all their children are made, looked up, and evaluated where they are new; what is
new or reached more cheaply goes into the open lists. Until everything is known, and there is room for it, nothing is changed:
so a round that cannot end has not begun.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from undershoot.heuristics.device_values import Values
from undershoot.kernels.fused import Fused
from undershoot.search.device.lanes import (
    NEVER,
    OVER_BUDGET,
    RUNNING,
    SOLVED,
    UNSOLVABLE,
    Lanes,
    Rules,
)
from undershoot.search.device.nodes import CLOSED, COST_SHIFT, MOST_COST, NO_RANK, Nodes, Rows, spread
from undershoot.search.device.open_lists import OpenList, Pushed, Stacks, Taken, span_for
from undershoot.search.device.packing import Packing, Steps

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


@dataclass(frozen=True, eq=False)
class Brood:
    """Their children, M = P * S rows."""

    made: Tensor
    """bool[M]: the others are steps that are not legal, or lead back."""
    cost: Tensor
    """int64[M]: g."""
    rank: Tensor
    """int64[M]: what a node that is reached so has."""
    generated: Tensor
    """int64[P]: how many children each parent has."""
    rows: Rows
    new: Tensor
    """int64[N]: the rows that are, one for each state."""
    states: Tensor
    """int64[N, n]: of these; and their values, float64[N]."""
    h: Tensor


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
        self.most_h, self.most_left = 0, rules.most_expanded
        self.expanding: Tensor | None = None
        """int64[P]: nodes that count as open, since their children may not all be stored."""
        self.has_taken = False
        """Whether some nodes are in no open list: a search can only go on if that step ends."""
        self.judged, self.made = Fused(self._judged, lanes.device), Fused(self._made, lanes.device)
        self.bids, self.won = Fused(self._bids, lanes.device), Fused(self._won, lanes.device)

    def begin(self, where: Tensor, keys: Tensor, states: Tensor) -> None:
        """Let searches begin in these lanes, int64[E], from states, int64[E, n]; their nodes have these keys."""
        count, rules = len(where), self.rules
        h = self.values(states).double()
        f, _, _, _ = self._read(h, states, torch.zeros_like(keys), keys, keys)
        self._make_room(count + self.lanes.count, f, 0)
        words = self.packing.pack(states)
        rows = self.nodes.rows(words, keys, torch.ones_like(keys, dtype=torch.bool))
        self.nodes.look(rows)
        first = self.nodes.stored
        self.nodes.add(words, keys, h, rows.slot)
        numbers = torch.arange(first, first + count, device=keys.device)
        self.nodes.rank[numbers] = self.steps.begin(states) << 1
        self.lanes.begin(where, keys, numbers)
        self.open.clear(where)
        pushed = torch.full((self.lanes.count, 1), self.nodes.room, device=keys.device)
        pushed[where, 0] = numbers
        f_of = torch.zeros_like(pushed)
        f_of[where, 0] = (rules.h_factor * h).long()
        self.open.push(Pushed(pushed, f_of, torch.zeros_like(pushed), pushed < self.nodes.room))
        self.most_left = rules.most_expanded

    def step(self) -> int:
        """One round. Returns how many searches go on."""
        children = self.lanes.count * self.rules.per_step * self.steps.steps
        self.has_taken = False
        self._make_room(children, 0, 0)
        self.has_taken = True
        choice = self._choose()
        brood = self._brood(choice)
        g_made = torch.where(brood.made, brood.cost, 0)
        f, g, running, expanded = self._read(brood.h, brood.states, g_made, choice.status, choice.expanded)
        if g > MOST_COST:
            raise TooDearError
        self._make_room(0, f, g)
        self.expanding = torch.where(choice.is_expanded, choice.taken.number, self.nodes.room).flatten()
        self._expand(choice)
        self._store(choice, brood)
        self.expanding, self.most_left = None, self.rules.most_expanded - expanded
        return running

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

    def _make_room(self, more: int, f: int, g: int) -> None:
        """For so many nodes and entries more, and f and g up to these."""
        need = self.nodes.bytes_with(more) + self.open.bytes_with(more, f, g)
        if need > self.memory:
            raise NoRoomError
        self.nodes.make_room(more)
        self.open.make_room(more, f, g)
        self.lanes.widen(span_for(1, f // self.rules.g_factor))
        self.peak_bytes = max(self.peak_bytes, self.nodes.bytes + self.open.bytes)

    def _read(self, h: Tensor, states: Tensor, g: Tensor, status: Tensor, expanded: Tensor) -> tuple[int, int, int, int]:
        """What the processor has to know: the largest f and g that can come up, how many searches go on, and the least that one
        of them expanded. A value that cannot be is refused. h: of states, int64[B, n]."""
        least = torch.zeros(1, dtype=torch.float64, device=h.device)
        is_wrong = ~((h >= self.rules.least_value) & (h <= MOST_VALUE) & (h == h.floor()))
        runs = status == RUNNING
        numbers = (is_wrong.sum(), torch.cat([h, least]).amax(), g.amax(), runs.sum(), expanded.amin())
        wrong, highest, most_g, running, least_expanded = torch.stack([number.double() for number in numbers]).tolist()
        if wrong:
            row = int(is_wrong.int().argmax())
            raise WrongValueError(states[row], float(h[row]))
        self.most_h = max(self.most_h, int(highest))
        most_f = self.rules.g_factor * int(most_g) + self.rules.h_factor * self.most_h
        return most_f, int(most_g), int(running), int(least_expanded)

    def _choose(self) -> Choice:
        """Take the best nodes, and see what follows."""
        lanes, nodes, rules = self.lanes, self.nodes, self.rules
        left = rules.most_expanded - lanes.expanded
        most = torch.where(lanes.status == RUNNING, left.clamp(1, rules.per_step), 0)
        taken = self.open.take(most, max(1, min(self.most_left, rules.per_step)))
        words = nodes.words[:, taken.number.flatten()]
        parts = (taken.number, taken.f, taken.g, taken.is_there, nodes.rank[taken.number])
        columns = (lanes.status, lanes.expanded, lanes.incumbent, lanes.goal)
        return Choice(taken, words, *self.judged(words, *parts, *columns, nodes.room))

    def _judged(
        self,
        words: Tensor,
        number: Tensor,
        f: Tensor,
        g: Tensor,
        is_there: Tensor,
        rank: Tensor,
        status: Tensor,
        expanded: Tensor,
        incumbent: Tensor,
        goal: Tensor,
        nowhere: int,
    ) -> tuple[Tensor, ...]:
        """The fields of `Choice` from `arrival` on. A search ends if it has no node, none below its best solution, or may
        expand no more."""
        rules = self.rules
        is_current = is_there & (rank >> COST_SHIFT == g) & (rank & CLOSED == 0)
        is_goal = self.steps.is_goal(words).view(rank.shape) & is_current
        before = incumbent[:, None]
        if rank.shape[1] > 1:
            best = torch.minimum(before, torch.where(is_goal, g, NEVER).cummin(1)[0])
            before = torch.cat([before, best[:, :-1]], dim=1)
        is_wanted = is_current & (f < before * rules.g_factor)
        has_wanted, may = is_wanted.any(1), expanded < rules.most_expanded
        is_over = ~is_there.any(1) | (is_current.any(1) & ~has_wanted)
        ends = torch.where(incumbent < NEVER, SOLVED, UNSOLVABLE)
        after = torch.where(is_over, ends, torch.where(has_wanted & ~may, OVER_BUDGET, RUNNING))
        is_expanded = is_wanted & may[:, None]
        reached = is_expanded & is_goal
        if rules.per_step == 1:
            after = torch.where(reached.any(1), SOLVED, after)
        cost, which = torch.where(reached, g, NEVER).min(1)
        goal = torch.where(cost < incumbent, number.gather(1, which[:, None])[:, 0], goal)
        flat, has_children = is_expanded.flatten(), (is_expanded & ~is_goal).flatten()
        return (
            torch.where(has_children, (rank.flatten() >> 1) & ARRIVAL, 0),
            rank.flatten() | CLOSED,
            torch.where(flat, number.flatten(), nowhere),
            torch.div(f, rules.g_factor, rounding_mode="floor"),
            is_expanded,
            has_children,
            torch.where(status == RUNNING, after, status),
            expanded + is_expanded.sum(1),
            torch.minimum(incumbent, cost),
            goal,
        )

    def _brood(self, choice: Choice) -> Brood:
        """Make the children, look them up, and evaluate those that are new."""
        words, lane, place, made, cost, rank, generated = self.made(
            choice.words, choice.arrival, choice.has_children, choice.taken.g, self.lanes.key
        )
        nothing = torch.zeros_like(lane)
        rows = Rows(words, lane, place, made, nothing, nothing)
        order, count = self.nodes.look(rows)
        new = order[:count]
        states = self.packing.unpack(words[:, new])
        return Brood(made, cost, rank, generated, rows, new, states, self.values(states).double())

    def _made(self, words: Tensor, arrival: Tensor, has_children: Tensor, g: Tensor, key: Tensor) -> tuple[Tensor, ...]:
        """Words, the searches they belong to, and where the look begins; the fields of `Brood` up to `generated`."""
        child_words, price, reached, legal, is_back = self.steps.children(words, arrival)
        lane = key[:, None].expand(-1, price.numel() // key.shape[0]).flatten()
        cost = (g.flatten()[:, None] + price).flatten()
        made = (legal & ~is_back & has_children[:, None]).flatten()
        rank = (cost << COST_SHIFT) | (reached.flatten() << 1)
        words_of_row = [child_words[w] for w in range(self.packing.words)]
        generated = (legal & has_children[:, None]).sum(1)
        return child_words, lane, spread(words_of_row, lane), made, cost, rank, generated

    def _expand(self, choice: Choice) -> None:
        """Close the nodes, and note goals."""
        lanes, rank = self.lanes, self.nodes.rank
        rank[choice.target] = choice.closed
        rank[-1] = NO_RANK
        lanes.status, lanes.expanded = choice.status, choice.expanded
        lanes.incumbent, lanes.goal = choice.incumbent, choice.goal
        level = choice.level.clamp_max(lanes.by_f.shape[1] - 1)
        lanes.by_f.scatter_add_(1, level, choice.is_expanded.int())

    def _store(self, choice: Choice, brood: Brood) -> None:
        """Store new nodes, and let what is new or reached more cheaply be open.

        Of several ways to one node the cheapest counts, and of these the first: each bids its cost and its row, and who reads
        its own bid has won.
        """
        nodes, lanes, found, new = self.nodes, self.lanes, brood.rows.found, brood.new
        first = nodes.stored
        nodes.add(brood.rows.words[:, new], brood.rows.lane[new], brood.h, brood.rows.slot[new])
        number = torch.full_like(found, nodes.room)
        number[new] = torch.arange(first, nodes.stored, device=found.device)
        node, before, bid, target = self.bids(found, number, brood.made, brood.cost, nodes.rank, nodes.room)
        nodes.rank.scatter_reduce_(0, target, bid, "amin")
        wins, target, f, reopened = self.won(node, before, bid, brood.cost, nodes.rank, nodes.h, nodes.room)
        nodes.rank[target] = brood.rank
        nodes.rank[-1] = NO_RANK
        parent = choice.taken.number.flatten().repeat_interleave(self.steps.steps, output_size=len(found))
        nodes.parent[target] = parent.int()
        by_lane = (lanes.count, -1)
        counts = torch.stack([reopened, number < nodes.room]).view(2, *by_lane).sum(2)
        lanes.reopened, lanes.evaluated = lanes.reopened + counts[0], lanes.evaluated + counts[1]
        lanes.generated = lanes.generated + brood.generated.view(by_lane).sum(1)
        self.open.push(Pushed(*(part.view(by_lane) for part in (node, f, brood.cost, wins))))

    @staticmethod
    def _bids(found: Tensor, number: Tensor, made: Tensor, cost: Tensor, rank: Tensor, nowhere: int) -> tuple[Tensor, ...]:
        """Of each row the node, its rank before, the bid, and where that goes; a row that offers nothing bids nothing."""
        node = torch.where(found > 0, found - 1, number[(-1 - found).clamp_min(0)])
        node = torch.where(made, node, nowhere)
        before = rank[node]
        is_better = made & (cost < before >> COST_SHIFT)
        row = torch.arange(found.shape[0], device=found.device)
        bid = torch.where(is_better, (cost << COST_SHIFT) | (row << 1), NO_RANK)
        return node, before, bid, torch.where(is_better, node, nowhere)

    def _won(
        self, node: Tensor, before: Tensor, bid: Tensor, cost: Tensor, rank: Tensor, h: Tensor, nowhere: int
    ) -> tuple[Tensor, ...]:
        """Which rows won, the nodes that they lead to now, f, and whether these had been expanded."""
        wins = (bid != NO_RANK) & (rank[node] == bid)
        f = self.rules.g_factor * cost + self.rules.h_factor * h[node].long()
        return wins, torch.where(wins, node, nowhere), f, wins & (before & CLOSED == 1)
