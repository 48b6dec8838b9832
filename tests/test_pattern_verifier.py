"""The verifier of networks on patterns, which shares no code with the package: it confirms what is true, and nothing else."""

import ast
import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import undershoot as us
from attacks.forging import Document, forge, read, write
from made_patterns import written
from undershoot import pattern_verifier, verifier
from undershoot.bundles.pattern_reading import read_pattern_bundle
from undershoot.pattern_tables.residuals import codes_of

FILE = Path(pattern_verifier.__file__)
ODD = """
name = "odd"
goals = ["1 2 3 4 _", "2 1 4 3 _"]
cursor = "_"

[moves]
right = { at = { 1 = "(1 2)", 2 = "(2 3)", 3 = "(3 4)", 4 = "(4 5)" } }
left = { at = { 2 = "(2 1)", 3 = "(3 2)", 4 = "(4 3)", 5 = "(5 4)" }, cost = 3 }
jump = { at = { 1 = "(1 4)", 4 = "(4 1)", 2 = "(2 5)", 5 = "(5 2)" }, cost = 2 }
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("made")
    (folder / "odd.toml").write_text(ODD)
    three = us.puzzle("tiles-3x3")
    return {
        "listed": written(folder / "listed", three, "4-4+reflected", 0.1),
        "none listed": written(folder / "none", us.puzzle("tiles-2x4"), "4-3"),
        "all tiles": written(folder / "all", us.puzzle("tiles-2x3"), "5", 0.02),
        "odd": written(folder / "odd", us.puzzle(folder / "odd.toml"), "1 2 / 3 4", 0.1),
    }


@pytest.fixture
def copy(made: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(made["listed"], tmp_path / "copy"))


def run(folder: Path, capsys: pytest.CaptureFixture[str], code: int) -> str:
    result = verifier.main([str(folder)])
    out, err = capsys.readouterr()
    assert result == code, out + err
    assert ("confirmed" in out) == (code == 0)
    assert ("refuted" in out) == (code == 1)
    assert bool(err) == (code == 2)
    assert "Traceback" not in err
    return out + err


@pytest.mark.parametrize("name", ["listed", "none listed", "all tiles", "odd"])
def test_what_the_package_certifies_is_confirmed(name: str, made: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    bundle = read_pattern_bundle(made[name])
    text = run(made[name], capsys, 0)
    assert "h above the cost on 0 of them" in text
    assert bundle.puzzle.table.fingerprint in text
    assert (sum(len(network.listed) for network in bundle.networks) > 0) == (name != "none listed")


def test_the_cases_are_the_ones_that_are_meant(made: dict[str, Path]) -> None:
    odd, whole = (read_pattern_bundle(made[name]) for name in ("odd", "all tiles"))
    assert len(odd.puzzle.table.goals) == 2
    assert sorted(odd.puzzle.table.cost) == [1, 2, 3]
    assert odd.certificate is not None
    assert whole.certificate is not None
    assert 2 * whole.certificate["checks"][0]["checked"] == whole.certificate["checks"][0]["arrangements"]


def test_it_runs_as_a_file_and_says_nothing_if_told_so(made: dict[str, Path]) -> None:
    command = [sys.executable, str(FILE.with_name("verifier.py")), str(made["none listed"]), "--quiet"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""


def test_every_sum_is_that_of_the_package(made: dict[str, Path]) -> None:
    arrays, model = (load_file(made["none listed"] / f"{name}.safetensors") for name in ("puzzle", "model"))
    about = read(made["none listed"] / "config.json")["networks"]
    for number, network in enumerate(read_pattern_bundle(made["none listed"]).networks):
        ours = pattern_verifier.Network(number, about[number], list(network.thresholds), arrays, model, {})
        codes = codes_of(network.pattern.folded, 0, int(network.pattern.folded.size)).astype(np.int64)
        rows = np.arange(len(codes))
        assert (ours.sums(codes[:, :-2], rows, codes[:, -2], codes[:, -1]) == network.sums(codes.astype(np.uint8))).all()


def lower_a_threshold(fitted: Document) -> None:
    """By the least amount, at the first level that has one."""
    levels = fitted["thresholds"][0]
    level = next(k for k, threshold in enumerate(levels) if abs(threshold) < 2**24)
    levels[level] -= 1


def unlist_one(tensors: Document) -> None:
    tensors["0.numbers"], tensors["0.costs"] = tensors["0.numbers"][1:].copy(), tensors["0.costs"][1:].copy()


def raise_a_listed_cost(tensors: Document) -> None:
    tensors["0.costs"] = tensors["0.costs"] + np.array([2] + [0] * (len(tensors["0.costs"]) - 1), np.uint8)


def list_another(tensors: Document) -> None:
    """The goal of the first pattern, at a cost of 2."""
    numbers = np.append(tensors["0.numbers"], np.uint32(0))
    numbers, first = np.unique(numbers, return_index=True)
    tensors["0.numbers"], tensors["0.costs"] = numbers, np.append(tensors["0.costs"], np.uint8(2))[first]


def raise_a_bias(tensors: Document) -> None:
    tensors["1.layers.2.bias"] = tensors["1.layers.2.bias"] + np.int32(100_000)


def raise_a_share(tensors: Document) -> None:
    share = tensors["1.share"].copy()
    share[0, 0] += 2
    tensors["1.share"] = share


OVERESTIMATES: dict[str, dict[str, Callable[[Document], None]]] = {
    "a threshold": {"calibration": lower_a_threshold},
    "no longer listed": {"exceptions": unlist_one},
    "listed too high": {"exceptions": raise_a_listed_cost},
    "the goal listed": {"exceptions": list_another},
    "a bias": {"model": raise_a_bias},
    "a share": {"arrays": raise_a_share},
}


@pytest.mark.parametrize("name", OVERESTIMATES)
def test_overestimates_are_shown_although_all_checksums_are_right(
    name: str, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = run(forge(copy, **OVERESTIMATES[name]), capsys, 1)
    assert "certificate.json says violations: 0, but it is" in text
    assert "h is " in text
    assert "digest" not in text
    assert "says weights" not in text
    assert "says calibration" not in text


def test_a_weight_that_lowers_values_is_noticed_too(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forge(copy, model=lambda t: t.update({"0.layers.2.bias": t["0.layers.2.bias"] - np.int32(100_000)}))
    text = run(copy, capsys, 1)
    assert "h above the cost on 0 of them" in text
    assert "certificate.json says mean_h: " in text


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        *[("arrangements", 3025), ("checked", 3023), ("violations", False), ("violations", 1), ("listed", 0)],
        *[("mean_h", 9.0), ("mean_cost", 8.0), ("mean_h", None), ("table", "0" * 64), ("checked", 3024.0)],
    ],
)
def test_every_figure_is_compared(figure: str, value: Any, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forge(copy, certificate=lambda d: d["checks"][1 if value == 0 else 0].update({figure: value + 1 if value == 0 else value}))
    assert f"certificate.json says {figure}: " in run(copy, capsys, 1)


@pytest.mark.parametrize("name", ["puzzle", "set", "fingerprint", "weights", "calibration", "inputs", "patterns", "additivity"])
def test_every_binding_is_compared(name: str, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forge(copy, certificate=lambda d: d.update({name: "x"}))
    assert f"certificate.json says {name}: 'x', but it is " in run(copy, capsys, 1)


def test_changed_files_are_refuted_by_their_checksums(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray((copy / "model.safetensors").read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    place = start + json.loads(data[8:start])["0.layers.0.weight"]["data_offsets"][0]
    data[place] ^= 1
    (copy / "model.safetensors").write_bytes(data)
    text = run(copy, capsys, 1)
    for part in ("certificate.json says weights", "config.json says model.safetensors", "calibration.json says weights"):
        assert part in text
    certificate = (copy / "certificate.json").read_text()
    (copy / "certificate.json").write_text(certificate.replace('"additivity": "checked"', '"additivity": "checked "'))
    assert "certificate.json says digest" in run(copy, capsys, 1)


def test_the_certificate_of_another_bundle_is_refuted(
    made: dict[str, Path], copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(made["none listed"] / "certificate.json", copy)
    text = run(copy, capsys, 1)
    for name in ("puzzle", "fingerprint", "weights", "calibration", "patterns", "table"):
        assert f"certificate.json says {name}: " in text


def test_patterns_that_share_a_tile_are_not_added(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forge(copy, arrays=lambda t: t.update({"looks.sum": np.zeros(4, np.int32)}))
    assert "are added: a move of the tile 1 would count twice" in run(copy, capsys, 1)
    forge(copy, arrays=lambda t: t.update({"looks.sum": np.arange(2, dtype=np.int32).repeat(2)}))
    run(copy, capsys, 0)
    forge(copy, arrays=lambda t: t.update({"looks.network": np.array([0, 0, 1, 1], np.int32)}))
    assert "would count twice" in run(copy, capsys, 1)


def swap(array: Any, one: int, other: int) -> Any:
    changed = array.copy()
    changed[2:, [one, other]] = changed[2:, [other, one]]
    return changed


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.update({"looks.values": swap(t["looks.values"], 1, 5)}),  # the goal is not kept
        lambda t: t.update({"looks.cells": swap(t["looks.cells"], 0, 4), "looks.values": swap(t["looks.values"], 1, 5)}),
        lambda t: t.update({"looks.cells": np.tile(np.roll(np.arange(9, dtype=np.uint8), 1), (4, 1))}),
        lambda t: t.update({"looks.values": swap(t["looks.values"], 0, 1)}),  # the blank is another tile
    ],
)
def test_looks_through_what_is_no_symmetry_are_refuted(
    change: Callable[[Document], None], copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "is through no symmetry" in run(forge(copy, arrays=change), capsys, 1)


def test_other_moves_are_another_puzzle(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forge(copy, arrays=lambda t: t.update({"table.cost": t["table.cost"] + np.int32(1)}))
    text = run(copy, capsys, 1)
    assert "certificate.json says fingerprint" in text
    assert "certificate.json says mean_cost" in text


NAMES = ["config.json", "calibration.json", "certificate.json"]
NAMES += ["model.safetensors", "puzzle.safetensors", "exceptions.safetensors"]


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_missing_truncated_or_something_else_are_named(
    name: str, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copy / name
    data = path.read_bytes()
    cut = [data[:-3], data[: len(data) // 2], data[:20], data[:5], b"", data + b"x"]
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
        if name == "exceptions.safetensors" and other[8:] == b"{}":
            continue  # a file in which nothing is listed
        assert name in run(copy, capsys, 2)
    path.unlink()
    assert name in run(copy, capsys, 2)
    path.mkdir()
    assert name in run(copy, capsys, 2)


def entry(name: str, index: Any, value: Any) -> Callable[[Document], None]:
    def change(tensors: Document) -> None:
        array = tensors[name].copy()
        array[index] = value
        tensors[name] = array

    return change


def test_puzzles_without_a_blank_are_said_to_be_beyond_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path / "cube", us.puzzle("cube-2x2"), "2+2")
    assert "only patterns of tiles that slide are checked here" in run(folder, capsys, 2)


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("arrays", entry("table.cost", 0, 0)),
        ("arrays", entry("table.legal", (0, 1), 2)),
        ("arrays", entry("table.shift", (0, 0, 0), 1)),
        ("arrays", entry("table.source", (slice(None), slice(None), 0), 1)),
        ("arrays", entry("table.modulus", 0, 7)),
        ("arrays", entry("table.cursor", 0, 17)),
        ("arrays", entry("table.cursor", 0, -1)),
        ("arrays", entry("table.cursor", 0, 1)),
        ("arrays", entry("table.goals", (0, 0), 2)),
        ("arrays", entry("0.step", 0, 0)),
        ("arrays", entry("looks.network", 0, 2)),
        ("arrays", entry("looks.network", slice(None), 0)),
        ("arrays", entry("looks.cells", 0, 0)),
        ("arrays", lambda t: t.update({"0.share": t["0.share"][:3]})),
        ("arrays", lambda t: t.update(more=t["0.share"])),
        ("arrays", lambda t: t.pop("looks.sum")),
        ("model", entry("0.layers.1.weight", (0, 0), -128)),
        ("model", entry("0.layers.1.bias", 0, 2**24 - 1)),
        ("model", entry("0.layers.1.bias", 0, -(2**31))),
        ("model", entry("0.layers.0.scale", 0, np.nan)),
        ("model", entry("1.layers.0.scale", 0, np.inf)),
        ("model", entry("1.layers.2.scale", 0, 0)),
        ("model", lambda t: t.update({"2.layers.0.bias": t["0.layers.0.bias"]})),
        ("model", lambda t: t.update({"0.layers.0.weight": t["0.layers.0.weight"][1:]})),
        ("exceptions", entry("0.numbers", 0, 3024)),
        ("exceptions", lambda t: t.update({"0.numbers": t["0.numbers"][::-1].repeat(2), "0.costs": t["0.costs"].repeat(2)})),
        ("exceptions", lambda t: t.update({"0.costs": t["0.costs"][1:]})),
        ("exceptions", lambda t: t.pop("0.costs")),
        ("exceptions", lambda t: t.update({"7.costs": t["0.costs"]})),
        ("calibration", lambda d: d["thresholds"][0].pop()),
        ("calibration", lambda d: d["thresholds"].pop()),
        ("calibration", lambda d: d["thresholds"][0].__setitem__(0, 0.5)),
        ("calibration", lambda d: d["thresholds"][0].__setitem__(0, True)),
        ("calibration", lambda d: d["thresholds"][0].__setitem__(0, 2**24 + 1)),
        ("calibration", lambda d: d.pop("thresholds")),
        ("certificate", lambda d: d.update(format="undershoot pattern certificate 2")),
        ("certificate", lambda d: d.update(arithmetic="float32")),
        ("certificate", lambda d: d["checks"].pop()),
        ("certificate", lambda d: d.update(checks=3)),
        ("config", lambda d: d["networks"].pop()),
        ("config", lambda d: d.update(networks=[])),
        ("config", lambda d: d["networks"][0].update(widths=[4, 5])),
        ("config", lambda d: d["networks"][0].update(step=1)),
        ("config", lambda d: d["networks"][0].update(arithmetic="float32")),
        ("config", lambda d: d["networks"][0]["pattern"].update(is_additive=False)),
        ("config", lambda d: d["networks"][0]["pattern"].update(pieces=[[0], [1], [2], [8]])),
        ("config", lambda d: d["networks"][0]["pattern"].update(pieces=[[0], [1], [1], [2]])),
        ("config", lambda d: d["networks"][0]["pattern"].update(pieces=[[0], [1], [2]])),
        ("config", lambda d: d["networks"][0]["pattern"].update(pieces=[[0], [1, 2], [3], [4]])),
        ("config", lambda d: d.update(actions=["U"])),
        ("config", lambda d: d.update(actions=4)),
        ("config", lambda d: d.update(sha256=[])),
    ],
)
def test_what_makes_no_sense_is_refused(
    file: str, change: Callable[[Document], None], copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = read(copy / "certificate.json")["inputs"]
    parts: dict[str, Any] = {file: change}
    if file == "config":
        document = read(copy / "config.json")
        change(document)
        write(copy / "config.json", document)
    else:
        forge(copy, **parts)
    assert read(copy / "certificate.json")["inputs"] == inputs
    run(copy, capsys, 2)


def test_what_there_is_no_room_for_is_refused(
    copy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pattern_verifier, "MOST_MEMORY", 1000)
    with pytest.raises(ValueError, match="there is no room for the arrangements of 4 tiles"):
        pattern_verifier.verify(copy)


def test_names_do_not_draw_on_the_terminal(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forge(copy, config=lambda d: d.update(puzzle="\x1b[2J\ud800", set="\x1b[2J"))
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
