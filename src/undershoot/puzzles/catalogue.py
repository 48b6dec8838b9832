"""All puzzles by name. A family is one line; its file says the rest."""

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from undershoot.errors import PuzzleFileError, UnknownPuzzle, what_came
from undershoot.puzzles import cubes, lights_out, pancake, puzzle_file, tiles, topspin
from undershoot.puzzles.puzzle import Puzzle


@dataclass(frozen=True)
class Family:
    """Puzzles that differ in size."""

    pattern: str
    """A regular expression whose groups are handed to `build`."""
    form: str
    """The name as people read it."""
    sizes: str
    """What the letters in it may be."""
    build: Callable[..., Puzzle | None]
    """None where the sizes are out of range."""
    examples: tuple[str, ...]


def _within(low: int, high: int, *sizes: str) -> bool:
    return all(low <= int(size) <= high for size in sizes)


def _lights_out(r: str, c: str) -> Puzzle | None:
    return lights_out.lights_out(int(r), int(c)) if _within(1, lights_out.MAX_SIDE, r, c) else None


def _tiles(r: str, c: str, first: str) -> Puzzle | None:
    return tiles.tiles(int(r), int(c), bool(first)) if _within(tiles.MIN_SIDE, tiles.MAX_SIDE, r, c) else None


def _cube(side: str, other: str, metric: str) -> Puzzle | None:
    return cubes.cube(int(side), bool(metric)) if side == other and side in ("2", "3") else None


def _pancake(n: str) -> Puzzle | None:
    return pancake.pancake(int(n)) if _within(pancake.MIN_SIZE, pancake.MAX_SIZE, n) else None


def _topspin(n: str, k: str) -> Puzzle | None:
    fits = _within(topspin.MIN_SIZE, topspin.MAX_SIZE, n) and _within(2, int(n) - 1, k)
    return topspin.topspin(int(n), int(k)) if fits else None


FAMILIES = (
    Family(
        r"lights-out-([0-9]+)x([0-9]+)",
        "lights-out-RxC",
        f"R and C from 1 to {lights_out.MAX_SIDE}",
        _lights_out,
        ("lights-out-3x3", "lights-out-5x5"),
    ),
    Family(
        r"tiles-([0-9]+)x([0-9]+)(-blank-first)?",
        "tiles-RxC[-blank-first]",
        f"R and C from {tiles.MIN_SIDE} to {tiles.MAX_SIDE}",
        _tiles,
        ("tiles-3x3", "tiles-4x4", "tiles-4x4-blank-first", "tiles-5x5"),
    ),
    Family(
        r"cube-([0-9]+)x([0-9]+)(-qtm)?",
        "cube-NxN[-qtm]",
        "N 2 or 3; with -qtm a half turn costs two",
        _cube,
        ("cube-2x2", "cube-2x2-qtm", "cube-3x3", "cube-3x3-qtm"),
    ),
    Family(
        r"pancake-([0-9]+)",
        "pancake-N",
        f"N from {pancake.MIN_SIZE} to {pancake.MAX_SIZE}",
        _pancake,
        ("pancake-8", "pancake-10"),
    ),
    Family(
        r"topspin-([0-9]+)-([0-9]+)",
        "topspin-N-K",
        f"N from {topspin.MIN_SIZE} to {topspin.MAX_SIZE}, K from 2 to N - 1",
        _topspin,
        ("topspin-8-4", "topspin-10-4"),
    ),
)
ALIASES = {"8-puzzle": "tiles-3x3", "15-puzzle": "tiles-4x4", "24-puzzle": "tiles-5x5", "35-puzzle": "tiles-6x6"}


def puzzle(name: str | Path) -> Puzzle:
    """The puzzle of this name, or from the puzzle file at this path (anything that ends in .toml).

    Examples:
        >>> us.puzzle("tiles-3x3").summary
        '8 sliding tiles on 3 x 3 cells, blank last'
        >>> us.puzzle("8-puzzle").name
        'tiles-3x3'
    """
    if not isinstance(name, (str, Path)):
        raise UnknownPuzzle(f"a puzzle has a name, such as tiles-3x3, or the path of a .toml file; {what_came(name)} came")
    name = str(name)
    if name.endswith(".toml"):
        return from_file(Path(name))
    return _by_name(ALIASES.get(name, name))


def from_file(path: Path) -> Puzzle:
    """The puzzle in a file."""
    return from_text(puzzle_file.read(path), str(path))


def from_text(text: str, source: str) -> Puzzle:
    """The puzzle in the text of a file. It may not bear the name of another one of the catalogue: what is said of it would be
    misread. source: what messages call it."""
    found = puzzle_file.parse(text, source)
    try:
        known = _by_name(ALIASES.get(found.name, found.name))
    except UnknownPuzzle:
        return found
    if known.table.fingerprint != found.table.fingerprint or _symbols(known) != _symbols(found):
        raise PuzzleFileError(f'{source}: its name is "{found.name}", which is another puzzle; choose another name')
    return found


def _symbols(puzzle: Puzzle) -> list[str]:
    return [puzzle.symbol(value) for value in range(puzzle.table.values)]


@cache
def _by_name(name: str) -> Puzzle:
    for family in FAMILIES:
        if match := re.fullmatch(family.pattern, name):
            if any(len(group or "") > 3 for group in match.groups() if (group or "").isdigit()):
                built = None
            else:
                built = family.build(*match.groups())
            if built is None:
                raise UnknownPuzzle(f'there is no "{name}": {family.form} takes {family.sizes}.')
            return built
    known = [*(example for family in FAMILIES for example in family.examples), *ALIASES]
    close = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    hint = "Did you mean " + " or ".join(f'"{c}"' for c in close) + "? " if close else ""
    raise UnknownPuzzle(f'no puzzle "{name}". {hint}`undershoot puzzles` lists them; a path to a .toml file works too.')
