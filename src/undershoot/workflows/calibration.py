"""Calibrating: fit, try on fresh states, and of a bundle write and draw."""

import dataclasses
import os
import secrets
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, overload

from scipy import stats

from undershoot import trust
from undershoot.bundles.bundle import CERTIFICATE, CONFIG, Bundle, check_replaceable
from undershoot.bundles.names import bundle_folder
from undershoot.bundles.reading import read_bundle
from undershoot.calibration.calibrator import Calibrator, Wanted
from undershoot.calibration.catalogue import calibrator
from undershoot.calibration.populations import LabelSource, Population, Sample, draw, is_enumerable, whole_space
from undershoot.errors import NotAvailable, SpaceTooLarge, UndershootError
from undershoot.experiments.figures import landscapes
from undershoot.files import check_writable, contents_digest
from undershoot.guarantees import Guarantee, Heuristic, LabelKind, Subject
from undershoot.heuristics.analytic import base
from undershoot.heuristics.calibrated import FLOAT_MARGIN, CalibratedHeuristic, Calibration
from undershoot.heuristics.survey import survey
from undershoot.heuristics.wrapped import NO_DIGEST, WrappedHeuristic
from undershoot.kernels.streams import Purpose, stream
from undershoot.puzzles.problem import Problem
from undershoot.trust import Passed
from undershoot.workflows.conversion import in_whole_numbers

