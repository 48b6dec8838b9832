"""Files do not speak in our voice, nor take the place of what is known by name."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import undershoot as us
from commands import undershoot
from undershoot.errors import UndershootError
from undershoot.oracles import cache as distances
from undershoot.search.results import Status

FILE = 'name = "odd"\nsummary = {}\ngoal = "a b c d"\n[moves]\nM = "(1 2 3 4)"\n'
DRAW = """
from pathlib import Path
from undershoot.experiments.figures import training_curve
training_curve('a title', [{'step': 1, 'loss': 1.0, 'depth': 1}], Path('curve.png'))
import matplotlib, os
assert os.path.exists('matplotlibrc')
print(matplotlib.rcParamsOrig['text.usetex'])
"""


@pytest.mark.parametrize("text", ['"""a puzzle\n\nProven: it never overestimates."""', json.dumps("x" * 201)])
def test_a_summary_of_several_lines_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(FILE.format(text))
    with pytest.raises(UndershootError, match="summary is one line of at most 200 characters; shorten it"):
        us.puzzle(str(path))


NO_COLOURS = """red link https://elsewhere
red link \x1b[2J\x1b[H
red not bold
link
red on blue
RED
 red
color(5)
rgb(1,2,3)
#12345
#1234567
#12345\u0661"""


@pytest.mark.parametrize("colour", [*NO_COLOURS.split("\n"), "", "red\n", "x" * 5000])
def test_a_colour_of_a_file_is_one_colour_and_no_other_part_of_a_style(tmp_path: Path, colour: str) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(FILE.format('"odd"') + f"[picture]\ncolours = {{ d = {json.dumps(colour)} }}\n")
    with pytest.raises(UndershootError, match=r"has the unknown colour '.*'; write a name such as .red3., or") as refused:
        us.puzzle(str(path))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("colour", ["red3", "grey93", "dark_orange", "default", "#ff8700", "#FF8700"])
def test_colours_may_be_names_or_numbers(tmp_path: Path, colour: str) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(FILE.format('"odd"') + f'[picture]\ncolours = {{ d = "{colour}" }}\n')
    assert us.puzzle(str(path)).picture.styles[3] == f"bold black on {colour}"


def test_a_summary_is_shown_as_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(FILE.format('"24 of 24 states checked. Proven: it never overestimates"'))
    shown = " ".join(undershoot("puzzles", str(path), columns=200).stdout.split())
    assert 'odd: what its file says: "24 of 24 states checked. Proven: it never overestimates"' in shown
    assert "what its file says" not in undershoot("puzzles", "tiles-2x3").stdout


def test_a_file_of_instances_is_called_a_file_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "uniform states, seed 0").write_text("2: D D\n")
    bench = ("bench", "tiles-3x3", "--heuristics", "base", "--instances", "uniform states, seed 0")
    shown = " ".join(undershoot(*bench, folder=tmp_path).stdout.split())
    assert "1 instances (file uniform states, seed 0)" in shown
    assert json.loads(undershoot(*bench, "--json", folder=tmp_path).stdout)["population"] == "file uniform states, seed 0"


def test_no_rate_is_told_of_seconds_that_a_file_claims(tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-2x3")
    table = us.oracle(puzzle, cache_dir=tmp_path)
    path = distances._path(tmp_path / "oracles", puzzle, None)
    distances.save(path, dataclasses.replace(table, seconds=1e-9))
    for _ in range(2):  # verified now, and recorded as verified then
        shown = undershoot("oracle", "tiles-2x3", "--cache-dir", str(tmp_path)).stdout
        assert "360 states, mean cost" in shown
        assert "per second" not in shown
        assert "explored" not in shown
        document = json.loads(undershoot("oracle", "tiles-2x3", "--cache-dir", str(tmp_path), "--json").stdout)
        assert document["seconds"] is document["states_per_second"] is None


@pytest.mark.parametrize("content", [b"\xff\xfe", b"text.usetex: True\n", b"backend: module://evil\n"])
def test_settings_for_pictures_in_the_working_folder_are_not_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "matplotlibrc").write_bytes(content)
    done = subprocess.run([sys.executable, "-c", DRAW], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
    assert (tmp_path / "curve.png").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_for_settings_of_pictures_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "matplotlibrc")
    done = subprocess.run([sys.executable, "-c", DRAW], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_for_a_puzzle_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "link.toml").symlink_to("/dev/zero")
    for name in ("pipe.toml", "link.toml"):
        code = f"import undershoot as us\ntry: us.puzzle({name!r})\nexcept us.UndershootError as error: print(error)"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=20
        )
        assert done.stdout == f"cannot read the puzzle file {name}: it is a pipe or a device; give the path of a file\n"


def test_what_is_said_of_a_state_without_a_solution_is_true_of_every_search() -> None:
    """IDA* does not expand every reachable state, and a table may say that one is dead before anything is expanded."""
    assert Status.UNSOLVABLE.sentence == "no sequence of moves reaches the goal: nothing is left to search"


def test_names_of_known_heuristics_win_over_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("tiles-3x3")
    (tmp_path / "base+learned").mkdir()
    monkeypatch.chdir(tmp_path)
    assert us.heuristic(puzzle, "base+learned").guarantee.is_proven
    (tmp_path / "base+other").mkdir()
    with pytest.raises(UndershootError, match="no bundle in the folder"):
        us.heuristic(puzzle, "base+other")
