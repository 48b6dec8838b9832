"""A* that writes down every expansion, for small searches: one state at a time, with the same expansions as the library's."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from undershoot.arrays import F32, States
from undershoot.kernels.cpu import is_goal, successors
from undershoot.kernels.plan import forward_plan
from undershoot.puzzles.problem import Problem


@dataclass(frozen=True)
class Expansion:
    """A node as it was taken from the open list."""

    state: bytes
    g: int
    h: float
    parent: int
    """The number of the expansion that it came from; -1 for the start."""
    action: str


@dataclass
class Recording:
    """A whole search."""

    expansions: list[Expansion] = field(default_factory=list)
    waiting: list[Expansion] = field(default_factory=list)
    """Nodes that were still open at the end, and by which expansions they were reached."""
    actions: list[str] = field(default_factory=list)
    cost: int | None = None
    generated: int = 0
    reopened: int = 0
    is_cut: bool = False
    """Whether it made all expansions that were allowed before it came to an end."""


def record(puzzle: Problem, start: States, heuristic: Callable[[States], F32], most: int) -> Recording:
    """Search from uint8[1, n], at most so many expansions, ties to larger g and then to the newest."""
    table, plan, made, serial = puzzle.table, forward_plan(puzzle.table), Recording(), count()
    first = start[0].tobytes()
    g, value = {first: 0}, {first: float(heuristic(start)[0])}
    came: dict[bytes, tuple[int, str]] = {first: (-1, "")}
    closed: set[bytes] = set()
    waiting: list[tuple[float, int, int, bytes]] = [(value[first], 0, 0, first)]
    while waiting:
        _, minus_g, _, state = heapq.heappop(waiting)
        if state in closed or -minus_g != g[state]:
            continue
        if len(made.expansions) >= most:
            made.is_cut = True
            break
        number, (parent, action) = len(made.expansions), came[state]
        made.expansions.append(Expansion(state, g[state], value[state], parent, action))
        closed.add(state)
        row = np.frombuffer(state, dtype=np.uint8)[None]
        if is_goal(table, row)[0]:
            made.cost, made.actions = g[state], _path(made.expansions)
            break
        context = int(table.contexts_of(row)[0])
        children, legal = successors(table, row)
        new = [int(a) for a in np.flatnonzero(legal[0]) if children[0, a].tobytes() not in g]
        if new:
            found = heuristic(np.ascontiguousarray(children[0, new]))
            value.update({children[0, a].tobytes(): float(h) for a, h in zip(new, found, strict=True)})
        for a in np.flatnonzero(legal[0]).tolist():
            child, cost = children[0, a].tobytes(), g[state] + int(plan.cost[context, a])
            made.generated += 1
            if child in g and cost >= g[child]:
                continue
            if child in closed:
                closed.remove(child)
                made.reopened += 1
            g[child], came[child] = cost, (number, table.action_names[a])
            heapq.heappush(waiting, (cost + value[child], -cost, -next(serial), child))
    still_open = (state for state in g if state not in closed)
    made.waiting = [Expansion(state, g[state], value[state], *came[state]) for state in still_open]
    return made


def _path(expansions: list[Expansion]) -> list[str]:
    """The actions that led to the last expansion."""
    actions, at = [], len(expansions) - 1
    while expansions[at].parent >= 0:
        actions.append(expansions[at].action)
        at = expansions[at].parent
    return actions[::-1]
