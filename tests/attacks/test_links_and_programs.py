"""Files from elsewhere start no program, and lead nothing that is written, or removed, to other places."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import undershoot as us
from commands import undershoot
from undershoot.bundles.bundle import SHIPPED
from undershoot.experiments import work
from undershoot.experiments.protocol import PROFILES
from undershoot.experiments.store import Store
from undershoot.files import contents_digest
from undershoot.kernels import machine_code
from undershoot.oracles import cache as distances
from undershoot.pattern_tables import cache as pattern_cache
from undershoot.training.runs import Run

TRAIN = ("train", "tiles-2x3", "--recipe", "mse", "--set", "curriculum.interval=10", "--steps", "30")
LONG_AGO = time.time() - 40 * 86400


def test_saying_what_made_a_reproduction_starts_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """git would run what the settings of any repository around the package name."""

    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError(f"a program was started: {arguments}")

    for name in ("Popen", "run", "check_output"):
        monkeypatch.setattr(subprocess, name, refuse)
    monkeypatch.setattr(os, "system", refuse)
    about = work.environment()
    assert "commit" not in about
    assert len(about["sources"]) == 12


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of the user's."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that others may write to."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("UNDERSHOOT_CACHE_DIR", str(folder))
    return folder


def test_distances_are_kept_in_no_linked_folder(shared: Path, elsewhere: Path) -> None:
    (shared / "oracles").symlink_to(elsewhere)
    left = elsewhere / f".{distances._path(shared / 'oracles', us.puzzle('tiles-2x2'), None).name}.precious"
    left.write_text("mine")
    os.utime(left, (LONG_AGO, LONG_AGO))
    with pytest.warns(UserWarning, match=r"oracles is a link, and such folders are not used; remove it") as warned:
        assert us.oracle(us.puzzle("tiles-2x2")).states == 12
    assert len(warned) == 1
    assert list(elsewhere.iterdir()) == [left]
    (elsewhere / "real").mkdir()
    us.oracle(us.puzzle("tiles-2x2"), cache_dir=elsewhere / "real")
    shutil.copytree(elsewhere / "real" / "oracles", elsewhere, dirs_exist_ok=True)
    assert not distances.is_cached(us.puzzle("tiles-2x2"))


def test_pattern_tables_are_kept_in_no_linked_folder(shared: Path, elsewhere: Path) -> None:
    puzzle = us.puzzle("topspin-6-3")
    (shared / "patterns").symlink_to(elsewhere)
    with pytest.warns(UserWarning, match=r"patterns is a link, and such folders are not used; remove it"):
        us.patterns(puzzle, "3")
    assert not list(elsewhere.iterdir())
    (shared / "patterns").unlink()
    us.patterns(puzzle, "3")
    (shared / "patterns").rename(elsewhere / "moved")
    (shared / "patterns").symlink_to(elsewhere / "moved")
    assert not pattern_cache.has_any(puzzle.name, puzzle.table.fingerprint)


def test_the_cache_folder_itself_may_be_a_link(tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").symlink_to(elsewhere)
    monkeypatch.setenv("UNDERSHOOT_CACHE_DIR", str(tmp_path / "cache"))
    us.oracle(us.puzzle("tiles-2x2"))
    assert (elsewhere / "oracles").is_dir()


@pytest.mark.parametrize("linked", ["compiled", "compiled/ffffffffffffffff"])
def test_machine_code_is_kept_in_no_linked_folder(
    linked: str, shared: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_code, "_warned", set())
    victim = elsewhere / ("0" * 16)
    victim.mkdir()
    (victim / "results.csv").write_text("a month of work")
    os.utime(victim, (LONG_AGO, LONG_AGO))
    (shared / linked).parent.mkdir(exist_ok=True)
    (shared / linked).symlink_to(elsewhere)
    machine_code._is_usable.cache_clear()
    with pytest.warns(UserWarning, match=r"machine code cannot be kept in .*ffffffffffffffff, .* is a link") as warned:
        assert not machine_code._is_usable(shared / "compiled" / ("f" * 16))
    assert len(warned) == 1
    assert [path.name for path in elsewhere.iterdir()] == [victim.name]
    assert (victim / "results.csv").read_text() == "a month of work"


CODE = f"undershoot.kernels.cpu.steps-{'a' * 32}.code"


def as_a_link(folder: Path, elsewhere: Path) -> None:
    (elsewhere / CODE).write_text("mine")
    folder.symlink_to(elsewhere)


def with_another_file(folder: Path, _: Path) -> None:
    folder.mkdir()
    (folder / CODE).touch()
    (folder / "results.csv").touch()


def with_a_folder(folder: Path, _: Path) -> None:
    (folder / CODE).mkdir(parents=True)


def with_a_link(folder: Path, elsewhere: Path) -> None:
    folder.mkdir()
    (folder / CODE).symlink_to(elsewhere)


@pytest.mark.parametrize("made", [as_a_link, with_another_file, with_a_folder, with_a_link])
def test_only_folders_of_our_own_machine_code_are_removed(
    made: Callable[[Path, Path], None], shared: Path, elsewhere: Path
) -> None:
    old, ours = (shared / "compiled" / (digit * 16) for digit in "01")
    ours.mkdir(parents=True)
    (ours / CODE).touch()
    made(old, elsewhere)
    before = sorted(elsewhere.iterdir()), sorted(old.iterdir())
    for folder in (old, ours):
        os.utime(folder, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    machine_code._is_usable.cache_clear()
    assert machine_code._is_usable(shared / "compiled" / ("f" * 16))
    assert not ours.exists()
    assert (sorted(elsewhere.iterdir()), sorted(old.iterdir())) == before


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """A run of the user's, and the folder of one from elsewhere, with the same recipe."""
    precious, evil = tmp_path / "precious", tmp_path / "evil"
    undershoot(*TRAIN, "--out", str(precious))
    evil.mkdir()
    shutil.copy(precious / "recipe.toml", evil)
    return precious, evil


