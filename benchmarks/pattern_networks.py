"""Networks on patterns of the 15-puzzle: how much of a table a network keeps, with every arrangement checked.

    python benchmarks/pattern_networks.py [--device cuda] [--part ideas|large|loop]

ideas: seven tiles, a small network, one change at a time; large: more steps, and eight tiles; loop: IDA* with networks that
were made by `large` and kept in --folder. Every figure is that of whole numbers, with thresholds under which no arrangement is
overestimated; `listed` may list some arrangements, where one lets at least so many others through.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

import undershoot as us
from undershoot.calibration.on_patterns import fitting
from undershoot.guarantees import PROVEN
from undershoot.heuristics.every_arrangement import check_every_arrangement
from undershoot.heuristics.learned_patterns import LearnedPatterns
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.heuristics.whole_numbers import WholeNetwork, to_whole_numbers
from undershoot.pattern_tables.looks import Look
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.residuals import Residuals, codes_of, encoding_of, residuals_of, shares_of
from undershoot.pattern_tables.sets import pattern_set
from undershoot.pattern_tables.tables import PatternTable, make_table
from undershoot.puzzles.pieces import pieces_of
from undershoot.search.ida import solve_by_deepening
from undershoot.search.options import SearchOptions
from undershoot.training.on_patterns import PatternLearner
from undershoot.training.recipe import Recipe, Schedule

BASE: dict[str, Any] = {
    "encoding": "pairs",
    "hidden": (64, 32, 32),
    "initial_scale": 2.0,
    "penalty_ramp": (0.0, 0.8),
    "overestimate_penalty": 30.0,
    "batch": 16384,
    "steps": 10_000,
    "learning_rate": 5e-3,
    "schedule": Schedule.COSINE,
    "weight_decay": 0.0,
    "hard_share": 0.25,
    "target_interval": 2000,
}
IDEAS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "no hard arrangements": {"hard_share": 0.0},
    "half of them hard": {"hard_share": 0.5},
    "an eighth of them hard": {"hard_share": 0.125},
    "learning rate 0.002": {"learning_rate": 2e-3},
    "learning rate 0.01": {"learning_rate": 1e-2},
    "penalty 1": {"overestimate_penalty": 1.0},
    "penalty 200": {"overestimate_penalty": 200.0},
    "single pieces instead of pairs": {"encoding": "pieces", "hidden": (512, 256, 128)},
    "32-32-32": {"hidden": (32, 32, 32)},
    "192-64-64": {"hidden": (192, 64, 64)},
    "four times the steps": {"steps": 40_000},
}
WORTHS = (None, 300.0, 30.0)
INSTANCES = 100


@dataclass(frozen=True)
class Trained:
    """A network, and what came of it."""

    figures: dict[str, Any]
    network: PatternNetwork


def trained(table: PatternTable, residuals: Residuals, settings: dict[str, Any], device: str) -> Trained:
    """By one recipe; seconds are those of training alone."""
    recipe = Recipe("tiles-4x4", **{**BASE, **settings}, device=device, tf32=device == "cuda")  # type: ignore[arg-type]
    pairs = recipe.encoding == "pairs"
    began = time.perf_counter()
    network = PatternLearner(table, residuals, recipe).train()
    seconds = time.perf_counter() - began
    how = table.pattern.folded
    some = np.random.default_rng(0).integers(0, int(how.size), 8192)
    encoding = encoding_of(table.pattern, pairs)
    whole = to_whole_numbers(network, encoding, np.concatenate([codes_of(how, int(number), 1) for number in some]))
    began = time.perf_counter()
    untried = PatternNetwork(table.pattern, whole, residuals, (0,) * whole.widths[-1], pairs)
    made = fitting(untried, table, device=device)
    fitted = {worth: made.fit(worth) for worth in WORTHS}
    figures: dict[str, Any] = {"bytes": sum(weight.size for weight in whole.weights), "seconds": round(seconds, 1)}
    for worth, fit in fitted.items():
        mean = check_every_arrangement(fit, table, device=device).mean
        figures["none listed" if worth is None else f"listed, worth {worth:g}"] = (round(mean, 3), len(fit.listed))
    figures["seconds to fit and check"] = round(time.perf_counter() - began, 1)
    return Trained(figures, fitted[None])


def of_tiles(count: int) -> Pattern:
    """The first tiles."""
    puzzle = us.puzzle("tiles-4x4")
    pieces = pieces_of(puzzle)
    tiles = [p for p in range(len(pieces)) if 0 < puzzle.table.goals[0, pieces.cells[p][0]] <= count]
    return Pattern(pieces, tuple(tiles), is_additive=True)


def ideas(device: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Seven tiles."""
    puzzle, table = us.puzzle("tiles-4x4"), make_table(of_tiles(7), device=device)
    residuals = residuals_of(table, puzzle.base_heuristic)
    yield "the table", {"bytes": int(table.pattern.folded.size), "mean": round(table.mean, 3)}
    for name, settings in IDEAS.items():
        yield name, trained(table, residuals, settings, device).figures


