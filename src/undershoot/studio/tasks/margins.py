"""Margins: the distribution of h - h* over every state, for one margin after another, and the calibrators beside them."""

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from undershoot import trust
from undershoot.arrays import F32, I64, AnyArray, States
from undershoot.bundles.reading import read_bundle
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import METHODS, calibrate
from undershoot.calibration.evidence import score
from undershoot.calibration.populations import uniform, whole_space
from undershoot.errors import NotAvailable, UndershootError
from undershoot.guarantees import NO_GUARANTEE, LabelKind, Labels
from undershoot.heuristics.calibrated import FLOAT_MARGIN, CalibratedHeuristic, Calibration
from undershoot.heuristics.neural import NeuralHeuristic, evaluate
from undershoot.heuristics.survey import Survey
from undershoot.kernels.streams import Purpose, stream
from undershoot.oracles.distance_table import DistanceTable
from undershoot.search.options import SearchOptions
from undershoot.search.solving import solve_many
from undershoot.studio.tasks import Tell
from undershoot.workflows.calibration import margins_in_json
from undershoot.workflows.methods import in_a_few_words

KEPT = 2 * 2**30
"""Bytes that the answers of a network on every state may take."""
BLOCK = 1 << 17
"""States that are looked at together."""
POINTS, POINTS_OF_LARGE, LARGE = 60, 24, 500_000
"""Margins on the axis, about; fewer where there are more states than `LARGE`."""
MEASURED, INSTANCES, MOST_EXPANDED = 9, 100, 5000
"""Margins at which A* is tried, on so many states, with so many expansions each."""
LABELS = 2000
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Answers:
    """What a network says of every state, which is kept; states are made anew, a block at a time, whenever they are needed."""

    network: NeuralHeuristic
    distances: DistanceTable
    raw: list[F32]
    """float32[B] or [B, K] for each block of `BLOCK` states, in the order of the table."""
    scores: AnyArray
    """float64[N]; see `calibration.evidence`."""
    tell: Tell

    def by_block(self, what: str, do: Callable[[F32, States, F32], Found]) -> Iterator[Found]:
        """What `do` makes of the answers, the states and the true costs of each block, in order."""
        true_costs = self.distances.true_costs(np.float32)

        def one(number: int) -> Found:
            rows = slice(number * BLOCK, (number + 1) * BLOCK)
            costs = true_costs[rows]
            return do(self.raw[number], self.distances.states_of_rows(rows.start, rows.start + len(costs)), costs)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for number, found in enumerate(pool.map(one, range(len(self.raw)))):
                self.tell({"text": what, "done": number, "of": len(self.raw)})
                yield found

    def survey(self, what: str, heuristic: NeuralHeuristic | CalibratedHeuristic) -> Survey:
        """The heuristic, which is this network or made of it, against the true cost of every state."""
        values = self.by_block(what, lambda raw, states, _: heuristic.from_raw(raw, states))
        return Survey.of(np.concatenate(list(values)), self.distances)


def answers(network: NeuralHeuristic, purpose: str, tell: Tell) -> Answers:
    """Ask a network about every state; refused where its answers would not fit."""
    states = network.puzzle.space.size
    size = states * max(1, network.family.levels) * 4
    if size > KEPT:
        raise NotAvailable(
            f"{network.puzzle.name} has {states:,} states; what the network says of them takes {size / 2**20:,.0f} MB, and "
            f"margins are drawn up to {KEPT / 2**20:,.0f} MB"
        )
    threads = os.cpu_count() or 1
    tell({"text": "true costs of every state"})
    distances = whole_space(network.puzzle, purpose)
    true_costs = distances.true_costs(np.float32)
    raw, scores = [], np.empty(distances.states)
    for start in range(0, distances.states, BLOCK):
        tell({"text": "the network on every state", "done": start, "of": distances.states})
        stop = min(start + BLOCK, distances.states)
        raw.append(evaluate(network.raw, distances.states_of_rows(start, stop), threads))
        scores[start:stop] = score(network.family, raw[-1], Labels(LabelKind.EXACT, true_costs[start:stop]))
    return Answers(network, distances, raw, scores, tell)


