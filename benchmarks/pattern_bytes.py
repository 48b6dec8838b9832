"""Nodes and seconds against bytes: tables and networks of patterns on the same boards, IDA* on one core.

    python benchmarks/pattern_bytes.py tiles-4x4 --heuristics patterns:5-5-5+reflected,learned --boards 100 >> records.jsonl
    python benchmarks/pattern_bytes.py tiles-5x5 --heuristics ... --walk 100 --boards 20 >> records.jsonl
    python benchmarks/pattern_bytes.py --picture docs/pattern-bytes.png < docs/pattern_bytes.jsonl

A line of JSON for each heuristic. Boards are uniformly random, or walks of so many moves from the goal that never turn back.
Bytes are those of the tables as they lie in memory, or of weights, thresholds and lists on disk; seconds are those of the
processor. A board that takes longer than --seconds is counted as stopped, and the row says how many were.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import undershoot as us
from undershoot.arrays import States
from undershoot.bundles.names import LEARNED
from undershoot.bundles.pattern_reading import read_pattern_bundle
from undershoot.heuristics.learned_patterns import LearnedPatterns
from undershoot.heuristics.patterns import PatternHeuristic
from undershoot.kernels.scrambles import scramble
from undershoot.search.ida import solve_by_deepening
from undershoot.search.options import SearchOptions
from undershoot.search.results import Status


def boards_of(puzzle: us.Puzzle, count: int, walk: int | None, seed: int) -> States:
    return puzzle.sample(count, seed=seed) if walk is None else scramble(puzzle.table, np.full(count, walk), seed).states


def bytes_of(puzzle: us.Puzzle, name: str, heuristic: Any) -> int:
    if isinstance(heuristic, PatternHeuristic):
        return sum(table.entries.nbytes for table in heuristic.tables)
    return read_pattern_bundle(puzzle.name if name in LEARNED else name).learned_bytes


def measured(puzzle: us.Puzzle, name: str, boards: States, walk: int | None, seconds: float) -> dict[str, Any]:
    heuristic = us.heuristic(puzzle, name)
    solve_by_deepening(puzzle, puzzle.table.goals[:1], heuristic, SearchOptions())
    began = time.process_time()
    results = solve_by_deepening(puzzle, boards, heuristic, SearchOptions(max_seconds=seconds))
    taken, children = time.process_time() - began, sum(result.generated for result in results)
    return {
        "puzzle": puzzle.name,
        "heuristic": name,
        "kind": "networks" if isinstance(heuristic, LearnedPatterns) else "tables",
        "bytes": bytes_of(puzzle, name, heuristic),
        "boards": len(boards),
        "walk": walk,
        "stopped": sum(result.status is not Status.SOLVED for result in results),
        "mean h": float(heuristic(boards).mean()),
        "mean cost": sum(result.cost or 0 for result in results) / len(boards),
        "children each": children / len(boards),
        "milliseconds each": 1000 * taken / len(boards),
        "million children a second": children / taken / 1e6,
    }


TITLES = {"tiles-4x4": "15-puzzle, 100 uniformly random boards", "tiles-5x5": "24-puzzle, 30 walks of 70 moves"}
LOOKS = {"tables": ("o-", "#4477aa", (5, 5), "left"), "networks": ("s-", "#cc6677", (-6, -11), "right")}
"""Of each kind: line, colour, and where names stand."""


def name_of(heuristic: str) -> str:
    """How a picture calls it."""
    if heuristic in LEARNED:
        return "in the package"
    return heuristic.removeprefix("patterns:").removesuffix("+reflected").rstrip("/").split("/")[-1]


def picture(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    puzzles = list(dict.fromkeys(row["puzzle"] for row in rows))
    figure, axes = plt.subplots(2, len(puzzles), figsize=(5.2 * len(puzzles), 7.0), sharex=True, squeeze=False)
    for column, puzzle in enumerate(puzzles):
        for axis, what in zip(axes[:, column], ("children each", "milliseconds each"), strict=True):
            for kind, (style, colour, offset, side) in LOOKS.items():
                those = sorted((r for r in rows if r["puzzle"] == puzzle and r["kind"] == kind), key=lambda r: r["bytes"])
                axis.loglog([r["bytes"] for r in those], [r[what] for r in those], style, color=colour, label=kind)
                for row in those:
                    at, how = (row["bytes"], row[what]), {"textcoords": "offset points", "xytext": offset, "ha": side}
                    axis.annotate(name_of(row["heuristic"]), at, fontsize=8, color=colour, **how)
            values = [r[what] for r in rows if r["puzzle"] == puzzle]
            axis.set_ylim(min(values) / 3, max(values) * 3)
            axis.set_xlim(5e4, 3e9)
            axis.grid(visible=True, which="major", alpha=0.3)
            axis.tick_params(which="minor", labelleft=False, labelbottom=False)
            axis.set_ylabel(what.replace("each", "a board"))
        axes[0, column].set_title(TITLES.get(puzzle, puzzle))
        axes[1, column].set_xlabel("bytes")
        axes[0, column].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("puzzle", nargs="?", default="tiles-4x4")
    parser.add_argument("--heuristics", default="patterns:5-5-5+reflected,patterns:6-6-3+reflected,learned")
    parser.add_argument("--boards", type=int, default=100)
    parser.add_argument("--walk", type=int)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=600.0, help="at most, for a board")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw records from standard input instead")
    arguments = parser.parse_args()
    if arguments.picture is not None:
        return picture([json.loads(line) for line in sys.stdin if line.strip()], arguments.picture)
    puzzle = us.puzzle(arguments.puzzle)
    boards = boards_of(puzzle, arguments.boards, arguments.walk, arguments.seed)
    for name in arguments.heuristics.split(","):
        print(json.dumps(measured(puzzle, name, boards, arguments.walk, arguments.seconds)), flush=True)
    return None


if __name__ == "__main__":
    main()
