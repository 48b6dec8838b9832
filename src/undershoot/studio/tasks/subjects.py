"""Puzzles, states and heuristics as tasks name them; a process remembers the last ones."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from undershoot.arrays import States
from undershoot.bundles.loading import heuristic as named
from undershoot.guarantees import Guarantee, Heuristic
from undershoot.oracles.cache import oracle
from undershoot.oracles.distance_table import DistanceTable
from undershoot.puzzles import catalogue
from undershoot.puzzles.puzzle import Puzzle

QUICK_SPACE = 400_000
"""States that are enumerated without being asked for: it takes about a second."""


def puzzle_of(arguments: dict[str, Any]) -> Puzzle:
    """By a name of the catalogue, or the path of a file as it is now."""
    reference = arguments["puzzle"]
    if not reference.endswith(".toml"):
        return catalogue.puzzle(reference)
    return _from_file(reference, Path(reference).stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _from_file(path: str, changed: int) -> Puzzle:
    return catalogue.puzzle(path)


def state_of(puzzle: Puzzle, arguments: dict[str, Any]) -> States:
    """uint8[1, n], checked."""
    state = np.array([arguments["state"]], dtype=np.uint8)
    puzzle.check_solvable(state)
    return state


def heuristic_of(puzzle: Puzzle, reference: str) -> Heuristic:
    """By a name, or the path of a bundle as it is now."""
    path = Path(reference)
    changed = 0
    if path.is_absolute():
        changed = max((file.stat().st_mtime_ns for file in path.iterdir()), default=0)
    return _heuristic(puzzle, reference, changed)


@lru_cache(maxsize=24)
def _heuristic(puzzle: Puzzle, reference: str, changed: int) -> Heuristic:
    return named(puzzle, reference)


@lru_cache(maxsize=2)
def distances_of(puzzle: Puzzle) -> DistanceTable:
    """All true costs: from the cache, or enumerated."""
    return oracle(puzzle)


def in_words(guarantee: Guarantee) -> dict[str, str]:
    """A guarantee for a badge: its standing, a word or three, and its sentence."""
    return {"standing": guarantee.standing.value, "label": guarantee.label, "sentence": guarantee.sentence}
