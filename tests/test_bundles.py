"""Learned heuristics on disk."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import undershoot as us
from subjects import PYRAMINX
from undershoot.arrays import AnyArray
from undershoot.bundles.bundle import Bundle
from undershoot.bundles.documents import read_signed, signed
from undershoot.bundles.loading import load
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import METHODS, calibrate
from undershoot.heuristics.calibrated import CalibratedHeuristic
from undershoot.heuristics.learned_patterns import LearnedPatterns
from undershoot.heuristics.neural import Network, NeuralHeuristic, evaluate
from undershoot.heuristics.whole_numbers import to_whole_numbers
from undershoot.kernels.encodings import dense as encoded
from undershoot.puzzles.puzzle import Puzzle


def some_network(puzzle: Puzzle, hidden: tuple[int, ...] = (20, 12), seed: int = 0) -> Network:
    draw = np.random.default_rng(seed)
    widths = [puzzle.encoding.width, *hidden, 1]
    weights = [np.asarray(draw.normal(size=shape), dtype=np.float32) for shape in pairwise(widths)]
    return Network(tuple(weights), tuple(np.asarray(draw.normal(size=w.shape[1]), dtype=np.float32) for w in weights))


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    puzzle = us.puzzle("tiles-3x3")
    Bundle(puzzle, some_network(puzzle), {"steps": 1}, {"mean_h": 3.0}, "undershoot train tiles-3x3").save(tmp_path / "b")
    return tmp_path / "b"


def test_what_was_saved_is_loaded(bundle: Path) -> None:
    puzzle = us.puzzle("tiles-3x3")
    heuristic, states = load(bundle), puzzle.sample(300, 1)
    expected = NeuralHeuristic(puzzle, some_network(puzzle))(states)
    assert heuristic(states).tobytes() == expected.tobytes()
    assert us.solve(puzzle, puzzle.parse("D D R"), heuristic).cost is not None
    assert "undershoot train tiles-3x3" in (bundle / "README.md").read_text()
    Bundle(puzzle, some_network(puzzle, seed=2)).save(bundle)
    assert load(bundle)(states).tobytes() != expected.tobytes()
    assert [path.name for path in bundle.parent.iterdir()] == ["b"]


def test_a_bundle_of_a_puzzle_file_brings_its_puzzle_along(tmp_path: Path) -> None:
    puzzle = us.puzzle(PYRAMINX)
    Bundle(puzzle, some_network(puzzle)).save(tmp_path / "b")
    loaded = load(tmp_path / "b")
    assert loaded.fingerprint == puzzle.table.fingerprint
    assert loaded(puzzle.sample(3, 0)).shape == (3,)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "README.md"])
def test_a_changed_or_missing_file_is_named(bundle: Path, name: str) -> None:
    data = bytearray((bundle / name).read_bytes())
    middle = len(data) // 2
    data[middle] ^= 1
    (bundle / name).write_bytes(bytes(data))
    with pytest.raises(us.UndershootError, match=f"{name} (was changed|is damaged)"):
        load(bundle)
    (bundle / name).unlink()
    with pytest.raises(us.UndershootError, match=f"{name} is missing"):
        load(bundle)


def test_bundles_of_other_puzzles_and_other_things_are_refused(bundle: Path, tmp_path: Path) -> None:
    cube = us.puzzle("cube-2x2")
    with pytest.raises(us.UndershootError, match="is for tiles-3x3, not for cube-2x2"):
        us.heuristic(cube, str(bundle))
    with pytest.raises(us.UndershootError, match="belongs to another puzzle"):
        us.solve(cube, cube.parse("R U"), load(bundle))
    with pytest.raises(us.UndershootError, match="there is no bundle at"):
        load(tmp_path / "nothing")
    namesake = replace(cube, table=us.puzzle("cube-2x2-qtm").table)
    with pytest.raises(us.UndershootError, match="is for cube-2x2, not for another puzzle of that name"):
        us.heuristic(namesake, "cube-2x2")
    with pytest.raises(us.UndershootError, match=r"no bundle in the folder .*: config.json is missing"):
        load(tmp_path)
    assert us.heuristic(us.puzzle("tiles-3x3"), "8-puzzle").guarantee == load("tiles-3x3").guarantee
    other = tmp_path / "other"
    shutil.copytree(bundle, other)
    (other / "config.json").write_text(json.dumps({"format": "something else"}))
    with pytest.raises(us.UndershootError, match="is no file of this version"):
        load(other)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(us.UndershootError, match="holds something else than a bundle"):
        Bundle(cube, some_network(cube)).save(tmp_path / "mine")


def test_networks_of_other_widths_are_refused() -> None:
    cube, tiles = us.puzzle("cube-2x2"), us.puzzle("tiles-3x3")
    with pytest.raises(us.UndershootError, match=r"takes 72 inputs, but states of cube-2x2 are encoded in 144"):
        NeuralHeuristic(cube, some_network(tiles))
    network = some_network(tiles)
    with pytest.raises(us.UndershootError, match="do not follow one another"):
        replace(network, weights=network.weights[:1] + network.weights[:1] + network.weights[2:])
    with pytest.raises(us.UndershootError, match="not finite"):
        replace(network, biases=(network.biases[0] * np.nan, *network.biases[1:]))


@pytest.mark.parametrize("hidden", [(256, 256, 128), (5,), (17, 33, 1, 9)])
@pytest.mark.parametrize("name", ["tiles-3x3", "cube-2x2", "lights-out-5x5", "pancake-8"])
def test_a_value_does_not_depend_on_batch_or_threads(name: str, hidden: tuple[int, ...]) -> None:
    puzzle = us.puzzle(name)
    network = some_network(puzzle, hidden)
    heuristic, states = NeuralHeuristic(puzzle, network), puzzle.sample(2000, 1)
    values = heuristic(states)
    for start, stop in ((0, 1), (3, 5), (100, 131), (7, 1007)):
        assert heuristic(states[start:stop]).tobytes() == values[start:stop].tobytes()
    assert heuristic(states[::-1].copy())[::-1].tobytes() == values.tobytes()
    for threads in (2, 3):
        assert evaluate(heuristic, states, threads).tobytes() == values.tobytes()
    x = encoded(puzzle.encoding, states).astype(np.float64)
    for k, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        x = (np.maximum(x, 0) if k else x) @ weight.astype(np.float64) + bias
    expected = np.maximum(puzzle.base_heuristic(states), x[:, 0])
    np.testing.assert_allclose(values, expected, rtol=2e-4, atol=2e-3)


def test_goals_are_0_and_values_are_at_least_h0() -> None:
    puzzle = us.puzzle("tiles-3x3")
    heuristic = NeuralHeuristic(puzzle, some_network(puzzle))
    assert heuristic(puzzle.table.goals).tolist() == [0]
    assert heuristic.raw(puzzle.table.goals).tolist() != [0]
    states = puzzle.sample(500, 1)
    assert (heuristic(states) >= puzzle.base_heuristic(states)).all()


def test_a_bundle_is_used_without_torch(bundle: Path) -> None:
    code = (
        "import sys, undershoot as us; p = us.puzzle('tiles-3x3'); "
        f"us.solve(p, p.sample(1, 0), us.load({str(bundle)!r}), us.SearchOptions(max_expanded=50)); "
        "print('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("tiles-2x3", kind) for kind in ("network", "base", "table", "linear-conflict")),
        *(("lights-out-2x3", kind) for kind in ("network", "base", "table", "gf2")),
    ],
)
def test_malformed_states_are_refused_and_do_not_crash(name: str, kind: str) -> None:
    puzzle = us.puzzle(name)
    heuristic = NeuralHeuristic(puzzle, some_network(puzzle)) if kind == "network" else us.heuristic(puzzle, kind)
    beyond = puzzle.sample(2, 0)
    beyond[1, 5] = puzzle.table.modulus[5]
    for states in (np.full((1, 6), 200, np.uint8), beyond, np.zeros((1, 600), np.uint8), np.zeros((1, 3), np.uint8)):
        with pytest.raises(us.UndershootError, match=r"is none of this puzzle|states must be an array uint8\[B, 6\]"):
            heuristic(states)
    others: list[AnyArray] = [np.zeros(6, np.uint8), puzzle.sample(2, 0).astype(np.int64)]
    for other in others:
        with pytest.raises(us.UndershootError, match=r"states must be an array uint8\[B, 6\]"):
            heuristic(other)


def test_a_bundle_that_says_other_widths_is_refused(bundle: Path) -> None:
    config = read_signed(bundle / "config.json")
    config["networks"][0]["widths"] = [72, 20, 13, 1]
    (bundle / "config.json").write_bytes(signed(config))
    with pytest.raises(us.UndershootError, match=r"holds layers of widths .* config.json says \[72, 20, 13, 1\]"):
        load(bundle)
    del config["sha256"]
    (bundle / "config.json").write_bytes(signed(config))
    with pytest.raises(us.UndershootError, match=r"config.json does not hold what it should: its sha256 is missing"):
        load(bundle)


def test_devices_that_are_not_there_are_refused(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(us.UndershootError, match="the device is cuda, but torch finds none here; use cpu"):
        us.load(bundle, device="cuda")
    with pytest.raises(us.UndershootError, match='the device is "tpu"; allowed are cpu and cuda'):
        us.load(bundle, device="tpu")


@pytest.mark.parametrize("method", ["none", *METHODS])
@pytest.mark.parametrize("name", ["tiles-2x3", "lights-out-3x3", "pancake-6"])
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")
def test_a_bundle_on_cuda_says_what_it_says_on_the_cpu(tmp_path: Path, name: str, method: str) -> None:
    puzzle = us.puzzle(name)
    network = some_network(puzzle)
    states = np.concatenate([puzzle.sample(3000, 1), puzzle.table.goals])
    for kept in (to_whole_numbers(network, puzzle.encoding, states), network):
        made = Bundle(puzzle, kept)
        if method != "none":
            made = replace(made, calibration=calibrate(made.raw, method, Wanted(depths=(1, 2, 3))))
        made.save(tmp_path / "b")
        if kept is network and method == "grouped":
            with pytest.raises(us.UndershootError, match="needs exact values"):
                us.load(tmp_path / "b", device="cuda")
            continue
        here, there = us.load(tmp_path / "b"), us.load(tmp_path / "b", device="cuda")
        assert here.guarantee == there.guarantee
        assert not isinstance(here, LearnedPatterns)
        assert not isinstance(there, LearnedPatterns)
        raw = [h.network.raw(states) if isinstance(h, CalibratedHeuristic) else h.raw(states) for h in (here, there)]
        if kept is network:
            np.testing.assert_allclose(raw[1], raw[0], atol=1e-4)
        else:
            assert raw[1].tobytes() == raw[0].tobytes()
            assert there(states).tobytes() == here(states).tobytes()
        with pytest.raises(us.UndershootError, match="is none of this puzzle"):
            there(np.full_like(states, 200))


def test_whole_number_networks_are_saved_and_loaded(tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(2000, 1)
    network = to_whole_numbers(some_network(puzzle), puzzle.encoding, states)
    Bundle(puzzle, network).save(tmp_path / "b")
    loaded = load(tmp_path / "b")
    assert loaded(states).tobytes() == NeuralHeuristic(puzzle, network)(states).tobytes()
    assert "exact on every device" in (tmp_path / "b" / "README.md").read_text()
