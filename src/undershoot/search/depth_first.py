"""One iteration of IDA*, compiled: depth-first, children whose f passes the bound are cut off.

The tree is held as rows, one for each depth, so that a search can stop anywhere and go on later.
"""

from typing import Any, NamedTuple

import numpy as np

from undershoot.arrays import I16, I32, I64, U8, AnyArray, Number, Records, States, read_only
from undershoot.kernels.compiler import compiled_loop, inner
from undershoot.kernels.guides import make_kept, update_kept, value_after, value_of
from undershoot.kernels.plan import Plan, forward_plan
from undershoot.kernels.steps import play_step
from undershoot.kernels.sums import Sums, shared_out, sum_of
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.pairs import Pair, classify_pairs

RUNNING, FOUND, EXHAUSTED = 0, 1, 2
NOT_EXPANDED = -1
NEVER = 2**40
"""A bound that nothing passes."""
COUNTERS = ("expanded", "expanded_below", "generated", "evaluated")
PROGRESS = np.dtype([(name, np.int64) for name in ("depth", "first", "status", "next_bound", "next_base", "deepest", *COUNTERS)])
"""Where the search stands. `first`: the depth above which it does not go back. `next_bound`: the least f that was cut off,
`next_base`: the least g + h0 that was, if asked for."""


class Tree(NamedTuple):
    """Rows by depth."""

    states: U8
    """uint8[D + 2, n]."""
    kept: I32
    """int32[D + 2, kept_size], what the guide keeps."""
    context: I32
    """int32[D + 1]."""
    arrival: I32
    """int32[D + 1]: by which step it was reached, and from where; a row of Moves.follow."""
    cost: I64
    """int64[D + 1]: g."""
    f: I64
    """int64[D + 1]."""
    steps: I16
    """int16[D + 1, S]: the children that were not cut off."""
    values: I64
    """int64[D + 1, S]: their f."""
    left: I32
    """int32[D + 1]: how many of them were not visited yet, or NOT_EXPANDED."""
    count: I32
    """int32[D + 1]: how many there are."""
    progress: Records
    """PROGRESS[1]."""


class TreeMoves(NamedTuple):
    """The puzzle."""

    plan: Plan
    follow: I16
    """int16[C * S + C, S]: which steps are worth trying after a step x from context c, row c * S + x, or at the start in context
    c, row C * S + c: not those that come back, or that another order reaches."""
    follows: I32
    """int32[C * S + C]: how many there are."""
    goals: States
    back: I32
    """int32[C, S]: what the step back costs; -1 where there is none."""


def tree_moves(table: MoveTable) -> TreeMoves:
    """The puzzle, for the compiled loop."""
    steps = table.forward
    contexts, width = steps.legal.shape
    pairs = classify_pairs(table, steps)
    follow = np.full((contexts * width + contexts, width), -1, dtype=np.int16)
    follows = np.zeros(len(follow), dtype=np.int32)

    def allow(row: int, which: AnyArray) -> None:
        follow[row, : len(which)] = which
        follows[row] = len(which)

    for c in range(contexts):
        allow(contexts * width + c, np.flatnonzero(steps.legal[c]))
        for x in np.flatnonzero(steps.legal[c]):
            allow(c * width + x, np.flatnonzero(steps.legal[steps.landing[c, x]] & (pairs[c, x] == Pair.NEW)))
    inverse = np.where(table.inverse >= 0, table.alike[table.inverse], -1)
    back = np.where(inverse >= 0, table.cost[inverse], -1).astype(np.int32)
    return TreeMoves(forward_plan(table), read_only(follow), read_only(follows), table.goals, read_only(back))


def make_tree(moves: TreeMoves, depth: int, kept: int) -> Tree:
    """Room for nodes down to this depth."""
    width, cells = moves.plan.legal.shape[1], len(moves.plan.modulus)
    rows = depth + 1
    return Tree(
        np.zeros((rows + 1, cells), dtype=np.uint8),
        np.zeros((rows + 1, max(1, kept)), dtype=np.int32),
        np.zeros(rows, dtype=np.int32),
        np.zeros(rows, dtype=np.int32),
        np.zeros(rows, dtype=np.int64),
        np.zeros(rows, dtype=np.int64),
        np.zeros((rows, width), dtype=np.int16),
        np.zeros((rows, width), dtype=np.int64),
        np.zeros(rows, dtype=np.int32),
        np.zeros(rows, dtype=np.int32),
        np.zeros(1, dtype=PROGRESS),
    )


