"""What all commands share: options, consoles, progress bars and numbers for people."""

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Annotated, Any, Protocol

import typer

PuzzleName = Annotated[
    str, typer.Argument(metavar="PUZZLE", help="A name such as tiles-3x3, or the path of a puzzle file (.toml).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="For everything random.")]


MOST_DIGITS = 400
"""A float has no more, before the point and four places after it."""


def bar(length: float) -> str:
    """Block characters in eighths; the smallest amount still shows."""
    eighths = max(1, round(length * 8))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def count(number: int) -> str:
    """With thousands marked, or rounded if very large."""
    return f"{number:,}" if number < 10**15 else f"{Decimal(number):.2e}"


def or_dash(value: float | None, form: str, unit: str = "") -> str:
    """A number in this form, or a dash for none."""
    return "-" if value is None else f"{value:{form}}{unit}"


def percent(share: float) -> str:
    """With one decimal, rounded down: 100.0% is said of all, not of nearly all."""
    return f"{Decimal(f'{100 * share:.12g}').quantize(Decimal('0.1'), ROUND_FLOOR)}%"


def rounded_up(bound: float) -> str:
    """With four decimals, never less than the bound."""
    if not math.isfinite(bound):
        return str(bound)
    up = Decimal(bound).quantize(Decimal("0.0001"), ROUND_CEILING, Context(prec=MOST_DIGITS))
    return str(up if up else abs(up))  # there is no -0


def plain(text: str, style: str = "") -> Any:
    """Text in which brackets are just brackets."""
    from rich.text import Text

    return Text(text, style=style)


def stdout() -> Any:
    """Where results go. What is printed there is shown as it is: paths and names may hold brackets and colons."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def print_json(document: dict[str, Any]) -> None:
    """The one document of a command."""
    print(json.dumps(document, indent=2))


class Report(Protocol):
    """Shows how far the work is."""

    def __call__(self, done: int, note: str, total: int | None = None) -> None:
        """How much is done, of how much if that is known only now, and what is being done."""


@contextmanager
def progress(title: str, total: int | None = None) -> Iterator[Report]:
    """A progress bar on stderr for work longer than a second; nothing if that is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, note, total=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=total)
    began, shown = time.monotonic(), False

    def report(done: int, note: str, total: int | None = None) -> None:
        nonlocal shown
        if not shown and time.monotonic() - began > 1:
            bar.start()
            shown = True
        bar.update(task, completed=done, description=f"{title}, {note}", total=total)

    try:
        yield report
    finally:
        bar.stop()
