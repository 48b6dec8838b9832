"""Examples that are made when they are asked for: a small network is trained, calibrated, and a state found that shows it.

Nothing about them is written down: what the page says is what came out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from undershoot.arrays import States
from undershoot.bundles.bundle import Bundle
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import calibrate
from undershoot.errors import UndershootError
from undershoot.guarantees import Heuristic
from undershoot.heuristics.calibrated import CalibratedHeuristic
from undershoot.heuristics.neural import NeuralHeuristic
from undershoot.heuristics.survey import survey
from undershoot.oracles.distance_table import DistanceTable
from undershoot.puzzles import catalogue
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.solving import solve_many
from undershoot.studio.tasks import Tell
from undershoot.studio.tasks.subjects import distances_of
from undershoot.studio.tasks.watching import recorded, seen_by
from undershoot.training.loop import train
from undershoot.training.recipes import recipe

PUZZLE = "pancake-7"
"""Small, and with solutions of even and of odd cost: an estimate that is one too high can cost the optimum."""
MOST_SEEDS = 8
LABELS = 1000


@dataclass(frozen=True)
class Made:
    """A network that shows something, and where."""

    network: NeuralHeuristic
    wrong: Heuristic
    certified: CalibratedHeuristic
    state: States
    seed: int
    missed: int
    """Of how many states A* with `wrong` misses the optimum."""


def example(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """Recordings of A* from one state, with a heuristic that misses the optimum and with one that does not."""
    puzzle, is_offset = catalogue.puzzle(PUZZLE), arguments["example"] == "offset"
    distances = distances_of(puzzle)
    made = _make(puzzle, distances, is_offset, tell)
    over = survey(made.wrong, distances)
    if is_offset:
        assert isinstance(made.wrong, CalibratedHeuristic)
        name = "the paper's recipe and offset"
        fitted, needed = made.wrong.calibration.margin, made.certified.calibration.margin
        about = (
            f"Trained just now by the paper's recipe on {puzzle.name} (seed {made.seed}). Its equation gives the offset "
            f"{fitted:.3f} for {LABELS:,} scrambles; every state together asks for {needed:.3f}. (Values are rounded up to "
            "whole costs, which no estimate below the cost minds.)"
        )
    else:
        name = "squared error"
        about = f"Trained just now on {puzzle.name} with squared error (seed {made.seed})."
    missing = recorded(puzzle, made.state, made.wrong, name)
    sound = recorded(puzzle, made.state, made.certified, "the same network, certified")
    if missing["hidden"] is not None:
        sound["instead"] = seen_by(missing["hidden"], made.certified)
    about += (
        f" It is above the true cost on {over.overestimates:,} of {over.states:,} states, and A* with it misses the optimum "
        f"from {made.missed:,} states. The same network with the margin that every state was asked for never does."
    )
    return {
        "puzzle": PUZZLE,
        "text": about,
        "recordings": [missing, sound],
    }


def _make(puzzle: Puzzle, distances: DistanceTable, is_offset: bool, tell: Tell) -> Made:
    """The first seed with which it shows; that there is one is likely, but nothing makes it sure."""
    states, true_costs = distances.states_of_rows(0, distances.states), distances.true_costs(np.int64)
    for seed in range(MOST_SEEDS):
        tell({"text": f"training a small network, seed {seed}"})
        network = _train(puzzle, is_offset, seed)
        wanted = Wanted(n=LABELS, seed=seed)
        wrong: Heuristic = CalibratedHeuristic(network, calibrate(network, "scramble", wanted)) if is_offset else network
        certified = CalibratedHeuristic(network, calibrate(network, "exhaustive", wanted))
        tell({"text": "searching from every state"})
        results = solve_many(puzzle, states, wrong)
        gaps = np.array([(result.cost or 0) - true for result, true in zip(results, true_costs.tolist(), strict=True)])
        if (gaps > 0).any():
            # The largest miss, and of those the longest search: there is most to see.
            rank = gaps * 10**6 + np.array([min(result.expanded, 500) for result in results])
            row = int(np.argmax(rank))
            return Made(network, wrong, certified, states[row : row + 1], seed, int((gaps > 0).sum()))
    raise UndershootError(f"none of {MOST_SEEDS} networks that were trained missed an optimum on this machine; that is rare")


def _train(puzzle: Puzzle, is_offset: bool, seed: int) -> NeuralHeuristic:
    if is_offset:
        plan = recipe(puzzle, "paper").with_settings(["steps=3000", "hidden=[64]", "curriculum.first_depth=6", f"seed={seed}"])
    else:
        plan = recipe(puzzle, "mse").with_settings(["steps=2000", "hidden=[32]", "exact_share=0.5", f"seed={seed}"])
    trained = train(puzzle, plan)
    return Bundle(puzzle, trained.network, encoding=plan.encoding, canonical=plan.canonical).raw
