"""Pattern tables on disk, so that each is made once.

Others may write to the cache, and a table that the cursor was folded out of cannot be checked by itself: it counts only if this
installation made it. It is read into memory rather than mapped, since a mapped file could change after it was checked.
"""

import glob
import hashlib
import json
import math
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from undershoot import trust
from undershoot.arrays import U8
from undershoot.errors import NotAvailable
from undershoot.files import cache_folder, check_no_link, check_writable, remove_leftovers, written_atomically
from undershoot.oracles.size import bytes_text
from undershoot.pattern_tables.looks import distinct_patterns
from undershoot.pattern_tables.packing import packed_size, unpack
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.room import check_memory, disk_bytes, free_disk
from undershoot.pattern_tables.tables import AUTO, PatternTable, make_table, takes_cuda
from undershoot.pattern_tables.verification import WrongPatternTable, verify_entries
from undershoot.trust import Passed

FORMAT = "undershoot pattern table 3"
HEADER = 1024
"""Bytes of JSON and blanks before the entries."""
OTHER = {
    "format": "another version",
    "fingerprint": "a puzzle with other moves",
    "followed": "other pieces",
    "is_additive": "a pattern for which moves count in another way",
}
"""What a file is of that says something else of itself."""
Progress = Callable[[str, int, int], None]


class DamagedPattern(Exception):
    """A file that is not the pattern table it should be."""


def table_of(
    pattern: Pattern,
    name: str,
    cache_dir: Path | str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    again: bool = False,
    device: str = AUTO,
) -> PatternTable:
    """The table of a pattern of the puzzle of this name: from the cache, or made, verified, and then cached.

    again: make it in any case. device: where, see `make_table`.
    """
    path = path_of(pattern, name, cache_dir)
    if not again:
        try:
            return load(path, pattern, progress)
        except OSError:
            pass  # usually it is missing; saving it shows what else may be wrong
        except DamagedPattern as damage:
            warnings.warn(f"the cached pattern table {path} is not used ({damage}); it is made again", stacklevel=2)
    can_be_kept = _can_be_kept(path, disk_bytes(pattern) + HEADER)
    table = make_table(pattern, threads, progress, device)
    if can_be_kept:
        try:
            trust.record(Passed.PATTERN, save(path, table))
        except OSError as error:
            warnings.warn(f"the pattern table could not be cached as {path}: {error.strerror or error}", stacklevel=2)
    return table


def _can_be_kept(path: Path, size: int, what: str = "the pattern table is") -> bool:
    """Whether a file of this size can be written there; if not, a warning says so before the work begins. what: is made."""
    try:
        check_no_link(path.parent)
        check_writable(path if path.is_dir() else path.with_name("table"))
        free = free_disk(path)
        reason = "" if free is None or free >= size else f"{bytes_text(size)} are needed, {bytes_text(free)} are free"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        advice = "make room, or set UNDERSHOOT_CACHE_DIR to a folder elsewhere"
        warnings.warn(
            f"nothing can be cached as {path} ({reason}), so {what} made for this process alone; {advice}", stacklevel=3
        )
    return not reason


def check_room(
    patterns: Sequence[Pattern], name: str, cache_dir: Path | str | None = None, again: bool = False, device: str = AUTO
) -> None:
    """Refuse what does not fit into memory, and warn if there is no room to cache it, before the first of several tables is
    made. Parameters as in `table_of`."""

    def bytes_of(pattern: Pattern) -> int | None:
        return None if again else cached_bytes(pattern, name, cache_dir)

    missing = [one for one in distinct_patterns(patterns) if bytes_of(one) is None]
    if not any(takes_cuda(one, device) for one in missing):
        check_memory(patterns, bytes_of)
    if len(missing) > 1:  # of one, it is said when that is made
        need = sum(disk_bytes(one) + HEADER for one in missing)
        _can_be_kept(path_of(missing[0], name, cache_dir), need, f"some of {len(missing)} pattern tables are")


def cached_seconds(pattern: Pattern, name: str, cache_dir: Path | str | None = None) -> float | None:
    """What the table in the cache took to be made, as its file says; None if there is none, or if it is one that this
    installation did not make and could not check. Whether it is whole shows when it is read."""
    about = _cached(path_of(pattern, name, cache_dir), pattern)
    return None if about is None else _seconds_of(about)


def cached_bytes(pattern: Pattern, name: str, cache_dir: Path | str | None = None) -> int | None:
    """What the table in the cache takes in memory, as its file says; None if there is none, as in `cached_seconds`."""
    about = _cached(path_of(pattern, name, cache_dir), pattern)
    size = int(pattern.folded.size)
    return None if about is None else packed_size(size) if about.get("is_packed") is True else size


