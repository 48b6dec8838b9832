"""The two folders that the studio reads and writes, and nothing outside them: runs (bundles, reports), and puzzle files."""

import contextlib
import os
import re
import tomllib
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from undershoot.errors import UndershootError, UnknownPuzzle, cannot
from undershoot.puzzles import catalogue, puzzle_file
from undershoot.puzzles.puzzle import Puzzle

LONGEST_NAME = 100
NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9 _.+-]{{0,{LONGEST_NAME - 1}}}")
"""Of a file or folder that may be named from outside: one part of a path, not hidden, of plain letters."""
SHOWN = 60
"""Letters of a name that came, in sentences about it."""
ELSEWHERE = "`undershoot puzzles`"
"""Where the library's sentence about an unknown puzzle begins to speak of the command line."""
MOST_FILES = 2000
"""Of a bundle or a report that are looked at."""
LARGEST_PUZZLE = 200_000
"""Bytes of a puzzle file."""
MOST_ACTIONS = 256
"""Moves of a puzzle file: a page has a button for each, and every state says which of them are possible."""


@dataclass(frozen=True)
class Folders:
    """Where runs (with their bundles and reports) and puzzle files are."""

    runs: Path
    puzzles: Path

    def puzzle(self, name: str) -> Puzzle:
        """The puzzle of the catalogue, or in the file of this name in the folder of puzzles."""
        if not name.endswith(".toml"):
            try:
                # What is left of a long name must not be one itself, least of all that of a file anywhere.
                return catalogue.puzzle(name if len(name) <= SHOWN else f"{name[:SHOWN]}...")
            except UnknownPuzzle as error:
                known, of_paths, _ = str(error).partition(ELSEWHERE)  # a terminal takes paths; here files have names
                files = "choose one of the list, or the name of a puzzle file, which ends in .toml" if of_paths else ""
                raise UndershootError(known + files) from error
        path = inside(self.puzzles, name)
        if not path.is_file():
            raise UndershootError(f"there is no puzzle file {name[:60]!a} in {self.puzzles}; upload it, or put it there")
        if path.stat().st_size > LARGEST_PUZZLE:
            raise UndershootError(f"the puzzle file {name[:60]!a} has more than {LARGEST_PUZZLE:,} bytes")
        return _puzzle_in(puzzle_file.read(path), str(path))

    def puzzle_files(self) -> list[str]:
        """Names of the puzzle files, good or bad."""
        return self._names(self.puzzles, lambda path: path.suffix == ".toml" and path.is_file())

    def add_puzzle(self, text: str) -> str:
        """Keep a puzzle file that somebody brought, if it is good; returns its name, which is that of the puzzle."""
        if len(text.encode()) > LARGEST_PUZZLE:
            raise UndershootError(f"the puzzle file has more than {LARGEST_PUZZLE:,} bytes, the most that are taken")
        puzzle = _puzzle_in(text.removeprefix("\ufeff"), "the file")
        path = inside(self.puzzles, f"{puzzle.name}.toml")
        self._create(path, text.encode())
        return path.name

    def _create(self, path: Path, content: bytes) -> None:
        """Keep a file whose name nobody has taken yet."""
        trial = path.with_name(f".{uuid.uuid4().hex}")
        try:
            self.puzzles.mkdir(parents=True, exist_ok=True)
            trial.write_bytes(content)
            os.link(trial, path)
        except OSError as error:
            if path.exists():
                raise UndershootError(f"there is a puzzle {path.name} already; choose another name") from error
            raise cannot(f"keep the puzzle {path.name}", error) from error
        finally:
            trial.unlink(missing_ok=True)

    def puzzle_called(self, name: str) -> str:
        """What the puzzle of this name is found by here: a file that says that it is that one, or a name of the catalogue."""
        usual = f"{name}.toml"
        for file in sorted(self.puzzle_files(), key=lambda file: file != usual):
            with contextlib.suppress(UndershootError, OSError, ValueError, RecursionError):
                path = inside(self.puzzles, file)
                if path.stat().st_size <= LARGEST_PUZZLE and tomllib.loads(path.read_text("utf-8-sig")).get("name") == name:
                    return file
        return name

    def run_folder(self, name: str) -> Path:
        """The folder of a run, there or not."""
        return inside(self.runs, name)

    def training_folder(self, name: str) -> Path:
        """The folder of a run to train in, there or not; refused if anything in it lies elsewhere."""
        folder = self.run_folder(name)
        _check_contents(folder, folder)
        return folder

    def bundle(self, name: str) -> Path:
        """The folder of a run that holds a bundle, or of a bundle; refused if anything in it lies elsewhere."""
        folder = self.run_folder(name)
        place = folder / "bundle" if (folder / "bundle" / "config.json").exists() else folder
        if not (place / "config.json").exists():
            raise UndershootError(f"there is no bundle {name[:60]!a} in {self.runs}")
        _check_contents(place, self.runs)
        return place

    def bundles(self) -> list[str]:
        """Names of the runs that have a bundle."""
        return self._names(
            self.runs, lambda path: (path / "bundle" / "config.json").exists() or (path / "config.json").exists()
        )

    def trainings(self) -> list[str]:
        """Names of the runs that have a recipe."""
        return self._names(self.runs, lambda path: (path / "recipe.toml").is_file())

    def reports(self) -> list[str]:
        """Names of the runs that have a report."""
        return self._names(self.runs, lambda path: (path / "report" / "index.html").is_file())

    def report_file(self, name: str, path: str) -> Path:
        """A file of a report."""
        found = inside(self.runs, name, "report", *path.split("/"))
        if not found.is_file():
            raise UndershootError(f"the report {name[:60]!a} has no file {path[:60]!a}")
        return found

    def _names(self, folder: Path, fits: Callable[[Path], bool]) -> list[str]:
        try:
            listed = sorted(folder.iterdir())[:MOST_FILES]
        except OSError:
            return []
        return [path.name for path in listed if NAME.fullmatch(path.name) and _is_inside(path, folder) and fits(path)]


