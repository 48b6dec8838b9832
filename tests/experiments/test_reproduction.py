"""Items, store, runner and report, on a profile small enough for tests."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

import commands
import undershoot as us
from undershoot.bundles.bundle import SHIPPED
from undershoot.experiments import protocol
from undershoot.experiments.executors import Workers, cluster, processes
from undershoot.experiments.items import VOUCHED, Item
from undershoot.experiments.measures import Columns, expanded, share, shares, spread
from undershoot.experiments.protocol import PARTS, PROFILES, Profile, items, populations, searches
from undershoot.experiments.report import make_report
from undershoot.experiments.runner import run, with_needs
from undershoot.experiments.store import RECORDS, Store, table_bytes
from undershoot.experiments.tables import by_depth, table_one
from undershoot.experiments.work import TIMED, do
from undershoot.training.recipes import RECIPES

TINY = replace(
    PROFILES["quick"],
    name="tiny",
    steps=100,
    per_depth=2,
    published=6,
    uniform=4,
    calibration_states=300,
    slice=5,
    ball_radius=2,
    ball_steps=20,
    calibrators=("lights-out-3x3",),
)
SMALL = ("lights-out-3x3", "tiles-3x3")
"""Without the larger spaces; the sketch is of the 8-puzzle then."""


@contextmanager
def here() -> Iterator[Workers]:
    with ThreadPoolExecutor(1) as pool:
        yield Workers(pool, 1)


@pytest.fixture(scope="module")
def small_items() -> list[Item]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "PUZZLES", SMALL)
        patch.setattr(protocol, "SKETCH", "tiles-3x3")
        parts = items(TINY, ("table1", "ablation", "calibrators", "sketch"))
    return [item for part in parts.values() for item in part]


@pytest.fixture(scope="module")
def finished(small_items: list[Item], tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("done"), TINY.to_dict())
    run(small_items, store, here)
    return store


def contents(store: Store, items: list[Item]) -> dict[str, object]:
    """All records without what may differ."""
    found = {}
    for kind in ("train", "space", "search"):
        table = store.records([item for item in items if item.kind == kind])
        found[kind] = table.drop_columns([name for name in TIMED if name in table.column_names]).to_pylist()
    return found


def test_an_item_is_named_by_what_it_does() -> None:
    one = Item("train", {"puzzle": "tiles-3x3", "seed": 0})
    assert one.key == Item("train", {"seed": 0, "puzzle": "tiles-3x3"}).key
    assert one.key != Item("train", {"puzzle": "tiles-3x3", "seed": 1}).key
    assert Item("search", {"a": 1}, {"training": one}).key != Item("search", {"a": 1}).key


def test_profiles_have_all_parts_and_the_published_protocol() -> None:
    for profile in PROFILES.values():
        assert set(items(profile)) == set(PARTS) - {"report"}
        assert profile.budget == 1000
    full = PROFILES["paper"]
    assert (full.seeds, full.steps, full.per_depth, full.calibration_states) == ((0, 1, 2, 3, 4), 20_000, 1000, 10_000)
    assert populations(full, "lights-out-3x3")["all depths"]["depths"] == list(range(1, 10))
    assert populations(full, "tiles-3x3")["all depths"]["depths"] == list(range(1, 11))
    assert [populations(full, name)["published"]["depths"] for name in ("lights-out-3x3", "cube-2x2")] == [[8], [10]]
    slices = searches(full, "tiles-3x3", populations(full, "tiles-3x3")["all depths"], "base")
    assert [(s.spec["start"], s.spec["stop"]) for s in slices] == [(k, k + 1000) for k in range(0, 10_000, 1000)]


def test_what_is_needed_comes_first_and_once(small_items: list[Item]) -> None:
    order = list(with_needs(small_items).values())
    places = {item.key: number for number, item in enumerate(order)}
    assert len(places) == len(order)
    assert all(places[need.key] < places[item.key] for item in order for need in item.needs.values())


def test_records_agree_with_searches_made_directly(finished: Store, small_items: list[Item]) -> None:
    puzzle = us.puzzle("tiles-3x3")
    found = Columns.from_table(finished.records([item for item in small_items if item.kind == "search"]))
    chosen = found.where(puzzle="tiles-3x3", heuristic="base", population="published")
    states = us.scramble(puzzle.table, np.full(TINY.published, 10), TINY.instance_seed).states
    options = us.SearchOptions(ties=us.Ties.SHALLOW, max_expanded=TINY.budget)
    results = us.solve_many(puzzle, states, us.heuristic(puzzle, "base"), options)
    assert chosen.of("expanded").tolist() == [result.expanded for result in results]
    assert chosen.of("true_cost").tolist() == us.oracle(puzzle).distance(states).tolist()
    assert expanded(chosen) == np.mean([result.expanded for result in results])


def test_nothing_is_done_twice_and_damage_is_named_and_mended(finished: Store, small_items: list[Item]) -> None:
    assert run(small_items, finished, here) == 0
    before = contents(finished, small_items)
    victim = next(item for item in small_items if item.kind == "search")
    data = bytearray(finished.path(victim).read_bytes())
    data[len(data) // 2] ^= 1
    finished.path(victim).write_bytes(data)
    with pytest.warns(UserWarning, match=victim.key):
        assert run(small_items, finished, here) == 1
    assert contents(finished, small_items) == before


def test_damage_of_any_kind_is_seen(tmp_path: Path) -> None:
    store, item = Store(tmp_path / "store", TINY.to_dict()), Item("train", {"puzzle": "tiles-3x3"})
    store.write(item, {RECORDS: bytes(range(200)), "seconds.txt": b"1.0"})
    whole = store.path(item).read_bytes()
    expected = {RECORDS: bytes(range(200)), "seconds.txt": b"1.0"}
    assert store.read(item) == {**expected, VOUCHED: b""}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for at in range(0, len(whole), 3):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << at % 8
            store.path(item).write_bytes(damaged)
            assert store.read(item) in (None, expected, {**expected, VOUCHED: b""})
    other = Item("train", {"puzzle": "cube-2x2"})
    store.path(other).write_bytes(whole)
    with pytest.warns(UserWarning, match="of other work"):
        assert store.read(other) is None


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 30
    while Path(f"/proc/{worker}").exists() and Path(f"/proc/{worker}/stat").read_text().split()[2] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.2)


PARENT = """
import os, time
from undershoot.experiments.executors import processes
if __name__ == "__main__":
    with processes(1) as workers:
        print(workers.executor.submit(os.getpid).result(), flush=True)
        time.sleep(60)
