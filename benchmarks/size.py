"""A learned heuristic against the table of true costs, compressed to the same number of bytes.

    python benchmarks/size.py cube-2x2 [BUNDLE ...] [--json]

The packed table holds every state's true cost in as few whole bits as the farthest needs (4 for the 2x2 cube, 5 for the
8-puzzle), in the order of the states' keys. It is made smaller by keeping only the least cost of every block of neighbours in
that order. The same is done with a table of one state of every class of states that are images of one another (`by symmetry`);
what it takes to find a state's place in that one is not counted, to its advantage. Blocks are as small as the bytes of the
bundle allow.

BUNDLES are folders or names of bundles, of which weights, margins and listed states are counted, but not what says how to look
a state up, as little as with tables; without any, `small` and `learned` as far as they come with the package. All heuristics
are at least h0 and rounded up, to parity where the puzzle has one.
"""

import argparse
import json
from typing import Any

import numpy as np

import undershoot as us
from undershoot.arrays import AnyArray
from undershoot.bundles.bundle import SHIPPED
from undershoot.bundles.reading import read_bundle
from undershoot.heuristics.combined import best_rounding, round_up
from undershoot.heuristics.survey import survey
from undershoot.kernels.encodings import read
from undershoot.oracles.distance_table import DistanceTable


def packed_bytes(distances: DistanceTable, entries: int) -> int:
    """A table of so many entries, each as wide as the farthest state needs."""
    bits = int(len(distances.histogram) - 1).bit_length()
    return -(-entries * bits // 8)


def classes(puzzle: us.Puzzle, distances: DistanceTable, by_symmetry: bool) -> AnyArray:
    """int64[N]: the place of each state in a table."""
    if not by_symmetry:
        return np.argsort(np.lexsort(distances.keys.T[::-1]))
    encoding = puzzle.encoded("pieces", canonical=True)
    tokens = [read(encoding, distances.states_of_rows(k, k + 65_536)) for k in range(0, distances.states, 65_536)]
    packed = np.ascontiguousarray(np.concatenate(tokens).astype(">u2"))
    return np.asarray(np.unique(packed.view(f"S{2 * packed.shape[1]}")[:, 0], return_inverse=True)[1])


def block_minima(puzzle: us.Puzzle, distances: DistanceTable, place: AnyArray, most_bytes: int) -> tuple[int, float]:
    """The size of the blocks, and the mean of the heuristic: the least cost of a state's block."""
    cost = np.repeat(np.arange(len(distances.histogram)), distances.histogram)
    entries, block = int(place.max()) + 1, 1
    while packed_bytes(distances, -(-entries // block)) > most_bytes:
        block += 1
    least = np.full(-(-entries // block), 10**6)
    np.minimum.at(least, place // block, cost)
    states = distances.states_of_rows(0, distances.states)
    floor = us.heuristic(puzzle, "base")(states)
    rounding = best_rounding(puzzle)
    values = round_up(puzzle, rounding, np.maximum(least[place // block].astype(np.float32), floor), states)
    values[cost == 0] = 0
    if (values > cost).any():
        raise AssertionError("the compressed table overestimates")
    return block, float(values.mean(dtype=np.float64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("puzzle")
    parser.add_argument("bundles", nargs="*")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    puzzle = us.puzzle(given.puzzle)
    distances = us.oracle(puzzle)
    usual = [name for name in (f"{puzzle.name}-small", puzzle.name) if (SHIPPED / name).exists()]
    places = {name: classes(puzzle, distances, name == "by symmetry") for name in ("all states", "by symmetry")}
    packed = {name: packed_bytes(distances, int(place.max()) + 1) for name, place in places.items()}
    rows: list[dict[str, Any]] = []
    for name in given.bundles or usual:
        size = read_bundle(name).learned_bytes
        found = survey(read_bundle(name).heuristic, distances, 2)
        rows.append({"bundle": name, "bytes": size, "mean_h": found.mean_h})
        for kind, place in places.items():
            block, mean = block_minima(puzzle, distances, place, size)
            rows[-1][kind] = {"block": block, "mean_h": mean}
    if given.json:
        print(json.dumps({"puzzle": puzzle.name, "packed_bytes": packed, "mean_true": distances.mean, "rows": rows}, indent=2))
        return
    tables = ", ".join(f"{kind} {size:,} bytes" for kind, size in packed.items())
    print(f"{puzzle.name}: mean true cost {distances.mean:.4f}; packed tables: {tables}")
    for row in rows:
        print(f"{row['bundle']}: {row['bytes']:,} bytes, mean h {row['mean_h']:.4f}; tables of at most the same bytes:")
        for kind in places:
            print(f"    {kind}, minima of {row[kind]['block']}: mean h {row[kind]['mean_h']:.4f}")


if __name__ == "__main__":
    main()
