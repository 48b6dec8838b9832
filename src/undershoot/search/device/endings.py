"""Reading off what searches on a device found: counters, paths, and bounds over open nodes."""

import numpy as np
import torch
from torch import Tensor

from undershoot.arrays import F32, I32, States
from undershoot.guarantees import Heuristic
from undershoot.kernels.tensor_encodings import TensorBase
from undershoot.puzzles.problem import Problem
from undershoot.search.conclusions import Ending, check_claim
from undershoot.search.device.lanes import COUNTERS, SOLVED, STATUSES
from undershoot.search.device.nodes import CLOSED, COST_SHIFT, NO_RANK
from undershoot.search.device.rounds import Rounds
from undershoot.search.device.step_kernels import ARRIVAL
from undershoot.search.heads import MOST_SPAN
from undershoot.search.options import Algorithm
from undershoot.search.results import Status

AT_ONCE = 1 << 20
"""Nodes that are looked at together."""


class Reader:
    """Of the searches in some lanes."""

    def __init__(self, puzzle: Problem, heuristic: Heuristic, rounds: Rounds, weight: float) -> None:
        self.puzzle, self.heuristic, self.rounds, self.weight = puzzle, heuristic, rounds, weight
        self.base = TensorBase(puzzle.base_heuristic, rounds.nodes.device)

    def endings(self, where: Tensor, seconds: list[float], under_way: Status | None = None) -> list[Ending]:
        """How the searches in these lanes, int64[E], ended; those that are under way as if they did now, with this status."""
        lanes, nodes = self.rounds.lanes, self.rounds.nodes
        names = ("status", "goal", "incumbent", *COUNTERS)
        columns = dict(zip(names, torch.stack([getattr(lanes, name)[where] for name in names]).tolist(), strict=True))
        values = nodes.h[lanes.start[where]].tolist()
        bounds, by_f = self._open_bounds(where, columns["status"]), lanes.by_f[where].cpu().numpy()
        paths = self._paths(lanes.goal[where])
        self._check_goals([goal for goal in columns["goal"] if goal >= 0])
        result = []
        for k, (actions, states, path_values) in enumerate(paths):
            is_solved = columns["goal"][k] >= 0
            cost = int(self.puzzle.table.cost[actions].sum()) if is_solved else None
            result.append(
                Ending(
                    status=under_way or STATUSES[columns["status"][k]],
                    cost=cost,
                    actions=actions,
                    path=states,
                    path_values=path_values,
                    start_value=float(values[k]),
                    open_bound=bounds[k],
                    expanded_below=None if cost is None or cost > MOST_SPAN else int(by_f[k, :cost].sum()),
                    seconds=seconds[k],
                    weight=self.weight,
                    goes_by_f=True,
                    algorithm=Algorithm.ASTAR,
                    stored=columns["evaluated"][k],
                    **{name: columns[name][k] for name in COUNTERS},
                )
            )
        return result

    def _open_bounds(self, where: Tensor, statuses: list[int]) -> list[float]:
        """The least g + h over open nodes of each, by what is proven; infinite if there are none, or where it is not needed."""
        is_proven = self.heuristic.guarantee.is_proven
        if is_proven and self.weight == 1 and all(status == SOLVED for status in statuses):
            return [float("inf")] * len(statuses)
        nodes, keys = self.rounds.nodes, self.rounds.lanes.key
        place = torch.full((int(keys.max()) + 1,), len(where), device=where.device)
        place[keys[where]] = torch.arange(len(where), device=where.device)
        least = torch.full((len(where) + 1,), torch.inf, dtype=torch.float64, device=where.device)
        if self.rounds.expanding is not None:
            nodes.rank[self.rounds.expanding] &= ~CLOSED
        for first in range(0, nodes.stored, AT_ONCE):
            numbers = torch.arange(first, min(nodes.stored, first + AT_ONCE), device=where.device)
            rank = nodes.rank[numbers]
            h = self.base(self.rounds.packing.unpack(nodes.words[:, numbers])).double()
            if is_proven:
                h = torch.maximum(h, nodes.h[numbers].double())
            is_open = (rank & CLOSED == 0) & (rank != NO_RANK)
            bound = torch.where(is_open, (rank >> COST_SHIFT).double() + h, torch.inf)
            owner = nodes.lane_of(numbers) if nodes.many else keys[:1].expand(len(numbers))
            target = torch.where(owner < len(place), place[owner.clamp_max(len(place) - 1)], len(where))
            least.scatter_reduce_(0, target, bound, "amin")
        found: list[float] = least[:-1].tolist()
        return found

    def _paths(self, goals: Tensor) -> list[tuple[I32, States, F32]]:
        """For each goal, int64[E], the actions that led there, the states before each, and their values; empty for -1."""
        nodes, contexts = self.rounds.nodes, self.rounds.steps.contexts * self.rounds.steps.steps
        at, trail, steps = goals, [], []
        while bool((at >= 0).any()):
            arrival = torch.where(at >= 0, (nodes.rank[at.clamp_min(0)] >> 1) & ARRIVAL, contexts)
            is_step = arrival < contexts
            at = torch.where(is_step, nodes.parent[at.clamp_min(0)].long(), -1)
            trail.append(at)
            steps.append(torch.where(is_step, arrival % self.rounds.steps.steps, -1))
        if not trail:
            return [_NO_PATH] * len(goals)
        numbers, actions = torch.stack(trail).flip(0).T, torch.stack(steps).flip(0).T.cpu().numpy()
        flat = numbers.flatten().clamp_min(0)
        states = self.rounds.packing.unpack(nodes.words[:, flat]).to(torch.uint8).cpu().numpy()
        states = states.reshape(*actions.shape, -1)
        values = nodes.h[flat].float().cpu().numpy().reshape(actions.shape)
        return [(actions[k, row].astype(np.int32), states[k, row], values[k, row]) for k, row in enumerate(actions >= 0)]

    def _check_goals(self, goals: list[int]) -> None:
        """A heuristic that is proven says 0 of them."""
        if not goals:
            return
        nodes = self.rounds.nodes
        numbers = torch.tensor(goals, device=nodes.device)
        states = self.rounds.packing.unpack(nodes.words[:, numbers]).to(torch.uint8).cpu().numpy()
        values = nodes.h[numbers].float().cpu().numpy()
        check_claim(self.puzzle, self.heuristic, states, values, np.zeros(len(goals), dtype=np.int64))


_NO_PATH = (np.zeros(0, dtype=np.int32), np.zeros((0, 0), dtype=np.uint8), np.zeros(0, dtype=np.float32))
