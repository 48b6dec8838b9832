"""The verifier that shares no code with the package: it confirms what is true, and nothing else."""

import ast
import hashlib
import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import undershoot as us
from undershoot import verifier
from undershoot.bundles.bundle import SHIPPED, Bundle
from undershoot.bundles.documents import digest
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import calibrate
from undershoot.certification import certificate, check_every_state
from undershoot.guarantees import Rounding
from undershoot.heuristics.calibrated import Calibration
from undershoot.heuristics.neural import Network, NeuralHeuristic
from undershoot.heuristics.whole_numbers import to_whole_numbers
from undershoot.oracles.breadth_first import explore
from undershoot.puzzles.puzzle import Puzzle

FILE = Path(verifier.__file__)
ONE_WAY = """
name = "one-way"
goals = ["1 2 3 4 _", "2 1 3 4 _", "1 2 3 _ 4"]
cursor = "_"

[moves]
turn = { cycles = "(1 2 3 4 5)", cost = 2 }
again = { cycles = "(1 2 3 4 5)", cost = 3 }
jump = { at = { 1 = "(1 4)", 2 = "(2 5)" }, cost = 5 }
back = { at = { 5 = "(5 4)", 3 = "(3 2 1)" } }
"""
DIALS = """
name = "dials"
goal = "0 0 0 0"
symbols = ["0", "1", "2", "3"]

[moves]
a = { add = { 1 = 1, 2 = 1 }, cost = 2 }
b = { cycles = "(1 2 3)", add = { 3 = 1, 4 = 2 } }
c = { cycles = "(3 4)" }
"""


def of_file(folder: Path, text: str) -> Puzzle:
    (folder / "puzzle.toml").write_text(text)
    return us.puzzle(str(folder / "puzzle.toml"))


def bundle_of(puzzle: Puzzle, encoding: str = "cells", outputs: int = 1, radius: int | None = None) -> Bundle:
    """With a random network whose answers have the size of costs."""
    draw, distances = np.random.default_rng(0), explore(puzzle, radius)
    states = distances.states_of_rows(0, min(distances.states, 2000))
    canonical = encoding != "cells" and bool(puzzle.table.symmetries)
    encoded = puzzle.encoded(encoding, canonical)
    widths = [encoded.width, 16, 8, outputs]
    weights = [draw.normal(size=shape).astype(np.float32) for shape in pairwise(widths)]
    biases = [draw.normal(size=width).astype(np.float32) for width in widths[1:]]
    raw = NeuralHeuristic(puzzle, Network(tuple(weights), tuple(biases)), own_encoding=encoded).raw(states)
    weights[-1] *= np.float32(3 / (raw.std() or 1))
    biases[-1] += np.float32(distances.mean) - np.arange(outputs, dtype=np.float32)
    network = to_whole_numbers(Network(tuple(weights), tuple(biases)), encoded, states)
    return Bundle(puzzle, network, encoding=encoding, canonical=canonical)


def saved(bundle: Bundle, folder: Path, calibration: Calibration, radius: int | None = None) -> Path:
    """Calibrated, certified, and written."""
    bundle = replace(bundle, calibration=calibration)
    findings = check_every_state(bundle.heuristic, explore(bundle.puzzle, radius))
    replace(bundle, certificate=certificate(bundle, findings)).save(folder)
    return folder


def run(folder: Path, capsys: pytest.CaptureFixture[str], code: int) -> str:
    result = verifier.main([str(folder)])
    out, err = capsys.readouterr()
    assert result == code, out + err
    assert ("confirmed" in out) == (code == 0)
    assert bool(err) == (code == 2)
    assert "Traceback" not in err
    return out + err


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bundle = bundle_of(us.puzzle("tiles-2x3"))
    calibration = calibrate(bundle.raw, "exceptions", Wanted(listed=0.02))
    assert len(calibration.exceptions)
    return saved(bundle, tmp_path_factory.mktemp("listed") / "b", calibration)


