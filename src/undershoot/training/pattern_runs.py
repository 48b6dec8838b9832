"""Runs on a set of patterns: a network on each, one after another, each with checkpoints and metrics of its own."""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from undershoot.bundles.pattern_bundle import write_pattern_bundle
from undershoot.bundles.pattern_reading import read_pattern_bundle
from undershoot.errors import UndershootError
from undershoot.files import check_contents, copy_folder, free_place
from undershoot.heuristics.asked_networks import check_askable
from undershoot.heuristics.pattern_networks import MOST_LEVELS, PatternNetwork
from undershoot.heuristics.whole_numbers import to_whole_numbers
from undershoot.pattern_tables.cache import check_room, table_of
from undershoot.pattern_tables.looks import distinct_patterns
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.residuals import code_counts, residuals_of
from undershoot.pattern_tables.sets import PatternSet, pattern_set, piece_names
from undershoot.pattern_tables.tensors import TensorRanking
from undershoot.puzzles.problem import Problem
from undershoot.training.checkpoints import Position
from undershoot.training.label_free_patterns import LabelFreeLearner, residuals_by_moves
from undershoot.training.on_patterns import LevelLearner, PatternLearner, one_thread
from undershoot.training.recipe import Loss, Recipe, Targets, check_given, recipe_from
from undershoot.training.runs import Run

SEEN = 8192
"""Arrangements that set the ranges of whole numbers."""


@dataclass(frozen=True)
class PatternProgress:
    """How far a run on patterns has come."""

    pattern: str
    """The names of the pieces that it follows."""
    number: int
    """Of the pattern, from 1 on."""
    patterns: int
    """How many there are."""
    position: Position
    figures: dict[str, float]
    """See `LevelLearner.figures`, when they were last taken."""


@dataclass(frozen=True)
class TrainedPatterns:
    """The end of a run on patterns, or how far it came when it was stopped."""

    puzzle: Problem
    recipe: Recipe
    patterns: PatternSet
    networks: list[PatternNetwork]
    """Of whole numbers, with thresholds of 0: nothing is known of them."""
    parts: list[PatternProgress]
    is_finished: bool

    def save(self, folder: Path | str, command: str = "") -> None:
        """Write a bundle, of which nothing is known yet. command: what makes it again."""
        if not self.is_finished:
            raise UndershootError("the training has not ended, so there is nothing to save yet; go on with it")
        write_pattern_bundle(Path(folder), self.puzzle, self.patterns.name, self.networks, self.recipe, command)


Report = Callable[[PatternProgress], None]
TableProgress = Callable[[str, str, int, int], None]
"""Called with a pattern, what is being done to make its table, how much of it is done, and how much there is."""


def train_patterns(
    puzzle: Problem,
    recipe: Recipe,
    run: Run | None = None,
    report: Report | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    progress: TableProgress | None = None,
) -> TrainedPatterns:
    """Train a network on each pattern of the recipe's set, from the last checkpoints of `run` if there are any.

    Of patterns that a symmetry maps onto each other, on the first. report: called after every block of steps, on CUDA after
    every evaluation. should_stop: asked after every block; the run then ends with a checkpoint. progress: of tables that are
    made.

    Examples:
        >>> from pathlib import Path
        >>> tiles = us.puzzle("tiles-2x3")
        >>> rules = us.recipe(tiles, "exact", "1 2 / 3 4 5").with_settings(["steps=40", "batch=64", "hidden=[16]"])
        >>> trained = us.train_patterns(tiles, rules)
        >>> [len(network.pattern.followed) for network in trained.networks]
        [2, 3]
        >>> trained.save(Path("mine"))
        >>> print(us.load("mine").guarantee)
        nothing is known about overestimates
    """
    check_given(puzzle, recipe, "us.train_patterns")
    chosen = check_pattern_recipe(puzzle, recipe)
    patterns, names = distinct_patterns(chosen.patterns), piece_names(puzzle, chosen.pieces)
    networks: list[PatternNetwork] = []
    parts: list[PatternProgress] = []
    with one_thread(), nullcontext() if run is None else run.alone():
        for number, pattern in enumerate(patterns, start=1):
            name = name_of(pattern, names)
            of_pattern = replace(recipe, patterns=name)
            part = None if run is None else Run(run.folder / _folder(number), puzzle, of_pattern, resume=True)
            so_far = PatternProgress(name, number, len(patterns), Position(depth=_depth(recipe)), {})
            with nullcontext() if part is None else part.alone():
                learner = make_pattern_learner(puzzle, pattern, name, of_pattern, progress)
                so_far = _train(learner, so_far, part, report, should_stop)
            parts.append(so_far)
            if so_far.position.step < recipe.steps:
                return TrainedPatterns(puzzle, recipe, chosen, networks, parts, is_finished=False)
            networks.append(whole_network(learner))
    return TrainedPatterns(puzzle, recipe, chosen, networks, parts, is_finished=True)


