"""Recipes by name: the switches of the paper's ablation, on and off."""

import difflib
from dataclasses import replace
from pathlib import Path
from typing import Any

from undershoot.errors import UndershootError
from undershoot.kernels.scrambles import deepest
from undershoot.puzzles.puzzle import Puzzle
from undershoot.training.recipe import Curriculum, Loss, Recipe, read_recipe

PLAIN: dict[str, Any] = {"target_discount": 0.0, "floor_by_base": False}
RECIPES: dict[str, tuple[dict[str, Any], str]] = {
    "paper": ({}, "the paper's: discounted targets at least h0, overestimates penalised"),
    "mse": ({**PLAIN, "loss": Loss.MSE}, "plain Bellman targets, squared error"),
    "operator": ({"loss": Loss.MSE}, "ablation: the paper's targets, squared error"),
    "loss": (PLAIN, "ablation: plain Bellman targets, overestimates penalised"),
}
MAX_DEPTH = {"cube-2x2": 14, "tiles-3x3": 31, "lights-out-5x5": 15, "lights-out-3x3": 9, "cube-3x3": 6}
OTHER_DEPTH = 20


def recipe(puzzle: Puzzle, name: str = "paper") -> Recipe:
    """The recipe of this name for a puzzle, or from a TOML file."""
    if name.endswith(".toml"):
        found = read_recipe(Path(name), recipe(puzzle))
        if found.puzzle != puzzle.name:
            raise UndershootError(f"{name} is a recipe for {found.puzzle}, not for {puzzle.name}; change its puzzle")
        return found
    if name not in RECIPES:
        close = difflib.get_close_matches(name, RECIPES, n=1)
        hint = f' Did you mean "{close[0]}"?' if close else ""
        raise UndershootError(f'no recipe "{name}".{hint} There are {", ".join(RECIPES)}; a path to a .toml file works too.')
    depth = deepest(puzzle.table, MAX_DEPTH.get(puzzle.name, OTHER_DEPTH))
    return replace(Recipe(puzzle.name, curriculum=Curriculum(max_depth=depth)), **RECIPES[name][0])
