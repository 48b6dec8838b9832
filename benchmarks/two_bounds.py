"""Two bounds that meet: what is known of uniformly random instances after so many seconds, on two cores.

    python benchmarks/two_bounds.py [PART ...] [--count N] [--seconds S] [--clock wall|processor] [--records FILE]
    python benchmarks/two_bounds.py --picture FILE [--records FILE]

Parts: fifteen (the 15-puzzle, 500 boards of 1 s each), twenty-four (the 24-puzzle, 20 boards of 60 s each) and
cube (the 3x3, 20 cubes of 60 s each), each instance on two threads; ideas (what finds solutions of the 3x3, 10 cubes of 5 s
each, on one thread). Tables come from the cache, or are made first, which is
timed apart. Every history goes to the file of records, where a part replaces its earlier records; tables and the picture are
made of these. With `--clock processor` a second is one in which this process had two cores: on a machine that others use as
well, that is what two idle cores would do in a second.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import undershoot as us
from undershoot.experiments.figures import bounds_over_time
from undershoot.files import written_atomically
from undershoot.search.beam import Beam
from undershoot.search.known import Known
from undershoot.search.results import Result
from undershoot.search.staged import Staged
from undershoot.search.stages import stages_of

THREADS = 2
RECORDS = Path(__file__).parent.parent / "docs" / "two_bounds.json"


@dataclass(frozen=True)
class Part:
    """What is measured."""

    puzzle: str
    patterns: str
    count: int
    seconds: float


PARTS = {
    "fifteen": Part("tiles-4x4", "6-6-3+reflected", 500, 1.0),
    "twenty-four": Part("tiles-5x5", "6-6-6-6+5-5-5-5-4+reflected", 20, 60.0),
    "cube": Part("cube-3x3", "corners+7+7", 20, 60.0),
}


@contextmanager
def counting(clock: str) -> Iterator[None]:
    """Limits and histories count seconds of this clock."""
    if clock == "wall":
        yield
        return
    with patch("undershoot.search.known.time", SimpleNamespace(perf_counter=lambda: time.process_time() / THREADS)):
        yield


def measure(part: Part, count: int, seconds: float, clock: str) -> dict[str, Any]:
    """The records of one part."""
    puzzle = us.puzzle(part.puzzle)
    began = time.perf_counter()
    heuristic = us.patterns(puzzle, part.patterns)
    loading = time.perf_counter() - began
    options = us.SearchOptions(algorithm=us.Algorithm.BOTH, max_seconds=seconds)
    states = puzzle.sample(count, seed=20)
    us.solve(puzzle, puzzle.table.goals, heuristic, options)  # compiled
    results: list[Result] = []
    with counting(clock):
        for k in range(count):
            results += us.solve_many(puzzle, states[k : k + 1], heuristic, options, threads=THREADS)
            print(f"{part.puzzle}: {k + 1} of {count}, {results[-1].cost} >= {results[-1].lower_bound}", flush=True)
    about = {"puzzle": part.puzzle, "heuristic": heuristic.name, "seconds": seconds, "clock": clock, "threads": THREADS}
    rows = [
        {"cost": r.cost, "lower_bound": r.lower_bound, "seconds": r.seconds, "history": [list(moved) for moved in r.history]}
        for r in results
    ]
    return {**about, "loading_seconds": loading, "instances": rows}


def ideas(count: int, seconds: float, clock: str) -> None:
    """What finds solutions of the 3x3: each part alone, on one thread."""
    puzzle = us.puzzle("cube-3x3")
    patterns, stages = us.patterns(puzzle), stages_of(puzzle)
    states, options = puzzle.sample(count, seed=21), us.SearchOptions(max_seconds=seconds / THREADS)
    assert stages is not None
    first, others = replace(stages, aspects=stages.aspects[:1]), stages
    ways: dict[str, Callable[[Known], Any]] = {
        "a beam by patterns": lambda shared: Beam(shared, patterns, patterns, 2 << 30),
        "two stages": lambda shared: Staged(shared, first, with_inverse=False),
        "two stages, also of the inverse": lambda shared: Staged(shared, first),
        "two stages, also of the inverse, along three axes": lambda shared: Staged(shared, others),
    }
    for name, way in ways.items():
        costs = []
        for k in range(count):
            shared = Known(puzzle, states[k : k + 1], 0, options)
            part = way(shared)
            part.compile()
            with counting(clock):
                shared.begin()
                for _ in part.slices():
                    if shared.is_over:
                        break
            costs.append(shared.cost)
        print(f"| {name} | {statistics.fmean(costs):.2f} | {min(costs)} | {max(costs)} |", flush=True)


def line(record: dict[str, Any]) -> str:
    """A row of the table."""
    rows = record["instances"]
    solved = [row for row in rows if row["cost"] is not None]
    proven = sum(row["cost"] == row["lower_bound"] for row in rows)
    ratios = [row["cost"] / row["lower_bound"] for row in solved]
    cells = (
        record["puzzle"],
        f"{len(rows)}, {record['seconds']:g} s",
        f"{len(solved)}",
        f"{proven}",
        f"{statistics.fmean(row['cost'] for row in solved):.2f}, {max(row['cost'] for row in solved)}",
        f"{statistics.fmean(row['lower_bound'] for row in rows):.2f}, {min(row['lower_bound'] for row in rows)}",
        f"{statistics.fmean(ratios):.3f}, {max(ratios):.3f}",
        f"{statistics.fmean(row['seconds'] for row in rows):.3f}, {max(row['seconds'] for row in rows):.3f}",
    )
    return f"| {' | '.join(cells)} |"


def picture(records: dict[str, Any], path: Path) -> None:
    """Both bounds of the first instances of each part that takes long, by time."""
    shown = [records[name] for name in ("cube", "twenty-four") if name in records]
    curves = {
        f"{record['puzzle']}, on two cores: solutions from above, proof from below": [
            [(moved[0], moved[1], moved[2]) for moved in row["history"]] for row in record["instances"][:4]
        ]
        for record in shown
    }
    bounds_over_time(curves, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "ideas", []], default=[])
    parser.add_argument("--count", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall")
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args()
    records: dict[str, Any] = json.loads(asked.records.read_text()) if asked.records.exists() else {}
    for name in asked.parts or ([] if asked.picture else list(PARTS)):
        if name == "ideas":
            ideas(asked.count or 10, asked.seconds or 5.0, asked.clock)
            continue
        part = PARTS[name]
        records[name] = measure(part, asked.count or part.count, asked.seconds or part.seconds, asked.clock)
        with written_atomically(asked.records) as file:
            file.write(json.dumps(records).encode())
    if asked.picture:
        picture(records, asked.picture)
    print("| puzzle | instances | solved | proven | cost: mean, largest | bound: mean, least | ratio: mean, largest | s |")
    print("|---|---|---:|---:|---|---|---|---|")
    for record in records.values():
        print(line(record))


if __name__ == "__main__":
    main()
