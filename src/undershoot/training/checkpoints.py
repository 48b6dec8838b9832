"""Everything a run needs to go on, in one file; the last few are kept."""

import hashlib
import json
import math
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, get_type_hints

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from undershoot import trust
from undershoot.arrays import AnyArray
from undershoot.errors import UndershootError
from undershoot.files import written_atomically
from undershoot.training.networks import Flat
from undershoot.training.recipe import MOST_DEPTH

FORMAT = "undershoot checkpoint 1"
KEPT = 3
TENSORS = ("weights", "target", "first_moment", "second_moment")


class OtherRun(UndershootError):
    """A checkpoint that is whole, but not of this run."""


class Trainee(Protocol):
    """What a checkpoint is of."""

    @property
    def parameters(self) -> Flat:
        """What is trained."""

    @property
    def target(self) -> Flat:
        """As it was when it was last copied."""

    @property
    def optimizer(self) -> torch.optim.AdamW:
        """Over the parameters, as one tensor."""


@dataclass
class Position:
    """How far a run has come, apart from its weights."""

    step: int = 0
    depth: int = 1
    loss: float = float("nan")
    solve_rate: float | None = None
    solved_depth: int | None = None
    """The depth that the solve rate is for."""
    seconds: float = 0.0
    """Of training, without evaluations."""
    evaluation_seconds: float = 0.0


