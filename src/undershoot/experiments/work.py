"""How each kind of item is done. What comes out depends on the item alone, but for the columns TIMED."""

import os
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from undershoot.arrays import F32, I64, AnyArray
from undershoot.bundles.bundle import Bundle
from undershoot.bundles.loading import heuristic as named
from undershoot.bundles.reading import read_bundle
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import calibrate
from undershoot.certification import certificate, findings
from undershoot.errors import UndershootError
from undershoot.experiments.instances import Instances, scrambled_instances, uniform_instances
from undershoot.experiments.items import VOUCHED, Files
from undershoot.experiments.store import RECORDS, SECONDS, table_bytes
from undershoot.files import sources_digest
from undershoot.guarantees import Heuristic, Rounding, Standing
from undershoot.heuristics.calibrated import FLOAT_MARGIN, CalibratedHeuristic
from undershoot.heuristics.combined import best_rounding
from undershoot.heuristics.neural import NeuralHeuristic
from undershoot.heuristics.survey import Survey, compare_moves, values_of_space
from undershoot.kernels.cpu import successors
from undershoot.kernels.plan import forward_plan
from undershoot.kernels.scrambles import derived_seed
from undershoot.oracles.cache import oracle
from undershoot.oracles.distance_table import DistanceTable
from undershoot.puzzles.catalogue import puzzle as by_name
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.astar import astar_batch
from undershoot.search.options import SearchOptions, Ties
from undershoot.search.solving import solve

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
    from undershoot.training.recipe import recipe_from

    puzzle, plan = by_name(spec["puzzle"]), recipe_from(spec["settings"], "the recipe")
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
    bundle = Bundle(puzzle, trained.network, plan.to_dict(), {}, command, plan.encoding, plan.canonical)
    return {
        **_bundle_files(bundle, "bundle"),
        RECORDS: table_bytes([row]),
    }


def do_space(spec: dict[str, Any], inputs: Inputs) -> Files:
    """A heuristic on every state; a network also as calibrated by each method, as bundles.

    Within a ball, where spec has a radius.
    """
    puzzle, distances = by_name(spec["puzzle"]), _oracle(spec["puzzle"], spec.get("radius"))
    if "training" not in inputs:
        fixed = named(puzzle, spec["heuristic"])
        row = _space_row(spec, spec["heuristic"], fixed, values_of_space(fixed, distances), distances)
        return {RECORDS: table_bytes([row])}
    bundle = bundle_of(inputs["training"], "bundle")
    if bundle.puzzle.table.fingerprint != puzzle.table.fingerprint:
        raise UndershootError(f"the training of {spec['puzzle']} holds a network for another puzzle, {bundle.puzzle.name}")
    raw = values_of_space(bundle.raw.raw, distances)
    known = bundle.raw.family.scores(raw, distances.true_costs())
    rows = [_space_row(spec, "raw", bundle.raw, _from_raw(bundle.raw, raw, distances), distances)]
    files: Files = {}
    for method in spec["methods"]:
        fitted = calibrate(bundle.raw, method, _wanted(puzzle, spec, method), known)
        heuristic = CalibratedHeuristic(bundle.raw, fitted)
        values = _from_raw(heuristic, raw, distances)
        row = _space_row(spec, method, heuristic, values, distances)
        margin = None if fitted.has_several_margins else fitted.margin
        rows.append({**row, "t": margin, "listed": len(fitted.exceptions)})
        made = replace(bundle, calibration=fitted, folder=None)
        if fitted.guarantee.standing is Standing.PROVEN:
            highest = _from_raw(heuristic, raw + np.float32(FLOAT_MARGIN / 2), distances)
            made = replace(made, certificate=certificate(made, findings(values, highest, distances, None)))
        files |= _bundle_files(made, method)
    return {**files, RECORDS: table_bytes(rows)}


def _space_row(
    spec: dict[str, Any], variant: str, heuristic: Heuristic, values: F32, distances: DistanceTable
) -> dict[str, Any]:
    """The record of a heuristic, by its values on all states."""
    over, (edges, inconsistent) = Survey.of(values, distances), compare_moves(values, distances, _some_rows(distances))
    return {
        "puzzle": spec["puzzle"],
        "heuristic": spec.get("heuristic", spec.get("recipe")),
        "variant": variant,
        "seed": spec.get("seed"),
        "guarantee": str(heuristic.guarantee),
        "standing": heuristic.guarantee.standing.value,
        "t": None,
        "listed": 0,
        "states": over.states,
        "radius": distances.radius,
        "overestimates": over.overestimates,
        "supremum": over.supremum,
        "mean_h": over.mean_h,
        "mean_true": over.mean_true,
        "edges": edges,
        "inconsistent_edges": inconsistent,
        "mean_by_cost": over.by_cost[:, 1].tolist(),
        "spread_by_cost": over.by_cost[:, 2].tolist(),
    }


def do_search(spec: dict[str, Any], inputs: Inputs) -> Files:
    """A slice of an instance set, searched with one heuristic: a record for each instance."""
    puzzle = by_name(spec["puzzle"])
    posed = instances(puzzle, spec["population"])
    rows = slice(spec["start"], spec["stop"])
    states = posed.states[rows]
    heuristic = _heuristic(puzzle, spec, inputs)
    distances = _oracle(spec["puzzle"], spec.get("radius"))
    options = SearchOptions(weight=spec["weight"], ties=Ties(spec["ties"]), max_expanded=spec["budget"])
    batch = astar_batch(puzzle, states, heuristic, options)
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


