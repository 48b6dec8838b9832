"""How each kind of item is done. What comes out depends on the item alone, but for the columns TIMED."""

import os
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from undershoot.arrays import F32, AnyArray, States
from undershoot.bundles import Bundle, read_bundle
from undershoot.bundles import heuristic as named
from undershoot.calibration.catalogue import Wanted, calibrate
from undershoot.experiments.instances import Instances, scrambled_instances, uniform_instances
from undershoot.experiments.items import Files
from undershoot.experiments.store import RECORDS, table_bytes
from undershoot.guarantees import Heuristic, Rounding
from undershoot.heuristics.calibrated import CalibratedHeuristic, Calibration
from undershoot.heuristics.families import scores
from undershoot.heuristics.neural import NeuralHeuristic
from undershoot.kernels.cpu import successors
from undershoot.kernels.plan import forward_plan
from undershoot.kernels.scrambles import derived_seed
from undershoot.oracles.cache import oracle
from undershoot.oracles.distance_table import UNKNOWN, DistanceTable
from undershoot.puzzles.catalogue import puzzle as by_name
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.astar import solve_batch
from undershoot.search.options import SearchOptions, Ties

SECONDS = "seconds.txt"
TIMED = ("seconds", "host")
"""Columns that differ from run to run."""
CHUNK = 1 << 16
EDGE_STATES = 20_000
"""States whose moves are looked at for consistency."""
Inputs = dict[str, Files]


def do(kind: str, spec: dict[str, Any], inputs: Inputs) -> Files:
    """Do an item; inputs: the files of those it needs. How long it took is one more file."""
    began = time.perf_counter()
    files = KINDS[kind](spec, inputs)
    return {**files, SECONDS: f"{time.perf_counter() - began:.3f}".encode()}


def do_training(spec: dict[str, Any], inputs: Inputs) -> Files:
    """Train a network: a bundle, and how long it took."""
    from undershoot.training.loop import train
    from undershoot.training.recipes import recipe

    puzzle = by_name(spec["puzzle"])
    plan = replace(recipe(puzzle, spec["recipe"]), steps=spec["steps"], seed=spec["seed"])
    trained = train(puzzle, plan)
    position = trained.position
    row = {
        **{key: spec[key] for key in ("puzzle", "recipe", "seed", "steps")},
        "depth": position.depth,
        "solve_rate": position.solve_rate,
        "seconds": position.seconds + position.evaluation_seconds,
        "host": socket.gethostname(),
    }
    command = f"undershoot train {puzzle.name} --recipe {spec['recipe']} --seed {spec['seed']} --steps {spec['steps']}"
    return {
        **_bundle_files(Bundle(puzzle, trained.network, plan.to_dict(), command=command), "bundle"),
        RECORDS: table_bytes([row]),
    }


def do_space(spec: dict[str, Any], inputs: Inputs) -> Files:
    """A heuristic on every state; a network also as calibrated by each method, as bundles.

    Within a ball, where spec has a radius.
    """
    puzzle, distances = by_name(spec["puzzle"]), _oracle(spec["puzzle"], spec.get("radius"))
    cost = np.repeat(np.arange(len(distances.histogram)), distances.histogram)
    files: Files = {}
    variants: dict[str, tuple[Heuristic, Calibration | None]] = {}
    raw: F32 | None = None
    if "training" not in inputs:
        variants[spec["heuristic"]] = named(puzzle, spec["heuristic"]), None
    else:
        bundle = _bundle(inputs["training"], "bundle")
        variants["raw"] = bundle.raw, None
        raw = _whole(bundle.raw.raw, distances)
        for method in spec["methods"]:
            fitted = calibrate(bundle.raw, method, _wanted(puzzle, spec, method), scores(raw, cost))
            variants[method] = CalibratedHeuristic(bundle.raw, fitted), fitted
            files |= _bundle_files(replace(bundle, calibration=fitted), method)
    rows = []
    for name, (heuristic, calibration) in variants.items():
        values = _whole(heuristic, distances) if raw is None else _values(heuristic, raw, distances)
        edges, inconsistent = _edges(values, distances)
        excess = values[distances.histogram[0] :] - cost[distances.histogram[0] :]
        sums = np.bincount(cost, weights=values)
        squares = np.bincount(cost, weights=values.astype(np.float64) ** 2)
        mean = sums / np.maximum(distances.histogram, 1)
        rows.append(
            {
                "puzzle": puzzle.name,
                "heuristic": spec.get("heuristic", spec.get("recipe")),
                "variant": name,
                "seed": spec.get("seed"),
                "guarantee": str(heuristic.guarantee),
                "t": None if calibration is None or calibration.has_several_margins else calibration.margin,
                "listed": 0 if calibration is None else len(calibration.exceptions),
                "states": distances.states,
                "radius": distances.radius,
                "overestimates": int((values > cost).sum()),
                "supremum": float(excess.max()),
                "mean_h": float(values.mean(dtype=np.float64)),
                "mean_true": distances.mean,
                "edges": edges,
                "inconsistent_edges": inconsistent,
                "mean_by_cost": mean.tolist(),
                "spread_by_cost": np.sqrt(np.maximum(squares / np.maximum(distances.histogram, 1) - mean**2, 0)).tolist(),
            }
        )
    return {**files, RECORDS: table_bytes(rows)}


