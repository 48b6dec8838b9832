"""Bundles whose checksums are all right and whose claims are not: never called proven, and refuted by who checks them."""

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import commands
import undershoot as us
from attacks.conftest import Make
from attacks.forging import Change, Document, checksum, forge, read, sha256, write
from undershoot import trust
from undershoot.arrays import States
from undershoot.bundles.bundle import SHIPPED, Bundle
from undershoot.bundles.reading import read_bundle
from undershoot.certification import certificate, check_every_state, findings
from undershoot.guarantees import PROVEN, OptimalityKind, Rounding, Standing
from undershoot.heuristics.calibrated import Calibration
from undershoot.heuristics.neural import Network
from undershoot.kernels.streams import Purpose, stream
from undershoot.oracles.breadth_first import explore
from undershoot.trust import Passed


def lower_margin(document: Document) -> None:
    document["margin"] -= 3.0


def lower_levels(document: Document) -> None:
    document["level_margins"] = [m if isinstance(m, str) else m - 5.0 for m in document["level_margins"]]


def add_group_margins(document: Document) -> None:
    document["group_margins"] = [-9.0, -9.0, -9.0]


def raise_weights(tensors: Document) -> None:
    last = tensors["layers.2.bias"].copy()
    tensors["layers.2.bias"] = last + np.int32(3 / tensors["layers.2.scale"][0])


def stretch_scale(tensors: Document) -> None:
    tensors["layers.2.scale"] = tensors["layers.2.scale"] / np.float32(50)


def list_a_state(tensors: Document) -> None:
    """One state, one move from the goal, is said to cost 20."""
    puzzle = us.puzzle("tiles-2x3")
    table = us.oracle(puzzle)
    tensors["keys"], tensors["costs"] = table.keys[1:2].copy(), np.array([20], dtype=np.uint16)


def raise_an_exception(tensors: Document) -> None:
    costs = tensors["costs"].copy()
    costs[0] += 8
    tensors["costs"] = costs


def nothing(document: Document) -> None:
    pass


FORGERIES: dict[str, dict[str, Any]] = {
    "a margin lowered": {"calibration": lower_margin},
    "margins of groups put in": {"calibration": add_group_margins},
    "weights raised": {"model": raise_weights},
    "a scale stretched": {"model": stretch_scale, "calibration": lambda d: d.update(margin=-9.0)},
    "a state listed": {"exceptions": list_a_state},
    "an exception raised": {"method": "exceptions", "exceptions": raise_an_exception},
    "a margin lowered and rounded to parity": {
        "calibration": lambda d: d.update(margin=d["margin"] - 1.5, rounding="parity"),
    },
    "a margin lowered, nothing rounded": {"calibration": lambda d: d.update(margin=d["margin"] - 2, rounding="none")},
    "no margin at all": {"calibration": lambda d: d.update(margin="-inf")},
}


def states_of(bundle: Path) -> tuple[Any, Any]:
    puzzle = read_bundle(bundle).puzzle
    table = us.oracle(puzzle)
    return table.states_of_rows(0, table.states), table.true_costs()


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_bundle_is_a_claim_and_its_check_refutes_it(make: Make, name: str) -> None:
    how = dict(FORGERIES[name])
    folder = forge(make(method=how.pop("method", "exhaustive")), **how)
    heuristic = us.load(folder)
    states, true_cost = states_of(folder)
    assert (heuristic(states) > true_cost).any()  # it does overestimate
    assert heuristic.guarantee.standing is Standing.NONE
    assert f"`undershoot check {folder}` would establish" in str(heuristic.guarantee)
    for result, cost in zip(us.solve_many(heuristic.puzzle, states[::7], heuristic), true_cost[::7], strict=True):
        assert result.lower_bound <= cost
        assert result.optimality.kind is not OptimalityKind.PROVEN or result.cost == cost
    done = commands.undershoot("check", str(folder), code=1)
    assert "Proven" not in done.stdout
    assert us.load(folder).guarantee.standing is Standing.NONE


