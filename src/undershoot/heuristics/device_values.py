"""Heuristics as tensor operations, for searches that never leave a device: values of states, int64[B, n], where these are.

What is evaluated here says what the heuristic says: whole numbers to the bit. A network of floats may differ in the last
digits; so one of which something is known on the cores is asked there, unless nothing that is known of it is needed, as for a
guide. So is every heuristic that is not known here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

from undershoot.arrays import F32, U16, Keys, States
from undershoot.guarantees import Heuristic, Rounding, Standing
from undershoot.heuristics.analytic import Additive
from undershoot.heuristics.calibrated import CalibratedHeuristic
from undershoot.heuristics.combined import Largest, Rounded
from undershoot.heuristics.device_patterns import NO_VALUE, DevicePatterns, on_device
from undershoot.heuristics.families import Family
from undershoot.heuristics.neural import NeuralHeuristic
from undershoot.heuristics.neural_cuda import (
    CudaHeuristic,
    check_exactness,
    full_precision,
    later_layers,
    leading,
    whole_layers,
    whole_tensors,
)
from undershoot.heuristics.patterns import PatternHeuristic
from undershoot.heuristics.whole_numbers import WholeNetwork
from undershoot.kernels.tensor_encodings import TensorBase, TensorEncoding
from undershoot.kernels.tensor_pieces import TensorPieces
from undershoot.kernels.tensors import TensorMoves, signed
from undershoot.pattern_tables.pattern import UNREACHED
from undershoot.puzzles.parity import CostParity
from undershoot.puzzles.problem import Problem

Values = Callable[[Tensor], Tensor]
"""float32[B] or float64[B] for states, int64[B, n]; of what is no state anything is said."""
AT_ONCE = {"cuda": 1 << 20, "cpu": 1 << 14}
"""States that a network is asked about at once, at most."""
SPREAD = 0x9E3779B97F4A7C15


def values_on(puzzle: Problem, heuristic: Heuristic, device: torch.device, exactly: bool = True) -> Values:
    """The heuristic on the device; through the processor if it is not known here.

    exactly: whether what is known of the heuristic must hold of what is said here; a guide is not believed anyway.
    """
    made = _known(puzzle, heuristic, device, exactly)
    return Outside(heuristic, device) if made is None else made


def stays_on_device(values: Values) -> bool:
    """Whether nothing is asked on the processor."""
    match values:
        case Outside():
            return False
        case Larger():
            return all(map(stays_on_device, values.members))
        case RoundedValues():
            return stays_on_device(values.inner)
    return True


def _known(puzzle: Problem, heuristic: Heuristic, device: torch.device, exactly: bool) -> Values | None:
    match heuristic:
        case Additive():
            return TensorBase(heuristic.formula, device)
        case PatternHeuristic():
            return PatternValues(on_device(heuristic, device))
        case DevicePatterns() if heuristic.device.type == device.type:
            return PatternValues(heuristic)
        case NeuralHeuristic() | CudaHeuristic() | CalibratedHeuristic():
            return _learned(puzzle, heuristic, device, exactly)
        case Largest() | Rounded():
            return _joined(puzzle, heuristic, device, exactly)
    return None


def _joined(puzzle: Problem, heuristic: Largest | Rounded, device: torch.device, exactly: bool) -> Values | None:
    """Made from others, if all of these are known."""
    members = heuristic.members if isinstance(heuristic, Largest) else (heuristic.inner,)
    known = [values for values in (_known(puzzle, member, device, exactly) for member in members) if values is not None]
    if len(known) < len(members):
        return None
    return (
        Larger(known)
        if isinstance(heuristic, Largest)
        else RoundedValues(known[0], RoundingUp(puzzle, heuristic.rounding, device))
    )


def _learned(
    puzzle: Problem, heuristic: NeuralHeuristic | CudaHeuristic | CalibratedHeuristic, device: torch.device, exactly: bool
) -> Values | None:
    network = heuristic.network if isinstance(heuristic, CalibratedHeuristic) else heuristic
    if isinstance(network, CudaHeuristic):
        outputs = Outputs(network.encoding, network.parts, network.scales)
    elif isinstance(network, NeuralHeuristic):
        if exactly and not network.is_exact and heuristic.guarantee.standing is not Standing.NONE:
            return None  # what is known holds for the sums of the cores
        outputs = _moved(network, device)
    else:
        return None
    raised = RaisedToBase(puzzle, device)
    if isinstance(heuristic, CalibratedHeuristic):
        return CalibratedValues(heuristic, outputs, raised, device)
    return NetworkValues(network.family, outputs, raised)


def _moved(heuristic: NeuralHeuristic, device: torch.device) -> "Outputs":
    network, encoding = heuristic.network, TensorEncoding(heuristic.encoding, device)
    if isinstance(network, WholeNetwork):
        if device.type == "cuda":
            with full_precision():
                check_exactness(network)
        return Outputs(encoding, *whole_tensors(network, device))
    layers = zip(network.weights, network.biases, strict=True)
    return Outputs(encoding, [torch.tensor(part, device=device) for layer in layers for part in layer], ())


class Outside:
    """Asked on the processor."""

    def __init__(self, heuristic: Heuristic, device: torch.device) -> None:
        self.heuristic, self.device = heuristic, device

    def __call__(self, states: Tensor) -> Tensor:
        """float64[B]."""
        given: States = states.to(torch.uint8).cpu().numpy()
        values: F32 = np.ascontiguousarray(self.heuristic(given), dtype=np.float32)
        return torch.tensor(values, dtype=torch.float64, device=self.device)


class PatternValues:
    """Of pattern tables."""

    def __init__(self, patterns: DevicePatterns) -> None:
        self.patterns, self.lifting = patterns, Lifting(patterns.moves)

    def __call__(self, states: Tensor) -> Tensor:
        """float64[B]."""
        values = self.patterns.values(self.lifting(states))
        # What has no solution costs as much as on the cores: every number is a bound of it.
        return (values % NO_VALUE + UNREACHED * (values // NO_VALUE)).double()


class Lifting:
    """`TensorPieces.lift`, on the device: where the pieces of states stand. No piece is missing: nothing looks for that."""

    def __init__(self, moves: TensorPieces) -> None:
        pieces, device = moves.pieces, moves.device
        slots = np.flatnonzero(pieces.stickers[:, 0] >= 0)
        stickers = pieces.stickers[slots]
        factors = np.where(stickers >= 0, (pieces.table.values + 1) ** np.arange(stickers.shape[1]), 0)
        self.pieces = len(pieces)
        self.cells = torch.tensor(np.maximum(stickers, 0).astype(np.int64), device=device)
        """int64[slots, w]: what shows which piece is there, from its first sticker on."""
        self.factors = torch.tensor(factors.astype(np.int64), device=device)
        self.kind = torch.tensor(pieces.kind_of_slot[slots].astype(np.int64), device=device)
        self.piece_by_code = torch.tensor(pieces.piece_by_code.astype(np.int64), device=device)
        self.codes = torch.tensor(moves.code_of(slots), device=device)

    def __call__(self, states: Tensor) -> Tensor:
        """uint8[P, B]."""
        shown = self.piece_by_code[self.kind, ((states[:, self.cells] + 1) * self.factors).sum(2)]
        result = torch.zeros(len(states), self.pieces + 1, dtype=torch.uint8, device=states.device)
        piece = torch.where(shown < 0, self.pieces, shown)  # in most slots, no piece begins
        return result.scatter_(1, piece, self.codes.expand(piece.shape))[:, :-1].T.contiguous()


class Outputs:
    """What a network says, as its outputs: float32[B, K]."""

    def __init__(self, encoding: TensorEncoding, parts: Sequence[Tensor], scales: Sequence[Tensor]) -> None:
        self.encoding, self.later, self.scales = encoding, [part.detach() for part in parts[2:]], scales
        self.rows, self.bias = pad(parts[0].detach(), (0, 0, 0, 1)), parts[1].detach()

    def __call__(self, states: Tensor) -> Tensor:
        """Some at a time; in full precision, whatever is set outside."""
        with torch.no_grad(), full_precision():
            parts = torch.split(states, AT_ONCE[states.device.type])
            return self._outputs(states) if len(parts) == 1 else torch.cat([self._outputs(part) for part in parts])

    def _outputs(self, states: Tensor) -> Tensor:
        first = embedding_bag(self.encoding.active(states), self.rows, mode="sum") + self.bias
        return whole_layers(first, self.later, self.scales) if self.scales else later_layers(first, self.later)


class RaisedToBase:
    """At least h0, and 0 for goals."""

    def __init__(self, puzzle: Problem, device: torch.device) -> None:
        self.base = TensorBase(puzzle.base_heuristic, device)
        self.goals = torch.tensor(puzzle.table.goals, device=device).long()

    def raised(self, values: Tensor, states: Tensor) -> Tensor:
        """float64[B]: at least h0."""
        return torch.maximum(values.double(), self.base(states).double())

    def is_goal(self, states: Tensor) -> Tensor:
        """bool[B]."""
        return (states[:, None] == self.goals).all(2).any(1)


@dataclass(frozen=True, eq=False)
class NetworkValues:
    """As `NeuralHeuristic`."""

    family: Family
    outputs: Outputs
    least: RaisedToBase

    def __call__(self, states: Tensor) -> Tensor:
        """float64[B]."""
        raw = self.outputs(states)
        values = leading(raw)
        if self.family.scales and not self.family.levels:
            values = values * self.family.scales[0]  # rounded once, to float32, as on the CPU
        return torch.where(self.least.is_goal(states), 0.0, self.least.raised(values, states))


class CalibratedValues:
    """As `CalibratedHeuristic`."""

    def __init__(self, heuristic: CalibratedHeuristic, outputs: Outputs, least: RaisedToBase, device: torch.device) -> None:
        self.family, self.outputs, self.least = heuristic.network.family, outputs, least
        self.by_group = bool(heuristic.calibration.group_margins)
        self.margins = torch.tensor(np.atleast_2d(heuristic.margins), device=device)
        """[G, 1] or [G, K], G groups or 1: float32 for floats, whole float64 for whole sums."""
        self.rounding = RoundingUp(heuristic.puzzle, heuristic.rounding, device)
        listed = heuristic.calibration
        self.listed = (
            Listed(heuristic.puzzle, listed.exceptions, listed.exception_costs, device) if len(listed.exceptions) else None
        )

    def __call__(self, states: Tensor) -> Tensor:
        """float64[B]."""
        raw = self.outputs(states)
        margins = self.margins[self._groups(raw)] if self.by_group else self.margins
        values = self.rounding(self.least.raised(self._lowered(raw, margins), states), states)
        if self.listed is not None:
            costs = self.listed(states)
            values = torch.where(costs >= 0, costs.double(), values)
        return torch.where(self.least.is_goal(states), 0.0, values)

    def _lowered(self, raw: Tensor, margins: Tensor) -> Tensor:
        if self.family.levels:
            return (raw > margins).double().cumprod(dim=1).sum(dim=1)
        if self.family.scales:
            return (raw[:, 0].double() - margins[:, 0]) * self.family.scales[0]
        return raw[:, 0] - margins[:, 0]

    def _groups(self, raw: Tensor) -> Tensor:
        """int64[B], as `Family.groups`."""
        scale = self.family.scales[0] if self.family.scales and not self.family.levels else 1.0
        said = leading(raw).double() * scale
        return said.nan_to_num(0.0).floor().clamp(0, len(self.margins) - 1).long()


class Listed:
    """States that are looked up, by 64 mixed bits of their keys; the keys are compared word by word."""

    def __init__(self, puzzle: Problem, keys: Keys, costs: U16, device: torch.device) -> None:
        self.moves = TensorMoves(puzzle.table, device)
        words = torch.tensor(keys.view(np.int64), device=device)
        for self.factor in range(1, 1 << 20, 2):  # one with which no two have the same bits
            self.bits, order = torch.sort(self._mixed(words))
            if bool((self.bits[1:] != self.bits[:-1]).all()):
                break
        self.keys, self.costs = words[order], torch.tensor(costs.astype(np.int64), device=device)[order]

    def _mixed(self, keys: Tensor) -> Tensor:
        mixed = torch.zeros_like(keys[:, 0])
        for word in keys.T:
            mixed = (mixed ^ word) * signed(SPREAD * self.factor % 2**64)
            mixed = mixed ^ (mixed >> 29)
        return mixed

    def __call__(self, states: Tensor) -> Tensor:
        """int64[B]: what they cost; -1 of others."""
        keys = self.moves.pack(states)
        at = torch.searchsorted(self.bits, self._mixed(keys)).clamp_max(len(self.bits) - 1)
        return torch.where((self.keys[at] == keys).all(1), self.costs[at], -1)


class RoundingUp:
    """As `round_up`."""

    def __init__(self, puzzle: Problem, rounding: Rounding, device: torch.device) -> None:
        self.is_whole = rounding is not Rounding.NONE
        rule = puzzle.parity_rule if rounding is Rounding.PARITY else None
        self.parity = None if rule is None else Parity(rule, device)

    def __call__(self, values: Tensor, states: Tensor) -> Tensor:
        """float64[B]."""
        if not self.is_whole:
            return values
        whole = values.ceil()
        return whole if self.parity is None else whole + ((whole.long() ^ self.parity(states)) & 1)


class Parity:
    """As `CostParity`."""

    def __init__(self, rule: CostParity, device: torch.device) -> None:
        self.bits = torch.tensor(rule.bits.astype(np.int64), device=device)
        self.places = torch.tensor(rule.places.astype(np.int64), device=device)
        self.factors = torch.tensor(rule.factors.astype(np.int64), device=device)
        self.numbers = torch.tensor(rule.numbers.astype(np.int64), device=device)
        self.cells = torch.arange(len(self.bits), device=device)
        self.constant = rule.constant

    def __call__(self, states: Tensor) -> Tensor:
        """int64[B], 0 or 1."""
        counted = self.bits[self.cells, states].sum(1) + self.constant
        if len(self.places):
            pieces = self.numbers[(states[:, self.places] * self.factors).sum(2)]
            for i in range(len(self.places)):
                counted = counted + (pieces[:, i + 1 :] < pieces[:, i : i + 1]).sum(1)
        return counted & 1


@dataclass(frozen=True)
class Larger:
    """The largest of several."""

    members: Sequence[Values]

    def __call__(self, states: Tensor) -> Tensor:
        """float64[B]."""
        return torch.stack([member(states).double() for member in self.members]).amax(0)


@dataclass(frozen=True)
class RoundedValues:
    """As `Rounded`."""

    inner: Values
    rounding: RoundingUp

    def __call__(self, states: Tensor) -> Tensor:
        """float64[B]."""
        return self.rounding(self.inner(states).double().clamp_min(0), states)
