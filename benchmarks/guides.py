"""Guides beside one another: what the beam of one core makes of each on uniformly random states.

    python benchmarks/guides.py PUZZLE GUIDE [GUIDE ...] [--count 100] [--seconds 0.5] [--width W] [--seed 1]
        [--true-costs NAME]

Guides are names or paths of bundles. With a width there is one run alone, of so many states in each layer, however long it
takes. A line for each guide: how many states were solved, what solutions cost, how many of them are optimal, where
`--true-costs` names a heuristic that proves costs soon, and expansions a second. Seconds are those of one processor, so that
other work on the machine does not count.
"""

import argparse
import statistics
import time
from types import SimpleNamespace
from unittest.mock import patch

import undershoot as us
from undershoot.arrays import States
from undershoot.guarantees import Heuristic
from undershoot.heuristics.analytic import base
from undershoot.search.beam import Beam
from undershoot.search.known import NO_COST, Known

MEMORY = 2 << 30


def costs_by(puzzle: us.Puzzle, states: States, guide: Heuristic, seconds: float, width: int | None) -> tuple[list[int], float]:
    """The cheapest solution of each state, and expansions a second."""
    costs, expanded, spent = [], 0, 0.0
    for k in range(len(states)):
        known = Known(puzzle, states[k : k + 1], 0, us.SearchOptions(max_seconds=seconds if width is None else None))
        beam = Beam(known, guide, base(puzzle), MEMORY)
        beam.compile()
        known.begin()
        if width is not None:
            beam.width, beam.most_width = width, width
        for _ in beam.slices():
            if known.is_over:
                break
        costs.append(known.cost)
        expanded, spent = expanded + known.counts["expanded"], spent + known.seconds
    return costs, expanded / spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("puzzle")
    parser.add_argument("guides", nargs="+")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--width", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--true-costs")
    asked = parser.parse_args()
    puzzle = us.puzzle(asked.puzzle)
    states = puzzle.sample(asked.count, seed=asked.seed)
    true = None
    if asked.true_costs:
        proving = us.SearchOptions(algorithm=us.Algorithm.IDA)
        true = [result.cost for result in us.solve_many(puzzle, states, us.heuristic(puzzle, asked.true_costs), proving)]
    print("| guide | solved | mean cost | most | optimal | expanded a second |\n|---|---:|---:|---:|---:|---:|")
    for name in asked.guides:
        guide = us.heuristic(puzzle, name)
        with patch("undershoot.search.known.time", SimpleNamespace(perf_counter=time.process_time)):
            costs, rate = costs_by(puzzle, states, guide, asked.seconds, asked.width)
        solved = [cost for cost in costs if cost < NO_COST]
        mean, most = (f"{statistics.fmean(solved):.2f}", max(solved)) if solved else ("", "")
        optimal = "" if true is None else f"{sum(map(int.__eq__, costs, true)) / len(costs):.1%}"
        print(f"| {name} | {len(solved)} of {len(costs)} | {mean} | {most} | {optimal} | {rate:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