def save_checkpoint(folder: Path, recipe: dict[str, Any], learner: Trainee, position: Position) -> None:
    """Write it, then remove all but the last few. What is drawn next follows from the seed and the step."""
    moments = learner.optimizer.state.get(learner.parameters.flat, {})
    nothing = torch.zeros_like(learner.parameters.flat)
    tensors: dict[str, AnyArray] = {
        name: tensor.detach().cpu().numpy()
        for name, tensor in zip(
            TENSORS,
            (
                learner.parameters.flat,
                learner.target.flat,
                moments.get("exp_avg", nothing),
                moments.get("exp_avg_sq", nothing),
            ),
            strict=True,
        )
    }
    metadata = {"format": FORMAT, "recipe": json.dumps(recipe, sort_keys=True), "position": json.dumps(vars(position))}
    metadata["sha256"] = _digest(tensors, metadata)
    with suppress(trust.Untrusted):  # then nobody knows later who wrote it
        metadata["signature"] = trust.sign(_statement(metadata["sha256"])).hex()
    with written_atomically(folder / f"step-{position.step:09}.safetensors", follow_links=False) as file:
        file.write(save(tensors, metadata))
    for old in _found(folder)[:-KEPT]:
        old.unlink(missing_ok=True)


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, by their steps; what is named like one and cannot be one is refused."""
    if folder.exists() and not folder.is_dir():
        raise UndershootError(f"{folder} is a file, but checkpoints go into a folder of that name; move it away")
    found = _found(folder)
    for path in set(folder.glob("step-*.safetensors")).difference(found):
        raise UndershootError(f"{path} is no checkpoint: its name holds no step, or it is no file; move it away")
    return found


def _found(folder: Path) -> list[Path]:
    named = (path for path in folder.glob("step-*.safetensors") if re.fullmatch(r"step-[0-9]{9,10}", path.stem))
    return sorted((path for path in named if path.is_file()), key=step_of)


def step_of(path: Path) -> int:
    """Of a checkpoint, by its name."""
    return int(path.stem.removeprefix("step-"))


def load_checkpoint(folder: Path, recipe: dict[str, Any], learner: Trainee) -> Position | None:
    """Take up the last checkpoint that is whole; those that are not are named in a warning. None if there is none."""
    paths = checkpoints(folder)[::-1]
    for number, path in enumerate(paths):
        try:
            tensors, position = _read(path, recipe, learner.parameters.flat.shape[0])
        except OtherRun:
            raise
        except UndershootError as error:
            then = "using the one before it" if number + 1 < len(paths) else "there is no other, so the run begins anew"
            warnings.warn(f"{error}; it is set aside, {then}", stacklevel=2)
            path.rename(path.with_suffix(".damaged"))
            continue
        with torch.no_grad():
            learner.parameters.flat.copy_(torch.from_numpy(tensors["weights"]))
            learner.target.flat.copy_(torch.from_numpy(tensors["target"]))
        device = learner.parameters.flat.device
        learner.optimizer.state[learner.parameters.flat] = {
            "step": torch.tensor(float(position.step), device=device),
            "exp_avg": torch.from_numpy(tensors["first_moment"]).to(device),
            "exp_avg_sq": torch.from_numpy(tensors["second_moment"]).to(device),
        }
        return position
    return None


def _read(path: Path, recipe: dict[str, Any], size: int) -> tuple[dict[str, AnyArray], Position]:
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise UndershootError(f"the checkpoint {path} is damaged: {error}") from error
    stated, signature = metadata.pop("sha256", ""), metadata.pop("signature", "")
    if metadata.get("format") != FORMAT or set(tensors) != set(TENSORS):
        raise UndershootError(f"{path} is no checkpoint of undershoot")
    if stated != _digest(tensors, metadata):
        raise UndershootError(f"the checkpoint {path} is damaged: its contents do not match its checksum")
    theirs, position = _json(path, metadata, "recipe"), _json(path, metadata, "position")
    differing = [key for key, value in recipe.items() if theirs.get(key) != value]
    if differing:
        keys = ", ".join(differing)
        raise OtherRun(f"the checkpoint {path} belongs to another run (with another {keys}); choose another folder")
    if any(tensor.shape != (size,) or tensor.dtype != np.float32 for tensor in tensors.values()):
        raise UndershootError(f"the checkpoint {path} holds a network of another size")
    kinds = get_type_hints(Position)
    fits = set(position) == set(kinds) and all(
        isinstance(value, kinds[name]) and not isinstance(value, bool) for name, value in position.items()
    )
    if not fits or position["step"] != step_of(path) or not _is_possible(Position(**position)):
        raise UndershootError(f"the checkpoint {path} is damaged: it does not say how far the run has come")
    return tensors, _vouched(path, Position(**position), stated, signature)


def _statement(digest: str) -> bytes:
    """That this installation wrote a checkpoint, to be signed."""
    return f"undershoot wrote the checkpoint {digest}".encode()


def _vouched(path: Path, position: Position, digest: str, signature: str) -> Position:
    """Without what was evaluated, if this installation did not write that."""
    try:
        if trust.is_signed(_statement(digest), bytes.fromhex(signature)):
            return position
    except ValueError:  # it is no number
        pass
    warnings.warn(
        f"the checkpoint {path} was not written by this installation: what it says of solved scrambles is left out, and its "
        "seconds are what it says",
        stacklevel=4,
    )
    return replace(position, solve_rate=None, solved_depth=None)


def _is_possible(position: Position) -> bool:
    """Whether a run can have come to it."""
    spent = (position.seconds, position.evaluation_seconds)
    rate, depths = position.solve_rate, (position.depth, position.solved_depth or 1)
    return (
        all(0 <= depth <= MOST_DEPTH for depth in depths)
        and all(0 <= seconds < math.inf for seconds in spent)
        and (rate is None or 0 <= rate <= 1)
    )


def _json(path: Path, metadata: dict[str, str], name: str) -> dict[str, Any]:
    try:
        found = json.loads(metadata[name])
    except (KeyError, ValueError, RecursionError) as error:
        raise UndershootError(f"the checkpoint {path} is damaged: its {name} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise UndershootError(f"the checkpoint {path} is damaged: its {name} is no table")
    return found


def _digest(tensors: dict[str, AnyArray], metadata: dict[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(tensors):
        digest.update(tensors[name].tobytes())
    return digest.hexdigest()
