"""Certificates: issued only if every state was checked, and refused if anything has changed since."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import commands
import undershoot as us
from calibration.test_methods import network_for
from test_bundles import some_network
from undershoot.bundles.bundle import Bundle
from undershoot.bundles.loading import load
from undershoot.bundles.reading import read_bundle
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import METHODS, calibrate, calibrator
from undershoot.certification import certificate, check_every_state, check_sample, sampled_guarantee
from undershoot.guarantees import Guarantee, Optimality, OptimalityKind, Standing
from undershoot.heuristics.calibrated import CalibratedHeuristic
from undershoot.heuristics.whole_numbers import WholeNetwork, to_whole_numbers
from undershoot.oracles.breadth_first import explore
from undershoot.oracles.verification import WrongTable


def certified(name: str, method: str = "exhaustive", whole: bool = True) -> Bundle:
    puzzle = us.puzzle(name)
    network = some_network(puzzle, (16, 8))
    bundle = Bundle(puzzle, to_whole_numbers(network, puzzle.encoding, puzzle.sample(2000, 1)) if whole else network)
    bundle = dataclasses.replace(bundle, calibration=calibrate(bundle.raw, method, Wanted(listed=0.02)))
    findings = check_every_state(bundle.heuristic, explore(puzzle), 2)
    assert findings.violations == 0
    return dataclasses.replace(bundle, certificate=certificate(bundle, findings))


def undershoot(*arguments: str, code: int = 0) -> str:
    done = commands.undershoot(*arguments, code=code)
    return done.stdout + done.stderr


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("method", ["exhaustive", "exceptions"])
@pytest.mark.parametrize("name", ["lights-out-3x3", "tiles-2x3", "pancake-6"])
def test_every_state_and_every_move_is_checked(name: str, method: str, whole: bool) -> None:
    bundle = certified(name, method, whole)
    puzzle, distances = bundle.puzzle, explore(bundle.puzzle)
    heuristic = bundle.heuristic
    states = distances.states_of_rows(0, distances.states)
    values, true_cost = heuristic(states), distances.distance(states)
    children, legal = us.successors(puzzle.table, states)
    inconsistent = sum(
        float(values[row]) > puzzle.table.cost[action] + float(heuristic(children[row, action][None])[0])
        for row, action in np.argwhere(legal)
    )
    stated = bundle.certificate
    assert stated is not None
    assert (stated["checked"], stated["edges"], stated["inconsistent_edges"]) == (len(states), legal.sum(), inconsistent)
    assert stated["mean_h"] == pytest.approx(values.mean(dtype=np.float64))
    assert stated["supremum"] == pytest.approx((values - true_cost)[1:].max())
    assert heuristic.guarantee.is_proven


def test_a_planted_violation_is_found() -> None:
    bundle = certified("tiles-2x3")
    distances = explore(bundle.puzzle)
    assert isinstance(bundle.network, WholeNetwork)
    bias = bundle.network.biases[-1] + np.int32(np.ceil(1.5 / bundle.network.scales[-1][0]))
    nudged = dataclasses.replace(bundle.network, biases=(*bundle.network.biases[:-1], bias.astype(np.int32)))
    findings = check_every_state(dataclasses.replace(bundle, network=nudged).heuristic, distances)
    assert findings.violations > 0
    assert len(findings.examples) == min(5, findings.violations)
    assert (findings.example_values > findings.example_costs).all()
    # One entry of the table lowered: a state where h is exact is moved one layer down.
    values = bundle.heuristic(distances.states_of_rows(0, distances.states))
    true_cost = np.repeat(np.arange(len(distances.histogram)), distances.histogram)
    row = int(np.flatnonzero((values == true_cost) & (true_cost > 1))[0])
    order = np.argsort(np.where(np.arange(len(true_cost)) == row, true_cost - 0.5, true_cost), kind="stable")
    histogram = distances.histogram.copy()
    histogram[true_cost[row]] -= 1
    histogram[true_cost[row] - 1] += 1
    lowered = dataclasses.replace(distances, keys=distances.keys[order], histogram=histogram)
    with pytest.raises(WrongTable, match="states have costs that do not follow from their neighbours'"):
        check_every_state(bundle.heuristic, lowered)
    assert check_every_state(bundle.heuristic, distances).violations == 0


def test_exceptions_that_are_raised_or_left_out_are_found() -> None:
    bundle = certified("tiles-2x3", "exceptions")
    calibration = bundle.calibration
    assert calibration is not None
    costs = calibration.exception_costs.copy()
    costs[0] += 1
    for changed in (
        dataclasses.replace(calibration, exception_costs=costs),
        dataclasses.replace(
            calibration, exceptions=calibration.exceptions[1:], exception_costs=calibration.exception_costs[1:]
        ),
    ):
        assert check_every_state(CalibratedHeuristic(bundle.raw, changed), explore(bundle.puzzle)).violations == 1


def test_changed_certificates_and_changed_bundles_are_refused_each_with_its_own_sentence(tmp_path: Path) -> None:
    certified("tiles-2x3").save(tmp_path / "a")
    certified("lights-out-3x3").save(tmp_path / "other")
    assert load(tmp_path / "a").guarantee.is_proven

    def changed(name: str) -> Path:
        shutil.copytree(tmp_path / "a", tmp_path / name)
        return tmp_path / name

    folder = changed("byte")
    text = (folder / "certificate.json").read_text()
    (folder / "certificate.json").write_text(text.replace('"violations": 0', '"violations": 1'))
    with pytest.raises(us.UndershootError, match=r"certificate.json was changed: it does not match its own checksum"):
        load(folder)
    folder = changed("weight")
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "model.safetensors").write_bytes(bytes(data))
    with pytest.raises(us.UndershootError, match=r"model.safetensors was changed after it was certified"):
        load(folder)
    folder = changed("foreign")
    shutil.copy(tmp_path / "other" / "certificate.json", folder / "certificate.json")
    with pytest.raises(us.UndershootError, match=r"is the certificate of another puzzle \(lights-out-3x3\)"):
        load(folder)
    folder = changed("calibrated again")
    bundle = read_bundle(folder)
    assert bundle.calibration is not None
    shutil.copy(folder / "certificate.json", tmp_path / "kept.json")
    looser = dataclasses.replace(bundle.calibration, margin=bundle.calibration.margin - 1)
    dataclasses.replace(bundle, calibration=looser, certificate=None).save(folder)
    shutil.copy(tmp_path / "kept.json", folder / "certificate.json")
    with pytest.raises(us.UndershootError, match="was issued for another calibration"):
        load(folder)
    folder = changed("other weights")
    network = some_network(us.puzzle("tiles-2x3"), (16, 8), seed=5)
    dataclasses.replace(bundle, network=network, calibration=None, certificate=None).save(folder)
    shutil.copy(tmp_path / "kept.json", folder / "certificate.json")
    with pytest.raises(us.UndershootError, match="was issued for other weights"):
        load(folder)


def test_searches_with_a_certified_bundle_are_proven_optimal(tmp_path: Path) -> None:
    bundle = certified("topspin-8-4")
    bundle.save(tmp_path / "b")
    states = bundle.puzzle.sample(30, 1)
    for result in us.solve_many(bundle.puzzle, states, load(tmp_path / "b")):
        assert result.optimality.kind is OptimalityKind.PROVEN
    kinds = {result.optimality.kind for result in us.solve_many(bundle.puzzle, states, bundle.raw)}
    assert kinds != {OptimalityKind.PROVEN}  # it is the certificate that proves it, not the lower bound


def test_a_float_network_needs_room_for_other_arithmetic() -> None:
    bundle = certified("topspin-8-4", whole=False)
    calibration = bundle.calibration
    assert calibration is not None
    distances = explore(bundle.puzzle)
    bare = CalibratedHeuristic(bundle.raw, dataclasses.replace(calibration, arithmetic_margin=1e-5))
    states = distances.states_of_rows(0, distances.states)
    assert (bare(states) <= distances.distance(states)).all()
    found = check_every_state(bare, distances)
    assert (found.violations, found.supremum) == (0, 0)
    assert found.marginal > 0
    grouped = dataclasses.replace(calibration, group_margins=(calibration.margin + 1,) * 3)
    changed = dataclasses.replace(bundle, calibration=grouped, certificate=None)
    with pytest.raises(us.UndershootError, match="needs exact values"):
        certificate(changed, check_every_state(changed.heuristic, distances))


def test_bounds_are_printed_on_the_safe_side() -> None:
    assert "at most 1.334 times" in str(Optimality(OptimalityKind.BOUNDED, factor=4 / 3))
    assert "at most 1.001 times" in str(Optimality(OptimalityKind.BOUNDED, factor=1.00001))
    said = str(Optimality(OptimalityKind.CALIBRATED, probability=1 - 1e-6, population="uniform states"))
    assert said.startswith("of all uniform states, at most 0.00000100")
    sampled = Guarantee(Standing.SAMPLED, population="x", violation_rate=0.05, confidence=0.99999, labels=5)
    assert str(sampled) == "overestimates on at most 0.05 of x, with confidence 0.99999 from 5 labels"


def test_a_sample_gives_the_exact_binomial_bound() -> None:
    bundle = certified("tiles-2x3")
    distances = explore(bundle.puzzle)
    states = bundle.puzzle.sample(500, 3)
    findings = check_sample(bundle.heuristic, states, distances.distance(states).astype(np.int64), distances.states)
    guarantee = sampled_guarantee(findings, 0.99)
    assert guarantee.standing is Standing.SAMPLED
    assert guarantee.violation_rate == pytest.approx(1 - 0.01 ** (1 / 500))


def test_calibrate_certify_and_check_from_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "b"
    network, _ = network_for("tiles-2x3")
    Bundle(us.puzzle("tiles-2x3"), network.network).save(folder)
    assert "is not calibrated; do that first" in undershoot("certify", str(folder), code=2)
    undershoot("calibrate", str(folder), "--method", "conformal", "--alpha", "0.2")
    refused = undershoot("certify", str(folder), code=1)
    assert "No certificate: it overestimates" in refused
    assert "true cost" in refused
    assert "has no certificate" in undershoot("check", str(folder), code=2)
    assert "would take the place of that" in undershoot("certify", str(folder), "--ball", "3", code=2)
    document = json.loads(undershoot("calibrate", str(folder), "--whole-numbers", "--json"))
    fields = {"method", "t", "guarantee", "alpha", "confidence", "n", "mean_before", "mean_after", "violation_rate"}
    assert fields <= set(document)
    assert (document["violation_rate"], document["guarantee"]) == (0, "never overestimates")
    assert Path(document["landscape"]).read_bytes()[:4] == b"\x89PNG"
    stated = json.loads(undershoot("certify", str(folder), "--json"))
    fields = {"puzzle", "states", "checked", "violations", "supremum", "mean_h", "mean_true", "edges", "inconsistent_edges"}
    assert fields <= set(stated)
    assert (stated["violations"], stated["certificate"]) == (0, str(folder / "certificate.json"))
    assert "Proven: it never overestimates" in undershoot("check", str(folder))
    assert "allowed are 1 to 100,000,000 states" in undershoot("check", str(folder), "--sample", "0", code=2)
    assert "has a certificate for all states" in undershoot("certify", str(folder), "--ball", "3", code=2)
    sampled = undershoot("check", str(folder), "--sample", "100")
    assert "Only a sample" in sampled
    assert "Proven" not in sampled
    assert (
        json.loads(undershoot("solve", "tiles-2x3", "--heuristic", str(folder), "--json"))["results"][0]["optimality"]
        == "proven"
    )
    again = undershoot("calibrate", str(folder), "--method", "conformal", "--population", "scrambles", "--depths", "1..8")
    assert "certify again" in again
    assert "at most 0.05 of scrambles 1..8, no undo" in " ".join(again.split())
    assert not (folder / "certificate.json").exists()
    ball = undershoot("calibrate", str(folder), "--ball", "8") + undershoot("certify", str(folder), "--ball", "8")
    assert "never overestimates within 8 of the goal" in ball
    assert load(folder).guarantee.within == 8
    assert "for all states within 8 of the goal; one for a ball of 7" in undershoot("certify", str(folder), "--ball=7", code=2)
    compared = json.loads(undershoot("calibrate", str(folder), "--compare", "--n", "2000", "--json"))
    rates = {row["method"]: row["violation_rate"] for row in compared["methods"]}
    assert rates["exhaustive"] == rates["exceptions"] == 0 < rates["none"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (
            ["--method=conformal", "--n=20"],
            "`conformal` has 20 labels; for a rate of at most 0.05 with confidence 0.95 it needs 59",
        ),
        (
            ["--method=max", "--labels=scramble", "--population=scrambles"],
            "which are upper bounds (scramble depth); use --labels",
        ),
        (["--method=best"], 'no method "best"'),
        (["--rounding=up"], '--rounding is "up"; allowed are none, integer, parity'),
        (["--method=conformal", "--alpha=2"], "alpha is 2.0"),
        (["--method=exceptions", "--listed=1"], "the share of listed states (--listed) is 1.0"),
        (["--method=max", "--confidence=0"], "`max` has no form that holds on average over draws"),
        (["--method=grouped", "--confidence=0"], "`grouped` has no form that holds on average over draws"),
        (["--method=conformal", "--depths=1..5"], "the population uniform, which has none; leave it out, or use --population"),
        (["--compare", "--method=max"], "--method was given with --compare, but it tries all methods"),
        (["--compare", "--out=elsewhere"], "--out was given with --compare, but it writes no bundle"),
        (["--compare", "--ball=3"], "--ball was given with --compare, but it measures on the whole space"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(small: Path, arguments: list[str], part: str) -> None:
    error = undershoot("calibrate", str(small), *arguments, code=2)
    assert part in " ".join(error.split())


@pytest.fixture
def small(tmp_path: Path) -> Path:
    puzzle = us.puzzle("tiles-2x3")
    Bundle(puzzle, some_network(puzzle, (16, 8))).save(tmp_path / "b")
    return tmp_path / "b"


GIVEN = {
    "n": "100",
    "population": "scrambles",
    "labels": "exact",
    "depths": "1..5",
    "confidence": "0.9",
    "alpha": "0.1",
    "ball": "3",
    "listed": "0.01",
}


@pytest.mark.parametrize("method", METHODS)
def test_options_that_a_method_does_not_go_by_are_refused(small: Path, method: str) -> None:
    before = (small / "config.json").read_bytes()
    assert frozenset().union(*(calibrator(name).reads for name in METHODS)) == set(GIVEN)
    for name in set(GIVEN) - calibrator(method).reads:
        error = undershoot("calibrate", str(small), "--method", method, f"--{name}={GIVEN[name]}", code=2)
        assert f"--{name} was given, but `{method}` does not go by it" in " ".join(error.split())
    assert (small / "config.json").read_bytes() == before
    read = {name: GIVEN[name] for name in calibrator(method).reads}
    undershoot("calibrate", str(small), "--method", method, *(f"--{name}={value}" for name, value in read.items()))
    assert read_bundle(small).calibration is not None


def test_methods_that_read_no_labels_are_compared_without_them(small: Path) -> None:
    shown = json.loads(undershoot("calibrate", str(small), "--compare", "--labels", "lower", "--n=300", "--json"))
    errors = {row["method"]: row.get("error") for row in shown["methods"]}
    assert "lower bounds" in str(errors.pop("trajectory"))
    assert set(errors.values()) == {None}
    assert not (small / "calibration.json").exists()


def test_a_bundle_is_calibrated_into_another_place(small: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in small.iterdir()}
    for place in (tmp_path / "new", tmp_path / "new"):  # a bundle that is there is replaced
        undershoot("calibrate", str(small), "--whole-numbers", "--out", str(place))
        assert "`undershoot certify" in str(load(place).guarantee)
    undershoot("certify", str(place))
    assert load(place).guarantee.is_proven
    assert {path.name: path.read_bytes() for path in small.iterdir()} == before
    assert not (tmp_path / "b-float").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    refused = undershoot("calibrate", str(small), "--out", str(tmp_path / "mine"), code=2)
    assert "holds something else than a bundle: notes.txt" in " ".join(refused.split())
    assert "in the bundle" in undershoot("calibrate", str(small), "--out", str(small / "new"), code=2)


def test_a_network_that_is_converted_in_its_place_is_kept_in_floats(small: Path) -> None:
    floats, kept = read_bundle(small), small.parent / "b-float"
    shown = undershoot("calibrate", str(small), "--whole-numbers")
    assert f"as it was trained, is kept: {kept}" in shown
    assert isinstance(read_bundle(small).network, WholeNetwork)
    assert read_bundle(kept).weights_digest == floats.weights_digest
    assert "is one of whole numbers already" in undershoot("calibrate", str(small), "--whole-numbers", code=2)
    floats.save(small)
    undershoot("calibrate", str(small), "--whole-numbers")  # it is kept already
    dataclasses.replace(floats, network=some_network(floats.puzzle, (16, 8), seed=3)).save(small)
    refused = undershoot("calibrate", str(small), "--whole-numbers", code=2)
    assert "another one is there" in " ".join(refused.split())
    assert read_bundle(kept).weights_digest == floats.weights_digest


def test_a_certificate_for_a_ball_does_not_take_the_place_of_what_says_more() -> None:
    network, distances = network_for("tiles-2x3")
    bundle = Bundle(us.puzzle("tiles-2x3"), network.network)
    findings = check_every_state(network, distances.within(0))
    for method, says in (
        ("conformal", "is calibrated by a sample: it overestimates on at most 0.05"),
        ("trajectory", "is calibrated by a sample: it lets A[*] find"),
        ("exhaustive", "never overestimates, by its calibration"),
    ):
        calibrated = dataclasses.replace(bundle, calibration=calibrate(network, method, Wanted()))
        with pytest.raises(us.UndershootError, match=says):
            certificate(calibrated, findings)
    for method, wanted in (("scramble", Wanted()), ("exhaustive", Wanted(ball=0))):
        calibrated = dataclasses.replace(bundle, calibration=calibrate(network, method, wanted))
        stated = dataclasses.replace(calibrated, certificate=certificate(calibrated, findings))
        assert stated.heuristic.guarantee.within == 0
    further = dataclasses.replace(bundle, calibration=calibrate(network, "exhaustive", Wanted(ball=5)))
    with pytest.raises(us.UndershootError, match=r"within 5 of the goal, by its calibration; .* of 0 would say less"):
        certificate(further, findings)


IN_A_ROW = """
name = "four-in-a-row"
goal = "1 2 3 _"
cursor = "_"

