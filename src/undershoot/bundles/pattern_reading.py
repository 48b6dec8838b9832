"""Reading bundles of networks on patterns: what is damaged, changed or foreign is refused by name."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from undershoot.bundles.bundle import ARRAYS, CALIBRATION, CERTIFICATE, CONFIG, DEFINITION, EXCEPTIONS, MODEL, WHOLE
from undershoot.bundles.documents import digest, expect, expect_plain, read_bytes, read_signed
from undershoot.bundles.names import bundle_folder
from undershoot.bundles.pattern_bundle import CERTIFIED, FORMAT, METHODS, PatternBundle, cells_of, patterns_of_bundle
from undershoot.bundles.reading import NUMBER, WRONG, contents_of, equal_tensors, puzzle_of, tensors_in
from undershoot.errors import UndershootError
from undershoot.heuristics.families import BEYOND
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.heuristics.whole_numbers import WholeNetwork
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.residuals import Residuals, shares_of
from undershoot.pattern_tables.sets import pattern_set
from undershoot.puzzles.puzzle import Puzzle


def is_pattern_bundle(path: str | Path) -> bool:
    """Whether the bundle at this path is one of networks on patterns."""
    return read_signed(bundle_folder(path) / CONFIG).get("format") == FORMAT


def read_pattern_bundle(path: str | Path, with_calibration: bool = True, with_certificate: bool = True) -> PatternBundle:
    """A bundle, or that of a run folder; without its calibration or certificate where these are about to be replaced."""
    folder = bundle_folder(path)
    try:
        bundle = _read(folder, str(path))
        if with_calibration:
            bundle = _with_calibration(folder, bundle)
            if with_certificate:
                bundle = dataclasses.replace(bundle, certificate=_read_certificate(folder, bundle))
        _ = bundle.heuristic  # sums that cannot be added are refused here
    except WRONG as error:
        raise UndershootError(f"{folder} does not hold what a bundle holds: {error!r}") from error
    except UndershootError as error:
        if str(folder) in str(error):
            raise
        raise UndershootError(f"{folder} does not hold what a bundle holds: {error}") from error
    return bundle


def _read(folder: Path, name: str) -> PatternBundle:
    path = folder / CONFIG
    config = read_signed(path)
    if config.get("format") != FORMAT:
        raise UndershootError(
            f"{folder} holds no networks on patterns; for a network of whole states use us.calibrate, us.certify and us.check"
        )
    expect(config, path, puzzle=str, fingerprint=str, networks=list, recipe=dict, command=str, sha256=dict, set=str)
    expect_plain(config, path)
    contents = contents_of(folder, config["sha256"])
    puzzle = puzzle_of(folder, config, DEFINITION in contents)
    try:
        # A file should not speak in other words than ours, nor draw on a terminal.
        is_ours = config["set"].isprintable() and pattern_set(puzzle, config["set"]).name == config["set"]
        patterns = patterns_of_bundle(puzzle, config["set"]) if is_ours else ()
    except UndershootError as error:
        raise UndershootError(f"{path} names a set of patterns that {puzzle.name} does not have: {error}") from error
    if not is_ours:
        raise UndershootError(f"{path} names a set of patterns as no bundle does: {config['set'][:40]!a}")
    model = tensors_in(folder / MODEL, contents[MODEL])
    if len(patterns) != len(config["networks"]):
        raise UndershootError(f"{path} holds {len(config['networks'])} networks; the set {config['set']} needs {len(patterns)}")
    networks = []
    for n, (pattern, about) in enumerate(zip(patterns, config["networks"], strict=True)):
        expect(about, path, pattern=dict, inputs=str, arithmetic=str, widths=list, step=int, encoding=str)
        if about["pattern"] != {"pieces": cells_of(pattern), "is_additive": pattern.is_additive}:
            raise UndershootError(f"network {n} of {path} is of another pattern than the set {config['set']} has there")
        networks.append(_network(folder, puzzle, pattern, about, {k: v for k, v in model.items() if k.startswith(f"{n}.")}, n))
    bundle = PatternBundle(
        puzzle, config["set"], tuple(networks), config["recipe"], config["command"], name=name, folder=folder
    )
    if not equal_tensors(tensors_in(folder / ARRAYS, contents[ARRAYS]), bundle.arrays):
        raise UndershootError(
            f"{folder / ARRAYS} holds another puzzle, other shares of h0 or other looks than this version of undershoot has"
        )
    if bundle.weights_digest != config["sha256"][MODEL]:
        raise UndershootError(f"{folder / MODEL} holds more, or something else, than the layers that {CONFIG} names")
    return bundle


def _network(
    folder: Path, puzzle: Puzzle, pattern: Pattern, about: dict[str, Any], tensors: dict[str, Any], n: int
) -> PatternNetwork:
    widths, path = about["widths"], folder / MODEL
    if about["arithmetic"] != WHOLE or about["encoding"] != "pairs":
        raise UndershootError(f"{path} is evaluated in a way that this version of undershoot does not know")
    try:
        parts = ("weight", "bias", "scale")
        weights, biases, scales = (tuple(tensors[f"{n}.layers.{k}.{name}"] for k in range(len(widths) - 1)) for name in parts)
    except KeyError as error:
        raise UndershootError(f"{path} does not hold the layers that {CONFIG} names: {error}") from error
    whole = WholeNetwork(weights, biases, scales)
    if [*whole.widths] != widths or about["step"] not in (1, 2):
        raise UndershootError(f"{path} holds layers of widths {whole.widths}, {CONFIG} says {widths}")
    residuals = Residuals(shares_of(pattern, puzzle.base_heuristic), about["step"], whole.widths[-1])
    network = PatternNetwork(pattern, whole, residuals, (0,) * whole.widths[-1])
    if network.encoding.digest != about["inputs"]:
        raise UndershootError(f"{folder} was trained on another encoding of arrangements than this version of undershoot has")
    return network


def _with_calibration(folder: Path, bundle: PatternBundle) -> PatternBundle:
    path = folder / CALIBRATION
    if not path.exists():
        return bundle
    fields = read_signed(path)
    expect(fields, path, method=str, weights=str, thresholds=list, exceptions=(str, None))
    if fields["weights"] != bundle.weights_digest:
        raise UndershootError(f"{path} was fitted to other weights than those in {MODEL}; calibrate again")
    if fields["method"] not in METHODS:
        raise UndershootError(f"{path} names a method that is none here: {fields['method'][:40]!a}")
    listed: dict[str, Any] = {}
    if fields["exceptions"] is not None:
        data = read_bytes(folder / EXCEPTIONS)
        if hashlib.sha256(data).hexdigest() != fields["exceptions"]:
            raise UndershootError(f"{folder / EXCEPTIONS} was changed: it does not match the checksum in {CALIBRATION}")
        listed = tensors_in(folder / EXCEPTIONS, data)
    if listed and fields["method"] == METHODS[0]:
        raise UndershootError(f"{path} lists arrangements, which the method {METHODS[0]} does not; calibrate again")
    networks = []
    for n, (network, thresholds) in enumerate(zip(bundle.networks, fields["thresholds"], strict=True)):
        if not all(isinstance(one, int) and not isinstance(one, bool) and abs(one) <= BEYOND for one in thresholds):
            raise UndershootError(f"{path} holds a threshold that is no whole number below 2^24")
        numbers, costs = listed.get(f"{n}.numbers", np.zeros(0, np.uint32)), listed.get(f"{n}.costs", np.zeros(0, np.uint8))
        if numbers.dtype.kind != "u" or costs.dtype != np.uint8:
            raise UndershootError(f"{folder / EXCEPTIONS} does not hold numbers and their costs; calibrate again")
        fitted = {"listed": numbers.astype(np.int64), "listed_costs": costs}
        networks.append(dataclasses.replace(network, thresholds=tuple(thresholds), **fitted))
    calibrated = dataclasses.replace(bundle, networks=tuple(networks), method=fields["method"])
    if calibrated.calibration_digest != digest(fields):
        raise UndershootError(f"{path} holds more, or something else, than a calibration; calibrate again")
    return calibrated


def _read_certificate(folder: Path, bundle: PatternBundle) -> dict[str, Any] | None:
    path = folder / CERTIFICATE
    if not path.exists():
        return None
    certificate = read_signed(path)
    if certificate.get("fingerprint") != bundle.puzzle.table.fingerprint:
        raise UndershootError(f"{path} is the certificate of another puzzle ({str(certificate.get('puzzle'))[:60]})")
    for name, value in bundle.subject.items():
        if certificate.get(name) != value:
            raise UndershootError(f"{path} was issued for other {name} than this bundle has; certify again")
    expect(certificate, path, format=str, puzzle=str, checks=list)
    whole = certificate["format"] == CERTIFIED and len(certificate["checks"]) == len(bundle.networks)
    for row, network in zip(certificate["checks"], bundle.networks, strict=False):
        expect(row, path, arrangements=int, checked=int, violations=int, listed=int, table=str, mean_h=NUMBER, mean_cost=NUMBER)
        whole = whole and row["arrangements"] == int(network.pattern.folded.size) and not row["violations"]
    if not whole:
        raise UndershootError(f"{path} does not say that all arrangements were checked; certify again")
    return certificate