@pytest.fixture
def copy(listed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(listed, tmp_path / "copy"))


@pytest.mark.parametrize("name", ["lights-out-3x3", "lights-out-3x3-paper", "tiles-3x3-small"])
def test_bundles_that_come_with_the_package_are_confirmed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(SHIPPED / name, capsys, 0)
    assert "states enumerated, h above the true cost on 0 of them" in text
    assert us.puzzle(name.rsplit("-", 1)[0] if name.endswith(("paper", "small")) else name).table.fingerprint in text


def test_it_runs_as_a_file_and_says_nothing_if_told_so() -> None:
    command = [sys.executable, str(FILE), str(SHIPPED / "lights-out-3x3"), "--quiet"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""


@pytest.mark.parametrize("method", ["exhaustive", "exceptions"])
@pytest.mark.parametrize("outputs", [1, 9])
@pytest.mark.parametrize("rounding", Rounding)
@pytest.mark.parametrize(
    ("name", "encoding"),
    [("tiles-2x3", "pairs"), ("lights-out-3x3", "presses"), ("pancake-6", "cells"), ("tiles-2x3", "pieces")],
)
def test_what_the_package_certifies_is_confirmed(
    name: str,
    encoding: str,
    rounding: Rounding,
    outputs: int,
    method: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    puzzle = us.puzzle(name)
    if rounding is Rounding.PARITY and not puzzle.has_cost_parity:
        pytest.skip("no parity")
    bundle = bundle_of(puzzle, encoding, outputs)
    run(saved(bundle, tmp_path / "b", calibrate(bundle.raw, method, Wanted(rounding=rounding, listed=0.03))), capsys, 0)


@pytest.mark.parametrize("rounding", [Rounding.NONE, Rounding.PARITY])
@pytest.mark.parametrize("outputs", [1, 12])
def test_margins_of_groups_are_confirmed(
    outputs: int, rounding: Rounding, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = bundle_of(us.puzzle("tiles-2x3"), "pieces", outputs)
    calibration = calibrate(bundle.raw, "exhaustive", Wanted(rounding=rounding))
    highest = max(calibration.margin, *calibration.level_margins) if outputs > 1 else calibration.margin
    groups = tuple(highest + step for step in (0.5, 0, 0.75, float("inf"), 0.1, 0, 2))
    run(saved(bundle, tmp_path / "b", replace(calibration, level_margins=(), group_margins=groups)), capsys, 0)


@pytest.mark.parametrize(("name", "radius"), [("tiles-2x3", 8), ("tiles-4x4", 9), ("cube-3x3", 3), ("tiles-2x3", 0)])
def test_balls_are_confirmed(name: str, radius: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = bundle_of(us.puzzle(name), radius=radius)
    folder = saved(bundle, tmp_path / "b", calibrate(bundle.raw, "exhaustive", Wanted(ball=radius)), radius)
    assert f"states within {radius} of a goal enumerated" in run(folder, capsys, 0)


@pytest.mark.parametrize("text", [ONE_WAY, DIALS])
@pytest.mark.parametrize("radius", [None, 4])
def test_moves_that_cannot_be_undone_costs_and_several_goals(
    text: str, radius: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    puzzle = of_file(tmp_path, text)
    assert not puzzle.table.is_reversible
    bundle = bundle_of(puzzle, radius=radius)
    folder = saved(bundle, tmp_path / "b", calibrate(bundle.raw, "exhaustive", Wanted(ball=radius)), radius)
    run(folder, capsys, 0)


def test_every_value_is_that_of_the_package(tmp_path: Path) -> None:
    bundle = bundle_of(us.puzzle("tiles-2x3"), "pairs", 12)
    bundle = replace(bundle, calibration=calibrate(bundle.raw, "exhaustive", Wanted()))
    bundle.save(tmp_path / "b")
    arrays, _ = verifier.load(tmp_path / "b" / "puzzle.safetensors", verifier.PUZZLE)
    layers = ";".join(verifier.LAYER.format(i, i + 1) for i in range(3))
    model, _ = verifier.load(tmp_path / "b" / "model.safetensors", layers)
    calibration, _ = verifier.load(tmp_path / "b" / "calibration.json")
    ours = verifier.Heuristic(arrays, model, [*bundle.network.widths], calibration)
    states = explore(bundle.puzzle).states_of_rows(1, 360)
    assert len(np.unique(bundle.heuristic(states))) > 5
    assert (ours(np.ascontiguousarray(states.T)) == bundle.heuristic(states)).all()


def said(folder: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((folder / name).read_text()))


def rewrite(folder: Path, name: str, **fields: Any) -> None:
    """A JSON document with other fields, and its digest made right."""
    document = {key: value for key, value in (said(folder, name) | fields).items() if key != "digest"}
    (folder / name).write_text(json.dumps(document | {"digest": digest(document)}))


def mend(folder: Path) -> None:
    """All checksums made right, as one who wants to be believed would."""
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    config, weights = said(folder, "config.json"), sums["model.safetensors"]
    fingerprint = verifier.Puzzle(load_file(folder / "puzzle.safetensors"), config["actions"]).fingerprint
    rewrite(folder, "config.json", fingerprint=fingerprint, sha256={name: sums[name] for name in config["sha256"]})
    rewrite(folder, "calibration.json", weights=weights, exceptions=sums["exceptions.safetensors"])
    calibration = said(folder, "calibration.json")["digest"]
    rewrite(folder, "certificate.json", fingerprint=fingerprint, weights=weights, calibration=calibration)


def change(folder: Path, file: str, array: str, index: Any, value: Any) -> None:
    """One entry of an array; value may be a function of what stands there."""
    arrays = {name: np.array(kept) for name, kept in load_file(folder / file).items()}
    arrays[array][index] = value(arrays[array][index]) if callable(value) else value
    save_file(arrays, folder / file)


def lower_the_margin(folder: Path) -> None:
    rewrite(folder, "calibration.json", margin=said(folder, "calibration.json")["margin"] - 2)


def raise_a_listed_cost(folder: Path) -> None:
    change(folder, "exceptions.safetensors", "costs", 0, lambda cost: cost + 1)


def raise_a_bias(folder: Path) -> None:
    change(folder, "model.safetensors", "layers.2.bias", 0, lambda bias: bias + 100_000)


@pytest.mark.parametrize("harm", [lower_the_margin, raise_a_listed_cost, raise_a_bias])
def test_overestimates_are_shown_although_all_checksums_are_right(
    harm: Callable[[Path], None], copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harm(copy)
    mend(copy)
    text = run(copy, capsys, 1)
    assert "The certificate is refuted" in text
    assert "certificate.json says violations: 0, but it is" in text
    assert "h is " in text
    assert "digest" not in text
    assert "weights" not in text


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        *[("states", 361), ("checked", 359), ("violations", False), ("marginal", 1), ("supremum", -1.0), ("mean_h", 6.9)],
        *[("mean_true", 12.0), ("edges", 841), ("inconsistent_edges", 0), ("states", 360.0), ("mean_h", None), ("radius", 21)],
        *[("inputs", "0" * 64), ("puzzle", "tiles-3x3"), ("fingerprint", "0" * 64), ("weights", None), ("calibration", "")],
    ],
)
def test_every_figure_and_every_binding_is_compared(
    figure: str, value: Any, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = said(copy, "certificate.json")
    rewrite(copy, "certificate.json", **{figure: value})
    if figure == "radius":  # the space has no state further than that
        run(copy, capsys, 0)
        rewrite(copy, "certificate.json", radius=20)
        assert f"certificate.json says states: {before['states']}, but it is 359" in run(copy, capsys, 1)
    else:
        assert f"certificate.json says {figure}: {value!r}, but it is {before[figure]!r}" in run(copy, capsys, 1)


def test_moves_that_were_not_looked_at_need_not_be_counted(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite(copy, "certificate.json", edges=None, inconsistent_edges=None)
    run(copy, capsys, 0)
    rewrite(copy, "certificate.json", inconsistent_edges=0)
    run(copy, capsys, 1)


def test_changed_files_are_refuted_by_their_checksums(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raise_a_bias(copy)
    text = run(copy, capsys, 1)
    for part in ("certificate.json says weights", "config.json says model.safetensors", "calibration.json says weights"):
        assert part in text
    (copy / "certificate.json").write_text((copy / "certificate.json").read_text().replace('"radius"', ' "radius"'))
    assert "certificate.json says digest" not in run(copy, capsys, 1)
    (copy / "certificate.json").write_text((copy / "certificate.json").read_text().replace('"marginal": 0', '"marginal": 3'))
    assert "certificate.json says digest" in run(copy, capsys, 1)


def test_other_moves_are_another_puzzle(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(copy, "puzzle.safetensors", "table.cost", 0, 2)
    text = run(copy, capsys, 1)
    assert "certificate.json says fingerprint" in text
    assert "config.json says puzzle.safetensors" in text
    mend(copy)
    text = run(copy, capsys, 1)
    assert "fingerprint:" not in text
    assert "certificate.json says mean_true" in text


def test_the_certificate_of_another_bundle_is_refuted(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(SHIPPED / "lights-out-3x3" / "certificate.json", copy)
    text = run(copy, capsys, 1)
    for name in ("puzzle", "fingerprint", "weights", "calibration", "inputs", "states"):
        assert f"certificate.json says {name}: " in text


NAMES = (
    "config.json",
    "calibration.json",
    "certificate.json",
    "model.safetensors",
    "puzzle.safetensors",
    "exceptions.safetensors",
)


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_missing_truncated_or_something_else_are_named(
    name: str, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copy / name
    data = path.read_bytes()
    cut = [data[:-3], data[: len(data) // 2], data[:20], data[:5], b""]
    wrong = [b"[]", b"null", b'{"format": NaN}', b'{"a": 1, "a": 1}', b"[" * 10**6, b'{"a":' * 10**5, b"\xff\xfe", b"1" * 5000]
    headers = [
        b"{}",
        b"[]",
        b'{"x": 1}',
        b'{"x": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}}',
        b'{"x": {"x":' * 9**5,
    ]
    for other in (*cut, *wrong, *(struct.pack("<Q", len(text)) + text for text in headers), struct.pack("<Q", 2**63) + b"{}"):
        path.write_bytes(other)
        assert name in run(copy, capsys, 2)
    path.unlink()
    assert name in run(copy, capsys, 2)
    path.mkdir()
    assert name in run(copy, capsys, 2)


@pytest.mark.parametrize(
    ("file", "array", "index", "value"),
    [
        ("puzzle.safetensors", "table.cost", 0, 0),
        ("puzzle.safetensors", "table.cost", 0, -1),
        ("puzzle.safetensors", "table.legal", (0, 1), 2),
        ("puzzle.safetensors", "table.shift", (0, 0, 0), 1),
        ("puzzle.safetensors", "table.source", (slice(None), slice(None), 0), 1),
        ("puzzle.safetensors", "table.modulus", 0, 0),
        ("puzzle.safetensors", "table.modulus", 0, 5),
        ("puzzle.safetensors", "table.modulus", slice(None), 257),
        ("puzzle.safetensors", "table.cursor", 0, 17),
        ("puzzle.safetensors", "table.cursor", 0, -1),
        ("puzzle.safetensors", "table.cursor", 0, -7),
        ("puzzle.safetensors", "table.goals", (0, 0), 0),
        ("puzzle.safetensors", "table.goals", (0, 0), 6),
        ("puzzle.safetensors", "h0.divisor", 0, 0),
        ("puzzle.safetensors", "0.width", 0, 35),
        ("puzzle.safetensors", "0.inputs", (0, 0, 0), 2),
        ("model.safetensors", "layers.1.weight", (0, 0), -128),
        ("model.safetensors", "layers.1.bias", 0, 2**24 - 1),
        ("model.safetensors", "layers.1.bias", 0, -(2**31)),
        ("model.safetensors", "layers.0.scale", 0, np.nan),
        ("model.safetensors", "layers.0.scale", 0, np.inf),
        ("model.safetensors", "layers.2.scale", 0, 0),
        ("model.safetensors", "layers.2.scale", 0, 2.0**65),
    ],
)
def test_arrays_that_make_no_sense_are_refused(
    file: str, array: str, index: Any, value: Any, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(copy, file, array, index, value)
    run(copy, capsys, 2)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("config.json", {"format": "undershoot bundle 4"}),
        ("config.json", {"networks": []}),
        ("config.json", {"networks": [1]}),
        ("config.json", {"networks": None}),
        ("config.json", {"combined": "sum"}),
        ("config.json", {"actions": ["U"]}),
        ("config.json", {"actions": 4}),
        ("config.json", {"sha256": []}),
        ("calibration.json", {"margin": "NaN"}),
        ("calibration.json", {"margin": True}),
        ("calibration.json", {"margin": [1]}),
        ("calibration.json", {"margin": 1e999}),
        ("calibration.json", {"level_margins": [0.0]}),
        ("calibration.json", {"group_margins": 3}),
        ("calibration.json", {"rounding": "up"}),
        ("calibration.json", {"arithmetic_margin": 0.001}),
        ("certificate.json", {"arithmetic": "float32, fixed order of additions, 1"}),
        ("certificate.json", {"format": "undershoot certificate 3"}),
        ("certificate.json", {"radius": "8"}),
        ("certificate.json", {"radius": True}),
    ],
)
def test_documents_that_make_no_sense_are_refused(
    name: str, fields: dict[str, Any], copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(copy, name, **fields)
    text = run(copy, capsys, 2)
    if "arithmetic" in fields or "format" in fields:
        assert "this verifier checks networks of whole numbers" in text


def test_widths_and_weights_belong_together(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [network] = said(copy, "config.json")["networks"]
    for widths in ([*network["widths"], 1], network["widths"][:-1], [1], [], None, [36.5, 16, 8, 1], [35, 16, 8, 1]):
        rewrite(copy, "config.json", networks=[network | {"widths": widths}])
        run(copy, capsys, 2)
    rewrite(copy, "config.json", networks=[network, network])
    run(copy, capsys, 2)


def test_goals_and_states_that_are_listed_already_are_not_listed(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    puzzle = verifier.Puzzle(load_file(copy / "puzzle.safetensors"), said(copy, "config.json")["actions"])
    for key in (load_file(copy / "exceptions.safetensors")["keys"][1, 0], puzzle.keys(puzzle.goals)[0]):
        change(copy, "exceptions.safetensors", "keys", (0, 0), key)
        assert "a goal is listed, or a state twice" in run(copy, capsys, 2)


def test_spaces_that_are_too_large_are_refused(
    copy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifier, "MOST_KEYS", 300)
    assert "there are more states than this verifier has room for" in run(copy, capsys, 2)


def test_names_do_not_draw_on_the_terminal(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite(copy, "config.json", puzzle="\x1b[2J\ud800")
    text = run(copy, capsys, 1)
    assert "\x1b" not in text
    assert "\\x1b[2J\\ud800" in text


def test_it_is_short_and_shares_nothing_with_the_package() -> None:
    text = FILE.read_text()
    assert len(text.splitlines()) <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert str(node.module).split(".")[0] in sys.stdlib_module_names
        elif isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= sys.stdlib_module_names | {"numpy"}
