"""Calibration of networks with levels."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import undershoot as us
from undershoot.bundles.bundle import Bundle
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import METHODS, calibrate
from undershoot.calibration.levels import level_margins
from undershoot.guarantees import Rounding
from undershoot.heuristics.calibrated import CalibratedHeuristic
from undershoot.heuristics.neural import Network, NeuralHeuristic
from undershoot.heuristics.whole_numbers import WholeNetwork, to_whole_numbers
from undershoot.kernels.encodings import dense
from undershoot.oracles.breadth_first import explore
from undershoot.oracles.distance_table import DistanceTable

CASES = [("tiles-2x3", "pairs"), ("lights-out-3x3", "pieces"), ("pancake-6", "pieces")]


@cache
def with_levels(name: str, encoding: str, whole: bool = True) -> tuple[NeuralHeuristic, DistanceTable]:
    """A network whose levels know something: the cost is fitted by random features, and level k is that above k."""
    puzzle, draw = us.puzzle(name), np.random.default_rng(1)
    distances, how = explore(puzzle), puzzle.encoded(encoding)
    x = dense(how, distances.states_of_rows(0, distances.states))
    first = draw.uniform(-0.5, 0.5, (how.width, 48)).astype(np.float32)
    features = np.clip(x @ first, 0, 3.9)
    cost = np.repeat(np.arange(len(distances.histogram)), distances.histogram)
    last, *_ = np.linalg.lstsq(np.c_[features, np.ones(len(cost))], cost, rcond=None)
    levels = len(distances.histogram) - 1
    weights = (first, np.repeat(last[:-1, None], levels, axis=1).astype(np.float32))
    biases = (np.zeros(48, dtype=np.float32), (last[-1] - 0.5 - np.arange(levels)).astype(np.float32))
    network = Network(weights, biases)
    converted = to_whole_numbers(network, how, distances.states_of_rows(0, distances.states)) if whole else network
    return NeuralHeuristic(puzzle, converted, own_encoding=how), distances


@pytest.mark.parametrize("share", [0.0, 0.05])
@pytest.mark.parametrize(("name", "encoding"), CASES)
def test_margins_of_levels_are_the_least_that_prove(name: str, encoding: str, share: float) -> None:
    network, distances = with_levels(name, encoding)
    margins, rows = level_margins(network, distances, share, 1)
    cost = np.repeat(np.arange(len(distances.histogram)), distances.histogram)
    # In units of cost, which is exact in float64.
    raw = network.raw(distances.states_of_rows(0, distances.states)) * np.array(network.family.scales)

    def value(margins: tuple[float, ...]) -> np.ndarray:
        """By the definition, a state at a time."""
        found = []
        for row in raw.tolist():
            k = 0
            while k < len(row) and row[k] > margins[k]:
                k += 1
            found.append(k)
        return np.array(found)

    above = value(margins) > cost
    above[: distances.histogram[0]] = False
    assert np.flatnonzero(above).tolist() == sorted(rows.tolist())
    for c, count in enumerate(distances.histogram.tolist()):
        assert above[cost == c].sum() <= share * count
    for level in range(1, len(margins)):
        if np.isfinite(margins[level]):
            lower = (
                *margins[:level],
                margins[level] - network.family.scales[level],
                *margins[level + 1 :],
            )
            here = cost == level
            assert (value(lower) > cost)[here].sum() > above[here].sum()


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("name", "encoding"), CASES)
def test_every_method_takes_levels(name: str, encoding: str, method: str, whole: bool) -> None:
    network, distances = with_levels(name, encoding, whole)
    wanted = Wanted(alpha=0.1, n=2000, depths=(1, 2, 3, 4), listed=0.05)
    calibration = calibrate(network, method, wanted)
    states = distances.states_of_rows(0, distances.states)
    cost = np.repeat(np.arange(len(distances.histogram)), distances.histogram)
    rate = (CalibratedHeuristic(network, calibration)(states) > cost).mean()
    if method in ("exhaustive", "exceptions"):
        assert rate == 0
        assert calibration.level_margins
    elif method in ("max", "conformal"):
        assert rate <= 0.15  # alpha 0.1, up to chance
    strongest = CalibratedHeuristic(network, calibrate(network, "exceptions", wanted))(states).mean()
    weaker = CalibratedHeuristic(network, calibrate(network, "exhaustive", wanted))(states).mean()
    assert strongest > weaker > 0


def test_a_margin_of_levels_within_a_ball_proves_within_it() -> None:
    network, distances = with_levels("tiles-2x3", "pairs")
    calibration = calibrate(network, "exhaustive", Wanted(ball=8, rounding=Rounding.NONE))
    inside = distances.within(8)
    values = CalibratedHeuristic(network, calibration)(inside.states_of_rows(0, inside.states))
    assert (values <= np.repeat(np.arange(9), inside.histogram)).all()
    assert calibration.guarantee.within == 8
    # Beyond the ball nothing is proven, but levels that were never seen do not let every state pass.
    seen = [margin for margin in calibration.level_margins[1:9] if np.isfinite(margin)]
    assert set(calibration.level_margins[9:]) == {max([0.0, *seen])}


@pytest.mark.parametrize("method", ["grouped", "max", "conformal"])
def test_costs_beyond_the_last_level_do_no_harm(tmp_path: Path, method: str) -> None:
    full, distances = with_levels("lights-out-3x3", "pieces")
    assert isinstance(full.network, WholeNetwork)
    few = WholeNetwork(
        (full.network.weights[0], full.network.weights[1][:, :2]),
        (full.network.biases[0], full.network.biases[1][:2]),
        (full.network.scales[0], full.network.scales[1][:2]),
    )
    bundle = Bundle(us.puzzle(full.puzzle.name), few, encoding="pieces")
    bundle = replace(bundle, calibration=calibrate(bundle.raw, method, Wanted(alpha=0.2, n=3000)))
    bundle.save(tmp_path / "b")
    assert "Infinity" not in (tmp_path / "b" / "calibration.json").read_text()
    states = distances.states_of_rows(0, distances.states)
    assert us.load(tmp_path / "b")(states).tobytes() == bundle.heuristic(states).tobytes()
