"""Odd names, odd files, Ctrl-C and machines that give out: always a sentence and an exit code, never a traceback."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import commands
import undershoot as us
from undershoot.cli import commands as program
from undershoot.cli import reproduce, terminal
from undershoot.cli.interruption import Interrupted
from undershoot.experiments.items import Item
from undershoot.experiments.protocol import PROFILES, items
from undershoot.experiments.report import Report
from undershoot.experiments.store import Store
from undershoot.training import checkpoints

ODD = "a [red]b[/] [x] :cat:"
"""A folder in a folder, really."""
DEEP = "[" * 100_000
SMALL = ["--set=hidden=[8,8]", "--set=curriculum.interval=50", "--set=curriculum.max_depth=2", "--set=curriculum.states=5"]
HERE = {"PYTHONPATH": str(Path(us.__file__).parent.parent)}
"""What is tested is what child processes import, in whatever folder they run."""
PUZZLE = 'name = "discs"\nsummary = "[/b] [x] :cat:"\ngoal = "a b c"\n[moves]\n"<cat>" = "(1 2 3)"\nback = "(3 2 1)"\n'


def words(text: str) -> str:
    """Without line breaks."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one of that name in it, and a puzzle file and a run in that."""
    folder = tmp_path_factory.mktemp("odd")
    (folder / ODD).mkdir(parents=True)
    (folder / ODD / "p.toml").write_text(PUZZLE)
    command = ["train", f"{ODD}/p.toml", *SMALL, "--steps=50", "--out", f"{ODD}/run"]
    shown = commands.undershoot(*command, folder=folder).stdout
    assert f"heuristic: {ODD}/run/bundle\n" in shown
    assert f"--heuristic '{ODD}/run'\n" in shown
    return folder


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["puzzles", "--check", f"{ODD}/p.toml"], [f"\n{ODD}/p.toml is a valid puzzle file.\n", "[/b] [x] :cat:", "<cat>"]),
        (["puzzles", f"{ODD}/p.toml"], ['discs: what its file says: "[/b] [x]']),
        (["oracle", f"{ODD}/p.toml"], ["3 states"]),
        (["solve", f"{ODD}/p.toml", "back"], ["<cat> cost 1"]),
        (["solve", f"{ODD}/p.toml", "back", "--show"], ["1. <cat>"]),
        (["solve", f"{ODD}/p.toml", "back", "--heuristic", f"{ODD}/run"], [f"heuristic {ODD}/run"]),
        (["solve", f"{ODD}/p.toml", "--random=3", "--heuristic", f"{ODD}/run"], [f"heuristic {ODD}/run"]),
        (["bench", f"{ODD}/p.toml", "--random=2", "--out", f"{ODD}/r"], [f"records written to {ODD}/r"]),
        (["bench", f"{ODD}/p.toml", "--random=2", "--heuristics", f"{ODD}/run"], ["[red]"]),
        (["calibrate", f"{ODD}/run", "--out", f"{ODD}/new"], [f"heuristic: {ODD}/new"]),
        (["calibrate", f"{ODD}/run", "--compare"], ["exhaustive"]),
        (["certify", f"{ODD}/new"], [f"Certificate: {ODD}/new/certificate.json"]),
        (["check", f"{ODD}/new"], [f"Certificate: {ODD}/new"]),
    ],
)
def test_paths_and_names_are_printed_as_they_are(odd: Path, arguments: list[str], parts: list[str]) -> None:
    shown = commands.undershoot(*arguments, folder=odd).stdout
    for part in parts:
        assert part in (shown if "\n" in part else words(shown))


