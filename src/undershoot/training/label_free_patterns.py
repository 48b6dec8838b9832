"""Training on a pattern without its table: what arrangements cost follows from what those cost that moves lead to.

The network that is wanted sees the followed pieces alone, and should say the least over all places of the cursor. But what a
move costs next depends on where the cursor is: arrangements without it would let it jump, and cost too little. So a second
network, the *guide*, sees the cursor as one more piece, and both learn from the guide's target network:

    cost(arrangement, place) = min over moves that cost something, from any place that the cursor reaches for nothing
    cost(arrangement)        = min over all places

Places that free moves connect are one state (they would justify each other's values otherwise). The guide is not pressed below
its targets, so that no bias is passed on along the way from the goal; the other network is.
"""

import numpy as np
import torch
from torch import Tensor

from undershoot.errors import NotAvailable
from undershoot.heuristics.neural_cuda import leading
from undershoot.kernels.tensors import random_rows
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.residuals import Residuals, encoding_by, encoding_of, shares_of
from undershoot.pattern_tables.tensors import TensorSteps
from undershoot.puzzles.base_heuristics import BaseHeuristic
from undershoot.training.on_patterns import Lesson, LevelLearner
from undershoot.training.recipe import Recipe

ROWS = {"cuda": 1 << 20, "cpu": 1 << 14}
"""Arrangements after a move that the guide is asked about at once."""
CHOICES = 1 << 30


def residuals_by_moves(pattern: Pattern, base: BaseHeuristic, levels: int) -> Residuals:
    """What `residuals_of` says, from the moves alone, for so many levels; refused where a move lowers h0's share by more than
    it costs."""
    share, steps = shares_of(pattern, base), TensorSteps(pattern, backward=False, device="cpu")
    if not share.any():
        return Residuals(share, 1, levels)
    rises = []
    for i, kind in enumerate(pattern.folded.kind.tolist()):  # a move that costs h0 something moves one piece
        after = steps.after[kind].numpy().reshape(-1, steps.codes[kind])
        before = np.broadcast_to(np.arange(steps.codes[kind]), after.shape)
        moved = after != before
        price = np.broadcast_to(steps.price.numpy()[:, None], after.shape).astype(np.int64)
        rises.append((price + share[i].astype(np.int64)[after] - share[i].astype(np.int64)[before])[moved])
    if min(int(rise.min()) for rise in rises) < 0:
        raise NotAvailable("h0's share of this pattern falls by more than a move costs; use another pattern")
    return Residuals(share, 1 if any((rise % 2).any() for rise in rises) else 2, levels)