def test_one_state_listed_does_not_make_a_long_way_round_optimal(make: Make) -> None:
    folder = forge(make(), exceptions=list_a_state)
    table = us.oracle(us.puzzle("tiles-2x3"))
    state = us.puzzle("tiles-2x3").format(table.states_of_rows(4, 5))
    done = commands.undershoot("solve", "tiles-2x3", state, "--heuristic", str(folder))
    assert "never overestimates, which `undershoot check" in " ".join(done.stdout.split())
    assert json.loads(commands.undershoot("solve", "tiles-2x3", state, "--heuristic", str(folder), "--json").stdout)[
        "guarantee"
    ].startswith("nothing is known")


@pytest.mark.parametrize("method", ["exhaustive", "exceptions"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_right_bundle_is_a_claim_until_it_was_checked_here(make: Make, method: str, whole: bool) -> None:
    folder = make(method=method, whole=whole)
    assert us.load(folder).guarantee.standing is Standing.NONE
    commands.undershoot("check", str(folder), "--sample", "50")
    assert us.load(folder).guarantee.standing is Standing.NONE
    commands.undershoot("check", str(folder))
    assert us.load(folder).guarantee.is_proven
    trust._of_this_process.clear()
    assert us.load(folder).guarantee.is_proven  # by the signed record
    moved = folder.rename(folder.with_name("elsewhere"))
    assert us.load(moved).guarantee.is_proven
    forge(moved, calibration=lower_margin)
    assert us.load(moved).guarantee.standing is Standing.NONE


def test_with_no_folder_to_write_to_a_check_holds_for_the_process(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERSHOOT_STATE_DIR", "/proc/nowhere")
    folder = make()
    done = commands.undershoot("check", str(folder))
    assert "Proven: it never overestimates" in done.stdout
    assert "forgotten when this process ends" in done.stderr
    assert us.load(folder).guarantee.is_proven
    trust._of_this_process.clear()
    assert us.load(folder).guarantee.standing is Standing.NONE


def test_a_calibration_alone_proves_nothing(make: Make) -> None:
    folder = make()
    (folder / "certificate.json").unlink()
    heuristic = us.load(folder)
    assert heuristic.guarantee.standing is Standing.NONE
    assert f"`undershoot certify {folder}` would establish" in str(heuristic.guarantee)
    commands.undershoot("certify", str(folder))
    assert us.load(folder).guarantee.is_proven


def claim_a_rate(document: Document) -> None:
    claim = document["guarantee"] | {"standing": "sampled", "subject": "solutions", "violation_rate": 1e-9}
    document["guarantee"] = claim | {"confidence": 0.999999999, "population": "uniform states", "labels": 10**9}
    document["sentence"] = (
        "lets A* find an optimum on at least 0.999999999 of uniform states, with confidence 0.999999999 from "
        "1,000,000,000 instances"
    )


def test_a_rate_that_was_not_fitted_here_is_a_claim(make: Make) -> None:
    folder = make(method="scramble")
    forge(folder, calibration=claim_a_rate)
    heuristic = us.load(folder)
    assert heuristic.guarantee.standing is Standing.NONE
    assert "only a calibration of one's own would establish" in str(heuristic.guarantee)
    kinds = {result.optimality.kind for result in us.solve_many(heuristic.puzzle, heuristic.puzzle.sample(20, 0), heuristic)}
    assert OptimalityKind.CALIBRATED not in kinds
    text = commands.undershoot("solve", "tiles-2x3", "--heuristic", str(folder)).stdout
    assert "with a cost above the optimum" not in text


def test_a_rate_that_was_fitted_here_is_known_until_anything_changes(make: Make) -> None:
    folder = make(method="scramble")
    commands.undershoot("calibrate", str(folder), "--method", "trajectory", "--n", "500")
    assert us.load(folder).guarantee.standing is Standing.SAMPLED
    for change in ({"model": raise_weights}, {"calibration": lower_margin}, {"calibration": claim_a_rate}):
        copy = folder.with_name("copy")
        shutil.copytree(folder, copy)
        forge(copy, **change)
        assert us.load(copy).guarantee.standing is Standing.NONE
        shutil.rmtree(copy)


def test_a_ball_does_not_become_the_whole_space(make: Make) -> None:
    folder = make(ball=8)
    commands.undershoot("check", str(folder))
    assert us.load(folder).guarantee.within == 8
    forge(folder, certificate=lambda d: d.update(radius=None))
    assert us.load(folder).guarantee.standing is Standing.NONE
    assert "states is 360, the certificate says" in commands.undershoot("check", str(folder), code=1).stdout


FALSE_CERTIFICATES: dict[str, Change] = {
    "another name": lambda d: d.update(puzzle="cube-2x2"),
    "a name in colours": lambda d: d.update(puzzle="\x1b[31mcube"),
    "one field more": lambda d: d.update(more=1),
    "a number that is true": lambda d: d.update(inconsistent_edges=bool(d["inconsistent_edges"])),
    "fewer states": lambda d: d.update(states=300, checked=300),
    "another mean": lambda d: d.update(mean_h=d["mean_h"] + 1e-9),
    "another supremum": lambda d: d.update(supremum=-1.0),
    "fewer inconsistent moves": lambda d: d.update(inconsistent_edges=d["inconsistent_edges"] + 1),
    "a tolerance of its own": lambda d: d.update(mean_h=d["mean_h"] + 0.3, arithmetic_margin=1.0),
}


@pytest.mark.parametrize("name", FALSE_CERTIFICATES)
def test_a_certificate_that_says_something_else_is_refuted(make: Make, name: str) -> None:
    folder = forge(make(), certificate=FALSE_CERTIFICATES[name])
    done = commands.undershoot("check", str(folder), code=2 if name == "a number that is true" else 1)
    assert "\x1b" not in done.stdout
    if name != "a number that is true":
        assert "the certificate says" in done.stdout or "which no certificate has" in done.stdout
        assert us.load(folder).guarantee.standing is Standing.NONE


REFUSED: dict[str, tuple[dict[str, Change], str]] = {
    "violations": ({"certificate": lambda d: d.update(violations=3)}, "does not say that all states were checked"),
    "not all checked": ({"certificate": lambda d: d.update(checked=5)}, "does not say that all states were checked"),
    "a negative radius": ({"certificate": lambda d: d.update(radius=-1)}, "does not say that all states were checked"),
    "a radius that is true": ({"certificate": lambda d: d.update(radius=True)}, "its radius is missing, or not of the right"),
    "a mean of many digits": ({"certificate": lambda d: d.update(mean_h=10**400)}, "does not hold what a bundle holds"),
    "a supremum of many digits": ({"certificate": lambda d: d.update(supremum=10**400)}, "does not hold what a bundle holds"),
    "other names of moves": ({"config": lambda d: d.update(actions=["x"])}, "was made for another"),
    "a puzzle in colours": ({"config": lambda d: d.update(puzzle="\x1b[31mtiles")}, r"not known here: '.x1b\[31mtiles'"),
    "a puzzle elsewhere": ({"config": lambda d: d.update(puzzle="../secret.toml")}, r"not known here: '../secret.toml'"),
    "an encoding in colours": (
        {"config": lambda d: d["networks"][0].update(encoding="\x1b[31mcells")},
        r"no encoding '.x1b\[31mcells'",
    ),
    "old arithmetic": ({"certificate": lambda d: d.update(arithmetic="x")}, "issued for another arithmetic"),
    "another h0": ({"certificate": lambda d: d.update(h0="0" * 64)}, "issued for another base heuristic"),
    "another parity": ({"certificate": lambda d: d.update(parity="0" * 64)}, "issued for another parity"),
    "another encoding": ({"certificate": lambda d: d.update(inputs="0" * 64)}, "issued for another encoding"),
    "another calibration": ({"certificate": lambda d: d.update(calibration="0" * 64)}, "issued for another calibration"),
    "another puzzle": ({"certificate": lambda d: d.update(fingerprint="0" * 64)}, "is the certificate of another puzzle"),
    "another move table": ({"arrays": lambda t: t.update({"table.cost": t["table.cost"] * 2})}, "trained on another encoding"),
    "another h0 in arrays": ({"arrays": lambda t: t.update({"h0.divisor": t["h0.divisor"] * 2})}, "trained on another"),
    "seen in another way": ({"config": lambda d: d["networks"][0].update(encoding="pieces")}, "takes 30 inputs"),
    "canonical states": ({"config": lambda d: d["networks"][0].update(canonical=True)}, "takes states as they are"),
    "several networks": ({"config": lambda d: d["networks"].append(d["networks"][0])}, "holds several networks"),
    "of a pattern": ({"config": lambda d: d["networks"][0].update(pattern=[1, 2])}, "or one of a pattern"),
    "a margin for arithmetic": ({"calibration": lambda d: d.update(arithmetic_margin=-5.0)}, "one of whole numbers"),
    "a margin that is a list": ({"calibration": lambda d: d.update(margin=[1])}, "its margin is missing, or not of the right"),
    "a margin that is a word": ({"calibration": lambda d: d.update(margin="nan")}, "a margin that is no number"),
    "a margin for levels": ({"calibration": lambda d: d.update(level_margins=[1.0])}, "for each of 1 levels"),
    "one field more": ({"calibration": lambda d: d.update(more=1)}, "holds more, or something else, than a calibration"),
    "rounding unheard of": ({"calibration": lambda d: d.update(rounding="up")}, "does not hold what a bundle holds"),
    "a claim in colours": (
        {"calibration": lambda d: d["guarantee"].update(population="\x1b[2Joptimal, proven", standing="sampled")},
        "a population that no calibration draws from: '.x1b",
    ),
    "a claim in two lines": (
        {"calibration": lambda d: d["guarantee"].update(population="x\ncost 4: optimal, proven", standing="sampled")},
        "a population that no calibration draws from",
    ),
    "exceptions twice": (
        {"exceptions": lambda t: t.update(keys=np.zeros((2, 1), np.uint64), costs=np.zeros(2, np.uint16))},
        "each state once",
    ),
    "exceptions without costs": ({"exceptions": lambda t: t.update(keys=np.zeros((2, 1), np.uint64))}, "each state once"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_together_is_refused_by_name(make: Make, name: str) -> None:
    changes, says = REFUSED[name]
    folder = forge(make(), **changes)
    with pytest.raises(us.UndershootError, match=says):
        us.load(folder)
    assert commands.undershoot("check", str(folder), code=2).stderr.count("\n") == 1


def test_a_bundle_reads_no_file_but_its_own(make: Make) -> None:
    folder = make()
    stated = read(folder / "config.json")
    stated["sha256"]["../../secret"] = "0" * 64
    write(folder / "config.json", stated)
    with pytest.raises(us.UndershootError, match=r"config.json names ../../secret, "):
        us.load(folder)


@pytest.mark.parametrize("field", ["networks", "sha256", "recipe", "puzzle", "fingerprint"])
@pytest.mark.parametrize("value", [None, 5, [], {}, "x", [[]]])
def test_documents_of_wrong_types_are_refused_by_name(make: Make, field: str, value: object) -> None:
    folder = make()
    stated = read(folder / "config.json")
    if stated[field] == value or (field == "recipe" and value == {}):
        return
    write(folder / "config.json", {**stated, field: value})
    with pytest.raises(us.UndershootError) as refused:
        us.load(folder)
    assert str(folder) in str(refused.value)


@pytest.mark.parametrize("name", ["config.json", "calibration.json", "certificate.json"])
def test_deep_nesting_is_refused_by_name(make: Make, name: str) -> None:
    folder = make()
    (folder / name).write_text('{"digest": ' + "[" * 200_000)
    with pytest.raises(us.UndershootError, match=name):
        us.load(folder)


def test_a_pipe_in_a_bundle_is_not_waited_for(make: Make) -> None:
    folder = make()
    (folder / "certificate.json").unlink()
    os.mkfifo(folder / "certificate.json")
    with pytest.raises(us.UndershootError, match=r"certificate.json is no plain file"):
        us.load(folder)


def test_check_proves_no_more_than_certify_would(make: Make) -> None:
    """A float network with margins by group gets no certificate; nor is one that somebody wrote for it confirmed."""
    folder = forge(make(whole=False), calibration=lambda d: d.update(group_margins=[20.0, 20.0]))
    values, true_cost = us.load(folder)(states_of(folder)[0]), states_of(folder)[1]
    assert (values <= true_cost).all()
    stated = {"mean_h": float(values.mean(dtype=np.float64)), "supremum": float((values - true_cost)[1:].max())}
    forge(folder, certificate=lambda d: d.update(stated))
    for command in ("certify", "check"):
        assert "needs exact values" in commands.undershoot(command, str(folder), code=2).stderr
    assert us.load(folder).guarantee.standing is Standing.NONE


def test_values_that_are_no_numbers_are_not_certified(make: Make, tmp_path: Path) -> None:
    folder = make(whole=False)

    def overflow(tensors: Document) -> None:
        for name in tensors:
            tensors[name] = np.sign(tensors[name]) * np.float32(3e38)

    forge(folder, model=overflow)
    for command in ("certify", "check"):
        error = commands.undershoot(command, str(folder), code=2).stderr
        assert "the network gives values that are not finite" in error
    assert (folder / "certificate.json").exists()


@pytest.mark.parametrize("rounding", [Rounding.INTEGER, Rounding.PARITY])
def test_margins_by_group_of_what_is_no_number_are_refused(tmp_path: Path, rounding: Rounding) -> None:
    """A network whose finite weights give inf - inf."""
    puzzle, folder = us.puzzle("tiles-2x3"), tmp_path / "forged"
    weights = (np.full((puzzle.encoding.width, 2), 3e38, dtype=np.float32), np.array([[1], [-1]], dtype=np.float32))
    network = Network(weights, (np.zeros(2, dtype=np.float32), np.zeros(1, dtype=np.float32)))
    calibration = Calibration("grouped", PROVEN, group_margins=(1.0, 2.0, 3.0), rounding=rounding)
    Bundle(puzzle, network, calibration=calibration).save(folder)
    state = puzzle.format(puzzle.sample(1, 1))
    for command in (("certify", str(folder)), ("solve", "tiles-2x3", state, "--heuristic", str(folder))):
        error = commands.undershoot(*command, code=2).stderr
        assert f"the heuristic {folder}, grouped gives nan, for " in error
        assert "warning" not in error


def test_nobody_can_foresee_what_is_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    seeds = []
    for name in ("one", "two"):
        monkeypatch.setenv("UNDERSHOOT_STATE_DIR", str(tmp_path / name))
        again = trust.private_seed(0, "weights")
        assert again == trust.private_seed(0, "weights")
        seeds += [again, trust.private_seed(1, "weights"), trust.private_seed(0, "other weights")]
    monkeypatch.setenv("UNDERSHOOT_STATE_DIR", "/proc/nowhere")
    seeds.append(trust.private_seed(0, "weights"))
    assert len(set(seeds)) == 7


def test_rates_are_fitted_to_states_that_nobody_could_foresee(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, asked = make(method="scramble"), []

    def private(seed: int, what: str) -> int:
        asked.append((seed, what))
        return 12345

    drawn: list[int] = []

    def uniform(puzzle: us.Puzzle, count: int, seed: int) -> States:
        drawn.append(seed)
        return puzzle.sample(count, seed)

    monkeypatch.setattr(trust, "private_seed", private)
    monkeypatch.setattr("undershoot.calibration.populations.uniform", uniform)
    commands.undershoot("calibrate", str(folder), "--method", "max", "--n", "200", "--seed", "3")
    weights = read_bundle(folder).network_digest
    assert asked == [(3, weights)]
    assert set(drawn) >= {stream(12345, Purpose.FIT_UNIFORM)}
    assert stream(3, Purpose.FIT_UNIFORM) not in drawn
    calibrated = read_bundle(folder).digest
    commands.undershoot("certify", str(folder), "--sample", "50", "--seed", "4")
    assert asked[-1] == (4, calibrated)
    commands.undershoot("calibrate", str(folder), "--compare", "--n", "200", "--seed", "5")
    assert asked[-1] == (5, f"{weights} compared")


def test_states_of_one_puzzle_certify_nothing_for_another(make: Make) -> None:
    """A bundle for a puzzle with as many cells, whose values were compared with the costs of another."""
    bundle = read_bundle(make("tiles-2x3"))
    other = dataclasses.replace(us.puzzle("tiles-2x3").table, goals=us.puzzle("tiles-2x3").table.goals[:, ::-1].copy())
    distances = explore(dataclasses.replace(us.puzzle("tiles-2x3"), table=other))
    values = np.zeros(distances.states, dtype=np.float32)
    with pytest.raises(us.UndershootError, match="states of another puzzle"):
        certificate(bundle, findings(values, values, distances, None))
    with pytest.raises(us.UndershootError, match="for another puzzle than these distances"):
        check_every_state(bundle.raw, distances)


def test_files_do_not_draw_on_the_terminal(tmp_path: Path) -> None:
    for line in ('"x\\u001bc" = "(1 2)"', '"x\\u009b1" = "(1 2)"'):
        (tmp_path / "p.toml").write_text(f'name = "p"\ngoal = "a b"\n[moves]\n{line}\n')
        error = commands.undershoot("solve", str(tmp_path / "p.toml"), "b a", code=2).stderr
        assert "it must be one word" in error
        assert "\x1b" not in error


def test_a_vouched_certificate_does_not_carry_over(make: Make) -> None:
    """That of a bundle of the package, or of one that was checked, put beside other contents."""
    folder = make("lights-out-3x3")
    shutil.copy(SHIPPED / "lights-out-3x3" / "certificate.json", folder / "certificate.json")
    with pytest.raises(us.UndershootError, match="was issued for other weights"):
        us.load(folder)
    for change in ({"model": stretch_scale}, {"calibration": lower_margin}):
        copy = folder.with_name("copy")
        shutil.copytree(SHIPPED / "lights-out-3x3-paper", copy)
        forge(copy, **{name: _last_layer(change_) if name == "model" else change_ for name, change_ in change.items()})
        heuristic = us.load(copy)
        assert heuristic.guarantee.standing is Standing.NONE
        shutil.rmtree(copy)


def _last_layer(change: Change) -> Change:
    def of_three(tensors: Document) -> None:
        tensors["layers.3.scale"] = tensors["layers.3.scale"] * np.float32(2)

    return of_three


def test_a_copy_of_what_comes_with_the_package_is_vouched_for(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "tiles-3x3-small", tmp_path / "copy")
    assert us.load(tmp_path / "copy").guarantee.is_proven


def test_a_forged_folder_named_like_one_of_the_package_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(SHIPPED / "lights-out-3x3-paper", tmp_path / "lights-out-3x3")
    forge(tmp_path / "lights-out-3x3", calibration=lower_margin)
    monkeypatch.chdir(tmp_path)
    assert us.load("lights-out-3x3").guarantee.standing is Standing.NONE
    puzzle = us.puzzle("lights-out-3x3")
    assert us.heuristic(puzzle, "learned").guarantee.is_proven
    result = us.solve(puzzle, puzzle.sample(1, 0), us.heuristic(puzzle, "learned"))
    assert result.cost == us.oracle(puzzle).distance(puzzle.sample(1, 0))[0]


def test_a_puzzle_file_does_not_take_the_name_of_another_puzzle(tmp_path: Path) -> None:
    path = tmp_path / "easy.toml"
    path.write_text('name = "tiles-3x3"\ngoal = "1 2 3"\n[moves]\nA = "(1 2 3)"\nB = "(1 3 2)"\n')
    error = commands.undershoot("solve", str(path), "2 3 1", code=2).stderr
    assert 'its name is "tiles-3x3", which is another puzzle' in error


RECORDS: dict[str, Change] = {
    "another key": lambda d: d.update(signature="00" * 32),
    "no signature": lambda d: d.pop("signature"),
    "a signature that is a list": lambda d: d.update(signature=[1]),
}


@pytest.mark.parametrize("name", RECORDS)
def test_records_that_the_user_did_not_sign_count_for_nothing(make: Make, stranger: Path, name: str) -> None:
    folder = make()
    commands.undershoot("check", str(folder))
    trust._of_this_process.clear()
    (record,) = [path for path in (stranger / "passed").iterdir() if path.name.startswith("certificate")]
    document = json.loads(record.read_text())
    RECORDS[name](document)
    record.write_text(json.dumps(document))
    assert us.load(folder).guarantee.standing is Standing.NONE


def test_a_record_speaks_of_its_own_digest_and_kind_only(make: Make, stranger: Path) -> None:
    folder = make()
    commands.undershoot("check", str(folder))
    trust._of_this_process.clear()
    digest = checksum(read(folder / "certificate.json"))
    assert trust.has_passed(Passed.CERTIFICATE, digest)
    record = stranger / "passed" / f"certificate-{digest}.json"
    other = "1" * 64
    for kind, name in ((Passed.CERTIFICATE, other), (Passed.CALIBRATION, digest), (Passed.DISTANCES, digest)):
        shutil.copy(record, stranger / "passed" / f"{kind}-{name}.json")
        assert not trust.has_passed(kind, name)


def test_what_passed_older_checks_passes_no_more(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make()
    monkeypatch.setattr(trust, "CHECKS", "undershoot checks 0")
    commands.undershoot("check", str(folder))
    trust._of_this_process.clear()
    assert us.load(folder).guarantee.is_proven
    monkeypatch.undo()
    assert us.load(folder).guarantee.standing is Standing.NONE


@pytest.mark.parametrize(("path", "mode"), [("key", 0o644), ("key", 0o640), (".", 0o777), (".", 0o770)])
def test_a_state_folder_that_others_can_use_is_not_trusted(make: Make, stranger: Path, path: str, mode: int) -> None:
    folder = make()
    commands.undershoot("check", str(folder))
    trust._of_this_process.clear()
    trust._key.cache_clear()
    (stranger / path).chmod(mode)
    assert us.load(folder).guarantee.standing is Standing.NONE
    done = commands.undershoot("check", str(folder))
    assert "by others" in done.stderr
    trust._key.cache_clear()


def test_a_key_that_is_damaged_is_named(make: Make, stranger: Path) -> None:
    commands.undershoot("check", str(make()))
    (stranger / "key").write_bytes(b"short")
    trust._key.cache_clear()
    with pytest.raises(trust.Untrusted, match="key is damaged; remove it"):
        trust.key()
    trust._key.cache_clear()


def test_certify_takes_a_false_certificate_away(make: Make) -> None:
    folder = forge(make(), calibration=lower_margin)
    done = commands.undershoot("certify", str(folder), code=1)
    assert "the certificate that was there is false, and was taken away" in done.stderr
    assert not (folder / "certificate.json").exists()
    assert "Mean h" not in (folder / "README.md").read_text()
    us.load(folder)


def test_a_float_network_on_cuda_is_not_proven(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = {whole: make(whole=whole, rounding=Rounding.INTEGER) for whole in (True,)}
    floats = make("lights-out-3x3", whole=False)
    for folder in (*folders.values(), floats):
        commands.undershoot("check", str(folder))
    # Stands in for the device: the very same network.
    monkeypatch.setattr("undershoot.heuristics.neural_cuda.on_cuda", lambda network: network)
    assert us.load(folders[True], device="cuda").guarantee.is_proven
    moved = us.load(floats, device="cuda").guarantee
    assert moved.standing is Standing.NONE
    assert "on the CPU it never overestimates" in str(moved)
    assert us.load(floats).guarantee.is_proven


def test_certificates_of_levels_are_bound_to_their_margins(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "lights-out-3x3", tmp_path / "b")
    forge(tmp_path / "b", calibration=lower_levels)
    heuristic = us.load(tmp_path / "b")
    assert heuristic.guarantee.standing is Standing.NONE
    states, true_cost = states_of(tmp_path / "b")
    assert (heuristic(states) > true_cost).any()
    assert dataclasses.replace(heuristic.guarantee, claim="").sentence == "Nothing is known about overestimates."
    assert sha256(tmp_path / "b" / "model.safetensors") == sha256(SHIPPED / "lights-out-3x3" / "model.safetensors")
