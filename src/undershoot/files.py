"""Where caches live, and how files are read and written so that nothing is lost when a process dies."""

import errno
import glob
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from undershoot.errors import UndershootError, cannot

PART, FRESH, REPLACED = ".part", "new", "replaced"
"""Beside a folder that is being written: `.NAME.RANDOM.part`, with the new one in it and, for a moment, the old one."""
LONG_AGO = 3600.0
"""Seconds after which such a folder belongs to a process that died: writing takes a few."""
MOMENT = 0.5
"""Seconds that a living process needs at most between moving the old folder away and the new one to its place."""
AT_FDCWD, RENAME_EXCHANGE, RENAME_SWAP = -100, 2, 2
"""Of Linux, Linux and macOS."""


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


@cache
def sources_digest() -> str:
    """A checksum of what all source files of this package hold, as it is when first asked for.

    Two machines with the same one run the same program, wherever it is installed.
    """
    digest, root = hashlib.sha256(), Path(__file__).parent
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in root.rglob("*.py")):
        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def is_endless(path: Path) -> bool:
    """Whether there is a pipe or a device, which nobody would read to its end."""
    return path.exists() and not path.is_file() and not path.is_dir()


def read_text(path: Path, what: str) -> str:
    """The text of a file, which is `what` in the message if it cannot be read."""
    try:
        if is_endless(path):
            raise UndershootError(f"cannot read {what} {path}: it is a pipe or a device; a plain file belongs there")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise cannot(f"read {what} {path}", error) from error
    except ValueError as error:
        raise UndershootError(f"{what} {path} is damaged, it is no text: {error}") from error


def read_json(path: Path, what: str) -> Any:
    """What a JSON file holds; whatever is wrong with it is said by its name."""
    text = read_text(path, what)
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()  # halves of characters could not be written again
    except (ValueError, RecursionError) as error:
        raise UndershootError(f"{what} {path} is damaged, it is no JSON: {error}") from error
    return found


@contextmanager
def naming(path: Path, alias: str | None = None) -> Iterator[None]:
    """Errors of the system that name no file, or the one of this alias, name `path`."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename in (None, alias):
            error.filename = str(path)
        raise


@contextmanager
def _naming_nothing_else(path: Path) -> Iterator[None]:
    """Errors of the system name `path`, and not the temporary file or folder for it, whose name is random."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = str(path)
        raise


