"""The children of a chunk of nodes, and which of them the bound lets through, as tensor operations."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from undershoot.arrays import Bools
from undershoot.heuristics.device_patterns import NO_VALUE, DevicePatterns, grouped
from undershoot.kernels.fused import SMALL, Fused
from undershoot.kernels.tensor_pieces import TensorPieces
from undershoot.search.depth_first import tree_moves
from undershoot.search.device.frontier import Paths, Rows

KEPT = "expander"
MOST_ARRIVALS = 1 << 15
TRIED = 1 << 16
"""Nodes with which kernels are compiled, for which they are then laid out: about as many as there will be."""
LARGE = 1 << 13
"""What is left of a bound that lets everything through, more or less."""


@dataclass(frozen=True, eq=False)
class Expanded:
    """What became of a chunk."""

    children: Rows
    """Those that the bound lets through."""
    least: Tensor
    """int32[B]: for each parent the least by which one of its children passes the bound; NO_VALUE for none, or for ever."""
    generated: Tensor
    """int32[B]: how many children each parent has."""


def expander_of(heuristic: DevicePatterns) -> "Expander":
    """Compiled once, so that no limit is charged for it; kept with the heuristic, whose tables may fill the device."""
    known = heuristic.kept.get(KEPT)
    if isinstance(known, Expander):
        return known
    result = Expander(heuristic)
    if heuristic.device.type == "cuda":
        result.compile()
    heuristic.kept[KEPT] = result
    return result


class Expander:
    """A puzzle and its pattern tables on a device."""

    def __init__(self, heuristic: DevicePatterns) -> None:
        self.heuristic, self.moves = heuristic, heuristic.moves
        device, steps = heuristic.device, self.moves.steps
        allowed = _allowed(self.moves)
        self.allowed = torch.tensor(allowed.ravel(), device=device)
        """bool[arrivals * S]: which steps are worth trying after a step from a context, or at the start in one."""
        self.count = torch.tensor(allowed.sum(axis=1), dtype=torch.int32, device=device)
        self.begin = len(allowed) - len(self.moves.contexts)
        """The first arrival of a start."""
        self.arrivals = torch.int16 if len(allowed) <= MOST_ARRIVALS else torch.int32
        """What holds them."""
        self.paths = Paths(steps)
        self.first, self.later = heuristic.looks[: heuristic.first], grouped(heuristic.looks[heuristic.first :])
        self.kept = Fused(self._kept, device)
        self.made = Fused(self._made, device)
        self.inverted = None if heuristic.inverse is None else Fused(heuristic.inverse, device)

    def compile(self) -> None:
        """Expand some nodes whose children all are let through."""
        codes = self.moves.goals[:, :1].repeat(1, TRIED)
        left = torch.full((TRIED,), LARGE, dtype=torch.int16, device=codes.device)
        arrival = self.arrival_of_starts(codes)
        path = torch.zeros((0, len(left)), dtype=torch.int64, device=codes.device)
        self.expand(Rows(codes, left, arrival, torch.zeros_like(left, dtype=torch.int32), path), 0)

    def arrival_of_starts(self, codes: Tensor) -> Tensor:
        """[B]: see `Rows.arrival`. codes: uint8[P, B]."""
        arrival = torch.full((codes.shape[1],), self.begin, dtype=self.arrivals, device=codes.device)
        return arrival if self.moves.cursor is None else arrival + codes[self.moves.cursor]

    def _kept(self, codes: Tensor, left: Tensor, arrival: Tensor) -> tuple[Tensor, Tensor]:
        """(bool[S, B], int32[B]): which children the first sums let through; see `Expanded.least`.

        A sum is asked only of children that are left: the others all read the first entry of its tables, which costs little.
        """
        moves = self.moves
        rows = moves.rows(codes, moves.step)
        alive = self.allowed[arrival.int() * moves.steps + moves.step]
        room = left.int() - moves.price[rows]
        beyond = alive & (room < 0)
        least = torch.where(beyond, -room, NO_VALUE)
        alive = alive & (room >= 0)
        for group in self.first:
            value = group[0].costs(codes, alive, rows)
            for look in group[1:]:
                value = value + look.costs(codes, alive, rows)
            is_cut = alive & (value > room)
            least = torch.where(is_cut, value - room, least)
            alive = alive & (value <= room)
        return alive, least.amin(0)

    def _made(self, codes: Tensor, left: Tensor, parent: Tensor, step: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(uint8[P, K], int16[K], [K]): codes, what is left, and the arrival of children. parent, step: int64[K]."""
        moves, before = self.moves, codes[:, parent]
        rows = moves.rows(before, step.int())
        room = left[parent] - moves.price[rows].to(torch.int16)
        return moves.moved(before, rows), room, rows.to(self.arrivals)

    def expand(self, rows: Rows, depth: int) -> Expanded:
        """All children of these, whose paths have `depth` steps."""
        kept, least = self.kept(rows.codes, rows.left, rows.arrival)
        pick = kept.flatten().nonzero()[:, 0]
        step = torch.div(pick, len(rows), rounding_mode="trunc")
        parent = pick - step * len(rows)
        made = self.made if len(parent) >= SMALL else self.made.function
        codes, left, arrival = made(rows.codes, rows.left, parent, step)
        parent, step, codes, left, arrival, least = self._looked_again(parent, step, codes, left, arrival, least)
        path = self.paths.extended(rows.path.index_select(1, parent), depth, step)
        children = Rows(codes, left, arrival, rows.instance.index_select(0, parent), path)
        return Expanded(children, least, self.count[rows.arrival.int()])

    def _looked_again(
        self, parent: Tensor, step: Tensor, codes: Tensor, left: Tensor, arrival: Tensor, least: Tensor
    ) -> tuple[Tensor, ...]:
        """Ask the later sums of those that are left."""
        for looks in self.later:
            if not len(parent):
                break
            asked = self.inverted(codes) if looks.is_inverse and self.inverted is not None else codes
            over = looks.largest(asked, torch.ones_like(parent, dtype=torch.bool)) - left
            is_cut = over > 0
            least = least.scatter_reduce(0, parent, torch.where(is_cut, over, NO_VALUE), "amin")
            pick = (~is_cut).nonzero()[:, 0]
            parent, step, left, arrival = parent[pick], step[pick], left[pick], arrival[pick]
            codes = codes.index_select(1, pick)
        return parent, step, codes, left, arrival, least


def _allowed(moves: TensorPieces) -> Bools:
    """bool[C * S + C, S], by the codes of the cursor, as `TreeMoves.follow`."""
    table, contexts, steps = moves.pieces.table, moves.contexts, moves.steps
    follow = tree_moves(table).follow.reshape(-1, steps + 1)
    starts = table.contexts * steps
    numbers = np.concatenate([(contexts[:, None] * steps + np.arange(steps)).ravel(), starts + contexts])
    result = np.zeros((len(numbers), steps), dtype=np.bool_)
    for row, number in enumerate(numbers.tolist()):
        result[row, follow[number, 1 : 1 + int(follow[number, 0])]] = True
    return result
