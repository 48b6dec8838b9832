"""Heuristics inside the loop say what they say of batches, bit for bit."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import undershoot as us
from undershoot.arrays import States
from undershoot.guarantees import NO_GUARANTEE, Heuristic, Rounding
from undershoot.heuristics.calibrated import CalibratedHeuristic, Calibration
from undershoot.heuristics.combined import Largest, rounded
from undershoot.heuristics.neural import Network, NeuralHeuristic
from undershoot.heuristics.whole_numbers import to_whole_numbers
from undershoot.kernels.cpu import pack
from undershoot.kernels.guides import guide_of, values_of
from undershoot.puzzles.puzzle import Puzzle

BY_FORMULA = [
    *(("tiles-3x3", name) for name in ("base", "zero", "linear-conflict", "table", "base+linear-conflict", "small+base")),
    *(("tiles-3x4", "linear-conflict"), ("tiles-4x4", "linear-conflict"), ("tiles-5x5", "base")),
    *(("lights-out-3x3", "gf2"), ("lights-out-5x5", "gf2"), ("lights-out-5x5", "base"), ("lights-out-3x3", "table")),
    *(("pancake-8", "base"), ("cube-2x2", "zero"), ("cube-2x2", "paper+small")),
]
LEARNED = [
    *(("tiles-3x3", name) for name in ("learned", "label-free", "small", "paper")),
    *(("cube-2x2", name) for name in ("learned", "label-free", "small", "paper")),
    *((size, name) for size in ("lights-out-3x3", "lights-out-5x5") for name in ("learned", "paper")),
]


def some_states(puzzle: Puzzle, count: int) -> States:
    near = us.scramble(puzzle.table, np.arange(count // 4) % 9, 3).states
    return np.concatenate([puzzle.table.goals, near, puzzle.sample(count, 7)])


def assert_same(heuristic: Heuristic, states: States) -> None:
    in_loop, _ = values_of(guide_of(heuristic), states)
    in_batch = heuristic(states)
    assert in_loop.dtype == in_batch.dtype == np.float32
    assert np.array_equal(in_loop.view(np.uint32), in_batch.view(np.uint32))


@pytest.mark.parametrize(("name", "kind"), [*BY_FORMULA, *LEARNED])
def test_values_in_the_loop_are_those_of_batches(name: str, kind: str) -> None:
    puzzle = us.puzzle(name)
    assert_same(us.heuristic(puzzle, kind), some_states(puzzle, 2000))


def random_network(puzzle: Puzzle, outputs: int, seed: int) -> Network:
    random = np.random.default_rng(seed)
    widths = [puzzle.encoding.width, 40, 24, outputs]
    weights = tuple(random.normal(0, (2 / a) ** 0.5, (a, b)).astype(np.float32) for a, b in pairwise(widths))
    scale = 8.0 if outputs == 1 else 1.0
    weights = (*weights[:-1], weights[-1] * np.float32(scale))
    return Network(weights, tuple(random.normal(0, 0.3, b).astype(np.float32) for b in widths[1:]))


def calibrations(puzzle: Puzzle, levels: int, exact: bool, states: States) -> list[Calibration]:
    keys = pack(puzzle.table, np.unique(states, axis=0)[:50])
    common: dict[str, Any] = {"method": "by hand", "guarantee": NO_GUARANTEE} | ({"arithmetic_margin": 0.0} if exact else {})
    roundings = [Rounding.NONE, Rounding.INTEGER] + ([Rounding.PARITY] if puzzle.has_cost_parity else [])
    made = [Calibration(margin=0.3, rounding=rounding, **common) for rounding in roundings]
    made += [
        Calibration(
            margin=-0.7, rounding=roundings[-1], exceptions=keys, exception_costs=np.arange(50, dtype=np.uint16), **common
        )
    ]
    made += [Calibration(group_margins=(0.1, -0.2, 1.5, float("inf"), 0.4), rounding=roundings[-1], **common)]
    if levels:
        some = np.random.default_rng(1).normal(0, 0.5, levels).tolist()
        made += [Calibration(level_margins=(float("-inf"), *some[1:]), rounding=roundings[-1], **common)]
    return made


@pytest.mark.parametrize("exact", [False, True], ids=["float", "whole numbers"])
@pytest.mark.parametrize("outputs", [1, 9], ids=["one output", "levels"])
@pytest.mark.parametrize("name", ["tiles-3x3", "lights-out-5x5", "cube-2x2", "pancake-8"])
def test_networks_calibrated_or_not_say_in_the_loop_what_they_say_of_batches(name: str, outputs: int, exact: bool) -> None:
    puzzle = us.puzzle(name)
    states = some_states(puzzle, 1000)
    network: Any = random_network(puzzle, outputs, 5)
    network = to_whole_numbers(network, puzzle.encoding, states) if exact else network
    raw = NeuralHeuristic(puzzle, network)
    assert_same(raw, states)
    assert_same(rounded(raw, puzzle, Rounding.INTEGER), states)
    assert_same(Largest((us.heuristic(puzzle, "base"), raw)), states)
    for calibration in calibrations(puzzle, raw.family.levels, exact, states):
        assert_same(CalibratedHeuristic(raw, calibration), states)
