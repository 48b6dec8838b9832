"""The network and its optimizer in torch: all parameters in one flat buffer, so that a step of AdamW is one operation."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from undershoot.arrays import AnyArray
from undershoot.heuristics.neural import Network
from undershoot.heuristics.neural_cuda import later_layers
from undershoot.kernels.networks import first_layer, first_layer_gradient
from undershoot.puzzles.encoding import Encoding

Buffers = tuple[Tensor, Tensor]
"""float32[size] each: parameters, and their gradients."""


def size_of(widths: Sequence[int]) -> int:
    """How many parameters a network has."""
    return sum(a * b + b for a, b in pairwise(widths))


def buffers(size: int, device: str) -> Buffers:
    """For so many parameters."""
    flat = torch.zeros(size, device=device)
    return flat, torch.zeros_like(flat)


class Flat(Protocol):
    """All parameters of what is trained."""

    flat: Tensor
    gradient: Tensor


class Parameters:
    """Weights [in, out] and biases [out] of all layers, as parts of the buffer `flat`; their gradients likewise."""

    def __init__(self, widths: Sequence[int], device: str, within: Buffers | None = None) -> None:
        self.widths = tuple(widths)
        shapes = [shape for a, b in pairwise(widths) for shape in ((a, b), (b,))]
        self.flat, self.gradient = within or buffers(size_of(widths), device)
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


class Networks:
    """Several networks in one buffer, so that one step of the optimizer, and one checkpoint, is of all of them."""

    def __init__(self, widths: Sequence[Sequence[int]], device: str) -> None:
        sizes = [size_of(each) for each in widths]
        self.flat, self.gradient = buffers(sum(sizes), device)
        parts = zip(torch.split(self.flat, sizes), torch.split(self.gradient, sizes), strict=True)
        self.each = [Parameters(those, device, within) for those, within in zip(widths, parts, strict=True)]


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


def forward(encoding: Encoding, parts: Sequence[Tensor], tokens: AnyArray) -> Tensor:
    """float32[B, K]: what the network with these weights and biases says of tokens on the CPU."""
    sums: Tensor = _SumOfRows.apply(encoding.features, tokens, parts[0], parts[1])  # type: ignore[no-untyped-call]
    return later_layers(sums, parts[2:])
