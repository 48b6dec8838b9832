"""The paper's Algorithm 1, with its line numbers, without the offset, which `calibration` fits."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from undershoot.errors import UndershootError
from undershoot.guarantees import Heuristic
from undershoot.heuristics.neural import Network
from undershoot.kernels.scrambles import derived_seed, scramble
from undershoot.puzzles.problem import Problem
from undershoot.search.options import SearchOptions
from undershoot.search.results import Status
from undershoot.search.solving import solve_many
from undershoot.training.checkpoints import Position
from undershoot.training.learner import block_steps, initialise, known_states, make_learner, renew_target
from undershoot.training.recipe import Loss, Recipe, check_given, recipe_from
from undershoot.training.runs import Run

Report = Callable[[Position], None]
EVALUATION = 1
"""Sets the states of evaluations apart from those of training."""


@dataclass(frozen=True)
class Trained:
    """The end of a run, or how far it came when it was stopped."""

    network: Network
    position: Position
    is_finished: bool


def train(
    puzzle: Problem,
    recipe: Recipe,
    run: Run | None = None,
    report: Report | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Trained:
    """Train a network, from the last checkpoint of `run` if there is one; metrics and checkpoints go there.

    report: called after every block of steps, on CUDA after every evaluation. should_stop: asked after every block; the run
    then ends with a checkpoint.

    Examples:
        >>> tiles = us.puzzle("tiles-2x3")
        >>> recipe = us.recipe(tiles).with_settings(["steps=50", "hidden=[16]"])
        >>> trained = us.train(tiles, recipe)
        >>> trained.position.step, trained.is_finished, trained.network.widths
        (50, True, (30, 16, 1))
    """
    check_given(puzzle, recipe, "us.train")
    check_recipe(puzzle, recipe)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with nullcontext() if run is None else run.alone():
            return _train(puzzle, recipe, run, report, should_stop, threads)
    finally:
        torch.set_num_threads(threads)


def _train(
    puzzle: Problem, recipe: Recipe, run: Run | None, report: Report | None, should_stop: Callable[[], bool], threads: int
) -> Trained:
    # Threads of torch wait for each other at every operation, which is slow where cores are shared, and these operations are
    # small. Our own share out whole blocks of states.
    learner = make_learner(puzzle, recipe, threads)
    initialise(learner, puzzle, recipe)  # line 1
    position = Position(depth=recipe.curriculum.first_depth)  # line 2
    if run is not None:
        position = run.resume(learner) or position
    learner.prepare()
    solve_many(puzzle, puzzle.table.goals[:1], learner.heuristic())  # compiles
    block = block_steps(puzzle, recipe)
    losses: list[tuple[int, Any]] = []
    began = time.perf_counter()
    is_stopped = should_stop()
    while position.step < recipe.steps and not is_stopped:
        steps = min(block, recipe.steps - position.step)
        loss = learner.learn(position.step, position.depth, steps)  # lines 3 to 9
        position.step += steps
        losses.append((position.step, loss))
        if position.step % recipe.target_interval == 0:
            renew_target(learner)  # lines 10 to 12
        is_due = position.step % recipe.curriculum.interval == 0
        is_stopped = should_stop()
        is_last = is_stopped or position.step >= recipe.steps
        if not (is_due or is_last or recipe.device == "cpu"):
            continue  # reading the losses would wait for the device
        position.loss = float(losses[-1][1].mean())
        now = time.perf_counter()
        position.seconds += now - began
        if not np.isfinite(position.loss):
            raise UndershootError(
                f"the loss is {position.loss} at step {position.step}; lower the learning rate: --set learning_rate=..."
            )
        if run is not None:
            run.write_losses(losses, position)
        losses.clear()
        if is_due:  # lines 13 to 18
            depth = position.depth
            position.solve_rate = solve_rate(puzzle, recipe, learner.heuristic(), depth, position.step, threads)
            position.solved_depth = depth
            if position.solve_rate >= recipe.curriculum.threshold and depth < recipe.curriculum.max_depth:
                position.depth += 1
            position.evaluation_seconds += time.perf_counter() - now
            if run is not None:
                run.write_evaluation(position)
        if run is not None and (is_due or is_last) and position.step % block == 0:
            run.save(learner, position)
        if report is not None:
            report(position)
        began = time.perf_counter()
    return Trained(learner.parameters.network(), position, position.step >= recipe.steps)


def solve_rate(puzzle: Problem, recipe: Recipe, heuristic: Heuristic, depth: int, step: int, threads: int = 1) -> float:
    """The share of scrambles of this depth that A* solves within the budget."""
    curriculum = recipe.curriculum
    seed = derived_seed(recipe.seed, step, EVALUATION)
    states = scramble(puzzle.table, np.full(curriculum.states, depth), seed, recipe.scrambles).states
    options = SearchOptions(max_expanded=curriculum.budget(depth))
    results = solve_many(puzzle, states, heuristic, options, threads=threads if recipe.device == "cpu" else 1)
    return sum(result.status is Status.SOLVED for result in results) / len(results)


def check_recipe(puzzle: Problem, recipe: Recipe) -> None:
    """Refuse a recipe that cannot be followed here."""
    if recipe.patterns:
        raise UndershootError(f'the recipe is for the patterns "{recipe.patterns}"; train on them with train_patterns')
    if recipe.loss is Loss.CROSS_ENTROPY:
        raise UndershootError("the loss cross-entropy is for networks on patterns; use --patterns, or --set loss=asymmetric")
    if recipe.hard_share:
        raise UndershootError(f"hard_share is {recipe.hard_share:g}; only on a pattern are hard states sought: leave it out")
    recipe_from(recipe.to_dict(), "the recipe")
    if recipe.puzzle != puzzle.name:
        raise UndershootError(f"the recipe is for {recipe.puzzle}, not for {puzzle.name}; change its puzzle")
    if recipe.device == "cuda" and not torch.cuda.is_available():
        raise UndershootError("the device is cuda, but torch finds none here; use --device cpu")
    puzzle.encoded(recipe.encoding, recipe.canonical)
    if recipe.levels and (recipe.target_discount % 1 or recipe.loss is not Loss.ASYMMETRIC):
        raise UndershootError(
            "levels are whole costs with a loss of their own; use --set target_discount=0 --set loss=asymmetric"
        )
    known = known_states(puzzle, recipe)
    if known is not None and recipe.levels and recipe.levels < len(known.histogram) - 1:
        largest = len(known.histogram) - 1
        raise UndershootError(f"levels is {recipe.levels}, but there are states at cost {largest}; use --set levels={largest}")
    deepest = np.array([recipe.curriculum.max_depth])
    scramble(puzzle.table, deepest, recipe.seed, recipe.scrambles)  # refuses depths that cannot be walked