def test_a_puzzle_file_whose_name_is_no_text_can_be_trained_for(tmp_path: Path) -> None:
    path = tmp_path / "\udcff.toml"
    try:
        path.write_text(PUZZLE)
    except OSError:
        pytest.skip("this file system has no such names")
    commands.undershoot("train", str(path), *SMALL, "--steps=50", "--out", str(tmp_path / "\udcff"))
    commands.undershoot("solve", str(path), "--heuristic", str(tmp_path / "\udcff"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["oracle", f"{ODD}.toml"],
        ["puzzles", "--check", f"{ODD}.toml"],
        ["solve", "tiles-2x3", "--heuristic", f"{ODD}.toml"],
        ["bench", "tiles-2x3", "--instances", f"{ODD}.toml"],
        ["bench", "tiles-2x3", "--out", f"{ODD}/p.toml/{ODD}.toml"],
        ["train", "tiles-2x3", "--recipe", f"{ODD}.toml"],
        ["train", "tiles-2x3", "--set", f"{ODD}.toml=3"],
        ["calibrate", f"{ODD}.toml"],
        ["certify", f"{ODD}.toml"],
        ["reproduce", "--only", f"{ODD}.toml"],
        [f"{ODD}.toml"],
    ],
)
def test_errors_name_what_came_as_it_came(odd: Path, arguments: list[str]) -> None:
    said = words(commands.undershoot(*arguments, folder=odd, code=2).stderr.replace("│", ""))
    assert ODD in said


def test_the_report_of_a_reproduction_is_named_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(PROFILES["quick"], {"work": "[/] all"}, [], [], [])
    reproduce._show(report, 1.0, Path(ODD) / "report" / "index.html")
    assert f"the report: {ODD}/report/index.html\n" in capsys.readouterr().out


def test_progress_bars_show_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    screen, now = Terminal(), iter(range(0, 10_000, 10))
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("undershoot.cli.terminal.time.monotonic", lambda: next(now))
    monkeypatch.setenv("COLUMNS", "100")
    with terminal.progress(ODD, 10) as report:
        report(3, "[/]")
    assert f"{ODD}, [/]" in screen.getvalue()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    commands.undershoot("train", "tiles-2x3", *SMALL, "--steps=50", "--out", str(folder))
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def resumed(folder: Path, code: int = 2) -> str:
    arguments = ("train", "tiles-2x3", *SMALL, "--steps=50", "--out", str(folder), "--resume")
    return commands.undershoot(*arguments, code=code).stderr


def a_folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def text(content: str | bytes) -> Callable[[Path], None]:
    """Writes it."""

    def write(path: Path) -> None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


ODD_TOML: list[Callable[[Path], None]] = [
    a_folder,
    text(b"\xff\x00\xfe"),
    text(f"x = {DEEP}"),
    text("x = " + "{a=" * 100_000),
    text("x = " + "9" * 5000),
    text('puzzle = "tiles-2x3"\nsteps = 0x' + "f" * 5000),
    text("puzzle = 3"),
    text('puzzle = "tiles-2x3"\nsteps = "x"'),
    text('puzzle = "tiles-2x3"\ncurriculum = []'),
    text('puzzle = "tiles-2x3"\nhidden = [[[]]]'),
    text(""),
]


@pytest.mark.parametrize("change", ODD_TOML)
def test_odd_recipes_are_refused_by_name(run: Path, tmp_path: Path, change: Callable[[Path], None]) -> None:
    change(run / "recipe.toml")
    assert str(run / "recipe.toml") in resumed(run)
    change(tmp_path / "mine.toml")
    done = commands.undershoot("train", "tiles-2x3", "--recipe", str(tmp_path / "mine.toml"), code=2)
    assert str(tmp_path / "mine.toml") in done.stderr


def test_settings_that_are_too_deep_or_too_long_are_refused() -> None:
    for value in (DEEP, "9" * 5000, "0x" + "f" * 5000):
        done = commands.undershoot("train", "tiles-2x3", f"--set=steps={value}", code=2)
        assert "too long or too deep" in done.stderr


def checkpoints_are_a_file(run: Path) -> Path:
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").touch()
    return run / "checkpoints"


