"""The folder of a run: its recipe, metrics and checkpoints, and at the end the bundle."""

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from undershoot.errors import UndershootError, cannot
from undershoot.files import check_contents, is_endless, naming, written_atomically
from undershoot.puzzles.problem import Problem
from undershoot.training.checkpoints import Position, Trainee, checkpoints, load_checkpoint, save_checkpoint, step_of
from undershoot.training.recipe import Recipe, read_recipe

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


LARGEST = 1e18
"""No number in the metrics is larger."""


class Run:
    """recipe.toml, metrics.jsonl, checkpoints/ and bundle/.

    From the beginning to the end of `alone` no other process trains in the folder; nothing is written before that is sure.
    """

    def __init__(self, folder: Path, puzzle: Problem, recipe: Recipe, resume: bool = False) -> None:
        self.folder, self.recipe = folder, recipe
        self.checkpoints, self.metrics, self.bundle = folder / "checkpoints", folder / "metrics.jsonl", folder / "bundle"
        fixed = {key: value for key, value in _fixed(recipe).items() if value != ""}  # no patterns: older checkpoints lack them
        self.identity = {**fixed, "fingerprint": puzzle.table.fingerprint}
        """What checkpoints of this run say of themselves."""
        self._held: IO[str] | None = None
        self._inside = 0
        self._check(resume)
        folder.mkdir(parents=True, exist_ok=True)
        self._lock()
        self._check(resume)  # another process may have been here
        self._sweep()
        with written_atomically(folder / "recipe.toml", follow_links=False) as file:
            file.write(recipe.to_toml().encode())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One training at a time in this folder; the system lets go when the process ends, however it ends."""
        self._lock()
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside and self._held is not None:
                self._held.close()
                self._held = None

    def _lock(self) -> None:
        if fcntl is None or self._held is not None:
            return
        try:
            # What a link leads to is not this run's to write to.
            held = os.fdopen(os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666))
        except OSError as error:
            raise cannot(f"lock {self.folder / '.lock'}", error) from error
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            held.close()
            raise UndershootError(f"another process trains in {self.folder}; wait for it, or choose another --out") from error
        except OSError as error:  # a file system without locks
            warnings.warn(f"{self.folder} cannot be locked ({error.strerror}): let no other process train there", stacklevel=3)
        self._held = held

    def _sweep(self) -> None:
        """Remove what was half written by a process that died: no other one is here."""
        for folder, form in (
            (self.folder, ".recipe.toml.*"),
            (self.folder, ".metrics.jsonl.*"),
            (self.checkpoints, ".step-*.*"),
        ):
            for path in folder.glob(form):
                if path.is_file():
                    path.unlink(missing_ok=True)

    def _check(self, resume: bool) -> None:
        if not self.folder.exists():
            return
        if not self.folder.is_dir():
            raise UndershootError(f"{self.folder} is a file; give a folder for the run")
        known = self.folder / "recipe.toml"
        if not known.exists():
            if any(path.name not in (".lock", "checkpoints") for path in self.folder.iterdir()):
                raise UndershootError(f"{self.folder} holds other files and no run; choose another folder with --out")
            check_contents(self.folder)
            checkpoints(self.checkpoints)
            return
        check_contents(self.folder)
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
        made = max(map(step_of, checkpoints(self.checkpoints)), default=0)
        if made > self.recipe.steps:
            raise UndershootError(
                f"{self.folder} has made {made:,} steps already; {self.recipe.steps:,} were asked for; raise --steps"
            )
        if self.metrics.is_symlink() or (self.metrics.exists() and not self.metrics.is_file()):
            raise UndershootError(f"{self.metrics} is no file, but metrics go into a file of that name; move it away")

    def resume(self, learner: Trainee) -> Position | None:
        """Where the last checkpoint was; None at the beginning. Metrics of steps that are made again are dropped."""
        position = load_checkpoint(self.checkpoints, self.identity, learner)
        kept = [row for row in read_metrics(self.folder) if row["step"] <= (position.step if position else 0)]
        with written_atomically(self.metrics, follow_links=False) as file:
            file.writelines(json.dumps(row).encode() + b"\n" for row in kept)
        return position

    def save(self, learner: Trainee, position: Position) -> None:
        """A checkpoint."""
        check_contents(self.folder)  # links may have come while it trained
        self.checkpoints.mkdir(exist_ok=True)
        save_checkpoint(self.checkpoints, self.identity, learner, position)

    def write_losses(self, losses: list[tuple[int, Any]], position: Position) -> None:
        """One line of metrics a block of steps; losses: the last step of each, and its losses."""
        for step, loss in losses:
            self._write(position, step=step, depth=position.depth, loss=float(loss.mean()))

    def write_evaluation(self, position: Position) -> None:
        """One line of metrics for an evaluation."""
        self._write(position, step=position.step, depth=position.solved_depth, solve_rate=position.solve_rate)

    def write_figures(self, position: Position, figures: dict[str, float]) -> None:
        """One line of metrics for what was measured of a network on a pattern."""
        self._write(position, step=position.step, depth=position.depth, **figures)

    def _write(self, position: Position, **fields: Any) -> None:
        clock = {"seconds": round(position.seconds, 3), "evaluation_seconds": round(position.evaluation_seconds, 3)}
        with naming(self.metrics), open(self.metrics, "a", opener=_without_links, encoding="utf-8") as file:
            file.write(json.dumps({**fields, **clock}) + "\n")


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _fixed(recipe: Recipe) -> dict[str, Any]:
    """What may not change when a run goes on: all but the number of its steps, and that too if others follow from it."""
    return {key: value for key, value in recipe.to_dict().items() if key != "steps" or recipe.is_set_by_steps}


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The metrics of a run so far; a line that is damaged, or was cut off, is named in a warning and left out."""
    path = folder / "metrics.jsonl"
    try:
        if is_endless(path):
            raise UndershootError(f"cannot read the metrics {path}: it is a pipe or a device; remove it")
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise cannot(f"read the metrics {path}", error) from error
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if _is_row(row):
            rows.append(row)
        else:
            warnings.warn(f"{path}, line {number} is damaged; it is left out, the others are kept", stacklevel=2)
    return rows


def _is_row(row: Any) -> bool:
    """Whether it is a line of metrics: numbers by name, a step and a depth among them."""
    return (
        isinstance(row, dict)
        and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in row.values())
        and not any(abs(value) > LARGEST for value in row.values())
        and isinstance(row.get("step"), int)
        and "depth" in row
    )
