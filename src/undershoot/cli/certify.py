"""undershoot certify, undershoot check"""

import dataclasses
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from undershoot.cli.calibrate import BundlePath
from undershoot.cli.terminal import AsJson, Seed, plain, print_json, progress, stdout
from undershoot.errors import UndershootError

if TYPE_CHECKING:
    from undershoot.bundles.bundle import Bundle
    from undershoot.certification import Findings

SampleSize = Annotated[int | None, typer.Option(metavar="N", help="Only N uniformly random states; proves nothing.")]
CONFIDENCE = 0.99


def certify(
    bundle: BundlePath,
    ball: Annotated[int | None, typer.Option(metavar="R", help="Only states within R of the goal.")] = None,
    sample: SampleSize = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Check a heuristic on every state and every move, and write a certificate. Exit code 1 if it overestimates."""
    from undershoot.bundles.bundle import CERTIFICATE, check_replaceable
    from undershoot.bundles.names import bundle_folder
    from undershoot.bundles.reading import read_bundle
    from undershoot.certification import certificate, check_ball
    from undershoot.files import check_writable

    _exclusive(ball, sample)
    found = read_bundle(bundle, with_certificate=False)
    if found.calibration is None:
        raise UndershootError(f"{bundle} is not calibrated; do that first: undershoot calibrate {bundle} --method exhaustive")
    if ball is not None:
        check_ball(found, ball, _certificate(bundle))
    folder = bundle_folder(bundle)
    if sample is None:
        check_replaceable(folder)
        check_writable(folder, as_folder=True)
    findings = _findings(found, ball, sample, seed)
    path, is_withdrawn = folder / CERTIFICATE, False
    if sample is None and not findings.violations and not findings.marginal:
        dataclasses.replace(found, certificate=certificate(found, findings)).save(folder)
    elif path.exists() and (findings.violations or findings.marginal):
        # Whatever it said is refuted.
        found.save(folder)
        is_withdrawn = True
    _show(found, findings, sample, as_json, str(path) if path.exists() else None)
    if is_withdrawn:
        print(f"undershoot: the certificate that was there is false, and was taken away: {path}", file=sys.stderr)
    if findings.violations or findings.marginal:
        raise typer.Exit(1)


def _certificate(bundle: str) -> dict[str, Any] | None:
    """The bundle's own; None if there is none that is for it."""
    from undershoot.bundles.reading import read_bundle

    try:
        return read_bundle(bundle).certificate
    except UndershootError:
        return None


def check(
    bundle: BundlePath,
    sample: SampleSize = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Verify a bundle: its checksums, and every state anew against its certificate. Exit code 1 if that does not hold.

    What passes is remembered: from then on searches with the bundle may say "proven" on this machine.
    """
    from undershoot.bundles.reading import read_bundle
    from undershoot.certification import confirm

    _exclusive(None, sample)
    found = read_bundle(bundle)
    if found.certificate is None:
        raise UndershootError(f"{bundle} has no certificate; make one: undershoot certify {bundle}")
    if sample is not None and found.certificate["radius"] is not None:
        raise UndershootError(f"the certificate of {bundle} is for a ball around the goal; leave --sample out")
    findings = _findings(found, found.certificate["radius"], sample, seed)
    differing = confirm(found, findings) if sample is None else []
    _show(found, findings, sample, as_json, str(bundle), differing)
    if findings.violations or findings.marginal or differing:
        raise typer.Exit(1)


def _exclusive(ball: int | None, sample: int | None) -> None:
    if ball is not None and sample is not None:
        raise UndershootError("--ball and --sample exclude one another; give one of them")
    if sample is not None and sample < 1:
        raise UndershootError(f"--sample is {sample}; at least 1 state is needed")


def _findings(bundle: "Bundle", ball: int | None, sample: int | None, seed: int) -> "Findings":
    import numpy as np

    from undershoot.calibration.populations import exact, uniform, whole_space
    from undershoot.certification import check_every_state, check_sample
    from undershoot.kernels.streams import Purpose, stream
    from undershoot.oracles.cache import oracle

    distances = whole_space(bundle.puzzle, "A certificate") if ball is None else oracle(bundle.puzzle, radius=ball)
    if sample is not None:
        states = uniform(bundle.puzzle, sample, stream(seed, Purpose.CHECK))
        true_cost = exact(distances, states).costs.astype(np.int64)
        return check_sample(bundle.heuristic, states, true_cost, distances.states)
    with progress(f"checking {bundle.puzzle.name}", 2 * distances.states) as report:
        return check_every_state(bundle.heuristic, distances, os.cpu_count() or 1, report)


def _show(
    bundle: "Bundle",
    findings: "Findings",
    sample: int | None,
    as_json: bool,
    path: str | None,
    differing: list[str] | None = None,
) -> None:
    from undershoot.certification import sampled_guarantee
    from undershoot.heuristics.calibrated import FLOAT_MARGIN

    proven = sample is None and not findings.violations and not findings.marginal and not differing
    document: dict[str, Any] = {"puzzle": bundle.puzzle.name, **findings.figures, "certificate": path if proven else None}
    if sample is not None:
        document["guarantee"] = str(sampled_guarantee(findings, CONFIDENCE))
    if as_json:
        print_json({**document, "differing": differing or []})
        return
    console = stdout()
    where = "" if findings.radius is None else f" within {findings.radius} of the goal"
    console.print(
        f"{bundle.puzzle.name}: {findings.checked:,} of {findings.states:,} states{where} checked, "
        f"{findings.violations:,} above their true cost, h - h* at most {findings.supremum:.4f}"
    )
    console.print(f"mean h {findings.mean_h:.4f}, mean true cost {findings.mean_true:.4f}")
    for k in range(len(findings.examples)):
        state = bundle.puzzle.format(findings.examples[k : k + 1])
        console.print(plain(f"  h = {findings.example_values[k]:g}, true cost {findings.example_costs[k]}: {state}"))
    for difference in differing or []:
        console.print(plain(f"  {difference}"))
    if sample is not None:
        console.print(plain(f"Only a sample: it {document['guarantee']}. That proves nothing about any one state."))
        return
    console.print(f"{findings.edges:,} moves checked, {findings.inconsistent_edges:,} of them inconsistent")
    if proven:
        console.print(f"Proven: it never overestimates{where}. Certificate: {path}", soft_wrap=True)
    elif not findings.violations and findings.marginal:
        console.print(
            f"No certificate: {findings.marginal:,} states would be above their true cost if sums came out "
            f"{FLOAT_MARGIN / 2:g} higher, as they may elsewhere. Use --method exhaustive, or --whole-numbers"
        )
    elif findings.violations:
        console.print("No certificate: it overestimates. Calibrate it: undershoot calibrate BUNDLE --method exhaustive")
    else:
        console.print("The certificate does not describe this bundle; certify it again: undershoot certify BUNDLE")
