"""undershoot oracle"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from undershoot.cli.terminal import AsJson, PuzzleName, print_json, progress, show_histogram, stdout

if TYPE_CHECKING:
    from undershoot.oracles.distance_table import DistanceTable
    from undershoot.puzzles.puzzle import Puzzle


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
    with progress(f"exploring {chosen.name}", chosen.space.size if radius is None else None) as report:
        table = cache.oracle(chosen, radius, cache_dir, lambda states, distance: report(states, f"distance {distance}"))
    is_new = table.cached is None  # what a file says of seconds is what anybody may have written
    if as_json:
        print_json(
            {
                "puzzle": chosen.name,
                "fingerprint": chosen.table.fingerprint,
                "states": table.states,
                "radius": radius,
                "histogram": table.histogram.tolist(),
                "mean": table.mean,
                "seconds": table.seconds if is_new else None,
                "states_per_second": table.states / table.seconds if is_new else None,
                "cached": None if table.cached is None else str(table.cached),
            }
        )
    else:
        _show_histogram(chosen, table)


def _show_histogram(puzzle: "Puzzle", table: "DistanceTable") -> None:
    where = "all states" if table.radius is None else f"all states within {table.radius} of the goal"
    console = stdout()
    show_histogram(console, f"{puzzle.name}: {where} by their cost to the goal", table.histogram.tolist())
    found = f"{table.states:,} states, mean cost {table.mean:.3f}, farthest {len(table.histogram) - 1}"
    if table.cached is None:
        found += f"; explored in {table.seconds:.2f} s ({table.states / table.seconds:,.0f} states per second)"
    console.print(found)
    if table.cached is not None:
        console.print(f"from the cache: {table.cached}", soft_wrap=True)
