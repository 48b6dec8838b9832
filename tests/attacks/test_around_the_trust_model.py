"""Files that are not read as data but run, followed or believed on the way: each of these worked once."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undershoot as us
from commands import undershoot
from undershoot.errors import UndershootError
from undershoot.files import read_json
from undershoot.search.options import Algorithm, SearchOptions
from undershoot.search.results import Status

NARROW = """
name = "narrow"
goal = "a b c d e"
[moves]
r = "(1 2 3)"
x = { cycles = "(4 5)", cost = 60000 }
"""


@pytest.fixture
def narrow(tmp_path: Path) -> Any:
    """A puzzle with one or two ways on from each state, whose solution is dear."""
    (tmp_path / "narrow.toml").write_text(NARROW)
    return us.puzzle(str(tmp_path / "narrow.toml"))


PLANTED = "open('ran', 'w').close()\nraise SystemExit('planted')\n"


def test_workers_of_the_studio_take_no_modules_from_the_present_folder(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text(PLANTED)
    script = (
        "import sys; sys.path[:] = [p for p in sys.path if p]\n"
        "import asyncio, os\n"
        "from undershoot.studio.processes import Worker\n"
        "async def main():\n"
        "    worker = await Worker().start()\n"
        "    worker.process.stdin.close()\n"
        "    await worker.process.wait()\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-P", "-c", script], cwd=tmp_path, check=True, capture_output=True)
    assert not (tmp_path / "ran").exists()


def test_processes_take_no_modules_from_the_present_folder(tmp_path: Path) -> None:
    (tmp_path / "multiprocessing").mkdir()
    (tmp_path / "multiprocessing" / "__init__.py").write_text(PLANTED)
    script = (
        "from undershoot.experiments.executors import processes\n"
        "import os\n"
        "with processes(1) as workers:\n"
        "    print(workers.submit(abs, -1).result())\n"
    )
    subprocess.run([sys.executable, "-P", "-c", script], cwd=tmp_path, check=True, capture_output=True)
    assert not (tmp_path / "ran").exists()
    assert os.environ.get("PYTHONSAFEPATH") is None


def test_what_torch_compiled_is_kept_where_only_the_user_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    from undershoot import trust
    from undershoot.kernels import fused

    monkeypatch.delenv(fused.CACHE_DIR, raising=False)
    fused._keep_to_ourselves.cache_clear()
    fused.compiled(lambda x: x, dynamic=True)
    chosen = Path(os.environ[fused.CACHE_DIR])
    assert chosen.parent == trust.state_folder()
    assert chosen.stat().st_mode & 0o077 == 0
    monkeypatch.delenv(fused.CACHE_DIR)
    fused._keep_to_ourselves.cache_clear()


@pytest.mark.parametrize("threads", [1, 2])
def test_ida_looks_at_the_clock_however_short_its_iterations_are(narrow: Any, threads: int) -> None:
    state = narrow.parse("a b c e d")
    for limit in (
        SearchOptions(algorithm=Algorithm.IDA, max_seconds=0.3),
        SearchOptions(algorithm=Algorithm.IDA, max_expanded=5000),
    ):
        result = us.solve_many(narrow, state, us.heuristic(narrow, "base"), limit, threads=threads)[0]
        assert result.status in (Status.TIME, Status.BUDGET)
        assert result.seconds < 5
        assert result.lower_bound <= 60_000


@pytest.fixture
def ring(tmp_path: Path) -> Any:
    """A puzzle with one dear move, and 1,155 states."""
    (tmp_path / "ring.toml").write_text(
        'name = "ring"\ngoal = "a b c d e f g h i j k l m n o p q r s t u v w x y z"\n[moves]\n'
        'm = { cycles = "(1 2 3)(4 5 6 7 8)(9 10 11 12 13 14 15)(16 17 18 19 20 21 22 23 24 25 26)", cost = 65535 }\n'
    )
    return us.puzzle(str(tmp_path / "ring.toml"))


def test_costs_that_ida_does_not_count_to_do_not_end_the_others(ring: Any) -> None:
    state = us.scramble(ring.table, np.array([20]), 1).states
    options = SearchOptions(algorithm=Algorithm.BOTH, max_seconds=60.0)
    *_, last = us.improve(ring, state, us.heuristic(ring, "zero"), options=options)
    assert last.cost == 20 * 65535 > 1 << 20
    assert str(last.optimality) == "optimal, proven"


def test_what_is_found_stays_where_costs_are_higher_than_any_search_counts_to(ring: Any) -> None:
    state = us.scramble(ring.table, np.array([300]), 1).states
    *_, last = us.improve(ring, state, us.heuristic(ring, "zero"))
    assert last.status is Status.COST
    assert last.cost is not None
    assert last.cost >= 300 * 65535 > last.lower_bound >= 1 << 20
    assert "higher than searches count to" in last.status.sentence


def test_training_writes_through_no_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    run = tmp_path / "run"
    run.mkdir()
    (run / ".lock").symlink_to(precious)
    said = undershoot("train", "tiles-2x3", "--recipe", "mse", "--steps", "30", "--out", str(run), code=2).stderr
    assert ".lock" in said
    assert precious.read_text() == "precious"
    (run / ".lock").unlink()
    undershoot("train", "tiles-2x3", "--recipe", "mse", "--steps", "30", "--out", str(run))
    (run / "metrics.jsonl").unlink()
    (run / "metrics.jsonl").symlink_to(precious)
    resume = ("train", "tiles-2x3", "--recipe", "mse", "--steps", "40", "--out", str(run), "--resume")
    assert "metrics" in undershoot(*resume, code=2).stderr
    assert precious.read_text() == "precious"


def test_pictures_beside_a_run_are_written_through_no_link(tmp_path: Path) -> None:
    precious, run = tmp_path / "precious", tmp_path / "run"
    precious.write_text("precious")
    train = ("train", "tiles-2x3", "--recipe", "mse", "--out", str(run))
    undershoot(*train, "--steps", "30")
    (run / "training.png").unlink()
    for name in ("training.png", "bundle-landscape.png"):
        (run / name).symlink_to(precious)
    undershoot(*train, "--steps", "40", "--resume")
    undershoot("calibrate", str(run))
    assert precious.read_text() == "precious"
    assert not any((run / name).is_symlink() for name in ("training.png", "bundle-landscape.png"))


def test_pictures_are_drawn_with_our_settings(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")
    script = "from pathlib import Path\nfrom undershoot.experiments.figures import training_curve\n" + (
        "training_curve('a $title', [{'step': 1, 'loss': 1.0, 'depth': 1}], Path('curve.png'))\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "curve.png").exists()


def test_half_a_character_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"command": "\ud800"}))
    with pytest.raises(UndershootError, match=r"config\.json is damaged"):
        read_json(path, "the file")


def test_dear_moves_are_not_taken_for_dead_ends_on_a_device(tmp_path: Path) -> None:
    from undershoot.heuristics.device_patterns import on_device
    from undershoot.search.device.depth_first import deepen_on_device

    (tmp_path / "dear.toml").write_text(
        'name = "dear"\ngoal = "a b c d"\n[moves]\nx = { cycles = "(1 2)", cost = 200 }\n'
        'y = { cycles = "(3 4)", cost = 20000 }\n'
    )
    puzzle = us.puzzle(str(tmp_path / "dear.toml"))
    patterns = us.patterns(puzzle, "a b")
    with pytest.raises(UndershootError, match="costs above 10,000 are not searched on a device"):
        deepen_on_device(puzzle, puzzle.parse("a b d c"), on_device(patterns, "cpu"), SearchOptions(algorithm=Algorithm.IDA))
