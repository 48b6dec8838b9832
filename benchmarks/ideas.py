"""What each idea brings: the certified mean of h over the whole space, with and without it, after the same training.

    python benchmarks/ideas.py cube-2x2 [--recipe exact|label-free] [--steps 4000] [--device cuda] [--only NAME ...] [--json]

Every row is the named recipe with the settings shown; all networks end as ones of whole numbers. `certified` is the mean of h
after `exhaustive` calibration, rounded up as the puzzle allows; `1 % listed` that after `exceptions`.
"""

import argparse
import json
import os
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

import undershoot as us
from undershoot.calibration.catalogue import Wanted, calibrate
from undershoot.guarantees import Rounding
from undershoot.heuristics.calibrated import CalibratedHeuristic
from undershoot.heuristics.neural import Network, NeuralHeuristic
from undershoot.heuristics.survey import survey
from undershoot.heuristics.whole_numbers import to_whole_numbers
from undershoot.training.loop import train
from undershoot.training.recipes import recipe

IDEAS: dict[str, dict[str, list[str]]] = {
    "exact": {
        "all": [],
        "states as they are, not canonical": ["canonical=false"],
        "pieces, not pairs": ["encoding=pieces"],
        "the paper's inputs": ["encoding=cells", "canonical=false"],
        "one number, not levels": ["levels=0"],
        "no penalty": ["overestimate_penalty=1"],
        "the full penalty from the start": ["penalty_ramp=[0, 0]"],
        "made whole afterwards": ["whole_numbers_from=1"],
        "constant learning rate": ["schedule=constant"],
        "batches of 8,192, an eighth of the steps": ["batch=8192", "steps=EIGHTH"],
    },
    "label-free": {
        "all": [],
        "targets renewed to the end": ["last_renewal=1"],
        "penalty from the start, targets renewed": ["last_renewal=1", "penalty_ramp=[0, 0]"],
        "one number, not levels": ["levels=0", "snap_parity=false"],
        "values of either parity": ["snap_parity=false"],
        "batches of 8,192, an eighth of the steps": ["batch=8192", "steps=EIGHTH"],
        "half from the ball of radius 6": ["exact_share=0.5", "exact_radius=6"],
    },
}


def row(name: str, puzzle: us.Puzzle, kind: str, settings: list[str]) -> dict[str, Any]:
    """Train, calibrate, look at every state."""
    plan = recipe(puzzle, kind).with_settings(settings)
    plan = replace(plan, curriculum=replace(plan.curriculum, interval=10 * plan.steps))  # no searches on the way
    began = time.perf_counter()
    trained = train(puzzle, plan)
    seconds = time.perf_counter() - began
    encoding = puzzle.encoded(plan.encoding, plan.canonical)
    network = trained.network
    if isinstance(network, Network):
        network = to_whole_numbers(network, encoding, puzzle.sample(10_000, 1))
    raw = NeuralHeuristic(puzzle, network, own_encoding=encoding)
    rounding = Rounding.PARITY if puzzle.has_cost_parity else Rounding.INTEGER
    threads = os.cpu_count() or 1
    found: dict[str, Any] = {"idea": name, "settings": settings, "seconds": seconds, "steps": plan.steps, "batch": plan.batch}
    for column, method in (("certified", "exhaustive"), ("one_percent_listed", "exceptions")):
        calibration = calibrate(raw, method, Wanted(rounding=rounding, listed=0.01, threads=threads))
        over = survey(CalibratedHeuristic(raw, calibration), us.oracle(puzzle), threads)
        found |= {column: over.mean_h, "overestimates": found.get("overestimates", 0) + over.overestimates}
    found["weights"] = sum(int(np.prod(w.shape)) for w in network.weights)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("puzzle", nargs="?", default="cube-2x2")
    parser.add_argument("--recipe", choices=list(IDEAS), default="exact")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", nargs="*", help="rows whose names contain one of these")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    puzzle = us.puzzle(given.puzzle)
    common = [f"steps={given.steps}", f"device={given.device}", *(["tf32=true"] if given.device == "cuda" else [])]
    rows = []
    for name, settings in IDEAS[given.recipe].items():
        if given.only is None or any(part in name for part in given.only):
            changes = [setting.replace("EIGHTH", str(given.steps // 8)) for setting in settings]
            rows.append(row(name, puzzle, given.recipe, [*common, *changes]))
            if not given.json:
                shown = rows[-1]
                print(
                    f"{name:42} certified {shown['certified']:.4f}, 1 % listed {shown['one_percent_listed']:.4f}, "
                    f"{shown['weights']:,} weights, {shown['seconds']:.0f} s",
                    flush=True,
                )
    if given.json:
        device = torch.cuda.get_device_name() if given.device == "cuda" else "cpu"
        print(json.dumps({"puzzle": puzzle.name, "recipe": given.recipe, "device": device, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
