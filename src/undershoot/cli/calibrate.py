"""undershoot calibrate"""

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from undershoot.calibration.catalogue import METHODS
from undershoot.cli.posing import given_options
from undershoot.cli.terminal import AsJson, Seed, plain, print_json, progress, show_table, stdout
from undershoot.errors import UndershootError

if TYPE_CHECKING:
    from undershoot.workflows.calibration import CalibratedBundle
    from undershoot.workflows.methods import MethodComparison

BundlePath = Annotated[str, typer.Argument(metavar="BUNDLE", help="A bundle, or the folder of a run.")]


def calibrate(
    context: typer.Context,
    bundle: BundlePath,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "exhaustive",
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
    from undershoot.bundles.pattern_reading import is_pattern_bundle
    from undershoot.calibration.calibrator import Wanted
    from undershoot.calibration.populations import LabelSource, Population
    from undershoot.experiments.instances import parse_depths
    from undershoot.guarantees import Rounding
    from undershoot.workflows.calibration import calibrate as run
    from undershoot.workflows.methods import compare_methods

    given = given_options(context)
    if is_pattern_bundle(bundle):
        _calibrate_patterns(bundle, method, listed, out, as_json, given)
        return
    _check_options(given, method, population, compare)
    wanted = Wanted(
        alpha,
        None if confidence == 0 else confidence,
        n,
        _one_of(Population, population, "--population"),
        None if labels is None else _one_of(LabelSource, labels, "--labels"),
        None if depths is None else tuple(parse_depths(depths)),
        _one_of(Rounding, rounding, "--rounding"),
        listed,
        ball,
        seed,
        os.cpu_count() or 1,
    )
    with progress(f"calibrating {bundle}") as report:
        if compare:
            compared = compare_methods(bundle, wanted, whole_numbers, report)
        else:
            calibrated = run(bundle, method, wanted, whole_numbers, out, report)
    if compare:
        _show_comparison(compared, as_json)
    else:
        _show(calibrated, as_json)


def _calibrate_patterns(bundle: str, method: str, listed: float, out: Path | None, as_json: bool, given: set[str]) -> None:
    from undershoot.workflows.pattern_bundles import calibrate_patterns

    allowed = {"bundle", "method", "out", "as_json"} | ({"listed"} if method == "exceptions" else set())
    for name in sorted(given - allowed):
        raise UndershootError(
            f"--{name.replace('_', '-')} was given, but networks on patterns are calibrated on every arrangement; they go by "
            "--method exhaustive, or --method exceptions with --listed, and by --out"
        )
    with progress(f"calibrating {bundle}") as report:
        calibrated, folder = calibrate_patterns(bundle, method, listed if method == "exceptions" else None, out, report)
    count = sum(len(network.listed) for network in calibrated.networks)
    if as_json:
        thresholds = [list(network.thresholds) for network in calibrated.networks]
        about = {"puzzle": calibrated.puzzle.name, "set": calibrated.set_name, "method": method, "listed": count}
        print_json({**about, "thresholds": thresholds, "bytes": calibrated.learned_bytes, "bundle": str(folder)})
        return
    console = stdout()
    console.print(f"{calibrated.puzzle.name}, {calibrated.set_name}, {method}: thresholds fitted on every arrangement")
    if count:
        console.print(f"listed and looked up: {count:,} arrangements")
    console.print(f"bytes learned, thresholds and lists included: {calibrated.learned_bytes:,}")
    console.print(f"Nothing is known of it before it is certified: undershoot certify {folder}", soft_wrap=True)


def _show(calibrated: "CalibratedBundle", as_json: bool) -> None:
    from undershoot.workflows.calibration import margins_in_json

    calibration, trial = calibrated.calibration, calibrated.trial
    if as_json:
        print_json(
            {
                "puzzle": calibrated.bundle.puzzle.name,
                "method": calibration.method,
                **margins_in_json(calibration),
                "guarantee": str(calibration.guarantee),
                "alpha": calibration.guarantee.violation_rate,
                "confidence": calibration.guarantee.confidence,
                "n": calibration.labels,
                "listed": len(calibration.exceptions),
                **asdict(trial),
                "landscape": None if calibrated.landscape is None else str(calibrated.landscape),
                "bundle": str(calibrated.folder),
                "kept": None if calibrated.kept is None else str(calibrated.kept),
            }
        )
        return
    console = stdout()
    t = f"{calibration.margin:+.4f}"
    if calibration.has_several_margins:
        t = "one a group" if calibration.group_margins else "one a level"
    source = f"from {calibration.labels:,} labels ({calibration.population})"
    console.print(f"{calibrated.bundle.puzzle.name}, {calibration.method}: t = {t}, {source}")
    if len(calibration.exceptions):
        console.print(f"listed and looked up: {len(calibration.exceptions):,} of all states")
    console.print(calibration.guarantee.sentence)
    console.print(
        f"mean h {trial.mean_before:.3f} before, {trial.mean_after:.3f} after; above the {trial.label} on "
        f"{trial.violation_rate:.3%} of {trial.tested:,} fresh states ({trial.tested_on})"
    )
    if calibrated.was_certified:
        console.print("The certificate that was there was for the old calibration, and is gone: certify again.")
    console.print(f"heuristic: {calibrated.folder}", soft_wrap=True)
    if calibrated.kept is not None:
        console.print(f"the network in floats, as it was trained, is kept: {calibrated.kept}", soft_wrap=True)
    if calibrated.landscape is not None:
        console.print(f"landscape: {calibrated.landscape}", soft_wrap=True)


def _check_options(given: set[str], method: str, population: str, compare: bool) -> None:
    """Refuse options that would not be read, rather than let somebody believe that they were."""
    from undershoot.calibration.catalogue import calibrator

    reads = {name: calibrator(name).reads for name in METHODS}
    goes_by = calibrator(method).reads
    if compare:
        for name, why in (
            ("method", "it tries all methods"),
            ("out", "it writes no bundle"),
            ("ball", "it measures on the whole space"),
        ):
            if name in given:
                raise UndershootError(f"--{name} was given with --compare, but {why}; leave one of the two out")
    for name in sorted(frozenset().union(*reads.values()).intersection(given)):
        if not compare and name not in goes_by:
            options = ", ".join(f"--{option}" for option in sorted(goes_by))
            others = ", ".join(other for other in METHODS if name in reads[other])
            raise UndershootError(
                f"--{name} was given, but `{method}` does not go by it, only by {options}; "
                f"leave it out, or choose a --method that does: {others}"
            )
    drawn_from = calibrator(method).tried_on or population
    if "depths" in given and drawn_from != "scrambles" and not compare:
        raise UndershootError(
            f"--depths was given, but states are drawn from the population {population}, which has none; "
            "leave it out, or use --population scrambles"
        )


def _one_of(kind: Any, text: str, option: str) -> Any:
    if text not in list(kind):
        raise UndershootError(f'{option} is "{text}"; allowed are {", ".join(kind)}')
    return kind(text)


def _show_comparison(compared: "MethodComparison", as_json: bool) -> None:
    from undershoot.workflows.methods import INSTANCES, MOST_EXPANDED

    puzzle, distances = compared.puzzle, compared.distances
    if as_json:
        about = {"puzzle": puzzle.name, "states": distances.states, "instances": INSTANCES}
        print_json({**about, "methods": compared.rows})
        return
    space = f"{distances.states:,} states, mean true cost {distances.mean:.3f}"
    title = f"{puzzle.name}: {space}; {INSTANCES:,} searches of at most {MOST_EXPANDED:,} expansions"
    rows = []
    for row in compared.rows:
        if "error" in row:
            rows.append([row["method"], *[""] * 6, row["error"]])
            continue
        listed = f", {row['listed']:,} states listed" if row["listed"] else ""
        rows.append(
            [
                row["method"],
                "" if row["t"] is None else f"{row['t']:+.3f}",
                f"{row['mean_h']:.3f}",
                f"{row['violations']:,}",
                f"{row['mean_expanded']:,.0f}",
                f"{row['unsolved']:,}",
                f"{row['suboptimal']:,}",
                row["claim"] + listed,
            ]
        )
    headers = ("method", "t", "mean h", "violations", "expanded", "unsolved", "suboptimal", "known")
    show_table(headers, [[plain(cell) for cell in row] for row in rows], title, left=(0, 7), prose=(7,))
