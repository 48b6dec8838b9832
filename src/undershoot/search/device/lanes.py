"""How far the searches are that run together, as columns on a device. A *lane* is the place of one search at a time."""

from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Tensor

from undershoot.errors import UndershootError
from undershoot.search.options import SearchOptions, Ties
from undershoot.search.results import Status

IDLE, RUNNING, SOLVED, UNSOLVABLE, OVER_BUDGET, OUT_OF_TIME, OUT_OF_MEMORY = range(7)
STATUSES = {
    SOLVED: Status.SOLVED,
    UNSOLVABLE: Status.UNSOLVABLE,
    OVER_BUDGET: Status.BUDGET,
    OUT_OF_TIME: Status.TIME,
    OUT_OF_MEMORY: Status.MEMORY,
}
NEVER = 1 << 40
"""The cost of the best solution where there is none; and a limit that no search comes to."""
MOST_PARTS = 1000
COUNTERS = ("expanded", "generated", "evaluated", "reopened")


class Rules(NamedTuple):
    """What stays the same for all searches."""

    g_factor: int
    """f = g_factor * g + h_factor * h is whole and grows with g + weight * h."""
    h_factor: int
    deep: bool
    per_step: int
    most_expanded: int


def rules_of(options: SearchOptions) -> Rules:
    """Refuse a weight that is no fraction of small numbers."""
    weight = Fraction(repr(float(options.weight)))
    if weight.denominator > MOST_PARTS:
        raise UndershootError(
            f"the weight (--weight) is {options.weight}; on a device f is whole, so only fractions are searched whose "
            f"denominator is at most {MOST_PARTS:,}, such as 1.5 or 1.125"
        )
    limit = NEVER if options.max_expanded is None else min(options.max_expanded, NEVER)
    deep = options.ties is Ties.DEEP
    return Rules(weight.denominator, weight.numerator, deep, options.expand_per_step, limit)


class Lanes:
    """Columns of L numbers."""

    def __init__(self, count: int, device: torch.device) -> None:
        def column(value: int = 0) -> Tensor:
            return torch.full((count,), value, dtype=torch.int64, device=device)

        self.count, self.device = count, device
        self.status = column(IDLE)
        self.key = column()
        """The number of the instance, by which its nodes are known."""
        self.start, self.goal, self.incumbent = column(-1), column(-1), column(NEVER)
        """Nodes; and the cost of the best solution."""
        self.expanded, self.generated, self.evaluated, self.reopened = column(), column(), column(), column()
        self.by_f = torch.zeros(count, 1, dtype=torch.int32, device=device)
        """int32[L, span]: expansions by f, rounded down."""

    def begin(self, lanes: Tensor, keys: Tensor, starts: Tensor) -> None:
        """Nothing has happened yet, but that the starts are nodes: int64[E] each."""
        self.status[lanes], self.key[lanes], self.start[lanes] = RUNNING, keys, starts
        self.goal[lanes], self.incumbent[lanes], self.evaluated[lanes] = -1, NEVER, 1
        self.expanded[lanes], self.generated[lanes], self.reopened[lanes], self.by_f[lanes] = 0, 0, 0, 0

    def widen(self, span: int) -> None:
        """Room to count expansions with f below `span`."""
        if span > self.by_f.shape[1]:
            self.by_f = torch.nn.functional.pad(self.by_f, (0, span - self.by_f.shape[1]))

    def stop(self, those: Tensor, status: int) -> None:
        """Those of them that run, bool[L]."""
        self.status.copy_(torch.where(those & (self.status == RUNNING), status, self.status))

    def renumber(self, where: Tensor) -> None:
        """Nodes have new numbers, int64[room + 1]."""
        self.start.copy_(where[self.start])
        self.goal.copy_(torch.where(self.goal < 0, self.goal, where[self.goal.clamp_min(0)]))

    def narrow(self, kept: Tensor) -> None:
        """Only these, int64[K]."""
        self.count = len(kept)
        for name in ("status", "key", "start", "goal", "incumbent", *COUNTERS, "by_f"):
            setattr(self, name, getattr(self, name)[kept])
