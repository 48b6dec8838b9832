"""undershoot train PUZZLE --patterns SET"""

import math
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from undershoot.cli.interruption import Interrupted
from undershoot.cli.terminal import print_json, progress, stdout
from undershoot.errors import cannot

if TYPE_CHECKING:
    from undershoot.puzzles.puzzle import Puzzle
    from undershoot.training.pattern_runs import PatternProgress, TrainedPatterns
    from undershoot.training.recipe import Recipe


def train_on_patterns(puzzle: "Puzzle", recipe: "Recipe", folder: Path, command: str, resume: bool, as_json: bool) -> None:
    """A network on each pattern of a set, in one folder."""
    from undershoot.bundles.bundle import check_replaceable
    from undershoot.cli.train import ctrl_c
    from undershoot.training.pattern_runs import check_pattern_recipe, finish, train_patterns
    from undershoot.training.runs import Run

    check_pattern_recipe(puzzle, recipe)
    run = Run(folder, puzzle, recipe, resume)
    check_replaceable(run.bundle)
    go_on = f"go on with: {command} --out {shlex.quote(str(folder))} --resume"
    try:
        with run.alone():
            with _display(puzzle.name, recipe, as_json) as show, progress("pattern tables") as bar, ctrl_c() as stop:

                def table(name: str, what: str, done: int, of: int) -> None:
                    bar(done, f"{what} {name}", of)

                trained = train_patterns(puzzle, recipe, run, show, stop, table)
            if not trained.is_finished:
                last = trained.parts[-1]
                raise Interrupted(
                    f"stopped at step {last.position.step:,} of {recipe.steps:,} on pattern {last.number} of {last.patterns}; "
                    f"{go_on}"
                )
            is_written, kept = finish(run, trained, command)
            _tell(puzzle, recipe, run, trained, not is_written, kept, as_json)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {go_on}") from None
    except OSError as error:
        if error.filename is None:  # of the output, not of the run
            raise
        raise cannot(f"use {error.filename}", error, go_on) from error


def _tell(
    puzzle: "Puzzle", recipe: "Recipe", run: Any, trained: "TrainedPatterns", is_there: bool, kept: Path | None, as_json: bool
) -> None:
    """Say what came out."""
    rows: list[dict[str, Any]] = []
    for part, network in zip(trained.parts, trained.networks, strict=True):
        position = part.position
        rows.append(
            {
                "pattern": part.pattern,
                "arrangements": int(network.pattern.folded.size),
                "bytes": sum(weight.size for weight in network.network.weights),
                "steps": position.step,
                "seconds": round(position.seconds, 2),
                "loss": position.loss if math.isfinite(position.loss) else None,
                "mean": part.figures["mean"],
                "above": part.figures.get("above"),
            }
        )
    if as_json:
        about = {"puzzle": puzzle.name, "recipe": recipe.to_dict(), "set": trained.patterns.name, "patterns": rows}
        print_json({**about, "bundle": str(run.bundle), "left_alone": is_there, "kept": None if kept is None else str(kept)})
        return
    console = stdout()
    for row in rows:
        above = "" if row["above"] is None else f", above the table on {row['above']:.3%} of them"
        console.print(
            f"{row['pattern']}: {row['steps']:,} steps in {row['seconds']:.1f} s; {row['bytes']:,} bytes; "
            f"mean {row['mean']:.3f} over arrangements drawn uniformly{above}",
            soft_wrap=True,
        )
    if is_there:
        console.print("The run had ended, and its bundle was there already: it is left as it is, calibration and all.")
    if kept is not None:
        console.print(f"The bundle that was there, of another number of steps or damaged, is kept: {kept}", soft_wrap=True)
    known = "" if is_there else "; nothing is known of them until they are calibrated"
    console.print(f"networks: {run.bundle}{known}", soft_wrap=True)


@contextmanager
def _display(name: str, recipe: "Recipe", quiet: bool) -> "Iterator[Callable[[PatternProgress], None]]":
    """A live line on stderr; nothing if that is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda so_far: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    text = TextColumn("pattern {task.fields[number]} loss {task.fields[loss]} {task.fields[speed]}/s")
    columns = (TextColumn(name, markup=False), BarColumn(bar_width=8), TextColumn("{task.percentage:3.0f}%"), text)
    shown = Progress(*columns, TimeRemainingColumn(compact=True), console=Console(stderr=True), transient=True)
    task = shown.add_task("", total=None, number="-", loss="-", speed="-")

    def show(so_far: "PatternProgress") -> None:
        shown.start()  # only now, so that the bar of a table that is being made is seen
        position = so_far.position
        shown.update(
            task,
            total=recipe.steps * so_far.patterns,
            completed=recipe.steps * (so_far.number - 1) + position.step,
            number=f"{so_far.number}/{so_far.patterns}",
            loss=f"{position.loss:.3g}",
            speed=f"{position.step / max(position.seconds, 1e-9):,.0f}",
        )

    try:
        yield show
    finally:
        shown.stop()
