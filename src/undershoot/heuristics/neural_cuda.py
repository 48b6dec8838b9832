"""A network as a heuristic on a CUDA device, with torch."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from undershoot.arrays import F32, States
from undershoot.errors import UndershootError
from undershoot.guarantees import NO_GUARANTEE, Guarantee, Rounding, one_line
from undershoot.heuristics.analytic import check_shape
from undershoot.heuristics.calibrated import FLOAT_MARGIN
from undershoot.heuristics.families import Family
from undershoot.heuristics.neural import NeuralHeuristic
from undershoot.heuristics.whole_numbers import WholeNetwork
from undershoot.kernels.networks import HIGHEST_ACTIVATION
from undershoot.kernels.scrambles import deepest, scrambles_up_to
from undershoot.kernels.tensor_encodings import TensorBase, TensorEncoding
from undershoot.kernels.tensors import TensorMoves
from undershoot.puzzles.encoding import Encoding
from undershoot.puzzles.problem import Problem

BLOCK = 512
"""Rows that are evaluated at once, always so many, so that a value does not depend on what else is asked for."""
TRIED = 5_000
"""States that a network is asked about on both devices."""


def later_layers(x: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """float32[B, K]: from the sums of the first layer to the output; parts: weight [in, out], bias [out], and so on."""
    for weight, bias in zip(parts[0::2], parts[1::2], strict=True):
        x = torch.addmm(bias, functional.relu(x), weight)
    return x


def whole_layers(x: Tensor, parts: Sequence[Tensor], scales: Sequence[Tensor]) -> Tensor:
    """float32[B, K]: the sums of the last layer, for whole numbers; scales: [out] of every hidden layer.

    Exact whatever the order of the sums, if products are summed in float32: see `full_precision`.
    """
    for weight, bias, scale in zip(parts[0::2], parts[1::2], scales, strict=True):
        x = torch.addmm(bias, (x * scale).round().clamp(0, HIGHEST_ACTIVATION), weight)
    return x


@contextmanager
def full_precision() -> Iterator[None]:
    """Matrix products in float32 throughout, whatever is set outside: a training may have left TF32 on.

    What is recorded as a graph within stays so when it is replayed.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def leading(levels: Tensor) -> Tensor:
    """float32[B]: how many levels from the first on are above 0; of one number, the number itself."""
    if levels.shape[1] == 1:
        return levels[:, 0]
    return (levels > 0).to(torch.float32).cumprod(dim=1).sum(dim=1)


def whole_tensors(network: WholeNetwork, device: torch.device | str) -> tuple[list[Tensor], list[Tensor]]:
    """The parts (weight, bias, and so on) and the scales of hidden layers, whole numbers held in float32."""
    layers = zip(network.weights, network.biases, strict=True)
    parts = [torch.tensor(array, device=device, dtype=torch.float32) for layer in layers for array in layer]
    return parts, [torch.tensor(scale, device=device) for scale in network.scales[:-1]]


class CudaHeuristic:
    """max(h0, network), 0 for goals, as `NeuralHeuristic`, evaluated on the device that holds the weights.

    It reads the weights where they are: while they are trained, it is always that of the present network. One evaluation of
    BLOCK states is recorded as a graph and replayed. With scales (see `whole_tensors`) the network is one of whole numbers,
    and its values are those of the CPU, bit for bit.
    """

    guarantee: Guarantee = NO_GUARANTEE

    def __init__(
        self,
        puzzle: Problem,
        parts: Sequence[Tensor],
        scales: Sequence[Tensor] = (),
        encoding: Encoding | None = None,
        name: str = "network on cuda",
        family: Family | None = None,
    ) -> None:
        self.puzzle, self.parts, self.scales, self.name = puzzle, [part.detach() for part in parts], scales, name
        self.outputs = self.parts[-1].shape[0]
        self.family = family or Family(self.outputs if self.outputs > 1 else 0)
        self.rounding = Rounding.INTEGER if self.family.levels else Rounding.NONE
        device = self.parts[0].device
        self.encoding = TensorEncoding(encoding or puzzle.encoding, device)
        self.base = TensorBase(puzzle.base_heuristic, device)
        self.moves = TensorMoves(puzzle.table, device)
        self.highest = (puzzle.table.modulus - 1).astype(np.uint8)
        self.lock = Lock()
        given = torch.from_numpy(np.repeat(puzzle.table.goals[:1], BLOCK, axis=0)).pin_memory()
        answers = torch.empty(BLOCK, self.outputs + 1).pin_memory()
        self.given, self.answers, self.states = given.numpy(), answers.numpy(), given.to(device)
        self.pinned = (given, answers)
        self.graph = torch.cuda.CUDAGraph()
        self.stream: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(self.stream):
            self._values(self.states)  # what is set up on first use must not be recorded
        self.stream.synchronize()
        with torch.no_grad(), torch.cuda.graph(self.graph):
            self.states.copy_(given, non_blocking=True)
            answers.copy_(self._values(self.states), non_blocking=True)
        self.stream = torch.cuda.current_stream()

    @property
    def fingerprint(self) -> str:
        """Of its puzzle."""
        return self.puzzle.table.fingerprint

    @property
    def is_exact(self) -> bool:
        """Whether every device gives the same values."""
        return bool(self.scales)

    def _values(self, states: Tensor) -> Tensor:
        """float32[B, K + 1]: what the network says, and what the heuristic says."""
        first = self.encoding.sum_of_rows(states, self.parts[0], self.parts[1])
        later = self.parts[2:]
        raw = whole_layers(first, later, self.scales) if self.scales else later_layers(first, later)
        values = leading(raw)
        if self.family.scales and not self.family.levels:
            values = values * self.family.scales[0]  # rounded once, to float32, as on the CPU
        values = values.clamp_min(0) if self.base.is_zero else torch.maximum(values, self.base(states))
        return torch.cat((raw, values.masked_fill(self.moves.is_goal(states), 0.0)[:, None]), dim=1)

    def __repr__(self) -> str:
        return one_line(self)

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        return np.ascontiguousarray(self._answers(states)[:, -1])

    def raw(self, states: States) -> F32:
        """float32[B], or float32[B, K] of levels: its outputs, also for goals; whole sums if it is one of whole numbers."""
        answers = self._answers(states)
        return np.ascontiguousarray(answers[:, :-1] if self.family.levels else answers[:, 0])

    def _answers(self, states: States) -> F32:
        check_shape(self.puzzle.table, states)
        if (states > self.highest).any():  # the device would read past its tables
            self.puzzle.table.check_states(states)
        result = np.empty((len(states), self.outputs + 1), dtype=np.float32)
        with self.lock:
            for start in range(0, len(states), BLOCK):
                rows = min(BLOCK, len(states) - start)
                self.given[:rows] = states[start : start + rows]
                self.graph.replay()
                self.stream.synchronize()
                result[start : start + rows] = self.answers[:rows]
        return result


