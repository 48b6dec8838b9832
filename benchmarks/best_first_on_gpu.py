"""A* on a device: children a second and ms a step of one 15-puzzle, and expansions a second of many searches in lock-step.

    PYTHONPATH=src python benchmarks/best_first_on_gpu.py [--device cuda] [--seconds 20] [--steps 1000 10000 100000]
        [--count 10000] [--cases tiles-3x3:paper:1 tiles-3x3:paper:16 cube-2x2:paper:7] [--count-operations]

A case of lock-step is a puzzle, a heuristic, and how many nodes each search takes at once.

Children are counted after the one that goes back is left out. Operations are those of torch, before any are fused; views are
not counted. On the processor, small sizes: --device cpu --steps 100 1000 --count 200.
"""

import argparse
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import undershoot as us
from undershoot.guarantees import Heuristic
from undershoot.search.device.best_first import Searches
from undershoot.search.options import SearchOptions
from undershoot.search.results import Result

HARD = "15 14 8 12 10 11 13 9 2 6 5 1 3 7 4 0"
VIEWS = (
    "view",
    "expand",
    "unsqueeze",
    "slice",
    "select",
    "aten.t.",
    "transpose",
    "permute",
    "unbind",
    "detach",
    "alias",
    "split",
)


class Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts what torch is asked to do."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counts[str(function)] += 1
        return function(*args, **(kwargs or {}))

    @property
    def launches(self) -> int:
        return sum(count for name, count in self.counts.items() if not any(view in name for view in VIEWS))


def run(searches: Searches) -> tuple[list[Result], float]:
    began = time.perf_counter()
    results = [result for _, result in searches.run()]
    if searches.device.type == "cuda":
        torch.cuda.synchronize()
    return results, time.perf_counter() - began


def operations_of(puzzle: us.Puzzle, states: np.ndarray, heuristic: Heuristic, per_step: int, device: str) -> str:
    few, many = (
        Searches(
            puzzle, states, heuristic, SearchOptions(expand_per_step=per_step, max_expanded=per_step * k), torch.device(device)
        )
        for k in (20, 40)
    )
    counts, steps = [], []
    for searches in (few, many):
        with Operations() as operations:
            results, _ = run(searches)
        counts.append(operations.launches)
        steps.append(max(result.expanded for result in results) / per_step)
    return f"{(counts[1] - counts[0]) / max(1.0, steps[1] - steps[0]):.0f}"


def show_kernels(searches: Searches, limit: int = 30) -> None:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        run(searches)
    averages = profiler.key_averages()
    for order in ("self_cuda_time_total", "self_cpu_time_total"):
        print(averages.table(sort_by=order, row_limit=limit, max_name_column_width=60), flush=True)


def one_instance(arguments: argparse.Namespace) -> None:
    puzzle = us.puzzle("tiles-4x4")
    state, base = puzzle.parse(arguments.state), us.heuristic(puzzle, "base")
    print("15-puzzle, Manhattan | nodes a step | status | expanded | 10^6 children/s | ms a step | bytes a state | lower bound")
    for per_step in arguments.steps:
        device = torch.device(arguments.device)
        run(Searches(puzzle, state, base, SearchOptions(expand_per_step=per_step, max_expanded=40 * per_step), device))
        options = SearchOptions(expand_per_step=per_step, max_seconds=arguments.seconds)
        searches = Searches(puzzle, state, base, options, device)
        (result,), seconds = run(searches)
        children = result.generated - result.expanded  # each but the start has one that goes back
        print(
            f"| {per_step:,} | {result.status} | {result.expanded:,} | {children / seconds / 1e6:.2f} | "
            f"{1e3 * seconds * per_step / result.expanded:.3f} | {searches.peak_bytes / result.stored:.1f} | "
            f"{result.lower_bound}",
            flush=True,
        )
        if arguments.profile:
            show_kernels(
                Searches(puzzle, state, base, SearchOptions(expand_per_step=per_step, max_expanded=50 * per_step), device)
            )
        if arguments.count_operations:
            print("operations a step:", operations_of(puzzle, state, base, per_step, arguments.device))


def many_instances(arguments: argparse.Namespace) -> None:
    print("lock-step: nodes a step | instances | solved | expanded | longest | seconds | 10^6 expansions/s | mean cost")
    for case in arguments.cases:
        name, kind, per_step = case.split(":")
        usual = SearchOptions(expand_per_step=int(per_step))
        puzzle = us.puzzle(name)
        states, heuristic = puzzle.sample(arguments.count, seed=19), us.heuristic(puzzle, kind)
        device = torch.device(arguments.device)
        _, first = run(Searches(puzzle, states, heuristic, replace(usual, max_expanded=50), device))
        print(f"50 expansions each, with compiling: {first:.1f} s", flush=True)
        results, seconds = run(Searches(puzzle, states, heuristic, usual, device))
        expanded = [result.expanded for result in results]
        costs = [result.cost for result in results if result.cost is not None]
        print(
            f"| {case} | {len(results):,} | {len(costs):,} | {sum(expanded):,} | {max(expanded):,} | {seconds:.2f} | "
            f"{sum(expanded) / seconds / 1e6:.3f} | {np.mean(costs):.3f}",
            flush=True,
        )
        if arguments.profile:
            show_kernels(Searches(puzzle, states, heuristic, replace(usual, max_expanded=100), device))
        if arguments.count_operations:
            print("operations a step:", operations_of(puzzle, states[:100], heuristic, int(per_step), arguments.device))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--state", default=HARD)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--steps", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--cases", nargs="*", default=["tiles-3x3:paper:1", "tiles-3x3:paper:16", "cube-2x2:paper:7"])
    parser.add_argument("--count-operations", action="store_true")
    parser.add_argument("--profile", action="store_true", help="print the kernels that take longest, too")
    arguments = parser.parse_args()
    torch.set_num_threads(1 if arguments.device == "cpu" else torch.get_num_threads())
    if arguments.device == "cuda":
        print(torch.cuda.get_device_name(), "torch", torch.__version__)
    one_instance(arguments)
    many_instances(arguments)


if __name__ == "__main__":
    main()
