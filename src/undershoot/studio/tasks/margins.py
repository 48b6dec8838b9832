"""Margins: the distribution of h - h* over every state, for one margin after another, and the calibrators beside them."""

import math
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from undershoot import trust
from undershoot.arrays import AnyArray, States
from undershoot.bundles.reading import read_bundle
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import METHODS, calibrate
from undershoot.calibration.evidence import scores_of_space
from undershoot.calibration.populations import uniform, whole_space
from undershoot.errors import NotAvailable, UndershootError
from undershoot.guarantees import NO_GUARANTEE
from undershoot.heuristics.calibrated import FLOAT_MARGIN, CalibratedHeuristic, Calibration
from undershoot.heuristics.neural import LearnedHeuristic
from undershoot.heuristics.survey import survey, values_of_space
from undershoot.kernels.streams import Purpose, stream
from undershoot.oracles.distance_table import DistanceTable
from undershoot.search.options import SearchOptions
from undershoot.search.solving import solve_many
from undershoot.studio.tasks import Tell
from undershoot.workflows.calibration import margins_in_json
from undershoot.workflows.methods import in_a_few_words

MOST_STATES = 4_000_000
POINTS, POINTS_OF_LARGE, LARGE = 60, 24, 500_000
"""Margins on the axis, about; fewer where there are more states than `LARGE`."""
MEASURED, INSTANCES, MOST_EXPANDED = 9, 100, 5000
"""Margins at which A* is tried, on so many states, with so many expansions each."""
LABELS = 2000


