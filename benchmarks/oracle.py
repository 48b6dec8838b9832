"""Speed and memory of exploring, scrambling and starting up, on one core, after compilation.

    python benchmarks/oracle.py [--json]

Each space is explored in a process of its own, so that its peak of memory is its own. The reference, timed in the same
run, is a breadth-first search in plain Python: tuples, `operator.itemgetter` for the moves and a set.
"""

import argparse
import json
import subprocess
import sys
import time
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

import undershoot as us
from undershoot.oracles.breadth_first import explore

SPACES: list[tuple[str, int | None]] = [
    ("lights-out-5x5", None),
    ("tiles-3x3", None),
    ("cube-2x2", None),
    ("cube-2x2-qtm", None),
    ("cube-3x3", 6),
]
REFERENCE_STATES = 200_000
SCRAMBLED = ("tiles-3x3", "cube-2x2", "cube-3x3", "lights-out-5x5")


def reference_states_per_second() -> float:
    """Plain Python on the 2x2 cube, until it has seen enough states."""
    table = us.puzzle("cube-2x2").table
    moves = [itemgetter(*source.tolist()) for source in table.source[0]]
    goal = tuple(table.goals[0].tolist())
    began = time.perf_counter()
    seen, frontier, expanded = {goal}, [goal], 0
    while len(seen) < REFERENCE_STATES:
        found = []
        for state in frontier:
            expanded += 1
            for move in moves:
                child = move(state)
                if child not in seen:
                    seen.add(child)
                    found.append(child)
        frontier = found
    return expanded / (time.perf_counter() - began)


def memory_status(field: str) -> int:
    """Bytes from the kernel's view of this process: VmRSS, or VmHWM for the peak."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def measure(name: str, radius: int | None) -> dict[str, Any]:
    puzzle = us.puzzle(name)
    explore(puzzle, radius=1)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak that compiling left behind
    before = memory_status("VmRSS")
    began = time.perf_counter()
    table = explore(puzzle, radius)
    seconds = time.perf_counter() - began
    return {
        "puzzle": name,
        "radius": radius,
        "states": table.states,
        "seconds": seconds,
        "states_per_second": table.states / seconds,
        "bytes_per_state": (memory_status("VmHWM") - before) / table.states,
    }


def in_own_process(name: str, radius: int | None) -> dict[str, Any]:
    """The best of three runs."""
    command = [sys.executable, __file__, "--one", name, "" if radius is None else str(radius)]
    runs = [json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(3)]
    return dict(min(runs, key=lambda run: run["seconds"]))


def scramble_moves_per_second(name: str) -> float:
    table = us.puzzle(name).table
    depths = np.full(100_000, 14)
    us.scramble(table, depths[:10], 0)
    seconds = []
    for seed in range(3):
        began = time.perf_counter()
        us.scramble(table, depths, seed)
        seconds.append(time.perf_counter() - began)
    return float(depths.sum() / min(seconds))


def start_seconds(*command: str) -> float:
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, *command], capture_output=True, check=True)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        name, radius = arguments.one
        print(json.dumps(measure(name, int(radius) if radius else None)))
        return
    reference = reference_states_per_second()
    results: dict[str, Any] = {
        "reference_states_per_second": reference,
        "spaces": [in_own_process(name, radius) for name, radius in SPACES],
        "scramble_moves_per_second": {name: scramble_moves_per_second(name) for name in SCRAMBLED},
        "import_seconds": start_seconds("-c", "import undershoot"),
        "help_seconds": start_seconds("-m", "undershoot", "--help"),
    }
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    print(f"reference: plain Python breadth-first search of the 2x2, {reference:,.0f} states expanded per second\n")
    print(f"{'space':24}{'states':>12}{'seconds':>10}{'states/s':>14}{'bytes/state':>13}{'x reference':>13}")
    for row in results["spaces"]:
        name = row["puzzle"] + ("" if row["radius"] is None else f" within {row['radius']}")
        rate = row["states_per_second"]
        numbers = f"{row['states']:12,}{row['seconds']:10.2f}{rate:14,.0f}{row['bytes_per_state']:13.1f}"
        # Most states of a ball lie on its surface and are not expanded, so that the ratio would flatter.
        numbers += f"{rate / reference:13.1f}" if row["radius"] is None else f"{'-':>13}"
        print(f"{name:24}{numbers}")
    print("\nscrambles of 14 steps, million moves per second:")
    for name, rate in results["scramble_moves_per_second"].items():
        print(f"  {name:22}{rate / 1e6:6.1f}")
    print(f"\nimport undershoot {results['import_seconds']:.2f} s, undershoot --help {results['help_seconds']:.2f} s")


if __name__ == "__main__":
    main()