def metrics_are_a_folder(run: Path) -> Path:
    a_folder(run / "metrics.jsonl")
    return run / "metrics.jsonl"


def a_checkpoint_has_no_step(run: Path) -> Path:
    (run / "checkpoints" / "step-abc.safetensors").touch()
    return run / "checkpoints" / "step-abc.safetensors"


def a_checkpoint_is_a_folder(run: Path) -> Path:
    (run / "checkpoints" / "step-000000001.safetensors").mkdir()
    return run / "checkpoints" / "step-000000001.safetensors"


def the_lock_is_a_folder(run: Path) -> Path:
    a_folder(run / ".lock")
    return run / ".lock"


def the_bundle_is_a_file(run: Path) -> Path:
    shutil.rmtree(run / "bundle")
    (run / "bundle").touch()
    return run / "bundle"


@pytest.mark.parametrize(
    "change",
    [
        checkpoints_are_a_file,
        metrics_are_a_folder,
        a_checkpoint_has_no_step,
        a_checkpoint_is_a_folder,
        the_lock_is_a_folder,
        the_bundle_is_a_file,
    ],
)
def test_odd_files_in_a_run_are_refused_by_name(run: Path, change: Callable[[Path], Path]) -> None:
    assert str(change(run)) in resumed(run)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recipe", "[]"),
        ("recipe", DEEP),
        ("recipe", "nonsense"),
        ("position", "3"),
        ("position", DEEP),
        ("position", "{}"),
        ("position", '{"step": "x"}'),
        ("position", None),
    ],
)
def test_a_checkpoint_that_says_odd_things_is_named_and_set_aside(run: Path, name: str, value: str | None) -> None:
    path = run / "checkpoints" / "step-000000050.safetensors"
    with safe_open(path, framework="numpy") as file:
        metadata, tensors = dict(file.metadata()), {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    if value is None:
        value = json.dumps({**json.loads(metadata[name]), "solve_rate": True})
    metadata[name] = value
    del metadata["sha256"]
    metadata["sha256"] = checkpoints._digest(tensors, metadata)
    save_file(tensors, path, metadata)
    said = resumed(run, code=0)
    assert f"the checkpoint {path} is damaged" in said
    assert path.with_suffix(".damaged").exists()


@pytest.mark.parametrize("change", [a_folder, text(b"\xff\xfe"), text(DEEP), text("{}"), text("[1]"), text("3")])
@pytest.mark.parametrize("name", ["profile.json", "runs.json"])
def test_odd_files_in_a_reproduction_are_refused_by_name(tmp_path: Path, name: str, change: Callable[[Path], None]) -> None:
    (tmp_path / "profile.json").write_text(json.dumps(PROFILES["quick"].to_dict()))
    change(tmp_path / name)
    done = commands.undershoot("reproduce", "--resume", "--out", str(tmp_path), code=2)
    assert str(tmp_path / name) in done.stderr


def test_odd_items_of_a_reproduction_are_refused_by_name_or_set_aside(tmp_path: Path) -> None:
    (tmp_path / "profile.json").write_text(json.dumps(PROFILES["quick"].to_dict()))
    (tmp_path / "items").touch()
    said = commands.undershoot("reproduce", "--resume", "--out", str(tmp_path), code=2).stderr
    assert f"{tmp_path / 'items'} is a file" in said
    (tmp_path / "items").unlink()
    item = items(PROFILES["quick"], ("sketch",))["sketch"][0]
    path = Store(tmp_path, PROFILES["quick"].to_dict()).path(item)
    path.mkdir(parents=True)
    done = commands.undershoot("reproduce", "--resume", "--only=sketch", "--out", str(tmp_path), code=2)
    assert f"cannot read {path}: Is a directory" in done.stderr


@pytest.mark.parametrize("about", [DEEP, "[]", "{}", '{"sha256": 3, "spec": []}', "\udcff"])
def test_an_item_that_says_odd_things_is_named_and_set_aside(tmp_path: Path, about: str) -> None:
    store, item = Store(tmp_path, {}), Item("train", {})
    store.path(item).parent.mkdir()
    with zipfile.ZipFile(store.path(item), "w") as archive:
        archive.writestr("item.json", about.encode(errors="surrogateescape"))
    with pytest.warns(UserWarning, match="is damaged") as caught:
        assert store.read(item) is None
    assert str(store.path(item)) in str(caught[0].message)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (a_folder, "cannot read the instances"),
        (text(b"\xff\x00\xfe"), "no text"),
        (text("1 2 3 " * 1_000_000), "line 1 is longer than 100,000 characters"),
        (text("x" * 50_000), "line 1: "),
        (text("\n" + "9" * 5000 + ": D"), "line 2: "),
        (text("\x00"), "line 1: "),
        (text(""), "holds no instances"),
    ],
)
def test_odd_instance_files_are_refused_by_name(tmp_path: Path, change: Callable[[Path], None], part: str) -> None:
    path = tmp_path / "instances.txt"
    change(path)
    said = commands.undershoot("bench", "tiles-2x3", "--instances", str(path), code=2).stderr
    assert part in said
    assert str(path) in said
    assert len(said) < 1000


