"""What all commands share: options, consoles, progress bars and numbers for people."""

import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Annotated, Any, Protocol

import typer

PuzzleName = Annotated[
    str, typer.Argument(metavar="PUZZLE", help="A name such as tiles-3x3, or the path of a puzzle file (.toml).")
]
LONGEST_HEADER = 16
"""Letters of a word in the header of a column; longer ones are broken."""
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
    """Where results go. What is printed there is shown as it is: paths and names may hold brackets and colons. Whoever reads a
    pipe gets sentences in one line, unless a width is set."""
    from rich.console import Console
    from rich.text import Text

    class Output(Console):
        def print(self, *objects: Any, **how: Any) -> None:
            is_read = not self.is_terminal and "COLUMNS" not in os.environ
            if is_read and all(isinstance(one, (str, Text)) for one in objects):
                how.setdefault("soft_wrap", True)
            super().print(*objects, **how)

    return Output(highlight=False, markup=False, emoji=False)


def show_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[Any]],
    title: str = "",
    left: Sequence[int] = (0,),
    prose: Sequence[int] = (),
    padding: int = 1,
) -> None:
    """Print a table whose cells are never cut: columns that the terminal has no room for follow below, beside the first again.

    rows: of texts, plain or coloured. left: columns that begin at the left; others end at the right. prose: columns whose
    cells may be broken into lines, between words.
    """
    from rich.table import Table

    console = stdout()
    widths = [_width(header, [row[k] for row in rows], k in prose) for k, header in enumerate(headers)]
    for part, chosen in enumerate(_parts(widths, padding, console.width)):
        room = console.width - sum(widths[k] + 2 * padding for k in chosen)
        table = Table(title=title if part == 0 else None, title_justify="left", box=None, padding=(0, padding))
        for k in chosen:
            longest = max((len(str(row[k])) for row in rows), default=0) if k in prose else min(LONGEST_HEADER, len(headers[k]))
            width = min(widths[k] + max(0, room), max(widths[k], longest))
            room -= width - widths[k]
            table.add_column(plain(headers[k]), justify="left" if k in left else "right", width=width, overflow="fold")
        for row in rows:
            table.add_row(*(row[k] for k in chosen))
        if part:
            console.print()
        console.print(table)


def _width(header: str, cells: Sequence[Any], is_prose: bool) -> int:
    """What a column needs: its cells, or their longest words, and the longest word of its header if that is no path."""
    words = [word for cell in cells for word in (str(cell).split() if is_prose else [str(cell)])]
    return max([len(word) for word in words] + [min(LONGEST_HEADER, len(word)) for word in header.split()], default=0)


def _parts(widths: Sequence[int], padding: int, room: int) -> list[list[int]]:
    """Which columns stand beside one another: always the first, and as many of the others as there is room for."""
    parts = [[0]]
    for k in range(1, len(widths)):
        if len(parts[-1]) > 1 and sum(widths[j] + 2 * padding for j in (*parts[-1], k)) > room:
            parts.append([0])
        parts[-1].append(k)
    return parts


def show_histogram(console: Any, title: str, histogram: list[int]) -> None:
    """How many states there are of each cost, with a bar for each."""
    from rich.table import Table

    drawn = Table("cost", "states", "", title=title, title_justify="left", box=None)
    drawn.columns[0].justify = drawn.columns[1].justify = "right"
    room, most = max(10, min(60, console.width - 26)), max(histogram)
    for cost, states in enumerate(histogram):
        if states:
            drawn.add_row(str(cost), f"{states:,}", plain(bar(states / most * room), "cyan"))
    console.print(drawn)


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
