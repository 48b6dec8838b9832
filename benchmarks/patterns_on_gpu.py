"""Make and verify large pattern tables on one device, and print how long that takes.

    PYTHONPATH=src python benchmarks/patterns_on_gpu.py [--only "7 tiles" ...] [--device cuda] [--eager] [--profile]

A small table comes first, so that the device is warm; compiling is timed by itself.
"""

import argparse
import time
import traceback
from collections.abc import Callable

import torch

import undershoot as us
from undershoot.pattern_tables.device import Work, fold_on, make_entries_on, verify_entries_on
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.sets import pattern_set

TABLES = {
    "3 tiles": ("tiles-4x4", "6-6-3", 2),
    "6 tiles": ("tiles-4x4", "6-6-3", 0),
    "7 tiles": ("tiles-4x4", "7-8", 0),
    "8 tiles": ("tiles-4x4", "7-8", 1),
    "corners": ("cube-3x3", "corners", 0),
    "6 edges": ("cube-3x3", "6", 0),
    "7 edges": ("cube-3x3", "7", 0),
    "8 edges": ("cube-3x3", "8", 0),
}
USUAL = ("7 tiles", "8 tiles", "7 edges", "8 edges")


def timed(device: str, run: Callable[[], object]) -> tuple[float, object]:
    """Seconds, and what came out."""
    wait(device)
    began = time.perf_counter()
    result = run()
    wait(device)
    return time.perf_counter() - began, result


def wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def chosen(name: str) -> Pattern:
    puzzle, sets, number = TABLES[name]
    return pattern_set(us.puzzle(puzzle), sets).patterns[number]


def compile_first(work: Work, device: str) -> float:
    """Seconds until everything that is fused is compiled."""
    if not work.fused:
        return 0.0
    numbers = torch.zeros(1, dtype=torch.int64, device=device)
    entries = torch.empty(work.size, dtype=torch.uint8, device=device)
    calls = [(work.back, work.number(1)), (work.due, entries)]
    if work.has_regions:
        calls.append((work.onwards, work.number(0)))

    def run() -> None:
        for batches, other in calls:
            batches(numbers, other)
            if batches.compiled is None:
                print("not fused: the compiler failed", flush=True)
                torch.compile(batches.function, dynamic=False, fullgraph=True)(numbers, other)  # says why

    return timed(device, run)[0]


def measure(name: str, device: str, chunk: int | None, fused: bool | None, profile: bool) -> None:
    pattern = chosen(name)
    work = Work(pattern, device, chunk, fused)
    first = compile_first(work, device)
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    making, entries = timed(device, lambda: make_entries_on(pattern, device, work=work))
    assert isinstance(entries, torch.Tensor)
    verifying, _ = timed(device, lambda: verify_entries_on(pattern, entries, work=work))
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else 0
    folding, _ = timed(device, lambda: fold_on(pattern, entries))
    places = int(pattern.ranking.choices[-1]) if pattern.has_cursor else 1
    counts = torch.zeros(256, dtype=torch.int64, device=device)
    for part in torch.split(entries, places << 22):
        least = part.view(-1, places).amin(1)
        counts += torch.bincount(least, minlength=256)
    histogram = counts[:255].tolist()
    mean = sum(cost * count for cost, count in enumerate(histogram)) / sum(histogram)
    largest = max(cost for cost, count in enumerate(histogram) if count)
    size = int(pattern.ranking.size)
    print(
        f"| {name} | {size:,} | {first:.1f} | {making:.2f} | {size / making / 1e9:.2f} | {verifying:.2f} | "
        f"{size / verifying / 1e9:.2f} | {folding:.2f} | {mean:.3f} | {largest} | {peak / 1e9:.1f} |",
        flush=True,
    )
    if profile:
        show_kernels(work, device, entries)


def show_kernels(work: Work, device: str, entries: torch.Tensor) -> None:
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiled

    pattern, on_cuda = work.pattern, device == "cuda"
    activities = [ProfilerActivity.CUDA] if on_cuda else [ProfilerActivity.CPU]
    runs: dict[str, Callable[[], object]] = {
        "verifying": lambda: verify_entries_on(pattern, entries, work=work),
        "making": lambda: make_entries_on(pattern, device, work=work),
    }
    for doing, run in runs.items():
        with profiled(activities=activities) as profiler:
            timed(device, run)
        print(doing)
        order = "self_device_time_total" if on_cuda else "self_cpu_time_total"
        print(profiler.key_averages().table(sort_by=order, row_limit=20, max_name_column_width=90))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=TABLES, default=USUAL, metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--chunk", type=int, help="steps at once; as many as are usual by default")
    fusing = parser.add_mutually_exclusive_group()
    fusing.add_argument("--eager", action="store_true", help="compile nothing")
    fusing.add_argument("--fused", action="store_true", help="compile in any case")
    parser.add_argument("--profile", action="store_true", help="print the kernels that take longest, too")
    arguments = parser.parse_args()
    fused = False if arguments.eager else True if arguments.fused else None
    warm = us.puzzle("tiles-3x3")
    small = pattern_set(warm, "5-3").patterns[0]
    make_entries_on(small, arguments.device, work=Work(small, arguments.device, fused=False))
    if arguments.device == "cuda":
        print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    print(
        "| table | entries | compiling, s | making, s | 10^9/s | verifying, s | 10^9/s | to the host, s | mean | largest | GB |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name in arguments.only:
        try:
            measure(name, arguments.device, arguments.chunk, fused, arguments.profile)
        except Exception:  # the others may work
            print(f"| {name} failed |", flush=True)
            traceback.print_exc()


if __name__ == "__main__":
    main()
