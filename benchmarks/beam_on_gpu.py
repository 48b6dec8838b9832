"""The beam of two bounds alone, on a device: what solutions of uniformly random states cost after some seconds.

    PYTHONPATH=src python benchmarks/beam_on_gpu.py [--device cuda] [--puzzle cube-3x3] [--guide NAME|PATH] [--seconds 30]
        [--count 20] [--seed 1] [--first-width 4096] [--most-width 4194304]

A line for each state: its cost at each moment, the width of the run that was under way at the end (or would have been next),
expansions, children that the guide was asked about, both a second, and the most memory of the device that was held; then what
all of them came to. On the processor, small sizes: --device cpu --puzzle tiles-4x4 --guide base --seconds 3 --count 3.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch

import undershoot as us
from undershoot.arrays import States
from undershoot.guarantees import Heuristic
from undershoot.heuristics.analytic import base
from undershoot.search.device import beam as beams
from undershoot.search.device.beam import DeviceBeam, beam_on_device
from undershoot.search.known import NO_COST, Known
from undershoot.search.options import SearchOptions

MOMENTS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
CPU_MEMORY = 4 << 30


@dataclass
class Run:
    """Of one state."""

    costs: list[int | None]
    """One for each moment."""
    width: int
    expanded: int
    evaluated: int
    seconds: float
    gigabytes: float


def searched(puzzle: us.Puzzle, state: States, guide: Heuristic, device: str, moments: list[float]) -> Run:
    known = Known(puzzle, state[None], 0, SearchOptions(device=device, max_seconds=moments[-1]))
    proven = guide if guide.guarantee.is_proven else base(puzzle)
    beam: DeviceBeam = beam_on_device(known, guide, proven, CPU_MEMORY)
    beam.compile()
    if beam.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(beam.device)
    costs: list[int | None] = []
    known.begin()
    seconds = 0.0
    for _ in beam.slices():
        seconds = known.seconds
        while len(costs) < len(moments) and seconds >= moments[len(costs)]:
            costs.append(None if known.cost == NO_COST else known.cost)
        if known.is_over:
            break
    costs += [None if known.cost == NO_COST else known.cost] * (len(moments) - len(costs))
    peak = torch.cuda.max_memory_allocated(beam.device) / 1e9 if beam.device.type == "cuda" else 0.0
    return Run(costs, beam.width, known.counts["expanded"], known.counts["evaluated"], max(seconds, 1e-9), peak)


def shown(cost: int | None) -> str:
    return "-" if cost is None else str(cost)


def report(number: int, run: Run) -> str:
    costs = " | ".join(shown(cost) for cost in run.costs)
    return (
        f"| {number} | {costs} | {run.width:,} | {run.expanded:,} | {run.evaluated:,} | "
        f"{run.expanded / run.seconds / 1e6:.3f} | {run.evaluated / run.seconds / 1e6:.3f} | {run.seconds:.1f} | "
        f"{run.gigabytes:.1f} |"
    )


def summary(runs: list[Run], moments: list[float]) -> str:
    lines = []
    for k, moment in enumerate(moments):
        costs = [run.costs[k] for run in runs]
        solved = [cost for cost in costs if cost is not None]
        spread = f"mean {np.mean(solved):.3f}, least {min(solved)}, most {max(solved)}" if solved else "no solution"
        lines.append(f"after {moment:g} s: {len(solved)} of {len(runs)} solved, {spread}")
    seconds = sum(run.seconds for run in runs)
    lines.append(
        f"{sum(run.expanded for run in runs) / seconds / 1e6:.3f} million expansions/s, "
        f"{sum(run.evaluated for run in runs) / seconds / 1e6:.3f} million evaluations/s, "
        f"widths {min(run.width for run in runs):,} to {max(run.width for run in runs):,}"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--puzzle", default="cube-3x3")
    parser.add_argument("--guide", default="patterns", help="as for --guide of solve: a name, or the folder of a network")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first-width", type=int, help="of the first run")
    parser.add_argument("--most-width", type=int, default=beams.MOST_WIDTH)
    arguments = parser.parse_args()
    kind = torch.device(arguments.device).type
    if kind == "cpu":
        torch.set_num_threads(1)  # small tensors: waiting for other threads would take most of the time
    beams.FIRST_WIDTH[kind] = arguments.first_width or beams.FIRST_WIDTH[kind]
    beams.MOST_WIDTH = arguments.most_width
    puzzle = us.puzzle(arguments.puzzle)
    guide = us.heuristic(puzzle, arguments.guide, device=arguments.device)
    moments = [*(moment for moment in MOMENTS if moment < arguments.seconds), arguments.seconds]
    states = puzzle.sample(arguments.count, seed=arguments.seed)
    began = time.perf_counter()
    searched(puzzle, states[0], guide, arguments.device, [min(2.0, arguments.seconds)])  # whatever is made or compiled once
    print(f"{puzzle.name}, guided by {guide.name}, on {arguments.device}; ready after {time.perf_counter() - began:.1f} s")
    titles = " | ".join(f"{moment:g} s" for moment in moments)
    print(f"| state | {titles} | width | expanded | evaluated | 10^6 expanded/s | 10^6 evaluated/s | s | GB |", flush=True)
    runs = []
    for number, state in enumerate(states):
        runs.append(searched(puzzle, state, guide, arguments.device, moments))
        print(report(number, runs[-1]), flush=True)
    print(summary(runs, moments))


if __name__ == "__main__":
    main()
