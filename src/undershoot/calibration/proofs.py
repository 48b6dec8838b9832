"""True costs, and optimal paths, where nothing can be enumerated: from searches that prove them.

A search that is stopped has proven a lower bound, and that is all it says of its state; no state is left out for it.
"""

from itertools import accumulate

import numpy as np

from undershoot.arrays import AnyArray, States
from undershoot.errors import NotAvailable
from undershoot.guarantees import Heuristic, OptimalityKind
from undershoot.heuristics.analytic import base
from undershoot.heuristics.patterns import pattern_heuristic
from undershoot.kernels.cpu import apply
from undershoot.pattern_tables.sets import pattern_set
from undershoot.puzzles.problem import Problem
from undershoot.search.ida import solve_by_deepening
from undershoot.search.options import Algorithm, SearchOptions
from undershoot.search.results import Result

MOST_EXPANDED = 20_000_000
"""Of one proof. Expansions, not seconds: the same states are proven on every machine."""
TRIED_FIRST, MOST_EXPANDED_FIRST = 4, 2_000_000


def proving_heuristic(puzzle: Problem) -> Heuristic:
    """The strongest that never overestimates by construction: the default patterns, or the puzzle's own."""
    if puzzle.base_heuristic.pair_cost is not None:
        return base(puzzle)
    try:
        return pattern_heuristic(puzzle, pattern_set(puzzle))
    except NotAvailable:
        return base(puzzle)


def prove(puzzle: Problem, states: States, threads: int = 1) -> list[Result]:
    """What IDA* finds out about each state, uint8[N, n]: its cost, or a lower bound of it.

    NotAvailable, rather than hours of work, where none of the first few states is proven soon.
    """
    heuristic = proving_heuristic(puzzle)

    def search(some: States, most: int) -> list[Result]:
        options = SearchOptions(algorithm=Algorithm.IDA, max_expanded=most)
        return solve_by_deepening(puzzle, some, heuristic, options, threads)

    if len(states) and not any(is_proven(result) for result in search(states[:TRIED_FIRST], MOST_EXPANDED_FIRST)):
        raise NotAvailable(
            f"true costs are not to be had: {puzzle.name} has too many states to be enumerated, and of the first "
            f"{min(TRIED_FIRST, len(states))} that were drawn none was proven within {MOST_EXPANDED_FIRST:,} expansions. "
            "Possible here: states nearer to the goal (--population scrambles --depths 1..D), or `max`, `conformal` and "
            "`grouped` with --labels lower"
        )
    return search(states, MOST_EXPANDED)


def is_proven(result: Result) -> bool:
    """Whether its cost is the true one."""
    return result.optimality.kind is OptimalityKind.PROVEN


def path_of(puzzle: Problem, state: States, result: Result) -> tuple[States, AnyArray]:
    """The states of the solution from one state, uint8[1, n], up to the goal, which is left out; and what each still costs:
    uint8[L, n] and float32[L]."""
    numbers = [puzzle.table.action_names.index(name) for name in result.actions]
    steps = [np.array([number]) for number in numbers]
    path = list(accumulate(steps[:-1], lambda at, step: apply(puzzle.table, at, step), initial=state))[: len(steps)]
    spent = np.cumsum([0, *(int(puzzle.table.cost[number]) for number in numbers)])
    return np.concatenate([*path, state[:0]]), (spent[-1] - spent[:-1]).astype(np.float32)
