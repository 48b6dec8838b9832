"""Where caches live, and how files are written so that nothing is lost when a process dies."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def cache_folder() -> Path:
    """UNDERSHOOT_CACHE_DIR, or the folder this platform keeps caches in. It may not exist yet.

    Others may write to it: what is read from there counts only once it is verified.
    """
    if chosen := os.environ.get("UNDERSHOOT_CACHE_DIR"):
        return Path(chosen)
    try:
        home = Path.home()
    except RuntimeError:  # a user without one, as in some containers
        try:
            return Path(tempfile.gettempdir()) / "undershoot-cache"
        except FileNotFoundError:  # nor can they write anywhere; whoever tries says so
            return Path(os.sep) / "undershoot-cache"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "undershoot" / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "undershoot"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "undershoot"


@contextmanager
def written_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path` that takes its name once everything is on disk, or vanishes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            if sys.platform != "win32":
                mask = os.umask(0)
                os.umask(mask)
                os.fchmod(file.fileno(), 0o666 & ~mask)  # temporary files are private, what they become is not
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_folder(folder: Path, files: dict[str, bytes]) -> None:
    """Write all files into a new folder that then takes the place of the old one, if there is one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, data in files.items():
            with (fresh / name).open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        fresh.chmod(0o755)
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
            folder.rename(old / "replaced")
            try:
                fresh.rename(folder)
            except BaseException:
                (old / "replaced").rename(folder)
                raise
            finally:
                shutil.rmtree(old, ignore_errors=True)
        else:
            fresh.rename(folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