class LabelFreeLearner(LevelLearner):
    """A network in training on a pattern of which nothing is known but its moves."""

    def __init__(self, pattern: Pattern, residuals: Residuals, recipe: Recipe) -> None:
        pairs = recipe.encoding == "pairs"
        encodings = [encoding_of(pattern, pairs), encoding_by(pattern.ranking, pairs)]
        super().__init__(pattern, residuals, recipe, encodings)
        self.steps = TensorSteps(pattern, backward=False, device=recipe.device)
        self.walked = TensorSteps(pattern, backward=True, device=recipe.device)
        self.places = int(self.steps.codes[self.steps.kinds[-1]]) if pattern.has_cursor else 1
        self.goals = torch.tensor(self.steps.goals, device=recipe.device)
        self.goal_codes = torch.stack(self.steps.ranking.codes_of(self.goals), dim=1)
        """int32[G, k]."""

    def before_block(self) -> None:
        """Nothing."""

    def labels_of(self, numbers: Tensor) -> None:
        """Not known."""

    def lessons(self, steps: int) -> list[Lesson]:
        """From walks; the guide's have the cursor where the walk had it."""
        rows = steps * self.recipe.batch
        codes = self.steps.ranking.codes_of(self.walks(rows))
        followed = torch.stack(codes[: len(self.pieces)], dim=1).long()
        at_once = max(1, ROWS[self.recipe.device] // (self.places * self.steps.count))
        parts = zip(*(torch.split(code, at_once) for code in codes), strict=True)
        costs = torch.cat([self.costs(list(part)) for part in parts], dim=1)
        here = costs[0] if not self.pattern.has_cursor else costs.gather(0, codes[-1].long()[None])[0]
        share = self.share[self.pieces, followed].sum(dim=1)

        def steps_above(cost: Tensor) -> Tensor:
            above = torch.div(cost - share, self.residuals.step, rounding_mode="floor")
            return above.clamp(0, self.residuals.levels).long()

        return [
            Lesson(followed, steps_above(costs.amin(dim=0)), self.penalty),
            Lesson(torch.stack(codes, dim=1).long(), steps_above(here), 1.0),
        ]

    def walks(self, rows: int) -> Tensor:
        """int64[rows]: numbers of arrangements, drawn from all that walks from the goal come by, which turn back nowhere."""
        depth = self.recipe.curriculum.max_depth
        walkers = -(-rows // (depth + 1))
        here = self.goals[random_rows(walkers, len(self.goals), self.seed)]
        before, passed = here, [here]
        for step in range(depth):
            ways, _ = self.walked.neighbours(here)
            open_ways = ((ways != here) & (ways != before)).int()
            count = open_ways.sum(dim=0)
            chosen = random_rows(walkers, CHOICES, self.seed + 2 + step) % count.clamp_min(1)
            way = ((open_ways.cumsum(dim=0) == chosen + 1) & (open_ways > 0)).int().argmax(dim=0)
            before, here = here, torch.where(count > 0, ways.gather(0, way[None])[0], before)
            passed.append(here)
        every = torch.cat(passed)
        return every[random_rows(rows, len(every), self.seed + 1)]

    def costs(self, codes: list[Tensor]) -> Tensor:
        """float32[P, B]: what arrangements cost with the cursor at each place, by the target guide; infinite where it cannot.

        codes: int32[B] of each piece. Without a cursor P is 1.
        """
        batch, has_cursor = len(codes[0]), self.pattern.has_cursor
        grid = [code.repeat(self.places) for code in codes]
        place = torch.arange(self.places, device=grid[0].device, dtype=torch.int32).repeat_interleave(batch)
        taken = torch.zeros_like(place, dtype=torch.bool)
        if has_cursor:
            for code, kind in zip(grid[:-1], self.steps.kinds[:-1], strict=True):
                if kind == self.steps.kinds[-1]:
                    taken |= code == place
            grid[-1] = torch.where(taken, grid[-1], place)  # networks know of no two pieces in one place
        moved, price = self.steps.moved(grid)
        price = price.expand(moved[0].shape)
        through = torch.where(price > 0, price + self._values(moved, (price > 0) & ~taken), torch.inf)
        least = torch.where(self._is_goal(grid), 0.0, through.amin(dim=0))
        if not has_cursor:
            return least.view(1, batch)
        costs = torch.where(taken, torch.inf, least).view(self.places, batch)
        free = torch.where(price == 0, moved[-1], grid[-1]).long().view(-1, self.places, batch)
        for _ in range(self.places - 1):  # a region has no more places
            costs = torch.minimum(costs, costs.expand(free.shape).gather(1, free).amin(dim=0))
        return costs

    def _values(self, codes: list[Tensor], wanted: Tensor) -> Tensor:
        """float32[S, R]: what the target guide says; anything where that is not wanted. codes: int32[S, R] of each piece."""
        every = torch.stack([code.expand(wanted.shape) for code in codes], dim=-1).flatten(0, 1).long()
        # A graph has fixed shapes; elsewhere only those are asked about that matter.
        rows = None if every.is_cuda else torch.nonzero(wanted.flatten())[:, 0]
        asked = every if rows is None else every[rows]
        levels = leading(self.outputs(self.target.each[1], self.encodings[1], asked))
        values = self.share[self.pieces, asked[:, : len(self.pieces)]].sum(dim=1) + self.residuals.step * levels
        values = torch.where(self._is_goal(list(asked.unbind(dim=1))), 0.0, values)
        if rows is not None:
            values = torch.zeros(len(every)).index_copy(0, rows, values)
        return values.view(wanted.shape)

    def _is_goal(self, codes: list[Tensor]) -> Tensor:
        """bool[B]."""
        found = torch.zeros_like(codes[0], dtype=torch.bool)
        for goal in self.goal_codes:
            same = torch.ones_like(found)
            for code, wanted in zip(codes, goal, strict=True):
                same &= code == wanted
            found |= same
        return found
