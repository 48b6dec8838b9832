"""Watching a search: every expansion of A* with one or more heuristics, for a map of g against h."""

from collections.abc import Callable
from typing import Any

import numpy as np

from undershoot.arrays import States
from undershoot.errors import UndershootError
from undershoot.guarantees import Heuristic
from undershoot.oracles.distance_table import UNKNOWN
from undershoot.puzzles.puzzle import Puzzle
from undershoot.studio.recording import record
from undershoot.studio.tasks import Tell
from undershoot.studio.tasks.known import has_table
from undershoot.studio.tasks.subjects import distances_of, heuristic_of, in_words, puzzle_of, state_of

MOST = 3000
"""Expansions that are recorded."""


def watch(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """One recording for each of the heuristics."""
    puzzle = puzzle_of(arguments)
    state = state_of(puzzle, arguments)
    recordings = []
    for name, reference in arguments["heuristics"].items():
        tell({"text": f"A* with {name}"})
        recordings.append(recorded(puzzle, state, heuristic_of(puzzle, reference), name))
    return {"recordings": recordings}


def recorded(puzzle: Puzzle, state: States, heuristic: Heuristic, name: str) -> dict[str, Any]:
    """A search, as a browser draws it."""
    if puzzle.table.cells * MOST > 1_000_000:
        raise UndershootError(f"{puzzle.name} is too large to be watched; choose a smaller puzzle")
    made = record(puzzle, state, heuristic, MOST)
    states = np.frombuffer(b"".join(expansion.state for expansion in made.expansions), dtype=np.uint8)
    states = states.reshape(len(made.expansions), -1)
    true_costs: list[int | None] = [None] * len(states)
    if has_table(puzzle):
        known = distances_of(puzzle).distance(states)
        true_costs = [None if cost == UNKNOWN else int(cost) for cost in known]
    return {
        "name": name,
        "g": [expansion.g for expansion in made.expansions],
        "h": [round(expansion.h, 4) for expansion in made.expansions],
        "true": true_costs,
        "parent": [expansion.parent for expansion in made.expansions],
        "action": [expansion.action for expansion in made.expansions],
        "states": states.tolist(),
        "cost": made.cost,
        "optimum": true_costs[0],
        "is_cut": made.is_cut,
        "generated": made.generated,
        "reopened": made.reopened,
        **in_words(heuristic.guarantee),
    }
