"""The evaluation of one puzzle and seed, records written, beside the bare searches of the same network, in the same run.

    python benchmarks/protocol.py [--puzzle cube-2x2] [--instances 2000] [--json]

The evaluation does what a work item of `undershoot reproduce` does: instances, true costs, h of every start, A* within 1,000
expansions, and a file of records on disk. Bare is `astar_batch` on the same states alone. Both on one core, in turn, best of
three.
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import undershoot as us
from undershoot.experiments.protocol import PROFILES, populations, searches, training
from undershoot.experiments.store import Store
from undershoot.experiments.work import bundle_of, do, instances
from undershoot.search.astar import astar_batch
from undershoot.search.options import SearchOptions, Ties


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--puzzle", default="cube-2x2")
    parser.add_argument("--instances", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    profile = replace(PROFILES["quick"], uniform=given.instances, slice=given.instances)
    puzzle, population = us.puzzle(given.puzzle), populations(profile, given.puzzle)["uniform"]
    trained = training(profile, puzzle.name, "paper", 0)
    made = {"training": do(trained.kind, trained.spec, {})}
    (item,) = searches(profile, puzzle.name, population, "raw", trained, "deep")
    network = bundle_of(made["training"], "bundle").raw
    states = instances(puzzle, population).states
    options = SearchOptions(ties=Ties.DEEP, max_expanded=profile.budget)
    best = {"evaluation": float("inf"), "bare": float("inf")}
    expanded = 0
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store", profile.to_dict())
        for _ in range(3):
            began = time.perf_counter()
            store.write(item, do(item.kind, item.spec, made))
            best["evaluation"] = min(best["evaluation"], time.perf_counter() - began)
            began = time.perf_counter()
            results = astar_batch(puzzle, states, network, options).results
            best["bare"] = min(best["bare"], time.perf_counter() - began)
            expanded = sum(result.expanded for result in results)
    found = {
        "puzzle": puzzle.name,
        "instances": given.instances,
        "expanded": expanded,
        "bare_expanded_per_second": expanded / best["bare"],
        "evaluation_expanded_per_second": expanded / best["evaluation"],
        "share": best["bare"] / best["evaluation"],
    }
    if given.json:
        print(json.dumps(found, indent=2))
        return
    bare, whole = (found[f"{name}_expanded_per_second"] for name in ("bare", "evaluation"))
    print(
        f"{puzzle.name}: {expanded:,} expansions on {given.instances:,} instances; bare {bare:,.0f} a second, "
        f"with records {whole:,.0f}: {found['share']:.0%}"
    )


if __name__ == "__main__":
    main()