def margins(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """For each margin: violations, mean h, the histogram of h - h*, and at some of them the work of A*.

    Events hold what is found so far, as soon as only searches are missing.
    """
    bundle = read_bundle(arguments["bundle"], with_calibration=False)
    network = bundle.raw
    every = answers(network, "The distribution", tell)
    distances = every.distances
    grid = margin_grid(every.scores, POINTS if distances.states <= LARGE else POINTS_OF_LARGE)
    counts, lowest = _differences(every, grid)
    above = np.arange(counts.shape[1]) + lowest
    rows = [
        {
            "margin": margin,
            "violations": int(of_margin[above > 0].sum()),
            "mean_h": distances.mean + float(of_margin @ above / distances.states),
            "histogram": of_margin.tolist(),
        }
        for margin, of_margin in zip(grid, counts, strict=True)
    ]
    found = {
        "grid": rows,
        "start": int(np.argmin(np.abs(np.array(grid)))),
        "edges": [float(value) - 0.5 for value in (*above, above[-1] + 1)],
        "states": distances.states,
        "mean_true": distances.mean,
        "instances": INSTANCES,
    }
    _add_searches(rows, network, distances, lambda event: tell({**event, "found": found}))
    return found


def _differences(every: Answers, grid: list[float]) -> tuple[I64, int]:
    """int64[M, W]: for each margin, on how many states h - h* is `lowest`, one more, and so on; h is whole, rounded up."""
    lowest = 1 - len(every.distances.histogram)
    heuristics = [lowered(every.network, margin) for margin in grid]

    def count(raw: F32, states: States, costs: F32) -> list[I64]:
        return [np.bincount((h.from_raw(raw, states) - costs).astype(np.int64) - lowest) for h in heuristics]

    total = np.zeros((len(grid), 2 - lowest), dtype=np.int64)
    for block in every.by_block(f"{len(grid)} margins on every state", count):
        missing = max(len(counts) for counts in block) - total.shape[1]
        total = np.pad(total, ((0, 0), (0, max(0, missing))))
        for row, counts in zip(total, block, strict=True):
            row[: len(counts)] += counts
    first = int(np.flatnonzero(total.any(axis=0))[0])
    return total[:, first:], lowest + first


def lowered(network: NeuralHeuristic, margin: float) -> CalibratedHeuristic:
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


def _add_searches(rows: list[dict[str, Any]], network: NeuralHeuristic, distances: DistanceTable, tell: Tell) -> None:
    """What A* takes, at some of the margins: those that it was asked for, and the ends."""
    for row in rows:
        row["expanded"] = row["suboptimal"] = None
    chosen = sorted({round(k * (len(rows) - 1) / (MEASURED - 1)) for k in range(MEASURED)})
    starts = uniform(network.puzzle, INSTANCES, stream(0, Purpose.COMPARISON))
    true_costs = distances.distance(starts)
    for number, place in enumerate(chosen):
        tell({"text": f"A* with margin {rows[place]['margin']:g}", "done": number, "of": len(chosen)})
        rows[place] |= searched(lowered(network, rows[place]["margin"]), starts, true_costs)


def searched(heuristic: NeuralHeuristic | CalibratedHeuristic, starts: States, true_costs: AnyArray) -> dict[str, Any]:
    """The mean of the expansions, stopped searches included, how many were stopped, and how many solutions are not optimal."""
    results = solve_many(heuristic.puzzle, starts, heuristic, SearchOptions(max_expanded=MOST_EXPANDED))
    return {
        "expanded": sum(result.expanded for result in results) / len(results),
        "stopped": sum(result.status.is_limit for result in results),
        "most_expanded": MOST_EXPANDED,
        "solved": sum(result.cost is not None for result in results),
        "suboptimal": sum(r.cost is not None and r.cost > int(true) for r, true in zip(results, true_costs, strict=True)),
    }


def calibrators(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """The network as it is, and by every method: what it claims, what is true of it, and what A* then takes."""
    bundle = read_bundle(arguments["bundle"], with_calibration=False)
    network = bundle.raw
    rows: list[dict[str, Any]] = []
    every = answers(network, "Comparing methods", lambda event: tell({**event, "rows": rows}))
    seed = trust.private_seed(0, bundle.network_digest)
    wanted = replace(Wanted(), n=LABELS, threads=os.cpu_count() or 1, seed=seed)
    starts = uniform(network.puzzle, INSTANCES, stream(0, Purpose.COMPARISON))
    true_costs = every.distances.distance(starts)
    for number, method in enumerate(("none", *METHODS)):
        tell({"text": f"fitting {method}", "rows": rows, "done": number, "of": 1 + len(METHODS)})
        try:
            heuristic = (
                network if method == "none" else CalibratedHeuristic(network, calibrate(network, method, wanted, every.scores))
            )
        except UndershootError as error:
            rows.append({"method": method, "error": str(error)})
            continue
        over = every.survey(f"{method} on every state", heuristic)
        rows.append(
            {
                "method": method,
                "margins": _margins_of(heuristic),
                "claim": in_a_few_words(heuristic.guarantee),
                "violations": over.overestimates,
                "mean_h": over.mean_h,
                **searched(heuristic, starts, true_costs),
            }
        )
    return {"rows": rows}


def _margins_of(heuristic: NeuralHeuristic | CalibratedHeuristic) -> list[float]:
    """One, or one for each group or level; those without a bound are left out."""
    if not isinstance(heuristic, CalibratedHeuristic):
        return []
    known = margins_in_json(heuristic.calibration)
    several = known["group_margins"] or known["level_margins"] or [known["t"]]
    return [margin for margin in several if margin is not None]