@pytest.mark.parametrize(
    "change",
    [
        *ODD_TOML[:5],
        text(PUZZLE + f"x = {DEEP}"),
        text(PUZZLE + "[moves.m]\ncost." + ".".join("a" * 900) + " = 1"),
        text(PUZZLE + "[moves.m]\ncost = 0x" + "f" * 5000),
        text(PUZZLE.replace('"a b c"', "[[[]]]")),
    ],
)
def test_odd_puzzle_files_are_refused_by_name(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "puzzle.toml"
    change(path)
    for command in (["puzzles", "--check"], ["oracle"]):
        assert str(path) in commands.undershoot(*command, str(path), code=2).stderr


LONG = {
    "solve": ["tiles-4x4", "--random=3", "--heuristic=zero"],
    "patterns": ["tiles-4x4", "6-6-3"],
    "oracle": ["lights-out-5x5"],
    "bench": ["tiles-4x4", "--heuristics=zero", "--random=4", "--threads=2"],
    "calibrate": ["cube-2x2", "--out=new"],
    "reproduce": ["--out=new", "--workers=1"],
}


def has_begun(process: subprocess.Popen[str]) -> bool:
    """Whether it has loaded the compiler, and so is in the middle of something."""
    maps = Path(f"/proc/{process.pid}/maps")
    return process.poll() is not None or not maps.exists() or "llvmlite" in maps.read_text()


HUGE = "99999999999999999999"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["solve", "lights-out-3x3", "--random", HUGE], "99,999,999,999,999,999,999 random states were asked for; at most"),
        (["solve", "tiles-2x3", "--random", str(2**63 - 1)], "random states were asked for; at most 100,000,000"),
        (["check", "lights-out-3x3", "--sample", HUGE], "allowed are 1 to 100,000,000 states"),
        (["bench", "lights-out-3x3", "--scrambles=1", "--per-depth", HUGE], "scrambles were asked for; allowed are at most"),
        (["solve", "lights-out-3x3", "--random=2", "--expand-per-step", str(2**62)], "allowed are whole numbers from 1 to"),
        (["solve", "lights-out-3x3", "--random=2", "--max-memory", "9" * 400], "is more memory than there is anywhere"),
        (["solve", "lights-out-3x3", "--random=2", "--max-memory", "9" * 18 + "G"], "is more memory than there is anywhere"),
    ],
)
def test_numbers_beyond_all_measure_are_refused_in_a_sentence(arguments: list[str], says: str) -> None:
    error = commands.undershoot(*arguments, code=2).stderr
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("settings", [": bad: [", "just words", "disable_jit: 1", "chrome_trace: thesis.tex"])
def test_settings_of_numba_in_the_working_folder_are_not_read(tmp_path: Path, settings: str) -> None:
    (tmp_path / ".numba_config.yaml").write_text(settings)
    (tmp_path / "thesis.tex").write_text("mine")
    command = [sys.executable, "-m", "undershoot", "solve", "lights-out-3x3", "--random=1"]
    ended = subprocess.run(command, cwd=tmp_path, env=os.environ | HERE, capture_output=True, text=True, check=False)
    assert f"there are settings for numba in {tmp_path}{os.sep}.numba_config.yaml" in ended.stderr
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert (tmp_path / "thesis.tex").read_text() == "mine"


