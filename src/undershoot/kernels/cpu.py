"""successors, apply, is_goal, pack and unpack on the CPU, compiled."""

import numpy as np

from undershoot.arrays import I32, I64, U8, AnyArray, Bools, Keys, Number, States, read_only
from undershoot.errors import IllegalMove
from undershoot.kernels.compiler import compiled, compiled_loop
from undershoot.kernels.plan import Packing, Plan, forward_plan, packing_of
from undershoot.kernels.steps import play_step
from undershoot.puzzles.moves import MoveTable


def successors(table: MoveTable, states: States) -> tuple[States, Bools]:
    """uint8[B, A, n] and bool[B, A]: the child by every action, and whether it is legal.

    Of several actions with one effect only the cheapest counts as legal; rows of others hold the parent.

    Examples:
        >>> table = us.puzzle("tiles-3x3").table
        >>> children, legal = us.successors(table, table.goals)
        >>> print(legal)
        [[False  True False  True]]
        >>> print(children[legal])
        [[1 2 3 4 5 0 7 8 6]
         [1 2 3 4 5 6 7 0 8]]
    """
    table.check_states(states)
    return _successors(forward_plan(table), read_only(states))


def apply(table: MoveTable, states: States, actions: I32 | I64) -> States:
    """uint8[B, n]: each state after its action; IllegalMove names the first that is not allowed.

    Examples:
        >>> import numpy as np
        >>> table = us.puzzle("tiles-3x3").table
        >>> down = np.array([table.action_names.index("D")])
        >>> print(us.apply(table, table.goals, down))
        [[1 2 3 4 5 0 7 8 6]]
    """
    table.check_states(states)
    moves: AnyArray = np.asarray(actions)
    fits = moves.shape == (len(states),) and np.issubdtype(moves.dtype, np.integer)
    if not fits or ((moves < 0) | (moves >= table.actions)).any():
        raise IllegalMove(f"one action from 0 to {table.actions - 1} is needed for each of the {len(states)} states")
    # An action that another one replaces in searches may still be played.
    moves = table.alike.astype(np.int64)[moves]
    moved, wrong = _apply(forward_plan(table), read_only(states), moves)
    if wrong >= 0:
        name = table.action_names[moves[wrong]]
        raise IllegalMove(f"action {name} is not legal in state {wrong}: {states[wrong].tolist()}")
    return moved


def solution_costs(table: MoveTable, starts: States, actions: I32, ends: I64) -> I64:
    """int64[K]: what the actions cost that lead from each start to a goal; -1 if they are not legal, or lead elsewhere.

    actions: int32[sum of lengths], those of start k before ends[k] and from where those of the one before it end.
    """
    return _solution_costs(forward_plan(table), table.goals, starts, actions, ends)


@compiled_loop
def play_path(plan: Plan, actions: I32, states: States) -> Number:
    """Write the states that these actions lead to, which must be legal, after states[0], uint8[L + 1, n]. Returns what they
    cost."""
    context, cost = np.int64(0), np.int64(0)
    for i in range(states.shape[1]):
        if states[0, i] == plan.cursor:
            context = np.int64(i)
    for k in range(actions.shape[0]):
        cost += np.int64(plan.cost[context, actions[k]])
        play_step(plan, context, actions[k], states, k, k + 1)
        context = np.int64(plan.landing[context, actions[k]])
    return cost


def is_goal(table: MoveTable, states: States) -> Bools:
    """bool[B]: whether each state is one of the goals.

    Examples:
        >>> tiles = us.puzzle("tiles-2x3")
        >>> print(us.is_goal(tiles.table, tiles.parse("1 2 3 / 4 0 5")))
        [False]
    """
    table.check_states(states)
    return _is_goal(table.goals, read_only(states))


def pack(table: MoveTable, states: States) -> Keys:
    """uint64[B, W]: keys that are equal exactly for equal states."""
    table.check_states(states)
    return pack_rows(packing_of(table), read_only(states))


def unpack(table: MoveTable, keys: Keys) -> States:
    """uint8[B, n]: the states of these keys."""
    return unpack_rows(packing_of(table), read_only(np.ascontiguousarray(keys)))


