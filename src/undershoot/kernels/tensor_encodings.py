"""Inputs of networks, and h0, made with torch: the same values on every device."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from undershoot.puzzles.base_heuristics import BaseHeuristic
from undershoot.puzzles.encoding import Encoding, Reading


class TensorEncoding:
    """Inputs of a network made on a device."""

    def __init__(self, encoding: Encoding, device: torch.device | str) -> None:
        self.width = encoding.width
        features = torch.tensor(encoding.features, device=device, dtype=torch.int64)
        self.features = torch.where(features < 0, encoding.width, features)
        self.cells = torch.arange(len(features), device=device)
        self.reading = None if encoding.reading is None else TensorReading(encoding.reading, device)

    def active(self, states: Tensor) -> Tensor:
        """int64[B, active]: the inputs that are on; `width` stands for none."""
        tokens = states.long() if self.reading is None else self.reading(states)
        return self.features[self.cells, tokens].flatten(1)

    def sum_of_rows(self, states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """float32[B, out]: the first layer, as the bias and the sum of the weight rows of the inputs that are on."""
        padded = functional.pad(weight, (0, 0, 0, 1))
        return functional.embedding_bag(self.active(states), padded, mode="sum") + bias

    def dense(self, active: Tensor) -> Tensor:
        """float32[B, width] of zeros and ones. A spare last column takes what is off."""
        inputs = torch.zeros(len(active), self.width + 1, device=active.device)
        return inputs.scatter_(1, active, 1.0)[:, :-1]


class TensorReading:
    """See `Reading`; the same tokens, on a device."""

    def __init__(self, how: Reading, device: torch.device | str) -> None:
        self.size = how.size
        self.image_cells = torch.tensor(how.image_cells, device=device, dtype=torch.int64)
        self.image_values = torch.tensor(how.image_values, device=device, dtype=torch.int64)
        self.keys = torch.tensor(how.keys, device=device)
        self.cells = torch.tensor(how.cells, device=device, dtype=torch.int64)
        self.factors = torch.tensor(how.factors, device=device, dtype=torch.int64)
        self.values = torch.tensor(how.values.astype(np.int64), device=device)
        self.places = torch.arange(how.image_cells.shape[1] or 1, device=device)
        self.numbers = torch.arange(len(how.cells), device=device)
        self.pairs = torch.combinations(self.numbers, 2) if how.pairs else None

    def __call__(self, states: Tensor) -> Tensor:
        """int64[B, T]."""
        seen = states.long()
        if len(self.keys):
            key = torch.stack([keys[self.places, seen].sum(dim=1) for keys in self.keys])
            best = key.argmin(dim=0)
            seen = self.image_values[best[:, None], seen.gather(1, self.image_cells[best])]
        pieces = self.values[self.numbers, (seen[:, self.cells] * self.factors).sum(dim=2)]
        if self.pairs is None:
            return pieces
        return pieces[:, self.pairs[:, 0]] * self.size + pieces[:, self.pairs[:, 1]]


class TensorBase:
    """h0 on a device."""

    def __init__(self, formula: BaseHeuristic, device: torch.device | str) -> None:
        self.is_zero = formula.pair_cost is None and not formula.cell_cost.any()
        self.cell_cost = torch.tensor(formula.cell_cost, device=device)
        self.pair_cost = None if formula.pair_cost is None else torch.tensor(formula.pair_cost, device=device)
        self.divisor = formula.divisor
        self.cells = torch.arange(len(self.cell_cost), device=device)

    def __call__(self, states: Tensor) -> Tensor:
        """float32[B]."""
        if self.is_zero:
            return torch.zeros(len(states), device=states.device)
        values = states.long()
        total = self.cell_cost[self.cells, values].sum(dim=1)
        if self.pair_cost is not None:
            total = total + self.pair_cost[values[:, :-1], values[:, 1:]].sum(dim=1)
        return -torch.div(-total, self.divisor, rounding_mode="floor").to(torch.float32)