WRITTEN = "Path('.numba_config.yaml').write_text('chrome_trace: thesis.tex\\ndisable_jit: 1')\n"
MEANWHILE = f"Path.exists = lambda path: False\n{WRITTEN}"  # after it was looked for, before numba does


@pytest.mark.parametrize(("before", "after"), [("", WRITTEN), (MEANWHILE, "")])
def test_settings_of_numba_that_come_later_are_not_read_either(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    program = (
        f"from pathlib import Path\nexists = Path.exists\n{before}import undershoot as us\nimport undershoot.kernels\n"
        f"Path.exists = exists\ntiles = us.puzzle('tiles-2x3')\n{after}"
        "import numba\nassert numba.njit(lambda x: x + 1)(1) == 2\nassert not numba.config.DISABLE_JIT\n"
        "print(us.solve(tiles, tiles.parse('1 2 3 / 0 4 5'), us.heuristic(tiles, 'base')).cost)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=os.environ | HERE, capture_output=True, text=True, check=False
    )
    assert ended.stdout == "2\n", ended.stderr
    assert (tmp_path / "thesis.tex").read_text() == "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc to see how far processes are")
def test_ctrl_c_ends_every_long_command_with_one_line_and_130(tmp_path: Path) -> None:
    environment = {**os.environ, **HERE, "UNDERSHOOT_CACHE_DIR": str(tmp_path / "cache")}
    started = {}
    for name, arguments in LONG.items():
        (tmp_path / name).mkdir()
        started[name] = subprocess.Popen(
            [sys.executable, "-m", "undershoot", name, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path / name,
            env=environment,
            start_new_session=True,
        )
    ended = {}
    try:
        for process in started.values():
            until = time.monotonic() + 30
            while not has_begun(process) and time.monotonic() < until:
                time.sleep(0.02)
            time.sleep(0.2)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the command
        ended = {name: (process.communicate(timeout=30), process.returncode) for name, process in started.items()}
    finally:
        for process in started.values():
            process.kill()
    for name, ((shown, said), code) in ended.items():
        lines = [line for line in said.splitlines() if "compiling, this once" not in line]
        assert (name, code, shown) == (name, 130, "")
        assert len(lines) == 1, said
        assert lines[0].startswith("undershoot: interrupted")


def press(then: Callable[[bool], None]) -> Callable[[bool], None]:
    def app(standalone_mode: bool) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            then(standalone_mode)

    return app


def raised(error: BaseException) -> Callable[[bool], None]:
    def app(standalone_mode: bool) -> None:
        raise error

    return app


@pytest.mark.parametrize(
    ("app", "said"),
    [
        (raised(KeyboardInterrupt()), "interrupted"),
        (raised(Interrupted("interrupted; go on")), "interrupted; go on"),
        (press(raised(ImportError("half a library"))), "interrupted"),
        (press(raised(us.UndershootError("what came of it"))), "interrupted"),
        (press(raised(SystemExit(1))), "interrupted"),  # as typer does
        (press(raised(SystemExit(130))), "interrupted"),
    ],
)
def test_an_interruption_is_said_whatever_becomes_of_it(
    monkeypatch: pytest.MonkeyPatch, app: Callable[[], None], said: str
) -> None:
    monkeypatch.setattr(program, "app", app)
    assert commands.undershoot("solve", code=130).stderr == f"undershoot: {said}\n"


def test_an_interruption_that_a_library_swallows_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Freed:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):  # Python raises it here, and ignores it
                pass

    def app(standalone_mode: bool) -> None:
        Freed()
        time.sleep(30)
        raise SystemExit(0)

    monkeypatch.setattr("undershoot.cli.interruption.AGAIN_AFTER", 0.05)
    monkeypatch.setattr(program, "app", app)
    assert commands.undershoot("solve", code=130).stderr == "undershoot: interrupted\n"