"""


def test_processes_make_the_same_records(finished: Store, small_items: list[Item], tmp_path: Path) -> None:
    some = [item for item in small_items if item.spec["puzzle"] == "lights-out-3x3"]
    other = Store(tmp_path / "other", TINY.to_dict())
    assert run(some, other, lambda: processes(2)) == len(with_needs(some))
    assert contents(other, some) == contents(finished, some)


def _workers(count: int) -> Any:
    from distributed import LocalCluster

    return LocalCluster(count, threads_per_worker=1, dashboard_address=None)  # type: ignore[no-untyped-call]


def test_a_worker_of_a_cluster_that_is_killed_costs_no_records(
    finished: Store, small_items: list[Item], tmp_path: Path
) -> None:
    some = [item for item in small_items if item.spec["puzzle"] == "lights-out-3x3"]
    other = Store(tmp_path / "other", TINY.to_dict())
    killed: list[int] = []

    def kill(done: int, _: int, name: str) -> None:
        if done == 3:
            victim = next(iter(local.workers.values()))
            os.kill(victim.pid, signal.SIGKILL)
            killed.append(victim.pid)

    with warnings.catch_warnings(), _workers(2) as local:
        warnings.simplefilter("ignore")
        run(some, other, lambda: cluster(local.scheduler_address), kill)
    assert killed
    assert contents(other, some) == contents(finished, some)


def test_the_report_is_made_from_records_alone(finished: Store, small_items: list[Item]) -> None:
    report = make_report(finished, TINY, list(with_needs(small_items).values()))
    assert {table.key for table in report.tables} >= {"table1-tiles-3x3-published", "ablation", "spaces", "calibrators"}
    page = (finished.folder / "report" / "index.html").read_text()
    assert "data:image/png;base64" in page
    assert "http" not in page.replace("http-equiv", "")
    claims = {verdict.claim: verdict for verdict in report.verdicts}
    assert "h0" in next(claim for claim in claims if "published depth" in claim)
    table = next(table for table in report.tables if table.key == "table1-tiles-3x3-published")
    assert table.rows[0][0] == "h0"
    assert [row[2] for row in table.rows if row[0] in ("learned, certified", "paper, exhaustive")] == ["100.0000 %"] * 2
    assert json.loads((finished.folder / "report" / "tables.json").read_text())["profile"] == "tiny"
    kept = pyarrow.parquet.read_table(finished.folder / "records" / "searches.parquet")
    assert len(kept) == sum(
        item.spec["stop"] - item.spec["start"] for item in with_needs(small_items).values() if "stop" in item.spec
    )


def test_along_an_optimal_solution_the_certified_heuristics_stay_below(finished: Store, small_items: list[Item]) -> None:
    path = Columns.from_table(finished.records([item for item in small_items if item.kind == "path"]))
    for part in path.split("heuristic"):
        assert part.of("true_cost").tolist() == list(range(31, -1, -1))
    for name in ("base", "exhaustive", "learned"):
        part = path.where(heuristic=name)
        assert (part.of("h") <= part.of("true_cost")).all()
    assert path.where(heuristic="learned").of("h").tolist() == list(range(31, -1, -1))


def test_another_bundle_is_other_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("tiles-3x3", "tiles-3x3-label-free", "tiles-3x3-small"):
        shutil.copytree(SHIPPED / name, tmp_path / name)
    monkeypatch.setattr(protocol, "SHIPPED", tmp_path)
    monkeypatch.setattr(protocol, "PUZZLES", ("tiles-3x3",))
    before = with_needs(items(TINY, ("table1",))["table1"])
    certificate = tmp_path / "tiles-3x3" / "certificate.json"
    certificate.write_bytes(certificate.read_bytes() + b" ")
    after = with_needs(items(TINY, ("table1",))["table1"])
    changed = [item for key, item in after.items() if key not in before]
    assert {item.spec["heuristic"] for item in changed} == {"learned"}
    assert {item.kind for item in changed} == {"space", "search"}


def test_other_settings_of_a_recipe_are_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    before = with_needs(items(TINY, ("ablation",))["ablation"])
    settings, words = RECIPES["operator"]
    monkeypatch.setitem(RECIPES, "operator", ({**settings, "batch": 64}, words))
    assert before
    assert not set(before) & set(with_needs(items(TINY, ("ablation",))["ablation"]))


def test_a_report_without_records_is_refused(tmp_path: Path) -> None:
    done = commands.undershoot("reproduce", "--only", "report", "--out", str(tmp_path / "empty"), code=2)
    assert "holds no records yet" in done.stderr
    assert "allowed are 1 to" in commands.undershoot("reproduce", "--workers", "0", code=2).stderr


def test_spreads() -> None:
    assert spread([1.0]) == "1.00"
    assert spread([1.0, 3.0], 1, " %") == "2.0 ± 1.4 %"
    assert spread([]) == spread([float("nan")]) == "–"
    assert spread([0.0, 1.0, 0.0, 0.0], 0) == "0.2 ± 0.5"  # not 0: there is one
    assert spread([0.0, 0.0], 0) == "0"


def test_only_what_holds_of_all_is_100_percent() -> None:
    assert share(100 * (1 - 1 / 8_388_608), 4) == "99.9999"
    assert [share(100 * (k / 10_000), 2) for k in range(10_001)] == [f"{k // 100}.{k % 100:02}" for k in range(10_001)]
    assert shares([100.0, 100.0], 2) == "100.00 %"
    assert shares([99.99999, 100.0], 2) == "99.99 ± 0.00 %"
    assert shares([], 2) == "–"


def test_where_all_solved_means_those_of_the_table() -> None:
    names = ["base", "base", "raw", "raw", "max", "max"]
    columns = {"puzzle": ["tiles-3x3"] * 6, "population": ["uniform"] * 6, "heuristic": names}
    numbers = {"instance": [0, 1] * 3, "cost": [5, 7, 5, np.nan, np.nan, np.nan], "expanded": [10, 30, 20, 40, 50, 50]}
    fixed = {"seed": 0.0, "h": 1.0, "true_cost": 5.0, "weight": 1.0, "budget": 50.0, "reopened": 0.0, "seconds": 0.001}
    records = Columns(
        {name: np.array(values, dtype=object) for name, values in columns.items()}
        | {name: np.array(values, dtype=float) for name, values in numbers.items()}
        | {name: np.full(6, value) for name, value in fixed.items()}
    )
    (table,) = table_one(records, Columns({}))
    column = next(number for number, name in enumerate(table.columns) if name.startswith("where all solved"))
    assert table.columns[column] == "where all solved (1)"
    assert [row[column] for row in table.rows] == ["10.0", "20.0"]


def test_what_is_solved_by_depth() -> None:
    depths, seeds, instances = [9, 9, 10, 10] * 2, [0] * 4 + [1] * 4, [0, 1, 2, 3] * 2
    text = {"puzzle": "cube-2x2", "population": "all depths", "heuristic": "raw"}
    numbers = {
        "depth_walked": depths,
        "seed": seeds,
        "instance": instances,
        "cost": [9, 9, 9, np.nan, 9, 9, np.nan, np.nan],
        "expanded": [1, 3, 5, 7, 3, 5, 7, 9],
        "weight": [1] * 8,
        "budget": [50] * 8,
    }
    records = Columns(
        {name: np.array([value] * 8, dtype=object) for name, value in text.items()}
        | {name: np.array(values, dtype=float) for name, values in numbers.items()}
    )
    (table,) = by_depth(records)
    assert table.columns == ("2x2 cube", "depth 9", "depth 10")
    assert table.rows == (("paper, raw", "100.0 %", "25.0 ± 35.4 %"),)


def test_bad_input_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "tiny", TINY.to_dict()).write(Item("train", {}), {RECORDS: b"x"})
    with pytest.raises(us.UndershootError, match="of the profile tiny"):
        Store(tmp_path / "tiny", PROFILES["quick"].to_dict())
    Store(tmp_path / "quick", PROFILES["quick"].to_dict()).write(Item("train", {}), {RECORDS: b"x"})
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("keep")
    with pytest.raises(us.UndershootError, match="holds other files"):
        Store(tmp_path / "notes", TINY.to_dict())
    (tmp_path / "file").write_text("")
    for arguments, message in (
        (("--profile", "slow"), "no profile"),
        (("--out", str(tmp_path / "notes")), "holds other files"),
        (("--out", str(tmp_path / "file")), "cannot use"),
        (
            ("--out", str(tmp_path / "file" / "below"), "--only", "sketch"),
            "Not a directory; mend that, or choose another folder",
        ),
        (("--scheduler", "nonsense", "--out", str(tmp_path / "new")), "must be an address"),
        (("--scheduler", "tcp://127.0.0.1:9", "--workers", "2"), "--workers is for processes of this machine"),
        (("--only", "table9"), 'no part "table9"'),
        (("--seeds", "0"), "allowed are 1 to 1,000"),
        (("--out", str(tmp_path / "tiny")), "of the profile tiny"),
        (("--out", str(tmp_path / "quick")), "holds a reproduction already"),
    ):
        assert message in commands.undershoot("reproduce", *arguments, code=2).stderr
    began = time.monotonic()
    done = commands.undershoot("reproduce", "--scheduler", "tcp://127.0.0.1:9", "--out", str(tmp_path / "new"), code=2)
    assert "no Dask scheduler answers" in done.stderr
    assert time.monotonic() - began < 30
    assert not (tmp_path / "new").exists()


def test_a_disk_that_is_full_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "full", TINY.to_dict())

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(us.UndershootError, match="the disk is full; make room; what was done so far is kept"):
        store.write(Item("train", {}), {RECORDS: b"x"})


def test_a_report_that_cannot_be_written_is_said_so(
    finished: Store, small_items: list[Item], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("undershoot.experiments.figures.written_atomically", full)
    with pytest.raises(us.UndershootError, match=r"cannot write the report to .*: the disk is full"):
        make_report(finished, TINY, list(with_needs(small_items).values()))


KILLED = """
import sys
from pathlib import Path
from experiments import test_reproduction as t
from undershoot.experiments import protocol
if __name__ == "__main__":
    protocol.PUZZLES = ("lights-out-3x3",)
    chosen = t.items(t.TINY, ("table1",))["table1"]
    store = t.Store(Path(sys.argv[1]), t.TINY.to_dict())
    t.run(chosen, store, lambda: t.processes(2), lambda done, *_: print(done, flush=True))
