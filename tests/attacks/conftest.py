"""Victims, and a user who has not checked anything yet."""

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import undershoot as us
from test_bundles import some_network
from undershoot import trust
from undershoot.bundles.bundle import Bundle
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import calibrate
from undershoot.certification import certificate, check_every_state
from undershoot.guarantees import Rounding
from undershoot.heuristics.whole_numbers import to_whole_numbers
from undershoot.oracles.breadth_first import explore

Make = Callable[..., Path]


@cache
def made(name: str, method: str, whole: bool, rounding: Rounding, ball: int | None) -> Bundle:
    puzzle = us.puzzle(name)
    network = some_network(puzzle, (16, 8))
    bundle = Bundle(puzzle, to_whole_numbers(network, puzzle.encoding, puzzle.sample(2000, 1)) if whole else network)
    wanted = Wanted(listed=0.02, rounding=rounding, ball=ball, depths=(1, 2, 3, 4))
    bundle = dataclasses.replace(bundle, calibration=calibrate(bundle.raw, method, wanted))
    if method not in ("exhaustive", "exceptions"):
        return bundle
    found = check_every_state(bundle.heuristic, explore(puzzle, radius=ball), 2)
    return dataclasses.replace(bundle, certificate=certificate(bundle, found))


def with_key_of(own_state: Path, folder: Path) -> Path:
    """A state folder in which nothing is recorded, with the key of this run: machine code that others signed is compiled anew,
    and what a stranger made with the very same key must still be believed no more than its files prove."""
    folder.mkdir(exist_ok=True, mode=0o700)
    if not (folder / "key").exists():
        shutil.copy(own_state / "key", folder)
    return folder


@pytest.fixture
def make(tmp_path: Path, own_state: Path) -> Make:
    """Writes a bundle that is right, as its maker's machine would, and hands over its folder."""

    def write(
        name: str = "tiles-2x3",
        method: str = "exhaustive",
        whole: bool = True,
        rounding: Rounding = Rounding.INTEGER,
        ball: int | None = None,
    ) -> Path:
        folder = tmp_path / f"{name}-{method}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("UNDERSHOOT_STATE_DIR", str(with_key_of(own_state, tmp_path / "state of the maker")))
            patch.setattr(trust, "_of_this_process", set())
            made(name, method, whole, rounding, ball).save(folder)
        return folder

    return write


@pytest.fixture(autouse=True)
def stranger(tmp_path: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user to whose machine the files come: nothing was checked there."""
    with monkeypatch.context() as patch:
        patch.setenv("UNDERSHOOT_STATE_DIR", str(with_key_of(own_state, tmp_path / "state")))
        patch.setattr(trust, "_of_this_process", set())
        yield tmp_path / "state"
