"""A network as a heuristic, on the CPU by numpy and numba alone."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from undershoot.arrays import F32, States, freeze_arrays, read_only
from undershoot.errors import UndershootError
from undershoot.guarantees import NO_GUARANTEE, Guarantee, Heuristic, Rounding, one_line
from undershoot.heuristics.analytic import additive_value, check_shape
from undershoot.heuristics.families import Family
from undershoot.heuristics.learned_guides import Uncalibrated, uncalibrated
from undershoot.heuristics.whole_numbers import WholeNetwork
from undershoot.kernels.compiler import compiled
from undershoot.kernels.encodings import read
from undershoot.kernels.networks import Perceptron, outputs, perceptron
from undershoot.kernels.sums import Sums, sums
from undershoot.puzzles.encoding import Encoding
from undershoot.puzzles.problem import Problem

MIN_ROWS = 500
"""For a thread."""


@dataclass(frozen=True, eq=False)
class Network:
    """The weights of a multilayer perceptron with ReLU between layers, and one output or several levels (see `families`)."""

    weights: tuple[F32, ...]
    """float32[in, out] each."""
    biases: tuple[F32, ...]
    """float32[out] each."""

    def __post_init__(self) -> None:
        if any(w.ndim != 2 for w in self.weights):
            raise UndershootError("the weights of a layer are a matrix [in, out]; others came")
        widths = [w.shape[1] for w in self.weights]
        fits = len(self.weights) == len(self.biases) >= 2
        fits = fits and all(b.shape == (width,) for b, width in zip(self.biases, widths, strict=True))
        if not fits or any(w.shape[0] != width for w, width in zip(self.weights[1:], widths, strict=False)):
            shapes = ", ".join(f"{w.shape}" for w in self.weights)
            raise UndershootError(f"these layers do not follow one another: {shapes}")
        if not all(np.isfinite(array).all() for array in (*self.weights, *self.biases)):
            raise UndershootError("the network has weights that are not finite numbers; its training went astray")
        freeze_arrays(self)

    @property
    def widths(self) -> tuple[int, ...]:
        """From the input to the output."""
        return (*(w.shape[0] for w in self.weights), self.weights[-1].shape[1])


def family_of(network: Network | WholeNetwork) -> Family:
    """How the outputs of a network are read."""
    outputs = network.widths[-1]
    scales = tuple(network.scales[-1].tolist()) if isinstance(network, WholeNetwork) else ()
    return Family(outputs if outputs > 1 else 0, scales)


class LearnedHeuristic(Heuristic, Protocol):
    """A network as a heuristic, wherever it is evaluated."""

    @property
    def puzzle(self) -> Problem:
        """Whose states it takes."""

    @property
    def is_exact(self) -> bool:
        """Whether every device gives the same values."""

    @property
    def family(self) -> Family:
        """How its outputs are read."""

    def raw(self, states: States) -> F32:
        """float32[B], or float32[B, K] of levels: its outputs, also for goals; whole sums if it is one of whole numbers."""


@dataclass(frozen=True, eq=False)
class NeuralHeuristic:
    """max(h0, network), 0 for goals. Nothing is known about overestimates.

    A state has the same value, bit for bit, in any batch and on any thread.

    Examples:
        >>> tiles = us.puzzle("tiles-2x3")
        >>> recipe = us.recipe(tiles).with_settings(["steps=50", "hidden=[16]"])
        >>> heuristic = us.NeuralHeuristic(tiles, us.train(tiles, recipe).network)
        >>> print(heuristic(tiles.table.goals), heuristic.guarantee)
        [0.] nothing is known about overestimates
    """

    puzzle: Problem
    network: Network | WholeNetwork
    name: str = "network"
    own_encoding: Encoding | None = None
    """None: that of the puzzle."""
    guarantee: Guarantee = NO_GUARANTEE

    def __post_init__(self) -> None:
        if self.network.widths[0] != self.encoding.width:
            raise UndershootError(
                f"the network takes {self.network.widths[0]} inputs, but states of {self.puzzle.name} are encoded in "
                f"{self.encoding.width}; it belongs to another puzzle or encoding"
            )

    @property
    def encoding(self) -> Encoding:
        """How the network sees a state."""
        return self.puzzle.encoding if self.own_encoding is None else self.own_encoding

    @cached_property
    def family(self) -> Family:
        """How the outputs are read."""
        return family_of(self.network)

    @property
    def rounding(self) -> Rounding:
        """Levels are whole costs."""
        return Rounding.INTEGER if self.family.levels else Rounding.NONE

    @property
    def fingerprint(self) -> str:
        """Of its puzzle."""
        return self.puzzle.table.fingerprint

    @property
    def is_exact(self) -> bool:
        """Whether every device gives the same values."""
        return isinstance(self.network, WholeNetwork)

    @cached_property
    def _compiled(self) -> Perceptron:
        scales = self.network.scales[:-1] if isinstance(self.network, WholeNetwork) else ()
        return perceptron(self.encoding.features, self.network.weights, self.network.biases, scales)

    def __repr__(self) -> str:
        return one_line(self)

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        return self.from_raw(self.raw(states), states)

    def guide(self) -> Uncalibrated:
        """For searches."""
        return uncalibrated(self.puzzle, self.encoding, self._compiled, self.family)

    def from_raw(self, raw: F32, states: States) -> F32:
        """float32[B], where the network's answers are known already."""
        values = self.family.values(raw).copy()
        _raise_to_base(values, sums(self.puzzle.base_heuristic), self.puzzle.table.goals, read_only(states))
        return values

    def raw(self, states: States) -> F32:
        """float32[B], or float32[B, K] of levels: its outputs, also for goals; whole sums if it is one of whole numbers."""
        check_shape(self.puzzle.table, states)
        try:
            result = outputs(self._compiled, read(self.encoding, states))
        except ValueError:
            self.puzzle.table.check_states(states)
            raise
        return result if self.family.levels else result[:, 0]


@compiled
def _raise_to_base(values: F32, formula: Sums, goals: States, states: States) -> None:
    """In place: at least h0, 0 for goals."""
    for b in range(states.shape[0]):
        values[b] = max(values[b], additive_value(formula, states, b))
        for g in range(goals.shape[0]):
            equal = True
            for i in range(states.shape[1]):
                equal &= states[b, i] == goals[g, i]
            if equal:
                values[b] = 0


def evaluate(heuristic: Callable[[States], F32], states: States, threads: int) -> F32:
    """float32[B]: `heuristic(states)`, the rows shared out over threads."""
    if threads == 1 or len(states) < MIN_ROWS * threads:
        return heuristic(states)
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(heuristic, np.array_split(states, threads))))
