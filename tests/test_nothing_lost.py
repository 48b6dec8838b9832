"""What was made stays: bundles, runs and records, whatever ends a process or was there before."""

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import commands
import undershoot as us
from undershoot import files
from undershoot.bundles.bundle import FLOAT
from undershoot.bundles.reading import read_bundle
from undershoot.errors import UndershootError
from undershoot.experiments import spreading
from undershoot.experiments.comparison import write_records
from undershoot.training.recipe import Curriculum, Recipe
from undershoot.training.recipes import recipe
from undershoot.training.runs import Run, read_metrics
from undershoot.workflows import calibration, certification

SMALL = ["--set=hidden=[8,8]", "--set=curriculum.interval=50", "--set=curriculum.max_depth=3", "--set=curriculum.states=5"]
OLD, NEW = {"config.json": b"old", "model": b"old" * 1000}, {"config.json": b"new", "model": b"new" * 1000, "more": b"new"}


def trained(folder: Path, *arguments: str, code: int = 0) -> Any:
    """What `undershoot train` says of a small run, as JSON."""
    done = commands.undershoot("train", "tiles-2x3", *SMALL, "--out", str(folder), "--json", *arguments, code=code)
    return json.loads(done.stdout) if code == 0 else done.stderr


def small(steps: int) -> Recipe:
    curriculum = Curriculum(max_depth=3, interval=50, states=5)
    return replace(recipe(us.puzzle("tiles-2x3")), hidden=(8, 8), steps=steps, curriculum=curriculum)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 100 steps whose bundle was converted, calibrated and certified."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    trained(folder, "--steps=100")
    commands.undershoot("calibrate", str(folder), "--whole-numbers")
    commands.undershoot("certify", str(folder))
    return folder


@pytest.fixture
def run(certified: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(certified, tmp_path / "run"))


def test_a_finished_run_that_is_resumed_leaves_its_bundle_alone_and_says_so(run: Path) -> None:
    before = contents(run / "bundle")
    assert "certificate.json" in before
    said = trained(run, "--steps=100", "--resume")
    assert (said["left_alone"], said["kept"]) == (True, None)
    assert contents(run / "bundle") == before
    shown = commands.undershoot("train", "tiles-2x3", *SMALL, "--out", str(run), "--steps=100", "--resume").stdout
    assert "its bundle was there already: it is left as it is" in shown
    assert contents(run / "bundle") == before


def test_a_finished_run_without_its_bundle_writes_it(run: Path) -> None:
    shutil.rmtree(run / "bundle")
    assert trained(run, "--steps=100", "--resume")["left_alone"] is False
    assert read_bundle(run).weights_digest == read_bundle(run / "bundle-float").weights_digest


def test_a_run_that_goes_further_keeps_the_bundle_that_was_calibrated(run: Path) -> None:
    before = contents(run / "bundle")
    said = trained(run, "--steps=150", "--resume")
    assert (said["left_alone"], said["kept"]) == (False, str(run / "bundle-before-150"))
    assert contents(run / "bundle-before-150") == before
    assert (read_bundle(run).arithmetic, read_bundle(run).figures["steps"]) == (FLOAT, 150)
    commands.undershoot("calibrate", str(run))
    (run / "bundle-before-200").mkdir()
    calibrated = contents(run / "bundle")
    shown = commands.undershoot("train", "tiles-2x3", *SMALL, "--out", str(run), "--steps=200", "--resume").stdout
    assert f"is kept: {run / 'bundle-before-200-2'}\n" in shown
    assert contents(run / "bundle-before-200-2") == calibrated
    assert not contents(run / "bundle-before-200")


def test_a_bundle_that_only_the_run_itself_wrote_is_replaced_when_it_goes_further(tmp_path: Path) -> None:
    trained(tmp_path / "run", "--steps=50")
    assert trained(tmp_path / "run", "--steps=100", "--resume")["kept"] is None
    assert not list((tmp_path / "run").glob("bundle-*"))


