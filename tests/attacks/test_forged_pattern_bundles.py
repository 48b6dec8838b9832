"""Bundles of networks on patterns whose checksums are right and whose claims are not: never called proven, and found out."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import commands
import undershoot as us
from attacks.conftest import with_key_of
from attacks.forging import Change, Document, forge, read, sha256, write
from made_patterns import written
from undershoot import trust
from undershoot.bundles.pattern_bundle import PatternBundle
from undershoot.bundles.pattern_reading import read_pattern_bundle
from undershoot.guarantees import OptimalityKind, Standing
from undershoot.heuristics.pattern_networks import MOST_LEVELS
from undershoot.pattern_tables import cache
from undershoot.pattern_tables.packing import unpack
from undershoot.pattern_tables.tables import make_table

NAME, SET = "tiles-3x3", "4-4+reflected"


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory, own_state: Path) -> Path:
    """A bundle that is right, made by somebody else."""
    folder = tmp_path_factory.mktemp("right")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERSHOOT_STATE_DIR", str(with_key_of(own_state, folder / "state of the maker")))
        patch.setattr(trust, "_of_this_process", set())
        return written(folder / "bundle", us.puzzle(NAME), SET, 0.1)


@pytest.fixture
def victim(right: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(right, tmp_path / "victim"))


def lower_a_threshold(document: Document) -> None:
    levels = document["thresholds"][0]
    levels[next(k for k, threshold in enumerate(levels) if abs(threshold) < 2**24)] -= 1


def lower_all(document: Document) -> None:
    document["thresholds"] = [[-(2**24)] * len(levels) for levels in document["thresholds"]]


def unlist_one(tensors: Document) -> None:
    tensors |= {name: array[1:].copy() for name, array in tensors.items() if name.startswith("0.")}


def unlist_all(document: Document) -> None:
    document["exceptions"] = None


def raise_exceptions(tensors: Document) -> None:
    tensors["0.costs"] = tensors["0.costs"] + np.uint8(2)


def list_the_goal(tensors: Document) -> None:
    numbers, first = np.unique(np.append(tensors["0.numbers"], np.uint32(0)), return_index=True)
    tensors["0.numbers"], tensors["0.costs"] = numbers, np.append(tensors["0.costs"], np.uint8(4))[first]


def raise_biases(tensors: Document) -> None:
    tensors |= {name: array + np.int32(10**6) for name, array in tensors.items() if name.endswith("layers.2.bias")}


def swap_networks(tensors: Document) -> None:
    other = {"0": "1", "1": "0"}
    swapped = {f"{other[name[0]]}{name[1:]}": array for name, array in tensors.items()}
    tensors |= {name: array for name, array in swapped.items() if ".layers." in name}


OVERESTIMATES: dict[str, dict[str, Change]] = {
    "a threshold lowered by one": {"calibration": lower_a_threshold},
    "no thresholds at all": {"calibration": lower_all},
    "one arrangement no longer listed": {"exceptions": unlist_one},
    "none listed": {"calibration": unlist_all},
    "listed too high": {"exceptions": raise_exceptions},
    "the goal listed": {"exceptions": list_the_goal},
    "biases raised": {"model": raise_biases},
}


@pytest.mark.parametrize("name", OVERESTIMATES)
def test_a_forged_bundle_is_a_claim_and_its_check_refutes_it(victim: Path, name: str) -> None:
    forge(victim, **OVERESTIMATES[name])
    heuristic, puzzle = us.load(victim), us.puzzle(NAME)
    assert heuristic.guarantee.standing is Standing.NONE
    assert f"`undershoot check {victim}` would establish" in str(heuristic.guarantee)
    states = np.concatenate([puzzle.table.goals, puzzle.sample(12, 3)])
    for result, cost in zip(us.solve_many(puzzle, states, heuristic), us.oracle(puzzle).distance(states), strict=True):
        assert result.lower_bound <= cost
        assert result.optimality.kind is not OptimalityKind.PROVEN or result.cost == cost
    done = commands.undershoot("check", str(victim), code=1)
    assert "No certificate: it overestimates" in done.stdout
    assert "the first of them (piece on cell): " in done.stdout
    assert "Proven" not in done.stdout
    assert us.load(victim).guarantee.standing is Standing.NONE


def test_certify_takes_a_false_certificate_away_and_says_so(victim: Path) -> None:
    forge(victim, **OVERESTIMATES["biases raised"])
    done = commands.undershoot("certify", str(victim), code=1)
    assert "the certificate that was there is false, and was taken away" in done.stderr
    assert not (victim / "certificate.json").exists()
    again = commands.undershoot("certify", str(victim), code=1)
    assert "the certificate" not in again.stderr


def test_certify_takes_a_certificate_for_something_else_away_and_says_so(victim: Path) -> None:
    before = (victim / "certificate.json").read_bytes()
    forge(victim, **OVERESTIMATES["biases raised"])
    (victim / "certificate.json").write_bytes(before)
    done = commands.undershoot("certify", str(victim), code=1)
    assert "was for something else than the bundle as it is now, and was taken away" in done.stderr
    assert not (victim / "certificate.json").exists()


def test_networks_that_were_exchanged_are_a_claim(victim: Path) -> None:
    forge(victim, model=swap_networks)
    assert us.load(victim).guarantee.standing is Standing.NONE
    assert "Proven" not in commands.undershoot("check", str(victim), code=1).stdout


def test_a_right_bundle_is_a_claim_until_it_was_checked_here(victim: Path) -> None:
    assert us.load(victim).guarantee.standing is Standing.NONE
    assert "Proven: it never overestimates" in commands.undershoot("check", str(victim)).stdout
    trust._of_this_process.clear()
    assert us.load(victim).guarantee.is_proven  # by the signed record
    forge(victim, calibration=lower_a_threshold)
    assert us.load(victim).guarantee.standing is Standing.NONE


FALSE_CERTIFICATES: dict[str, Change] = {
    "another name": lambda d: d.update(puzzle="cube-2x2"),
    "a name in colours": lambda d: d.update(puzzle="\x1b[31mcube"),
    "one field more": lambda d: d.update(more=1),
    "a field more of a network": lambda d: d["checks"][0].update({"\x1b[31mmore": 1}),
    "not looked at": lambda d: d.update(additivity="believed"),
    "another mean": lambda d: d["checks"][0].update(mean_h=d["checks"][0]["mean_h"] + 1e-9),
    "fewer checked": lambda d: d["checks"][1].update(checked=3000),
    "fewer listed": lambda d: d["checks"][0].update(listed=0),
    "another table": lambda d: d["checks"][1].update(table="\x1b[31m"),
}


@pytest.mark.parametrize("name", FALSE_CERTIFICATES)
def test_a_certificate_that_says_something_else_is_refuted(victim: Path, name: str) -> None:
    forge(victim, certificate=FALSE_CERTIFICATES[name])
    text = " ".join(commands.undershoot("check", str(victim), code=1).stdout.split())
    assert "\x1b" not in text
    assert "the certificate says" in text or "which no certificate has" in text
    assert us.load(victim).guarantee.standing is Standing.NONE


def many_levels(tensors: Document) -> None:
    """More than searches can remember."""
    for part in ("weight", "bias", "scale"):
        array = tensors[f"0.layers.2.{part}"]
        tensors[f"0.layers.2.{part}"] = np.repeat(array[..., :1], MOST_LEVELS + 1, axis=-1)


def widen(document: Document) -> None:
    document["networks"][0]["widths"][-1] = MOST_LEVELS + 1


def of_scale(value: float) -> Change:
    return lambda t: t.update({"0.layers.0.scale": np.full_like(t["0.layers.0.scale"], value)})


def of_network(**changes: Any) -> Change:
    return lambda d: d["networks"][0].update(changes)


def numbers(*values: int, kind: type = np.uint32) -> Change:
    return lambda t: t.update({"0.numbers": np.array(values, kind), "0.costs": np.zeros(len(values), np.uint8)})


REFUSED: dict[str, tuple[dict[str, Change], str]] = {
    "violations": ({"certificate": lambda d: d["checks"][0].update(violations=2)}, "does not say that all arrangements"),
    "another size": ({"certificate": lambda d: d["checks"][0].update(arrangements=9)}, "does not say that all arrangements"),
    "one network less": ({"certificate": lambda d: d["checks"].pop()}, "does not say that all arrangements"),
    "violations that are false": (
        {"certificate": lambda d: d["checks"][0].update(violations=False)},
        "its violations is missing",
    ),
    "another calibration": ({"certificate": lambda d: d.update(calibration="0" * 64)}, "issued for other calibration"),
    "other shares": ({"certificate": lambda d: d.update(shares="0" * 64)}, "issued for other shares"),
    "other looks": ({"certificate": lambda d: d.update(looks="0" * 64)}, "issued for other looks"),
    "other patterns": ({"certificate": lambda d: d["patterns"][0].reverse()}, "issued for other patterns"),
    "another puzzle": ({"certificate": lambda d: d.update(fingerprint="0" * 64)}, "is the certificate of another puzzle"),
    "another set": ({"config": lambda d: d.update(set="4-4")}, "holds another puzzle, other shares of h0 or other looks"),
    "a set of others": ({"config": lambda d: d.update(set="5-3+reflected")}, "is of another pattern than the set"),
    "a set of sets": ({"config": lambda d: d.update(set="4-4+4-4+reflected")}, "other looks"),
    "a set that is not added": ({"config": lambda d: d.update(set="4+4")}, "is of another pattern|other looks"),
    "a tile twice": ({"config": lambda d: d.update(set="1 2 3 4 / 4 5 6 7")}, "patterns that share a piece cannot be added"),
    "no set": ({"config": lambda d: d.update(set="")}, "names a set of patterns that tiles-3x3 does not have"),
    "a set in other words": ({"config": lambda d: d.update(set=" 4-4+reflected\n")}, "as no bundle does"),
    "a set in colours": ({"config": lambda d: d.update(set="\x1b[31m4-4")}, r"as no bundle does: '.x1b\[31m4-4'"),
    "a set of many digits": ({"config": lambda d: d.update(set="4" * 5000)}, "does not hold what a bundle holds|config.json"),
    "a puzzle in colours": ({"config": lambda d: d.update(puzzle="\x1b[31mtiles")}, r"not known here: '.x1b\[31mtiles'"),
    "a puzzle elsewhere": ({"config": lambda d: d.update(puzzle="../secret.toml")}, "not known here"),
    "another step": ({"config": of_network(step=1)}, "other shares of h0"),
    "a step of 3": ({"config": of_network(step=3)}, "config.json says"),
    "another encoding": ({"config": of_network(encoding="pieces")}, "evaluated in a way"),
    "another arithmetic": ({"config": of_network(arithmetic="float32, fixed order of additions, 1")}, "evaluated in a way"),
    "other inputs": ({"config": of_network(inputs="0" * 64)}, "trained on another encoding"),
    "other widths": ({"config": of_network(widths=[432, 16, 9, 4])}, "config.json says"),
    "a network less": ({"config": lambda d: d["networks"].pop()}, "holds 1 networks; the set 4-4.reflected needs 2"),
    "not additive": ({"config": of_network(pattern={"pieces": [[0], [1], [2], [3]], "is_additive": False})}, "another pattern"),
    "a share raised": ({"arrays": lambda t: t.update({"0.share": t["0.share"] + np.uint8(2)})}, "other shares of h0"),
    "one sum": ({"arrays": lambda t: t.update({"looks.sum": t["looks.sum"] * 0})}, "other looks"),
    "looks through nothing": (
        {"arrays": lambda t: t.update({"looks.cells": t["looks.cells"][:2].repeat(2, 0)})},
        "other looks",
    ),
    "other moves": ({"arrays": lambda t: t.update({"table.cost": t["table.cost"] * 2})}, "holds another puzzle"),
    "a scale that is no number": ({"model": of_scale(float("nan"))}, "scales that are not between"),
    "a scale that overflows": ({"model": of_scale(3e38)}, "scales that are not between"),
    "sums that overflow": (
        {"model": lambda t: t.update({"0.layers.1.bias": t["0.layers.1.bias"] * 0 + np.int32(2**31 - 1)})},
        "only below 16,777,216 are sums exact",
    ),
    "an array more": (
        {"model": lambda t: t.update({"2.layers.0.bias": t["0.layers.0.bias"]})},
        "holds more, or something else",
    ),
    "more levels than a byte": ({"model": many_levels, "config": widen}, "at most 255 are allowed"),
    "a method that lists nothing": ({"calibration": lambda d: d.update(method="exhaustive")}, "lists arrangements, which the"),
    "a method unheard of": ({"calibration": lambda d: d.update(method="\x1b[31mproven")}, r"a method that is none here: '.x1b"),
    "a method of rates": ({"calibration": lambda d: d.update(method="conformal")}, "a method that is none here"),
    "one field more": ({"calibration": lambda d: d.update(more=1)}, "holds more, or something else, than a calibration"),
    "a threshold too few": ({"calibration": lambda d: d["thresholds"][0].pop()}, "thresholds came for"),
    "thresholds too few": ({"calibration": lambda d: d["thresholds"].pop()}, "does not hold what a bundle holds"),
    "a threshold that is true": ({"calibration": lambda d: d["thresholds"][0].__setitem__(0, True)}, "no whole number"),
    "a threshold of a half": ({"calibration": lambda d: d["thresholds"][0].__setitem__(0, 0.5)}, "no whole number"),
    "a threshold too far": ({"calibration": lambda d: d["thresholds"][0].__setitem__(0, -(2**60))}, "no whole number"),
    "thresholds that are a word": ({"calibration": lambda d: d.update(thresholds="ab")}, "its thresholds is missing"),
    "listed twice": ({"exceptions": numbers(7, 7)}, "listed arrangements are rising numbers"),
    "listed out of order": ({"exceptions": numbers(9, 7)}, "listed arrangements are rising numbers"),
    "listed so far apart that differences wrap around": (
        {"exceptions": numbers(5, 50, 2**63 + 49, 60, kind=np.uint64)},
        "listed arrangements are rising numbers",
    ),
    "listed beyond the last": ({"exceptions": numbers(3024)}, "listed arrangements are rising numbers"),
    "listed below h0": ({"exceptions": numbers(3023)}, "no whole number of steps above h0's shares"),
    "listed with an odd cost": (
        {"exceptions": lambda t: t.update({"0.costs": t["0.costs"] + np.uint8(1)})},
        "no whole number of steps above h0's shares",
    ),
    "listed as floats": (
        {"exceptions": lambda t: t.update({"0.numbers": t["0.numbers"].astype(np.float32)})},
        "numbers and their",
    ),
    "listed as signed": (
        {"exceptions": lambda t: t.update({"0.numbers": t["0.numbers"].astype(np.int64)})},
        "numbers and their",
    ),
    "listed without costs": ({"exceptions": lambda t: t.pop("0.costs")}, "listed arrangements are rising numbers"),
    "exceptions of a third network": (
        {"exceptions": lambda t: t.update({"2.costs": t["0.costs"]})},
        "holds more, or something",
    ),
    "exceptions in wider words": (
        {"exceptions": lambda t: t.update({"0.numbers": t["0.numbers"].astype(np.uint64)})},
        "holds more, or something else",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_together_is_refused_by_name(victim: Path, name: str) -> None:
    changes, says = REFUSED[name]
    forge(victim, **changes)
    with pytest.raises(us.UndershootError, match=says) as refused:
        us.load(victim)
    assert str(victim) in str(refused.value)
    error = commands.undershoot("check", str(victim), code=2).stderr
    assert error.count("\n") == 1
    assert "\x1b" not in error


@pytest.mark.parametrize("field", ["networks", "sha256", "recipe", "puzzle", "fingerprint", "set", "format"])
@pytest.mark.parametrize("value", [None, 5, [], {}, "x", [[]], True])
def test_documents_of_wrong_types_are_refused_by_name(victim: Path, field: str, value: object) -> None:
    stated = read(victim / "config.json")
    if field == "recipe" and value == {}:
        return
    write(victim / "config.json", {**stated, field: value})
    with pytest.raises(us.UndershootError) as refused:
        us.load(victim)
    assert str(victim) in str(refused.value)


FILES = ["config.json", "calibration.json", "certificate.json", "model.safetensors", "puzzle.safetensors"]


@pytest.mark.parametrize("name", [*FILES, "exceptions.safetensors"])
def test_damaged_and_foreign_files_are_refused_by_name(victim: Path, right: Path, name: str) -> None:
    data = (right / name).read_bytes()
    nested = b'{"digest": ' + b"[" * 200_000
    for other in (data[:-3], data[: len(data) // 2], b"", b"\x00" * 40, b"[]", b'{"digest": NaN}', nested):
        (victim / name).write_bytes(other)
        with pytest.raises(us.UndershootError, match=name.partition(".")[0]):
            us.load(victim)
    (victim / name).unlink()
    os.mkfifo(victim / name)
    with pytest.raises(us.UndershootError, match=f"{name} is no plain file"):
        us.load(victim)


def of_another(folder: Path, puzzle: str, patterns: str) -> Path:
    return written(folder / puzzle, us.puzzle(puzzle), patterns)


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return of_another(tmp_path_factory.mktemp("another"), "tiles-2x4", "4-3")


@pytest.mark.parametrize("name", ["tiles-4x2", "tiles-3x3", "tiles-2x4-blank-first"])
def test_a_bundle_of_another_puzzle_is_refused(another: Path, tmp_path: Path, name: str) -> None:
    error = commands.undershoot("solve", name, "--random", "1", "--heuristic", str(another), code=2).stderr
    assert f"is for tiles-2x4, not for {name}" in error
    copy = Path(shutil.copytree(another, tmp_path / "copy"))
    forge(copy, config=lambda d: d.update(puzzle=name), certificate=lambda d: d.update(puzzle=name))
    with pytest.raises(us.UndershootError, match=f"was made for another {name} than"):
        us.load(copy)
    table = us.puzzle(name).table
    forge(copy, config=lambda d: d.update(fingerprint=table.fingerprint, actions=list(table.action_names)))
    with pytest.raises(us.UndershootError):
        us.load(copy)


def test_a_certificate_that_passed_does_not_carry_over(victim: Path, another: Path) -> None:
    """That of another bundle, or of the same one before it was changed."""
    commands.undershoot("check", str(victim))
    passed = (victim / "certificate.json").read_bytes()
    shutil.copy(another / "certificate.json", victim)
    with pytest.raises(us.UndershootError, match="is the certificate of another puzzle"):
        us.load(victim)
    (victim / "certificate.json").write_bytes(passed)
    assert us.load(victim).guarantee.is_proven
    for changes, says in (({"calibration": lower_a_threshold}, "calibration"), ({"model": raise_biases}, "weights")):
        forge(victim, **changes)
        (victim / "certificate.json").write_bytes(passed)
        with pytest.raises(us.UndershootError, match=f"issued for other {says}"):
            us.load(victim)


def forged_table(bundle: PatternBundle, change: Callable[[Any], Any]) -> list[str]:
    """Tables in the cache with other entries and right checksums, for every pattern; what they say they are."""
    digests = []
    for network in bundle.networks:
        right = make_table(network.pattern, device="cpu")
        whole = unpack(right.entries, int(network.pattern.folded.size)) if right.is_packed else right.entries
        wrong = replace(right, entries=change(whole.copy()), is_packed=False)
        digests.append(cache.save(cache.path_of(network.pattern, bundle.puzzle.name), wrong))
    return digests


@pytest.mark.parametrize("command", ["check", "certify", "calibrate"])
def test_forged_tables_in_the_cache_certify_nothing(
    victim: Path, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNDERSHOOT_CACHE_DIR", str(tmp_path / "cache"))
    forge(victim, calibration=lower_all)
    forged_table(read_pattern_bundle(victim), lambda entries: np.where(entries < 255, 250, entries).astype(np.uint8))
    done = commands.undershoot(command, str(victim), code=0 if command == "calibrate" else 1)
    assert "this installation did not make it" in done.stderr
    if command == "calibrate":
        assert "0 above their cost" in " ".join(commands.undershoot("certify", str(victim)).stdout.split())
    else:
        assert "it overestimates" in done.stdout


def test_a_record_of_another_kind_does_not_vouch_for_a_table(
    victim: Path, stranger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNDERSHOOT_CACHE_DIR", str(tmp_path / "cache"))
    bundle = read_pattern_bundle(victim)
    for digest in forged_table(bundle, lambda entries: np.minimum(entries, 1)):
        trust.record(trust.Passed.CERTIFICATE, digest)
        source = stranger / "passed" / f"certificate-{digest}.json"
        shutil.copy(source, source.with_name(f"pattern-{digest}.json"))
    trust._of_this_process.clear()
    assert "this installation did not make it" in commands.undershoot("check", str(victim)).stderr


def test_links_lead_to_nothing_that_is_written(victim: Path, right: Path, another: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep")
    before = sha256(right / "model.safetensors")
    for name in ("model.safetensors", "certificate.json"):  # as hubs lay out what they fetched
        (victim / name).unlink()
        (victim / name).symlink_to(right / name)
    assert us.load(victim).guarantee.standing is Standing.NONE
    commands.undershoot("calibrate", str(victim), "--method", "exhaustive")
    commands.undershoot("certify", str(victim))
    assert sha256(right / "model.safetensors") == before
    assert read(right / "certificate.json")["checks"] != read(victim / "certificate.json")["checks"]
    (victim / "certificate.json").unlink()
    (victim / "certificate.json").symlink_to(another / "certificate.json")
    with pytest.raises(us.UndershootError, match="is the certificate of another puzzle"):
        us.load(victim)
    for name in ("certificate.json", "exceptions.safetensors"):
        (victim / name).unlink(missing_ok=True)
        (victim / name).symlink_to(precious)
    commands.undershoot("certify", str(victim))
    assert precious.read_text() == "keep"


def test_a_wrong_claim_of_a_listed_arrangement_stays_a_claim_in_searches(victim: Path) -> None:
    """The goal is said to cost something: a search from there must not say more than it knows."""
    forge(victim, exceptions=list_the_goal)
    puzzle = us.puzzle(NAME)
    done = commands.undershoot("solve", NAME, puzzle.format(puzzle.table.goals), "--heuristic", str(victim))
    assert "never overestimates, which `undershoot check" in " ".join(done.stdout.split())
