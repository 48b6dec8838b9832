"""Machine code on disk: whose it must be to be run, and what happens where none can be kept."""

import errno
import logging
import os
import pickle
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from numba.core import config

import undershoot
from undershoot import trust
from undershoot.files import cache_folder
from undershoot.kernels import compiler, machine_code
from undershoot.kernels.compiler import compiled

SOURCE = """
from undershoot.kernels.compiler import compiled

@compiled
def twice(number):
    return 2 * number

@compiled
def square(number):
    return number * number

def plus(summand):
    @compiled
    def sum(number):
        return number + summand
    return sum
"""


class Workshop:
    """A module with compiled functions, loaded anew as another process would, and the folder for their machine code."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.source = root / "subject.py"
        self.source.write_text(SOURCE)
        self._patch = patch
        self.move(root / "machine code")

    def move(self, folder: Path) -> None:
        self.folder = folder
        self._patch.setenv("NUMBA_CACHE_DIR", str(folder))
        self._patch.setattr(config, "CACHE_DIR", str(folder))  # numba has read the other long ago, and looks at it now and then

    def functions(self) -> Any:
        spec = spec_from_file_location("subject", self.source)
        assert spec
        assert spec.loader
        module = module_from_spec(spec)
        self._patch.setitem(sys.modules, "subject", module)
        spec.loader.exec_module(module)
        return module

    def files(self) -> dict[str, Path]:
        """By the name of the function."""
        return {path.name.split("-")[0].removeprefix("subject."): path for path in self.folder.iterdir()}


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.setattr(machine_code, "_warned", set())
    return Workshop(tmp_path, monkeypatch)


def was_kept(function: Any, argument: Any, result: Any) -> bool:
    """Whether a function that was not called before has its machine code from the disk; the result must be right."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert function(argument) == result
    hits, misses = (sum(counts.values()) for counts in (function.stats.cache_hits, function.stats.cache_misses))
    assert hits + misses == 1
    return bool(hits)


def only_warning(function: Any, argument: int, result: int) -> str:
    """A function that is compiled although it was before: the result is right, and there is one warning."""
    with pytest.warns(UserWarning, match="machine code") as caught:
        assert function(argument) == result
    assert not function.stats.cache_hits
    (warning,) = caught
    return str(warning.message)


def test_what_is_compiled_once_is_kept(workshop: Workshop) -> None:
    assert not was_kept(workshop.functions().twice, 21, 42)
    content = workshop.files()["twice"].read_bytes()
    assert was_kept(workshop.functions().twice, 21, 42)
    assert workshop.files()["twice"].read_bytes() == content
    assert len(workshop.files()) == 1


def test_every_type_and_every_enclosed_value_has_its_own(workshop: Workshop) -> None:
    for _ in range(2):
        functions = workshop.functions()
        assert functions.twice(1.5) == 3.0
        assert functions.twice(2) == 4
        assert functions.plus(1)(1) == 2
        assert functions.plus(10)(1) == 11
    assert len(list(workshop.folder.iterdir())) == 4


def test_machine_code_of_other_sources_is_not_used(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not was_kept(workshop.functions().twice, 21, 42)
    monkeypatch.setattr(compiler, "_state_of_sources", lambda: "another")
    assert not was_kept(workshop.functions().twice, 21, 42)


def test_every_state_of_the_sources_has_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "__init__.py").touch()
    called = tmp_path / "called.py"
    called.write_text("ONE = 1")
    monkeypatch.setattr(undershoot, "__file__", str(tmp_path / "__init__.py"))
    before = compiler._state_of_sources.__wrapped__()
    assert compiler._state_of_sources.__wrapped__() == before
    called.write_text("ONE = 10")
    assert compiler._state_of_sources.__wrapped__() != before


