"""undershoot train"""

import math
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from undershoot.cli.interruption import Interrupted
from undershoot.cli.terminal import AsJson, PuzzleName, percent, plain, print_json, stdout
from undershoot.errors import UndershootError, cannot

if TYPE_CHECKING:
    from undershoot.heuristics.survey import Survey
    from undershoot.puzzles.puzzle import Puzzle
    from undershoot.training.checkpoints import Position
    from undershoot.training.loop import Trained
    from undershoot.training.recipe import Recipe
    from undershoot.training.runs import Run

MOST_STATES = 10_000_000
"""Spaces up to here are compared with the oracle at the end."""


def train(
    puzzle: PuzzleName,
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="paper, exact, label-free, mse, operator, loss, or a .toml file; paper if not given, exact on patterns.",
        ),
    ] = None,
    patterns: Annotated[
        str | None, typer.Option(metavar="SET", help="A network on each pattern of this set instead of one on whole states.")
    ] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change the recipe.")] = None,
    steps: Annotated[int | None, typer.Option(help="How many; the recipe says otherwise.")] = None,
    seed: Annotated[int | None, typer.Option(help="For everything random.")] = None,
    device: Annotated[str | None, typer.Option(metavar="cpu|cuda", help="Where to train.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The run's folder; runs/PUZZLE if not given.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write events for TensorBoard, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Learn a heuristic, by the paper's recipe or another."""
    from undershoot.puzzles import catalogue
    from undershoot.training.recipes import recipe as named

    chosen = catalogue.puzzle(puzzle)
    changes = [*(settings or [])]
    changes += [f"{key}={value}" for key, value in (("steps", steps), ("seed", seed), ("device", device)) if value is not None]
    if patterns is not None and not patterns.strip():
        raise UndershootError("--patterns names no set; `undershoot patterns PUZZLE` lists those of a puzzle")
    if any(change.partition("=")[0].strip() == "patterns" for change in changes):
        raise UndershootError("the set of patterns is named by --patterns, not by --set patterns=...")
    recipe = recipe or ("exact" if patterns else "paper")
    plan = named(chosen, recipe, patterns or "").with_settings(changes)
    folder = out or Path("runs") / chosen.name
    which = [] if patterns is None else ["--patterns", patterns]
    command = shlex.join(["undershoot", "train", puzzle, *which, "--recipe", recipe, *(f"--set={one}" for one in changes)])
    command = command.encode(errors="replace").decode()  # paths may hold bytes that are no text, bundles may not

    from undershoot.bundles.bundle import check_replaceable
    from undershoot.training.loop import check_recipe
    from undershoot.training.loop import train as run_training
    from undershoot.training.runs import Run

    if plan.patterns:
        from undershoot.cli.train_patterns import train_on_patterns

        if tensorboard:
            raise UndershootError("--tensorboard is for training on whole states; leave it out, metrics.jsonl has the figures")
        return train_on_patterns(chosen, plan, folder, command, resume, as_json)
    check_recipe(chosen, plan)
    with _events(folder, tensorboard) as write:
        run = Run(folder, chosen, plan, resume)
        check_replaceable(run.bundle)
        more = " --tensorboard" if tensorboard else ""
        go_on = f"go on with: {command} --out {shlex.quote(str(folder))} --resume{more}"
        try:
            with run.alone():
                with _display(chosen.name, plan, as_json) as show, ctrl_c() as stop:

                    def report(position: "Position") -> None:
                        show(position)
                        write(position)

                    trained = run_training(chosen, plan, run, report, stop)
                if not trained.is_finished:
                    raise Interrupted(f"stopped at step {trained.position.step:,} of {plan.steps:,}; {go_on}")
                _finish(chosen, plan, run, trained, command, as_json, puzzle)
        except KeyboardInterrupt:
            raise Interrupted(f"interrupted; {go_on}") from None
        except OSError as error:
            if error.filename is None:  # of the output, not of the run
                raise
            raise cannot(f"use {error.filename}", error, go_on) from error


def _finish(
    puzzle: "Puzzle", recipe: "Recipe", run: "Run", trained: "Trained", command: str, as_json: bool, given: str
) -> None:
    """Write the bundle and the figure, compare with the true costs, and say what came out."""
    from undershoot.bundles.bundle import Bundle
    from undershoot.experiments.figures import training_curve
    from undershoot.training.runs import read_metrics
    from undershoot.workflows.outcome import write_outcome

    position = trained.position
    figures: dict[str, Any] = {
        "steps": position.step,
        "depth": position.depth,
        "solve_rate": position.solve_rate,
        "solved_depth": position.solved_depth,
        "loss": position.loss if math.isfinite(position.loss) else None,
        "seconds": round(position.seconds, 2),
        "evaluation_seconds": round(position.evaluation_seconds, 2),
        "steps_per_second": round(position.step / position.seconds, 1) if position.seconds else None,
    }
    bundle = Bundle(puzzle, trained.network, recipe.to_dict(), figures, command, recipe.encoding, recipe.canonical)
    outcome = write_outcome(run, bundle, lambda text: print(f"undershoot: {text}", file=sys.stderr))
    is_there, kept = outcome.is_there, outcome.kept
    curve = run.folder / "training.png"
    training_curve(f"{puzzle.name}, seed {recipe.seed}", read_metrics(run.folder), curve)
    found = None
    try:
        found = _against_the_oracle(puzzle, bundle.raw)
    except (UndershootError, MemoryError) as error:
        why = str(error) or "there is not enough memory"
        print(f"undershoot: the heuristic is saved, but was not compared with the true costs: {why}", file=sys.stderr)
    if found is not None:
        figures |= {
            "states": found.states,
            "mean_h": found.mean_h,
            "mean_true": found.mean_true,
            "supremum": found.supremum,
            "admissible_share": found.admissible_share,
        }
        if not is_there:
            replace(bundle, figures=figures).save(run.bundle, outcome.digest)
    if as_json:
        by_cost = None if found is None else [[c, int(n), m] for c, (n, m, _) in enumerate(found.by_cost.tolist()) if n]
        print_json(
            {
                "puzzle": puzzle.name,
                "recipe": recipe.to_dict(),
                **figures,
                "mean_h_by_cost": by_cost,
                "bundle": str(run.bundle),
                "left_alone": is_there,
                "kept": None if kept is None else str(kept),
                "curve": str(curve),
            }
        )
        return
    console = stdout()
    if found is not None:
        _show_survey(console, puzzle, found)
    rate = "" if position.solve_rate is None else f"; {percent(position.solve_rate)} solved at depth {position.solved_depth}"
    speed = position.step / max(position.seconds, 1e-9)
    console.print(
        f"{position.step:,} steps in {position.seconds:.1f} s ({speed:,.0f} per second), evaluations "
        f"{position.evaluation_seconds:.1f} s{rate}; scramble depth {position.depth} of {recipe.curriculum.max_depth}"
    )
    if is_there:
        console.print("The run had ended, and its bundle was there already: it is left as it is, calibration and all.")
    if kept is not None:
        console.print(f"The bundle that was there, of an earlier step or calibrated, is kept: {kept}", soft_wrap=True)
    for label, text in (
        ("heuristic", str(run.bundle)),
        ("training curve", str(curve)),
        ("use it", shlex.join(["undershoot", "solve", given, "--heuristic", str(run.folder)])),
    ):
        console.print(f"{label}: {text}", soft_wrap=True)


def _against_the_oracle(puzzle: "Puzzle", heuristic: Any) -> "Survey | None":
    """Every state, where there are not too many."""
    import os

    from undershoot.cli.terminal import progress
    from undershoot.heuristics.survey import survey
    from undershoot.oracles.cache import oracle

    if puzzle.space.size is None or puzzle.space.size > MOST_STATES:
        return None
    distances = oracle(puzzle)
    with progress("comparing with the true costs", distances.states) as report:
        return survey(heuristic, distances, os.cpu_count() or 1, lambda done: report(done, "every state"))


def _show_survey(console: Any, puzzle: "Puzzle", found: "Survey") -> None:
    from rich.table import Table

    table = Table("true cost", "states", "mean h", "", title=f"{puzzle.name}: h on every state", title_justify="left", box=None)
    for column in table.columns[:3]:
        column.justify = "right"
    farthest = len(found.by_cost) - 1
    width = max(10, min(50, console.width - 34))
    for cost, (states, mean, _) in enumerate(found.by_cost.tolist()):
        if states:
            at, full = round(mean / max(1, farthest) * width), round(cost / max(1, farthest) * width)
            line = plain("")
            for mark, length, style in (("━", min(at, full), "cyan"), ("─", full - at, "dim"), ("━", at - full, "red")):
                line.append(mark * max(0, length), style)
            table.add_row(str(cost), f"{int(states):,}", f"{mean:.2f}", line)
    console.print(table)
    console.print(
        f"mean h {found.mean_h:.3f}, mean true cost {found.mean_true:.3f}; above the true cost on "
        f"{found.overestimates:,} of {found.states:,} states ({1 - found.admissible_share:.3%}), "
        f"by at most {max(0, found.supremum):.3f}"
    )


@contextmanager
def _display(name: str, recipe: "Recipe", quiet: bool) -> Iterator[Callable[["Position"], None]]:
    """A live line on stderr; nothing if that is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda position: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    text = "depth {task.fields[depth]} loss {task.fields[loss]} solved {task.fields[rate]} {task.fields[speed]}/s"
    done = TextColumn("{task.percentage:3.0f}%")
    columns = (
        TextColumn(name, markup=False),
        BarColumn(bar_width=8),
        done,
        TextColumn(text),
        TimeRemainingColumn(compact=True),
    )
    shown = Progress(*columns, console=Console(stderr=True), transient=True)
    task = shown.add_task("", total=recipe.steps, depth="-", loss="-", rate="-", speed="-")

    def show(position: "Position") -> None:
        shown.update(
            task,
            completed=position.step,
            depth=f"{position.depth}/{recipe.curriculum.max_depth}",
            loss=f"{position.loss:.3g}",
            rate="-" if position.solve_rate is None else percent(position.solve_rate),
            speed=f"{position.step / max(position.seconds, 1e-9):,.0f}",
        )

    with shown:
        yield show


@contextmanager
def _events(folder: Path, wanted: bool) -> Iterator[Callable[["Position"], None]]:
    """TensorBoard events in the run's folder."""
    if not wanted:
        yield lambda position: None
        return
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UndershootError("--tensorboard needs the package tensorboard: pip install 'undershoot[tensorboard]'") from error
    writer: Any = None  # the folder is made by the run

    def write(position: "Position") -> None:
        nonlocal writer
        writer = writer or SummaryWriter(folder / "events")
        writer.add_scalar("loss", position.loss, position.step)
        writer.add_scalar("depth", position.depth, position.step)
        if position.solve_rate is not None:
            writer.add_scalar("solve_rate", position.solve_rate, position.step)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


@contextmanager
def ctrl_c() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C asks the run to save and stop, the second ends it at once."""
    asked = False

    def handle(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        print("\nundershoot: saving, then stopping; once more ends at once", file=sys.stderr)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
