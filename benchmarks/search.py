"""Speed and memory of A*, as ratios to a plain A* in Python timed in the same run on the same instances.

    python benchmarks/search.py [--json]

Every figure is the best of several runs. The reference is what one writes first and well: tuples in a heap, a dictionary
of costs, and Manhattan distance from a table, added up for each new state. (Updating the distance by the tile that moved
makes it nearly twice as fast.)
"""

import argparse
import heapq
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import undershoot as us
from undershoot.arrays import F32, States
from undershoot.guarantees import PROVEN, Guarantee, Heuristic, Rounding
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.astar import astar_batch

INSTANCES = 1000
REFERENCE_INSTANCES = 150


def reference(starts: States, columns: int = 3) -> tuple[int, float]:
    """Expansions and seconds of A* with Manhattan distance on the 8-puzzle."""
    n = starts.shape[1]
    goal = tuple((i + 1) % n for i in range(n))
    cells = range(n)
    row, column = [i // columns for i in cells], [i % columns for i in cells]
    home = {tile: cell for cell, tile in enumerate(goal)}
    far = [[abs(row[i] - row[home[t]]) + abs(column[i] - column[home[t]]) if t else 0 for t in cells] for i in cells]
    beside = [[j for j in cells if abs(row[i] - row[j]) + abs(column[i] - column[j]) == 1] for i in cells]
    expanded, began = 0, time.perf_counter()
    for start in map(tuple, starts.tolist()):
        heap = [(sum(far[i][t] for i, t in enumerate(start)), 0, start)]
        best, closed = {start: 0}, set()
        while True:
            _, g, state = heapq.heappop(heap)
            if state in closed:
                continue
            closed.add(state)
            expanded += 1
            if state == goal:
                break
            blank = state.index(0)
            for cell in beside[blank]:
                board = list(state)
                board[blank], board[cell] = board[cell], 0
                child = tuple(board)
                if best.get(child, 1 << 30) > 1 - g:
                    best[child] = 1 - g
                    h = sum(far[i][t] for i, t in enumerate(child))
                    heapq.heappush(heap, (1 - g + h, g - 1, child))
    return expanded, time.perf_counter() - began


@dataclass(frozen=True)
class Outside:
    """Manhattan distance called from outside the loop, as a network would be."""

    inner: Heuristic
    name: str = "Manhattan, outside"
    guarantee: Guarantee = PROVEN
    rounding: Rounding = Rounding.INTEGER

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint

    def __call__(self, states: States) -> F32:
        return self.inner(states)


def rate(puzzle: Puzzle, states: States, heuristic: Any, **settings: Any) -> float:
    """Expansions a second, best of five."""
    best = 0.0
    for _ in range(5):
        batch = astar_batch(puzzle, states, heuristic, **settings)
        best = max(best, sum(result.expanded for result in batch.results) / batch.seconds)
    return best


def memory_status(field: str) -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def large_search() -> dict[str, float]:
    """One 15-puzzle instance, five million expansions."""
    puzzle = us.puzzle("tiles-4x4-blank-first")
    state = puzzle.parse("14 13 15 7 11 12 9 5 6 0 2 1 4 8 10 3")
    base = us.heuristic(puzzle, "base")
    us.solve(puzzle, state, base, us.SearchOptions(max_expanded=1000))
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_status("VmRSS")
    batch = astar_batch(puzzle, state, base, us.SearchOptions(max_expanded=5_000_000))
    (result,) = batch.results
    return {
        "expanded_per_second": result.expanded / batch.seconds,
        "stored": result.stored,
        "bytes_per_node": (memory_status("VmHWM") - before) / result.stored,
    }


def in_loop(states: States) -> dict[str, tuple[Puzzle, States, Heuristic]]:
    """Puzzle, instances and heuristic, each evaluated inside the loop, one instance after another. states: of the 8-puzzle."""
    tiles, cube, many = us.puzzle("tiles-3x3"), us.puzzle("cube-2x2"), us.puzzle("tiles-4x4")
    scrambled = us.scramble(many.table, np.full(20, 60), 1).states
    return {
        "8-puzzle, paper": (tiles, states[:100], us.heuristic(tiles, "paper")),
        "8-puzzle, learned": (tiles, states, us.heuristic(tiles, "learned")),
        "8-puzzle, small": (tiles, states, us.heuristic(tiles, "small")),
        "8-puzzle, table": (tiles, states, us.heuristic(tiles, "table")),
        "2x2 cube, paper": (cube, cube.sample(20, seed=0), us.heuristic(cube, "paper")),
        "15-puzzle, linear-conflict": (many, scrambled, us.heuristic(many, "linear-conflict")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    large = max((large_search() for _ in range(3)), key=lambda run: run["expanded_per_second"])
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(INSTANCES, seed=0)
    base = us.heuristic(puzzle, "base")
    expanded, seconds = min((reference(states[:REFERENCE_INSTANCES]) for _ in range(3)), key=lambda run: run[1])
    plain = expanded / seconds
    many = puzzle.sample(20 * INSTANCES, seed=1)
    results: dict[str, Any] = {
        "reference_expanded_per_second": plain,
        "one core": rate(puzzle, many[: 5 * INSTANCES], base) / plain,
        "two cores": rate(puzzle, many[: 5 * INSTANCES], base, threads=2) / plain,
        "lock-step of 1000, heuristic outside": rate(puzzle, many, Outside(base), lock_step=1000) / plain,
        "the same on two cores": rate(puzzle, many, Outside(base), lock_step=1000, threads=2) / plain,
        "lock-step of 1, heuristic outside": rate(puzzle, states[:30], Outside(base), lock_step=1) / plain,
        **{f"in the loop: {name}": rate(*instances) / plain for name, instances in in_loop(states).items()},
        "15-puzzle": large,
    }
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    print(f"reference: plain Python A*, 8-puzzle, Manhattan distance: {plain:,.0f} expansions per second\n")
    for name, ratio in results.items():
        if isinstance(ratio, float) and name != "reference_expanded_per_second":
            print(f"  {name:40}{ratio:7.1f} x   {ratio * plain:12,.0f} expansions per second")
    print(
        f"\none 15-puzzle instance, 5,000,000 expansions: {large['expanded_per_second']:,.0f} per second, "
        f"{large['stored']:,.0f} nodes, {large['bytes_per_node']:.1f} bytes a node"
    )


if __name__ == "__main__":
    main()
