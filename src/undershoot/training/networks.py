"""The network and its optimizer in torch: all parameters in one flat buffer, so that a step of AdamW is one operation."""

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from undershoot.arrays import AnyArray
from undershoot.heuristics.neural import Network
from undershoot.heuristics.neural_cuda import later_layers
from undershoot.heuristics.whole_numbers import HIGHEST_WEIGHT, SMALLEST_WEIGHT, TRAINED_LIMIT, UNIT
from undershoot.kernels.networks import HIGHEST_ACTIVATION, first_layer, first_layer_gradient
from undershoot.puzzles.encoding import Encoding


class Parameters:
    """Weights [in, out] and biases [out] of all layers, as parts of the buffer `flat`; their gradients likewise."""

    def __init__(self, widths: Sequence[int], device: str) -> None:
        self.widths = tuple(widths)
        shapes = [shape for a, b in pairwise(widths) for shape in ((a, b), (b,))]
        self.flat = torch.zeros(sum(int(np.prod(shape)) for shape in shapes), device=device)
        self.gradient = torch.zeros_like(self.flat)
        self.parts: list[Tensor] = []
        at = 0
        for shape in shapes:
            size = int(np.prod(shape))
            part = self.flat[at : at + size].view(shape).detach().requires_grad_()
            part.grad = self.gradient[at : at + size].view(shape)
            self.parts.append(part)
            at += size

    def initialise(self, seed: int, scale: float = 1.0, active: int | None = None) -> None:
        """Uniform within scale / sqrt(inputs), weights and biases; with 1 as torch does it for linear layers.

        active: how many inputs of the first layer are on at once, if that should count.
        """
        generator = torch.Generator().manual_seed(seed)
        for number, part in enumerate(self.parts):
            inputs = active if number < 2 and active else self.widths[number // 2]
            bound = scale * inputs**-0.5
            values = torch.empty(part.shape).uniform_(-bound, bound, generator=generator)
            part.data.copy_(values)

    def network(self) -> Network:
        """As arrays, for searches."""
        arrays = [part.detach().cpu().numpy().copy() for part in self.parts]
        return Network(tuple(arrays[0::2]), tuple(arrays[1::2]))


class _SumOfRows(torch.autograd.Function):
    """The first layer for states on the CPU."""

    @staticmethod
    def forward(ctx: Any, features: AnyArray, tokens: AnyArray, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.features, ctx.tokens, ctx.inputs = features, tokens, weight.shape[0]
        return torch.from_numpy(first_layer(features, weight.detach().numpy(), bias.detach().numpy(), tokens))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor, Tensor]:
        (gradient,) = gradients
        rows = gradient.contiguous().numpy()
        return None, None, torch.from_numpy(first_layer_gradient(ctx.features, ctx.inputs, rows, ctx.tokens)), gradient.sum(0)


class Arithmetic(Enum):
    """How a network is evaluated in training."""

    FLOAT = "float"
    CLIPPED = "clipped"
    """Activations are cut off where those of whole numbers would be."""
    WHOLE = "whole"
    """Weights and activations are rounded as `from_training` does it; gradients pass as if they were not."""


def layers(first: Callable[[Tensor, Tensor], Tensor], parts: Sequence[Tensor], arithmetic: Arithmetic) -> Tensor:
    """float32[B, K]: first(weight, bias) gives the sums of the first layer."""
    if arithmetic is Arithmetic.FLOAT:
        return later_layers(first(parts[0], parts[1]), parts[2:])
    if arithmetic is Arithmetic.CLIPPED:
        x = first(parts[0], parts[1])
        for weight, bias in zip(parts[2::2], parts[3::2], strict=True):
            x = torch.addmm(bias, x.clamp(0, HIGHEST_ACTIVATION * UNIT), weight)
        return x
    step = _step(parts[0], 2 * parts[1].detach().abs())
    x = first(_rounded(parts[0] / step), torch.zeros_like(parts[1])) * step + parts[1]
    for weight, bias in zip(parts[2::2], parts[3::2], strict=True):
        step = _step(weight, HIGHEST_ACTIVATION * weight.detach().abs().sum(dim=0) + bias.detach().abs() / UNIT)
        # Products of whole numbers, so that even coarse arithmetic makes no error.
        x = (_rounded((x / UNIT).clamp(0, HIGHEST_ACTIVATION)) @ _rounded(weight / step)) * (step * UNIT) + bias
    return x


def _step(weight: Tensor, reach: Tensor) -> Tensor:
    """float32[out]: what a whole weight of 1 stands for, as in `from_training`; reach: what no sum exceeds."""
    step = weight.detach().abs().amax(dim=0).clamp_min(float(SMALLEST_WEIGHT)) / HIGHEST_WEIGHT
    return torch.maximum(step, reach / TRAINED_LIMIT)


def _rounded(x: Tensor) -> Tensor:
    return x + (x.round() - x).detach()


def forward(encoding: Encoding, parts: Sequence[Tensor], tokens: AnyArray, arithmetic: Arithmetic) -> Tensor:
    """float32[B, K]: what the network with these weights and biases says of tokens on the CPU."""

    def first(weight: Tensor, bias: Tensor) -> Tensor:
        result: Tensor = _SumOfRows.apply(encoding.features, tokens, weight, bias)  # type: ignore[no-untyped-call]
        return result

    return layers(first, parts, arithmetic)
