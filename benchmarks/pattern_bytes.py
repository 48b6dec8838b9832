"""Nodes and seconds against bytes: tables and networks of patterns on the same boards, IDA* on one core.

    python benchmarks/pattern_bytes.py tiles-4x4 --heuristics patterns:5-5-5+reflected,learned --boards 100 >> records.jsonl
    python benchmarks/pattern_bytes.py tiles-5x5 --heuristics ... --walk 100 --boards 20 >> records.jsonl
    python benchmarks/pattern_bytes.py --picture docs/pattern-bytes.png < docs/pattern_bytes.jsonl
    python benchmarks/pattern_bytes.py tiles-5x5 --heuristics ... --unsolved 10 --boards 20

A line of JSON for each heuristic. Boards are uniformly random, or walks of so many moves from the goal that never turn back.
Bytes are those of the tables as they lie in memory, or of weights, thresholds and lists on disk; seconds are those of the
processor. A board that takes longer than --seconds is counted as stopped, and the row says how many were.

With --unsolved S boards need not be solved: each heuristic has S seconds of the processor for a board, and what counts is the
bound that IDA* proves in that time, and how soon it is at a bound that others reach, too.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

import undershoot as us
from undershoot.arrays import States
from undershoot.bundles.names import LEARNED
from undershoot.bundles.pattern_reading import read_pattern_bundle
from undershoot.heuristics.learned_patterns import LearnedPatterns
from undershoot.heuristics.patterns import PatternHeuristic
from undershoot.kernels.scrambles import scramble
from undershoot.search.ida import Deepening, compile_deepening, cut_off, loop_guide, solve_by_deepening, starts_of
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


class Timed(Deepening):
    """IDA* on one thread, of which we know when its bound rose. Seconds, and their limit, are of the processor."""

    seconds: float
    reached: dict[int, float]

    def _raise_bound(self, lower: int) -> None:
        super()._raise_bound(lower)
        now = time.thread_time()
        if not self.reached:
            self.first = now
        self.reached.setdefault(self.lower, now - self.first)

    def _look_at_limits(self, goes_on: bool) -> None:
        if goes_on and time.thread_time() - self.first > self.seconds:
            self.limit_met = Status.TIME


def bounds_over_time(puzzle: us.Puzzle, board: States, heuristic: Any, seconds: float) -> dict[int, float]:
    """Which bounds IDA* proves for a board, and after how long each, where it has so many seconds."""
    (start,) = starts_of(puzzle, board, heuristic, None)
    guide, options = loop_guide(heuristic), SearchOptions()
    search = Timed(puzzle, start, heuristic, guide, options, 1, cut_off(puzzle, heuristic), Event())
    search.seconds, search.reached = seconds, {}
    search.run()
    return search.reached


def seconds_to_common(reached: list[dict[int, float]]) -> list[float]:
    """Of searches for one board: when each was at the largest bound that all of them reached."""
    common = min(max(bounds) for bounds in reached)
    return [min(taken for bound, taken in bounds.items() if bound >= common) for bounds in reached]


def unsolved(puzzle: us.Puzzle, names: list[str], boards: States, many: States, seconds: float) -> list[dict[str, Any]]:
    """A row for each heuristic. many: boards to take the mean of h over."""
    heuristics = {name: us.heuristic(puzzle, name) for name in names}
    for heuristic in heuristics.values():
        compile_deepening(puzzle, heuristic)
    # One board after another, so that what else the machine does meets all heuristics alike.
    searches = [[bounds_over_time(puzzle, board[None], one, seconds) for one in heuristics.values()] for board in boards]
    of_all = np.array([seconds_to_common(reached) for reached in searches])
    rows = []
    for number, (name, heuristic) in enumerate(heuristics.items()):
        beside = {}
        for other, other_name in enumerate(names):
            if other != number:
                pairs = np.array([seconds_to_common([reached[number], reached[other]]) for reached in searches])
                sooner = int((pairs[:, 0] < pairs[:, 1]).sum())
                beside[other_name] = {"mean seconds": pairs.mean(axis=0).tolist(), "sooner on": sooner}
        rows.append(
            {
                "puzzle": puzzle.name,
                "heuristic": name,
                "bytes": bytes_of(puzzle, name, heuristic),
                "mean h": float(heuristic(many).mean()),
                "of boards": len(many),
                "boards": len(boards),
                "mean bound": sum(max(reached[number]) for reached in searches) / len(boards),
                "in seconds": seconds,
                "seconds to the bound of all": float(of_all[:, number].mean()),
                "beside": beside,
                "bounds": [reached[number] for reached in searches],
            }
        )
    return rows


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
    parser.add_argument("--unsolved", type=float, metavar="S", help="prove bounds for S seconds a board instead of solving")
    parser.add_argument("--mean-over", type=int, default=5000, metavar="N", help="boards for the mean of h, with --unsolved")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw records from standard input instead")
    arguments = parser.parse_args()
    if arguments.picture is not None:
        return picture([json.loads(line) for line in sys.stdin if line.strip()], arguments.picture)
    puzzle = us.puzzle(arguments.puzzle)
    boards = boards_of(puzzle, arguments.boards, arguments.walk, arguments.seed)
    names = arguments.heuristics.split(",")
    if arguments.unsolved is not None:
        many = boards_of(puzzle, arguments.mean_over, arguments.walk, arguments.seed + 1)
        for row in unsolved(puzzle, names, boards, many, arguments.unsolved):
            print(json.dumps(row))
        return None
    for name in names:
        print(json.dumps(measured(puzzle, name, boards, arguments.walk, arguments.seconds)), flush=True)
    return None


if __name__ == "__main__":
    main()
