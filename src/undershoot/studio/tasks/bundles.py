"""A bundle as people read it: its card, its certificate, what is known of it here; and the check that establishes it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from undershoot.bundles.bundle import CARD, CERTIFICATE, CONFIG
from undershoot.bundles.documents import read_bytes, read_signed
from undershoot.bundles.loading import load
from undershoot.bundles.names import bundle_folder
from undershoot.bundles.pattern_reading import is_pattern_bundle
from undershoot.errors import UndershootError
from undershoot.studio.tasks import Tell
from undershoot.studio.tasks.subjects import in_words
from undershoot.workflows.certification import check as check_bundle
from undershoot.workflows.pattern_bundles import CheckedPatterns, check_patterns


def bundle(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """What stands in its files, and what counts of it."""
    folder = bundle_folder(arguments["bundle"])
    config = read_signed(folder / CONFIG)
    issued = _certificate(folder / CERTIFICATE) if (folder / CERTIFICATE).exists() else None
    return {
        "widths": [network["widths"] for network in config["networks"]],
        "card": read_bytes(folder / CARD).decode(errors="replace") if (folder / CARD).exists() else "",
        "certificate": issued,
        "has_margins": not is_pattern_bundle(arguments["bundle"]),
        **in_words(load(arguments["bundle"]).guarantee),
    }


def _certificate(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(read_bytes(path)))
    except (ValueError, TypeError, RecursionError) as error:
        raise UndershootError(
            f"{path.name} of this bundle is damaged ({error}); make it anew with undershoot certify, or remove it"
        ) from error


def check(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """Every state and every move, or every arrangement of patterns, now."""

    def report(done: int, note: str, of: int | None) -> None:
        tell({"text": note, "done": done, "of": of})

    if is_pattern_bundle(arguments["bundle"]):
        return _of_patterns(check_patterns(arguments["bundle"], report))
    done = check_bundle(arguments["bundle"], progress=report)
    found = done.findings
    return {
        "what": "states",
        "passed": done.passed,
        "is_proven": done.is_proven,
        "states": found.states,
        "checked": found.checked,
        "violations": found.violations,
        "edges": found.edges,
        "inconsistent_edges": found.inconsistent_edges,
        "mean_h": found.mean_h,
        "mean_true": found.mean_true,
        "differing": list(done.differing),
        **in_words(done.heuristic.guarantee),
    }


def _of_patterns(done: CheckedPatterns) -> dict[str, Any]:
    """Sums of the means, since what patterns say is added."""
    checked = sum(found.arrangements for found in done.findings)
    return {
        "what": "arrangements of its patterns",
        "passed": done.certificate is not None,
        "is_proven": done.certificate is not None,
        "states": checked,
        "checked": checked,
        "violations": done.violations,
        "edges": None,
        "inconsistent_edges": None,
        "mean_h": sum(found.mean for found in done.findings),
        "mean_true": sum(found.mean_cost for found in done.findings),
        "differing": list(done.differing),
        **in_words(done.bundle.guarantee),
    }
