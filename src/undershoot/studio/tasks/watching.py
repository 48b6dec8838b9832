"""Watching a search: every expansion of A* with one or more heuristics, for a map of g against h."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undershoot.arrays import States
from undershoot.errors import UndershootError
from undershoot.guarantees import Heuristic
from undershoot.oracles.distance_table import UNKNOWN
from undershoot.puzzles.puzzle import Puzzle
from undershoot.studio.figures import shown
from undershoot.studio.recording import Expansion, Recording, record
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
    """A search, as a browser draws it: its expansions, what was open at the end, and what the true costs say of both."""
    if puzzle.table.cells * MOST > 1_000_000:
        raise UndershootError(f"{puzzle.name} is too large to be watched; choose a smaller puzzle")
    made = record(puzzle, state, heuristic, MOST)
    states = _states_of(made.expansions, puzzle)
    true_costs, true_of_waiting = _true_costs(puzzle, states), _true_costs(puzzle, _states_of(made.waiting, puzzle))
    optimum = true_costs[0]
    hidden = hidden_at(made, true_of_waiting, optimum)
    waiting = list(zip(made.waiting, true_of_waiting, strict=True))
    if hidden is not None:  # the first of those that are drawn
        waiting.insert(0, waiting.pop(hidden))
    return {
        "name": name,
        **_points(made.expansions, true_costs),
        "action": [expansion.action for expansion in made.expansions],
        "states": states.tolist(),
        "waiting": _points([node for node, _ in waiting[:MOST]], [true for _, true in waiting[:MOST]]),
        "hidden": _hidden(made, hidden, optimum),
        "cost": made.cost,
        "optimum": optimum,
        "is_known": has_table(puzzle),
        "is_cut": made.is_cut,
        **in_words(heuristic.guarantee),
    }


def _points(nodes: Sequence[Expansion], true_costs: Sequence[int | None]) -> dict[str, Any]:
    """Columns for the map. Which estimate is too high is decided here, by the exact values."""
    both = list(zip(nodes, true_costs, strict=True))
    return {
        "g": [node.g for node in nodes],
        "h": [node.h for node in nodes],
        "over": [true is not None and node.h > true for node, true in both],
        "parent": [node.parent for node in nodes],
        "words": [in_figures(node, true) for node, true in both],
    }


def in_figures(node: Expansion, true_cost: int | None) -> dict[str, str]:
    """g, h, f, the true cost and by how much h is above it, with the digits that show it."""
    whole = None if true_cost is None else node.g + true_cost
    too_much = "" if true_cost is None or node.h <= true_cost else shown(node.h - true_cost, 0)
    h, f = shown(node.h, true_cost), shown(node.g + node.h, whole)
    return {"h": h, "f": f, "true": "" if true_cost is None else str(true_cost), "too_much": too_much}


def hidden_at(made: Recording, true_of_waiting: Sequence[int | None], optimum: int | None) -> int | None:
    """Which of the open nodes lies on a cheapest way that A* did not go, if it came to the goal by a dearer one.

    There is one: of every cheapest way some node is open, reached at its least cost, until the goal comes out. Its estimate
    is too high, or it would have come out before.
    """
    if made.cost is None or optimum is None or made.cost <= optimum:
        return None
    nodes = zip(made.waiting, true_of_waiting, strict=True)
    on_the_way = [number for number, (node, true) in enumerate(nodes) if true is not None and node.g + true == optimum]
    return min(on_the_way, key=lambda number: made.waiting[number].g + made.waiting[number].h, default=None)


def _hidden(made: Recording, hidden: int | None, optimum: int | None) -> dict[str, Any] | None:
    """The node, and what its estimate did, in a sentence."""
    if hidden is None or optimum is None:
        return None
    node, cost = made.waiting[hidden], made.cost
    true_cost = optimum - node.g
    words = in_figures(node, true_cost)
    total = f"f = {node.g} + {words['h']} = {words['f']}"
    first = f"so A* took the goal at {cost} before it looked here"
    if node.g + node.h == cost:
        first = f"no less than the goal at {cost}, which A* took first"
    text = (
        f"This state lies on a cheapest way. It costs {true_cost} from here, the estimate says {words['h']}: {total}, {first}."
    )
    return {"state": list(node.state), "g": node.g, "true": true_cost, "text": text}


def seen_by(hidden: dict[str, Any], heuristic: Heuristic) -> str:
    """What another estimate says of a state that one hid, in a sentence; none if it is too high as well."""
    value = float(heuristic(np.array([hidden["state"]], dtype=np.uint8))[0])
    g, true_cost = hidden["g"], hidden["true"]
    if value > true_cost:
        return ""
    words = in_figures(Expansion(b"", g, value, -1, ""), true_cost)
    return (
        f"Of the state that the other search missed, this estimate says {words['h']}, no more than the {true_cost} "
        f"that it truly costs: f = {g} + {words['h']} = {words['f']} is no more than the optimum {g + true_cost}."
    )


def _states_of(nodes: Sequence[Expansion], puzzle: Puzzle) -> States:
    """uint8[B, n]."""
    return np.frombuffer(b"".join(node.state for node in nodes), dtype=np.uint8).reshape(len(nodes), puzzle.table.cells)


def _true_costs(puzzle: Puzzle, states: States) -> list[int | None]:
    """None where they are not known."""
    if not has_table(puzzle) or not len(states):
        return [None] * len(states)
    return [None if cost == UNKNOWN else int(cost) for cost in distances_of(puzzle).distance(states)]
