"""Scrambles: random walks from the goal, whose cost bounds the true cost from above."""

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U64, AnyArray, Bools, Number, States
from undershoot.errors import UndershootError
from undershoot.kernels.compiler import compiled
from undershoot.kernels.cpu import context_of, step_into
from undershoot.kernels.plan import Plan, backward_plan
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.pairs import Pair, classify_pairs

MAX_DEPTH = 1_000_000
OPTIONS = "--scramble-depth, --scrambles, --depths or curriculum.max_depth"
"""Where people say how deep to scramble."""
GAMMA, FACTOR_1, FACTOR_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""The constants of splitmix64."""
ROW_FACTOR = 0xD1342543DE82EF95
DEPTHS = 0x5851F42D4C957F2D
ROWS = 0x2545F4914F6CDD1D
"""Set the draws of depths and of rows apart from those of walks."""


class ScrambleRule(StrEnum):
    """Which step may follow which.

    Examples:
        >>> import numpy as np
        >>> table = us.puzzle("lights-out-3x3").table
        >>> pressed = us.scramble(table, np.array([9]), seed=0, rule=us.ScrambleRule.PROPER)
        >>> print(pressed.states)  # nine distinct presses: every cell once
        [[1 0 1 0 1 0 1 0 1]]
    """

    PROPER = "proper"
    """No step that one step (or none) could have done together with the one before it: no immediate undo, no face of
    a cube twice in a row. Where presses commute (Lights Out), distinct presses."""
    PLAIN = "plain"
    """Any legal step."""


class Scrambles(NamedTuple):
    """States and how they were made."""

    states: States
    """uint8[B, n]."""
    depth_walked: I32
    """int32[B], steps taken."""
    cost_walked: I64
    """int64[B], what those steps cost: an upper bound on the true cost, mostly above it for long walks."""


def scramble(table: MoveTable, depths: AnyArray, seed: int, rule: ScrambleRule = ScrambleRule.PROPER) -> Scrambles:
    """Walk depths[b] steps away from a goal for each b.

    Walks run backwards along the moves, so that the cost walked bounds the cost to the goal also where moves cannot be
    undone. Row b depends on the seed, b and depths[b] alone.

    Examples:
        >>> import numpy as np
        >>> tiles = us.puzzle("tiles-3x3")
        >>> walked = us.scramble(tiles.table, np.array([3, 30]), seed=0)
        >>> print(walked.cost_walked)
        [ 3 30]
        >>> print(us.oracle(tiles).distance(walked.states))
        [ 3 24]
    """
    if rule not in list(ScrambleRule):
        raise UndershootError(f'the scramble rule is "{rule}"; allowed are {" and ".join(ScrambleRule)}')
    rule = ScrambleRule(rule)
    given = np.asarray(depths)
    if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
        raise UndershootError(f"scramble depths must be a list of whole numbers from 0; {depths!r} came")
    if ((given < 0) | (given > MAX_DEPTH)).any():
        raise UndershootError(
            f"scramble depths must lie in 0..{MAX_DEPTH:,}; {given.min()}..{given.max()} came; change {OPTIONS}"
        )
    walked = np.ascontiguousarray(given, dtype=np.int32)
    plan = backward_plan(table)
    distinct = rule is ScrambleRule.PROPER and table.presses_commute
    available = int(table.forward.legal.sum())
    if distinct and len(walked) and walked.max() > available:
        raise UndershootError(
            f"a scramble of {walked.max()} distinct presses is impossible; this puzzle has {available}: lower {OPTIONS}"
        )
    follows = followers(table, rule)
    states, cost, stuck = _walk(plan, follows, table.goals, walked, np.uint64(seed % 2**64), distinct)
    if stuck >= 0:
        raise UndershootError(
            f"scramble {stuck} came to a state that no move leads to; choose a depth below {walked[stuck]} for {OPTIONS}"
        )
    return Scrambles(states, walked, cost)


def scrambles_up_to(table: MoveTable, count: int, depth: int, seed: int, rule: ScrambleRule = ScrambleRule.PROPER) -> Scrambles:
    """`count` scrambles, their depths drawn uniformly from 1..depth."""
    return scramble(table, 1 + _numbers(count, depth, np.uint64(seed % 2**64 ^ DEPTHS)), seed, rule)


def random_rows(count: int, bound: int, seed: int) -> I64:
    """int64[count]: uniform in 0..bound - 1, bound up to 2^31."""
    return _numbers(count, bound, np.uint64(seed % 2**64 ^ ROWS))


def deepest(table: MoveTable, depth: int) -> int:
    """`depth`, or less where proper scrambles end before: they press distinct cells."""
    return min(depth, int(table.forward.legal.sum())) if table.presses_commute else depth


def derived_seed(seed: int, *numbers: int) -> int:
    """A seed of its own for each list of numbers."""
    state = np.array([seed % 2**64], dtype=np.uint64)
    for number in numbers:
        state[0] = _random(state) ^ np.uint64(number % 2**64)
    return int(_random(state))


@lru_cache(maxsize=128)
def followers(table: MoveTable, rule: ScrambleRule) -> Bools:
    """bool[C, S + 1, S]: whether y may follow x taken from context c; row S is for the first step."""
    steps = table.backward
    contexts, width = steps.legal.shape
    follows = np.zeros((contexts, width + 1, width), dtype=np.bool_)
    follows[:, width] = steps.legal
    pairs = classify_pairs(table, steps)
    redundant = (rule is ScrambleRule.PROPER) & ((pairs == Pair.UNDONE) | (pairs == Pair.ONE_STEP))
    for c, x in np.argwhere(steps.legal):
        legal = steps.legal[steps.landing[c, x]]
        follows[c, x] = legal & ~redundant[c, x]
        if not follows[c, x].any():
            follows[c, x] = legal  # a dead end: rather turn back than stop
    return follows


@compiled
def _random(state: U64) -> Number:
    """splitmix64: advances uint64[1] and returns 64 random bits."""
    state[0] += np.uint64(GAMMA)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(FACTOR_1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(FACTOR_2)
    return z ^ (z >> np.uint64(31))


@compiled
def _below(state: U64, bound: Number) -> Number:
    """A random whole number from 0 to bound - 1, uniform up to 2^-32."""
    return np.int64(((_random(state) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@compiled
def _seed_row(state: U64, seed: Number, row: Number) -> None:
    """Two rounds of mixing keep the streams of neighbouring rows and seeds apart."""
    state[0] = seed
    state[0] = _random(state) ^ (np.uint64(row) * np.uint64(ROW_FACTOR))
    state[0] = _random(state)


@compiled
def _numbers(count: Number, bound: Number, seed: Number) -> I64:
    result = np.empty(count, dtype=np.int64)
    random = np.zeros(1, dtype=np.uint64)
    for b in range(count):
        _seed_row(random, seed, b)
        result[b] = _below(random, bound)
    return result


@compiled
def _walk(plan: Plan, follows: Bools, goals: States, depths: I32, seed: Number, distinct: Number) -> tuple[States, I64, Number]:
    count, n = depths.shape[0], goals.shape[1]
    width = plan.legal.shape[1]
    states = np.empty((count, n), dtype=np.uint8)
    cost = np.zeros(count, dtype=np.int64)
    before = np.empty(n, dtype=np.uint8)
    random = np.zeros(1, dtype=np.uint64)
    choices = np.empty(width, dtype=np.int64)
    s: Number = 0
    for b in range(count):
        _seed_row(random, seed, b)
        state = states[b]
        state[:] = goals[_below(random, goals.shape[0])]
        c = context_of(plan, state)
        if distinct:
            available = 0
            for y in range(width):
                if plan.legal[0, y]:
                    choices[available] = y
                    available += 1
        from_context, last = c, width
        for step in range(depths[b]):
            if distinct:
                k = step + _below(random, available - step)
                choices[step], choices[k] = choices[k], choices[step]
                s = choices[step]
            else:
                allowed = 0
                for y in range(width):
                    if follows[from_context, last, y]:
                        choices[allowed] = y
                        allowed += 1
                if allowed == 0:
                    return states, cost, b
                s = choices[_below(random, allowed)]
            before[:] = state
            step_into(plan, c, s, before, state)
            cost[b] += plan.cost[c, s]
            from_context, last = c, s
            c = plan.landing[c, s]
    return states, cost, -1