def test_code_made_from_text_that_is_interrupted_does_not_end_the_process_by_a_signal(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(
        "from undershoot import cli\n"
        "cli._run = lambda: exec('import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(1)')\n"
        "cli.main()\n"
    )
    command, environment = [sys.executable, "-m", "interrupted"], {**os.environ, **HERE}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (130, "undershoot: interrupted\n")


def wrapped(number: int) -> us.UndershootError:
    """An error of ours that came from one of the system."""
    error = us.UndershootError("cannot write it")
    error.__cause__ = OSError(number, os.strerror(number))
    return error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(errno.ENOSPC, "No space", "here"), 1, "cannot use here: the disk is full; make room and try again"),
        (OSError(errno.ENOSPC, "No space"), 1, "cannot go on: the disk is full; make room and try again"),
        (wrapped(errno.ENOSPC), 1, "cannot write it"),
        (wrapped(errno.EACCES), 2, "cannot write it"),
        (OSError(errno.EACCES, "Permission denied", "there"), 2, "cannot use there: Permission denied"),
        (MemoryError(), 1, "there is not enough memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 1, "there is not enough memory"),
        (us.UndershootError("bad"), 2, "bad"),
    ],
)
def test_exit_codes_say_whether_the_input_or_the_machine_is_at_fault(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, said: str
) -> None:
    monkeypatch.setattr(program, "app", raised(error))
    done = commands.undershoot("solve", code=code)
    assert done.stderr.startswith(f"undershoot: {said}")
    assert len(done.stderr.splitlines()) == 1


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_exit_code_1_and_a_sentence_wherever_it_happens(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "profile.json").write_text(json.dumps(PROFILES["quick"].to_dict()))
    monkeypatch.setattr(os, "fsync", full)
    for arguments, place, advice in (
        (["train", "tiles-2x3", *SMALL, "--steps=50", "--out", str(tmp_path / "new")], "new/recipe.toml", "try again"),
        (["train", "tiles-2x3", *SMALL, "--steps=50", "--out", str(run), "--resume"], "run/recipe.toml", "try again"),
        (["calibrate", str(run)], "run/bundle", "try again"),
        (["bench", "tiles-2x3", "--random=2", "--out", str(tmp_path / "records")], "records", "try again"),
    ):
        said = commands.undershoot(*arguments, code=1).stderr.splitlines()[-1]
        assert "the disk is full; make room" in said
        assert str(tmp_path / place) in said
        assert advice in said


def test_a_disk_that_is_full_in_the_middle_of_a_training_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "save", full)
    said = commands.undershoot("train", "tiles-2x3", *SMALL, "--steps=50", "--out", str(tmp_path / "new"), code=1).stderr
    assert f"cannot use {tmp_path / 'new' / 'checkpoints' / 'step-000000050.safetensors'}: the disk is full; make room" in said
    assert re.search(r"go on with: undershoot train .* --resume", said)


def test_output_that_cannot_be_written_is_said() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("only Linux has a disk that is always full")
    with Path("/dev/full").open("w") as out:
        command = [sys.executable, "-m", "undershoot", "puzzles", "tiles-2x3"]
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "undershoot: cannot go on: the disk is full; make room and try again\n")


def test_the_readme_names_all_exit_codes() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    for code in (0, 1, 2, 130):
        assert re.search(rf"^\| {code} \|", readme, re.MULTILINE)