"""


def test_a_run_that_is_killed_goes_on_to_the_same_records(finished: Store, small_items: list[Item], tmp_path: Path) -> None:
    script, folder = tmp_path / "killed.py", tmp_path / "store"
    script.write_text(KILLED)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), *sys.path])}
    command = [sys.executable, str(script), str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "PUZZLES", ("lights-out-3x3",))
        chosen = items(TINY, ("table1",))["table1"]
    assert contents(Store(folder, TINY.to_dict()), chosen) == contents(finished, chosen)


def test_every_kind_of_item_says_how_long_it_took(finished: Store, small_items: list[Item]) -> None:
    for kind in ("train", "space", "search"):
        item = next(item for item in small_items if item.kind == kind)
        files = finished.read(item)
        assert files is not None
        assert float(files["seconds.txt"]) > 0
    trained = next(item for item in small_items if item.kind == "train")
    population = {"name": "timed", "depths": [3], "per_depth": 2, "seed": 0}
    spec = {"puzzle": trained.spec["puzzle"], "batches": [1, 64], "population": population, "budget": 100}
    timed = do("timing", spec, {"training": finished.read(trained) or {}})
    rows = pyarrow.parquet.read_table(io.BytesIO(timed[RECORDS])).to_pylist()
    assert [(row["what"], row["count"]) for row in rows] == [("states", 1), ("states", 64), ("search", 1)]
    assert all(row["seconds"] > 0 for row in rows)


def test_a_profile_is_plain_values() -> None:
    assert isinstance(PROFILES["quick"], Profile)
    assert json.loads(json.dumps(PROFILES["quick"].to_dict()))["name"] == "quick"


@pytest.mark.parametrize("puzzles", [["tiles-3x3", 3], [{"a": 1}, {"a": 1}]])
def test_records_from_elsewhere_that_are_none_are_named(
    puzzles: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store", PROFILES["quick"].to_dict())
    chosen = [item for part in items(PROFILES["quick"]).values() for item in part if item.kind == "search"]
    for item, puzzle in zip(chosen, puzzles, strict=False):
        store.write(item, {RECORDS: table_bytes({"puzzle": [puzzle]}), "seconds.txt": b"1.0"})
    monkeypatch.setenv("UNDERSHOOT_STATE_DIR", str(tmp_path / "state of another"))
    with pytest.raises(us.UndershootError, match="did not make and cannot read"):
        us.reproduce(only=["report"], out=tmp_path / "store")


def test_networks_that_this_installation_did_not_make_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network, records = Item("train", {"puzzle": "tiles-3x3"}), Item("search", {"puzzle": "tiles-3x3"})
    for item in (network, records):
        Store(tmp_path / "store", TINY.to_dict()).write(item, {RECORDS: b"x", "seconds.txt": b"1.0"})
        assert VOUCHED in (Store(tmp_path / "store", TINY.to_dict()).read(item) or {})
    monkeypatch.setenv("UNDERSHOOT_STATE_DIR", str(tmp_path / "state of another"))
    store = Store(tmp_path / "store", TINY.to_dict())
    assert store.read(records) == {RECORDS: b"x", "seconds.txt": b"1.0"}
    with pytest.warns(UserWarning, match="was not made by this installation"):
        assert store.read(network) is None
