"""Distance tables on disk, so that a space is enumerated once."""

import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from undershoot import trust
from undershoot.arrays import AnyArray
from undershoot.files import cache_folder, check_no_link, remove_leftovers, written_atomically
from undershoot.kernels.plan import packing_of
from undershoot.oracles.breadth_first import explore
from undershoot.oracles.distance_table import DistanceTable
from undershoot.oracles.size import checked_radius
from undershoot.oracles.verification import WrongTable, verify
from undershoot.puzzles.problem import Problem, check_puzzle
from undershoot.trust import Passed

FORMAT = "undershoot distance table 2"
LEAST_SECONDS = 1e-9
"""No clock shows less."""


class DamagedTable(Exception):
    """A file that is not the distance table it should be."""


def oracle(
    puzzle: Problem,
    radius: int | None = None,
    cache_dir: Path | str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DistanceTable:
    """Exact costs to the goal: from the cache, or by `explore`, whose result is then cached.

    cache_dir: by default a folder of the platform's cache. Others may write there: a table that was not made or verified by
    this installation is verified first. One that is damaged or wrong is made anew, with a warning.

    Examples:
        >>> everything = us.oracle(us.puzzle("tiles-2x3"))
        >>> everything.states, everything.mean
        (360, 12.622222222222222)
        >>> print(us.oracle(us.puzzle("cube-3x3"), radius=3).histogram)
        [   1   18  243 3240]
    """
    check_puzzle(puzzle, "us.oracle")
    radius = checked_radius(radius)
    folder = (Path(cache_dir) if cache_dir is not None else cache_folder()) / "oracles"
    for known in dict.fromkeys((radius, None)):
        path = _path(folder, puzzle, known)
        try:
            table = load(path, puzzle, known)
            return table if known == radius or radius is None else table.within(radius)
        except OSError:
            continue  # usually it is missing; saving it shows what else may be wrong
        except DamagedTable as damage:
            warnings.warn(f"the cached distances {path} are wrong ({damage}); they are computed again", stacklevel=2)
    table = explore(puzzle, radius, progress=progress)
    path = _path(folder, puzzle, radius)
    try:
        trust.record(Passed.DISTANCES, save(path, table))
    except OSError as error:
        warnings.warn(f"the distances could not be cached as {path}: {error.strerror or error}", stacklevel=2)
    return table


def is_cached(puzzle: Problem, radius: int | None = None) -> bool:
    """Whether there is a file of these distances; whether it counts shows when it is read."""
    path = _path(cache_folder() / "oracles", puzzle, radius)
    return path.is_file() and not path.parent.is_symlink()


def _path(folder: Path, puzzle: Problem, radius: int | None) -> Path:
    part = "all" if radius is None else f"within-{radius}"
    return folder / f"{puzzle.name}-{puzzle.table.fingerprint[:16]}-{part}.npz"


def save(path: Path, table: DistanceTable) -> str:
    """Write a table in one piece or not at all; returns its digest."""
    check_no_link(path.parent)
    about = {
        "format": FORMAT,
        "fingerprint": table.table.fingerprint,
        "radius": table.radius,
        "is_bipartite": table.is_bipartite,
        "seconds": table.seconds,
    }
    keys = np.ascontiguousarray(table.keys, dtype="<u8")
    histogram = np.ascontiguousarray(table.histogram, dtype="<i8")
    digest = _digest(about, keys, histogram)
    remove_leftovers(path)
    with written_atomically(path, follow_links=False) as file:
        np.savez(file, keys=keys, histogram=histogram, about=np.array(json.dumps({**about, "sha256": digest})))
    return digest


def load(path: Path, puzzle: Problem, radius: int | None) -> DistanceTable:
    """Read a table; DamagedTable if it is not the one of this puzzle and radius, byte for byte as it was written, or wrong."""
    check_no_link(path.parent)
    if not path.is_file():  # a pipe would never end
        raise FileNotFoundError(path)
    with path.open("rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                keys, histogram = archive["keys"], archive["histogram"]
                about: dict[str, Any] = dict(json.loads(str(archive["about"])))
        except Exception as error:  # a damaged archive fails in more ways than can be listed
            raise DamagedTable("it is not an archive of distances") from error
    checksum = about.pop("sha256", None)
    if about.get("format") != FORMAT:
        raise DamagedTable(f"its format is {about.get('format')!r}, not {FORMAT!r}")
    if about.get("fingerprint") != puzzle.table.fingerprint:
        raise DamagedTable("it belongs to another puzzle")
    if about.get("radius") != radius:
        raise DamagedTable(f"its radius is {about.get('radius')}, not {radius}")
    digest = _digest(about, keys, histogram)
    if checksum != digest:
        raise DamagedTable("its checksum is wrong")
    words = int(packing_of(puzzle.table).word[-1]) + 1
    kinds = [(keys.dtype, keys.shape[1:]), (histogram.dtype, histogram.shape[1:])]
    if kinds != [(np.dtype("<u8"), (words,)), (np.dtype("<i8"), ())] or not isinstance(about.get("seconds"), float):
        raise DamagedTable("it does not hold keys and a histogram")
    if not LEAST_SECONDS <= about["seconds"] < math.inf:
        raise DamagedTable(f"it says that it took {about['seconds']} seconds")
    table = DistanceTable(puzzle.table, keys, histogram, radius, about.get("is_bipartite") is True, about["seconds"], path)
    if not trust.has_passed(Passed.DISTANCES, digest):
        try:
            moves = verify(table, puzzle.space, threads=os.cpu_count() or 1)
        except WrongTable as error:
            raise DamagedTable(str(error)) from error
        if table.is_bipartite and not moves.is_bipartite:
            raise DamagedTable("a move breaks the parity that it claims")
        trust.record(Passed.DISTANCES, digest)
    return table


def _digest(about: dict[str, Any], *arrays: AnyArray) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
