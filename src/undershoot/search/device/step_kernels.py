"""What a round of A* on a device computes, as functions that a compiler makes one kernel of: nothing here is written to."""

import torch
from torch import Tensor

from undershoot.kernels.fused import Fused
from undershoot.puzzles.moves import MoveTable
from undershoot.search.device.lanes import NEVER, OVER_BUDGET, RUNNING, SOLVED, UNSOLVABLE, Rules
from undershoot.search.device.nodes import CLOSED, COST_SHIFT, NO_RANK, spread
from undershoot.search.device.packing import Packing, Steps

MOST_VALUE = 32_000
"""Of a heuristic: kept in 16 bits."""
ARRIVAL = (1 << (COST_SHIFT - 1)) - 1
MOST_KEPT = 32
_kept: dict[tuple[object, ...], "RoundKernels"] = {}


def round_kernels(table: MoveTable, rules: Rules, device: torch.device) -> "RoundKernels":
    """Those of earlier searches, if they were alike: to compile them takes much longer than most searches."""
    key = (table.fingerprint, rules.g_factor, rules.h_factor, rules.per_step, str(device))
    if key not in _kept:
        if len(_kept) >= MOST_KEPT:
            _kept.pop(next(iter(_kept)))
        _kept[key] = RoundKernels(table, rules, device)
    return _kept[key]


class RoundKernels:
    """For one puzzle, weight, and number of nodes that a search expands at once."""

    def __init__(self, table: MoveTable, rules: Rules, device: torch.device) -> None:
        self.packing = Packing(table, device)
        self.steps = Steps(table, self.packing, device)
        self.g_factor, self.h_factor, self.per_step = rules.g_factor, rules.h_factor, rules.per_step
        # What is summed up over many rows, torch does better than what a compiler makes of it.
        self.judged = Fused(self._judged, device) if rules.per_step == 1 else self._judged
        self.made = Fused(self._made, device)
        self.bids, self.won = Fused(self._bids, device), Fused(self._won, device)

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
        most_expanded: int,
        nowhere: int,
    ) -> tuple[Tensor, ...]:
        """The fields of `Choice` from `arrival` on. A search ends if it has no node, none below its best solution, or may
        expand no more."""
        is_current = is_there & (rank >> COST_SHIFT == g) & (rank & CLOSED == 0)
        is_goal = self.steps.is_goal(words).view(rank.shape) & is_current
        is_wanted = is_current & (f < incumbent[:, None] * self.g_factor)
        if self.per_step > 1:
            # What comes after a goal has no smaller f, so it cannot become cheaper than that.
            place = torch.arange(rank.shape[1], device=rank.device)
            is_wanted &= place <= torch.where(is_goal, place, rank.shape[1]).amin(1, keepdim=True)
        has_wanted, may = is_wanted.any(1), expanded < most_expanded
        is_over = ~is_there.any(1) | (is_current.any(1) & ~has_wanted)
        ends = torch.where(incumbent < NEVER, SOLVED, UNSOLVABLE)
        after = torch.where(is_over, ends, torch.where(has_wanted & ~may, OVER_BUDGET, RUNNING))
        is_expanded = is_wanted & may[:, None]
        reached = is_expanded & is_goal
        if self.per_step == 1:
            after = torch.where(reached.any(1), SOLVED, after)
        cost, which = torch.where(reached, g, NEVER).min(1)
        goal = torch.where(cost < incumbent, number.gather(1, which[:, None])[:, 0], goal)
        flat, has_children = is_expanded.flatten(), (is_expanded & ~is_goal).flatten()
        return (
            torch.where(has_children, (rank.flatten() >> 1) & ARRIVAL, 0),
            rank.flatten() | CLOSED,
            torch.where(flat, number.flatten(), nowhere),
            torch.div(f, self.g_factor, rounding_mode="floor"),
            is_expanded,
            has_children,
            torch.where(status == RUNNING, after, status),
            expanded + is_expanded.sum(1),
            torch.minimum(incumbent, cost),
            goal,
        )

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

    @staticmethod
    def _bids(found: Tensor, number: Tensor, made: Tensor, cost: Tensor, rank: Tensor, nowhere: int) -> tuple[Tensor, ...]:
        """Of each row the node, its rank before, the bid, and where that goes. A row that offers nothing bids what no node has,
        anywhere: a device would have many wait that bid in one place."""
        node = torch.where(found > 0, found - 1, number[(-1 - found).clamp_min(0)])
        node = torch.where(made, node, nowhere)
        before = rank[node]
        is_better = made & (cost < before >> COST_SHIFT)
        row = torch.arange(found.shape[0], device=found.device)
        bid = torch.where(is_better, (cost << COST_SHIFT) | (row << 1), NO_RANK)
        return node, before, bid, torch.where(is_better, node, row % nowhere)

    def _won(
        self, node: Tensor, before: Tensor, bid: Tensor, cost: Tensor, rank: Tensor, h: Tensor, nowhere: int
    ) -> tuple[Tensor, ...]:
        """Which rows won, the nodes that they lead to now, f, and whether these had been expanded."""
        wins = (bid != NO_RANK) & (rank[node] == bid)
        f = self.g_factor * cost + self.h_factor * h[node].long()
        return wins, torch.where(wins, node, nowhere), f, wins & (before & CLOSED == 1)

    @staticmethod
    def read(h: Tensor, counts: Tensor, g: Tensor, made: Tensor, status: Tensor, expanded: Tensor) -> Tensor:
        """float64[5]: how many values cannot be, the largest value, the largest g of a child, how many searches go on, and the
        least that one of them expanded.

        h: float64[C], which counts where counts, bool[C]; g, made: [M]; status, expanded: int64[L].
        """
        is_wrong = counts & ~((h >= 0) & (h <= MOST_VALUE) & (h == h.floor()))
        highest = torch.where(counts, h, 0.0).amax() if h.shape[0] else torch.zeros((), dtype=h.dtype, device=h.device)
        most_g = torch.where(made, g, 0).amax()
        numbers = (is_wrong.sum(), highest, most_g, (status == RUNNING).sum(), expanded.amin())
        return torch.stack([number.double() for number in numbers])
