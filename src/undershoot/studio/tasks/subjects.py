"""Puzzles, states and heuristics as tasks name them; a process remembers the last ones."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from undershoot.arrays import States
from undershoot.bundles.loading import PATTERNS
from undershoot.bundles.loading import heuristic as named
from undershoot.bundles.names import LEARNED
from undershoot.errors import UndershootError
from undershoot.guarantees import Guarantee, Heuristic
from undershoot.heuristics.catalogue import HEURISTICS
from undershoot.oracles.cache import oracle
from undershoot.oracles.distance_table import DistanceTable
from undershoot.puzzles.definitions import Definition, made_of
from undershoot.puzzles.puzzle import Puzzle

NAMES = (*LEARNED, PATTERNS, *HEURISTICS)
QUICK_SPACE = 400_000
"""States that are enumerated without being asked for: it takes about a second."""


def puzzle_of(arguments: dict[str, Any]) -> Puzzle:
    """The one that the page holds, whatever stands in its file by now."""
    return _made_of(Definition(**arguments["puzzle"]))


@lru_cache(maxsize=8)
def _made_of(definition: Definition) -> Puzzle:
    return made_of(definition)


def state_of(puzzle: Puzzle, arguments: dict[str, Any]) -> States:
    """uint8[1, n], checked."""
    state = np.array([arguments["state"]], dtype=np.uint8)
    puzzle.check_solvable(state)
    return state


def heuristic_of(puzzle: Puzzle, reference: str) -> Heuristic:
    """By a name, or the path of a bundle as it is now."""
    path = Path(reference)
    changed = 0
    if not path.is_absolute() and reference not in NAMES:
        raise UndershootError(f"there is no heuristic {reference[:60]!a} here; there are {', '.join(NAMES)}, and bundles")
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
