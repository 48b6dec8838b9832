"""Networks on the patterns of a set on disk, as one heuristic: a folder as `bundle` has it, with these differences.

config.json              names the set, and for each network its pattern, by the cells of its pieces in the goal
model.safetensors        N.layers.L.weight, .bias, .scale of network N
puzzle.safetensors       the moves, h0 and parity; N.share, N.step: see `Residuals`; looks.network, looks.sum, looks.cells,
                         looks.values: what is added and compared, through which symmetries
calibration.json         the thresholds of each network
exceptions.safetensors   N.numbers, N.costs: the arrangements that are looked up
certificate.json         that every arrangement of every pattern was compared with its verified table
"""

import hashlib
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from safetensors.numpy import save as tensor_bytes

from undershoot import trust
from undershoot.arrays import AnyArray
from undershoot.bundles.bundle import (
    ARRAYS,
    CALIBRATION,
    CARD,
    CERTIFICATE,
    CONFIG,
    DEFINITION,
    EXCEPTIONS,
    MODEL,
    WHOLE,
    check_replaceable,
)
from undershoot.bundles.contents import Tensors, base_arrays, digest_of_tensors, parity_arrays, puzzle_arrays
from undershoot.bundles.documents import digest, signed
from undershoot.bundles.vouched import VOUCHED
from undershoot.errors import UndershootError
from undershoot.files import write_folder
from undershoot.guarantees import NO_GUARANTEE, PROVEN, Guarantee, Standing
from undershoot.heuristics.learned_patterns import LearnedPatterns, learned_patterns, sums_of_networks
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.pattern_tables.looks import distinct_patterns
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.sets import pattern_set, piece_names
from undershoot.puzzles.problem import Problem
from undershoot.puzzles.puzzle import Puzzle
from undershoot.trust import Passed

FORMAT = "undershoot pattern bundle 1"
CERTIFIED = "undershoot pattern certificate 1"
METHODS = ("exhaustive", "exceptions")


