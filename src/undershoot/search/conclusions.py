"""From the end of a search, of whatever kind, to what may be said about it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from undershoot.arrays import F32, I32, I64, States, owned
from undershoot.errors import Contradiction, UndershootError, what_came
from undershoot.guarantees import Guarantee, Heuristic, Optimality, OptimalityKind, Standing
from undershoot.kernels.cpu import solution_costs
from undershoot.kernels.plan import forward_plan
from undershoot.puzzles.problem import Problem, check_puzzle
from undershoot.search.options import Algorithm
from undershoot.search.results import Result, Status
from undershoot.search.workspace import MAX_COST


@dataclass(frozen=True, eq=False)
class Ending:
    """How one search ended, in numbers."""

    status: Status
    cost: int | None
    """Of the best solution; None without one."""
    actions: I32
    """int32[L], the solution; empty without one."""
    path: States
    """uint8[L, n]: the states before each of them."""
    path_values: F32
    """float32[L]: h of these states."""
    start_value: float
    """h of the start."""
    open_bound: float
    """What every solution costs that was not found: at least this, by what is proven alone; infinite if there is no other, 0 if
    nothing is known. The least g + h over open nodes is one only with reopening; what is known of the start is added."""
    expanded: int
    expanded_below: int | None
    generated: int
    evaluated: int
    reopened: int
    stored: int
    seconds: float
    weight: float
    """With which it searched: f = g + weight * h."""
    goes_by_f: bool
    """Whether SOLVED means that nothing with a smaller f than the solution's was left to search. Of any other search only
    `open_bound` is believed."""
    algorithm: Algorithm
    """Only A* with reopening finds the optimum as soon as h overestimates nowhere along *one* optimal path: IDA* leaves out
    some of the optimal paths."""


def check_request(puzzle: Problem, states: States, heuristic: Heuristic) -> States:
    """Refuse what no search can begin with. Returns a copy of the states: what others write to theirs meanwhile is not read."""
    check_puzzle(puzzle, "a search")
    states = owned(states)
    puzzle.check_solvable(states)
    if not hasattr(heuristic, "fingerprint"):
        raise UndershootError(
            f'a search takes a heuristic, such as us.heuristic(puzzle, "base"); {what_came(heuristic)} came '
            "(us.wrap makes one of a function)"
        )
    if heuristic.fingerprint != puzzle.table.fingerprint:
        raise UndershootError(f"the heuristic {heuristic.name} belongs to another puzzle than {puzzle.name}")
    return states


def conclude(puzzle: Problem, heuristic: Heuristic, starts: States, endings: Sequence[Ending]) -> list[Result]:
    """What follows from how the searches from `starts`, uint8[K, n], ended that `heuristic` guided.

    Nothing follows from a solution that is none: each is played from its start first.
    """
    if not endings:
        return []
    actions = np.concatenate([ending.actions for ending in endings])
    ends = np.cumsum([len(ending.actions) for ending in endings], dtype=np.int64)
    played = solution_costs(puzzle.table, starts, actions, ends).tolist()
    for k, ending in enumerate(endings):
        if ending.cost is not None and ending.cost != played[k]:
            raise _is_none(puzzle, starts[k : k + 1], ending.cost, played[k])
    overestimates = _overestimates(puzzle, heuristic, endings, actions, ends)
    lowest = _whole_bounds(puzzle, heuristic, starts, endings)
    results = []
    for k, (ending, lower) in enumerate(zip(endings, lowest, strict=True)):
        if ending.cost is not None and lower > ending.cost:
            raise Contradiction(
                f"a solution of cost {ending.cost} was found where {heuristic.name}, which claims that it "
                f"{heuristic.guarantee}, implies at least {lower}: {puzzle.format(starts[k : k + 1])}"
            )
        results.append(_result(puzzle, heuristic, ending, lower, int(overestimates[k])))
    return results


def check_answers(puzzle: Problem, starts: States, results: Sequence[Result]) -> None:
    """Refuse what another process says of searches from `starts`, uint8[K, n], if its solutions do not do what it says, or are
    cheaper than its bounds. Whatever else it says is believed."""
    if len(results) != len(starts):
        raise Contradiction(f"{len(starts)} instances were sent to a worker, and answers to {len(results)} came back")
    numbers = {name: number for number, name in enumerate(puzzle.table.action_names)}
    for k, result in enumerate(results):
        start, cost = starts[k : k + 1], result.cost
        if cost is None:
            continue
        actions = np.array([numbers.get(name, -1) for name in result.actions], dtype=np.int32)
        is_known = bool((actions >= 0).all())
        ends = np.array([len(actions)], dtype=np.int64)
        played = int(solution_costs(puzzle.table, start, actions, ends)[0]) if is_known else -1
        if played != cost:
            raise _is_none(puzzle, start, cost, played)
        if cost < max(result.lower_bound, float(puzzle.base_heuristic(start)[0])):
            raise Contradiction(f"a worker found a solution of cost {cost}, below what is known: {puzzle.format(start)}")


def whole_bound(puzzle: Problem, heuristic: Heuristic, start: States, ending: Ending) -> int:
    """What every solution from `start`, uint8[1, n], costs at least, by a search that ended, or might end now, like this."""
    return _whole_bounds(puzzle, heuristic, start, [ending])[0]


def _whole_bounds(puzzle: Problem, heuristic: Heuristic, starts: States, endings: Sequence[Ending]) -> list[int]:
    known_bounds = puzzle.base_heuristic(starts)
    if heuristic.guarantee.is_proven:
        known_bounds = np.maximum(known_bounds, [ending.start_value for ending in endings])
    parity = puzzle.cost_parity(starts) if puzzle.has_cost_parity else None
    result = []
    for k, ending in enumerate(endings):
        lower = math.ceil(max(_bound(ending, heuristic.guarantee), float(known_bounds[k])))
        result.append(lower if parity is None else lower + ((lower ^ int(parity[k])) & 1))
    return result


def _is_none(puzzle: Problem, start: States, cost: int, played: int) -> Contradiction:
    """That a solution does not do what the search believes of it."""
    found = "do not solve it" if played < 0 else f"cost {played}"
    return Contradiction(
        f"a search found a solution of cost {cost}, but its moves {found} when they are played: "
        f"report this, with the state: {puzzle.format(start)}"
    )


def _result(puzzle: Problem, heuristic: Heuristic, ending: Ending, lower_bound: int, overestimates: int) -> Result:
    names = puzzle.table.action_names
    return Result(
        status=ending.status,
        actions=tuple(names[action] for action in ending.actions.tolist()),
        cost=ending.cost,
        lower_bound=lower_bound,
        optimality=_optimality(ending, lower_bound, heuristic.guarantee),
        expanded=ending.expanded,
        expanded_below=ending.expanded_below,
        generated=ending.generated,
        evaluated=ending.evaluated,
        reopened=ending.reopened,
        stored=ending.stored,
        overestimates=overestimates,
        seconds=ending.seconds,
        algorithm=ending.algorithm,
    )


def _bound(ending: Ending, guarantee: Guarantee) -> float:
    """What every solution costs, at least, by how the search ended."""
    if ending.cost is not None and ending.status is Status.SOLVED and ending.goes_by_f and ending.weight == 1:
        within = guarantee.standing is Standing.PROVEN and guarantee.within is not None and ending.cost <= guarantee.within
        if guarantee.is_proven or within:
            return ending.cost
    bound = min(ending.open_bound, math.inf if ending.cost is None else ending.cost)
    return bound if math.isfinite(bound) else 0.0


def _optimality(ending: Ending, lower_bound: int, guarantee: Guarantee) -> Optimality:
    # A bound that holds by h0 alone rests on nothing else.
    provided = guarantee.provided if guarantee.standing is Standing.PROVEN else ""
    if ending.cost is None:
        return Optimality(OptimalityKind.UNKNOWN, provided=provided)
    if ending.cost == lower_bound:
        return Optimality(OptimalityKind.PROVEN, provided=provided)
    is_solved = ending.status is Status.SOLVED and ending.goes_by_f
    probability = guarantee.solution_probability
    if probability is not None and is_solved and ending.weight == 1 and ending.algorithm is Algorithm.ASTAR:
        return Optimality(
            OptimalityKind.CALIBRATED,
            probability=probability,
            population=guarantee.population,
            provided=guarantee.provided,
        )
    # The weight bounds the cost only of a search that ran to its end.
    factors = [ending.weight] if guarantee.is_proven and is_solved else []
    factors += [ending.cost / lower_bound] if lower_bound > 0 else []
    if not factors:
        return Optimality(OptimalityKind.UNKNOWN)
    return Optimality(OptimalityKind.BOUNDED, factor=min(factors), provided=provided)


def _overestimates(puzzle: Problem, heuristic: Heuristic, endings: Sequence[Ending], actions: I32, ends: I64) -> I64:
    """int64[K]: how many states of each path have h above what the path still costs."""
    if not len(actions):
        return np.zeros(len(endings), dtype=np.int64)
    lengths = np.diff(ends, prepend=0)
    states = np.concatenate([ending.path for ending in endings])
    walked = np.zeros(len(actions) + 1, dtype=np.int64)
    np.cumsum(forward_plan(puzzle.table).cost[puzzle.table.contexts_of(states), actions], out=walked[1:])
    to_go = np.repeat(walked[ends], lengths) - walked[:-1]
    values = np.concatenate([ending.path_values for ending in endings])
    check_claim(puzzle, heuristic, states, values, to_go)
    over = np.concatenate([[0], np.cumsum(values > to_go)])
    return np.asarray(over[ends] - over[ends - lengths], dtype=np.int64)


def check_claim(puzzle: Problem, heuristic: Heuristic, states: States, values: F32, costs: I64) -> None:
    """A value above what a state was found to cost, at most, refutes the claim that h never overestimates.

    costs: int64[B]. Of a claim within R, only where that is at most R.
    """
    guarantee = heuristic.guarantee
    if guarantee.standing is not Standing.PROVEN:
        return
    above = (values > costs) & (costs <= (MAX_COST if guarantee.within is None else guarantee.within))
    if above.any():
        row = int(np.argmax(above))
        raise Contradiction(
            f"{heuristic.name} claims that it {guarantee}, but says {values[row]:g} of a state from which a solution "
            f"costs {costs[row]}: {puzzle.format(states[row : row + 1])}. Nothing follows from its claim"
        )
