"""Distance tables on disk, so that a space is enumerated once."""

import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from undershoot.arrays import AnyArray
from undershoot.files import cache_folder, written_atomically
from undershoot.oracles.breadth_first import explore
from undershoot.oracles.distance_table import DistanceTable
from undershoot.oracles.size import check_radius
from undershoot.puzzles.puzzle import Puzzle

FORMAT = "undershoot distance table 1"


class DamagedTable(Exception):
    """A file that is not the distance table it should be."""


def oracle(
    puzzle: Puzzle,
    radius: int | None = None,
    cache_dir: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DistanceTable:
    """Exact costs to the goal: from the cache, or by `explore`, whose result is then cached.

    cache_dir: by default a folder of the platform's cache. A damaged file is made anew, with a warning.
    """
    check_radius(radius)
    folder = (cache_dir or cache_folder()) / "oracles"
    for known in (radius, None):
        path = _path(folder, puzzle, known)
        if path.exists():
            try:
                table = load(path, puzzle)
                return table if known == radius or radius is None else table.within(radius)
            except DamagedTable as damage:
                warnings.warn(f"the cached distances {path} are damaged ({damage}); they are computed again", stacklevel=2)
    table = explore(puzzle, radius, progress=progress)
    path = _path(folder, puzzle, radius)
    try:
        save(path, table)
    except OSError as error:
        warnings.warn(f"the distances could not be cached as {path}: {error.strerror}", stacklevel=2)
    return table


def _path(folder: Path, puzzle: Puzzle, radius: int | None) -> Path:
    part = "all" if radius is None else f"within-{radius}"
    return folder / f"{puzzle.name}-{puzzle.table.fingerprint[:16]}-{part}.npz"


def save(path: Path, table: DistanceTable) -> None:
    """Write a table in one piece or not at all."""
    about = {
        "format": FORMAT,
        "fingerprint": table.table.fingerprint,
        "radius": table.radius,
        "is_bipartite": table.is_bipartite,
        "seconds": table.seconds,
        "sha256": _digest(table.keys, table.histogram),
    }
    keys = np.ascontiguousarray(table.keys, dtype="<u8")
    with written_atomically(path) as file:
        np.savez(file, keys=keys, histogram=table.histogram, about=np.array(json.dumps(about)))


def load(path: Path, puzzle: Puzzle) -> DistanceTable:
    """Read a table; DamagedTable if it is not one of this puzzle, byte for byte as it was written."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            keys, histogram = archive["keys"], archive["histogram"]
            about: dict[str, Any] = json.loads(str(archive["about"]))
    except (OSError, ValueError, KeyError, BadZipFile, EOFError) as error:
        raise DamagedTable(f"it cannot be read: {error}") from error
    if about.get("format") != FORMAT:
        raise DamagedTable(f"its format is {about.get('format')!r}, not {FORMAT!r}")
    if about.get("fingerprint") != puzzle.table.fingerprint:
        raise DamagedTable("it belongs to another puzzle")
    if about.get("sha256") != _digest(keys, histogram):
        raise DamagedTable("its checksum is wrong")
    return DistanceTable(puzzle.table, keys, histogram, about["radius"], about["is_bipartite"], about["seconds"])


def _digest(*arrays: AnyArray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
