"""Calibrating, certifying and checking bundles of networks on patterns: every arrangement against tables verified here."""

import dataclasses
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from undershoot import trust
from undershoot.bundles.bundle import CERTIFICATE, CONFIG, check_replaceable
from undershoot.bundles.names import bundle_folder
from undershoot.bundles.pattern_bundle import CERTIFIED, METHODS, PatternBundle
from undershoot.bundles.pattern_reading import read_pattern_bundle
from undershoot.calibration.on_patterns import fit_within, fitting
from undershoot.errors import UndershootError, what_came
from undershoot.files import check_writable, contents_digest
from undershoot.heuristics.every_arrangement import PatternFindings, check_every_arrangement
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.pattern_tables.cache import check_room, table_of
from undershoot.pattern_tables.residuals import codes_at
from undershoot.pattern_tables.sets import piece_names
from undershoot.pattern_tables.tables import AUTO, CUDA_FROM, PatternTable
from undershoot.trust import Passed
from undershoot.workflows.certification import Before

USUALLY_LISTED = 0.01
Progress = Callable[[int, str, int | None], None]
"""Called with how much is done, what is being done, and how much there is in all."""


@dataclass(frozen=True, eq=False)
class CheckedPatterns:
    """What a check of a bundle found."""

    bundle: PatternBundle
    findings: tuple[PatternFindings, ...]
    """Of each network."""
    certificate: Path | None
    """The certificate that was issued, or that holds."""
    differing: tuple[str, ...] = ()
    """In what the certificate differs from what was found."""
    before: Before = Before.NONE
    """What became of the certificate that was there, where none was issued."""

    @property
    def names(self) -> list[str]:
        """The pieces of each pattern."""
        return [_called(self.bundle, network) for network in self.bundle.networks]

    @property
    def violations(self) -> int:
        """Of all networks."""
        return sum(found.violations for found in self.findings)


