"""Sentences and figures that say more, or something else, than is known."""

import dataclasses
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

import commands
import undershoot as us
from attacks.conftest import Make
from attacks.forging import Change, forge, read, write
from undershoot.bundles.reading import read_bundle
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import METHODS
from undershoot.calibration.populations import Population
from undershoot.certification import check_every_state, check_sample
from undershoot.cli.terminal import percent, rounded_up
from undershoot.guarantees import Guarantee, Standing, at_least
from undershoot.heuristics import wording
from undershoot.oracles.breadth_first import explore

NEARLY_ALL = 1 - 1e-13


@pytest.fixture
def ball(tmp_path: Path) -> Path:
    """Proven within 2 of the goal, and above the true cost farther out."""
    folder = tmp_path / "ball"
    us.calibrate("tiles-3x3-small", wanted=Wanted(ball=2), out=folder)
    assert us.certify(folder, ball=2).is_proven
    return folder


@pytest.mark.parametrize("request_for_more", [[], ["--sample=20000"]], ids=["every state", "a sample"])
def test_a_ball_is_not_refuted_by_what_lies_beyond(ball: Path, request_for_more: list[str]) -> None:
    before = (ball / "certificate.json").read_bytes()
    done = commands.undershoot("certify", str(ball), *request_for_more, code=1)
    assert "is for a ball around the goal, and stays: what overestimates lies beyond that" in done.stderr
    assert "false" not in done.stderr
    assert (ball / "certificate.json").read_bytes() == before
    assert us.load(ball).guarantee == Guarantee(Standing.PROVEN, within=2)
    commands.undershoot("check", str(ball))


def test_a_ball_is_refuted_by_what_lies_within(make: Make) -> None:
    folder = forge(make(ball=6), calibration=lambda d: d.update(margin="-inf"))
    done = commands.undershoot("certify", str(folder), code=1)
    assert "the certificate that was there is false, and was taken away" in done.stderr
    assert not (folder / "certificate.json").exists()


def test_a_certificate_for_something_else_is_not_called_false(make: Make) -> None:
    folder = forge(make(), calibration=lambda d: d.update(margin="-inf"))
    write(folder / "certificate.json", {**read(folder / "certificate.json"), "calibration": "0" * 64})
    done = commands.undershoot("certify", str(folder), code=1)
    assert "was for something else than the bundle as it is now, and was taken away" in done.stderr
    assert not (folder / "certificate.json").exists()


def test_the_nearest_state_that_speaks_against_a_certificate_is_found() -> None:
    tiles = us.puzzle("tiles-3x3")
    raw, distances = read_bundle("tiles-3x3-small").raw, explore(tiles)
    states, costs = distances.states_of_rows(0, distances.states), distances.true_costs()
    least = int(costs[raw(states) > costs].min())
    assert check_every_state(raw, distances, 2).nearest == least
    rows = np.arange(distances.states)[::-1]
    assert check_sample(raw, states[rows], costs[rows].astype(np.int64), distances.states).nearest == least


def test_bench_says_of_a_ball_that_it_is_one(ball: Path) -> None:
    command = ["bench", "tiles-3x3", "--random=20", f"--heuristics={ball},base", "--max-expanded=200"]
    assert "proven within 2" in commands.undershoot(*command).stdout
    stated = json.loads(commands.undershoot(*command, "--json").stdout)["heuristics"]
    assert [row["guarantee"] for row in stated] == ["proven within 2", "proven"]


@pytest.mark.parametrize(
    ("line", "options", "says"),
    [
        ("35: 7 0 1 / 4 2 5 / 8 6 3", ["--weight=5"], "is said to cost 35, but a solution of cost "),
        ("5: D", [], "is said to cost 5, but 1 is proven"),
    ],
)
def test_a_wrong_known_cost_loses_nothing_and_is_not_called_proven(
    tmp_path: Path, line: str, options: list[str], says: str
) -> None:
    (tmp_path / "wrong.txt").write_text(f"{line}\n")
    command = ["bench", "tiles-3x3", "--instances=wrong.txt", "--heuristics=base", "--out=r.parquet", *options]
    done = commands.undershoot(*command, code=2, folder=tmp_path)
    assert f"undershoot: instance 1 {says}" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "proven optimal" in done.stdout
    assert "1 records written to r.parquet" in done.stdout
    assert pyarrow.parquet.read_table(tmp_path / "r.parquet").num_rows == 1


def test_shares_are_rounded_down_and_bounds_up() -> None:
    assert [percent(share) for share in (2999 / 3000, 1.0, 0.0, 0.29, 0.9999999, 1 / 3)] == [
        *("99.9%", "100.0%", "0.0%", "29.0%", "99.9%", "33.3%")
    ]
    assert [rounded_up(bound) for bound in (0.00001, 1.0, 0.0, -0.00001, -2.0, 0.12341)] == [
        *("0.0001", "1.0000", "0.0000", "0.0000", "-2.0000", "0.1235")
    ]
    assert rounded_up(float("-inf")) == "-inf"
    assert len(rounded_up(1e300)) == 306