def _puzzle_in(text: str, source: str) -> Puzzle:
    """The puzzle in the text of a file. One that has too many moves for a page is refused before they are made."""
    with contextlib.suppress(ValueError, RecursionError):  # the library says what is wrong with it
        written = tomllib.loads(text).get("moves")
        _check_actions(len(written) if isinstance(written, dict) else 0, source)
    puzzle = catalogue.from_text(text, source)
    _check_actions(puzzle.table.actions, source)  # with the powers of those that are written
    return puzzle


def _check_actions(count: int, source: str) -> None:
    if count > MOST_ACTIONS:
        raise UndershootError(
            f"{source} has {count:,} moves; a page shows at most {MOST_ACTIONS:,}: take some out, or use the puzzle on the "
            "command line"
        )


def inside(root: Path, *parts: str) -> Path:
    """root / parts, refused if a part is no plain name or if a link leads out of the folder."""
    for part in parts:
        if not NAME.fullmatch(part) or ".." in part:
            raise UndershootError(
                f"{part[:60]!a} is no name of a file here; names have at most {LONGEST_NAME} letters, digits, spaces and "
                ". _ + -, and begin with a letter or a digit"
            )
    path = root.joinpath(*parts)
    if not _is_inside(path, root):
        raise UndershootError(f"{'/'.join(parts)[:60]!a} leads out of its folder; only what lies in it is read")
    return path


def _is_inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())


def _check_contents(folder: Path, root: Path) -> None:
    """Refuse a folder that holds links to outside of `root`: what they lead to would be read, or written."""
    for number, path in enumerate(folder.rglob("*")):
        if number > MOST_FILES:
            raise UndershootError(f"{folder.name} holds more than {MOST_FILES:,} files; it is not used")
        if not _is_inside(path, root):
            raise UndershootError(f"{path.name[:60]!a} in {folder.name} leads out of the folder {root.name}; it is not used")
