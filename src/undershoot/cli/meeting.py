"""Two bounds, shown as they move."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from undershoot.cli.terminal import plain

if TYPE_CHECKING:
    from undershoot.puzzles.puzzle import Puzzle
    from undershoot.search.results import Result


@dataclass
class Loading:
    """What it took to have the heuristics, before any limit began to count."""

    seconds: float = 0.0
    made: set[str] = field(default_factory=set)
    """The pieces of tables that were not there and had to be made."""


@contextmanager
def loading() -> Iterator[Loading]:
    """Times what is within."""
    began, taken = time.perf_counter(), Loading()
    yield taken
    taken.seconds = time.perf_counter() - began


def statement(puzzle: "Puzzle", result: "Result") -> str:
    """What is known now, in a few words: `52 moves, at least 48`."""
    if result.cost is None:
        return f"no solution yet, at least {result.lower_bound}"
    found = f"{result.cost} moves" if (puzzle.table.cost == 1).all() else f"cost {result.cost}"
    if result.optimality.kind.value == "proven":
        return f"{found}: {result.optimality}"
    return f"{found}, at least {result.lower_bound}"


def show_meeting(puzzle: "Puzzle", results: "Iterator[Result]") -> "Result":
    """Print a line whenever a bound has moved, or on a terminal the same line again; returns the last result."""
    return _live(puzzle, results) if sys.stdout.isatty() else _lines(puzzle, results)


def _lines(puzzle: "Puzzle", results: "Iterator[Result]") -> "Result":
    last, said = None, ""
    for last in results:
        line = statement(puzzle, last)
        if line != said:
            print(f"{line} ({last.seconds:.1f} s)", flush=True)
        said = line
    assert last is not None
    return last


def _live(puzzle: "Puzzle", results: "Iterator[Result]") -> "Result":
    from rich.console import Console
    from rich.live import Live

    last = None
    with Live(console=Console(highlight=False, markup=False, emoji=False), refresh_per_second=10) as live:
        for last in results:
            live.update(plain(f"{statement(puzzle, last)} ({last.seconds:.1f} s)"))
    assert last is not None
    return last