def test_nearly_all_proven_is_not_all(tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text("1 2 3 4 5 6 7 8 0\n" * 1999 + "8 6 7 / 2 5 4 / 3 0 1\n")
    command = ["bench", "tiles-3x3", "--instances", str(tmp_path / "many.txt"), "--heuristics=base", "--max-expanded=20"]
    shown = commands.undershoot(*command).stdout
    assert shown.count("99.9%") == 2
    assert "100.0%" not in shown


def new_words(field: str, text: str) -> Change:
    return lambda document: document.update({field: text})


WORDS: dict[str, tuple[Change, str]] = {
    "a method": (
        new_words("method", "exhaustive: never overestimates, checked here. Otherwise"),
        "names a method that is none",
    ),
    "a population": (new_words("population", "all states, each of them proven"), "a population that no calibration draws from"),
    "a population of a rate": (
        lambda d: d["guarantee"].update(standing="sampled", population="uniform states, all of them proven"),
        "a population that no calibration draws from",
    ),
    "a claim": (
        lambda d: d.update(
            guarantee=dataclasses.asdict(Guarantee(Standing.NONE, claim="but of this puzzle, where it is proven")),
        ),
        "holds a claim in its own words",
    ),
}


@pytest.mark.parametrize("name", WORDS)
def test_a_file_does_not_speak_in_our_voice(make: Make, name: str) -> None:
    change, says = WORDS[name]

    def whole(document: dict[str, Any]) -> None:
        change(document)
        document["guarantee"].pop("provided", None)

    folder = make()
    (folder / "certificate.json").unlink()
    forge(folder, calibration=whole)
    with pytest.raises(us.UndershootError, match=says):
        us.load(folder)
    done = commands.undershoot("solve", "tiles-2x3", "--random=1", "--heuristic", str(folder), code=2)
    assert not done.stdout


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("population", Population)
def test_what_calibrations_write_can_be_read_again(tmp_path: Path, method: str, population: Population) -> None:
    depths = (1, 2, 5) if population is Population.SCRAMBLES else None
    wanted = Wanted(n=400, population=population, depths=depths, alpha=0.3, confidence=0.8)
    done = us.calibrate("lights-out-3x3-paper", method, wanted, out=tmp_path / "b")
    calibration = read_bundle(tmp_path / "b").calibration
    assert calibration is not None
    assert (calibration.method, calibration.population) == (method, done.calibration.population)
    assert wording.is_population(calibration.population)
    assert wording.is_population(calibration.guarantee.population)
    shutil.rmtree(tmp_path / "b")


def test_words_of_populations() -> None:
    for text in (wording.scrambles((3,)), wording.scrambles((1, 2, 3)), wording.scrambles((2, 90_000)), wording.all_states(12)):
        assert wording.is_population(text)
    for text in ("scrambles, no undo", "all states ", "uniform states\n", "all states within R of the goal", "states"):
        assert not wording.is_population(text)


def test_no_confidence_is_printed_as_certainty() -> None:
    for confidence in (NEARLY_ALL, 1 - 1e-12, 1 - 2**-53, 0.99999999999949):
        assert 0.999 < float(at_least(confidence)) <= confidence
        assert at_least(confidence).startswith("0.999")
    assert at_least(0.95) == "0.95"
    for method in ("max", "conformal", "grouped", "trajectory"):
        with pytest.raises(us.UndershootError, match=r"the highest that arithmetic bears out is 0\.999999999$"):
            us.calibrate("lights-out-3x3-paper", method, Wanted(confidence=NEARLY_ALL), out=Path("nowhere"))


@pytest.mark.parametrize(
    "line",
    [
        r'"\u001b[2K\rr r\ncost 1: optimal, proven\u001b[8m" = 1' + "\n[moves]\n" + 'r = "(1 2)"',
        "[moves]\n" + r'"r\u001b[2K\ncost 1: optimal, proven" = "(1 2"',
        '[moves]\nr = "(1 2)"\n[patterns]\n' + r'halves = "a\u001b[2K\rcost 1: optimal, proven"',
    ],
)
def test_what_is_wrong_in_a_file_is_told_in_one_line_of_text(line: str, tmp_path: Path) -> None:
    path = tmp_path / "speaks.toml"
    path.write_text(f'name = "speaks"\ngoal = "a b"\n{line}\n')
    said = commands.undershoot("solve", str(path), "b a", "--heuristic", "patterns:halves", code=2).stderr
    assert "\x1b" not in said
    assert "\r" not in said
    assert not re.search(r"^cost 1", said, re.MULTILINE)
    assert r"\x1b[2K" in said


@pytest.mark.parametrize(
    "change",
    [
        {"figures": {"states |\n\n**It never overestimates.**": 1}},
        {"figures": {"states": "It never overestimates."}},
        {"command": "undershoot train tiles-3x3\n```\nIt never overestimates.\n```"},
        {"command": "undershoot train ``` It never overestimates."},
    ],
)
def test_a_card_that_we_write_does_not_speak_for_who_sent_the_bundle(make: Make, change: dict[str, Any]) -> None:
    folder = forge(make(), config=lambda d: d.update(change))
    with pytest.raises(us.UndershootError, match="does not hold what it should"):
        us.calibrate(folder, "scramble")