@compiled_loop
def plant(tree: Tree, moves: TreeMoves, guide: Any, start: States, path: I16, length: Number) -> None:
    """Let an iteration begin at the end of path[:length] from start[0]; it does not go back above that."""
    plan = moves.plan
    for i in range(start.shape[1]):
        tree.states[0, i] = start[0, i]
    context = np.int64(0)
    if plan.cursor >= 0:
        for i in range(start.shape[1]):
            if start[0, i] == plan.cursor:
                context = np.int64(i)
    tree.context[0], tree.cost[0] = context, 0
    tree.arrival[0] = plan.legal.shape[0] * plan.legal.shape[1] + context
    make_kept(guide, tree.states, 0, tree.kept)
    for depth in range(length):
        _descend(tree, moves, guide, np.int64(depth), np.int64(path[depth]))
    at = tree.progress[0]
    at.depth = at.first = length
    at.status, at.deepest = RUNNING, length
    at.next_bound = at.next_base = NEVER
    tree.f[length] = tree.cost[length] + np.int64(np.ceil(value_of(guide, tree.states, length, tree.kept)))
    tree.left[length] = NOT_EXPANDED


@inner
def _descend(tree: Tree, moves: TreeMoves, guide: Any, depth: Number, step: Number) -> None:
    """Write the row below `depth`."""
    plan, context = moves.plan, np.int64(tree.context[depth])
    play_step(plan, context, step, tree.states, depth, depth + 1)
    update_kept(guide, plan, context, step, tree.states, depth, depth + 1, tree.kept)
    tree.context[depth + 1] = plan.landing[context, step]
    tree.arrival[depth + 1] = context * plan.legal.shape[1] + step
    tree.cost[depth + 1] = tree.cost[depth] + plan.cost[context, step]
    tree.left[depth + 1] = NOT_EXPANDED


@inner
def _is_goal(tree: Tree, moves: TreeMoves, depth: Number) -> Number:
    for g in range(moves.goals.shape[0]):
        same = True
        for i in range(moves.goals.shape[1]):
            same &= tree.states[depth, i] == moves.goals[g, i]
        if same:
            return True
    return False


@compiled_loop
def search_tree(
    tree: Tree, moves: TreeMoves, guide: Any, base: Sums, bound: Number, most: Number, split: Number, paths: I16, rules: I64
) -> Number:
    """Search below the planted node until the goal is found, everything is cut off, or `most` nodes were expanded.

    split: nodes at this depth are not searched; the steps that lead to them are written to `paths`. Returns how many were; if there
    is no more room the search stops, and `status` is still RUNNING. rules: whether to note g + h0 of what is cut off, and whether
    children may correct their parent.
    """
    at, written, stop = tree.progress[0], np.int64(0), tree.progress[0].expanded + most
    needs_base, corrects = rules[0] != 0, rules[1] != 0
    depth = np.int64(at.depth)
    while True:
        if tree.left[depth] == NOT_EXPANDED:
            if tree.f[depth] == tree.cost[depth] and _is_goal(tree, moves, depth):
                at.status, at.expanded = FOUND, at.expanded + 1
                break
            if at.expanded >= stop:
                break
            at.deepest = max(at.deepest, depth)
            _expand(tree, moves, guide, base, depth, bound, needs_base, corrects)
        left = tree.left[depth]
        if left == 0:
            if depth == at.first:
                at.status = EXHAUSTED
                break
            depth -= 1
            continue
        which = tree.count[depth] - left
        if depth + 1 == split:
            if written == paths.shape[0]:
                break
            for k in range(depth):
                paths[written, k] = tree.steps[k, tree.count[k] - tree.left[k] - 1]
            paths[written, depth] = tree.steps[depth, which]
            written += 1
            tree.left[depth] = left - 1
            continue
        tree.left[depth] = left - 1
        _descend(tree, moves, guide, depth, np.int64(tree.steps[depth, which]))
        depth += 1
        tree.f[depth] = tree.values[depth - 1, which]
    at.depth = depth
    return written


@inner
def _expand(
    tree: Tree, moves: TreeMoves, guide: Any, base: Sums, depth: Number, bound: Number, needs_base: Number, corrects: Number
) -> None:
    """Evaluate all children, and note those that the bound lets through."""
    at, plan, context, arrival = tree.progress[0], moves.plan, np.int64(tree.context[depth]), tree.arrival[depth]
    g, kept, raised = tree.cost[depth], np.int64(0), tree.f[depth]
    next_bound, count = at.next_bound, moves.follows[arrival]
    for k in range(count):
        step = np.int64(moves.follow[arrival, k])
        cost = g + np.int64(plan.cost[context, step])
        value = value_after(guide, plan, context, step, tree.states, depth, tree.kept, bound - cost)
        f = cost + np.int64(np.ceil(value))
        if corrects and moves.back[context, step] >= 0:
            raised = max(raised, g + (f - cost) - np.int64(moves.back[context, step]))
        if f <= bound:
            tree.steps[depth, kept], tree.values[depth, kept] = step, f
            kept += 1
        else:
            next_bound = min(next_bound, f)
            if needs_base:
                play_step(plan, context, step, tree.states, depth, depth + 1)
                least = np.int64(shared_out(base, sum_of(base, tree.states, depth + 1)))
                at.next_base = min(at.next_base, cost + least)
    if raised > bound:
        next_bound, kept = min(at.next_bound, raised), np.int64(0)
    at.next_bound = next_bound
    at.expanded += 1
    at.expanded_below += tree.f[depth] < bound
    at.generated += count
    at.evaluated += count
    tree.count[depth] = tree.left[depth] = kept
