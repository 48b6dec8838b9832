"""The bundles that come with the package: certified, small, and used by default."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import commands
import undershoot as us
from undershoot.bundles.bundle import SHIPPED
from undershoot.bundles.loading import default_heuristic
from undershoot.bundles.pattern_reading import is_pattern_bundle, read_pattern_bundle
from undershoot.bundles.reading import read_bundle
from undershoot.certification import check_every_state
from undershoot.guarantees import OptimalityKind, Standing
from undershoot.heuristics.calibrated import CalibratedHeuristic

PUZZLES = ("lights-out-3x3", "lights-out-5x5", "tiles-3x3", "cube-2x2")
EVERY = sorted(path.name for path in SHIPPED.iterdir())
ON_PATTERNS = [name for name in EVERY if is_pattern_bundle(SHIPPED / name)]
NAMES = [name for name in EVERY if name not in ON_PATTERNS]
MOST_BYTES = 4_000_000
LEAST = {
    "lights-out-3x3": 4.5,
    "lights-out-5x5": 9.9,
    "tiles-3x3": 21.9,
    "tiles-3x3-label-free": 21.9,
    "cube-2x2": 8.7,
    "cube-2x2-label-free": 8.4,
}


def test_every_puzzle_has_its_bundles() -> None:
    for puzzle in PUZZLES:
        assert {puzzle, f"{puzzle}-paper"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_certified_on_every_state_in_whole_numbers_and_small(name: str) -> None:
    bundle = read_bundle(name)
    assert sum(path.stat().st_size for path in (SHIPPED / name).iterdir()) <= MOST_BYTES
    assert isinstance(bundle.heuristic, CalibratedHeuristic)
    assert bundle.raw.is_exact
    assert bundle.certificate is not None
    assert bundle.heuristic.guarantee.standing is Standing.PROVEN
    assert bundle.certificate["radius"] is None
    assert bundle.certificate["checked"] == bundle.certificate["states"] == bundle.puzzle.space.size
    assert bundle.certificate["mean_h"] >= LEAST.get(name, 0)
    assert bundle.command.startswith("undershoot train ")
    assert bundle.command in (SHIPPED / name / "README.md").read_text()


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("tiles", "lights-out-3x3"))])
def test_the_certificate_is_true(name: str) -> None:
    bundle = read_bundle(name)
    findings = check_every_state(bundle.heuristic, us.oracle(bundle.puzzle), 2)
    assert findings.violations == 0
    assert bundle.certificate is not None
    assert findings.figures == {key: bundle.certificate[key] for key in findings.figures}


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("cube")])
def test_it_does_not_overestimate_on_states_near_and_far(name: str) -> None:
    heuristic = us.load(name)
    near = us.oracle(us.puzzle("cube-2x2"), radius=5)
    values = heuristic(near.states_of_rows(0, near.states))
    assert (values <= np.repeat(np.arange(6), near.histogram)).all()
    far = heuristic.puzzle.sample(20_000, 5)
    assert (heuristic(far) <= us.oracle(heuristic.puzzle).distance(far)).all()


def test_networks_on_patterns_are_certified_on_every_arrangement_and_small() -> None:
    assert ON_PATTERNS == ["tiles-4x4", "tiles-5x5"]
    checked = {"tiles-4x4": [57_657_600, 518_918_400], "tiles-5x5": [127_512_000] * 4}
    least = {"tiles-4x4": [20.6, 23.1], "tiles-5x5": [20.27, 20.28, 17.63, 20.96]}
    for name, most in (("tiles-4x4", 2_000_000), ("tiles-5x5", 2_500_000)):
        bundle = read_pattern_bundle(name)
        assert sum(path.stat().st_size for path in (SHIPPED / name).iterdir()) <= most
        assert bundle.guarantee.standing is Standing.PROVEN
        assert bundle.certificate is not None
        rows = bundle.certificate["checks"]
        assert [row["checked"] for row in rows] == checked[name]
        assert not any(row["violations"] for row in rows)
        assert all(row["mean_h"] > mean for row, mean in zip(rows, least[name], strict=True))
        assert bundle.command in (SHIPPED / name / "README.md").read_text()


def test_networks_on_patterns_stay_below_what_walks_cost_and_what_tables_prove() -> None:
    puzzle = us.puzzle("15-puzzle")
    learned, few = us.load("15-puzzle"), us.patterns(puzzle, "4-4-4-3")
    walks = us.scramble(puzzle.table, np.arange(20_000) % 60, 3)
    assert (learned(walks.states) <= np.arange(20_000) % 60).all()
    boards = walks.states[45::600]
    options = us.SearchOptions(algorithm=us.Algorithm.IDA)
    proven = us.solve_many(puzzle, boards, few, options)
    found = us.solve_many(puzzle, boards, learned, options)
    assert [result.cost for result in found] == [result.cost for result in proven]
    assert sum(result.generated for result in found) < sum(result.generated for result in proven)


@pytest.mark.parametrize("name", ["tiles-4x4", "tiles-5x5"])
def test_large_boards_are_solved_at_once_with_no_table_made(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERSHOOT_CACHE_DIR", str(tmp_path))
    puzzle = us.puzzle(name)
    assert default_heuristic(puzzle) == "learned"
    walk = us.scramble(puzzle.table, np.array([40]), 4).states
    result = us.solve(puzzle, walk, us.heuristic(puzzle, "learned"), us.SearchOptions(algorithm=us.Algorithm.IDA))
    assert result.optimality.kind is OptimalityKind.PROVEN
    assert not (tmp_path / "patterns").exists()
    monkeypatch.setattr("undershoot.bundles.loading.cached_seconds", lambda pattern, name: 1.0)
    assert default_heuristic(puzzle) == "patterns"


def test_a_folder_of_the_same_name_does_not_take_the_place_of_what_comes_with_the_package(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "lights-out-3x3-paper", tmp_path / "tiles-3x3")
    done = commands.undershoot("solve", "tiles-3x3", "--random", "1", "--json", folder=tmp_path)
    assert json.loads(done.stdout)["results"][0]["optimality"] == "proven"


def test_bundles_of_the_package_have_names() -> None:
    tiles = us.puzzle("tiles-3x3")
    states = tiles.sample(100, 0)
    assert (us.heuristic(tiles, "tiles-3x3-small")(states) == us.heuristic(tiles, "small")(states)).all()
    assert (us.load("8-puzzle")(states) == us.heuristic(tiles, "learned")(states)).all()
    with pytest.raises(us.UndershootError, match='did you mean "cube-2x2-small"'):
        us.load("cube-2x2-smal")


def test_a_network_that_was_trained_on_another_encoding_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(seed: int) -> np.random.PCG64:
        return generator(seed + 1)

    generator = np.random.PCG64
    monkeypatch.setattr(np.random, "PCG64", other)
    fresh = dataclasses.replace(us.puzzle("tiles-3x3"))  # whose encodings are not known yet
    monkeypatch.setattr("undershoot.bundles.reading.catalogue.puzzle", lambda _: fresh)
    with pytest.raises(us.UndershootError, match="another encoding of states"):
        us.load("tiles-3x3")


def test_small_bundles_take_a_quarter_of_the_packed_table() -> None:
    for puzzle, table in (("tiles-3x3", 181_440 * 5 / 8), ("cube-2x2", 3_674_160 / 2)):
        assert read_bundle(f"{puzzle}-small").learned_bytes <= table / 4


def test_solve_uses_what_comes_with_the_package() -> None:
    done = json.loads(commands.undershoot("solve", "cube-2x2", "R U F2 R'", "--json").stdout)
    assert done["heuristic"] == "learned, exhaustive"
    assert (done["results"][0]["cost"], done["results"][0]["optimality"]) == (4, "proven")
    assert json.loads(commands.undershoot("solve", "pancake-6", "--json").stdout)["heuristic"] == "base"
    named = json.loads(commands.undershoot("bench", "tiles-3x3", "--random", "20", "--json").stdout)["heuristics"]
    assert [row["name"].split(",")[0] for row in named] == ["learned", "base", "zero"]


def test_in_python_a_puzzle_and_a_name_are_enough() -> None:
    puzzle = us.puzzle("cube-2x2")
    result = us.solve(puzzle, puzzle.parse("R U F2 R' U2 F"), us.load("cube-2x2"))
    assert result.optimality.kind is OptimalityKind.PROVEN
    assert us.heuristic(puzzle, "learned")(puzzle.table.goals).tolist() == [0]
    with pytest.raises(us.UndershootError, match="no heuristic `small` for pancake-6 comes with the package"):
        us.heuristic(us.puzzle("pancake-6"), "small")
    with pytest.raises(us.UndershootError, match='Did you mean "learned"'):
        us.heuristic(puzzle, "learnt")


def test_it_is_not_written_to_but_may_be_calibrated_elsewhere(tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in (SHIPPED / "tiles-3x3").iterdir()}
    for command in (("calibrate", "tiles-3x3"), ("certify", "tiles-3x3")):
        assert "comes with the package" in commands.undershoot(*command, code=2).stderr
    commands.undershoot("calibrate", "tiles-3x3", "--rounding", "integer", "--out", str(tmp_path / "mine"))
    assert us.load(tmp_path / "mine").rounding == "integer"
    assert before == {path.name: path.read_bytes() for path in (SHIPPED / "tiles-3x3").iterdir()}


def test_a_bundle_of_ones_own_goes_before_one_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(SHIPPED / "tiles-3x3-paper", tmp_path / "tiles-3x3")
    monkeypatch.chdir(tmp_path)
    assert read_bundle("tiles-3x3").recipe["levels"] == 0
    (tmp_path / "cube-2x2").mkdir()
    assert read_bundle("cube-2x2").recipe["levels"] > 0