@contextmanager
def written_atomically(path: Path, follow_links: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path` that takes its name once everything is on disk, or vanishes.

    Through a link, what it points to is replaced. Devices and pipes are written to as they are. In folders that others may
    write to links are not followed, but replaced: they could lead anywhere.
    """
    if follow_links and path.exists() and not path.is_file() and not path.is_dir():
        with naming(path), path.open("wb") as file:
            yield file
        return
    place = _behind_links(path) if follow_links else path
    place.parent.mkdir(parents=True, exist_ok=True)
    with _naming_nothing_else(path):
        handle, temporary = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    try:
        with naming(path, temporary):
            with os.fdopen(handle, "wb") as file:
                if sys.platform != "win32":
                    mask = os.umask(0)
                    os.umask(mask)
                    os.fchmod(file.fileno(), 0o666 & ~mask)  # temporary files are private, what they become is not
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, place)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def check_no_link(folder: Path) -> None:
    """OSError if a folder of the cache is a link: others may have put it there, and what it leads to is not ours to change.

    The cache folder itself, which the user chose, may be one.
    """
    if folder.is_symlink():
        raise OSError(errno.ELOOP, f"{folder} is a link, and such folders are not used; remove it", str(folder))


def check_contents(folder: Path) -> None:
    """Refuse a run, a bundle or a reproduction in which a link leads to a folder out of it: what is there would be changed.

    The folder itself may be a link, if that is the path that was given. Links to files may lead anywhere, as hubs lay out what
    they fetched: they are read, and replaced rather than written through. Nothing is written deeper than in its folders.
    """
    root = os.path.realpath(folder)
    try:
        for entry in [*_entries(root), *(inside for path in _entries(root) for inside in _entries(path))]:
            found = os.path.realpath(entry)
            if os.path.islink(entry) and not os.path.isfile(found) and not Path(found).is_relative_to(root):
                raise UndershootError(
                    f"{folder / os.path.relpath(entry, root)} is a link that leads out of {folder}, to {found}; "
                    "what belongs to such a folder is kept in it: remove the link"
                )
    except OSError as error:
        raise cannot(f"look into {folder}", error) from error


def _entries(folder: str) -> list[str]:
    """Paths of what is in a folder; of what is none, or a link to one, nothing."""
    if os.path.islink(folder) or not os.path.isdir(folder):
        return []
    with os.scandir(folder) as found:
        return [entry.path for entry in found]


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files of processes that died while they wrote this one."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        with suppress(OSError):
            if time.time() - left.lstat().st_mtime > LONG_AGO:
                left.unlink()


def check_writable(path: Path, as_folder: bool = False) -> None:
    """OSError if no file (or folder) can be written there; nothing is left behind."""
    place = _behind_links(path)
    if place.is_dir() and not as_folder:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if place.exists() and not place.is_file() and not place.is_dir():
        return  # a device or a pipe
    with _naming_nothing_else(path):
        nearest = next(parent for parent in place.absolute().parents if parent.exists())
        handle, temporary = tempfile.mkstemp(prefix=f".{place.name}.", dir=nearest)
    os.close(handle)
    Path(temporary).unlink(missing_ok=True)


def contents_digest(folder: Path) -> str:
    """Of the names of all files in a folder, and of what they hold; empty if it is not there."""
    if not folder.is_dir():
        return ""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(f"{path.name!a} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def write_folder(folder: Path, files: dict[str, bytes], replaces: str | None = None) -> None:
    """Write all files into a new folder that then takes the place of the old one, if there is one, in one step.

    Where the system has no such step, it takes two, and `put_back` mends what a kill between them leaves. replaces: the
    `contents_digest` of what work began with; if something else is there by now, it stays, and nothing is written.
    """
    place = _behind_links(folder)
    put_back(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place)
    with _naming_nothing_else(folder):
        scratch = Path(tempfile.mkdtemp(prefix=f".{place.name}.", suffix=PART, dir=place.parent))
    fresh, old = scratch / FRESH, scratch / REPLACED
    try:
        fresh.mkdir()
        for name, data in files.items():
            with naming(folder / name, str(fresh / name)), (fresh / name).open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        with naming(folder, str(fresh)):
            if not _took_place(fresh, place, old, replaces):
                raise UndershootError(
                    f"{folder} was changed by another command meanwhile; that is left as it is, and nothing is written: "
                    "give this command again"
                )
    finally:
        if old.exists() and not os.path.lexists(place):
            old.rename(place)
        shutil.rmtree(scratch, ignore_errors=True)


def _took_place(fresh: Path, place: Path, old: Path, replaces: str | None) -> bool:
    """Put a folder in the place of another one; whether that was the one that it replaces."""
    if os.path.lexists(place) and _exchanged(fresh, place):
        if replaces is None or contents_digest(fresh) == replaces:
            return True
        _exchanged(fresh, place)
        return False
    if replaces is not None and contents_digest(place) != replaces:
        return False
    if os.path.lexists(place):
        place.rename(old)
    try:
        fresh.rename(place)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        return False  # another process was quicker
    return True


def copy_folder(source: Path, target: Path) -> None:
    """The files of a folder, in another one."""
    write_folder(target, {path.name: path.read_bytes() for path in source.iterdir()})


def free_place(path: Path) -> Path:
    """The path, or the first with a number behind it, at which there is nothing, not even a link that leads nowhere."""
    place, number = path, 1
    while os.path.lexists(place):
        number += 1
        place = path.with_name(f"{path.name}-{number}")
    return place


def put_back(folder: Path) -> None:
    """If the folder is missing because a process died between the two steps of `write_folder`, put the old one back."""
    place = _behind_links(folder)
    if os.path.lexists(place):
        return
    with suppress(OSError):
        left = list(place.parent.glob(f".{glob.escape(place.name)}.*{PART}"))
        # Of others both steps were made, and whoever removed the folder since wanted that.
        left = [scratch for scratch in left if all(map(_is_own_folder, (scratch, scratch / FRESH, scratch / REPLACED)))]
        if left:
            time.sleep(MOMENT)  # for a process that lives
        for scratch in left:
            if not os.path.lexists(place):
                (scratch / REPLACED).rename(place)
                shutil.rmtree(scratch, ignore_errors=True)


def _is_own_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _behind_links(path: Path) -> Path:
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _sweep(folder: Path) -> None:
    """Remove what processes left behind that died while they wrote this folder."""
    for scratch in folder.parent.glob(f".{glob.escape(folder.name)}.*{PART}"):
        with suppress(OSError):
            ours = {path.name for path in scratch.iterdir()} <= {FRESH, REPLACED}
            if ours and time.time() - scratch.stat().st_mtime > LONG_AGO:
                shutil.rmtree(scratch)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; False where the system, or this file system, has none."""
    import ctypes

    names = os.fsencode(one), os.fsencode(other)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "linux":
            return bool(library.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0)
        if sys.platform == "darwin":
            return bool(library.renamex_np(*names, RENAME_SWAP) == 0)
    except (OSError, AttributeError, TypeError):  # an old library, or Windows
        pass
    return False
