"""Certifying and checking bundles and functions: every state, every move, and what is remembered of it."""

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, overload

import numpy as np

from undershoot import trust
from undershoot.bundles.bundle import CERTIFICATE, Bundle, check_replaceable
from undershoot.bundles.names import bundle_folder
from undershoot.bundles.reading import read_bundle
from undershoot.calibration.populations import exact, is_enumerable, uniform, whole_space
from undershoot.calibration.proofs import prove
from undershoot.certification import Findings, certificate, check_ball, check_every_state, check_sample, confirm
from undershoot.errors import UndershootError
from undershoot.files import check_writable, contents_digest
from undershoot.guarantees import Guarantee, Heuristic, OptimalityKind, Standing
from undershoot.heuristics.calibrated import FLOAT_MARGIN, CalibratedHeuristic
from undershoot.heuristics.neural import LearnedHeuristic
from undershoot.heuristics.wrapped import WrappedHeuristic
from undershoot.kernels.streams import Purpose, stream
from undershoot.oracles.cache import oracle
from undershoot.puzzles.problem import MOST_STATES
from undershoot.workflows.calibration import fresh_seed

Progress = Callable[[int, str, int | None], None]
"""Called with how much is done, what is being done, and how much there is in all."""
Function = WrappedHeuristic | CalibratedHeuristic
"""What `us.wrap` made, or that calibrated."""


class Before(StrEnum):
    """What became of a certificate that was there, where no new one could be issued."""

    NONE = "none"
    """There was none."""
    REFUTED = "refuted"
    """It says of a state that overestimates that it does not, and was taken away."""
    OUTDATED = "outdated"
    """It was for something else than the bundle as it is, and was taken away."""
    KEPT = "kept"
    """It is for a ball, and what overestimates lies beyond that."""


@dataclass(frozen=True, eq=False)
class Checked:
    """What a check found."""

    heuristic: Heuristic
    """With what is known of it now."""
    findings: Findings
    is_sample: bool

    @property
    def is_proven(self) -> bool:
        """That it never overestimates, on all states that were asked about."""
        return self.passed and not self.is_sample

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against it; of a sample that proves nothing."""
        return not (self.findings.violations or self.findings.marginal)


@dataclass(frozen=True, eq=False)
class CheckedBundle(Checked):
    """What a check found of a bundle."""

    bundle: Bundle
    certificate: Path | None = None
    """The certificate that was issued, or that holds."""
    before: Before = Before.NONE
    """What became of the certificate that was there, where none was issued."""
    differing: tuple[str, ...] = ()
    """In what the certificate differs from what was found."""

    @property
    def is_proven(self) -> bool:
        """Likewise, and that a certificate says so."""
        return self.certificate is not None and not self.is_sample

    @property
    def passed(self) -> bool:
        """Likewise, the certificate included."""
        return super().passed and not self.differing


@overload
def certify(
    subject: str | Path, ball: int | None = None, sample: int | None = None, seed: int = 0, progress: Progress | None = None
) -> CheckedBundle: ...
@overload
def certify(
    subject: Function, ball: int | None = None, sample: int | None = None, seed: int = 0, progress: Progress | None = None
) -> Checked: ...
def certify(
    subject: str | Path | Function,
    ball: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Checked:
    """Check a calibrated bundle on every state and every move, and write a certificate, which is recorded; see `trust`.

    ball: only within this cost of the goal. sample: only so many uniform states, which proves nothing and writes nothing. A
    certificate that is there and refuted is taken away; one for a ball stays if what overestimates lies beyond that. Of what
    `us.wrap` made, calibrated or not, no certificate is written: what was found is known of the heuristic that is returned, in
    this process.

    Examples:
        >>> from pathlib import Path
        >>> done = us.calibrate("lights-out-3x3-paper", out=Path("mine"))
        >>> certified = us.certify("mine")
        >>> certified.is_proven, certified.findings.states, certified.findings.violations
        (True, 512, 0)
    """
    _check_request(ball, sample)
    if isinstance(subject, (WrappedHeuristic, CalibratedHeuristic)):
        return _check_function(subject, ball, sample, seed, progress)
    folder = bundle_folder(subject)
    before_that = contents_digest(folder)
    bundle = read_bundle(subject, with_certificate=False)
    if bundle.calibration is None:
        raise UndershootError(f"{subject} is not calibrated; do that first: undershoot calibrate {subject} --method exhaustive")
    if ball is not None:
        check_ball(bundle, ball, _certificate_of(subject))
    if sample is None:
        check_replaceable(folder)
        check_writable(folder, as_folder=True)
    found = _findings(bundle.heuristic, ball, sample, trust.private_seed(seed, bundle.digest), progress)
    place = folder / CERTIFICATE
    if found.violations or found.marginal:
        before = _before(subject, place, found)
        if before in (Before.REFUTED, Before.OUTDATED):
            bundle.save(folder, before_that)
        return CheckedBundle(bundle.heuristic, found, sample is not None, bundle, before=before)
    if sample is not None:
        return CheckedBundle(bundle.heuristic, found, True, bundle)
    certified = dataclasses.replace(bundle, certificate=certificate(bundle, found))
    certified.save(folder, before_that)
    return CheckedBundle(certified.heuristic, found, False, certified, place)


@overload
def check(subject: str | Path, sample: int | None = None, seed: int = 0, progress: Progress | None = None) -> CheckedBundle: ...
@overload
def check(subject: Function, sample: int | None = None, seed: int = 0, progress: Progress | None = None) -> Checked: ...
def check(
    subject: str | Path | Function, sample: int | None = None, seed: int = 0, progress: Progress | None = None
) -> Checked:
    """Verify a bundle: its checksums, and every state anew against its certificate. What passes is recorded; see `trust`.

    sample: only so many uniform states, which proves nothing. What `us.wrap` made, calibrated or not, is checked on every state
    and every move; that is known of the heuristic that is returned, in this process.

    Examples:
        >>> checked = us.check("lights-out-3x3")
        >>> checked.passed, checked.findings.checked, checked.findings.edges
        (True, 512, 4608)
    """
    _check_request(None, sample)
    if isinstance(subject, (WrappedHeuristic, CalibratedHeuristic)):
        return _check_function(subject, None, sample, seed, progress)
    bundle = read_bundle(subject)
    if bundle.certificate is None:
        raise UndershootError(f"{subject} has no certificate; make one: undershoot certify {subject}")
    radius = bundle.certificate["radius"]
    if sample is not None and radius is not None:
        raise UndershootError(f"the certificate of {subject} is for a ball around the goal; leave --sample out")
    found = _findings(bundle.heuristic, radius, sample, trust.private_seed(seed, bundle.digest), progress)
    if sample is not None:
        return CheckedBundle(bundle.heuristic, found, True, bundle)
    differing = tuple(confirm(bundle, found))
    known = dataclasses.replace(bundle)  # what is known of it now, rather than before
    result = CheckedBundle(known.heuristic, found, False, bundle, differing=differing)
    return dataclasses.replace(result, certificate=Path(subject)) if result.passed else result


def _check_function(heuristic: Function, ball: int | None, sample: int | None, seed: int, progress: Progress | None) -> Checked:
    function = heuristic.network if isinstance(heuristic, CalibratedHeuristic) else heuristic
    if not isinstance(function, WrappedHeuristic):
        raise UndershootError(
            f"{heuristic.name} is a network; give the path of its bundle, which is checked as it is written there"
        )
    seed = fresh_seed(seed)
    function.ask_again(seed, 0.0 if function is heuristic else FLOAT_MARGIN / 2)
    found = _findings(heuristic, ball, sample, seed, progress)
    result = Checked(heuristic, found, sample is not None)
    if result.is_sample:
        return result
    standing = Standing.PROVEN if result.passed else Standing.NONE
    known = Guarantee(standing, within=found.radius if result.passed else None, provided=function.guarantee.provided)
    if isinstance(heuristic, CalibratedHeuristic):
        calibration = dataclasses.replace(heuristic.calibration, guarantee=known)
        return dataclasses.replace(result, heuristic=CalibratedHeuristic(heuristic.network, calibration))
    return dataclasses.replace(result, heuristic=dataclasses.replace(heuristic, guarantee=known))


def _certificate_of(path: str | Path) -> dict[str, Any] | None:
    """The bundle's own; None if there is none that is for it."""
    try:
        return read_bundle(path).certificate
    except UndershootError:
        return None