def name_of(pattern: Pattern, names: Sequence[str]) -> str:
    """The names of its pieces."""
    return " ".join(names[piece] for piece in pattern.followed)


def _folder(number: int) -> str:
    return f"pattern-{number}"


def _depth(recipe: Recipe) -> int:
    """Of walks from the goal; 0 where arrangements are drawn from all."""
    return 0 if recipe.exact_share else recipe.curriculum.max_depth


def make_pattern_learner(
    puzzle: Problem, pattern: Pattern, name: str, recipe: Recipe, progress: TableProgress | None = None
) -> LevelLearner:
    """With the table as teacher, or from the moves alone."""
    if not recipe.exact_share:
        residuals = residuals_by_moves(pattern, puzzle.base_heuristic, recipe.levels)
        return LabelFreeLearner(pattern, residuals, recipe)

    def report(what: str, done: int, of: int) -> None:
        if progress is not None:
            progress(name, what, done, of)

    table = table_of(pattern, puzzle.name, progress=report)
    residuals = residuals_of(table, puzzle.base_heuristic)
    if recipe.levels:
        residuals = replace(residuals, levels=recipe.levels)
    return PatternLearner(table, residuals, recipe)


def _train(
    learner: LevelLearner, so_far: PatternProgress, run: Run | None, report: Report | None, should_stop: Callable[[], bool]
) -> PatternProgress:
    """The steps that are left on one pattern."""
    recipe, position, block = learner.recipe, so_far.position, learner.block
    if run is not None and (resumed := run.resume(learner)) is not None:
        position = resumed
    figures: dict[str, float] = {}
    losses: list[tuple[int, Any]] = []
    is_stopped = should_stop()
    if position.step < recipe.steps and not is_stopped:
        learner.prepare()
    began = time.perf_counter()
    while position.step < recipe.steps and not is_stopped:
        steps = min(block, recipe.steps - position.step)
        loss = learner.learn(position.step, steps)
        position.step += steps
        losses.append((position.step, loss))
        if position.step % recipe.target_interval == 0:
            learner.renew_target()
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
        if is_due:
            figures = learner.figures()
            position.evaluation_seconds += time.perf_counter() - now
            if run is not None:
                run.write_figures(position, figures)
        if run is not None and (is_due or is_last) and position.step % block == 0:
            run.save(learner, position)
        if report is not None:
            report(replace(so_far, position=position, figures=figures))
        began = time.perf_counter()
    return replace(so_far, position=position, figures=learner.figures())


def whole_network(learner: LevelLearner) -> PatternNetwork:
    """What was trained, in whole numbers, with thresholds of 0: uncalibrated."""
    ranking = TensorRanking(learner.pattern.folded)
    numbers = np.random.default_rng(learner.recipe.seed).integers(0, ranking.size, SEEN)
    codes = torch.stack(ranking.codes_of(torch.from_numpy(numbers)), dim=1).numpy().astype(np.uint8)
    whole = to_whole_numbers(learner.network(), learner.inputs, codes)
    pairs = learner.recipe.encoding == "pairs"
    return PatternNetwork(learner.pattern, whole, learner.residuals, (0,) * whole.widths[-1], pairs)