def large(device: str, folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The two patterns of 7-8, kept for `loop`."""
    puzzle = us.puzzle("tiles-4x4")
    for pattern in pattern_set(puzzle, "7-8").patterns:
        table = make_table(pattern, device=device)
        yield f"the table of {len(pattern.followed)} tiles", {"bytes": int(pattern.folded.size), "mean": round(table.mean, 3)}
        done = trained(table, residuals_of(table, puzzle.base_heuristic), {"steps": 100_000}, device)
        yield f"{len(pattern.followed)} tiles", done.figures
        whole, arrays = done.network.network, {"thresholds": np.array(done.network.thresholds)}
        for layer, (weight, bias, scale) in enumerate(zip(whole.weights, whole.biases, whole.scales, strict=True)):
            arrays |= {f"{layer}.weight": weight, f"{layer}.bias": bias, f"{layer}.scale": scale}
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, kept(folder, pattern))


def kept(folder: Path, pattern: Pattern) -> Path:
    return folder / f"{len(pattern.followed)}.safetensors"


def loop(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """On one core, beside the tables."""
    puzzle, networks = us.puzzle("tiles-4x4"), []
    chosen = pattern_set(puzzle, "7-8+reflected")
    for pattern in chosen.patterns:
        arrays = load_file(kept(folder, pattern))
        layers = range((len(arrays) - 1) // 3)
        weights, biases, scales = (tuple(arrays[f"{k}.{name}"] for k in layers) for name in ("weight", "bias", "scale"))
        residuals = Residuals(shares_of(pattern, puzzle.base_heuristic), 2, weights[-1].shape[1])
        thresholds = tuple(arrays["thresholds"].tolist())
        networks.append(PatternNetwork(pattern, WholeNetwork(weights, biases, scales), residuals, thresholds))
    sums = tuple(tuple(Look(network, symmetry) for network in networks) for symmetry in chosen.symmetries)
    learned = LearnedPatterns("networks", puzzle, chosen.pieces, sums, guarantee=PROVEN)
    boards = puzzle.sample(INSTANCES, seed=3)
    for name, heuristic in (("networks", learned), ("tables", us.patterns(puzzle, "7-8+reflected"))):
        solve_by_deepening(puzzle, puzzle.table.goals[:1], heuristic, SearchOptions())
        began = time.process_time()
        results = solve_by_deepening(puzzle, boards, heuristic, SearchOptions())
        seconds, children = time.process_time() - began, sum(result.generated for result in results)
        yield (
            f"IDA* with {name} 7-8, reflected",
            {
                "milliseconds each": round(1000 * seconds / INSTANCES, 1),
                "children each": round(children / INSTANCES),
                "million children a second": round(children / seconds / 1e6, 2),
                "mean cost": sum(result.cost or 0 for result in results) / INSTANCES,
            },
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--part", choices=("ideas", "large", "loop"), default="ideas")
    parser.add_argument("--folder", type=Path, default=Path("."))
    arguments = parser.parse_args()
    parts = {
        "ideas": lambda: ideas(arguments.device),
        "large": lambda: large(arguments.device, arguments.folder),
        "loop": lambda: loop(arguments.folder),
    }
    for name, figures in parts[arguments.part]():
        print(f"{name:32}{json.dumps(figures)}", flush=True)


if __name__ == "__main__":
    main()