def _cached(path: Path, pattern: Pattern) -> dict[str, Any] | None:
    """What the file of a table says of itself, if that counts here."""
    try:
        if path.parent.is_symlink() or not path.is_file():
            return None
        with path.open("rb") as file:
            about, checksum = _header(file)
    except (OSError, DamagedPattern):
        return None
    is_this = all(about.get(key) == value for key, value in _about(pattern).items())
    is_digest = isinstance(checksum, str) and re.fullmatch("[0-9a-f]{64}", checksum)
    counts = is_digest and (not pattern.has_cursor or trust.has_passed(Passed.PATTERN, str(checksum)))
    return about if is_this and counts else None


def _seconds_of(about: dict[str, Any]) -> float | None:
    """What making a table took; None if its file does not say so."""
    seconds = about.get("seconds")
    return seconds if isinstance(seconds, float) and 0 <= seconds < math.inf else None


def has_any(name: str, fingerprint: str, cache_dir: Path | str | None = None) -> bool:
    """Whether the cache holds a file of any pattern of this puzzle, which is quicker to say than of which."""
    folder = (Path(cache_dir) if cache_dir is not None else cache_folder()) / "patterns"
    return not folder.is_symlink() and any(folder.glob(f"{glob.escape(name)}-{fingerprint[:16]}-*.pattern"))


def path_of(pattern: Pattern, name: str, cache_dir: Path | str | None = None) -> Path:
    """Where the table of a pattern is kept."""
    folder = (Path(cache_dir) if cache_dir is not None else cache_folder()) / "patterns"
    pieces = hashlib.sha256(json.dumps([list(pattern.followed), pattern.is_additive]).encode()).hexdigest()[:16]
    return folder / f"{name}-{pattern.pieces.table.fingerprint[:16]}-{len(pattern.followed)}-{pieces}.pattern"


def save(path: Path, table: PatternTable) -> str:
    """Write a table in one piece or not at all; returns its digest."""
    check_no_link(path.parent)
    digest = _digest(table.pattern, table.is_packed, table.entries)
    about = {**_about(table.pattern), "is_packed": table.is_packed, "seconds": table.seconds, "sha256": digest}
    header = json.dumps(about).encode()
    remove_leftovers(path)
    with written_atomically(path, follow_links=False) as file:
        file.write(header.ljust(HEADER - 1) + b"\n")
        file.write(np.ascontiguousarray(table.entries).data)
    return digest


def load(path: Path, pattern: Pattern, progress: Progress | None = None) -> PatternTable:
    """Read a table; DamagedPattern if it is not the one of this pattern, byte for byte as this installation wrote it."""
    check_no_link(path.parent)
    if not path.is_file():  # a pipe would never end
        raise FileNotFoundError(path)
    with path.open("rb") as file:
        about, checksum = _header(file)
        for key, value in _about(pattern).items():
            if about.get(key) != value:
                raise DamagedPattern(f"it is of {OTHER[key]}")
        size, is_packed = int(pattern.folded.size), about.get("is_packed") is True
        entries = np.empty(packed_size(size) if is_packed else size, dtype=np.uint8)
        if file.readinto(entries.data) != len(entries) or file.read(1):
            raise DamagedPattern("it is cut off, or too long")
    digest = _digest(pattern, is_packed, entries)
    if checksum != digest:
        raise DamagedPattern("its checksum is wrong")
    seconds = _seconds_of(about)
    if seconds is None:
        raise DamagedPattern("it does not say what it took")
    if not trust.has_passed(Passed.PATTERN, digest):
        if pattern.has_cursor:
            raise DamagedPattern("this installation did not make it, and without the cursor's places it cannot be checked")
        try:
            whole = unpack(entries, size) if is_packed else entries
            verify_entries(pattern, whole, progress=progress and (lambda done, of: progress("verifying", done, of)))
        except (WrongPatternTable, NotAvailable) as error:
            raise DamagedPattern(str(error)) from error
        trust.record(Passed.PATTERN, digest)
    return PatternTable(pattern, entries, seconds, is_packed, path)


def _header(file: BinaryIO) -> tuple[dict[str, Any], object]:
    try:
        about = dict(json.loads(file.read(HEADER)))
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedPattern("it does not begin as a pattern table does") from error
    return about, about.pop("sha256", None)


def _about(pattern: Pattern) -> dict[str, Any]:
    """What a file must say of itself."""
    return {
        "format": FORMAT,
        "fingerprint": pattern.pieces.table.fingerprint,
        "followed": [list(pattern.pieces.cells[piece]) for piece in pattern.folded.pieces.tolist()],
        "is_additive": pattern.is_additive,
    }


def _digest(pattern: Pattern, is_packed: bool, entries: U8) -> str:
    """Of what a table says, whoever made it, and however long that took."""
    about = {**_about(pattern), "is_packed": is_packed}
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    digest.update(np.ascontiguousarray(entries).data)
    return digest.hexdigest()
