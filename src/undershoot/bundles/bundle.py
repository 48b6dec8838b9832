"""A learned heuristic on disk, a folder as model hubs have it.

    config.json          the puzzle, the networks, the recipe; checksums of the files below
    model.safetensors    the weights
    puzzle.safetensors   the moves, h0, parity and how states are encoded, as arrays; see `contents`
    puzzle.toml          the puzzle as it is written, if it comes from a file
    README.md            a model card
    calibration.json     the margin and what is claimed then; exceptions.safetensors holds the states that are looked up
    certificate.json     that every state was checked

config.json, calibration.json and certificate.json each hold a checksum of themselves, the latter two also of what they are for.
What they claim counts if the package vouches for it, or if this installation has checked it; see `trust`.
"""

import dataclasses
import hashlib
import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as tensor_bytes

from undershoot import trust
from undershoot.arrays import AnyArray
from undershoot.bundles.card import card
from undershoot.bundles.contents import base_arrays, digest_of_tensors, parity_arrays, puzzle_arrays
from undershoot.bundles.documents import digest, signed
from undershoot.bundles.vouched import VOUCHED
from undershoot.errors import UndershootError
from undershoot.files import write_folder
from undershoot.guarantees import Guarantee, Standing
from undershoot.heuristics.calibrated import CalibratedHeuristic, Calibration
from undershoot.heuristics.neural import Network, NeuralHeuristic
from undershoot.heuristics.whole_numbers import WholeNetwork
from undershoot.heuristics.wrapped import NO_DIGEST
from undershoot.puzzles.puzzle import Puzzle
from undershoot.trust import Passed

FORMAT = "undershoot bundle 3"
CERTIFIED = "undershoot certificate 2"
CONFIG, MODEL, ARRAYS, CARD, DEFINITION = "config.json", "model.safetensors", "puzzle.safetensors", "README.md", "puzzle.toml"
CALIBRATION, EXCEPTIONS, CERTIFICATE = "calibration.json", "exceptions.safetensors", "certificate.json"
STATED = frozenset(f.name for f in dataclasses.fields(Guarantee)) - {"provided"}
"""The fields of a guarantee that stand in calibration.json; of a network nothing rests on what cannot be checked."""
FILES = frozenset({CONFIG, MODEL, ARRAYS, CARD, DEFINITION, CALIBRATION, EXCEPTIONS, CERTIFICATE})
FLOAT, WHOLE = "float32, fixed order of additions, 1", "whole numbers, whole thresholds, exact on every device, 2"
"""How networks are evaluated; the number at the end grows when values may change."""
SHIPPED = Path(__file__).parent.parent / "shipped"
"""Bundles that come with the package, in folders named after their puzzle, and after what they are if not the best."""


