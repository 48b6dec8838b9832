"""Instances searched by the workers of a cluster: the same answers, in the same order."""

import json
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import commands
import undershoot as us
from made_patterns import trained
from subjects import PYRAMINX
from undershoot import files
from undershoot.bundles.reading import read_bundle
from undershoot.experiments import executors, spreading
from undershoot.experiments.executors import Workers
from undershoot.experiments.spreading import searching, spread
from undershoot.guarantees import Heuristic, Standing
from undershoot.heuristics.calibrated import CalibratedHeuristic
from undershoot.heuristics.learned_patterns import learned_patterns
from undershoot.heuristics.table import TableHeuristic
from undershoot.puzzles.definitions import Definition
from undershoot.search.results import Result


class Elsewhere(Executor):
    """What is sent is pickled and read again, as on its way to another machine; and what comes back is, too."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(3)
        self.sent: list[int] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        parcel = pickle.dumps((function, arguments))
        self.sent.append(len(parcel))

        def work() -> Any:
            there, given = pickle.loads(parcel)
            return pickle.loads(pickle.dumps(there(*given)))

        return self.threads.submit(work)


@pytest.fixture
def workers() -> Workers:
    return Workers(Elsewhere(), 3)


def plain(results: list[Result]) -> list[Result]:
    return [replace(result, seconds=0.0) for result in results]


@pytest.mark.parametrize(
    ("name", "heuristic"),
    [
        ("tiles-3x3", "learned"),
        ("tiles-3x3", "base+small"),
        ("tiles-2x3", "table"),
        ("lights-out-3x3", "gf2"),
        ("lights-out-3x3", "paper"),
        (PYRAMINX, "zero"),
        ("tiles-4x4", "learned"),
    ],
)
def test_answers_and_counters_are_those_of_this_machine(workers: Workers, name: str, heuristic: str) -> None:
    puzzle = us.puzzle(name)
    states = us.scramble(puzzle.table, np.arange(50) % 6, 1).states
    guide, options, ended = us.heuristic(puzzle, heuristic), us.SearchOptions(max_expanded=200), list[int]()
    there = spread(workers, puzzle, options, states, guide, ended.append)
    here = us.solve_many(puzzle, states, guide, options)
    assert plain(there.results) == plain(here)
    assert len(workers.executor.sent) == 10  # type: ignore[attr-defined]  # of five states each
    assert ended == sorted(ended)
    assert ended[-1] == 50


def test_what_is_known_of_a_bundle_here_is_known_there(workers: Workers) -> None:
    """Neither more nor less: the worker's own records do not count."""
    puzzle, bundle = us.puzzle("lights-out-3x3"), read_bundle("lights-out-3x3")
    states = puzzle.sample(5, 1)
    assert bundle.calibration is not None
    unknown = replace(bundle.calibration, guarantee=replace(bundle.calibration.guarantee, standing=Standing.NONE))
    for guide in (bundle.heuristic, CalibratedHeuristic(bundle.raw, unknown), bundle.raw):
        there = spread(workers, puzzle, us.SearchOptions(), states, guide)
        assert plain(there.results) == plain(us.solve_many(puzzle, states, guide))


SIX = """name = "six"
goal = "1 2 3 4 5 0"
cursor = "0"
[moves]
U = { at = { 1 = "(1 4)", 2 = "(2 5)", 3 = "(3 6)" } }
D = { at = { 4 = "(4 1)", 5 = "(5 2)", 6 = "(6 3)" } }
L = { at = { 1 = "(1 2)", 2 = "(2 3)", 4 = "(4 5)", 5 = "(5 6)" } }
R = { at = { 2 = "(2 1)", 3 = "(3 2)", 5 = "(5 4)", 6 = "(6 5)" } }
[patterns]
halves = """


def test_networks_on_patterns_are_asked_about_the_patterns_that_they_were_learned_on(workers: Workers, tmp_path: Path) -> None:
    """Whatever the puzzle that is searched calls by the same name."""
    for name, halves in (("theirs", '"1 2 5 / 3 4"'), ("mine", '"1 2 3 / 4 5"')):
        (tmp_path / f"{name}.toml").write_text(SIX + halves)
    theirs, mine = (us.puzzle(str(tmp_path / f"{name}.toml")) for name in ("theirs", "mine"))
    assert theirs.table.fingerprint == mine.table.fingerprint
    set_name, networks, _ = trained(theirs, "halves")
    listed = replace(
        networks[0],
        thresholds=(2**24,) * len(networks[0].thresholds),
        listed=np.array([27]),
        listed_costs=np.array([9], dtype=np.uint8),
    )
    guide = learned_patterns("halves", theirs, set_name, [listed, *networks[1:]])
    states = us.scramble(mine.table, np.full(40, 30), 1).states
    there = spread(workers, mine, us.SearchOptions(), states, guide)
    assert plain(there.results) == plain(us.solve_many(mine, states, guide))


def test_tables_are_not_sent(workers: Workers) -> None:
    puzzle = us.puzzle("tiles-3x3")
    spread(workers, puzzle, us.SearchOptions(), puzzle.sample(4, 1), us.heuristic(puzzle, "table"))
    assert max(workers.executor.sent) < 10_000  # type: ignore[attr-defined]