def on_cuda(heuristic: NeuralHeuristic) -> CudaHeuristic:
    """The same network on the CUDA device of this machine, in full precision.

    Float values may differ in the last digits. By more than a tenth of the margin that calibrations leave for that, they are
    refused; but that is tried on some states only, so nothing is known about the others. Whole-number networks must say the
    same of these states, to the bit.
    """
    if not torch.cuda.is_available():
        raise UndershootError("the device is cuda, but torch finds none here; use cpu")
    network, puzzle = heuristic.network, heuristic.puzzle
    name = f"{heuristic.name} on cuda"
    with full_precision():
        if isinstance(network, WholeNetwork):
            check_exactness(network)
            whole = CudaHeuristic(puzzle, *whole_tensors(network, "cuda"), heuristic.encoding, name, heuristic.family)
            _check_same(heuristic, whole)
            return whole
        parts = [torch.tensor(a, device="cuda") for layer in zip(network.weights, network.biases, strict=True) for a in layer]
        moved = CudaHeuristic(puzzle, parts, encoding=heuristic.encoding, name=name)
    states = _some_states(puzzle)
    difference = float(np.abs(moved.raw(states) - heuristic.raw(states)).max())
    if not difference <= FLOAT_MARGIN / 10:
        raise UndershootError(
            f"{heuristic.name} differs by {difference:.2g} between cpu and cuda, and calibrations allow for "
            f"{FLOAT_MARGIN / 10:g}; use cpu, or a network of whole numbers: undershoot calibrate --whole-numbers"
        )
    return moved


def _some_states(puzzle: Problem) -> States:
    """Goals, and scrambles where these can be made: where moves cannot be undone, some come to an end."""
    states = puzzle.table.goals[:TRIED]
    with suppress(UndershootError):
        states = np.concatenate([states, scrambles_up_to(puzzle.table, TRIED, deepest(puzzle.table, 30), 0).states])
    return states


def _check_same(heuristic: NeuralHeuristic, moved: CudaHeuristic) -> None:
    """Refuse a whole-number network that says anything else on the device, of states that are tried."""
    states = _some_states(heuristic.puzzle)
    here, there = (np.column_stack([asked.raw(states), asked(states)]) for asked in (heuristic, moved))
    differs = (here != there).any(axis=1)
    if differs.any():
        row = int(np.argmax(differs))
        raise UndershootError(
            f"{heuristic.name} is a network of whole numbers, which is the same everywhere, but cuda says "
            f"{there[row, -1]:.9g} ({there[row, 0]:.0f} in its last layer) and cpu {here[row, -1]:.9g} ({here[row, 0]:.0f}) of "
            f"{heuristic.puzzle.format(states[row : row + 1])}; use cpu"
        )


def check_exactness(network: WholeNetwork) -> None:
    """Refuse a device that does not sum products of whole numbers exactly up to 2^24, in the shapes of this network."""
    for weight in network.weights[1:]:
        rows, columns = weight.shape
        got, expected = sums_near_the_limit(rows, columns, "cuda")
        if not torch.equal(got.double(), expected):
            raise UndershootError(
                f"this device does not sum {rows} products of whole numbers exactly, so other values would come out; use cpu"
            )


def sums_near_the_limit(rows: int, columns: int, device: str) -> tuple[Tensor, Tensor]:
    """float32[BLOCK, columns], and float64 as they should be: sums of whole products that come near 2^24, either side of 0."""
    random = torch.Generator().manual_seed(0)
    reach = (2**24 - 1) // (HIGHEST_ACTIVATION * rows)  # for weights of this size, sums cannot pass the limit
    sizes = torch.randint(max(1, min(127, reach) - 3), max(1, min(127, reach)) + 1, (rows, columns), generator=random)
    weight = sizes * (1 - 2 * (torch.arange(columns) % 2))  # even columns go up, odd ones down
    activations = torch.randint(HIGHEST_ACTIVATION - 5, HIGHEST_ACTIVATION + 1, (BLOCK, rows), generator=random)
    products = activations.double() @ weight.double()
    bias = ((2**24 - 1) - products.abs().amax(dim=0)).clamp_min(0) * weight[0].sign()
    got = torch.addmm(bias.float().to(device), activations.float().to(device), weight.float().to(device))
    return got.cpu(), products + bias