def do_search(spec: dict[str, Any], inputs: Inputs) -> Files:
    """A slice of an instance set, searched with one heuristic: a record for each instance."""
    puzzle = by_name(spec["puzzle"])
    posed = instances(puzzle, spec["population"])
    rows = slice(spec["start"], spec["stop"])
    states = posed.states[rows]
    heuristic = _guide(puzzle, spec, inputs)
    distances = _oracle(spec["puzzle"], spec.get("radius"))
    options = SearchOptions(weight=spec["weight"], ties=Ties(spec["ties"]), max_expanded=spec["budget"])
    batch = solve_batch(puzzle, states, heuristic, options)
    results, count = batch.results, len(states)
    columns: dict[str, Any] = {
        "puzzle": [puzzle.name] * count,
        "heuristic": [spec["heuristic"]] * count,
        "seed": [spec["seed"]] * count,
        "population": [spec["population"]["name"]] * count,
        "instance": np.arange(spec["start"], spec["start"] + count),
        "depth_walked": depths_of(spec["population"], len(posed.states))[rows],
        "true_cost": distances.distance(states),
        "h": heuristic(states),
        "weight": [spec["weight"]] * count,
        "ties": [spec["ties"]] * count,
        "budget": [spec["budget"]] * count,
        "status": [result.status.value for result in results],
        "cost": [result.cost for result in results],
        "lower_bound": [result.lower_bound for result in results],
        "optimality": [result.optimality.kind.value for result in results],
        **{
            name: [getattr(result, name) for result in results]
            for name in ("expanded", "expanded_below", "generated", "evaluated", "reopened", "overestimates")
        },
        "seconds": [batch.seconds / count] * count,
        "host": [socket.gethostname()] * count,
    }
    return {RECORDS: table_bytes(columns)}