def test_a_damaged_bundle_is_kept_when_a_run_writes_another(run: Path) -> None:
    (run / "bundle" / "model.safetensors").write_bytes(b"damaged")
    said = trained(run, "--steps=100", "--resume")
    assert (Path(said["kept"]) / "model.safetensors").read_bytes() == b"damaged"
    assert read_bundle(run).figures["steps"] == 100


def test_a_trainer_that_is_refused_changes_nothing_in_the_folder(tmp_path: Path) -> None:
    running = Run(tmp_path / "run", us.puzzle("tiles-2x3"), small(100))
    with running.alone():
        before = contents(tmp_path / "run")
        assert "recipe.toml" in before
        assert "another process trains in" in trained(tmp_path / "run", "--steps=200", "--resume", code=2)
        assert contents(tmp_path / "run") == before


def test_no_lock_is_left_in_a_folder_that_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert "holds other files and no run" in trained(tmp_path, code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_bundle_is_written_where_a_link_points(run: Path) -> None:
    (run / "bundle" / "certificate.json").unlink()
    link = run.parent / "link"
    link.symlink_to(run / "bundle")
    commands.undershoot("certify", str(link))
    assert link.is_symlink()
    assert (run / "bundle" / "certificate.json").exists()
    assert not (run / "bundle").is_symlink()


def test_records_are_not_written_where_a_link_points(tmp_path: Path) -> None:
    there, link = tmp_path / "there", tmp_path / "link"
    link.symlink_to(there)
    bench = ("bench", "tiles-2x3", "--random=2", "--out", str(link))
    for content in (None, b"mine"):  # which is not there yet, and which is
        if content is not None:
            there.write_bytes(content)
        assert "is a link, and records are not written through links" in commands.undershoot(*bench, code=2).stderr
        with pytest.raises(UndershootError, match="remove it or choose another place"):
            write_records(link, [{"cost": 1}])
        assert link.is_symlink()
        assert (there.read_bytes() if there.exists() else None) == content


def test_records_are_written_to_pipes_and_open_files_as_they_are(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)
    for path in (tmp_path / "pipe", Path(f"/dev/fd/{writer}")):
        write_records(path, [{"cost": 1}])
        assert os.read(reader, 4096)[:4] == b"PAR1"
    os.close(reader)
    os.close(writer)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with files.written_atomically(tmp_path / "pipe") as file:
        file.write(b"data")
    assert os.read(reader, 10) == b"data"
    os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_pipe_where_a_file_belongs_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "store" / "items").mkdir(parents=True)
    os.mkfifo(tmp_path / "run" / "recipe.toml")
    os.mkfifo(tmp_path / "store" / "profile.json")
    train = ("train", "tiles-2x3", "--steps", "10", "--out", str(tmp_path / "run"), "--resume")
    for command in (train, ("reproduce", "--only", "report", "--out", str(tmp_path / "store"))):
        assert "it is a pipe or a device" in commands.undershoot(*command, code=2).stderr