def _before(path: str | Path, place: Path, found: Findings) -> Before:
    """What the violations that were found say of the certificate at this place."""
    if not place.exists():
        return Before.NONE
    issued = _certificate_of(path)
    if issued is None:
        return Before.OUTDATED
    is_beyond = issued["radius"] is not None and found.nearest is not None and found.nearest > issued["radius"]
    return Before.KEPT if is_beyond else Before.REFUTED


def _check_request(ball: int | None, sample: int | None) -> None:
    if ball is not None and sample is not None:
        raise UndershootError("--ball and --sample exclude one another; give one of them")
    if sample is not None and not 1 <= sample <= MOST_STATES:
        raise UndershootError(f"--sample is {sample}; allowed are 1 to {MOST_STATES:,} states")


def _findings_by_proof(heuristic: LearnedHeuristic | CalibratedHeuristic, sample: int, seed: int) -> Findings:
    """Of a sample, where searches say what states cost. Where one is stopped, a value above what it has proven counts as a
    violation: more may be counted than there are, none is left out."""
    puzzle = heuristic.puzzle
    states = uniform(puzzle, sample, stream(seed, Purpose.CHECK))
    results = prove(puzzle, states, os.cpu_count() or 1)
    bounds = np.array([result.lower_bound for result in results], dtype=np.int64)
    stopped = sum(result.optimality.kind is not OptimalityKind.PROVEN for result in results)
    return check_sample(heuristic, states, bounds, puzzle.space.size, stopped)


def _findings(
    heuristic: LearnedHeuristic | CalibratedHeuristic,
    ball: int | None,
    sample: int | None,
    seed: int,
    progress: Progress | None,
) -> Findings:
    puzzle = heuristic.puzzle
    if sample is not None and not is_enumerable(puzzle):
        return _findings_by_proof(heuristic, sample, seed)
    distances = whole_space(puzzle, "A certificate") if ball is None else oracle(puzzle, radius=ball)
    if sample is not None:
        states = uniform(puzzle, sample, stream(seed, Purpose.CHECK))
        true_cost = exact(distances, states).costs.astype(np.int64)
        return check_sample(heuristic, states, true_cost, distances.states)
    whole = 2 * distances.states

    def report(done: int, note: str) -> None:
        if progress is not None:
            progress(done, note, whole)

    return check_every_state(heuristic, distances, os.cpu_count() or 1, report)