@dataclass(frozen=True, eq=False)
class Bundle:
    """Everything that stands in the folder."""

    puzzle: Puzzle
    network: Network | WholeNetwork
    recipe: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    """What was measured, for the model card."""
    command: str = ""
    """What makes it again."""
    encoding: str = "cells"
    """See `Puzzle.encoded`."""
    canonical: bool = False
    calibration: Calibration | None = None
    certificate: dict[str, Any] | None = None
    name: str = "network"
    folder: Path | None = None
    """Where it was read from; None if it was made in this process, which needs no one to vouch for it."""

    @cached_property
    def raw(self) -> NeuralHeuristic:
        """The network alone."""
        return NeuralHeuristic(self.puzzle, self.network, self.name, self.puzzle.encoded(self.encoding, self.canonical))

    @cached_property
    def heuristic(self) -> NeuralHeuristic | CalibratedHeuristic:
        """The network as it is calibrated, with what is known of it here."""
        if self.calibration is None:
            return self.raw
        return CalibratedHeuristic(self.raw, dataclasses.replace(self.calibration, guarantee=self.guarantee))

    @property
    def guarantee(self) -> Guarantee:
        """What is known here. What only the files say is a claim."""
        assert self.calibration is not None
        stated = self.calibration.guarantee
        if self.certificate is not None:
            stated = Guarantee(Standing.PROVEN, within=self.certificate["radius"])
        if stated.standing is Standing.NONE or self.is_vouched_for:
            return stated
        if self.certificate is not None:
            how = f"`undershoot check {self.folder}` would establish"
        elif stated.standing is Standing.PROVEN:
            how = f"`undershoot certify {self.folder}` would establish"
        else:
            how = "only a calibration of one's own would establish"
        return Guarantee(Standing.NONE, claim=f"its files claim that it {stated}, which {how}")

    @property
    def is_vouched_for(self) -> bool:
        """Whether what the calibration and the certificate say was established: by the package, or by this installation.

        That a network never overestimates is established by a certificate alone.
        """
        if self.folder is None:
            return True
        if self.certificate is not None:
            return self.certificate_digest in VOUCHED.values() or trust.has_passed(Passed.CERTIFICATE, self.certificate_digest)
        sampled = self.calibration is not None and self.calibration.guarantee.standing is Standing.SAMPLED
        return sampled and trust.has_passed(Passed.CALIBRATION, self.digest)

    @property
    def arithmetic(self) -> str:
        """How the network is evaluated."""
        return WHOLE if isinstance(self.network, WholeNetwork) else FLOAT

    @cached_property
    def subject(self) -> dict[str, Any]:
        """Checksums of all that determines the values of the heuristic."""
        return {
            "fingerprint": self.puzzle.table.fingerprint,
            "h0": digest_of_tensors(base_arrays(self.puzzle)),
            "parity": digest_of_tensors(parity_arrays(self.puzzle)),
            "inputs": self.raw.encoding.digest,
            "weights": self.weights_digest,
            "calibration": self.calibration_digest,
            "arithmetic": self.arithmetic,
        }

    @property
    def digest(self) -> str:
        """Of `subject`."""
        return digest(self.subject)

    @property
    def network_digest(self) -> str:
        """Of `subject` without the calibration: the network, and how it sees which puzzle."""
        return digest({**self.subject, "calibration": None})

    @cached_property
    def weights_digest(self) -> str:
        """Of model.safetensors."""
        return hashlib.sha256(self._model).hexdigest()

    @property
    def learned_bytes(self) -> int:
        """What the weights, the margins and the listed states take on disk; the rest is about the puzzle and for people."""
        margins = b"" if self.calibration is None else signed(self._calibration_document)
        return len(self._model) + len(margins) + len(self._exceptions)

    @property
    def calibration_digest(self) -> str | None:
        """Of calibration.json, which covers the exceptions."""
        return None if self.calibration is None else digest(self._calibration_document)

    @property
    def certificate_digest(self) -> str:
        """Of certificate.json, which covers all of `subject`."""
        return digest(self.certificate or {})

    @cached_property
    def _model(self) -> bytes:
        tensors: dict[str, AnyArray] = {}
        for number, (weight, bias) in enumerate(zip(self.network.weights, self.network.biases, strict=True)):
            tensors[f"layers.{number}.weight"], tensors[f"layers.{number}.bias"] = np.asarray(weight), np.asarray(bias)
            if isinstance(self.network, WholeNetwork):
                tensors[f"layers.{number}.scale"] = self.network.scales[number]
        # What is written is memory, whatever the strides say.
        return tensor_bytes({name: np.ascontiguousarray(array) for name, array in tensors.items()})

    @cached_property
    def _exceptions(self) -> bytes:
        calibration = self.calibration
        if calibration is None or not len(calibration.exceptions):
            return b""
        keys, costs = calibration.exceptions, calibration.exception_costs
        return tensor_bytes({"keys": np.ascontiguousarray(keys), "costs": np.ascontiguousarray(costs)})

    @cached_property
    def _calibration_document(self) -> dict[str, Any]:
        calibration = self.calibration
        assert calibration is not None
        if calibration.guarantee.provided:
            raise UndershootError(f"this calibration is of a function, and cannot be saved: {NO_DIGEST}")
        fields = {f.name: getattr(calibration, f.name) for f in dataclasses.fields(calibration)}
        del fields["exceptions"], fields["exception_costs"]
        # JSON knows no infinity; "inf" answers h0, and every state passes "-inf".
        fields["margin"] = _to_json(calibration.margin)
        for name in ("group_margins", "level_margins"):
            fields[name] = [_to_json(margin) for margin in fields[name]]
        stated = dataclasses.asdict(calibration.guarantee)
        fields["guarantee"] = {name: value for name, value in stated.items() if name in STATED}
        fields |= {"weights": self.weights_digest, "sentence": str(calibration.guarantee)}
        fields["exceptions"] = hashlib.sha256(self._exceptions).hexdigest() if self._exceptions else None
        return fields

    def _config(self, files: dict[str, bytes]) -> dict[str, Any]:
        """All of config.json; files: those that it holds checksums of."""
        network = {
            "pattern": None,
            "model": MODEL,
            "calibration": CALIBRATION,
            "architecture": "multilayer perceptron, ReLU, weights [in, out]",
            "encoding": self.encoding,
            "canonical": self.canonical,
            "inputs": self.raw.encoding.digest,
            "arithmetic": self.arithmetic,
            "widths": [*self.network.widths],
        }
        return {
            "format": FORMAT,
            "puzzle": self.puzzle.name,
            "fingerprint": self.puzzle.table.fingerprint,
            "actions": list(self.puzzle.table.action_names),
            "networks": [network],
            "combined": "one",
            "recipe": self.recipe,
            "figures": self.figures,
            "command": self.command,
            "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())},
        }

    def save(self, folder: Path, replaces: str | None = None) -> None:
        """Write the folder; a bundle that is there already is replaced once the new one is complete. replaces: only if it is
        still as it was, by `files.contents_digest`."""
        check_replaceable(folder)
        files = {MODEL: self._model, ARRAYS: tensor_bytes(puzzle_arrays(self.puzzle, [self.raw.encoding]))}
        files[CARD] = self._card().encode()
        if self.puzzle.definition:
            files[DEFINITION] = self.puzzle.definition.encode()
        files[CONFIG] = signed(self._config(files))
        if self.calibration is not None:
            files[CALIBRATION] = signed(self._calibration_document)
            files |= {EXCEPTIONS: self._exceptions} if self._exceptions else {}
        if self.certificate is not None:
            files[CERTIFICATE] = signed(self.certificate)
        write_folder(folder, files, replaces)

    def _card(self) -> str:
        known = None if self.calibration is None else dataclasses.replace(self, folder=None).guarantee
        puzzle = f"THIS_FOLDER/{DEFINITION}" if self.puzzle.definition else self.puzzle.name
        is_whole = self.arithmetic == WHOLE
        return card(self.puzzle.name, puzzle, self._config({}), self.calibration, known, self.certificate, is_whole)


def _to_json(margin: float) -> float | str:
    return margin if math.isfinite(margin) else str(margin)


def check_replaceable(folder: Path) -> None:
    """Refuse a folder that holds more than a bundle, since writing replaces all of it."""
    if SHIPPED in folder.resolve().parents:
        raise UndershootError(
            f"the bundle {folder.name} comes with the package and stays as it is; copy it first "
            f"(cp -r {folder} COPY), or calibrate it with --out COPY"
        )
    others = sorted({path.name for path in folder.iterdir()} - FILES) if folder.is_dir() else []
    if others or (folder.exists() and not folder.is_dir()):
        what = f": {others[0]}" if others else ""
        raise UndershootError(f"{folder} holds something else than a bundle{what}; choose another place, or move that away")
