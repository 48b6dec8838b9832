"""Machine code on disk, signed, so that a function is compiled once and no other user's code is ever run.

numba's own cache unpickles and executes whatever lies in its folder. The cache folder may be shared, so here a file counts only
if this user's key signed it, for just this function, signature and processor; it is looked into no sooner.
"""

import hashlib
import logging
import os
import pickle
import re
import stat
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import compiler, serialize, types

from undershoot import trust
from undershoot.files import cache_folder, check_no_link, is_endless, written_atomically

FORMAT = b"undershoot machine code 1\n"
SIGNATURE_BYTES = 32
MOST_BYTES = 1 << 26
"""Of a file: machine code is about a megabyte."""
UNUSED_DAYS = 30
FOLDER_OF_A_STATE = re.compile(r"[0-9a-f]{16}")
FILE_OF_A_STATE = re.compile(r"\.?[\w.]+-[0-9a-f]{32}\.code(\.\w+)?")
"""Also one that is half written."""

log = logging.getLogger("undershoot")
_dumps: Any = serialize.dumps
_named_tuple: Any = types.BaseNamedTuple
_rebuild: Any = compiler.CompileResult._rebuild
_warned: set[str] = set()


class MachineCode:
    """What numba asks for the machine code of a function, in place of its own cache.

    folder: where it is kept. sources: what else it depends on, such as the functions that this one calls. Where nothing can be
    kept, there is one warning, and every process compiles for itself.
    """

    def __init__(self, function: Callable[..., Any], folder: Path, sources: str) -> None:
        self._function = function
        self._name = f"{function.__module__}.{function.__qualname__}"
        self._folder = folder
        self._sources = sources
        self._rejected: set[Path] = set()
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """For numba's statistics."""
        return str(self._folder)

    def enable(self) -> None:
        """Read and write files from now on."""
        self._enabled = True

    def disable(self) -> None:
        """Leave the files alone from now on."""
        self._enabled = False

    def flush(self) -> None:
        """Before numba compiles again because variables of the module have changed: what was kept does not know of that."""
        self.disable()

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The result of an earlier compilation, or None."""
        target.refresh()
        if not self._enabled or not _is_ours(signature) or not _is_usable(self._folder):
            return None
        identity = self._identity(signature, target.codegen())
        try:
            path = self._path(identity)
            if is_endless(path) or path.stat().st_size > MOST_BYTES:
                self._rejected.add(path)
                return None
            content = path.read_bytes()
        except (OSError, trust.Untrusted):
            return None  # usually it is missing; saving it shows what else may be wrong
        payload = content[SIGNATURE_BYTES:]
        if trust.is_signed(identity + payload, content[:SIGNATURE_BYTES]):
            # Ours, but what it refers to may be here no longer, which fails in more ways than can be listed.
            with suppress(Exception):
                kept_for, parts = pickle.loads(payload)
                # Types differ by more than the names that the identity knows them by.
                return _rebuild(target, *parts) if kept_for == signature else None
        self._rejected.add(path)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compilation's result, if that can be."""
        if not self._enabled or not _is_ours(signature) or not _is_usable(self._folder):
            return
        if result.library.has_dynamic_globals or not all(lifted.can_cache for lifted in result.lifted):
            return  # it holds addresses of this process
        identity = self._identity(signature, result.codegen)
        payload = _dumps((signature, result._reduce()))
        try:
            path = self._path(identity)
            with written_atomically(path, follow_links=False) as file:
                file.write(trust.sign(identity + payload) + payload)
        except trust.Untrusted as reason:
            _warn_of_nothing_kept(self._folder, str(reason))
        except OSError as error:
            if sys.platform == "win32" and isinstance(error, PermissionError) and path.is_file():
                return  # another process wrote the same, and someone has it open
            _warn_of_nothing_kept(self._folder, error.strerror or str(error))
        else:
            if path in self._rejected:
                about = "was damaged or not made by this user; it was not used, but compiled and written again"
                _warn("rejected", f"machine code in {self._folder} {about}")

    def _identity(self, signature: Any, generator: Any) -> bytes:
        """Of this function's code for these types and this processor; signed along with it."""
        function = self._function
        code = function.__code__
        enclosed = _dumps(tuple(cell.cell_contents for cell in function.__closure__ or ()))
        parts = (self._sources, self._name, code.co_firstlineno, signature, generator.magic_tuple())
        digest = hashlib.sha256(repr(parts).encode())
        for data in (code.co_code, enclosed):
            digest.update(hashlib.sha256(data).digest())
        return FORMAT + digest.digest()

    def _path(self, identity: bytes) -> Path:
        """Another file for every user, so that those who share a folder do not replace each other's."""
        readable = re.sub(r"[^\w.]", "", self._name)[-100:]
        return self._folder / f"{readable}-{trust.sign(b'name of ' + identity).hex()[:32]}.code"


def _is_ours(kind: Any) -> bool:
    """Whether machine code for these types depends on our sources alone. For a guide of someone else's it holds functions of
    which nobody would notice that they have changed."""
    if isinstance(kind, _named_tuple) and not kind.instance_class.__module__.startswith("undershoot."):
        return False
    parts = kind if isinstance(kind, tuple) else getattr(kind, "types", ())
    inside = [kind.dtype] if isinstance(kind, types.NamedUniTuple) else []
    return all(map(_is_ours, [*parts, *inside]))


@cache
def _is_usable(folder: Path) -> bool:
    """Whether machine code can be kept there, as far as one can see before it is written. Makes the folder."""
    try:
        trust.key()
        check_no_link(folder.parent)
        check_no_link(folder)
        is_new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
    except trust.Untrusted as reason:
        _warn_of_nothing_kept(folder, str(reason))
        return False
    except OSError as error:
        _warn_of_nothing_kept(folder, error.strerror or str(error))
        return False
    if is_new:
        log.info("compiling, this once; it takes some seconds")
    with suppress(OSError):  # a tidy cache is worth no failure
        os.utime(folder)  # used today
        if is_new and folder.parent == cache_folder() / "compiled":
            _remove_unused(folder.parent)
    return True


def _remove_unused(parent: Path) -> None:
    """Remove the folders of other states of the sources that no process has used for long."""
    for folder in parent.iterdir():
        with suppress(OSError):
            if FOLDER_OF_A_STATE.fullmatch(folder.name) and time.time() - folder.lstat().st_mtime > UNUSED_DAYS * 86400:
                _remove_ours(folder)


def _remove_ours(folder: Path) -> None:
    """Remove a folder in which there is nothing but machine code that this user has kept; any other stays as it is."""
    if folder.is_symlink():
        return
    files = list(folder.iterdir())
    if all(FILE_OF_A_STATE.fullmatch(path.name) and _is_users_file(path) for path in files):
        for path in files:
            path.unlink()
        folder.rmdir()


def _is_users_file(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and (sys.platform == "win32" or status.st_uid == os.geteuid())


def _warn_of_nothing_kept(folder: Path, reason: str) -> None:
    _warn("nothing kept", f"machine code cannot be kept in {folder}, so every process compiles for itself: {reason}")


def _warn(about: str, message: str) -> None:
    """Once for each thing to warn about."""
    if about not in _warned:
        _warned.add(about)
        warnings.warn(message, stacklevel=3)
