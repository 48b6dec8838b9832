"""undershoot certify, undershoot check"""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from undershoot.cli.calibrate import BundlePath
from undershoot.cli.terminal import AsJson, Seed, print_json, progress, rounded_up, stdout
from undershoot.errors import UndershootError

if TYPE_CHECKING:
    from undershoot.workflows.certification import Before, CheckedBundle
    from undershoot.workflows.pattern_bundles import CheckedPatterns

SampleSize = Annotated[int | None, typer.Option(metavar="N", help="Only N uniformly random states; proves nothing.")]
CONFIDENCE = 0.99
"""Of what is said of a sample."""
BEFORE = {
    "refuted": "is false, and was taken away",
    "outdated": "was for something else than the bundle as it is now, and was taken away",
    "kept": "is for a ball around the goal, and stays: what overestimates lies beyond that",
}
"""What became of a certificate, for people."""


def certify(
    bundle: BundlePath,
    ball: Annotated[int | None, typer.Option(metavar="R", help="Only states within R of the goal.")] = None,
    sample: SampleSize = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Check a heuristic on every state and every move, and write a certificate. Exit code 1 if it overestimates."""
    from undershoot.bundles.pattern_reading import is_pattern_bundle
    from undershoot.workflows.certification import certify as run
    from undershoot.workflows.pattern_bundles import certify_patterns

    with progress(f"checking {bundle}") as report:
        if is_pattern_bundle(bundle):
            _refuse_unread(ball=ball, sample=sample, seed=seed or None)
            _show_patterns(certify_patterns(bundle, report), as_json)
            return
        checked = run(bundle, ball, sample, seed, report)
    _show(checked, as_json)


def check(
    bundle: BundlePath,
    sample: SampleSize = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Verify a bundle: its checksums, and every state anew against its certificate. Exit code 1 if that does not hold.

    What passes is remembered: from then on searches with the bundle may say "proven" on this machine.
    """
    from undershoot.bundles.pattern_reading import is_pattern_bundle
    from undershoot.workflows.certification import check as run
    from undershoot.workflows.pattern_bundles import check_patterns

    with progress(f"checking {bundle}") as report:
        if is_pattern_bundle(bundle):
            _refuse_unread(sample=sample, seed=seed or None)
            _show_patterns(check_patterns(bundle, report), as_json)
            return
        checked = run(bundle, sample, seed, report)
    _show(checked, as_json)


def _refuse_unread(**given: int | None) -> None:
    """Options that are for networks of whole states."""
    for option, value in given.items():
        if value is not None:
            raise UndershootError(f"networks on patterns are checked on every arrangement; leave --{option} out")


def _show_patterns(checked: "CheckedPatterns", as_json: bool) -> None:
    from undershoot.workflows.pattern_bundles import first_too_high

    rows = [
        {
            "pieces": name,
            "checked": found.arrangements,
            "violations": found.violations,
            "first_violation": first_too_high(checked.bundle, network, found),
            "mean_h": found.mean,
            "mean_cost": found.mean_cost,
            "listed": len(network.listed),
        }
        for name, found, network in zip(checked.names, checked.findings, checked.bundle.networks, strict=True)
    ]
    proven = checked.certificate is not None
    if as_json:
        document: dict[str, Any] = {"puzzle": checked.bundle.puzzle.name, "set": checked.bundle.set_name, "patterns": rows}
        document["certificate"] = str(checked.certificate) if proven else None
        print_json({**document, "differing": list(checked.differing)})
    else:
        console = stdout()
        for row in rows:
            console.print(
                f"{row['pieces']}: {row['checked']:,} arrangements checked, {row['violations']:,} above their cost; "
                f"mean h {row['mean_h']:.4f}, mean cost {row['mean_cost']:.4f}, {row['listed']:,} listed"
            )
            if row["first_violation"] is not None:
                console.print(f"  the first of them (piece on cell): {row['first_violation']}")
        for difference in checked.differing:
            console.print(f"  {difference}")
        if proven:
            console.print(f"Proven: it never overestimates. Certificate: {checked.certificate}", soft_wrap=True)
        elif checked.violations:
            console.print("No certificate: it overestimates. Calibrate it: undershoot calibrate BUNDLE --method exhaustive")
        else:
            console.print("The certificate does not describe this bundle; certify it again: undershoot certify BUNDLE")
    _tell_of_old(checked.before)
    if not proven:
        raise typer.Exit(1)


def _show(checked: "CheckedBundle", as_json: bool) -> None:
    from undershoot.certification import sampled_guarantee

    guarantee = str(sampled_guarantee(checked.findings, CONFIDENCE)) if checked.is_sample else None
    if as_json:
        document: dict[str, Any] = {"puzzle": checked.bundle.puzzle.name, **checked.findings.figures}
        document["certificate"] = str(checked.certificate) if checked.is_proven else None
        document |= {} if guarantee is None else {"guarantee": guarantee}
        if checked.findings.stopped:  # then the mean is of lower bounds
            document |= {"mean_true": None, "mean_bound": checked.findings.mean_true, "stopped": checked.findings.stopped}
        print_json({**document, "differing": list(checked.differing)})
    else:
        _print(checked, guarantee)
    _tell_of_old(checked.before)
    if not checked.passed:
        raise typer.Exit(1)


def _tell_of_old(before: "Before") -> None:
    """What became of the certificate that was there."""
    if before.value in BEFORE:
        print(f"undershoot: the certificate that was there {BEFORE[before.value]}", file=sys.stderr)


def _print(checked: "CheckedBundle", guarantee: str | None) -> None:
    """For people. guarantee: what a sample says."""
    from undershoot.heuristics.calibrated import FLOAT_MARGIN

    console, findings, puzzle = stdout(), checked.findings, checked.bundle.puzzle
    where = "" if findings.radius is None else f" within {findings.radius} of the goal"
    console.print(
        f"{puzzle.name}: {findings.checked:,} of {findings.states:,} states{where} checked, "
        f"{findings.violations:,} above their {findings.compared_with}, h - h* at most {rounded_up(findings.supremum)}"
    )
    console.print(f"mean h {findings.mean_h:.4f}, mean {findings.compared_with} {findings.mean_true:.4f}")
    for k in range(len(findings.examples)):
        state = puzzle.format(findings.examples[k : k + 1])
        known = "at least" if findings.stopped else "true cost"
        console.print(f"  h = {findings.example_values[k]:g}, {known} {findings.example_costs[k]}: {state}")
    for difference in checked.differing:
        console.print(f"  {difference}")
    if guarantee is not None:
        console.print(f"Only a sample: it {guarantee}. That proves nothing about any one state.")
        return
    console.print(f"{findings.edges or 0:,} moves checked, {findings.inconsistent_edges or 0:,} of them inconsistent")
    if checked.is_proven:
        console.print(f"Proven: it never overestimates{where}. Certificate: {checked.certificate}", soft_wrap=True)
    elif findings.violations:
        console.print("No certificate: it overestimates. Calibrate it: undershoot calibrate BUNDLE --method exhaustive")
    elif findings.marginal:
        console.print(
            f"No certificate: {findings.marginal:,} states would be above their true cost if sums came out "
            f"{FLOAT_MARGIN / 2:g} higher, as they may elsewhere. Use --method exhaustive, or --whole-numbers"
        )
    else:
        console.print("The certificate does not describe this bundle; certify it again: undershoot certify BUNDLE")
