"""What each idea brings: the certified mean of h over the whole space, with and without it, after the same training.

    python benchmarks/ideas.py cube-2x2 [--recipe exact|label-free] [--steps 20000] [--seeds 1] [--device cuda]
                               [--only NAME ...] [--json]

Every row is the named recipe with one thing changed (`--json` has the settings); all networks end as ones of whole numbers.
`certified` is the mean of h after `exhaustive` calibration, rounded up as the puzzle allows; `1 % listed` that after
`exceptions`. Rows that begin with `float` are ideas that were not kept: networks of 7 layers that torch trains on single
pieces, one number, not rounded to whole weights.
"""

import argparse
import copy
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import undershoot as us
from undershoot.arrays import F32
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import calibrate
from undershoot.guarantees import Heuristic
from undershoot.heuristics.calibrated import CalibratedHeuristic
from undershoot.heuristics.combined import best_rounding, round_up
from undershoot.heuristics.neural import NeuralHeuristic
from undershoot.heuristics.survey import values_of_space
from undershoot.heuristics.whole_numbers import to_whole_numbers
from undershoot.kernels.tensor_encodings import TensorEncoding
from undershoot.training.loop import train
from undershoot.training.losses import mean_loss
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
        "constant learning rate": ["schedule=constant"],
        "batches of 8,192, an eighth of the steps": ["batch=8192", "steps={eighth}"],
    },
    "label-free": {
        "all": [],
        "levels, not one number": ["levels={levels}"],
        "no penalty": ["overestimate_penalty=1"],
        "the full penalty from the start": ["penalty_ramp=[0, 0]"],
        "the penalty only at the end": ["penalty_ramp=[0.85, 0.95]"],
        "the paper's discount at every step": ["target_discount=0.1"],
        "batches of 8,192, an eighth of the steps": ["batch=8192", "steps={eighth}"],
        "half from the ball of radius 6": ["exact_share=0.5", "exact_radius=6"],
    },
}
WIDTH = 384
THREADS = os.cpu_count() or 1
IMAGES_OF = 200_000
"""States on which the largest value over all images is looked at."""


