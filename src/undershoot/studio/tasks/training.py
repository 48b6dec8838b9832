"""Training, told step by step, that can be stopped and gone on with."""

import math
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from undershoot.bundles.bundle import Bundle, check_replaceable
from undershoot.studio.tasks import Tell
from undershoot.studio.tasks.subjects import puzzle_of
from undershoot.training.checkpoints import Position
from undershoot.training.loop import check_recipe
from undershoot.training.loop import train as run_training
from undershoot.training.recipe import read_recipe
from undershoot.training.recipes import RECIPES
from undershoot.training.recipes import recipe as named
from undershoot.training.runs import Run
from undershoot.workflows.outcome import write_outcome


def recipes(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """Names of recipes, and what they are."""
    return {"recipes": {name: about for name, (_, about) in RECIPES.items()}}


def train(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """Train in a run folder, from its last checkpoint if there is one; at the end stands a bundle."""
    puzzle, folder = puzzle_of(arguments), Path(arguments["folder"])
    tell({"text": "preparing; kernels are compiled the first time"})
    settings = list(arguments["settings"])
    if (folder / "recipe.toml").exists():
        plan = read_recipe(folder / "recipe.toml")
    else:
        plan = named(puzzle, arguments["recipe"]).with_settings(settings)
    check_recipe(puzzle, plan)
    run = Run(folder, puzzle, plan, resume=(folder / "recipe.toml").exists())
    check_replaceable(run.bundle)

    def report(position: Position) -> None:
        tell({**_figures(position), "of": plan.steps, "max_depth": plan.curriculum.max_depth})

    with run.alone():
        trained = run_training(puzzle, plan, run, report, should_stop)
        if trained.is_finished:
            changes = [f"--set={one}" for one in settings]
            command = shlex.join(["undershoot", "train", arguments["puzzle_name"], "--recipe", arguments["recipe"], *changes])
            figures = {name: value for name, value in _figures(trained.position).items() if value is not None}
            made = Bundle(puzzle, trained.network, plan.to_dict(), figures, command, plan.encoding, plan.canonical)
            write_outcome(run, made, lambda text: tell({"text": text}))
    return {"is_finished": trained.is_finished, **_figures(trained.position), "of": plan.steps}


def _figures(position: Position) -> dict[str, Any]:
    return {
        "steps": position.step,
        "depth": position.depth,
        "loss": position.loss if math.isfinite(position.loss) else None,
        "solve_rate": position.solve_rate,
        "solved_depth": position.solved_depth,
        "seconds": round(position.seconds + position.evaluation_seconds, 2),
    }