[moves]
R = { at = { 2 = "(1 2)", 3 = "(2 3)", 4 = "(3 4)" } }
L = { at = { 1 = "(1 2)", 2 = "(2 3)", 3 = "(3 4)" } }
S = { at = { 1 = "(3 4)", 4 = "(1 2)" } }
"""


def test_a_puzzle_that_cannot_draw_uniform_states_is_calibrated_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "row.toml").write_text(IN_A_ROW)
    puzzle = us.puzzle(str(tmp_path / "row.toml"))
    with pytest.raises(us.UndershootError, match="cannot draw uniformly random states"):
        puzzle.sample(1, 0)
    bundle = tmp_path / "b"
    Bundle(puzzle, some_network(puzzle, (8,))).save(bundle)
    for method in METHODS:
        document = json.loads(undershoot("calibrate", str(bundle), "--method", method, "--json"))
        assert document["tested_on"] == ("scrambles 1..10, no undo" if method == "scramble" else "uniform states")
    assert "Only a sample" in undershoot("certify", str(bundle), "--sample", "50")
    undershoot("calibrate", str(bundle), "--compare", "--n", "500")
    monkeypatch.setattr("undershoot.oracles.breadth_first.available_memory", lambda: 1000)
    monkeypatch.setenv("UNDERSHOOT_CACHE_DIR", str(tmp_path / "cache"))
    document = json.loads(undershoot("calibrate", str(bundle), "--method", "scramble", "--json"))
    assert document["label"] == "true cost"  # from proofs
    refused = undershoot("calibrate", str(bundle), "--method", "max", "--labels", "lower", code=2)
    assert "cannot draw uniformly random states" in " ".join(refused.split())


def test_a_state_that_only_other_arithmetic_would_raise_is_not_called_an_overestimate(tmp_path: Path) -> None:
    bundle = certified("topspin-8-4", whole=False)
    assert bundle.calibration is not None
    bare = dataclasses.replace(bundle, calibration=dataclasses.replace(bundle.calibration, arithmetic_margin=1e-5))
    dataclasses.replace(bare, certificate=None).save(tmp_path / "b")
    text = undershoot("certify", str(tmp_path / "b"), code=1)
    assert " 0 above their true cost" in text
    assert "would be above their true cost if sums came out 0.0005 higher" in text.replace("\n", " ")
    assert not (tmp_path / "b" / "certificate.json").exists()


def test_out_does_not_replace_another_network(tmp_path: Path) -> None:
    for name in ("lights-out-3x3", "tiles-2x3"):
        puzzle = us.puzzle(name)
        Bundle(puzzle, some_network(puzzle, (8,))).save(tmp_path / name)
    lights, tiles = str(tmp_path / "lights-out-3x3"), str(tmp_path / "tiles-2x3")
    before = (tmp_path / "tiles-2x3" / "model.safetensors").read_bytes()
    assert "where another network is" in undershoot("calibrate", lights, "--out", tiles, code=2)
    assert "in the bundle" in undershoot("calibrate", lights, "--whole-numbers", "--out", lights, code=2)
    assert (tmp_path / "tiles-2x3" / "model.safetensors").read_bytes() == before
    for _ in range(2):  # the same network may be calibrated there again
        undershoot("calibrate", lights, "--whole-numbers", "--out", str(tmp_path / "new"))


def test_a_foreign_certificate_counts_for_nothing(tmp_path: Path) -> None:
    certified("lights-out-3x3").save(tmp_path / "lights")
    certified("tiles-2x3").save(tmp_path / "tiles")
    shutil.copy(tmp_path / "tiles" / "certificate.json", tmp_path / "lights" / "certificate.json")
    text = undershoot("certify", str(tmp_path / "lights"), "--ball", "3", code=2)
    assert "has a certificate for all states" not in text
    assert "never overestimates, by its calibration" in text.replace("\n", " ")


def test_the_certificate_binds_the_encoding(tmp_path: Path) -> None:
    bundle = certified("lights-out-3x3")
    assert bundle.certificate is not None
    dataclasses.replace(bundle, certificate={**bundle.certificate, "inputs": "0" * 64}).save(tmp_path / "b")
    with pytest.raises(us.UndershootError, match="another encoding of states"):
        load(tmp_path / "b")


@pytest.mark.parametrize("depths", ["0", "0..3"])
def test_scrambles_of_depth_0_are_refused(tmp_path: Path, depths: str) -> None:
    puzzle = us.puzzle("lights-out-3x3")
    Bundle(puzzle, some_network(puzzle, (8,))).save(tmp_path / "b")
    assert "begin --depths with 1" in undershoot(
        "calibrate", str(tmp_path / "b"), "--method", "scramble", "--depths", depths, code=2
    )
    assert "labels were asked for" in undershoot(
        "calibrate", str(tmp_path / "b"), "--method", "max", "--n", "10000000000000", code=2
    )
    undershoot("calibrate", str(tmp_path / "b"), "--method", "scramble")  # its nine presses are enough
