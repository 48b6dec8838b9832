"""Networks on patterns of the 15-puzzle: how much of a table a network keeps, with every arrangement checked.

    python benchmarks/pattern_networks.py [--device cuda]

Seven tiles, a small network, one change at a time. Every figure is that of whole numbers, with thresholds under which no
arrangement is overestimated; `listed` may list some arrangements, where one lets at least so many others through.
"""

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import undershoot as us
from undershoot.calibration.on_patterns import fitting
from undershoot.heuristics.every_arrangement import check_every_arrangement
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.heuristics.whole_numbers import to_whole_numbers
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.residuals import Residuals, codes_of, encoding_of, residuals_of
from undershoot.pattern_tables.tables import PatternTable, make_table
from undershoot.puzzles.pieces import pieces_of
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


def trained(table: PatternTable, residuals: Residuals, settings: dict[str, Any], device: str) -> dict[str, Any]:
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
    return figures


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
        yield name, trained(table, residuals, settings, device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    arguments = parser.parse_args()
    for name, figures in ideas(arguments.device):
        print(f"{name:32}{json.dumps(figures)}", flush=True)


if __name__ == "__main__":
    main()
