"""Training, told step by step, that can be stopped and gone on with."""

import math
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from undershoot.bundles.bundle import Bundle, check_replaceable
from undershoot.puzzles.puzzle import Puzzle
from undershoot.studio.tasks import Tell
from undershoot.studio.tasks.subjects import puzzle_of
from undershoot.training.checkpoints import Position
from undershoot.training.loop import check_recipe
from undershoot.training.loop import train as run_training
from undershoot.training.recipe import Recipe, read_recipe
from undershoot.training.recipes import RECIPES
from undershoot.training.recipes import recipe as named
from undershoot.training.runs import Run, read_metrics
from undershoot.workflows.outcome import write_outcome

MOST_ROWS = 2000
"""Of a curve."""


def recipes(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """Names of recipes, and what they are."""
    return {"recipes": {name: about for name, (_, about) in RECIPES.items()}}


def train(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """Train in a run folder, from its last checkpoint if there is one; at the end stands a bundle."""
    puzzle, folder = puzzle_of(arguments), Path(arguments["folder"])
    tell({"text": "preparing; kernels are compiled the first time"})
    if (folder / "recipe.toml").exists():
        plan = read_recipe(folder / "recipe.toml")
    else:
        plan = named(puzzle, arguments["recipe"]).with_settings(arguments["settings"])
    check_recipe(puzzle, plan)
    run = Run(folder, puzzle, plan, resume=(folder / "recipe.toml").exists())
    check_replaceable(run.bundle)

    def report(position: Position) -> None:
        tell({**_figures(position), "of": plan.steps, "max_depth": plan.curriculum.max_depth})

    with run.alone():
        trained = run_training(puzzle, plan, run, report, should_stop)
        if trained.is_finished:
            command = _command(puzzle, plan, arguments)
            figures = {name: value for name, value in _figures(trained.position).items() if value is not None}
            made = Bundle(puzzle, trained.network, plan.to_dict(), figures, command, plan.encoding, plan.canonical)
            write_outcome(run, made, lambda text: tell({"text": text}))
    return {"is_finished": trained.is_finished, **_figures(trained.position), "of": plan.steps}


def _command(puzzle: Puzzle, plan: Recipe, arguments: dict[str, Any]) -> str:
    """What makes the same bundle: as the form had it, or by the run's own recipe if that came from elsewhere."""
    name, settings = arguments["recipe"], arguments["settings"]
    if not name or named(puzzle, name).with_settings(settings).to_dict() != plan.to_dict():
        name, settings = arguments["recipe_file"], []
    command = shlex.join(
        ["undershoot", "train", arguments["puzzle_name"], "--recipe", name, *(f"--set={one}" for one in settings)]
    )
    return command.encode(errors="replace").decode()  # paths may hold bytes that are no text, bundles may not


def curve(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """What the metrics of a run say of it, as a training tells it: at most `MOST_ROWS` of them, and the last one."""
    folder = Path(arguments["folder"])
    found, rows = read_metrics(folder), list[dict[str, Any]]()
    steps = read_recipe(folder / "recipe.toml").steps if found else 0
    last: dict[str, Any] = {"loss": None, "solve_rate": None, "solved_depth": None, "of": steps}
    for row in found:
        told: dict[str, Any] = {key: row[key] for key in ("depth", "loss", "solve_rate") if key in row}
        if "solve_rate" in row:  # whose depth is that of the evaluation
            told["solved_depth"] = told.pop("depth")
        last = {"depth": row["depth"], **last, **told, "steps": row["step"], "seconds": row.get("seconds", 0.0)}
        rows[len(rows) - (bool(rows) and rows[-1]["steps"] == row["step"]) :] = [last]
    every = -(-len(rows) // MOST_ROWS)
    return {"rows": [*rows[: -1 : every or 1], *rows[-1:]]}


def _figures(position: Position) -> dict[str, Any]:
    return {
        "steps": position.step,
        "depth": position.depth,
        "loss": position.loss if math.isfinite(position.loss) else None,
        "solve_rate": position.solve_rate,
        "solved_depth": position.solved_depth,
        "seconds": round(position.seconds + position.evaluation_seconds, 2),
    }
