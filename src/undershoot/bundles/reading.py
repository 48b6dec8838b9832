"""Reading bundles: what is damaged, changed or foreign is refused by name."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

from undershoot.arrays import AnyArray
from undershoot.bundles.bundle import (
    ARRAYS,
    CALIBRATION,
    CARD,
    CERTIFICATE,
    CERTIFIED,
    CONFIG,
    DEFINITION,
    EXCEPTIONS,
    FLOAT,
    FORMAT,
    MODEL,
    STATED,
    WHOLE,
    Bundle,
)
from undershoot.bundles.contents import puzzle_arrays
from undershoot.bundles.documents import digest, expect, expect_plain, read_bytes, read_signed
from undershoot.bundles.names import bundle_folder
from undershoot.bundles.pattern_bundle import FORMAT as ON_PATTERNS
from undershoot.errors import UndershootError, UnknownPuzzle
from undershoot.guarantees import Guarantee, Rounding, Standing, Subject
from undershoot.heuristics import wording
from undershoot.heuristics.calibrated import Calibration
from undershoot.heuristics.neural import Network
from undershoot.heuristics.whole_numbers import WholeNetwork
from undershoot.kernels.plan import packing_of
from undershoot.puzzles import catalogue
from undershoot.puzzles.puzzle import Puzzle

WRONG = (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError, RecursionError)
"""What wrong contents end in where no sentence of ours comes first."""
NUMBER = (int, float)


def read_bundle(path: str | Path, with_calibration: bool = True, with_certificate: bool = True) -> Bundle:
    """A bundle, or that of a run folder.

    Without its calibration or certificate where these are about to be replaced, and may be out of date.
    """
    folder = bundle_folder(path)
    try:
        bundle = _read_bundle(folder, str(path))
        if with_calibration:
            bundle = dataclasses.replace(bundle, calibration=_read_calibration(folder, bundle))
            if with_certificate:
                bundle = dataclasses.replace(bundle, certificate=_read_certificate(folder, bundle))
    except WRONG as error:
        raise UndershootError(f"{folder} does not hold what a bundle holds: {error!r}") from error
    return bundle


def _read_bundle(folder: Path, name: str) -> Bundle:
    path = folder / CONFIG
    config = read_signed(path)
    if config.get("format") == ON_PATTERNS:
        raise UndershootError(
            f"{folder} holds networks on patterns, which have no margins by states; in Python use us.calibrate_patterns, "
            "us.certify_patterns and us.check_patterns"
        )
    if config.get("format") != FORMAT:
        raise UndershootError(
            f"{path} is no bundle of this version of undershoot: its format is {str(config.get('format'))[:40]!r}, not "
            f"{FORMAT!r}"
        )
    expect(config, path, puzzle=str, fingerprint=str, networks=list, recipe=dict, figures=dict, command=str, sha256=dict)
    expect_plain(config, path)
    if len(config["networks"]) != 1 or config["networks"][0].get("pattern") is not None or config.get("combined") != "one":
        raise UndershootError(
            f"{path} holds several networks, or one of a pattern, which this version of undershoot cannot read"
        )
    for setting in set(config["recipe"]) & {"exact_share", "exact_radius"}:
        expect(config["recipe"], path, **{setting: NUMBER})
    network = config["networks"][0]
    expect(network, path, encoding=str, canonical=bool, inputs=str, arithmetic=str, widths=list)
    contents = contents_of(folder, config["sha256"])
    puzzle = puzzle_of(folder, config, DEFINITION in contents)
    bundle = Bundle(
        puzzle,
        _network(folder / MODEL, contents[MODEL], network["widths"], network["arithmetic"]),
        config["recipe"],
        config["figures"],
        config["command"],
        network["encoding"],
        network["canonical"],
        name=name,
        folder=folder,
    )
    arrays, ours = tensors_in(folder / ARRAYS, contents[ARRAYS]), puzzle_arrays(puzzle, [bundle.raw.encoding])
    if bundle.raw.encoding.digest != network["inputs"] or not equal_tensors(arrays, ours):
        raise UndershootError(
            f"{folder} was trained on another encoding of states than this version of undershoot has; train it again"
        )
    return bundle


def puzzle_of(folder: Path, config: dict[str, Any], is_defined: bool) -> Puzzle:
    """The puzzle that config.json names, by its definition in the folder or from the catalogue; no other file is read."""
    path, name = folder / CONFIG, config["puzzle"]
    if not name.isprintable() or (name.endswith(".toml") and not is_defined):
        raise UndershootError(f"{path} is for a puzzle that is not known here: {name[:40]!a}")
    try:
        puzzle = catalogue.from_file(folder / DEFINITION) if is_defined else catalogue.puzzle(name)
    except UnknownPuzzle as error:
        raise UndershootError(f"{path} is for a puzzle that is not known here: {error}") from error
    actions = list(puzzle.table.action_names)
    if (puzzle.table.fingerprint, puzzle.name, actions) != (config["fingerprint"], name, config.get("actions")):
        raise UndershootError(f"{folder} was made for another {name} than this version of undershoot has")
    return puzzle


def contents_of(folder: Path, checksums: dict[str, Any]) -> dict[str, bytes]:
    """The files that config.json names, if they match its checksums."""
    needed, possible = {MODEL, ARRAYS, CARD}, {MODEL, ARRAYS, CARD, DEFINITION}
    if not needed <= set(checksums) <= possible:
        raise UndershootError(
            f"{folder / CONFIG} names {', '.join(sorted(checksums))}; a bundle has {', '.join(sorted(needed))}"
        )
    contents = {part: read_bytes(folder / part) for part in checksums}
    for part, data in contents.items():
        if hashlib.sha256(data).hexdigest() != checksums[part]:
            after = " after it was certified" if (folder / CERTIFICATE).exists() and part == MODEL else ""
            raise UndershootError(f"{folder / part} was changed{after}: it does not match the checksum in {CONFIG}")
    return contents


def tensors_in(path: Path, data: bytes) -> dict[str, AnyArray]:
    """What such a file holds."""
    try:
        return load_tensors(data)
    except (SafetensorError, *WRONG) as error:
        raise UndershootError(f"{path} is damaged: {error}") from error


def equal_tensors(ours: dict[str, AnyArray], theirs: dict[str, AnyArray]) -> bool:
    """Whether they have the same names, kinds and contents."""
    return set(ours) == set(theirs) and all(
        ours[name].dtype == theirs[name].dtype and np.array_equal(ours[name], theirs[name]) for name in ours
    )


def _network(path: Path, data: bytes, widths: list[int], arithmetic: str) -> Network | WholeNetwork:
    if arithmetic not in (FLOAT, WHOLE):
        raise UndershootError(
            f"{path} is evaluated by arithmetic that this version of undershoot does not know: {arithmetic[:60]!r}"
        )
    network: Network | WholeNetwork
    tensors = tensors_in(path, data)
    try:
        weights, biases = (tuple(tensors[f"layers.{k}.{n}"] for k in range(len(widths) - 1)) for n in ("weight", "bias"))
        if arithmetic == WHOLE:
            network = WholeNetwork(weights, biases, tuple(tensors[f"layers.{k}.scale"] for k in range(len(widths) - 1)))
        else:
            network = Network(weights, biases)
    except KeyError as error:
        raise UndershootError(f"{path} does not hold the layers that {CONFIG} names: {error}") from error
    kinds = {array.dtype for array in (*network.weights, *network.biases)}
    if [*network.widths] != widths or (arithmetic == FLOAT and kinds != {np.dtype(np.float32)}):
        raise UndershootError(f"{path} holds layers of widths {network.widths}, {CONFIG} says {widths}")
    return network


def _read_calibration(folder: Path, bundle: Bundle) -> Calibration | None:
    path = folder / CALIBRATION
    if not path.exists():
        return None
    fields = read_signed(path)
    margin = (int, float, str)
    expect(fields, path, method=str, guarantee=dict, margin=margin, group_margins=list, level_margins=list, rounding=str)
    expect(fields, path, arithmetic_margin=NUMBER, labels=int, population=str, weights=str, exceptions=(str, None))
    if fields["weights"] != bundle.weights_digest:
        raise UndershootError(f"{path} was fitted to other weights than those in {MODEL}; calibrate again")
    if fields["method"] not in wording.METHODS:
        raise UndershootError(f"{path} names a method that is none here: {fields['method'][:40]!a}")
    _check_population(path, fields["population"])
    keys, costs = _read_exceptions(folder, bundle, fields["exceptions"])
    calibration = Calibration(
        method=fields["method"],
        guarantee=_guarantee(path, fields["guarantee"]),
        margin=_margin(path, fields["margin"]),
        group_margins=tuple(_margin(path, one) for one in fields["group_margins"]),
        level_margins=tuple(_margin(path, one) for one in fields["level_margins"]),
        arithmetic_margin=_margin(path, fields["arithmetic_margin"]),
        rounding=Rounding(fields["rounding"]),
        exceptions=keys,
        exception_costs=costs,
        labels=fields["labels"],
        population=fields["population"],
    )
    if dataclasses.replace(bundle, calibration=calibration).calibration_digest != digest(fields):
        raise UndershootError(f"{path} holds more, or something else, than a calibration; calibrate again")
    return calibration


def _read_exceptions(folder: Path, bundle: Bundle, stated: str | None) -> tuple[AnyArray, AnyArray]:
    words = int(packing_of(bundle.puzzle.table).word[-1]) + 1
    if stated is None:
        return np.zeros((0, words), dtype=np.uint64), np.zeros(0, dtype=np.uint16)
    path = folder / EXCEPTIONS
    data = read_bytes(path)
    if hashlib.sha256(data).hexdigest() != stated:
        raise UndershootError(f"{path} was changed: it does not match the checksum in {CALIBRATION}")
    tensors = tensors_in(path, data)
    keys, costs = tensors.get("keys", np.zeros(0)), tensors.get("costs", np.zeros(0))
    shapes = keys.dtype == np.uint64 and costs.dtype == np.uint16 and keys.shape == (len(costs), words)
    if not shapes or not len(costs) or len(np.unique(keys, axis=0)) < len(keys):
        raise UndershootError(f"{path} does not hold states and their costs, each state once; calibrate again")
    return keys, costs


def _margin(path: Path, value: Any) -> float:
    if value in ("inf", "-inf") or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return float(value)
    raise UndershootError(f"{path} holds a margin that is no number: {str(value)[:40]!r}")


def _guarantee(path: Path, claim: dict[str, Any]) -> Guarantee:
    expect(claim, path, standing=str, within=(int, None), population=str, violation_rate=NUMBER, confidence=(int, float, None))
    expect(claim, path, labels=int, subject=str, groups=int, claim=str)
    _check_population(path, claim["population"])
    if claim["claim"]:
        raise UndershootError(f"{path} holds a claim in its own words, which no calibration writes: {claim['claim'][:40]!a}")
    if set(claim) != STATED:
        raise UndershootError(f"{path} claims what is no guarantee of this version of undershoot")
    return Guarantee(**{**claim, "standing": Standing(claim["standing"]), "subject": Subject(claim["subject"])})


def _check_population(path: Path, text: str) -> None:
    """Texts that are printed again are those that calibrations write: a file should not speak in our voice."""
    if not wording.is_population(text):
        raise UndershootError(f"{path} names a population that no calibration draws from: {text[:40]!a}")


def _read_certificate(folder: Path, bundle: Bundle) -> dict[str, Any] | None:
    path = folder / CERTIFICATE
    if not path.exists():
        return None
    certificate = read_signed(path)
    if certificate.get("fingerprint") != bundle.puzzle.table.fingerprint:
        raise UndershootError(f"{path} is the certificate of another puzzle ({str(certificate.get('puzzle'))[:60]})")
    reasons = {
        "weights": f"other weights than those in {MODEL}",
        "calibration": f"another calibration than {CALIBRATION}",
        "inputs": f"another encoding of states than {CONFIG} names",
        "h0": "another base heuristic than this version of undershoot has",
        "parity": "another parity of solutions than this version of undershoot has",
        "arithmetic": "another arithmetic than this version of undershoot has",
    }
    for name, reason in reasons.items():
        if certificate.get(name) != bundle.subject[name]:
            raise UndershootError(f"{path} was issued for {reason}; certify again")
    expect(certificate, path, format=str, puzzle=str, states=int, checked=int, violations=int, marginal=int, radius=(int, None))
    expect(
        certificate, path, mean_h=NUMBER, mean_true=NUMBER, supremum=NUMBER, edges=(int, None), inconsistent_edges=(int, None)
    )
    for name in ("mean_h", "mean_true", "supremum"):
        float(certificate[name])  # a whole number of hundreds of digits is none
    whole = certificate["format"] == CERTIFIED and certificate["checked"] == certificate["states"]
    if not whole or certificate["violations"] or certificate["marginal"] or (certificate["radius"] or 0) < 0:
        raise UndershootError(f"{path} does not say that all states were checked; certify again")
    return certificate