KILLED = """
import os, sys
from pathlib import Path
from undershoot import files

where, number, moment = sys.argv[2], int(sys.argv[3]), sys.argv[4]
calls = 0

def dying(real):
    def call(*arguments, **options):
        global calls
        calls += 1
        if (calls, moment) == (number, "before"):
            os._exit(9)
        found = real(*arguments, **options)
        if (calls, moment) == (number, "after"):
            os._exit(9)
        return found
    return call

if where == "exchange":
    files._exchanged = dying(files._exchanged)
else:
    files._exchanged = lambda *_: False
    os.rename = dying(os.rename)
files.write_folder(Path(sys.argv[1]), {"config.json": b"new", "model": b"new" * 1000, "more": b"new"})
"""
MOMENTS = [("exchange", 1), ("rename", 1), ("rename", 2)]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("step", "number"), MOMENTS)
def test_a_kill_at_any_step_leaves_the_old_or_the_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int, moment: str
) -> None:
    folder = tmp_path / "a [x]" / "bundle"  # brackets are no pattern
    files.write_folder(folder, OLD)
    command = [sys.executable, "-c", KILLED, str(folder), step, str(number), moment]
    assert subprocess.run(command, check=False).returncode == 9
    assert folder.exists() or (step, number, moment) in (("rename", 1, "after"), ("rename", 2, "before"))
    monkeypatch.setattr(files, "MOMENT", 0)
    files.put_back(folder)
    assert contents(folder) in (OLD, NEW)
    long_ago = time.time() - 2 * files.LONG_AGO
    for left in folder.parent.glob(".bundle.*"):
        os.utime(left, (long_ago, long_ago))
    files.write_folder(folder, NEW)
    assert contents(folder) == NEW
    assert [path.name for path in folder.parent.iterdir()] == ["bundle"]


