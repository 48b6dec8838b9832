"""A learned heuristic on disk: a folder with config.json, model.safetensors and README.md, as model hubs have it.

config.json names the puzzle, the architecture and the recipe, with a checksum of every other file and of itself.
"""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as tensor_bytes

from undershoot.errors import UndershootError
from undershoot.guarantees import Heuristic
from undershoot.heuristics.catalogue import HEURISTICS
from undershoot.heuristics.catalogue import heuristic as named
from undershoot.heuristics.combined import Largest
from undershoot.heuristics.neural import Network, NeuralHeuristic
from undershoot.puzzles import catalogue, puzzle_file
from undershoot.puzzles.puzzle import Puzzle

FORMAT = "undershoot bundle 1"
CONFIG, MODEL, CARD, DEFINITION = "config.json", "model.safetensors", "README.md", "puzzle.toml"


def save_bundle(
    folder: Path, puzzle: Puzzle, network: Network, recipe: dict[str, Any], figures: dict[str, Any], command: str
) -> None:
    """Write a bundle, all of it or nothing; one that is there already is replaced.

    figures: what was measured, for the model card; command: what makes it again.
    """
    tensors = {}
    for number, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        tensors[f"layers.{number}.weight"], tensors[f"layers.{number}.bias"] = weight, bias
    contents = {MODEL: tensor_bytes(tensors)}
    if puzzle.definition:
        contents[DEFINITION] = puzzle.definition.encode()
    config = {
        "format": FORMAT,
        "puzzle": puzzle.name,
        "fingerprint": puzzle.table.fingerprint,
        "architecture": "multilayer perceptron, ReLU, weights [in, out]",
        "widths": [*network.widths, 1],
        "recipe": recipe,
        "figures": figures,
        "command": command,
    }
    contents[CARD] = _card(config).encode()
    config["sha256"] = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(contents.items())}
    contents[CONFIG] = (json.dumps({**config, "digest": _digest(config)}, indent=2) + "\n").encode()
    if folder.exists() and not (folder / CONFIG).exists():
        raise UndershootError(f"{folder} holds something else than a bundle; choose another place")
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, data in contents.items():
            with (fresh / name).open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        fresh.chmod(0o755)
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
            folder.rename(old / "replaced")
            fresh.rename(folder)
            shutil.rmtree(old)
        else:
            fresh.rename(folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def load(path: str | Path) -> NeuralHeuristic:
    """The heuristic in a bundle, or in the bundle of a run folder; a damaged or foreign one is refused by name."""
    folder = Path(path)
    if (folder / "bundle" / CONFIG).exists():
        folder /= "bundle"
    config = read_config(folder)
    contents = {}
    for name, stated in config["sha256"].items():
        contents[name] = _read(folder / name)
        if hashlib.sha256(contents[name]).hexdigest() != stated:
            raise UndershootError(f"{folder / name} was changed: it does not match the checksum in {CONFIG}")
    puzzle = puzzle_file.load(folder / DEFINITION) if DEFINITION in contents else catalogue.puzzle(config["puzzle"])
    if puzzle.table.fingerprint != config["fingerprint"]:
        raise UndershootError(f"{folder} was made for another {config['puzzle']} than this version of undershoot has")
    try:
        tensors = read_tensors(contents[MODEL])
        layers = range(len(config["widths"]) - 1)
        network = Network(
            tuple(tensors[f"layers.{k}.weight"] for k in layers), tuple(tensors[f"layers.{k}.bias"] for k in layers)
        )
    except (SafetensorError, KeyError) as error:
        raise UndershootError(f"{folder / MODEL} does not hold the layers that {CONFIG} names: {error}") from error
    if [*network.widths, 1] != config["widths"] or any(w.dtype != np.float32 for w in network.weights):
        raise UndershootError(f"{folder / MODEL} holds layers of widths {network.widths}, {CONFIG} says {config['widths']}")
    return NeuralHeuristic(puzzle, network, name=str(path))


def heuristic(puzzle: Puzzle, name: str) -> Heuristic:
    """The heuristic of this name for a puzzle, or in the bundle at this path; joined by "+", the largest of several."""
    parts = name.split("+")
    if len(parts) > 1:
        return Largest(tuple(heuristic(puzzle, part) for part in parts))
    if name in HEURISTICS or not Path(name).exists():
        return named(puzzle, name)
    loaded = load(name)
    if loaded.fingerprint != puzzle.table.fingerprint:
        raise UndershootError(f"the bundle {name} is for {loaded.puzzle.name}, not for {puzzle.name}")
    return loaded


def read_config(folder: Path) -> dict[str, Any]:
    """config.json, checked."""
    if not folder.is_dir():
        raise UndershootError(f"there is no bundle at {folder}; train one: undershoot train PUZZLE --out {folder}")
    path = folder / CONFIG
    try:
        config: dict[str, Any] = json.loads(_read(path))
    except ValueError as error:
        raise UndershootError(f"{path} is damaged: {error}") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise UndershootError(f"{path} is no bundle of this version of undershoot")
    if config.pop("digest", None) != _digest(config):
        raise UndershootError(f"{path} was changed: it does not match its own checksum")
    return config


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UndershootError(f"{path} is missing; the bundle is not complete") from error
    except OSError as error:
        raise UndershootError(f"cannot read {path}: {error.strerror}") from error


def _digest(config: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()


def _card(config: dict[str, Any]) -> str:
    rows = "".join(f"| {name.replace('_', ' ')} | {_figure(value)} |\n" for name, value in config["figures"].items())
    return f"""# {config["puzzle"]}: a learned heuristic

max(h0, network), 0 for goals; {config["architecture"]}, widths {" - ".join(map(str, config["widths"]))}.
Nothing is proven about it: values may be above the true cost.

Made by

```
{config["command"]}
```

| measured | |
|---|---|
{rows}
Use it: `undershoot solve {config["puzzle"]} --heuristic THIS_FOLDER`, or `us.load("THIS_FOLDER")` in Python.
"""


def _figure(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
