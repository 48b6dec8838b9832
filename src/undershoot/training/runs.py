"""The folder of a run: its recipe, metrics and checkpoints, and at the end the bundle."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from undershoot.errors import UndershootError
from undershoot.files import written_atomically
from undershoot.puzzles.puzzle import Puzzle
from undershoot.training.checkpoints import Position, load_checkpoint, save_checkpoint
from undershoot.training.learner import Learner
from undershoot.training.recipe import Recipe, read_recipe

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class Run:
    """recipe.toml, metrics.jsonl, checkpoints/ and bundle/."""

    def __init__(self, folder: Path, puzzle: Puzzle, recipe: Recipe, resume: bool = False) -> None:
        self.folder, self.recipe = folder, recipe
        self.checkpoints, self.metrics, self.bundle = folder / "checkpoints", folder / "metrics.jsonl", folder / "bundle"
        self.identity = {**_fixed(recipe), "fingerprint": puzzle.table.fingerprint}
        """What checkpoints of this run say of themselves."""
        self._check(resume)
        folder.mkdir(parents=True, exist_ok=True)
        with written_atomically(folder / "recipe.toml") as file:
            file.write(recipe.to_toml().encode())
        self.checkpoints.mkdir(exist_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One training at a time in this folder; the system lets go when the process ends, however it ends."""
        if fcntl is None:
            yield
            return
        with (self.folder / ".lock").open("w") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UndershootError(
                    f"another process trains in {self.folder}; wait for it, or choose another --out"
                ) from error
            yield

    def _check(self, resume: bool) -> None:
        if not self.folder.exists():
            return
        if not self.folder.is_dir():
            raise UndershootError(f"{self.folder} is a file; give a folder for the run")
        known = self.folder / "recipe.toml"
        if not known.exists():
            if any(path.name not in (".lock", "checkpoints") for path in self.folder.iterdir()):
                raise UndershootError(f"{self.folder} holds other files and no run; choose another folder with --out")
            return
        other = read_recipe(known).to_dict()
        mine = _fixed(self.recipe)
        differing = [key for key in mine if mine[key] != other[key]]
        if differing == ["steps"]:
            raise UndershootError(
                f"{self.folder} holds a run of {other['steps']:,} steps, which its penalty or learning rate follows from the "
                f"start; for {self.recipe.steps:,} steps choose another folder with --out"
            )
        if differing:
            keys = ", ".join(key if isinstance(other[key], dict) else f"{key}: {other[key]}" for key in differing)
            raise UndershootError(f"{self.folder} holds another run ({keys}); choose another folder with --out")
        if not resume:
            raise UndershootError(f"{self.folder} holds this run already; go on with --resume, or choose another --out")
        made = max((int(path.stem[5:]) for path in self.checkpoints.glob("step-*.safetensors")), default=0)
        if made > self.recipe.steps:
            raise UndershootError(f"{self.folder} has made {made:,} steps already; {self.recipe.steps:,} were asked for")

    def resume(self, learner: Learner) -> Position | None:
        """Where the last checkpoint was; None at the beginning. Metrics of steps that are made again are dropped."""
        position = load_checkpoint(self.checkpoints, self.identity, learner)
        kept = [row for row in read_metrics(self.folder) if row["step"] <= (position.step if position else 0)]
        with written_atomically(self.metrics) as file:
            file.writelines(json.dumps(row).encode() + b"\n" for row in kept)
        return position

    def save(self, learner: Learner, position: Position) -> None:
        """A checkpoint."""
        save_checkpoint(self.checkpoints, self.identity, learner, position)

    def write_losses(self, losses: list[tuple[int, Any]], position: Position) -> None:
        """One line of metrics a block of steps; losses: the last step of each, and its losses."""
        for step, loss in losses:
            self._write(position, step=step, depth=position.depth, loss=float(loss.mean()))

    def write_evaluation(self, position: Position) -> None:
        """One line of metrics for an evaluation."""
        self._write(position, step=position.step, depth=position.solved_depth, solve_rate=position.solve_rate)

    def _write(self, position: Position, **fields: Any) -> None:
        clock = {"seconds": round(position.seconds, 3), "evaluation_seconds": round(position.evaluation_seconds, 3)}
        with self.metrics.open("a") as file:
            file.write(json.dumps({**fields, **clock}) + "\n")


def _fixed(recipe: Recipe) -> dict[str, Any]:
    """What may not change when a run goes on: all but the number of its steps, and that too if others follow from it."""
    return {key: value for key, value in recipe.to_dict().items() if key != "steps" or recipe.is_set_by_steps}


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The metrics of a run so far; a last line that was cut off is left out."""
    path = folder / "metrics.jsonl"
    rows = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return rows