def test_what_cannot_be_sent_is_refused(workers: Workers) -> None:
    puzzle = us.puzzle("tiles-2x3")
    mine: Heuristic = us.wrap(puzzle, lambda states: np.zeros(len(states)), name="base")  # no name says what it does
    ball = TableHeuristic(us.oracle(puzzle, radius=5))
    for guide in (mine, us.calibrate(us.wrap(puzzle, lambda s: np.zeros(len(s)), name="mine")).heuristic, ball):
        with pytest.raises(us.UndershootError, match="cannot be sent to other machines; leave --scheduler out"):
            spread(workers, puzzle, us.SearchOptions(), puzzle.sample(4, 1), guide)


def test_bad_states_and_failing_workers_are_named(workers: Workers) -> None:
    puzzle, options = us.puzzle("tiles-2x3"), us.SearchOptions()
    base = us.heuristic(puzzle, "base")
    with pytest.raises(us.UndershootError, match="states must be an array"):
        spread(workers, puzzle, options, np.zeros((1, 4), dtype=np.uint8), base)
    assert spread(workers, puzzle, options, puzzle.table.goals[:0], base).results == []
    states = puzzle.sample(4, 1)
    task = spreading._Task(Definition(puzzle.name, "", "another"), ("base",), options)
    with pytest.raises(us.UndershootError, match="a worker knows another puzzle by the name tiles-2x3"):
        spreading.do_chunk(task, states)

    class Gone(Executor):
        def submit(self, *arguments: Any, **named: Any) -> "Future[Any]":
            future: Future[Any] = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    with pytest.raises(us.UndershootError, match="the scheduler went away"):
        spread(Workers(Gone(), 1), puzzle, options, states, base)


def test_a_worker_with_other_sources_of_the_same_version_is_not_believed(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    puzzle = us.puzzle("tiles-2x3")
    sent = files.sources_digest()
    known = iter([sent])  # here, and then on a worker
    monkeypatch.setattr(executors, "sources_digest", lambda: next(known, "0123456789abcdef"))
    with pytest.raises(us.UndershootError, match=f"other source files .* 0123456789ab.*{sent[:12]}.*; install the same"):
        spread(workers, puzzle, us.SearchOptions(), puzzle.sample(1, 1), us.heuristic(puzzle, "base"))


def test_the_digest_of_sources_goes_by_names_and_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def digest() -> str:
        monkeypatch.setattr(files, "__file__", str(tmp_path / "undershoot" / "files.py"))
        return files.sources_digest.__wrapped__()

    module = tmp_path / "undershoot" / "search" / "steps.py"
    module.parent.mkdir(parents=True)
    module.write_text("COST = 1\n")
    before = digest()
    os.utime(module, (0, 0))
    (module.parent / "notes.txt").write_text("not a source")
    assert digest() == before
    module.write_text("COST = 2\n")
    changed = digest()
    module.write_text("COST = 1\n")
    assert digest() == before != changed
    module.rename(module.with_name("moves.py"))
    assert digest() not in (before, changed)


@pytest.fixture(scope="module")
def cluster_address() -> Iterator[str]:
    from distributed import LocalCluster

    with LocalCluster(1, threads_per_worker=2, dashboard_address=None) as local:  # type: ignore[no-untyped-call]
        yield str(local.scheduler_address)


def without_times(document: dict[str, Any]) -> dict[str, Any]:
    timed = ("seconds", "expanded_per_second", "peak_bytes")
    document.pop("loading_seconds", None)
    for part in (*document.get("results", ()), *document.get("heuristics", ())):
        for name in timed:
            part.pop(name, None)
    return document


@pytest.mark.parametrize(
    "arguments",
    [
        ("solve", "tiles-2x3", "--random", "9", "--heuristic", "base"),
        ("solve", "tiles-2x3", "5 4 3 2 1 0", "--heuristic", "table"),
        ("bench", "tiles-2x3", "--random", "20", "--heuristics", "base,zero"),
    ],
    ids=" ".join,
)
def test_solve_and_bench_take_a_scheduler(arguments: tuple[str, ...], cluster_address: str) -> None:
    here = json.loads(commands.undershoot(*arguments, "--json").stdout)
    there = json.loads(commands.undershoot(*arguments, "--json", "--scheduler", cluster_address).stdout)
    assert without_times(there) == without_times(here)


@pytest.mark.parametrize("command", ["solve", "bench"])
def test_schedulers_that_cannot_be_used_are_refused(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    search = (command, "tiles-2x3", "--random", "2")
    assert "must be an address" in commands.undershoot(*search, "--scheduler", "nonsense", code=2).stderr
    nobody = commands.undershoot(*search, "--scheduler", "tcp://127.0.0.1:9", code=2).stderr
    assert "no Dask scheduler answers" in nobody
    both = commands.undershoot(*search, "--scheduler", "tcp://127.0.0.1:9", "--threads", "2", code=2).stderr
    assert "--threads is for this machine" in both
    monkeypatch.setitem(sys.modules, "distributed", None)
    missing = commands.undershoot(*search, "--scheduler", "tls://127.0.0.1:9", code=2).stderr
    assert "--scheduler needs Dask: pip install 'undershoot[cluster]'" in missing


def test_without_a_scheduler_threads_of_this_machine_search() -> None:
    puzzle = us.puzzle("tiles-2x3")
    states, guide = puzzle.sample(10, 1), us.heuristic(puzzle, "base")
    with searching(puzzle, us.SearchOptions(), threads=2) as search:
        assert plain(search(states, guide).results) == plain(us.solve_many(puzzle, states, guide))
