"""undershoot calibrate"""

import contextlib
import dataclasses
import math
import os
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from undershoot.cli.terminal import AsJson, Seed, plain, print_json, progress, stdout
from undershoot.errors import UndershootError

if TYPE_CHECKING:
    from undershoot.bundles.bundle import Bundle
    from undershoot.calibration.catalogue import Wanted
    from undershoot.calibration.populations import Population, Sample
    from undershoot.guarantees import Guarantee, Heuristic
    from undershoot.heuristics.calibrated import CalibratedHeuristic
    from undershoot.heuristics.neural import NeuralHeuristic

BundlePath = Annotated[str, typer.Argument(metavar="BUNDLE", help="A bundle, or the folder of a run.")]
INSTANCES, MOST_EXPANDED = 1000, 20_000
"""Searches of a comparison, and the expansions that each may make."""
OF_TRAINING = ("steps", "seconds", "evaluation_seconds", "steps_per_second")
"""Figures that are as true of a network after it was converted."""


def calibrate(
    context: typer.Context,
    bundle: BundlePath,
    method: Annotated[
        str, typer.Option(help="scramble, max, conformal, grouped, trajectory, exhaustive or exceptions.")
    ] = "exhaustive",
    labels: Annotated[str | None, typer.Option(metavar="exact|scramble|lower", help="What is known of the states.")] = None,
    population: Annotated[
        str, typer.Option(metavar="uniform|scrambles|expanded", help="What states are drawn from.")
    ] = "uniform",
    depths: Annotated[
        str | None, typer.Option(help="Of scrambles: 10, 1..10 or 2,4; 1..10 if not given, as far as the puzzle has them.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="The wanted rate of violations.")] = 0.05,
    confidence: Annotated[float, typer.Option(help="In that rate; 0 (conformal, trajectory): on average over draws.")] = 0.95,
    n: Annotated[int, typer.Option("--n", help="Labels to fit to.")] = 10_000,
    listed: Annotated[float, typer.Option(help="exceptions: the share of all states that may be listed.")] = 0.01,
    ball: Annotated[int | None, typer.Option(metavar="R", help="exhaustive: only states within R of the goal.")] = None,
    rounding: Annotated[str, typer.Option(metavar="none|integer|parity", help="How values are rounded up.")] = "integer",
    whole_numbers: Annotated[
        bool,
        typer.Option("--whole-numbers", help="First convert the network: values are then equal on all devices."),
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write a bundle there and leave the given one alone.")] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Try all methods, change nothing.")] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Move a network down until something is known about it, and write that into its bundle."""
    from undershoot import trust
    from undershoot.bundles.bundle import CERTIFICATE
    from undershoot.bundles.names import bundle_folder
    from undershoot.bundles.reading import read_bundle
    from undershoot.calibration.catalogue import Wanted
    from undershoot.calibration.catalogue import calibrate as fit
    from undershoot.calibration.populations import LabelSource, Population
    from undershoot.experiments.instances import parse_depths
    from undershoot.guarantees import Rounding
    from undershoot.heuristics.calibrated import CalibratedHeuristic
    from undershoot.kernels.scrambles import deepest
    from undershoot.trust import Passed

    given = [name for name in context.params if _was_given(context, name)]
    _check_options(given, method, population, compare)
    found = trained = read_bundle(bundle, with_calibration=False)
    usual = tuple(range(1, 1 + deepest(trained.puzzle.table, 10)))
    wanted = Wanted(
        alpha,
        None if confidence == 0 else confidence,
        n,
        _one_of(Population, population, "--population"),
        None if labels is None else _one_of(LabelSource, labels, "--labels"),
        usual if depths is None else tuple(parse_depths(depths)),
        _one_of(Rounding, rounding, "--rounding"),
        listed,
        ball,
        seed,
        os.cpu_count() or 1,
    )
    folder = _place(bundle_folder(bundle), out)
    if whole_numbers:
        found = _in_whole_numbers(trained, seed)
    if out is not None:
        _check_out(out, found)
    kept = _place_of_floats(folder, trained) if whole_numbers and out is None and not compare else None
    if compare:
        _compare(found, wanted, as_json)
        return
    calibration = fit(found.raw, method, wanted)
    calibrated = CalibratedHeuristic(found.raw, calibration)
    figures = _figures(found, calibrated, wanted)
    was_certified = (folder / CERTIFICATE).exists()
    if kept is not None and not kept.exists():
        trained.save(kept)
    written = dataclasses.replace(found, calibration=calibration, folder=None)
    written.save(folder)
    trust.record(Passed.CALIBRATION, written.digest)
    try:
        drawing = _draw(found, calibrated, folder)
    except OSError as error:  # the bundle is written; its picture is not worth losing the rest for
        print(f"undershoot: the landscape was not drawn: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        drawing = None
    document = {
        "puzzle": found.puzzle.name,
        "method": method,
        "t": None if calibration.has_several_margins else _or_none(calibration.margin),
        "group_margins": [_or_none(m) for m in calibration.group_margins] or None,
        "level_margins": [_or_none(m) for m in calibration.level_margins] or None,
        "guarantee": str(calibration.guarantee),
        "alpha": calibration.guarantee.violation_rate,
        "confidence": calibration.guarantee.confidence,
        "n": calibration.labels,
        "listed": len(calibration.exceptions),
        **figures,
        "landscape": None if drawing is None else str(drawing),
        "bundle": str(folder),
        "kept": None if kept is None else str(kept),
    }
    if as_json:
        print_json(document)
        return
    console = stdout()
    t = f"{calibration.margin:+.4f}"
    if calibration.has_several_margins:
        t = "one a group" if calibration.group_margins else "one a level"
    source = f"from {calibration.labels:,} labels ({calibration.population})"
    console.print(plain(f"{found.puzzle.name}, {method}: t = {t}, {source}"))
    if len(calibration.exceptions):
        console.print(f"listed and looked up: {len(calibration.exceptions):,} of all states")
    console.print(plain(calibration.guarantee.sentence))
    console.print(
        f"mean h {figures['mean_before']:.3f} before, {figures['mean_after']:.3f} after; above the {figures['label']} on "
        f"{figures['violation_rate']:.3%} of {figures['tested']:,} fresh states ({figures['tested_on']})"
    )
    if was_certified:
        console.print("The certificate that was there was for the old calibration, and is gone: certify again.")
    console.print(plain(f"heuristic: {folder}"), soft_wrap=True)
    if kept is not None:
        console.print(plain(f"the network in floats, as it was trained, is kept: {kept}"), soft_wrap=True)
    if drawing is not None:
        console.print(plain(f"landscape: {drawing}"), soft_wrap=True)


def _or_none(margin: float) -> float | None:
    """JSON knows no infinity."""
    return margin if math.isfinite(margin) else None


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _check_options(given: list[str], method: str, population: str, compare: bool) -> None:
    """Refuse options that would not be read, rather than let somebody believe that they were."""
    from undershoot.calibration.catalogue import READS, check_method

    check_method(method)
    if compare:
        for name, why in (
            ("method", "it tries all methods"),
            ("out", "it writes no bundle"),
            ("ball", "it measures on the whole space"),
        ):
            if name in given:
                raise UndershootError(f"--{name} was given with --compare, but {why}; leave one of the two out")
    for name in sorted(set().union(*READS.values()).intersection(given)):
        if not compare and name not in READS[method]:
            reads = ", ".join(f"--{option}" for option in sorted(READS[method]))
            others = ", ".join(other for other in READS if name in READS[other])
            raise UndershootError(
                f"--{name} was given, but `{method}` does not go by it, only by {reads}; "
                f"leave it out, or choose a --method that does: {others}"
            )
    if "depths" in given and population != "scrambles" and method != "scramble" and not compare:
        raise UndershootError(
            f"--depths was given, but states are drawn from the population {population}, which has none; "
            "leave it out, or use --population scrambles"
        )


def _place(folder: Path, out: Path | None) -> Path:
    """Where the calibrated bundle is to be written."""
    from undershoot.bundles.bundle import check_replaceable
    from undershoot.files import check_writable

    if out is not None and folder.resolve() in (out.resolve(), *out.resolve().parents):
        raise UndershootError(f"--out is {out}, in the bundle {folder} itself; choose another place, or leave --out out")
    place = out or folder
    check_replaceable(place)
    check_writable(place, as_folder=True)
    return place.resolve() if place.name in ("", "..") else place


def _check_out(out: Path, bundle: "Bundle") -> None:
    """Refuse to replace another network: only a new calibration of the same one may take its place."""
    from undershoot.bundles.bundle import CONFIG
    from undershoot.bundles.reading import read_bundle

    if (out / CONFIG).exists() and read_bundle(out, with_calibration=False).weights_digest != bundle.weights_digest:
        raise UndershootError(f"--out is {out}, where another network is; choose another place, or remove that one")


def _place_of_floats(folder: Path, bundle: "Bundle") -> Path:
    """Where a network is kept whose bundle is about to hold whole numbers instead: beside it."""
    from undershoot.bundles.reading import read_bundle

    kept = folder.with_name(f"{folder.name}-float")
    if kept.exists() and read_bundle(kept, with_calibration=False).weights_digest != bundle.weights_digest:
        raise UndershootError(
            f"the network in floats would be kept as {kept}, but another one is there; move that away, or write the new "
            "bundle elsewhere with --out"
        )
    return kept


def _in_whole_numbers(bundle: "Bundle", seed: int) -> "Bundle":
    """With the network converted; states of both kinds set the range of its activations."""
    import numpy as np

    from undershoot.errors import NotAvailable
    from undershoot.heuristics.neural import Network
    from undershoot.heuristics.whole_numbers import to_whole_numbers
    from undershoot.kernels.scrambles import deepest, scrambles_up_to
    from undershoot.kernels.streams import Purpose, stream

    if not isinstance(bundle.network, Network):
        raise UndershootError(f"the network in {bundle.name} is one of whole numbers already; leave --whole-numbers out")
    table = bundle.puzzle.table
    seed = stream(seed, Purpose.CONVERSION)  # none of the states that a margin is fitted to
    states = scrambles_up_to(table, 10_000, deepest(table, 30), seed).states
    with contextlib.suppress(NotAvailable):  # then scrambles alone
        states = np.concatenate([states, bundle.puzzle.sample(10_000, seed)])
    network = to_whole_numbers(bundle.network, bundle.raw.encoding, states)
    of_training = {name: bundle.figures[name] for name in OF_TRAINING if name in bundle.figures}
    return dataclasses.replace(bundle, network=network, figures=of_training)


def _one_of(kind: Any, text: str, option: str) -> Any:
    if text not in list(kind):
        raise UndershootError(f'{option} is "{text}"; allowed are {", ".join(kind)}')
    return kind(text)


def _figures(bundle: "Bundle", calibrated: "CalibratedHeuristic", wanted: "Wanted") -> dict[str, Any]:
    """On fresh draws, independent of those that were fitted to."""
    from undershoot.calibration.populations import Population

    population = Population.SCRAMBLES if calibrated.calibration.method == "scramble" else wanted.population
    sample, label = _fresh(bundle, population, wanted)
    after = calibrated(sample.states)
    return {
        "mean_before": float(bundle.raw(sample.states).mean()),
        "mean_after": float(after.mean()),
        "violation_rate": float((after > sample.labels.costs).mean()),
        "tested": len(sample.states),
        "tested_on": sample.population,
        "label": label,
    }


def _fresh(bundle: "Bundle", population: "Population", wanted: "Wanted") -> "tuple[Sample, str]":
    """States and what their labels are called: true costs of the population if they can be had, scrambles if it cannot."""
    from undershoot.calibration.populations import LabelSource, Population, draw
    from undershoot.errors import NotAvailable, SpaceTooLarge
    from undershoot.kernels.streams import Purpose, stream

    kinds = ((LabelSource.EXACT, 10_000, "true cost"), (LabelSource.LOWER, 1_000, "lower bound of the cost"))
    reason: UndershootError | None = None
    for drawn_from, (source, count, label) in product((population, Population.SCRAMBLES), kinds):
        try:
            return draw(bundle.puzzle, drawn_from, source, count, stream(wanted.seed, Purpose.TEST), wanted.depths), label
        except (NotAvailable, SpaceTooLarge) as error:
            reason = error
    raise UndershootError(f"there are no fresh states to test on: {reason}")


def _draw(bundle: "Bundle", calibrated: "CalibratedHeuristic", folder: Path) -> Path | None:
    """The landscape beside the bundle, where true costs are known."""
    from undershoot.calibration.populations import whole_space
    from undershoot.errors import NotAvailable
    from undershoot.experiments.figures import landscapes
    from undershoot.heuristics.analytic import base
    from undershoot.heuristics.survey import survey

    try:
        distances = whole_space(bundle.puzzle, "the landscape")
    except NotAvailable:
        return None
    drawn: dict[str, Heuristic] = {"network": bundle.raw, calibrated.calibration.method: calibrated, "h0": base(bundle.puzzle)}
    curves: dict[str, list[tuple[float, float, float]]] = {}
    with progress("drawing the landscape", len(drawn)) as report:
        for name, heuristic in drawn.items():
            report(len(curves), name)
            by_cost = survey(heuristic, distances, os.cpu_count() or 1).by_cost
            curves[name] = [(c, mean, spread) for c, (count, mean, spread) in enumerate(by_cost.tolist()) if count]
    path = folder.parent / f"{folder.name}-landscape.png"
    landscapes({f"{bundle.puzzle.name}: h by true cost, all {distances.states:,} states": curves}, path)
    return path


def _claim(guarantee: "Guarantee") -> str:
    """A guarantee in a few words."""
    from undershoot.guarantees import Standing, Subject, at_least, at_most

    if guarantee.standing is not Standing.SAMPLED:
        return "proven" if guarantee.standing is Standing.PROVEN else "nothing"
    what = "solutions" if guarantee.subject is Subject.SOLUTIONS else "states a group" if guarantee.groups else "states"
    sure = "on average" if guarantee.confidence is None else f"{at_least(guarantee.confidence)} sure"
    return f"at most {at_most(100 * guarantee.violation_rate)} % of {what}, {sure}"


def _compare(bundle: "Bundle", wanted: "Wanted", as_json: bool) -> None:
    """All methods on one network, each with its true violation rate and the work of A*."""
    from undershoot.calibration.catalogue import METHODS, READS
    from undershoot.calibration.catalogue import calibrate as fit
    from undershoot.calibration.populations import uniform, whole_space
    from undershoot.heuristics.calibrated import CalibratedHeuristic
    from undershoot.heuristics.survey import survey
    from undershoot.kernels.streams import Purpose, stream
    from undershoot.search.astar import solve_batch
    from undershoot.search.options import SearchOptions

    distances = whole_space(bundle.puzzle, "--compare")
    starts = uniform(bundle.puzzle, INSTANCES, stream(wanted.seed, Purpose.COMPARISON))
    true_cost = distances.distance(starts)
    rows: list[dict[str, Any]] = []
    options = SearchOptions(max_expanded=MOST_EXPANDED)
    with progress(f"calibrating {bundle.puzzle.name}", len(METHODS) + 1) as report:
        for number, method in enumerate(("none", *METHODS)):
            report(number, method)
            row: dict[str, Any] = {"method": method}
            rows.append(row)
            calibrated: NeuralHeuristic | CalibratedHeuristic = bundle.raw
            calibration = None
            if method != "none":
                try:
                    labels = wanted.labels if "labels" in READS[method] else None
                    calibration = fit(bundle.raw, method, dataclasses.replace(wanted, labels=labels))
                except UndershootError as error:
                    row["error"] = str(error)
                    continue
                calibrated = CalibratedHeuristic(bundle.raw, calibration)
            whole = survey(calibrated, distances, wanted.threads)
            results = solve_batch(bundle.puzzle, starts, calibrated, options, threads=wanted.threads).results
            solved = [(r.cost, int(c)) for r, c in zip(results, true_cost, strict=True) if r.cost is not None]
            row |= {
                "t": None if calibration is None or calibration.has_several_margins else _or_none(calibration.margin),
                "listed": 0 if calibration is None else len(calibration.exceptions),
                "guarantee": str(calibrated.guarantee),
                "claim": _claim(calibrated.guarantee),
                "mean_h": whole.mean_h,
                "violations": whole.overestimates,
                "violation_rate": whole.overestimates / whole.states,
                "unsolved": len(results) - len(solved),
                "solve_rate": len(solved) / len(results),
                "mean_expanded": sum(r.expanded for r in results) / len(results),
                "suboptimal": sum(cost > true for cost, true in solved),
            }
    if as_json:
        print_json({"puzzle": bundle.puzzle.name, "states": distances.states, "instances": INSTANCES, "methods": rows})
        return
    from rich.table import Table

    space = f"{distances.states:,} states, mean true cost {distances.mean:.3f}"
    title = f"{bundle.puzzle.name}: {space}; {INSTANCES:,} searches of at most {MOST_EXPANDED:,} expansions"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1))
    for name in ("method", "t", "mean h", "violations", "expanded", "unsolved", "suboptimal", "known"):
        table.add_column(name, justify="left" if name in ("method", "known") else "right")
    for row in rows:
        if "error" in row:
            table.add_row(row["method"], *[""] * 6, plain(row["error"]))
            continue
        table.add_row(
            row["method"],
            "" if row["t"] is None else f"{row['t']:+.3f}",
            f"{row['mean_h']:.3f}",
            f"{row['violations']:,}",
            f"{row['mean_expanded']:,.0f}",
            f"{row['unsolved']:,}",
            f"{row['suboptimal']:,}",
            plain(row["claim"] + (f", {row['listed']:,} states listed" if row["listed"] else "")),
        )
    stdout().print(table)