def flipped(content: bytes) -> bytes:
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        flipped,
        lambda content: content[:32] + flipped(content[32:]),
        lambda content: flipped(content[:32]) + content[32:],
        lambda content: content[:-1],
        lambda content: content[:32],
        lambda content: content[:5],
        lambda content: b"",
        lambda content: content + b"\0",
    ],
)
def test_damaged_machine_code_is_compiled_again(workshop: Workshop, damage: Callable[[bytes], bytes]) -> None:
    workshop.functions().twice(21)
    path = workshop.files()["twice"]
    content = path.read_bytes()
    path.write_bytes(damage(content))
    assert f"machine code in {workshop.folder} was damaged" in only_warning(workshop.functions().twice, 21, 42)
    assert was_kept(workshop.functions().twice, 21, 42)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("put", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_what_never_ends_is_not_read(workshop: Workshop, put: Callable[[Path], None]) -> None:
    assert workshop.functions().twice(21) == 42
    path = workshop.files()["twice"]
    path.unlink()
    put(path)
    assert f"machine code in {workshop.folder} was damaged" in only_warning(workshop.functions().twice, 21, 42)
    assert path.is_file()
    assert not path.is_symlink()


def test_exchanged_files_are_found_out_with_one_warning_for_all(workshop: Workshop) -> None:
    functions = workshop.functions()
    assert (functions.twice(10), functions.square(10)) == (20, 100)
    files = workshop.files()
    contents = {name: path.read_bytes() for name, path in files.items()}
    files["twice"].write_bytes(contents["square"])
    files["square"].write_bytes(contents["twice"])
    assert str(workshop.folder) in only_warning(workshop.functions().twice, 10, 20)
    assert not was_kept(workshop.functions().square, 10, 100)  # nor a second warning
    assert was_kept(workshop.functions().twice, 10, 20)
    assert was_kept(workshop.functions().square, 10, 100)


def test_what_another_key_signed_is_not_used(workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop.functions().twice(21)
    path = workshop.files()["twice"]
    with monkeypatch.context() as patch:
        patch.setenv("UNDERSHOOT_STATE_DIR", str(tmp_path / "of another user"))
        assert not was_kept(workshop.functions().twice, 21, 42)  # they have a file of their own, so this is no damage
    (theirs,) = set(workshop.folder.iterdir()) - {path}
    path.write_bytes(theirs.read_bytes())
    assert "not made by this user" in only_warning(workshop.functions().twice, 21, 42)


class Intruder:
    """Unpickling it makes a folder."""

    def __init__(self, trace: Path) -> None:
        self.trace = str(trace)

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (self.trace,)


def test_nothing_is_unpickled_before_its_signature_is_verified(workshop: Workshop, tmp_path: Path) -> None:
    workshop.functions().twice(21)
    path = workshop.files()["twice"]
    path.write_bytes(path.read_bytes()[:32] + pickle.dumps(Intruder(tmp_path / "trace")))
    only_warning(workshop.functions().twice, 21, 42)
    assert not (tmp_path / "trace").exists()


def test_signed_but_useless_machine_code_is_compiled_again(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(machine_code, "_dumps", lambda thing: pickle.dumps(()))
        workshop.functions().twice(21)
        only_warning(workshop.functions().twice, 21, 42)


def no_home(workshop: Workshop, patch: pytest.MonkeyPatch) -> str:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("UNDERSHOOT_CACHE_DIR", "UNDERSHOOT_STATE_DIR", "HOME"):
        patch.delenv(name, raising=False)
    patch.setattr(Path, "home", home)
    return "this user has no home folder"


def state_in_a_file(workshop: Workshop, patch: pytest.MonkeyPatch) -> str:
    patch.setenv("UNDERSHOOT_STATE_DIR", str(workshop.source))
    return f"{workshop.source}/key cannot be used"


def folder_is_a_file(workshop: Workshop, patch: pytest.MonkeyPatch) -> str:
    workshop.move(workshop.source)
    return "File exists"


def folder_in_a_file(workshop: Workshop, patch: pytest.MonkeyPatch) -> str:
    workshop.move(workshop.source / "compiled" / "0123456789abcdef")
    return "Not a directory"


def folder_cannot_be_made(workshop: Workshop, patch: pytest.MonkeyPatch) -> str:
    if sys.platform != "linux":
        pytest.skip("elsewhere /proc is a folder like others, or none")
    workshop.move(Path("/proc/undershoot/compiled"))
    return "No such file or directory"


def folder_cannot_be_seen(workshop: Workshop, patch: pytest.MonkeyPatch) -> str:
    workshop.move(workshop.folder / ("long" * 100))
    return "File name too long"


def disk_is_full(workshop: Workshop, patch: pytest.MonkeyPatch) -> str:
    def fsync(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    patch.setattr(os, "fsync", fsync)
    return "No space left on device"


def folder_is_read_only(workshop: Workshop, patch: pytest.MonkeyPatch) -> str:
    def mkstemp(**kwargs: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "somewhere")

    workshop.folder.mkdir()
    patch.setattr("tempfile.mkstemp", mkstemp)
    return "Read-only file system"


OBSTACLES = [no_home, state_in_a_file, folder_is_a_file, folder_in_a_file]
OBSTACLES += [folder_cannot_be_made, folder_cannot_be_seen, disk_is_full, folder_is_read_only]


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_where_nothing_can_be_kept_one_warning_says_so(
    workshop: Workshop,
    obstacle: Callable[[Workshop, pytest.MonkeyPatch], str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    trust.key()  # it was made before the disk was full
    with monkeypatch.context() as patch, caplog.at_level(logging.INFO, "undershoot"):
        reason = obstacle(workshop, patch)
        message = only_warning(workshop.functions().twice, 21, 42)
        assert message.startswith(f"machine code cannot be kept in {workshop.folder}, ")
        assert reason in message
        assert not was_kept(workshop.functions().square, 5, 25)  # nor a second warning
    with suppress(OSError):
        assert not list(workshop.folder.iterdir())
    if obstacle is not disk_is_full:
        assert not caplog.messages  # that something is compiled just once


def test_a_user_who_can_write_nowhere_has_a_cache_folder_all_the_same(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gettempdir() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    with monkeypatch.context() as patch:
        no_home(workshop, patch)
        patch.setattr("tempfile.gettempdir", gettempdir)
        assert cache_folder().is_absolute()  # whoever tries to write there says that it cannot be


def test_damage_that_cannot_be_repaired_is_one_warning(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop.functions().twice(21)
    workshop.files()["twice"].write_bytes(b"")
    with monkeypatch.context() as patch:
        assert disk_is_full(workshop, patch) in only_warning(workshop.functions().twice, 21, 42)


def test_that_it_compiles_is_said_for_a_new_folder(workshop: Workshop, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "undershoot"):
        functions = workshop.functions()
        assert not caplog.messages
        functions.twice(21)
        functions.square(21)
        assert caplog.messages == ["compiling, this once; it takes some seconds"]
        machine_code._is_usable.cache_clear()
        workshop.functions().twice(21)
        assert len(caplog.messages) == 1


def aged(folder: Path, days: float) -> Path:
    folder.mkdir(parents=True)
    for name in (f"undershoot.kernels.cpu.steps-{'a' * 32}.code", f".undershoot.kernels.cpu.steps-{'b' * 32}.code.x1_y2z3w"):
        (folder / name).touch()
    os.utime(folder, (time.time() - days * 86400,) * 2)
    return folder


def test_folders_that_are_used_no_more_are_removed(workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERSHOOT_CACHE_DIR", str(tmp_path))
    folders = tmp_path / "compiled"
    old, recent = aged(folders / ("0" * 16), 31), aged(folders / ("1" * 16), 29)
    others = [aged(folders / "something else", 31), aged(tmp_path / "elsewhere" / ("0" * 16), 31)]
    workshop.move(tmp_path / "elsewhere" / ("2" * 16))
    workshop.functions().twice(21)
    assert old.exists()
    workshop.move(folders / ("2" * 16))
    workshop.functions().twice(21)
    assert not old.exists()
    assert recent.exists()
    assert all(other.exists() for other in others)


def test_a_folder_counts_as_used_when_its_machine_code_is_run(workshop: Workshop) -> None:
    workshop.functions().twice(21)
    os.utime(workshop.folder, (0, 0))
    machine_code._is_usable.cache_clear()
    assert was_kept(workshop.functions().twice, 21, 42)
    assert time.time() - workshop.folder.stat().st_mtime < 3600


def test_without_a_compiler_functions_stay_as_they_are(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "DISABLE_JIT", 1)

    def twice(number: int) -> int:
        return 2 * number

    assert compiled(twice) is twice


def test_processes_that_compile_at_once_leave_one_good_file(workshop: Workshop) -> None:
    code = f"import sys; sys.path.insert(0, {str(workshop.source.parent)!r}); import subject; print(subject.twice(21))"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(workshop.folder)}
    command = [sys.executable, "-W", "error::UserWarning", "-c", code]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, env=environment, **pipes) for _ in range(2)]
    assert [process.communicate() for process in processes] == [("42\n", "")] * 2
    assert list(workshop.files()) == ["twice"]
    assert was_kept(workshop.functions().twice, 21, 42)


def test_a_user_without_a_home_compiles_afresh(tmp_path: Path) -> None:
    code = """
from pathlib import Path
def home():
    raise RuntimeError("Could not determine home directory.")
Path.home = home
from undershoot.kernels.hashing import finished, mixed
print(mixed(finished(1), 2) >= 0)
"""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UNDERSHOOT", "NUMBA", "XDG", "HOME"))}
    pipes: dict[str, Any] = {"capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-c", code], env={**kept, "TMPDIR": str(tmp_path)}, check=False, **pipes)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    assert done.stderr.count("Warning") == 1
    assert f"machine code cannot be kept in {tmp_path / 'undershoot-cache' / 'compiled'}" in done.stderr
    package = Path(undershoot.__file__).parent
    assert not [path for path in package.rglob("*") if path.suffix in {".nbi", ".nbc", ".code"}]
    assert not list(tmp_path.iterdir())


MINE = """
from typing import NamedTuple
import numpy as np
from undershoot.kernels.guides import implements, keeps_nothing, value_of

@keeps_nothing
class Mine(NamedTuple):
    nothing: int = 0

@implements(value_of, Mine)
def _value(guide, states, row, kept, at):
    return np.float32(SAID)
"""
ASK = """
import numpy as np
import mine
from undershoot.kernels.guides import values_of
print(int(values_of(mine.Mine(), np.zeros((1, 4), dtype=np.uint8))[0][0]))
"""


def test_guides_of_others_are_compiled_anew(tmp_path: Path) -> None:
    """Nobody would notice that their functions have changed."""
    said = []
    for value in (7, 3):
        (tmp_path / "mine.py").write_text(MINE.replace("SAID", str(value)))
        environment = {**os.environ, "UNDERSHOOT_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        run = subprocess.run(
            [sys.executable, "-c", ASK], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        said.append(int(run.stdout))
    assert said == [7, 3]