@compiled
def context_of(plan: Plan, state: U8) -> Number:
    """The cell of the cursor, or 0."""
    if plan.cursor < 0:
        return 0
    for i in range(state.shape[0]):
        if state[i] == plan.cursor:
            return i
    return -1


@compiled
def step_into(plan: Plan, c: Number, s: Number, state: U8, child: U8) -> None:
    """Write to `child`, which holds a copy of `state`, what step s from context c changes."""
    for k in range(plan.changes[c, s]):
        i = plan.cell[c, s, k]
        value = int(state[plan.origin[c, s, k]]) + int(plan.shift[c, s, k])
        if value >= plan.modulus[i]:
            value -= int(plan.modulus[i])
        child[i] = value


@compiled
def _successors(plan: Plan, states: States) -> tuple[States, Bools]:
    count, n = states.shape
    actions = plan.legal.shape[1]
    children = np.empty((count, actions, n), dtype=np.uint8)
    legal = np.empty((count, actions), dtype=np.bool_)
    for b in range(count):
        c = context_of(plan, states[b])
        for a in range(actions):
            children[b, a] = states[b]
            legal[b, a] = plan.legal[c, a]
            if legal[b, a]:
                step_into(plan, c, a, states[b], children[b, a])
    return children, legal


@compiled
def _apply(plan: Plan, states: States, actions: I64) -> tuple[States, Number]:
    moved = states.copy()
    for b in range(states.shape[0]):
        c = context_of(plan, states[b])
        if not plan.legal[c, actions[b]]:
            return moved, b
        step_into(plan, c, actions[b], states[b], moved[b])
    return moved, -1


@compiled
def _solution_costs(plan: Plan, goals: States, starts: States, actions: I32, ends: I64) -> I64:
    costs = np.zeros(starts.shape[0], dtype=np.int64)
    state, moved = np.empty((2, starts.shape[1]), dtype=np.uint8)
    first: Number = np.int64(0)
    for k in range(starts.shape[0]):
        for i in range(starts.shape[1]):
            state[i] = moved[i] = starts[k, i]
        for number in range(first, ends[k]):
            c, a = context_of(plan, state), actions[number]
            if a < 0 or a >= plan.legal.shape[1] or not plan.legal[c, a]:
                costs[k] = -1
                break
            costs[k] += plan.cost[c, a]
            step_into(plan, c, a, state, moved)
            for change in range(plan.changes[c, a]):
                state[plan.cell[c, a, change]] = moved[plan.cell[c, a, change]]
        if not is_among(goals, state):
            costs[k] = -1
        first = ends[k]
    return costs


@compiled
def is_among(goals: States, state: U8) -> Number:
    """Whether the state, uint8[n], is one of these."""
    for g in range(goals.shape[0]):
        equal = True
        for i in range(goals.shape[1]):
            equal &= state[i] == goals[g, i]
        if equal:
            return True
    return False


@compiled
def _is_goal(goals: States, states: States) -> Bools:
    result = np.zeros(states.shape[0], dtype=np.bool_)
    for b in range(states.shape[0]):
        result[b] = is_among(goals, states[b])
    return result


@compiled
def pack_rows(packing: Packing, states: States) -> Keys:
    """uint64[B, W]."""
    keys = np.zeros((states.shape[0], packing.word[-1] + 1), dtype=np.uint64)
    for b in range(states.shape[0]):
        for i in range(states.shape[1]):
            keys[b, packing.word[i]] += np.uint64(states[b, i]) * packing.weight[i]
    return keys


@compiled
def unpack_row(packing: Packing, key: Keys, state: U8) -> None:
    """Write the state of one key, uint64[W], to `state`, uint8[n]."""
    word: Number = -1
    rest: Number = np.uint64(0)
    for i in range(state.shape[0]):
        if packing.word[i] != word:
            word = packing.word[i]
            rest = key[word]
        modulus = np.uint64(packing.modulus[i])
        quotient = rest // modulus
        state[i] = rest - quotient * modulus
        rest = quotient


@compiled
def unpack_rows(packing: Packing, keys: Keys) -> States:
    """uint8[B, n]."""
    states = np.empty((keys.shape[0], packing.word.shape[0]), dtype=np.uint8)
    for b in range(keys.shape[0]):
        unpack_row(packing, keys[b], states[b])
    return states