class Block(nn.Module):
    """Two layers around which the input is passed, normalised before the first."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """float32[B, WIDTH]."""
        result: Tensor = x + self.layers(x)
        return result


def plain(inputs: int) -> nn.Module:
    """Seven layers."""
    hidden = [layer for _ in range(6) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    return nn.Sequential(nn.Linear(inputs, WIDTH), nn.ReLU(), *hidden, nn.Linear(WIDTH, 1))


def residual(inputs: int) -> nn.Module:
    """As many layers, in three blocks."""
    return nn.Sequential(nn.Linear(inputs, WIDTH), *(Block() for _ in range(3)), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1))


FLOATS: dict[str, tuple[Callable[[int], nn.Module], float]] = {
    "float: plain": (plain, 0.0),
    "float: residual, normalised": (residual, 0.0),
    "float: plain, weights averaged": (plain, 0.999),
}
"""The network, and how much of the average of the weights is kept at a step."""


def certified(puzzle: us.Puzzle, settings: list[str], kind: str) -> dict[str, Any]:
    """Train, calibrate, look at every state."""
    plan = recipe(puzzle, kind).with_settings(settings)
    plan = replace(plan, curriculum=replace(plan.curriculum, interval=10 * plan.steps))  # no searches on the way
    began = time.perf_counter()
    trained = train(puzzle, plan).network
    seconds = time.perf_counter() - began
    encoding = puzzle.encoded(plan.encoding, plan.canonical)
    network = to_whole_numbers(trained, encoding, puzzle.sample(10_000, 1))
    raw = NeuralHeuristic(puzzle, network, own_encoding=encoding)
    found: dict[str, Any] = {"seconds": seconds, "weights": sum(int(np.prod(w.shape)) for w in network.weights)}
    for column, method in (("certified", "exhaustive"), ("one_percent_listed", "exceptions")):
        fitted = calibrate(raw, method, Wanted(rounding=best_rounding(puzzle), listed=0.01, threads=THREADS))
        heuristic = CalibratedHeuristic(raw, fitted)
        values = values_of_space(heuristic, us.oracle(puzzle), THREADS)
        check_admissible(puzzle, values)
        found[column] = float(values.mean(dtype=np.float64))
        if method == "exhaustive":
            found |= {"values": values, "heuristic": heuristic}
    return found


def by_torch(puzzle: us.Puzzle, settings: list[str], make: Callable[[int], nn.Module], kept: float) -> dict[str, Any]:
    """The same for a network that is not one of ours, from true costs."""
    plan = recipe(puzzle, "exact").with_settings([*settings, "encoding=pieces", "levels=0"])
    distances, device = us.oracle(puzzle), plan.device
    encoding = TensorEncoding(puzzle.encoded(plan.encoding, plan.canonical), device)
    torch.manual_seed(plan.seed)
    began = time.perf_counter()
    states = torch.from_numpy(distances.states_of_rows(0, distances.states)).to(device)
    costs = np.repeat(np.arange(len(distances.histogram), dtype=np.float32), distances.histogram)
    known = torch.from_numpy(costs).to(device)
    network = make(encoding.width).to(device)
    average = copy.deepcopy(network)
    optimizer = torch.optim.AdamW(network.parameters(), lr=plan.learning_rate, weight_decay=0.0)
    for step in range(plan.steps):
        optimizer.param_groups[0]["lr"] = 0.5 * plan.learning_rate_at(step)  # what deeper networks bear
        rows = torch.randint(distances.states, (plan.batch,), device=device)
        values = network(encoding.dense(encoding.active(states[rows])))
        optimizer.zero_grad()
        torch.autograd.backward(mean_loss(values, known[rows], plan.penalty(step)))
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), network.parameters(), strict=True):
                slow.lerp_(fast, 1 - kept)
    with torch.no_grad():
        parts = [average(encoding.dense(encoding.active(some)))[:, 0] for some in torch.split(states, 1 << 14)]
    raw = torch.cat(parts).cpu().numpy()
    found: dict[str, Any] = {"seconds": time.perf_counter() - began, "weights": sum(p.numel() for p in network.parameters())}
    goals, low = int(distances.histogram[0]), values_of_space(us.heuristic(puzzle, "base"), distances, THREADS)
    scores = raw - costs
    for column, share in (("certified", 0.0), ("one_percent_listed", 0.01)):
        margin = np.partition(scores[goals:], -1 - int(share * len(scores)))[-1 - int(share * len(scores))]
        h = np.where(scores > margin, costs, np.maximum(low, raw - margin - 1e-3))
        h[:goals] = 0
        rounded = round_up(puzzle, best_rounding(puzzle), h.astype(np.float32), states.cpu().numpy())
        check_admissible(puzzle, rounded)
        found[column] = float(rounded.mean(dtype=np.float64))
    return found


def check_admissible(puzzle: us.Puzzle, values: F32) -> None:
    """No figure for what overestimates."""
    histogram = us.oracle(puzzle).histogram
    assert (values <= np.repeat(np.arange(len(histogram)), histogram)).all()


def over_images(puzzle: us.Puzzle, heuristic: Heuristic) -> float:
    """The mean over uniform states of the largest value over their images, all of which have the same cost."""
    states = puzzle.sample(IMAGES_OF, 0)
    largest = np.zeros(len(states), dtype=np.float32)
    for symmetry in puzzle.table.symmetries:
        np.maximum(largest, heuristic(symmetry.image(states)), out=largest)
    return float(largest.mean(dtype=np.float64))


def summary(name: str, settings: list[str], found: list[dict[str, Any]]) -> dict[str, Any]:
    """Of all seeds."""
    columns = ("certified", "one_percent_listed", "seconds")
    return {
        "idea": name,
        "settings": settings,
        "weights": found[0]["weights"],
        **{column: [one[column] for one in found] for column in columns},
    }


def show(row: dict[str, Any]) -> str:
    """A line of text."""
    certain, listed = row["certified"], row["one_percent_listed"]
    spread = f" ({min(certain):.3f} to {max(certain):.3f})" if len(certain) > 1 else ""
    more = f", 1 % listed {np.mean(listed):.4f}" if listed else ""
    return f"{row['idea']:42} certified {np.mean(certain):.4f}{spread}{more}, {row['weights']:,} weights" + (
        f", {np.mean(row['seconds']):.0f} s" if row["seconds"] else ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("puzzle", nargs="?", default="cube-2x2")
    parser.add_argument("--recipe", choices=list(IDEAS), default="exact")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", nargs="*", help="rows whose names contain one of these")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    puzzle = us.puzzle(given.puzzle)
    common = [f"steps={given.steps}", f"device={given.device}", *(["tf32=true"] if given.device == "cuda" else [])]
    rows: list[dict[str, Any]] = []

    def add(row: dict[str, Any]) -> None:
        rows.append(row)
        if not given.json:
            print(show(row), flush=True)

    def is_wanted(name: str) -> bool:
        return given.only is None or any(part in name for part in given.only)

    numbers = {"eighth": given.steps // 8, "levels": recipe(puzzle, "exact").levels}
    for name, changed in IDEAS[given.recipe].items():
        if not is_wanted(name):
            continue
        settings = [setting.format(**numbers) for setting in changed]
        changes = [*common, *settings]
        found = [certified(puzzle, [*changes, f"seed={seed}"], given.recipe) for seed in range(given.seeds)]
        add(summary(name, settings, found))
        extra = {"settings": [], "weights": len(found) * found[0]["weights"], "one_percent_listed": [], "seconds": []}
        if name == "all" and len(found) > 1:
            largest = np.maximum.reduce([one["values"] for one in found])
            add({**extra, "idea": f"the largest of all {len(found)}", "certified": [float(largest.mean(dtype=np.float64))]})
        if "canonical=false" in settings and puzzle.table.symmetries:
            means = [over_images(puzzle, one["heuristic"]) for one in found]
            add({**extra, "weights": found[0]["weights"], "idea": "the same, the largest over images", "certified": means})
    for name, (make, kept) in FLOATS.items() if given.recipe == "exact" else ():
        if is_wanted(name):
            add(summary(name, [], [by_torch(puzzle, [*common, f"seed={seed}"], make, kept) for seed in range(given.seeds)]))
    if given.json:
        device = torch.cuda.get_device_name() if given.device == "cuda" else "cpu"
        print(json.dumps({"puzzle": puzzle.name, "recipe": given.recipe, "device": device, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
