"""Changing the files of a bundle so that all checksums are right again."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as tensor_bytes

Document = dict[str, Any]
Change = Callable[[Document], None]


def checksum(document: Document) -> str:
    """As every document holds it of itself."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def read(path: Path) -> Document:
    document: Document = json.loads(path.read_text())
    document.pop("digest", None)
    return document


def write(path: Path, document: Document) -> None:
    path.write_text(json.dumps({**document, "digest": checksum(document)}, indent=2))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def change_tensors(path: Path, change: Change) -> None:
    tensors = dict(load_tensors(path.read_bytes()))
    change(tensors)
    path.write_bytes(tensor_bytes({name: np.ascontiguousarray(array) for name, array in tensors.items()}))


def forge(
    folder: Path,
    model: Change | None = None,
    calibration: Change | None = None,
    certificate: Change | None = None,
    config: Change | None = None,
    arrays: Change | None = None,
    exceptions: Change | None = None,
) -> Path:
    """Change what is given, then make every checksum right that depends on it."""
    if model is not None:
        change_tensors(folder / "model.safetensors", model)
    if arrays is not None:
        change_tensors(folder / "puzzle.safetensors", arrays)
    stated = read(folder / "config.json")
    if config is not None:
        config(stated)
    stated["sha256"] = {name: sha256(folder / name) for name in stated["sha256"]}
    write(folder / "config.json", stated)
    fitted = read(folder / "calibration.json") if (folder / "calibration.json").exists() else {}
    if fitted:
        if exceptions is not None:
            path = folder / "exceptions.safetensors"
            tensors: Document = dict(load_tensors(path.read_bytes())) if path.exists() else {}
            exceptions(tensors)
            path.write_bytes(tensor_bytes(tensors))
            fitted["exceptions"] = sha256(path)
        fitted["weights"] = sha256(folder / "model.safetensors")
        if calibration is not None:
            calibration(fitted)
        write(folder / "calibration.json", fitted)
    if (folder / "certificate.json").exists():
        issued = read(folder / "certificate.json")
        issued["weights"], issued["calibration"] = sha256(folder / "model.safetensors"), checksum(fitted)
        inputs = [network["inputs"] for network in stated["networks"]]
        issued["inputs"] = inputs if "set" in stated else inputs[0]
        if certificate is not None:
            certificate(issued)
        write(folder / "certificate.json", issued)
    return folder