def margins(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """For each margin: violations, mean h, the histogram of h - h*, and at some of them the work of A*."""
    bundle = read_bundle(arguments["bundle"], with_calibration=False)
    network = bundle.raw
    if network.puzzle.space.size > MOST_STATES:
        raise NotAvailable(
            f"{network.puzzle.name} has {network.puzzle.space.size:,} states; margins are drawn up to {MOST_STATES:,}"
        )
    threads = os.cpu_count() or 1
    tell({"text": "true costs of every state"})
    distances = whole_space(network.puzzle, "The distribution")
    tell({"text": "the network on every state"})
    scores = scores_of_space(network, distances, threads)
    raw = values_of_space(network.raw, distances, threads)
    states = distances.states_of_rows(0, distances.states)
    true_costs = distances.true_costs(np.float32)
    grid = margin_grid(scores, POINTS if distances.states <= LARGE else POINTS_OF_LARGE)
    rows, differences = [], []
    for number, margin in enumerate(grid):
        tell({"text": f"margin {margin:g}", "done": number, "of": len(grid)})
        values = lowered(network, margin).from_raw(raw, states)
        above = values - true_costs
        differences.append(np.unique(above.astype(np.int64), return_counts=True))
        rows.append({"margin": margin, "violations": int((above > 0).sum()), "mean_h": float(values.mean(dtype=np.float64))})
    edges = _add_histograms(rows, differences)
    _add_searches(rows, network, distances, tell)
    return {
        "bundle": bundle.name,
        "puzzle": network.puzzle.name,
        "grid": rows,
        "start": int(np.argmin(np.abs(np.array(grid)))),
        "edges": edges,
        "states": distances.states,
        "mean_true": distances.mean,
        "instances": INSTANCES,
    }


def lowered(network: LearnedHeuristic, margin: float) -> CalibratedHeuristic:
    """The network with one margin, of which nothing is claimed."""
    eta = 0.0 if network.is_exact else FLOAT_MARGIN
    return CalibratedHeuristic(network, Calibration("by hand", NO_GUARANTEE, margin, arithmetic_margin=eta))


def margin_grid(scores: AnyArray, points: int) -> list[float]:
    """About so many round numbers, 0 among them, from where a third of the states are too high to where none is."""
    known = scores[np.isfinite(scores)]
    low, high = float(np.quantile(known, 0.7)), float(known.max())
    low, high = min(low, 0.0), max(high, low + 0.1, 0.1)
    rough = (high - low) / points
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    first, last = math.floor(low / step), math.ceil(high / step) + 2
    return [round(number * step, 6) for number in range(first, last + 1)]


def _add_histograms(rows: list[dict[str, Any]], differences: list[tuple[AnyArray, AnyArray]]) -> list[float]:
    """Counts of h - h* for each row, which are whole; returns the edges of the bins, half way between whole numbers."""
    low = min(int(values.min()) for values, _ in differences)
    high = max(int(values.max()) for values, _ in differences)
    for row, (values, counts) in zip(rows, differences, strict=True):
        histogram = np.zeros(max(high, 1) - low + 1, dtype=np.int64)
        histogram[values - low] = counts
        row["histogram"] = histogram.tolist()
    return [low - 0.5 + number for number in range(max(high, 1) - low + 2)]


def _add_searches(rows: list[dict[str, Any]], network: LearnedHeuristic, distances: DistanceTable, tell: Tell) -> None:
    """What A* takes, at some of the margins: those that it was asked for, and the ends."""
    for row in rows:
        row["expanded"] = row["suboptimal"] = None
    chosen = sorted({round(k * (len(rows) - 1) / (MEASURED - 1)) for k in range(MEASURED)})
    starts = uniform(network.puzzle, INSTANCES, stream(0, Purpose.COMPARISON))
    true_costs = distances.distance(starts)
    for number, place in enumerate(chosen):
        tell({"text": f"A* with margin {rows[place]['margin']:g}", "done": number, "of": len(chosen)})
        rows[place] |= searched(lowered(network, rows[place]["margin"]), starts, true_costs)


def searched(heuristic: LearnedHeuristic | CalibratedHeuristic, starts: States, true_costs: AnyArray) -> dict[str, Any]:
    """The mean of the expansions, stopped searches included, and how many solutions are not optimal."""
    results = solve_many(heuristic.puzzle, starts, heuristic, SearchOptions(max_expanded=MOST_EXPANDED))
    return {
        "expanded": sum(result.expanded for result in results) / len(results),
        "suboptimal": sum(r.cost is not None and r.cost > int(true) for r, true in zip(results, true_costs, strict=True)),
    }


def calibrators(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """The network as it is, and by every method: what it claims, what is true of it, and what A* then takes."""
    bundle = read_bundle(arguments["bundle"], with_calibration=False)
    network, threads = bundle.raw, os.cpu_count() or 1
    distances = whole_space(network.puzzle, "Comparing methods")
    if distances.states > MOST_STATES:
        raise NotAvailable(
            f"{distances.states:,} states are too many to compare methods here: undershoot calibrate --compare does"
        )
    wanted = replace(Wanted(), n=LABELS, threads=threads, seed=trust.private_seed(0, bundle.network_digest))
    scores = scores_of_space(network, distances, threads)
    starts = uniform(network.puzzle, INSTANCES, stream(0, Purpose.COMPARISON))
    true_costs = distances.distance(starts)
    rows: list[dict[str, Any]] = []
    for method in ("none", *METHODS):
        tell({"text": f"fitting {method}", "rows": rows, "done": len(rows), "of": 1 + len(METHODS)})
        try:
            heuristic = (
                network if method == "none" else CalibratedHeuristic(network, calibrate(network, method, wanted, scores))
            )
        except UndershootError as error:
            rows.append({"method": method, "error": str(error)})
            continue
        over = survey(heuristic, distances, threads)
        rows.append(
            {
                "method": method,
                "t": margins_in_json(heuristic.calibration)["t"] if isinstance(heuristic, CalibratedHeuristic) else None,
                "claim": in_a_few_words(heuristic.guarantee),
                "violations": over.overestimates,
                "mean_h": over.mean_h,
                **searched(heuristic, starts, true_costs),
            }
        )
    return {"rows": rows, "states": distances.states}
