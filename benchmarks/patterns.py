"""Pattern tables and IDA*, beside a program that was written by hand for the 15-puzzle alone and is timed in the same run.

    python benchmarks/patterns.py [PART ...] [--json]

Parts: sliding (the default: IDA* against `sliding.cpp`, which is compiled where g++ is found), threads, seven-eight,
published, cube, others, one-core, tables. Seconds of the processor on one core unless a row says otherwise, best of three
for `sliding`.
Tables come from the cache if they are there; `tables` makes them again. `children` counts every state that is made, as
`generated` does.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import undershoot as us
from undershoot.arrays import States
from undershoot.guarantees import OptimalityKind
from undershoot.heuristics.patterns import PatternHeuristic
from undershoot.pattern_tables.making import make_entries
from undershoot.pattern_tables.sets import pattern_set
from undershoot.pattern_tables.tables import fold
from undershoot.pattern_tables.verification import verify_entries
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.ida import solve_by_deepening
from undershoot.search.options import Algorithm, SearchOptions
from undershoot.search.results import Result

BOARDS = 100
EASY = 46
"""Boards of at most this cost are searched with Manhattan distance, which takes long for others."""
ROUNDS = 3


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    ours: float
    unit: str
    reference: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.reference is None else self.ours / self.reference


class Reference:
    """The program of `sliding.cpp`."""

    def __init__(self, folder: str) -> None:
        self.program = Path(folder) / "sliding"
        source = Path(__file__).parent / "sliding.cpp"
        subprocess.run(["g++", "-O3", "-march=native", "-std=c++17", source, "-o", self.program], check=True)

    def run(self, how: str, states: States) -> tuple[float, int, float]:
        """Seconds of its searches, their children, and the seconds in which it made its tables."""
        boards = "".join(" ".join(map(str, state)) + "\n" for state in states.tolist())
        done = subprocess.run([self.program, how], input=boards, capture_output=True, text=True, check=True)
        made = [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("made")]
        rows = [line.split() for line in done.stdout.splitlines() if not line.startswith("made")]
        return sum(float(row[2]) for row in rows), sum(int(row[1]) for row in rows), sum(made)


def searched(puzzle: Puzzle, states: States, heuristic: Any, threads: int = 1) -> tuple[float, list[Result]]:
    """Seconds of the processor, or of the clock for several threads; everything is compiled before."""
    solve_by_deepening(puzzle, puzzle.table.goals[:1], heuristic, SearchOptions(), threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    began = clock()
    results = solve_by_deepening(puzzle, states, heuristic, SearchOptions(), threads)
    seconds = clock() - began
    assert all(result.optimality.kind is OptimalityKind.PROVEN for result in results)
    return seconds, results


def without_correction(heuristic: PatternHeuristic) -> Any:
    """The same values, without BPMX: the same children as a search that does not know of it."""

    class Plain(PatternHeuristic):
        is_consistent = True

    return Plain(heuristic.set_name, heuristic.pieces, heuristic.sums, heuristic.tables)


def sliding() -> Iterator[Row]:
    """The 15-puzzle against the program."""
    puzzle = us.puzzle("tiles-4x4")
    boards = puzzle.sample(BOARDS, seed=1)
    plain, mirrored = us.patterns(puzzle, "6-6-3"), us.patterns(puzzle, "6-6-3+reflected")
    costs = [result.cost or 0 for result in solve_by_deepening(puzzle, boards, mirrored, SearchOptions())]
    easy = boards[np.array(costs) <= EASY]
    with tempfile.TemporaryDirectory() as folder:
        try:
            program: Reference | None = Reference(folder)
        except (OSError, subprocess.CalledProcessError):
            program = None
            print("g++ is not there: no reference")
        cases: list[tuple[str, str, States, Any]] = [
            ("Manhattan", "manhattan", easy, us.heuristic(puzzle, "base")),
            ("6-6-3", "sums", boards, plain),
            ("6-6-3, reflected", "reflected", boards, mirrored),
        ]
        for name, how, states, heuristic in cases:
            least, least_theirs, theirs = float("inf"), float("inf"), 0
            ours = [0, 0]
            for _ in range(ROUNDS):
                if program is not None:
                    seconds, theirs, _ = program.run(how, states)
                    least_theirs = min(least_theirs, seconds)
                seconds, results = searched(puzzle, states, heuristic)
                least, ours[0] = min(least, seconds), sum(result.generated for result in results)
            if isinstance(heuristic, PatternHeuristic):
                _, results = searched(puzzle, states, without_correction(heuristic))
                ours[1] = sum(result.generated for result in results)
            same = "" if program is None else f"; {ours[1] or ours[0]:,} without BPMX, the program {theirs:,}"
            yield Row(
                f"IDA*, {name}, {len(states)} boards", least, "s", None if program is None else least_theirs,
                f"{ours[0]:,} children{same}",
            )  # fmt: skip
            rate = None if program is None else theirs / least_theirs / 1e6
            yield Row(f"IDA*, {name}", ours[0] / least / 1e6, "M children/s", rate)


def threads() -> Iterator[Row]:
    """One hard instance on one thread and on two, by the clock."""
    puzzle = us.puzzle("tiles-4x4")
    heuristic = us.heuristic(puzzle, "patterns:6-6-3+reflected")
    boards = puzzle.sample(1000, seed=2)
    results = solve_by_deepening(puzzle, boards, heuristic, SearchOptions(), 2)
    hardest = int(np.argmax([result.generated for result in results]))
    one, two = (min(searched(puzzle, boards[[hardest]], heuristic, count)[0] for _ in range(ROUNDS)) for count in (1, 2))
    yield Row("hardest of 1,000 boards: one thread", one, "s", note=f"{results[hardest].generated:,} children")
    yield Row("the same: two threads", two, "s", one, "the ratio is to one thread")


def seven_eight() -> Iterator[Row]:
    """1,000 boards with the largest set."""
    puzzle = us.puzzle("tiles-4x4")
    heuristic = us.patterns(puzzle, "7-8+reflected")
    boards = puzzle.sample(1000, seed=3)
    seconds, results = min((searched(puzzle, boards, heuristic) for _ in range(ROUNDS)), key=lambda pair: pair[0])
    yield Row("7-8, reflected: an instance", 1000 * seconds / len(boards), "ms")
    yield Row("7-8, reflected: mean children", statistics.mean(result.generated for result in results), "")
    _, results = searched(puzzle, boards, without_correction(heuristic))
    yield Row("the same, without BPMX", statistics.mean(result.generated for result in results), "")
    yield Row("mean cost", statistics.mean(result.cost or 0 for result in results), "moves")


def published() -> Iterator[Row]:
    """What Korf and Felner (2002) give for sets of the 15-puzzle: the mean of h over 1,000 boards, and of the children."""
    puzzle = us.puzzle("tiles-4x4")
    boards = puzzle.sample(1000, seed=3)
    yield Row("Manhattan: mean h", float(us.heuristic(puzzle, "base")(boards).mean()), "moves")
    for name in ("5-5-5+reflected", "6-6-3+reflected", "7-8+reflected"):
        heuristic = us.patterns(puzzle, name)
        seconds, results = searched(puzzle, boards, heuristic)
        yield Row(f"{name}: mean h", float(heuristic(boards).mean()), "moves")
        children = statistics.mean(result.generated for result in results)
        yield Row(f"{name}: mean children", children, "", note=f"{1000 * seconds / len(boards):.1f} ms each")


def cube() -> Iterator[Row]:
    """The 3x3 with corners and two sets of seven edges."""
    puzzle = us.puzzle("cube-3x3")
    heuristic = us.heuristic(puzzle, "patterns:corners+7+7")
    scrambles = us.scramble(puzzle.table, np.full(20, 14), seed=4).states
    seconds, results = searched(puzzle, scrambles, heuristic)
    yield Row("3x3, 20 scrambles of 14 turns", sum(result.generated for result in results) / seconds / 1e6, "M children/s")
    spent = []
    for state in scrambles:
        spent.append(searched(puzzle, state[None], heuristic, 2)[0])
    yield Row("the same, each on two threads: median", statistics.median(spent), "s", note=f"longest {max(spent):.1f} s")


def others() -> Iterator[Row]:
    """Puzzles of other kinds, with the sets they get without being asked."""
    pyraminx = str(Path(__file__).parent.parent / "examples" / "pyraminx.toml")
    for name, depth in (("topspin-12-4", None), ("pancake-20", None), ("tiles-5x5", 60), (pyraminx, None)):
        puzzle = us.puzzle(name)
        heuristic = us.heuristic(puzzle, "base" if name.startswith("pancake") else "patterns")
        states = puzzle.sample(20, seed=5) if depth is None else us.scramble(puzzle.table, np.full(20, depth), seed=5).states
        options = SearchOptions(algorithm=Algorithm.AUTO)
        us.solve(puzzle, puzzle.table.goals[:1], heuristic, options)
        spent, costs = [], []
        for state in states:
            began = time.perf_counter()
            result = us.solve(puzzle, state[None], heuristic, options)
            spent.append(time.perf_counter() - began)
            assert result.optimality.kind is OptimalityKind.PROVEN
            costs.append(result.cost or 0)
        drawn = "uniform states" if depth is None else f"scrambles of {depth} moves"
        note = f"longest {max(spent):.2f} s; costs {min(costs)} to {max(costs)}; {heuristic.name}"
        yield Row(f"{puzzle.name}, 20 {drawn}: median", statistics.median(spent), "s", note=note)


def one_core() -> Iterator[Row]:
    """The tables of 6-6-3 on one core, as the program makes them; seconds of the processor."""
    puzzle = us.puzzle("tiles-4x4")
    make_entries(pattern_set(puzzle, "2-13").patterns[0], 1)  # compiled by now
    with tempfile.TemporaryDirectory() as folder:
        try:
            theirs: float | None = Reference(folder).run("sums", puzzle.table.goals)[2]
        except (OSError, subprocess.CalledProcessError):
            theirs = None
    began = time.process_time()
    for pattern in pattern_set(puzzle, "6-6-3").patterns:
        make_entries(pattern, 1)
    yield Row("tiles-4x4 6-6-3: made on one core", time.process_time() - began, "s", theirs)


def tables() -> Iterator[Row]:
    """Making and verifying on all cores, by the clock."""
    sets = [("tiles-4x4", "6-6-3"), ("cube-3x3", "corners+6+6"), ("cube-3x3", "7"), ("tiles-4x4", "7-8")]
    for name, chosen in sets:
        puzzle = us.puzzle(name)
        total = 0.0
        small = pattern_set(puzzle, "2-13" if name == "tiles-4x4" else "2").patterns[0]
        verify_entries(small, make_entries(small))  # compiled by now
        by_size = {len(pattern.followed): pattern for pattern in pattern_set(puzzle, chosen).patterns}
        for pattern in by_size.values() if name == "cube-3x3" else pattern_set(puzzle, chosen).patterns:
            began = time.perf_counter()
            entries = make_entries(pattern)
            made = time.perf_counter()
            verify_entries(pattern, entries)
            done = time.perf_counter()
            kept = fold(pattern, entries)
            mean = float(np.bincount(kept, minlength=256)[:255] @ np.arange(255) / (kept < 255).sum())
            total += made - began
            note = f"verified in {done - made:.1f} s; {len(entries):,} entries, mean {mean:.3f}"
            yield Row(f"{name} {chosen}: {len(pattern.followed)} pieces made", made - began, "s", note=note)
        yield Row(f"{name} {chosen}: made, all", total, "s")


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    "sliding": sliding,
    "threads": threads,
    "seven-eight": seven_eight,
    "published": published,
    "cube": cube,
    "others": others,
    "one-core": one_core,
    "tables": tables,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["sliding"], help=", ".join(PARTS))
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    rows = []
    for part in chosen.parts:
        for row in PARTS[part]():
            rows.append({"what": row.what, "ours": row.ours, "unit": row.unit, "reference": row.reference, "ratio": row.ratio})
            if not chosen.json:
                beside = "" if row.reference is None else f"   reference {row.reference:.3f}, ratio {row.ratio:.2f}"
                print(
                    f"{row.what:48} {row.ours:10.3f} {row.unit}{beside}{'   (' + row.note + ')' if row.note else ''}",
                    flush=True,
                )
    if chosen.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
