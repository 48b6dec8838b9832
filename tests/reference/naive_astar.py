"""A* from its definition: heapq, dictionaries, one state at a time."""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

State = tuple[int, ...]


@dataclass
class Search:
    status: str = "unsolvable"
    cost: int | None = None
    actions: list[str] = field(default_factory=list)
    expanded: int = 0
    expanded_below: int | None = None
    generated: int = 0
    evaluated: int = 0
    reopened: int = 0
    stored: int = 0


def astar(
    start: State,
    successors: Callable[[State], dict[str, tuple[int, State]]],
    is_goal: Callable[[State], bool],
    h: Callable[[State], float],
    deep: bool = True,
    weight: float = 1.0,
    max_expanded: float = math.inf,
) -> Search:
    """`successors` gives for each action its cost and the child, over distinct effects."""
    found, serial = Search(), count()
    sign = -1 if deep else 1
    value: dict[State, float] = {}
    parent: dict[State, tuple[State, str, int]] = {}
    g, closed = {start: 0}, set()
    open_list: list[tuple[float, int, int, State]] = []

    def push(state: State) -> None:
        heapq.heappush(open_list, (g[state] + weight * value[state], sign * g[state], sign * next(serial), state))

    value[start] = h(start)
    found.evaluated = 1
    push(start)
    popped = []
    while open_list:
        f, signed_g, _, state = open_list[0]
        if state in closed or sign * signed_g != g[state]:
            heapq.heappop(open_list)
            continue
        if found.expanded >= max_expanded:
            found.status = "budget"
            break
        heapq.heappop(open_list)
        found.expanded += 1
        popped.append(f)
        closed.add(state)
        if is_goal(state):
            found.status = "solved"
            steps = []
            while state in parent:
                state, action, cost = parent[state]
                steps.append((action, cost))
            found.actions = [action for action, _ in reversed(steps)]
            found.cost = sum(cost for _, cost in steps)
            found.expanded_below = sum(f < found.cost for f in popped)
            break
        for action, (cost, child) in successors(state).items():
            found.generated += 1
            if child not in g:
                value[child] = h(child)
                found.evaluated += 1
            elif g[state] + cost >= g[child]:
                continue
            elif child in closed:
                closed.remove(child)
                found.reopened += 1
            g[child] = g[state] + cost
            parent[child] = (state, action, cost)
            push(child)
    found.stored = len(g)
    return found
