"""A bundle as people read it: its card, its certificate, what is known of it here; and the check that establishes it."""

import json
from collections.abc import Callable
from typing import Any

from undershoot.bundles.bundle import CARD, CERTIFICATE, CONFIG
from undershoot.bundles.documents import read_bytes, read_signed
from undershoot.bundles.loading import load
from undershoot.bundles.names import bundle_folder
from undershoot.studio.tasks import Tell
from undershoot.studio.tasks.subjects import in_words
from undershoot.workflows.certification import check as check_bundle


def bundle(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """What stands in its files, and what counts of it."""
    folder = bundle_folder(arguments["bundle"])
    config = read_signed(folder / CONFIG)
    issued = json.loads(read_bytes(folder / CERTIFICATE)) if (folder / CERTIFICATE).exists() else None
    return {
        "puzzle": config["puzzle"],
        "widths": config["networks"][0]["widths"],
        "card": read_bytes(folder / CARD).decode(errors="replace") if (folder / CARD).exists() else "",
        "certificate": issued,
        **in_words(load(arguments["bundle"]).guarantee),
    }


def check(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """Every state and every move, now."""
    done = check_bundle(arguments["bundle"], progress=lambda done, note, of: tell({"text": note, "done": done, "of": of}))
    found = done.findings
    return {
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
