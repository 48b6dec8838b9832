"""Recipes by name: the paper's with the switches of its ablation, and stronger ones."""

import difflib
from dataclasses import replace
from pathlib import Path
from typing import Any

from undershoot.errors import SpaceTooLarge, UndershootError, what_came
from undershoot.kernels.plan import forward_plan
from undershoot.kernels.scrambles import deepest
from undershoot.oracles.cache import oracle
from undershoot.puzzles.problem import Problem, check_puzzle
from undershoot.training.recipe import Curriculum, Loss, Recipe, Schedule, read_recipe

PLAIN: dict[str, Any] = {"target_discount": 0.0, "floor_by_base": False}
STRONG: dict[str, Any] = {
    "target_discount": 0.0,
    "hidden": (192, 64, 64),
    "initial_scale": 2.0,
    "overestimate_penalty": 30.0,
    "batch": 1024,
    "steps": 40_000,
    "learning_rate": 2e-3,
    "schedule": Schedule.COSINE,
    "weight_decay": 0.0,
}
RECIPES: dict[str, tuple[dict[str, Any], str]] = {
    "paper": ({}, "the paper's: discounted targets at least h0, overestimates penalised"),
    "mse": ({**PLAIN, "loss": Loss.MSE}, "plain Bellman targets, squared error"),
    "operator": ({"loss": Loss.MSE}, "ablation: the paper's targets, squared error"),
    "loss": (PLAIN, "ablation: plain Bellman targets, overestimates penalised"),
    "exact": ({**STRONG, "exact_share": 1.0, "penalty_ramp": (0.0, 0.8)}, "levels of whole costs, from true costs"),
    "label-free": ({**STRONG, "penalty_ramp": (0.0, 0.95)}, "one number, from no true cost"),
    "guide": ({**STRONG, "loss": Loss.MSE}, "likewise, by squared error: to guide searches where nothing can be enumerated"),
}
ON_PATTERNS: dict[str, Any] = {
    "target_discount": 0.0,
    "encoding": "pairs",
    "hidden": (64, 32, 32),
    "initial_scale": 2.0,
    "overestimate_penalty": 30.0,
    "steps": 10_000,
    "learning_rate": 5e-3,
    "schedule": Schedule.COSINE,
    "weight_decay": 0.0,
}
PATTERN_RECIPES: dict[str, dict[str, Any]] = {
    "exact": {
        **ON_PATTERNS,
        "batch": 16384,
        "penalty_ramp": (0.0, 0.8),
        "exact_share": 1.0,
        "hard_share": 0.25,
        "target_interval": 2000,
    },
    "label-free": {**ON_PATTERNS, "batch": 4096, "penalty_ramp": (0.0, 0.95), "levels": 16},
}
"""On patterns: the table as teacher, with the target network's hard arrangements; and without a table."""
MOST_GUIDE_BYTES = 5_000_000
GUIDES = (("pairs", (64, 32, 32)), ("pairs", (32, 32, 32)), ("pieces", (256, 64, 64)))
"""What a guide may see and its layers: the first whose weights, of a byte each, are no more than that, otherwise the last."""
MAX_DEPTH = {"cube-2x2": 14, "tiles-3x3": 31, "lights-out-5x5": 15, "lights-out-3x3": 9, "cube-3x3": 6}
OTHER_DEPTH, MOST_DEPTH = 20, 1000
FAR = {"tiles-3x3": 80, "cube-2x2": 16}
"""Scrambles of this depth come to most states."""


def recipe(puzzle: Problem, name: str = "paper", patterns: str = "") -> Recipe:
    """The recipe of this name for a puzzle, or from a TOML file. patterns: a set of them, to train on each.

    Examples:
        >>> tiles = us.puzzle("tiles-3x3")
        >>> us.recipe(tiles).target_discount, us.recipe(tiles, "mse").target_discount
        (0.1, 0.0)
    """
    check_puzzle(puzzle, "us.recipe")
    if not isinstance(name, str) or not isinstance(patterns, str):
        raise UndershootError(f"a recipe and a set of patterns have names; {what_came(name)} and {what_came(patterns)} came")
    if name.endswith(".toml"):
        found = read_recipe(Path(name), recipe(puzzle, "exact", patterns) if patterns else recipe(puzzle))
        if patterns and found.patterns != patterns:
            raise UndershootError(f"{name} is a recipe for the patterns {found.patterns!r}, not {patterns!r}; change either")
        if found.puzzle != puzzle.name:
            raise UndershootError(f"{name} is a recipe for {found.puzzle}, not for {puzzle.name}; change its puzzle")
        return found
    if name not in RECIPES:
        close = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f' Did you mean "{close[0]}"?' if close else ""
        raise UndershootError(f'no recipe "{name}".{hint} There are {", ".join(RECIPES)}; a path to a .toml file works too.')
    if patterns:
        return _on_patterns(puzzle, name, patterns)
    depth = deepest(puzzle.table, MAX_DEPTH.get(puzzle.name, OTHER_DEPTH))
    settings = RECIPES[name][0]
    if name in ("exact", "label-free", "guide"):
        depth = deepest(puzzle.table, _everywhere(puzzle) if name == "guide" else FAR.get(puzzle.name, depth))
        settings = {
            **settings,
            "encoding": "pairs" if puzzle.pressed is None else "presses",
            "canonical": bool(puzzle.table.symmetries),
            # All depths from the start; A* tells how it goes now and then.
            "curriculum": Curriculum(first_depth=depth, max_depth=depth, interval=2000),
        }
    if name == "guide":
        settings = {**settings, **_of_guide(puzzle)}
    if name == "exact":
        settings = {**settings, "levels": max(2, _largest_cost(puzzle))}
    return replace(Recipe(puzzle.name, curriculum=Curriculum(max_depth=depth)), **settings)


def _on_patterns(puzzle: Problem, name: str, patterns: str) -> Recipe:
    if name not in PATTERN_RECIPES:
        there = " and ".join(PATTERN_RECIPES)
        raise UndershootError(f'the recipe "{name}" is for whole states; on patterns there are {there}')
    depth = deepest(puzzle.table, _everywhere(puzzle))
    # Walks have any length up to the deepest; nothing grows.
    curriculum = Curriculum(first_depth=1, max_depth=depth, interval=2000)
    return replace(Recipe(puzzle.name, patterns=patterns, curriculum=curriculum), **PATTERN_RECIPES[name])


def _everywhere(puzzle: Problem) -> int:
    """Steps after which a walk may have come anywhere: where one piece slides at a time, about the square of the cells."""
    return min(puzzle.table.cells**2, MOST_DEPTH) if forward_plan(puzzle.table).slides else OTHER_DEPTH


def _of_guide(puzzle: Problem) -> dict[str, Any]:
    """What it sees, and its layers."""
    if puzzle.pressed is not None:
        return {"hidden": GUIDES[0][1]}
    for encoding, hidden in GUIDES:
        if puzzle.encoded(encoding).width * hidden[0] <= MOST_GUIDE_BYTES:
            break
    return {"encoding": encoding, "hidden": hidden}


def _largest_cost(puzzle: Problem) -> int:
    try:
        return len(oracle(puzzle).histogram) - 1
    except SpaceTooLarge as error:
        raise SpaceTooLarge(
            f"the recipe exact learns from all true costs, but {error} For that: the recipe label-free with "
            "--set exact_share=0.5 --set exact_radius=R."
        ) from error