def do_timing(spec: dict[str, Any], inputs: Inputs) -> Files:
    """How long a network takes for one state and for batches; the best of several times."""
    puzzle, network = by_name(spec["puzzle"]), _bundle(inputs["training"], "bundle").raw
    rows = []
    for size in spec["batches"]:
        states = puzzle.sample(size, 0)
        best = float("inf")
        for _ in range(max(3, min(200, 200_000 // size))):
            began = time.perf_counter()
            network(states)
            best = min(best, time.perf_counter() - began)
        rows.append({"puzzle": puzzle.name, "batch": size, "seconds": best, "host": socket.gethostname()})
    return {RECORDS: table_bytes(rows)}


KINDS: dict[str, Callable[[dict[str, Any], Inputs], Files]] = {
    "train": do_training,
    "space": do_space,
    "search": do_search,
    "timing": do_timing,
}


def instances(puzzle: Puzzle, population: dict[str, Any]) -> Instances:
    """The instance set of a description: `depths` and `per_depth`, or `uniform`; and a `seed`."""
    if "uniform" in population:
        return uniform_instances(puzzle, population["uniform"], population["seed"])
    return scrambled_instances(puzzle, population["depths"], population["per_depth"], population["seed"])


def depths_of(population: dict[str, Any], count: int) -> AnyArray:
    """int32[count]: the depth that each instance was scrambled to; 0 for uniform states."""
    if "uniform" in population:
        return np.zeros(count, dtype=np.int32)
    return np.repeat(population["depths"], population["per_depth"]).astype(np.int32)


@lru_cache(maxsize=2)
def _oracle(name: str, radius: int | None) -> DistanceTable:
    return oracle(by_name(name), radius=radius)


def _wanted(puzzle: Puzzle, spec: dict[str, Any], method: str) -> Wanted:
    """The paper rounds nothing; what is ours is rounded as the puzzle allows. No labels of the test sets are used."""
    rounding = Rounding.PARITY if puzzle.has_cost_parity else Rounding.INTEGER
    return Wanted(
        n=spec["calibration_states"],
        depths=tuple(spec["depths"]),
        rounding=Rounding.NONE if method == "scramble" else rounding,
        ball=spec.get("radius") if method == "exhaustive" else None,
        seed=derived_seed(spec["seed"], 11) % 2**31,
    )


def _guide(puzzle: Puzzle, spec: dict[str, Any], inputs: Inputs) -> Heuristic:
    if "training" in inputs:
        return _bundle(inputs["training"], "bundle").raw
    if "space" in inputs:
        return _bundle(inputs["space"], spec["variant"]).heuristic
    return named(puzzle, spec["heuristic"])


def _bundle(files: Files, part: str) -> Bundle:
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            if name.startswith(f"{part}/"):
                (Path(folder) / name[len(part) + 1 :]).write_bytes(data)
        return replace(read_bundle(folder), name="network")


def _bundle_files(bundle: Bundle, part: str) -> Files:
    with tempfile.TemporaryDirectory() as folder:
        bundle.save(Path(folder) / "bundle")
        return {f"{part}/{path.name}": path.read_bytes() for path in sorted((Path(folder) / "bundle").iterdir())}


def _whole(heuristic: Callable[[States], F32], distances: DistanceTable) -> F32:
    """float32[N] over all states of a table."""
    starts = range(0, distances.states, CHUNK)
    return np.concatenate([heuristic(distances.states_of_rows(k, min(k + CHUNK, distances.states))) for k in starts])


def _values(heuristic: Heuristic, raw: F32, distances: DistanceTable) -> F32:
    """float32[N], from what the network says of all states."""
    result = np.empty(distances.states, dtype=np.float32)
    for start in range(0, distances.states, CHUNK):
        stop = min(start + CHUNK, distances.states)
        states = distances.states_of_rows(start, stop)
        if isinstance(heuristic, (CalibratedHeuristic, NeuralHeuristic)):
            result[start:stop] = heuristic.from_raw(raw[start:stop], states)
    return result


def _edges(values: F32, distances: DistanceTable) -> tuple[int, int]:
    """How many moves from a fixed sample of states were looked at, and how many of them are inconsistent."""
    count = min(EDGE_STATES, distances.states)
    rows = np.sort(np.random.default_rng(0).choice(distances.states, count, replace=False))
    states = distances.states_of(rows)
    children, legal = successors(distances.table, states)
    landed, _ = distances.look_up(children[legal])
    known = landed != UNKNOWN
    cost = forward_plan(distances.table).cost[distances.table.contexts_of(states)][legal]
    here = np.repeat(values[rows], legal.sum(axis=1))
    return int(known.sum()), int((here[known] > values[landed[known]] + cost[known] + 1e-4).sum())


def environment() -> dict[str, Any]:
    """The machine and the versions, for the report."""
    import platform
    from importlib.metadata import version

    libraries = ("numpy", "numba", "torch", "scipy", "pyarrow")
    return {
        "host": socket.gethostname(),
        "machine": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
        "undershoot": version("undershoot"),
    }
