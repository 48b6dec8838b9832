"""Certifying and checking bundles: every state, every move, and what is remembered of it."""

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from undershoot import trust
from undershoot.bundles.bundle import CERTIFICATE, Bundle, check_replaceable
from undershoot.bundles.names import bundle_folder
from undershoot.bundles.reading import read_bundle
from undershoot.calibration.populations import exact, uniform, whole_space
from undershoot.certification import Findings, certificate, check_ball, check_every_state, check_sample, confirm
from undershoot.errors import UndershootError
from undershoot.files import check_writable
from undershoot.kernels.streams import Purpose, stream
from undershoot.oracles.cache import oracle

Progress = Callable[[int, str, int | None], None]
"""Called with how much is done, what is being done, and how much there is in all."""


@dataclass(frozen=True, eq=False)
class Checked:
    """What a check found of a bundle."""

    bundle: Bundle
    findings: Findings
    is_sample: bool
    certificate: Path | None = None
    """The certificate that was issued, or that holds."""
    is_withdrawn: bool = False
    """Whether there was a certificate, which is refuted and was taken away."""
    differing: tuple[str, ...] = ()
    """In what the certificate differs from what was found."""

    @property
    def is_proven(self) -> bool:
        """That it never overestimates, on all states that were asked about, and that a certificate says so."""
        return self.certificate is not None and not self.is_sample

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against it; of a sample that proves nothing."""
        return not (self.findings.violations or self.findings.marginal or self.differing)


def certify(
    path: str | Path, ball: int | None = None, sample: int | None = None, seed: int = 0, progress: Progress | None = None
) -> Checked:
    """Check a calibrated bundle on every state and every move, and write a certificate, which is recorded; see `trust`.

    ball: only within this cost of the goal. sample: only so many uniform states, which proves nothing and writes nothing. A
    certificate that is there and refuted is taken away.

    Examples:
        >>> from pathlib import Path
        >>> done = us.calibrate("lights-out-3x3-paper", out=Path("mine"))
        >>> certified = us.certify("mine")
        >>> certified.is_proven, certified.findings.states, certified.findings.violations
        (True, 512, 0)
    """
    _check_request(ball, sample)
    bundle, folder = read_bundle(path, with_certificate=False), bundle_folder(path)
    if bundle.calibration is None:
        raise UndershootError(f"{path} is not calibrated; do that first: undershoot calibrate {path} --method exhaustive")
    if ball is not None:
        check_ball(bundle, ball, _certificate_of(path))
    if sample is None:
        check_replaceable(folder)
        check_writable(folder, as_folder=True)
    found = _findings(bundle, ball, sample, seed, progress)
    place = folder / CERTIFICATE
    if found.violations or found.marginal:
        is_withdrawn = place.exists()
        if is_withdrawn:
            bundle.save(folder)
        return Checked(bundle, found, sample is not None, is_withdrawn=is_withdrawn)
    if sample is not None:
        return Checked(bundle, found, is_sample=True)
    certified = dataclasses.replace(bundle, certificate=certificate(bundle, found))
    certified.save(folder)
    return Checked(certified, found, is_sample=False, certificate=place)


def check(path: str | Path, sample: int | None = None, seed: int = 0, progress: Progress | None = None) -> Checked:
    """Verify a bundle: its checksums, and every state anew against its certificate. What passes is recorded; see `trust`.

    sample: only so many uniform states, which proves nothing.

    Examples:
        >>> checked = us.check("lights-out-3x3")
        >>> checked.passed, checked.findings.checked, checked.findings.edges
        (True, 512, 4608)
    """
    _check_request(None, sample)
    bundle = read_bundle(path)
    if bundle.certificate is None:
        raise UndershootError(f"{path} has no certificate; make one: undershoot certify {path}")
    radius = bundle.certificate["radius"]
    if sample is not None and radius is not None:
        raise UndershootError(f"the certificate of {path} is for a ball around the goal; leave --sample out")
    found = _findings(bundle, radius, sample, seed, progress)
    if sample is not None:
        return Checked(bundle, found, is_sample=True)
    result = Checked(bundle, found, is_sample=False, differing=tuple(confirm(bundle, found)))
    return dataclasses.replace(result, certificate=Path(path)) if result.passed else result


def _certificate_of(path: str | Path) -> dict[str, Any] | None:
    """The bundle's own; None if there is none that is for it."""
    try:
        return read_bundle(path).certificate
    except UndershootError:
        return None


def _check_request(ball: int | None, sample: int | None) -> None:
    if ball is not None and sample is not None:
        raise UndershootError("--ball and --sample exclude one another; give one of them")
    if sample is not None and sample < 1:
        raise UndershootError(f"--sample is {sample}; at least 1 state is needed")


def _findings(bundle: Bundle, ball: int | None, sample: int | None, seed: int, progress: Progress | None) -> Findings:
    distances = whole_space(bundle.puzzle, "A certificate") if ball is None else oracle(bundle.puzzle, radius=ball)
    if sample is not None:
        drawn_with = stream(trust.private_seed(seed, bundle.network_digest), Purpose.CHECK)
        states = uniform(bundle.puzzle, sample, drawn_with)
        true_cost = exact(distances, states).costs.astype(np.int64)
        return check_sample(bundle.heuristic, states, true_cost, distances.states)
    whole = 2 * distances.states

    def report(done: int, note: str) -> None:
        if progress is not None:
            progress(done, note, whole)

    return check_every_state(bundle.heuristic, distances, os.cpu_count() or 1, report)
