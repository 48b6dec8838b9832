"""The command line as a user meets it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commands import undershoot
from subjects import PYRAMINX

ROOT = Path(__file__).parent.parent


def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """In a process of its own."""
    environment = {**os.environ, "COLUMNS": "100"}
    command = [sys.executable, "-m", "undershoot", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_oracle_prints_the_histogram_for_people_and_for_programs(tmp_path: Path) -> None:
    shown = run("oracle", "tiles-2x3", "--cache-dir", str(tmp_path)).stdout
    assert "tiles-2x3: all states by their cost to the goal" in shown
    assert "360 states, mean cost" in shown
    assert "states per second" in shown
    document = json.loads(run("oracle", "tiles-2x3", "--json").stdout)
    assert {"puzzle", "states", "radius", "histogram", "mean", "seconds"} <= set(document)
    assert (document["puzzle"], document["states"], document["radius"]) == ("tiles-2x3", 360, None)
    assert sum(document["histogram"]) == 360
    ball = json.loads(run("oracle", "cube-3x3", "--radius", "3", "--json").stdout)
    assert (ball["radius"], ball["histogram"]) == (3, [1, 18, 243, 3240])


def test_oracle_keeps_its_cache_where_it_is_told(tmp_path: Path) -> None:
    run("oracle", "tiles-2x3", "--cache-dir", str(tmp_path))
    (path,) = tmp_path.rglob("tiles-2x3-*.npz")
    path.write_bytes(b"damaged")
    assert "undershoot: warning: the cached distances" in run("oracle", "tiles-2x3", "--cache-dir", str(tmp_path)).stderr


def test_puzzles_lists_shows_and_checks() -> None:
    assert "lights-out-RxC" in run("puzzles").stdout
    shown = undershoot("puzzles", "cube-2x2").stdout
    assert "3,674,160" in shown
    assert "UUUURRRRFFFFDDDDLLLLBBBB" in shown
    assert "is a valid puzzle file" in undershoot("puzzles", "--check", PYRAMINX).stdout
    listed = json.loads(undershoot("puzzles", "--json").stdout)["puzzles"]
    assert {"tiles-3x3", "cube-2x2"} <= {puzzle["name"] for puzzle in listed}
    assert json.loads(undershoot("puzzles", "8-puzzle", "--json").stdout)["states"] == 181_440
    one, two = (undershoot("puzzles", "cube-2x2", "--seed", seed).stdout for seed in "12")
    assert one != two


def test_solve_shows_the_state_the_moves_and_what_is_proven() -> None:
    shown = run("solve", "cube-2x2", "R U F2 R'", "--show").stdout
    assert "cost 4: optimal, proven (cost - lower bound = 0)" in shown
    assert "4. " in shown
    document = json.loads(undershoot("solve", "tiles-3x3", "1 2 3 4 5 6 0 7 8", "--json").stdout)
    (result,) = document["results"]
    assert (document["puzzle"], document["heuristic"]) == ("tiles-3x3", "learned, exhaustive")
    assert (result["cost"], result["actions"], result["optimality"], result["lower_bound"]) == (2, ["L", "L"], "proven", 2)
    fields = {"state", "status", "expanded", "expanded_below", "generated", "evaluated", "reopened", "overestimates", "seconds"}
    assert fields <= set(result)
    many = undershoot("solve", "tiles-3x3", "--random", "5", "--seed", "3").stdout
    assert "5 of 5 solved, 5 proven optimal" in many
    deep = undershoot("solve", "cube-3x3", "--scramble-depth", "3", "--heuristic", "zero", "--ties", "shallow").stdout
    assert "cost 3: optimal, proven" in deep


def test_a_search_that_is_stopped_says_so_and_exits_with_1() -> None:
    done = run("solve", "tiles-4x4", "--random", "1", "--max-expanded", "100", "--heuristic", "base", code=1)
    assert "stopped at the limit of expansions; raise --max-expanded" in done.stdout
    assert "Every solution costs at least" in done.stdout
    asked = ("solve", "tiles-4x4", "--random", "1", "--max-expanded=100", "--heuristic=base", "--json")
    document = json.loads(undershoot(*asked, code=1).stdout)
    assert (document["results"][0]["status"], document["results"][0]["cost"]) == ("budget", None)


def test_bench_compares_heuristics_on_the_same_instances(tmp_path: Path) -> None:
    out = tmp_path / "records.parquet"
    shown = undershoot("bench", "tiles-3x3", "--heuristics", "base,table", "--random", "20", "--out", str(out)).stdout
    assert "40 records written" in shown
    assert out.exists()
    instances = tmp_path / "instances.txt"
    instances.write_text("# a comment\n2: D D\n")
    for source in (("--instances", str(instances)), ("--scrambles", "1..3", "--per-depth", "4")):
        document = json.loads(undershoot("bench", "tiles-3x3", *source, "--json").stdout)
        assert document["puzzle"] == "tiles-3x3"
        assert [h["name"] for h in document["heuristics"]] == ["learned, exhaustive", "base", "zero"]
        fields = {"name", "guarantee", "solve_rate", "mean_expanded", "mean_expanded_common", "mean_expanded_below", "reopened"}
        fields |= {"gap_percent", "expanded_per_second", "seconds", "peak_bytes"}
        assert fields <= set(document["heuristics"][0])


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("oracle", "tile-3x3"), 'no puzzle "tile-3x3". Did you mean "tiles-3x3"'),
        (("oracle", "tiles-9x9"), "R and C from 2 to 6"),
        (("oracle", "tiles-4x4"), "TB of memory"),
        (("oracle", "tiles-3x3", "--radius", "-2"), "the radius (--radius, --ball) is -2"),
        (("oracle", "tiles-3x3", "--radius", "much"), "invalid value"),
        (("oracle", "nowhere.toml"), "cannot read the puzzle file nowhere.toml"),
        (("puzzles", "--check", "README.md"), "README.md is not a TOML file"),
        (("puzzles", "cube-2x2", "--check", PYRAMINX), "choose one"),
        (("nonsense",), "no such command"),
        (("solve", "tiles-3x3", "1 2 3 4 5 6 8 7 0"), "odd parity"),
        (("solve", "tiles-3x3", "UUUURRRR"), "neither a move nor a value"),
        (("solve", "tiles-3x3", "--heuristic", "gf2"), "gf2 is for Lights Out"),
        (("solve", "tiles-3x3", "--heuristic", "nonsense"), 'no heuristic "nonsense"'),
        (("solve", "tiles-3x3", "D", "--random", "2"), "exclude one another"),
        (("solve", "tiles-3x3", "--weight", "0.5"), "the weight (--weight) is 0.5"),
        (("solve", "tiles-3x3", "--ties", "middle"), '--ties is "middle"; allowed are deep and shallow'),
        (("solve", "tiles-3x3", "--max-memory", "lots"), '"lots" is no amount of memory'),
        (("solve", "tiles-3x3", "--random", "0"), "at least 1 is needed"),
        (("bench", "tiles-3x3", "--heuristics", ","), "no heuristics are named"),
        (("bench", "tiles-3x3", "--random", "2", "--scrambles", "3"), "exclude one another"),
        (("bench", "tiles-3x3", "--instances", "nowhere.txt"), "cannot read the instances nowhere.txt"),
        (("puzzles", "tiles-3x3", "--seed", "-1"), "or equal to 0"),
    ],
)
def test_bad_input_gets_one_message_and_exit_code_2(arguments: tuple[str, ...], part: str) -> None:
    done = undershoot(*arguments, code=2, folder=ROOT)
    assert part in re.sub(r"\s+", " ", done.stderr)
    assert done.stdout == ""


def test_brackets_in_a_summary_are_just_brackets(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('name = "p"\nsummary = "x [/] y [red]"\ngoal = "a b"\n[moves]\nm = "(1 2)"\n')
    assert "x [/] y [red]" in undershoot("puzzles", str(tmp_path / "p.toml")).stdout


def test_terminals_without_block_characters_are_no_reason_to_fail() -> None:
    command = [sys.executable, "-m", "undershoot", "oracle", "tiles-2x3"]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert b"360 states" in done.stdout