@pytest.mark.parametrize("number", [1, 2])
def test_a_step_that_is_refused_leaves_the_old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    folder, calls, real = tmp_path / "bundle", [], os.rename
    files.write_folder(folder, OLD)

    def refusing(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == number:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), arguments[0])
        real(*arguments)

    monkeypatch.setattr(files, "_exchanged", lambda *_: False)
    monkeypatch.setattr(os, "rename", refusing)
    with pytest.raises(OSError, match="Permission denied"):
        files.write_folder(folder, NEW)
    assert contents(folder) == OLD
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_folders_are_exchanged_in_one_step_on_linux(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("other systems need not have it")
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    assert files._exchanged(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / "b").exists()
    assert (tmp_path / "b" / "a").exists()
    assert not files._exchanged(tmp_path / "a", tmp_path / "nowhere")


@pytest.mark.parametrize("can_exchange", [True, False])
def test_what_another_command_wrote_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(files, "_exchanged", lambda *_: False)
    folder = tmp_path / "bundle"
    files.write_folder(folder, OLD, replaces=files.contents_digest(folder))
    before = files.contents_digest(folder)
    files.write_folder(folder, NEW, replaces=before)
    assert contents(folder) == NEW
    with pytest.raises(UndershootError, match="was changed by another command meanwhile"):
        files.write_folder(folder, OLD, replaces=before)
    with pytest.raises(UndershootError, match="was changed by another command meanwhile"):
        files.write_folder(folder, OLD, replaces="")
    assert contents(folder) == NEW
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


@pytest.mark.parametrize("command", ["calibrate", "certify"])
def test_a_calibration_that_was_made_while_another_command_worked_is_kept(
    run: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def meanwhile(real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            found = real(*arguments, **options)
            monkeypatch.undo()
            us.calibrate(run, "max")
            return found

        return call

    us.calibrate(run)
    monkeypatch.setattr(certification, "_findings", meanwhile(certification._findings))
    monkeypatch.setattr(calibration, "try_out", meanwhile(calibration.try_out))
    with pytest.raises(UndershootError, match="was changed by another command meanwhile"):
        us.calibrate(run) if command == "calibrate" else us.certify(run)
    assert '"max"' in (run / "bundle" / "calibration.json").read_text()


def test_commands_find_a_bundle_whose_replacement_was_cut_short(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOMENT", 0)
    for place, name in ((run / "bundle", run), (run / "bundle", run / "bundle")):
        (run / ".bundle.abcdefgh.part" / "new").mkdir(parents=True)
        place.rename(run / ".bundle.abcdefgh.part" / "replaced")
        shown = commands.undershoot("solve", "tiles-2x3", "--heuristic", str(name)).stdout
        assert "optimal, proven" in shown


def test_a_bundle_that_somebody_removed_does_not_come_back(tmp_path: Path) -> None:
    (tmp_path / ".bundle.abcdefgh.part" / "replaced").mkdir(parents=True)  # of a process that died after the last step
    files.put_back(tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_folders_of_others_are_not_swept_away(tmp_path: Path) -> None:
    others = tmp_path / ".bundle.mine.part"
    others.mkdir()
    (others / "thesis.txt").write_text("mine")
    os.utime(others, (0, 0))
    files.write_folder(tmp_path / "bundle", NEW)
    assert (others / "thesis.txt").exists()


def test_a_damaged_line_of_metrics_costs_that_line_alone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    trained(folder, "--steps=100")
    lines = (folder / "metrics.jsonl").read_bytes().splitlines()
    whole = read_metrics(folder)
    damaged = [b"[]", b'{"step": "x", "depth": 1}', b'{"step": 1', b"\xff\xfe", b"[" * 100_000, b'{"step": 1e999, "depth": 1}']
    (folder / "metrics.jsonl").write_bytes(b"\n".join([lines[0], *damaged, *lines[1:], b""]))
    arguments = ("train", "tiles-2x3", *SMALL, "--out", str(folder), "--steps=100", "--resume")
    said = commands.undershoot(*arguments).stderr
    for number in range(2, 2 + len(damaged)):
        assert f"{folder / 'metrics.jsonl'}, line {number} is damaged" in said
    assert len(said.splitlines()) == len(damaged)
    assert read_metrics(folder) == whole
    assert (folder / "metrics.jsonl").read_bytes().splitlines() == lines


def test_what_a_killed_process_half_wrote_in_a_run_is_removed(tmp_path: Path) -> None:
    trained(tmp_path / "run", "--steps=50")
    left = tmp_path / "run" / "checkpoints" / ".step-000000100.safetensors.abcdefgh"
    left.touch()
    trained(tmp_path / "run", "--steps=100", "--resume")
    assert not left.exists()


def test_a_place_that_records_cannot_be_written_to_is_refused_before_any_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(spreading, "search_batch", lambda *_, **__: pytest.fail("it searched"))
    for place in (tmp_path / "file" / "below" / "records", tmp_path, tmp_path / ("x" * 300)):
        done = commands.undershoot("bench", "tiles-2x3", "--random=2", "--out", str(place), code=2)
        assert f"cannot write the records {place}: " in done.stderr
        assert "choose another place" in done.stderr
        assert done.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_what_bench_found_is_shown_although_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    out = tmp_path / "records"
    monkeypatch.setattr(os, "fsync", full)
    done = commands.undershoot("bench", "tiles-2x3", "--random=2", "--out", str(out), *more, code=1)
    assert f"undershoot: cannot write the records {out}: the disk is full; make room and try again\n" in done.stderr
    assert json.loads(done.stdout)["instances"] == 2 if more else "proven optimal" in done.stdout
    assert "written" not in done.stdout
    assert not list(tmp_path.iterdir())


def test_a_full_disk_does_not_cost_the_bundle_that_was_there(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(run / "bundle")
    monkeypatch.setattr(os, "fsync", full)
    done = commands.undershoot("certify", str(run), code=1)
    assert "the disk is full; make room and try again" in done.stderr
    assert str(run / "bundle") in done.stderr
    assert contents(run / "bundle") == before
    assert not list(run.glob(".bundle*"))


def test_a_refusal_names_the_place_and_not_a_temporary_file_of_it(tmp_path: Path) -> None:
    place = tmp_path / ("b" * 250)  # there may be such a file, but none with a longer name
    with pytest.raises(OSError, match="name too long") as met:
        files.check_writable(place)
    assert met.value.filename == str(place)
    with pytest.raises(OSError, match="name too long") as met, files.written_atomically(place):
        pytest.fail("it wrote")
    assert met.value.filename == str(place)
    with pytest.raises(OSError, match="name too long") as met:
        files.write_folder(place, NEW)
    assert met.value.filename == str(place)
