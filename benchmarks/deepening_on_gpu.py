"""IDA* on a device with pattern tables: how long they take to be made, and how long uniformly random states take to be proven.

    PYTHONPATH=src python benchmarks/deepening_on_gpu.py [cube-3x3] [--set corners+8+8+inverse] [--count 100] [--later 24]
        [--device cuda] [--seconds 600] [--walk 0] [--out FILE]

Prints the tables, then a line for each set: rates are children after pruned pairs. --walk N takes random walks of N moves.
"""

import argparse
import json
import time
from dataclasses import replace
from statistics import fmean, median

import numpy as np
import torch

import undershoot as us
from undershoot.arrays import States
from undershoot.heuristics.device_patterns import DevicePatterns, made_on_device
from undershoot.kernels.scrambles import scramble
from undershoot.pattern_tables.sets import pattern_set
from undershoot.search.device import depth_first
from undershoot.search.device.depth_first import deepen_on_device


def show_kernels(puzzle: us.Puzzle, state: States, heuristic: DevicePatterns) -> None:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        deepen_on_device(puzzle, state, heuristic, us.SearchOptions(algorithm=us.Algorithm.IDA, max_seconds=1.0))
    table = profiler.key_averages()
    print(table.table(sort_by="self_device_time_total", row_limit=22, max_name_column_width=70))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("puzzle", nargs="?", default="cube-3x3")
    parser.add_argument("--set", default="corners+8+8+inverse")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--later", type=int, nargs="*", default=[24])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=600.0, help="for all states of a line")
    parser.add_argument("--chunk", type=int)
    parser.add_argument("--out")
    parser.add_argument("--profile", action="store_true", help="print the kernels that take longest, too")
    arguments = parser.parse_args()
    puzzle = us.puzzle(arguments.puzzle)
    if arguments.chunk:
        depth_first.CHUNK[arguments.device] = arguments.chunk
    states = puzzle.sample(arguments.count, seed=19)
    began = time.perf_counter()
    heuristic = made_on_device(puzzle, pattern_set(puzzle, arguments.set), arguments.device, later=max(arguments.later))
    if arguments.device == "cuda":
        torch.cuda.synchronize()
        print(torch.cuda.get_device_name(), "torch", torch.__version__)
    print(f"{arguments.set}: {heuristic.bytes:,} bytes in {time.perf_counter() - began:.1f} s, {len(heuristic.sums)} sums")
    print("later | states | proven | median s | mean s | longest s | mean children | 10^9 children/s | mean cost", flush=True)
    records = []
    for later in arguments.later:
        used = replace(heuristic, sums=heuristic.sums[: heuristic.first + later])
        warm = scramble(puzzle.table, np.array([14]), seed=1).states
        began = time.perf_counter()
        deepen_on_device(puzzle, warm, used, us.SearchOptions(algorithm=us.Algorithm.IDA, max_seconds=20))
        print(f"compiling: {time.perf_counter() - began:.1f} s", flush=True)
        if arguments.profile:
            show_kernels(puzzle, states[:1], used)
        results, until = [], time.perf_counter() + arguments.seconds
        for k in range(len(states)):
            left = until - time.perf_counter()
            if left <= 0:
                break
            options = us.SearchOptions(algorithm=us.Algorithm.IDA, max_seconds=left)
            results += deepen_on_device(puzzle, states[k : k + 1], used, options)
        proven = [r for r in results if r.optimality.kind.value == "proven"]
        seconds = [r.seconds for r in results]
        children = [r.generated for r in results]
        print(
            f"{later} | {len(results)} | {len(proven)} | {median(seconds):.3f} | {fmean(seconds):.3f} | {max(seconds):.3f} | "
            f"{fmean(children):.4g} | {sum(children) / sum(seconds) / 1e9:.2f} | {fmean([r.cost or 0 for r in proven] or [0]):.2f}",
            flush=True,
        )
        records += [{"later": later, "cost": r.cost, "seconds": r.seconds, "children": r.generated} for r in results]
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(records, file)


if __name__ == "__main__":
    main()
