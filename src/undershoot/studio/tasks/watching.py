"""Watching a search: every expansion of A* with one or more heuristics, for a map of g against h."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undershoot.arrays import States
from undershoot.errors import UndershootError
from undershoot.guarantees import Heuristic
from undershoot.oracles.distance_table import UNKNOWN
from undershoot.puzzles.puzzle import Puzzle
from undershoot.studio.recording import Expansion, record
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
    states, waiting = _states_of(made.expansions, puzzle), made.waiting[:MOST]
    true_costs, true_of_waiting = _true_costs(puzzle, states), _true_costs(puzzle, _states_of(waiting, puzzle))
    return {
        "name": name,
        "g": [expansion.g for expansion in made.expansions],
        "h": [round(expansion.h, 4) for expansion in made.expansions],
        "true": true_costs,
        "parent": [expansion.parent for expansion in made.expansions],
        "action": [expansion.action for expansion in made.expansions],
        "states": states.tolist(),
        "waiting": [
            {"g": node.g, "h": round(node.h, 4), "true": true, "parent": node.parent}
            for node, true in zip(waiting, true_of_waiting, strict=True)
        ],
        "cost": made.cost,
        "optimum": true_costs[0],
        "is_cut": made.is_cut,
        "generated": made.generated,
        "reopened": made.reopened,
        **in_words(heuristic.guarantee),
    }


def _states_of(nodes: Sequence[Expansion], puzzle: Puzzle) -> States:
    """uint8[B, n]."""
    return np.frombuffer(b"".join(node.state for node in nodes), dtype=np.uint8).reshape(len(nodes), puzzle.table.cells)


def _true_costs(puzzle: Puzzle, states: States) -> list[int | None]:
    """None where they are not known."""
    if not has_table(puzzle) or not len(states):
        return [None] * len(states)
    return [None if cost == UNKNOWN else int(cost) for cost in distances_of(puzzle).distance(states)]
