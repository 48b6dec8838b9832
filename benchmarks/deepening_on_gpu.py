"""IDA* on a device with pattern tables: which patterns, and how many looks at them, are best in how much memory.

    PYTHONPATH=src python benchmarks/deepening_on_gpu.py [cube-3x3] [--sets corners+8+8+inverse ...] [--later 0 8 24 ...]
        [--count 100] [--seconds 600] [--memories 16 24 40 80 140] [--device cuda] [--walk N] [--hardest-of N] [--cores N]
        [--profile] [--out FILE]

For every set, whose tables are made and verified there, and every number of sums that are asked of what is left, the same
uniformly random states are searched one after another; --walk N takes random walks of N moves, --hardest-of N of N uniformly
random ones those that cost most by the puzzle's own formula. With --cores N the default set of the puzzle searches the same
states on N cores, too, as long as the seconds last. Rates are children after pruned
pairs. Memory is the most that was held, while the tables were made or while the search ran. At the end stands what was quickest
in each memory, of what proved most. What does not fit is said and left out.
"""

import argparse
import gc
import json
import time
from dataclasses import asdict, dataclass, replace
from statistics import fmean, median

import numpy as np
import torch

import undershoot as us
from undershoot.arrays import States
from undershoot.errors import GaveOut, SpaceTooLarge
from undershoot.guarantees import OptimalityKind
from undershoot.heuristics.device_patterns import DevicePatterns, made_on_device
from undershoot.kernels.scrambles import scramble
from undershoot.pattern_tables.sets import names_of_sets, pattern_set
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.device import depth_first
from undershoot.search.device.depth_first import deepen_on_device
from undershoot.search.results import Result

SETS = {
    "cube-3x3": [
        "corners+6+6+inverse",
        "corners+7+7",
        "corners+7+7+inverse",
        "corners+7+7+symmetric+inverse",
        "corners+8+8+inverse",
        "corners+8+8+symmetric+inverse",
        "corners+9+9+inverse",
        "corners+9+9+symmetric+inverse",
    ],
    "tiles-4x4": ["5-5-5+reflected", "6-6-3+reflected", "7-8+reflected"],
    "tiles-5x5": ["5-5-5-5-4+reflected", "6-6-6-6+reflected"],
}
DEEP = us.SearchOptions(algorithm=us.Algorithm.IDA)
WARM_WALK, WARM_SECONDS = 14, 20.0


@dataclass(frozen=True)
class Row:
    """One set with so many looks."""

    set: str
    later: int
    bytes: int
    """Of its tables."""
    peak: int
    """The most that was held at any time."""
    making: float
    """Seconds."""
    states: int
    proven: int
    median: float
    mean: float
    longest: float
    children: float
    """On average."""
    rate: float
    """Children a second."""

    def cells(self) -> list[str]:
        return [
            self.set,
            str(self.later),
            f"{self.bytes / 1e9:.2f}",
            f"{self.peak / 1e9:.2f}",
            f"{self.making:.1f}",
            f"{self.proven} of {self.states}",
            *(f"{seconds:.3f}" for seconds in (self.median, self.mean, self.longest)),
            f"{self.children:.4g}",
            f"{self.rate / 1e9:.3f}",
        ]


HEADINGS = (
    "set | later sums | tables GB | at most GB | making s | proven | median s | mean s | longest s | children | 10^9 children/s"
)


def held(device: str) -> int:
    """The most bytes that were held since the last time, on CUDA."""
    if device == "cpu":
        return 0
    torch.cuda.synchronize()
    most = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return int(most)


def measure(puzzle: Puzzle, name: str, states: States, arguments: argparse.Namespace) -> list[Row]:
    """A row for each number of later sums; the tables are gone afterwards."""
    gc.collect()
    if arguments.device != "cpu":
        torch.cuda.empty_cache()
    held(arguments.device)
    began = time.perf_counter()
    try:
        heuristic = made_on_device(puzzle, pattern_set(puzzle, name), arguments.device, later=max(arguments.later))
    except (SpaceTooLarge, GaveOut) as refusal:
        print(f"{name}: {refusal}", flush=True)
        return []
    making_peak, making = held(arguments.device), time.perf_counter() - began
    rows = []
    numbers = sorted({min(later, len(heuristic.sums) - heuristic.first) for later in arguments.later})
    for later in numbers:
        used = replace(heuristic, sums=heuristic.sums[: heuristic.first + later])
        results = searched(puzzle, states, used, arguments)
        peak = max(making_peak, held(arguments.device))
        rows.append(row_of(name, later, used.bytes, peak, making, results))
        print(" | ".join(rows[-1].cells()), flush=True)
    return rows