def do_path(spec: dict[str, Any], inputs: Inputs) -> Files:
    """What heuristics say along an optimal solution of the farthest state: a record for each state and heuristic."""
    puzzle, distances = by_name(spec["puzzle"]), _oracle(spec["puzzle"], None)
    states = [distances.states_of_rows(distances.states - 1, distances.states)]
    while (left := int(distances.distance(states[-1])[0])) > 0:
        children, legal = successors(puzzle.table, states[-1])
        costs = forward_plan(puzzle.table).cost[puzzle.table.contexts_of(states[-1])]
        beyond = np.where(legal[0], distances.distance(children[0]) + costs[0], np.inf)
        states.append(children[:, int(np.flatnonzero(beyond == left)[0])])
    path = np.concatenate(states)
    guides: dict[str, Heuristic] = {name: named(puzzle, name) for name in ("base", "learned")}
    guides |= {"mse": bundle_of(inputs["mse"], "bundle").raw, "raw": bundle_of(inputs["training"], "bundle").raw}
    guides |= {name: bundle_of(inputs["space"], name).heuristic for name in ("scramble", "exhaustive")}
    true_cost = distances.distance(path).tolist()
    rows = [
        {"puzzle": puzzle.name, "heuristic": name, "seed": spec["seed"], "true_cost": cost, "h": value}
        for name, guide in guides.items()
        for cost, value in zip(true_cost, guide(path).tolist(), strict=True)
    ]
    return {RECORDS: table_bytes(rows)}


def do_timing(spec: dict[str, Any], inputs: Inputs) -> Files:
    """How long a network takes for one state and for batches, the best of several times; and for searches one at a time."""
    puzzle, network = by_name(spec["puzzle"]), bundle_of(inputs["training"], "bundle").raw
    rows = []
    for size in spec["batches"]:
        states = puzzle.sample(size, 0)
        times = [_seconds(partial(network, states)) for _ in range(max(3, min(200, 200_000 // size)))]
        rows.append({"puzzle": puzzle.name, "what": "states", "count": size, "seconds": min(times)})
    posed = instances(puzzle, spec["population"]).states
    options = SearchOptions(ties=Ties.SHALLOW, max_expanded=spec["budget"])
    solve(puzzle, posed[:1], network, options)  # compiles
    times = [_seconds(partial(solve, puzzle, state, network, options)) for state in posed[:, None]]
    rows.append({"puzzle": puzzle.name, "what": "search", "count": 1, "seconds": float(np.mean(times))})
    return {RECORDS: table_bytes([{**row, "host": socket.gethostname()} for row in rows])}


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


KINDS: dict[str, Callable[[dict[str, Any], Inputs], Files]] = {
    "train": do_training,
    "space": do_space,
    "search": do_search,
    "path": do_path,
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
    """The paper rounds nothing; what is ours is rounded as the puzzle allows. Samples are drawn apart from the test sets."""
    return Wanted(
        n=spec["calibration_states"],
        depths=tuple(spec["depths"]),
        rounding=Rounding.NONE if method == "scramble" else best_rounding(puzzle),
        ball=spec.get("radius") if method == "exhaustive" else None,
        seed=derived_seed(spec["seed"], 11) % 2**31,
    )


def _heuristic(puzzle: Puzzle, spec: dict[str, Any], inputs: Inputs) -> Heuristic:
    if "training" in inputs:
        return bundle_of(inputs["training"], "bundle").raw
    if "space" in inputs:
        return bundle_of(inputs["space"], spec["variant"]).heuristic
    return named(puzzle, spec["heuristic"])


def bundle_of(files: Files, part: str) -> Bundle:
    """The bundle that an item made under this name."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            if name.startswith(f"{part}/"):
                (Path(folder) / name[len(part) + 1 :]).write_bytes(data)
        found = replace(read_bundle(folder), name="network")
        return replace(found, folder=None) if VOUCHED in files else found


def _bundle_files(bundle: Bundle, part: str) -> Files:
    with tempfile.TemporaryDirectory() as folder:
        bundle.save(Path(folder) / "bundle")
        return {f"{part}/{path.name}": path.read_bytes() for path in sorted((Path(folder) / "bundle").iterdir())}


def _from_raw(heuristic: NeuralHeuristic | CalibratedHeuristic, raw: F32, distances: DistanceTable) -> F32:
    """float32[N], from what the network says of all states."""
    starts = range(0, distances.states, CHUNK)
    pieces = ((raw[k : k + CHUNK], distances.states_of_rows(k, min(k + CHUNK, distances.states))) for k in starts)
    return np.concatenate([heuristic.from_raw(values, states) for values, states in pieces])


def _some_rows(distances: DistanceTable) -> I64:
    """Always the same, uniformly drawn: those whose moves are looked at for consistency."""
    count = min(EDGE_STATES, distances.states)
    return np.sort(np.random.default_rng(0).choice(distances.states, count, replace=False))


def environment() -> dict[str, Any]:
    """The machine, the versions and a checksum of our sources, for the report.

    No other program is asked: git would run what the settings of a repository around the package name.
    """
    import platform
    from importlib.metadata import PackageNotFoundError, version

    def version_of(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "not installed"

    about = platform.uname()
    libraries = ("numpy", "numba", "torch", "scipy", "pyarrow")
    return {
        "undershoot": version_of("undershoot"),
        "sources": sources_digest()[:12],
        "host": socket.gethostname(),
        "machine": "-".join(part for part in (about.system, about.release, about.machine, *platform.libc_ver()) if part),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version_of(name) for name in libraries},
    }
