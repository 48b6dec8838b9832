"""All methods of calibration on one network, side by side."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from undershoot import trust
from undershoot.bundles.reading import read_bundle
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import METHODS, calibrator
from undershoot.calibration.populations import uniform, whole_space
from undershoot.errors import UndershootError
from undershoot.guarantees import Guarantee, Standing, Subject, at_least, at_most
from undershoot.heuristics.calibrated import CalibratedHeuristic
from undershoot.heuristics.neural import LearnedHeuristic
from undershoot.heuristics.survey import survey
from undershoot.heuristics.wrapped import WrappedHeuristic
from undershoot.kernels.streams import Purpose, stream
from undershoot.oracles.distance_table import DistanceTable
from undershoot.puzzles.problem import Problem
from undershoot.search.astar import astar_batch
from undershoot.search.options import SearchOptions
from undershoot.workflows.calibration import Progress, fresh_seed, margins_in_json
from undershoot.workflows.conversion import in_whole_numbers

INSTANCES, MOST_EXPANDED = 1000, 20_000
"""Searches, and the expansions that each may make."""


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """A row for each method, first the network as it is."""

    puzzle: Problem
    distances: DistanceTable
    rows: list[dict[str, Any]]
    """method, and either error, why it could not be fitted, or t, listed, guarantee, claim (in a few words), and over all
    states mean_h, violations, violation_rate, and over the searches unsolved, solve_rate, mean_expanded, suboptimal."""


def compare_methods(
    subject: str | Path | WrappedHeuristic,
    wanted: Wanted | None = None,
    whole_numbers: bool = False,
    progress: Progress | None = None,
) -> MethodComparison:
    """Each with its true rate of violations and the work of A*; nothing is written. progress: one step a method.

    subject: the path of a bundle, or what `us.wrap` made.

    Examples:
        >>> compared = us.compare_methods("lights-out-3x3-paper", us.Wanted(n=500))
        >>> [row["method"] for row in compared.rows if row["claim"] == "proven"]
        ['exhaustive', 'exceptions']
    """
    wanted = wanted or Wanted(threads=os.cpu_count() or 1)
    network: LearnedHeuristic
    if isinstance(subject, WrappedHeuristic):
        if whole_numbers:
            raise UndershootError(
                f"the heuristic {subject.name} is a function and cannot be converted; leave whole_numbers out"
            )
        network, seed = subject, fresh_seed(wanted.seed)
    else:
        bundle = read_bundle(subject, with_calibration=False)
        bundle = in_whole_numbers(bundle, wanted.seed) if whole_numbers else bundle
        network, seed = bundle.raw, trust.private_seed(wanted.seed, f"{bundle.network_digest} compared")
    wanted = dataclasses.replace(wanted, seed=seed)
    distances = whole_space(network.puzzle, "--compare")
    rows = []
    for number, method in enumerate(("none", *METHODS)):
        if progress is not None:
            progress(number, method, 1 + len(METHODS))
        try:
            heuristic = _fitted(network, method, wanted)
        except UndershootError as error:
            rows.append({"method": method, "error": str(error)})
            continue
        rows.append({"method": method, **_measured(heuristic, distances, wanted)})
    return MethodComparison(network.puzzle, distances, rows)


def _fitted(network: LearnedHeuristic, method: str, wanted: Wanted) -> LearnedHeuristic | CalibratedHeuristic:
    if method == "none":
        return network
    fit = calibrator(method)
    labels = wanted.labels if "labels" in fit.reads else None
    return CalibratedHeuristic(network, fit(network, dataclasses.replace(wanted, labels=labels)))


def _measured(heuristic: LearnedHeuristic | CalibratedHeuristic, distances: DistanceTable, wanted: Wanted) -> dict[str, Any]:
    calibration = heuristic.calibration if isinstance(heuristic, CalibratedHeuristic) else None
    over = survey(heuristic, distances, wanted.threads)
    starts = uniform(heuristic.puzzle, INSTANCES, stream(wanted.seed, Purpose.COMPARISON))
    options = SearchOptions(max_expanded=MOST_EXPANDED)
    results = astar_batch(heuristic.puzzle, starts, heuristic, options, threads=wanted.threads).results
    solved = [(r.cost, int(c)) for r, c in zip(results, distances.distance(starts), strict=True) if r.cost is not None]
    return {
        "t": None if calibration is None else margins_in_json(calibration)["t"],
        "listed": 0 if calibration is None else len(calibration.exceptions),
        "guarantee": str(heuristic.guarantee),
        "claim": in_a_few_words(heuristic.guarantee),
        "mean_h": over.mean_h,
        "violations": over.overestimates,
        "violation_rate": over.overestimates / over.states,
        "unsolved": len(results) - len(solved),
        "solve_rate": len(solved) / len(results),
        "mean_expanded": sum(r.expanded for r in results) / len(results),
        "suboptimal": sum(cost > true for cost, true in solved),
    }


def in_a_few_words(guarantee: Guarantee) -> str:
    """For a column of a table."""
    if guarantee.standing is not Standing.SAMPLED:
        return guarantee.label if guarantee.standing is Standing.PROVEN else "nothing"
    what = "solutions" if guarantee.subject is Subject.SOLUTIONS else "states a group" if guarantee.groups else "states"
    sure = "on average" if guarantee.confidence is None else f"{at_least(guarantee.confidence)} sure"
    return f"at most {at_most(100 * guarantee.violation_rate)} % of {what}, {sure}"
