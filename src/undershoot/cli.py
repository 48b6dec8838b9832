"""The command line: parse, call, print. Results go to stdout, everything else to stderr."""

import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from undershoot.errors import UndershootError

if TYPE_CHECKING:
    from undershoot.oracles.distance_table import DistanceTable
    from undershoot.puzzles.puzzle import Puzzle

app = typer.Typer(
    help="Heuristics that stay below the true cost, and say how surely.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

PuzzleName = Annotated[
    str, typer.Argument(metavar="PUZZLE", help="A name such as tiles-3x3, or the path of a puzzle file (.toml).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Seed = Annotated[int, typer.Option("--seed", help="For everything random.")]


@app.command()
def puzzles(
    name: Annotated[str | None, typer.Argument(help="Show this puzzle: a name, or the path of a puzzle file.")] = None,
    check: Annotated[Path | None, typer.Option(metavar="FILE", help="Validate a puzzle file.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """List the puzzles, show one, or check a puzzle file."""
    from undershoot.puzzles import catalogue, puzzle_file

    if check is not None and name is not None:
        raise UndershootError(f"both a name ({name}) and --check {check} are given; choose one")
    if check is not None or name is not None:
        puzzle = puzzle_file.load(check) if check is not None else catalogue.puzzle(name or "")
        if as_json:
            _print_json(_describe(puzzle))
        else:
            _show_puzzle(puzzle, seed)
            if check is not None:
                _stdout().print(f"[green]{check} is a valid puzzle file.[/]")
        return
    examples = [example for family in catalogue.FAMILIES for example in family.examples]
    if as_json:
        _print_json({"puzzles": [_describe(catalogue.puzzle(example)) for example in examples], "aliases": catalogue.ALIASES})
        return
    from rich.table import Table

    console = _stdout()
    families = Table("puzzles", "sizes", box=None, padding=(0, 2))
    for family in catalogue.FAMILIES:
        families.add_row(_plain(family.form), family.sizes)
    families.add_row("FILE.toml", "any permutation puzzle of your own; `undershoot puzzles --check FILE` validates it")
    console.print(families, "")
    table = Table("for example", "moves", "states", box=None, padding=(0, 2))
    table.columns[1].justify = table.columns[2].justify = "right"
    for example in examples:
        puzzle = catalogue.puzzle(example)
        table.add_row(example, str(puzzle.table.actions), _count(puzzle.space.size))
    console.print(table, "")
    console.print("Also: " + ", ".join(f"{alias} = {name}" for alias, name in catalogue.ALIASES.items()))


@app.command()
def oracle(
    puzzle: PuzzleName,
    radius: Annotated[int | None, typer.Option(help="Only states within this cost of the goal.")] = None,
    cache_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep distances here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Exact costs to the goal of every state, by breadth-first search."""
    from undershoot.oracles import cache
    from undershoot.puzzles import catalogue

    chosen = catalogue.puzzle(puzzle)
    with _progress(f"exploring {chosen.name}", chosen.space.size if radius is None else None) as report:
        table = cache.oracle(chosen, radius, cache_dir, lambda states, distance: report(states, f"distance {distance}"))
    if as_json:
        _print_json(
            {
                "puzzle": chosen.name,
                "fingerprint": chosen.table.fingerprint,
                "states": table.states,
                "radius": radius,
                "histogram": table.histogram.tolist(),
                "mean": table.mean,
                "seconds": table.seconds,
                "states_per_second": table.states / table.seconds,
            }
        )
    else:
        _show_histogram(chosen, table)


def _describe(puzzle: "Puzzle") -> dict[str, Any]:
    table = puzzle.table
    return {
        "name": puzzle.name,
        "summary": puzzle.summary,
        "fingerprint": table.fingerprint,
        "cells": table.cells,
        "values": table.values,
        "actions": list(table.action_names),
        "costs": table.cost.tolist(),
        "goals": [puzzle.format(goal[None]) for goal in table.goals],
        "states": puzzle.space.size,
        "states_exact": puzzle.space.size_is_exact,
        "reversible": table.is_reversible,
        "symmetries": len(table.symmetries),
        "cost_parity": puzzle.has_cost_parity,
        "solvability": puzzle.space.defects is not None,
        "uniform_sampling": puzzle.space.sample is not None,
        "base_heuristic": puzzle.base_heuristic.name,
        "network_inputs": puzzle.encoding.width,
    }


def _show_puzzle(puzzle: "Puzzle", seed: int) -> None:
    import numpy as np
    from rich.columns import Columns
    from rich.console import Group
    from rich.table import Table

    from undershoot.kernels.scrambles import scramble

    about = _describe(puzzle)
    console = _stdout()
    console.print(f"[bold]{puzzle.name}[/]  {puzzle.summary}\n")
    mixed = puzzle.sample(1, seed) if puzzle.space.sample else scramble(puzzle.table, np.array([20]), seed).states
    goal = puzzle.table.goals[:1]
    console.print(Columns([Group("goal", puzzle.draw(goal)), Group("mixed", puzzle.draw(mixed))], padding=(0, 6)))
    console.print()
    facts = Table.grid(padding=(0, 2))
    size = ("" if about["states_exact"] else "at most ") + _count(about["states"])
    for label, value in (
        ("states", size),
        ("cells, values", f"{about['cells']}, {about['values']}"),
        ("moves", _moves_line(about)),
        ("moves can be undone", "yes" if about["reversible"] else "no"),
        ("symmetries", str(about["symmetries"] or "none given")),
        ("parity of solutions", "fixed by the state" if about["cost_parity"] else "not fixed"),
        ("solvability", "known" if about["solvability"] else "only by the oracle"),
        ("uniform random states", "yes" if about["uniform_sampling"] else "not available"),
        ("base heuristic", about["base_heuristic"]),
        ("network inputs", str(about["network_inputs"])),
        ("written as", puzzle.notation.help),
        ("goal, mixed", f"{puzzle.format(goal)}\n{puzzle.format(mixed)}"),
        ("fingerprint", about["fingerprint"][:16]),
    ):
        facts.add_row(f"[dim]{label}[/]", _plain(value))
    console.print(facts)


def _moves_line(about: dict[str, Any]) -> str:
    names, costs = about["actions"], about["costs"]
    words = [name if cost == 1 else f"{name} (costs {cost})" for name, cost in zip(names, costs, strict=True)]
    return f"{len(words)}: " + " ".join(words if len(words) <= 25 else [*words[:12], "...", words[-1]])


def _show_histogram(puzzle: "Puzzle", table: "DistanceTable") -> None:
    from rich.table import Table

    where = "all states" if table.radius is None else f"all states within {table.radius} of the goal"
    console = _stdout()
    drawn = Table(
        "cost", "states", "", title=f"{puzzle.name}: {where} by their cost to the goal", title_justify="left", box=None
    )
    drawn.columns[0].justify = drawn.columns[1].justify = "right"
    room = max(10, min(60, console.width - 26))
    most = int(table.histogram.max())
    for cost, states in enumerate(table.histogram.tolist()):
        if states:
            drawn.add_row(str(cost), f"{states:,}", f"[cyan]{_bar(states / most * room)}[/]")
    console.print(drawn)
    console.print(
        f"{table.states:,} states, mean cost {table.mean:.3f}, farthest {len(table.histogram) - 1}; "
        f"explored in {table.seconds:.2f} s ({table.states / table.seconds:,.0f} states per second)"
    )


def _bar(length: float) -> str:
    """Block characters in eighths; the smallest amount still shows."""
    eighths = max(1, round(length * 8))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**15 else f"{float(number):.3g}"


def _plain(text: str) -> Any:
    from rich.text import Text

    return Text(text)


def _stdout() -> Any:
    from rich.console import Console

    return Console(highlight=False)


def _print_json(document: dict[str, Any]) -> None:
    print(json.dumps(document, indent=2))


@contextmanager
def _progress(title: str, total: int | None) -> Iterator[Callable[[int, str], None]]:
    """A progress bar on stderr for work longer than a second; nothing if that is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, note: None
        return
    import time

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=total)
    began, shown = time.monotonic(), False

    def report(done: int, note: str) -> None:
        nonlocal shown
        if not shown and time.monotonic() - began > 1:
            bar.start()
            shown = True
        bar.update(task, completed=done, description=f"{title}, {note}")

    try:
        yield report
    finally:
        bar.stop()


def main() -> None:
    """Run a command; bad input ends with one message on stderr and exit code 2."""
    logging.basicConfig(level=logging.INFO, format="undershoot: %(message)s", stream=sys.stderr)
    warnings.showwarning = lambda message, *_: print(f"undershoot: warning: {message}", file=sys.stderr)
    try:
        app()
    except UndershootError as error:
        print(f"undershoot: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("undershoot: interrupted", file=sys.stderr)
        sys.exit(130)