def calibrate_patterns(
    subject: str | Path,
    method: str = "exhaustive",
    listed: float | None = None,
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> tuple[PatternBundle, Path]:
    """Fit thresholds with which no arrangement is overestimated, and write them into the bundle; returns it and its place.

    method: exhaustive, or exceptions, which lists at most a share `listed` of all arrangements, 0.01 if that is not given.

    Examples:
        >>> from pathlib import Path
        >>> tiles = us.puzzle("tiles-2x3")
        >>> rules = us.recipe(tiles, "exact", "1 2 / 3 4 5").with_settings(["steps=40", "batch=64", "hidden=[16]"])
        >>> us.train_patterns(tiles, rules).save(Path("mine"))
        >>> bundle, folder = us.calibrate_patterns("mine", "exceptions", listed=0.1)
        >>> bundle.method, str(folder)
        ('exceptions', 'mine')
    """
    if method not in METHODS:
        raise UndershootError(
            f"the method is {method}; networks on patterns are calibrated by {' or '.join(METHODS)}, on every arrangement"
        )
    if listed is not None and method != "exceptions":
        raise UndershootError(f"a share of listed arrangements was given, but {method} lists none; use exceptions")
    listed = (USUALLY_LISTED if method == "exceptions" else 0.0) if listed is None else listed
    if not isinstance(listed, float | int) or not 0 <= listed < 1:
        came = f"{listed!a:.40}" if isinstance(listed, float | int) else what_came(listed)
        raise UndershootError(f"the share of listed arrangements is {came}; allowed are 0 to below 1")
    place = Path(out) if out else bundle_folder(subject)
    before = contents_digest(place)
    bundle = read_pattern_bundle(subject, with_calibration=False)
    check_replaceable(place)
    check_writable(place, as_folder=True)
    if (place / CONFIG).exists() and read_pattern_bundle(place, with_calibration=False).weights_digest != bundle.weights_digest:
        raise UndershootError(f"--out is {place}, where another network is; choose another place, or remove that one")
    _check_room(bundle)
    made = []
    for network in bundle.networks:
        table = _table(bundle, network, progress)
        note = f"fitting {_called(bundle, network)}"
        made.append(fitting(network, table, progress=_report(progress, note), device=_device(network)))
    sizes = sum(int(network.pattern.folded.size) for network in bundle.networks)
    fitted = fit_within(made, round(listed * sizes) if method == "exceptions" else 0)
    written = dataclasses.replace(bundle, networks=tuple(fitted), method=method, certificate=None, folder=None)
    written.save(place, before)
    return written, place


def certify_patterns(subject: str | Path, progress: Progress | None = None) -> CheckedPatterns:
    """Compare every network with the verified table of its pattern, and write a certificate, which is recorded.

    Examples:
        >>> from pathlib import Path
        >>> tiles = us.puzzle("tiles-2x3")
        >>> rules = us.recipe(tiles, "exact", "1 2 / 3 4 5").with_settings(["steps=40", "batch=64", "hidden=[16]"])
        >>> us.train_patterns(tiles, rules).save(Path("mine"))
        >>> calibrated = us.calibrate_patterns("mine")
        >>> us.certify_patterns("mine").violations
        0
        >>> print(us.load("mine").guarantee)
        never overestimates
    """
    folder = bundle_folder(subject)
    before = contents_digest(folder)
    bundle = read_pattern_bundle(subject, with_certificate=False)
    if bundle.method is None:
        raise UndershootError(f"{folder} is not calibrated; calibrate it first: undershoot calibrate {folder}")
    check_replaceable(folder)
    check_writable(folder, as_folder=True)
    findings, rows = _compared(bundle, progress)
    if any(found.violations for found in findings):
        taken_away = _before(subject, folder / CERTIFICATE)
        dataclasses.replace(bundle, certificate=None).save(folder, before)
        return CheckedPatterns(bundle, findings, None, before=taken_away)
    certified = dataclasses.replace(bundle, certificate=_document(bundle, rows), folder=None)
    certified.save(folder, before)
    trust.record(Passed.CERTIFICATE, certified.certificate_digest)
    return CheckedPatterns(certified, findings, folder / CERTIFICATE)


def _before(subject: str | Path, place: Path) -> Before:
    """What arrangements above their cost say of the certificate at this place."""
    if not place.exists():
        return Before.NONE
    try:
        read_pattern_bundle(subject)
    except UndershootError:  # it is for something else
        return Before.OUTDATED
    return Before.REFUTED


def check_patterns(subject: str | Path, progress: Progress | None = None) -> CheckedPatterns:
    """Every arrangement anew against the certificate; what passes is recorded, and is then known here.

    Examples:
        >>> from pathlib import Path
        >>> tiles = us.puzzle("tiles-2x3")
        >>> rules = us.recipe(tiles, "exact", "1 2 / 3 4 5").with_settings(["steps=40", "batch=64", "hidden=[16]"])
        >>> us.train_patterns(tiles, rules).save(Path("mine"))
        >>> calibrated, certified = us.calibrate_patterns("mine"), us.certify_patterns("mine")
        >>> [found.arrangements for found in us.check_patterns("mine").findings]
        [30, 120]
    """
    folder = bundle_folder(subject)
    bundle = read_pattern_bundle(subject)
    if bundle.certificate is None:
        raise UndershootError(f"{folder} has no certificate; certify it first: undershoot certify {folder}")
    findings, rows = _compared(bundle, progress)
    differing = _differing("", bundle.certificate | {"checks": None}, _document(bundle, rows) | {"checks": None})
    for network, found, stated in zip(bundle.networks, rows, bundle.certificate["checks"], strict=True):
        differing += _differing(f"{_called(bundle, network)}: ", stated, found)
    if differing or any(found.violations for found in findings):
        return CheckedPatterns(bundle, findings, None, differing)
    trust.record(Passed.CERTIFICATE, bundle.certificate_digest)
    return CheckedPatterns(bundle, findings, folder / CERTIFICATE)


def _document(bundle: PatternBundle, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """All of certificate.json."""
    return {"format": CERTIFIED, "puzzle": bundle.puzzle.name, **bundle.subject, "additivity": "checked", "checks": rows}


def _differing(where: str, stated: dict[str, Any], expected: dict[str, Any]) -> tuple[str, ...]:
    """In what a part of a certificate is not what it should be."""
    more = [f"{where}there is {name!a:.40}, which no certificate has" for name in sorted(set(stated) - set(expected))]
    return (
        *more,
        *(
            f"{where}{name} is {value}, the certificate says {stated.get(name)!a:.80}"
            for name, value in expected.items()
            if (type(value), value) != (type(stated.get(name)), stated.get(name))
        ),
    )


def _compared(bundle: PatternBundle, progress: Progress | None) -> tuple[tuple[PatternFindings, ...], list[dict[str, Any]]]:
    _check_room(bundle)
    findings, rows = [], []
    for network in bundle.networks:
        table = _table(bundle, network, progress)
        report = _report(progress, f"checking {_called(bundle, network)}")
        found = check_every_arrangement(network, table, progress=report, device=_device(network))
        findings.append(found)
        rows.append(
            {
                "arrangements": int(network.pattern.folded.size),
                "checked": found.arrangements,
                "violations": found.violations,
                "mean_h": found.mean,
                "mean_cost": found.mean_cost,
                "listed": len(network.listed),
                "table": hashlib.sha256(table.unpacked().data).hexdigest(),
            }
        )
    return tuple(findings), rows


def _check_room(bundle: PatternBundle) -> None:
    """Before the first table is made."""
    check_room([network.pattern for network in bundle.networks], bundle.puzzle.name)


def _table(bundle: PatternBundle, network: PatternNetwork, progress: Progress | None) -> PatternTable:
    """Made and verified here, now or before; a file in the cache that this installation did not make does not count."""
    called = _called(bundle, network)

    def report(what: str, done: int, of: int) -> None:
        if progress is not None:
            progress(done, f"{what} the table of {called}", of)

    return table_of(network.pattern, bundle.puzzle.name, progress=report, device=AUTO)


def _called(bundle: PatternBundle, network: PatternNetwork) -> str:
    names = piece_names(bundle.puzzle, network.pattern.pieces)
    return " ".join(names[piece] for piece in network.pattern.followed)


def first_too_high(bundle: PatternBundle, network: PatternNetwork, found: PatternFindings) -> str | None:
    """The first arrangement above its cost: pieces, each with the cells that it stands on, from 1 on."""
    if found.first is None:
        return None
    pieces, how = network.pattern.pieces, network.pattern.folded
    names = piece_names(bundle.puzzle, pieces)
    (codes,) = codes_at(how, np.array([found.first], dtype=np.int64))
    standing = []
    for i, piece in enumerate(how.pieces.tolist()):
        slot = how.slots[i, codes[i] // how.all_turns[i], codes[i] % how.all_turns[i]]
        cells = [str(cell + 1) for cell in pieces.stickers[slot].tolist() if cell >= 0]
        standing.append(f"{names[piece]} on {'-'.join(cells)}")
    return ", ".join(standing)


def _report(progress: Progress | None, note: str) -> Callable[[int, int], None] | None:
    return None if progress is None else partial(_tell, progress, note)


def _tell(progress: Progress, note: str, done: int, of: int) -> None:
    progress(done, note, of)


def _device(network: PatternNetwork) -> str:
    """Where it is asked about every arrangement: on cuda if they are many and there is one, on the cores otherwise."""
    if network.pattern.folded.size < CUDA_FROM:
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