REFUTED = 1e-9
"""The probability at which a trial counts as contrary to a rate."""
Progress = Callable[[int, str, int | None], None]
"""Called with how much is done, what is being done, and how much there is in all."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A calibrated heuristic on fresh states, independent of those that were fitted to."""

    mean_before: float
    """The mean of what is moved down, as a heuristic."""
    mean_after: float
    violation_rate: float
    """The share of states with h above the label."""
    tested: int
    tested_on: str
    label: str
    """What states were compared with: their true cost, or a lower bound of it."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """What a calibration came to."""

    heuristic: CalibratedHeuristic
    trial: Trial

    @property
    def calibration(self) -> Calibration:
        """How far down, how it is rounded, and what is known then."""
        return self.heuristic.calibration


@dataclass(frozen=True, eq=False)
class CalibratedBundle(Calibrated):
    """Likewise of a bundle, and where it is."""

    bundle: Bundle
    folder: Path
    landscape: Path | None
    """The picture of h by true cost, where true costs are known."""
    kept: Path | None
    """Where the network is kept in floats, if it was converted in its place."""
    was_certified: bool
    """Whether there was a certificate, which is gone."""


@overload
def calibrate(
    subject: str | Path,
    method: str = "exhaustive",
    wanted: Wanted | None = None,
    whole_numbers: bool = False,
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> CalibratedBundle: ...
@overload
def calibrate(subject: WrappedHeuristic, method: str = "exhaustive", wanted: Wanted | None = None) -> Calibrated: ...
def calibrate(
    subject: str | Path | WrappedHeuristic,
    method: str = "exhaustive",
    wanted: Wanted | None = None,
    whole_numbers: bool = False,
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> Calibrated:
    """Move a network down until something is known about it, and write that into its bundle; or a function of `us.wrap`.

    subject: the path of a bundle, or what `us.wrap` made. whole_numbers: first convert the network, whose values are then
    equal on all devices. out: write there, and leave the given bundle alone. That it was fitted here is recorded; see `trust`.
    What is drawn for a seed depends on the user's key, so that nobody can have made the network for just these states.

    A function cannot be saved: what is known of it is known of the heuristic that is returned, in this process.

    Examples:
        >>> from pathlib import Path
        >>> done = us.calibrate("lights-out-3x3-paper", "exhaustive", out=Path("mine"))
        >>> print(done.calibration.guarantee.sentence)
        It never overestimates.
        >>> us.load("mine").name
        'mine, exhaustive'
    """
    fit, wanted = calibrator(method), wanted or Wanted(threads=os.cpu_count() or 1)
    if isinstance(subject, WrappedHeuristic):
        if whole_numbers or out is not None:
            reason = "converted; leave whole_numbers out" if whole_numbers else f"saved, so leave `out` out: {NO_DIGEST}"
            raise UndershootError(f"the heuristic {subject.name} is a function and cannot be {reason}")
        return _calibrate_function(subject, fit, wanted)
    out = None if out is None else Path(out)
    folder = _place(bundle_folder(subject), out)
    before = contents_digest(folder)
    trained = read_bundle(subject, with_calibration=False)
    bundle = in_whole_numbers(trained, wanted.seed) if whole_numbers else trained
    wanted = dataclasses.replace(wanted, seed=trust.private_seed(wanted.seed, bundle.network_digest))
    if out is not None:
        _check_out(out, bundle)
    kept = _place_of_floats(folder, trained) if whole_numbers and out is None else None
    heuristic = CalibratedHeuristic(bundle.raw, fit(bundle.raw, wanted))
    trial = try_out(heuristic, fit.tried_on or wanted.population, wanted)
    was_certified = (folder / CERTIFICATE).exists()
    if kept is not None and not kept.exists():
        trained.save(kept)
    written = dataclasses.replace(bundle, calibration=heuristic.calibration, folder=None)
    written.save(folder, before)
    trust.record(Passed.CALIBRATION, written.digest)
    landscape = None
    try:
        landscape = draw_landscape(bundle, heuristic, folder, progress)
    except OSError as error:  # the bundle is written; its picture is not worth losing the rest for
        warnings.warn(f"the landscape was not drawn: cannot write {error.filename}: {error.strerror}", stacklevel=2)
    return CalibratedBundle(heuristic, trial, written, folder, landscape, kept, was_certified)


def _calibrate_function(function: WrappedHeuristic, fit: Calibrator, wanted: Wanted) -> Calibrated:
    wanted = dataclasses.replace(wanted, seed=fresh_seed(wanted.seed))
    function.ask_again(wanted.seed, FLOAT_MARGIN / 2)
    heuristic = CalibratedHeuristic(function, fit(function, wanted))
    done = Calibrated(heuristic, try_out(heuristic, fit.tried_on or wanted.population, wanted))
    _check_trial(heuristic.calibration.guarantee, done.trial)
    return done


def fresh_seed(seed: int) -> int:
    """For what is drawn to judge a function: another one each time. It has no checksum, and may have been made for what another
    one of its name was asked."""
    return trust.private_seed(seed, secrets.token_hex(16))


def _check_trial(guarantee: Guarantee, trial: Trial) -> None:
    """Refuse a rate that fresh states of the same population refute: a function may change with what it is asked."""
    rate = guarantee.violation_rate
    if guarantee.confidence is None or guarantee.subject is not Subject.STATES or rate is None or trial.violation_rate is None:
        return
    over = round(trial.violation_rate * trial.tested)
    if trial.tested_on == guarantee.population and stats.binom.sf(over - 1, trial.tested, rate) < REFUTED:
        raise UndershootError(
            f"the function overestimates {over:,} of {trial.tested:,} fresh states, which a rate of at most {rate:.3g} all but "
            "rules out: it depends on what it was asked before, so nothing is known of it"
        )


def _place(folder: Path, out: Path | None) -> Path:
    """Where the calibrated bundle is to be written."""
    if out is not None and folder.resolve() in (out.resolve(), *out.resolve().parents):
        raise UndershootError(f"--out is {out}, in the bundle {folder} itself; choose another place, or leave --out out")
    place = out or folder
    check_replaceable(place)
    check_writable(place, as_folder=True)
    return place.resolve() if place.name in ("", "..") else place


def _check_out(out: Path, bundle: Bundle) -> None:
    """Refuse to replace another network: only a new calibration of the same one may take its place."""
    if (out / CONFIG).exists() and read_bundle(out, with_calibration=False).weights_digest != bundle.weights_digest:
        raise UndershootError(f"--out is {out}, where another network is; choose another place, or remove that one")


def _place_of_floats(folder: Path, bundle: Bundle) -> Path:
    """Where a network is kept whose bundle is about to hold whole numbers instead: beside it."""
    kept = folder.with_name(f"{folder.name}-float")
    if kept.is_symlink():
        raise UndershootError(
            f"the network in floats would be kept as {kept}, but that is a link; remove it, or write the new bundle elsewhere "
            "with --out"
        )
    if kept.exists() and read_bundle(kept, with_calibration=False).weights_digest != bundle.weights_digest:
        raise UndershootError(
            f"the network in floats would be kept as {kept}, but another one is there; move that away, or write the new "
            "bundle elsewhere with --out"
        )
    return kept


def try_out(heuristic: CalibratedHeuristic, population: Population, wanted: Wanted) -> Trial:
    """On fresh draws of a population."""
    sample, label = _fresh(heuristic.puzzle, population, wanted)
    after = heuristic(sample.states)
    return Trial(
        mean_before=float(heuristic.network(sample.states).mean()),
        mean_after=float(after.mean()),
        violation_rate=float((after > sample.labels.costs).mean()),
        tested=len(sample.states),
        tested_on=sample.population,
        label=label,
    )


def _fresh(puzzle: Problem, population: Population, wanted: Wanted) -> tuple[Sample, str]:
    """States and what their labels are called: true costs of the population if they can be had, scrambles if it cannot."""
    enough = 10_000 if is_enumerable(puzzle) else 200  # which searches have to prove
    kinds = ((LabelSource.EXACT, enough, "true cost"), (LabelSource.LOWER, 1_000, "lower bound of the cost"))
    reason: UndershootError | None = None
    for drawn_from, (source, count, label) in product((population, Population.SCRAMBLES), kinds):
        try:
            seed = stream(wanted.seed, Purpose.TEST)
            sample = draw(puzzle, drawn_from, source, count, seed, wanted.depths, threads=wanted.threads)
            return sample, label if sample.labels.kind is LabelKind.EXACT else kinds[1][2]
        except (NotAvailable, SpaceTooLarge) as error:
            reason = error
    raise UndershootError(f"there are no fresh states to test on: {reason}")


def draw_landscape(
    bundle: Bundle, heuristic: CalibratedHeuristic, folder: Path, progress: Progress | None = None
) -> Path | None:
    """h by true cost as a picture beside the bundle; None where true costs are not known."""
    try:
        distances = whole_space(bundle.puzzle, "the landscape")
    except NotAvailable:
        return None
    drawn: dict[str, Heuristic] = {"network": bundle.raw, heuristic.calibration.method: heuristic, "h0": base(bundle.puzzle)}
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for name, curve in drawn.items():
        if progress is not None:
            progress(len(curves), f"landscape of {name}", len(drawn))
        by_cost = survey(curve, distances, os.cpu_count() or 1).by_cost
        curves[name] = [(cost, mean, spread) for cost, (count, mean, spread) in enumerate(by_cost.tolist()) if count]
    path = folder.parent / f"{folder.name}-landscape.png"
    landscapes({f"{bundle.puzzle.name}: h by true cost, all {distances.states:,} states": curves}, path)
    return path


def margins_in_json(calibration: Calibration) -> dict[str, Any]:
    """Margins as programs read them: t, or one for each group or level; JSON knows no infinity."""
    several = calibration.has_several_margins
    return {
        "t": None if several else _or_none(calibration.margin),
        "group_margins": [_or_none(margin) for margin in calibration.group_margins] or None,
        "level_margins": [_or_none(margin) for margin in calibration.level_margins] or None,
    }


def _or_none(margin: float) -> float | None:
    return margin if abs(margin) != float("inf") else None