@dataclass(frozen=True, eq=False)
class PatternBundle:
    """Everything that stands in the folder."""

    puzzle: Puzzle
    set_name: str
    networks: tuple[PatternNetwork, ...]
    """Of the patterns of the set, in order; of those that a symmetry maps onto each other, of the first."""
    recipe: dict[str, Any] = field(default_factory=dict)
    command: str = ""
    """What makes it again."""
    method: str | None = None
    """How thresholds were fitted; None if they were not."""
    certificate: dict[str, Any] | None = None
    name: str = "networks"
    folder: Path | None = None
    """Where it was read from; None if it was made in this process, which needs no one to vouch for it."""

    @cached_property
    def heuristic(self) -> LearnedPatterns:
        """The largest of the sums, with what is known of it here."""
        return learned_patterns(self.name, self.puzzle, self.set_name, self.networks, self.guarantee)

    @property
    def guarantee(self) -> Guarantee:
        """What is known here. What only the files say is a claim."""
        if self.certificate is None:
            return NO_GUARANTEE
        if self.is_vouched_for:
            return PROVEN
        how = f"`undershoot check {self.folder}` would establish"
        return Guarantee(Standing.NONE, claim=f"its files claim that it {PROVEN}, which {how}")

    @property
    def is_vouched_for(self) -> bool:
        """Whether what the certificate says was established: by the package, or by this installation."""
        known = self.certificate_digest
        return self.folder is None or known in VOUCHED.values() or trust.has_passed(Passed.CERTIFICATE, known)

    @cached_property
    def subject(self) -> dict[str, Any]:
        """Checksums of all that determines the values of the heuristic."""
        return {
            "fingerprint": self.puzzle.table.fingerprint,
            "h0": digest_of_tensors(base_arrays(self.puzzle)),
            "parity": digest_of_tensors(parity_arrays(self.puzzle)),
            "set": self.set_name,
            "patterns": [cells_of(network.pattern) for network in self.networks],
            "shares": digest_of_tensors(self._shares),
            "looks": digest_of_tensors(self._looks),
            "inputs": [network.encoding.digest for network in self.networks],
            "weights": self.weights_digest,
            "calibration": self.calibration_digest,
            "arithmetic": WHOLE,
        }

    @property
    def weights_digest(self) -> str:
        """Of model.safetensors."""
        return hashlib.sha256(self._model).hexdigest()

    @property
    def calibration_digest(self) -> str | None:
        """Of calibration.json, which covers the exceptions."""
        return None if self.method is None else digest(self.calibration_document)

    @property
    def certificate_digest(self) -> str:
        """Of certificate.json, which covers all of `subject`."""
        return digest(self.certificate or {})

    @property
    def learned_bytes(self) -> int:
        """What the weights, the thresholds and the listed arrangements take on disk."""
        margins = b"" if self.method is None else signed(self.calibration_document)
        return len(self._model) + len(margins) + len(self._exceptions)

    @cached_property
    def _model(self) -> bytes:
        tensors: Tensors = {}
        for n, network in enumerate(self.networks):
            whole = network.network
            for layer, parts in enumerate(zip(whole.weights, whole.biases, whole.scales, strict=True)):
                named = zip(("weight", "bias", "scale"), parts, strict=True)
                tensors |= {f"{n}.layers.{layer}.{name}": np.ascontiguousarray(array) for name, array in named}
        return tensor_bytes(tensors)

    @cached_property
    def _exceptions(self) -> bytes:
        tensors: Tensors = {}
        for n, network in enumerate(self.networks):
            if len(network.listed):
                kind = np.uint32 if network.pattern.folded.size < 2**32 else np.uint64
                tensors |= {f"{n}.numbers": network.listed.astype(kind), f"{n}.costs": np.array(network.listed_costs)}
        return tensor_bytes(tensors) if tensors else b""

    @property
    def _shares(self) -> Tensors:
        tensors: Tensors = {}
        for n, network in enumerate(self.networks):
            step: AnyArray = np.array([network.residuals.step], dtype=np.int32)
            tensors |= {f"{n}.share": np.ascontiguousarray(network.residuals.share), f"{n}.step": step}
        return tensors

    @property
    def _looks(self) -> Tensors:
        table, numbers = self.puzzle.table, [id(network) for network in self.networks]
        sums = sums_of_networks(self.puzzle, self.set_name, self.networks)
        every = [(number, look) for number, group in enumerate(sums) for look in group]
        as_it_is: tuple[AnyArray, AnyArray] = (np.arange(table.cells), np.arange(table.values))
        images = [as_it_is if look.symmetry is None else look.symmetry[:2] for _, look in every]
        return {
            "looks.network": np.array([numbers.index(id(look.table)) for _, look in every], dtype=np.int32),
            "looks.sum": np.array([number for number, _ in every], dtype=np.int32),
            "looks.cells": np.array([cells for cells, _ in images], dtype=np.uint8),
            "looks.values": np.array([values for _, values in images], dtype=np.uint8),
        }

    @property
    def arrays(self) -> Tensors:
        """All of puzzle.safetensors."""
        return {**puzzle_arrays(self.puzzle, []), **self._shares, **self._looks}

    @cached_property
    def calibration_document(self) -> dict[str, Any]:
        """All of calibration.json."""
        return {
            "method": self.method,
            "weights": self.weights_digest,
            "thresholds": [list(network.thresholds) for network in self.networks],
            "exceptions": hashlib.sha256(self._exceptions).hexdigest() if self._exceptions else None,
        }

    def _config(self, files: dict[str, bytes]) -> dict[str, Any]:
        networks = [
            {
                "pattern": {"pieces": cells_of(network.pattern), "is_additive": network.pattern.is_additive},
                "architecture": "multilayer perceptron, ReLU, weights [in, out], levels",
                "encoding": "pairs",
                "inputs": network.encoding.digest,
                "arithmetic": WHOLE,
                "widths": [*network.network.widths],
                "step": network.residuals.step,
            }
            for network in self.networks
        ]
        return {
            "format": FORMAT,
            "puzzle": self.puzzle.name,
            "fingerprint": self.puzzle.table.fingerprint,
            "actions": list(self.puzzle.table.action_names),
            "set": self.set_name,
            "networks": networks,
            "combined": "sums and the largest of them, as the set says",
            "recipe": self.recipe,
            "command": self.command,
            "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())},
        }

    def save(self, folder: Path, replaces: str | None = None) -> None:
        """Write the folder; a bundle that is there already is replaced once the new one is complete. replaces: only if it is
        still as it was, by `files.contents_digest`."""
        check_replaceable(folder)
        _ = self.heuristic  # refuses what could not be read again
        files = {MODEL: self._model, ARRAYS: tensor_bytes(self.arrays), CARD: self._card().encode()}
        if self.puzzle.definition:
            files[DEFINITION] = self.puzzle.definition.encode()
        files[CONFIG] = signed(self._config(files))
        if self.method is not None:
            files[CALIBRATION] = signed(self.calibration_document)
            files |= {EXCEPTIONS: self._exceptions} if self._exceptions else {}
        if self.certificate is not None:
            files[CERTIFICATE] = signed(self.certificate)
        write_folder(folder, files, replaces)

    def _listed_share(self) -> str:
        """The option that lists as many arrangements again, and no more."""
        count = sum(len(network.listed) for network in self.networks)
        share = Decimal(count) / sum(int(network.pattern.folded.size) for network in self.networks)
        return f" --listed {share.normalize(Context(prec=4, rounding=ROUND_CEILING))}" if count else ""

    def _card(self) -> str:
        known, commands = "Nothing is known about overestimates.", [self.command]
        if self.method is not None:
            commands.append(f"undershoot calibrate RUN --method {self.method}{self._listed_share()}")
        if self.certificate is not None:
            known = (
                f"{PROVEN.sentence} {sum(row['checked'] for row in self.certificate['checks']):,} arrangements were checked."
            )
            commands.append("undershoot certify RUN")
        names = piece_names(self.puzzle, self.networks[0].pattern.pieces)
        found = [(f"{row['mean_h']:.4f}", f"{row['mean_cost']:.4f}") for row in (self.certificate or {}).get("checks", [])]
        rows = "".join(
            f"| {' '.join(names[p] for p in network.pattern.followed)} | {int(network.pattern.folded.size):,} "
            f"| {' - '.join(map(str, network.network.widths))} | {len(network.listed):,} | {' | '.join(means)} |\n"
            for network, means in zip(self.networks, found or [("-", "-")] * len(self.networks), strict=True)
        )
        made_by = "\n".join(commands)
        return f"""# {self.puzzle.name}: networks on the patterns {self.set_name}

The largest of the sums that the set names. {known}

| pieces | arrangements | widths | listed | mean h | mean cost |
|---|---:|---|---:|---:|---:|
{rows}
{WHOLE}. Made by

```
{made_by}
```

Use it: `undershoot solve {self.puzzle.name} --heuristic THIS_FOLDER`, or `us.load("THIS_FOLDER")` in Python. `undershoot check
THIS_FOLDER` establishes what it claims.
"""


def cells_of(pattern: Pattern) -> list[list[int]]:
    """The cells of its pieces in the goal, in the order of the ranking: a pattern, whatever pieces are numbered."""
    return [[int(cell) for cell in pattern.pieces.cells[piece]] for piece in pattern.folded.pieces.tolist()]


class ToDict(Protocol):
    """A recipe."""

    def to_dict(self) -> dict[str, Any]:
        """All settings."""


def write_pattern_bundle(
    path: Path, puzzle: Problem, set_name: str, networks: list[PatternNetwork], recipe: ToDict, command: str
) -> None:
    """What training ends with: nothing is known of it yet. command: what makes it again."""
    if not isinstance(puzzle, Puzzle):
        raise UndershootError(f"only networks of puzzles are saved; {puzzle.name} is a problem of one's own")
    PatternBundle(puzzle, set_name, tuple(networks), recipe.to_dict(), command).save(path)


def patterns_of_bundle(puzzle: Puzzle, set_name: str) -> tuple[Pattern, ...]:
    """Those that have networks."""
    return distinct_patterns(pattern_set(puzzle, set_name).patterns)