def finish(run: Run, trained: TrainedPatterns, command: str) -> tuple[bool, Path | None]:
    """Write the bundle. One of this recipe that is there, calibrated or not, is left as it is; any other is kept elsewhere.

    Returns whether it was written, and where the other is.
    """
    check_contents(run.folder)  # links may have come while it trained
    is_there = run.bundle.exists() and any(run.bundle.iterdir())
    if is_there and _is_of(run.bundle, trained.recipe):
        return False, None
    kept = free_place(run.folder / f"bundle-before-{trained.recipe.steps}") if is_there else None
    if kept is not None:
        copy_folder(run.bundle, kept)
    trained.save(run.bundle, command)
    return True, kept


def _is_of(bundle: Path, recipe: Recipe) -> bool:
    try:
        there = read_pattern_bundle(bundle, with_calibration=False)
    except UndershootError:
        return False
    where = {"device": recipe.device, "tf32": recipe.tf32}
    return {**there.recipe, **where} == {**recipe.to_dict(), **where}


def check_pattern_recipe(puzzle: Problem, recipe: Recipe) -> PatternSet:
    """Refuse a recipe that cannot be followed on patterns; returns its set."""
    recipe_from(recipe.to_dict(), "the recipe")
    if recipe.puzzle != puzzle.name:
        raise UndershootError(f"the recipe is for {recipe.puzzle}, not for {puzzle.name}; change its puzzle")
    if not recipe.patterns:
        raise UndershootError("the recipe names no set of patterns; give one with --patterns")
    if recipe.device == "cuda" and not torch.cuda.is_available():
        raise UndershootError("the device is cuda, but torch finds none here; use --device cpu")
    is_exact = recipe.exact_share == 1
    wrong = {
        f"encoding is {recipe.encoding}; searches ask networks on pairs of pieces, use pairs": recipe.encoding != "pairs",
        f"levels is {recipe.levels}; at most {MOST_LEVELS} are allowed": recipe.levels > MOST_LEVELS,
        "canonical is set; symmetries are looked through instead, leave it out": recipe.canonical,
        "loss is mse; use asymmetric or cross-entropy": recipe.loss is Loss.MSE,
        "targets are walks; use successors, or exact_share=1": recipe.targets is Targets.WALKS,
        f"exact_share is {recipe.exact_share:g}; use 1, the table as teacher, or 0": recipe.exact_share not in (0, 1),
        f"exact_radius is {recipe.exact_radius}; tables know all costs, leave it out": recipe.exact_radius > 0,
        f"target_discount is {recipe.target_discount:g}; costs are whole there, use 0": recipe.target_discount != 0,
        "hard_share needs the table, but exact_share is 0; use hard_share=0": recipe.hard_share > 0 and not is_exact,
        "levels is 0 and there is no table to count them by; use 16 or so": recipe.levels == 0 and not is_exact,
    }
    for what in [what for what, is_wrong in wrong.items() if is_wrong]:
        raise UndershootError(f"on patterns, {what}")
    chosen = pattern_set(puzzle, recipe.patterns)
    if any(len(pattern.followed) < 2 for pattern in chosen.patterns):
        raise UndershootError("networks see pairs of pieces, and a pattern of this set has one piece only; use another set")
    if chosen.with_inverse:
        raise UndershootError("networks on patterns are not asked about inverses; leave out +inverse")
    codes = max(max(code_counts(pattern.folded)) for pattern in chosen.patterns)
    check_askable(max(len(pattern.followed) for pattern in chosen.patterns), codes)
    if is_exact:
        check_room(chosen.patterns, puzzle.name)
    return chosen