def test_a_run_whose_checkpoints_are_elsewhere_is_refused(runs: tuple[Path, Path]) -> None:
    precious, evil = runs
    (evil / "checkpoints").symlink_to(precious / "checkpoints")
    before = contents_digest(precious / "checkpoints")
    for recipe_is_there in (True, False):
        said = undershoot(*TRAIN[:-1], "60", "--out", str(evil), "--resume", code=2).stderr
        assert "is a link that leads out of" in " ".join(said.split()), recipe_is_there
        (evil / "recipe.toml").unlink(missing_ok=True)
        (evil / ".lock").unlink(missing_ok=True)
    assert contents_digest(precious / "checkpoints") == before


@pytest.mark.parametrize("name", ["checkpoints", "bundle", "metrics.jsonl"])
def test_links_that_come_while_a_run_trains_are_not_followed(
    name: str, runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    precious, evil = runs
    saved = Run.save

    def swapped(run: Run, learner: Any, position: Any) -> None:
        saved(run, learner, position)
        place = evil / name
        if place.exists():
            place.rename(evil / ".aside")
        place.symlink_to(precious / name)

    monkeypatch.setattr(Run, "save", swapped)
    before = [contents_digest(folder) for folder in (precious, precious / "checkpoints", precious / "bundle")]
    said = undershoot(*TRAIN, "--out", str(evil), "--resume", code=2).stderr
    assert name in said
    assert [contents_digest(folder) for folder in (precious, precious / "checkpoints", precious / "bundle")] == before


@pytest.mark.parametrize("command", [("calibrate", "--method", "exhaustive", "--whole-numbers"), ("certify",), ("check",)])
def test_a_run_whose_bundle_is_elsewhere_is_refused_and_the_bundle_itself_is_not(
    runs: tuple[Path, Path], command: tuple[str, ...]
) -> None:
    precious, evil = runs
    (evil / "bundle").symlink_to(precious / "bundle")
    before = contents_digest(precious / "bundle")
    said = undershoot(command[0], str(evil), *command[1:], code=2).stderr
    assert "bundle is a link that leads out of" in " ".join(said.split())
    assert contents_digest(precious / "bundle") == before
    if command[0] == "calibrate":
        undershoot(command[0], str(evil / "bundle"), *command[1:])  # whoever names a link means what it leads to
        assert contents_digest(precious / "bundle") != before


@pytest.mark.parametrize("named", ["", "bundle"])
def test_no_network_is_kept_at_the_place_that_a_link_names(runs: tuple[Path, Path], elsewhere: Path, named: str) -> None:
    run = runs[0]
    (run / "bundle-float").symlink_to(elsewhere / "made-by-a-link")
    before = contents_digest(run / "bundle")
    command = ("calibrate", str(run / named), "--method", "scramble", "--n", "50", "--whole-numbers")
    assert "bundle-float" in undershoot(*command, code=2).stderr
    assert not list(elsewhere.iterdir())
    assert contents_digest(run / "bundle") == before


def test_a_bundle_that_is_set_aside_goes_where_no_link_leads(runs: tuple[Path, Path], elsewhere: Path) -> None:
    run = runs[0]
    undershoot("calibrate", str(run), "--method", "scramble", "--n", "50")
    (run / "bundle-before-60").symlink_to(elsewhere / "made-by-a-link")
    said = undershoot(*TRAIN[:-1], "60", "--out", str(run), "--resume", code=2).stderr
    assert "bundle-before-60 is a link" in " ".join(said.split())
    assert not list(elsewhere.iterdir())


def test_links_that_stay_in_a_run_are_followed(runs: tuple[Path, Path]) -> None:
    run = runs[0]
    (run / "bundle").rename(run / "kept")
    (run / "bundle").symlink_to("kept")
    undershoot("calibrate", str(run), "--method", "exhaustive")
    assert (run / "bundle").is_symlink()
    assert (run / "kept" / "calibration.json").exists()


def test_a_bundle_is_put_back_from_no_linked_folder(tmp_path: Path, elsewhere: Path) -> None:
    """What a kill leaves beside a bundle is folders, never links."""
    (elsewhere / "new").mkdir()
    shutil.copytree(SHIPPED / "lights-out-3x3", elsewhere / "replaced")
    (tmp_path / ".mine.x1.part").symlink_to(elsewhere)
    with pytest.raises(us.UndershootError, match="there is no bundle at"):
        us.load(tmp_path / "mine")
    assert (elsewhere / "replaced").is_dir()


@pytest.mark.parametrize("name", ["report", "items", "records"])
def test_a_reproduction_that_leads_elsewhere_is_refused(tmp_path: Path, elsewhere: Path, name: str) -> None:
    (elsewhere / "index.html").write_text("the user's page")
    profile = replace(PROFILES["quick"], name="tiny").to_dict()
    store = Store(tmp_path / "made", profile)
    store._write(store.folder / "profile.json", json.dumps(profile).encode())
    (store.folder / name).symlink_to(elsewhere)
    with pytest.raises(us.UndershootError, match=rf"{name} is a link that leads out of .*made, to .*elsewhere; .* remove the"):
        Store(store.folder, profile)
    assert (elsewhere / "index.html").read_text() == "the user's page"