def searched(puzzle: Puzzle, states: States, heuristic: DevicePatterns, arguments: argparse.Namespace) -> list[Result]:
    """One after another, as many as the time allows; compiled first."""
    warm = scramble(puzzle.table, np.array([WARM_WALK]), seed=1).states
    deepen_on_device(puzzle, warm, heuristic, replace(DEEP, max_seconds=WARM_SECONDS))
    if arguments.profile:
        show_kernels(puzzle, states[:1], heuristic)
    results, until = list[Result](), time.perf_counter() + arguments.seconds
    for k in range(len(states)):
        left = until - time.perf_counter()
        if left <= 0:
            break
        results += deepen_on_device(puzzle, states[k : k + 1], heuristic, replace(DEEP, max_seconds=left))
    return results


def on_cores(puzzle: Puzzle, states: States, arguments: argparse.Namespace) -> None:
    """The same states on the cores, by the default set, one after another."""
    heuristic = us.patterns(puzzle)
    us.solve_many(puzzle, states[:1], heuristic, replace(DEEP, max_seconds=1.0), threads=arguments.cores)
    results, until = list[Result](), time.perf_counter() + arguments.seconds
    for k in range(len(states)):
        left = until - time.perf_counter()
        if left <= 0:
            break
        results += us.solve_many(puzzle, states[k : k + 1], heuristic, replace(DEEP, max_seconds=left), threads=arguments.cores)
    name = f"{heuristic.set_name} on {arguments.cores} cores"
    print(" | ".join(row_of(name, 0, 0, 0, 0.0, results).cells()), flush=True)


def row_of(name: str, later: int, size: int, peak: int, making: float, results: list[Result]) -> Row:
    seconds, children = [result.seconds for result in results], [result.generated for result in results]
    proven = sum(result.optimality.kind is OptimalityKind.PROVEN for result in results)
    rate = sum(children) / max(1e-9, sum(seconds))
    return Row(
        name,
        later,
        size,
        peak,
        making,
        len(results),
        proven,
        median(seconds),
        fmean(seconds),
        max(seconds),
        fmean(children),
        rate,
    )


def best_in(rows: list[Row], memory: float) -> Row | None:
    """The quickest of what fits into so many bytes and proved most."""
    fitting = [row for row in rows if row.peak <= memory]
    most = max((row.proven for row in fitting), default=0)
    return min((row for row in fitting if row.proven == most), key=lambda row: row.mean, default=None)


def show_kernels(puzzle: Puzzle, state: States, heuristic: DevicePatterns) -> None:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        deepen_on_device(puzzle, state, heuristic, replace(DEEP, max_seconds=1.0))
    table = profiler.key_averages()
    print(table.table(sort_by="self_device_time_total", row_limit=22, max_name_column_width=70))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("puzzle", nargs="?", default="cube-3x3")
    parser.add_argument("--sets", nargs="*", help="all that are known here if not given")
    parser.add_argument("--later", type=int, nargs="*", default=[0, 4, 8, 16, 24, 48, 96])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--walk", type=int, default=0)
    parser.add_argument("--hardest-of", type=int, default=0)
    parser.add_argument("--cores", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0, help="for all states of a row")
    parser.add_argument("--memories", type=float, nargs="*", default=[16, 24, 40, 80, 140], help="GB")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--chunk", type=int)
    parser.add_argument("--out", help="write all rows, as JSON")
    parser.add_argument("--profile", action="store_true", help="print the kernels that take longest, too")
    return parser.parse_args()


def main() -> None:
    arguments = parsed()
    puzzle = us.puzzle(arguments.puzzle)
    if arguments.chunk:
        depth_first.CHUNK[arguments.device] = arguments.chunk
    if arguments.walk:
        states = scramble(puzzle.table, np.full(arguments.count, arguments.walk), seed=19).states
    else:
        states = puzzle.sample(max(arguments.count, arguments.hardest_of), seed=19)
        if arguments.hardest_of:
            states = states[np.argsort(-puzzle.base_heuristic(states), kind="stable")[: arguments.count]]
    where = "the processor" if arguments.device == "cpu" else torch.cuda.get_device_name()
    print(f"{puzzle.name}, {where}, torch {torch.__version__}\n{HEADINGS}", flush=True)
    if arguments.cores:
        on_cores(puzzle, states, arguments)
    rows = list[Row]()
    for name in arguments.sets or SETS.get(puzzle.name) or names_of_sets(puzzle):
        rows += measure(puzzle, name, states, arguments)
        if arguments.out:
            with open(arguments.out, "w") as file:
                json.dump([asdict(row) for row in rows], file, indent=1)
    print("\nGB | best set | later sums | proven | median s | mean s")
    for memory in arguments.memories:
        best = best_in(rows, memory * 1e9)
        if best is not None:
            cells = (f"{memory:g}", best.set, best.later, f"{best.proven} of {best.states}")
            print(*cells, f"{best.median:.3f}", f"{best.mean:.3f}", sep=" | ")


if __name__ == "__main__":
    main()
