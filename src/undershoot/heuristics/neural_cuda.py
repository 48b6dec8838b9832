"""A network as a heuristic on a CUDA device, with torch."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from undershoot.arrays import F32, States
from undershoot.guarantees import NO_GUARANTEE, Guarantee, Rounding
from undershoot.kernels.tensors import TensorMoves
from undershoot.puzzles.base_heuristics import BaseHeuristic
from undershoot.puzzles.encoding import Encoding
from undershoot.puzzles.puzzle import Puzzle

BLOCK = 1024
"""Rows that are evaluated at once, always so many, so that a value does not depend on what else is asked for."""


class TensorEncoding:
    """Inputs of a network made on a device."""

    def __init__(self, encoding: Encoding, device: torch.device | str) -> None:
        self.width = encoding.width
        features = torch.from_numpy(encoding.features).to(device, torch.int64)
        self.features = torch.where(features < 0, encoding.width, features)
        self.cells = torch.arange(len(features), device=device)

    def dense(self, states: Tensor) -> Tensor:
        """float32[B, width] of zeros and ones. A spare last column takes what is off."""
        active = self.features[self.cells, states.long()].flatten(1)
        inputs = torch.zeros(len(states), self.width + 1, device=states.device)
        return inputs.scatter_(1, active, 1.0)[:, :-1]


class TensorBase:
    """h0 on a device."""

    def __init__(self, formula: BaseHeuristic, device: torch.device | str) -> None:
        self.cell_cost = torch.from_numpy(formula.cell_cost).to(device)
        self.pair_cost = None if formula.pair_cost is None else torch.from_numpy(formula.pair_cost).to(device)
        self.divisor = formula.divisor
        self.cells = torch.arange(len(self.cell_cost), device=device)

    def __call__(self, states: Tensor) -> Tensor:
        """float32[B]."""
        values = states.long()
        total = self.cell_cost[self.cells, values].sum(dim=1)
        if self.pair_cost is not None:
            total = total + self.pair_cost[values[:, :-1], values[:, 1:]].sum(dim=1)
        return -torch.div(-total, self.divisor, rounding_mode="floor").to(torch.float32)


def later_layers(x: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """float32[B]: from the sums of the first layer to the output; parts: weight [in, out], bias [out], and so on."""
    for weight, bias in zip(parts[0::2], parts[1::2], strict=True):
        x = torch.addmm(bias, functional.relu(x), weight)
    return x[:, 0]


class CudaHeuristic:
    """max(h0, network), 0 for goals, as `NeuralHeuristic`, evaluated on the device that holds the weights.

    It reads the weights where they are: while they are trained, it is always that of the present network.
    """

    name: str = "network on cuda"
    guarantee: Guarantee = NO_GUARANTEE
    rounding: Rounding = Rounding.NONE

    def __init__(self, puzzle: Puzzle, parts: Sequence[Tensor]) -> None:
        self.puzzle, self.parts = puzzle, [part.detach() for part in parts]
        device = self.parts[0].device
        self.encoding, self.base = TensorEncoding(puzzle.encoding, device), TensorBase(puzzle.base_heuristic, device)
        self.moves = TensorMoves(puzzle.table, device)
        goal = torch.from_numpy(puzzle.table.goals[:1])
        self.given = goal.expand(BLOCK, -1).contiguous().pin_memory()
        self.answer = torch.empty(BLOCK).pin_memory()
        self.states = self.given.to(device)
        self.graph = torch.cuda.CUDAGraph()
        stream: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(stream):
            self._values()  # what is set up on first use must not be recorded
        torch.cuda.current_stream().wait_stream(stream)
        with torch.no_grad(), torch.cuda.graph(self.graph):
            self.states.copy_(self.given, non_blocking=True)
            self.answer.copy_(self._values(), non_blocking=True)

    @property
    def fingerprint(self) -> str:
        """Of its puzzle."""
        return self.puzzle.table.fingerprint

    def _values(self) -> Tensor:
        x = torch.addmm(self.parts[1], self.encoding.dense(self.states), self.parts[0])
        values = torch.maximum(later_layers(x, self.parts[2:]), self.base(self.states))
        return torch.where(self.moves.is_goal(self.states), 0.0, values)

    def __call__(self, states: States) -> F32:
        """float32[B]. Not for several threads at once."""
        result = np.empty(len(states), dtype=np.float32)
        given, answer = self.given.numpy(), self.answer.numpy()
        for start in range(0, len(states), BLOCK):
            rows = min(BLOCK, len(states) - start)
            given[:rows] = states[start : start + rows]
            self.graph.replay()
            torch.cuda.current_stream().synchronize()
            result[start : start + rows] = answer[:rows]
        return result
