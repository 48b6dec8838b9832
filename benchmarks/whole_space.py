"""Train networks by named recipes and several seeds, and hold them against the true cost of every state.

    python benchmarks/whole_space.py --out runs/seeds [--seeds 5] [--workers 2] [--device cuda] [--only PUZZLE ...]

Prints a table for Markdown, and writes the figures of every run to OUT/figures.json. Runs that are there already are kept.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import undershoot as us

PUZZLES = ("lights-out-3x3", "lights-out-5x5", "tiles-3x3", "cube-2x2")
RECIPES = ("paper", "mse")


def run(folder: Path, puzzle: str, recipe: str, seed: int, device: str, threads: int) -> dict[str, Any]:
    """One training, unless it is there."""
    done = folder / f"{puzzle}-{recipe}-{seed}.json"
    if not done.exists():
        place = folder / f"{puzzle}-{recipe}-{seed}"
        command = [sys.executable, "-m", "undershoot", "train", puzzle, "--recipe", recipe, "--seed", str(seed)]
        command += ["--device", device, "--out", str(place), "--json"] + (["--resume"] if place.exists() else [])
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
        done.write_text(text)
        print(f"{puzzle} {recipe} {seed}", file=sys.stderr, flush=True)
    figures: dict[str, Any] = json.loads(done.read_text())
    kept = {key: value for key, value in figures.items() if isinstance(value, (int, float)) or key == "puzzle"}
    return kept | {
        "recipe_name": recipe,
        "seed": seed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--only", nargs="*", default=PUZZLES)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.only:
        us.oracle(us.puzzle(name))
    items = [(p, r, s) for p in arguments.only for r in RECIPES for s in range(arguments.seeds)]
    threads = max(1, (os.cpu_count() or 1) // arguments.workers)
    with ThreadPoolExecutor(arguments.workers) as pool:
        found = list(pool.map(lambda item: run(arguments.out, item[0], item[1], item[2], arguments.device, threads), items))
    (arguments.out / "figures.json").write_text(json.dumps(found, indent=1))
    print("| puzzle | recipe | depth reached | mean h | mean h* | sup(h - h*) | admissible, % of all states |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for puzzle in arguments.only:
        for recipe in RECIPES:
            rows = [row for row in found if (row["puzzle"], row["recipe_name"]) == (puzzle, recipe)]
            cells = [spread(rows, key) for key in ("depth", "mean_h", "mean_true", "supremum")]
            cells.append(spread([{"share": 100 * row["admissible_share"]} for row in rows], "share"))
            print(f"| {puzzle} | `{recipe}` | {' | '.join(cells)} |")


def spread(rows: list[dict[str, Any]], key: str) -> str:
    """Mean and standard deviation over seeds."""
    values = [row[key] for row in rows]
    deviation = stdev(values) if len(values) > 1 else 0.0
    return f"{fmean(values):.3f}" if deviation == 0 else f"{fmean(values):.3f} ± {deviation:.3f}"


if __name__ == "__main__":
    main()
