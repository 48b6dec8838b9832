"""One iteration of IDA*, compiled: depth-first; children whose f passes the bound are cut off.

The path to the node that is searched is held as rows, one for each depth, so that a search can stop anywhere and go on later.
Numbers that index arrays are unsigned: for signed ones compiled code would look each time whether they count from the end.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U8, U16, U64, AnyArray, Number, Records, States, frozen
from undershoot.kernels.compiler import compiled_loop, inner
from undershoot.kernels.guides import looks_ahead, make_kept, update_kept, value_after, value_of, values_after, whole
from undershoot.kernels.plan import Plan, forward_plan
from undershoot.kernels.steps import play_step, step_back, step_on
from undershoot.kernels.sums import Sums, shared_out, sum_of
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.pairs import Pair, classify_pairs

SEARCHING, FOUND, EXHAUSTED, REFUSED = 0, 1, 2, 3
NEVER = 2**40
"""A bound that nothing passes."""
SMALL = ("arrival", "context", "step", "children", "visited", "is_expanded")
ROW = np.dtype([("cost", np.int64), ("f", np.int64), *((name, np.uint32) for name in SMALL)])
"""A node on the path. `cost`: g. `arrival`: by which step it was reached and from where, a row of `TreeMoves.follow`. `step`:
the one that leads to the row below. `children`: how many were not cut off; `visited`: how many of these were searched."""
COUNTERS = ("expanded", "expanded_below", "generated")
PROGRESS = np.dtype(
    [("depth", np.uint64), ("root_depth", np.uint64), ("deepest", np.uint64)]
    + [(name, np.int64) for name in ("status", "next_bound", "next_base", *COUNTERS)]
)
"""Where the search stands. `root_depth`: the depth above which it does not go back. `next_bound`: the least f that was cut off,
`next_base`: the least g + h0 that was, if asked for."""
ZERO, ONE, SHIFT = np.uint64(0), np.uint64(1), np.uint64(16)
STEP = np.uint64(0xFFFF)


class Tree(NamedTuple):
    """The path, and what was not cut off beside it."""

    rows: Records
    """ROW[D + 1]."""
    children: U64
    """uint64[(D + 1) * S]: steps, and 2^16 times f, of the children of each row."""
    states: U8
    """uint8[2, n]: the deepest state, and one to work in."""
    kept: I32
    """int32[D + 2, kept_size], what the guide keeps."""
    values: I64
    """int64[3, S]: h of the children of one node, and room to work in."""
    progress: Records
    """PROGRESS[1]."""


class CutOff(NamedTuple):
    """What follows from what is cut off."""

    notes_base: Number
    """Whether the least g + h0 of it is noted, for bounds that do not rest on the heuristic."""
    corrects_parent: Number
    """Whether children may show that their parent is farther from the goal than it says (BPMX)."""
    goal_value: Number
    """The largest h of a goal: only nodes of at most so much are compared with the goals."""


class TreeMoves(NamedTuple):
    """The puzzle."""

    plan: Plan
    follow: U16
    """uint16[(C * S + C) * (S + 1)]: how many steps are worth trying, and which, after a step x from context c, row c * S + x,
    or at the start in context c, row C * S + c: not those that come back, or that another order reaches."""
    goals: States
    back: I32
    """int32[C, S]: what the step back costs; -1 where there is none."""


@lru_cache(maxsize=64)
def tree_moves(table: MoveTable) -> TreeMoves:
    """The puzzle, for the compiled loop."""
    steps = table.forward
    contexts, width = steps.legal.shape
    pairs = classify_pairs(table, steps)
    follow = np.zeros((contexts * width + contexts, width + 1), dtype=np.uint16)

    def allow(row: int, allowed: AnyArray) -> None:
        follow[row, 0], follow[row, 1 : 1 + len(allowed)] = len(allowed), allowed

    for c in range(contexts):
        allow(contexts * width + c, np.flatnonzero(steps.legal[c]))
        for x in np.flatnonzero(steps.legal[c]):
            allow(c * width + x, np.flatnonzero(steps.legal[steps.landing[c, x]] & (pairs[c, x] == Pair.NEW)))
    inverse = np.where(table.inverse >= 0, table.alike[table.inverse], -1)
    back = np.where(inverse >= 0, table.cost[inverse], -1).astype(np.int32)
    return TreeMoves(forward_plan(table), frozen(follow.ravel()), table.goals, frozen(back))


def make_tree(moves: TreeMoves, depth: int, kept_size: int) -> Tree:
    """Room for nodes down to this depth."""
    width, cells = moves.plan.legal.shape[1], len(moves.plan.modulus)
    return Tree(
        np.zeros(depth + 2, dtype=ROW),
        np.zeros((depth + 2) * width, dtype=np.uint64),
        np.zeros((2, cells), dtype=np.uint8),
        np.zeros((depth + 3, max(1, kept_size)), dtype=np.int32),
        np.zeros((3, width), dtype=np.int64),
        np.zeros(1, dtype=PROGRESS),
    )


@compiled_loop
def plant(tree: Tree, moves: TreeMoves, guide: Any, start: States, path: U16, length: Number) -> None:
    """Let an iteration begin at the end of path[:length] from start[0]; it does not go back above that."""
    plan, context = moves.plan, np.int64(0)
    for i in range(start.shape[1]):
        tree.states[0, i] = start[0, i]
        if start[0, i] == plan.cursor:
            context = np.int64(i)
    root = tree.rows[0]
    root.context, root.cost, root.is_expanded = context, 0, 0
    root.arrival = plan.legal.shape[0] * plan.legal.shape[1] + context
    make_kept(guide, tree.states, 0, tree.kept, ZERO)
    depth = ZERO
    for k in range(length):
        _descend(tree, moves, guide, depth, np.uint64(path[k]))
        depth += ONE
    progress, row = tree.progress[0], tree.rows[depth]
    progress.depth = progress.root_depth = progress.deepest = depth
    progress.status, progress.next_bound, progress.next_base = SEARCHING, NEVER, NEVER
    row.f = row.cost + whole(value_of(guide, tree.states, 0, tree.kept, depth))


@inner
def _descend(tree: Tree, moves: TreeMoves, guide: Any, depth: Number, step: Number) -> None:
    """Play a step, and write the row below `depth`."""
    row, below, plan = tree.rows[depth], tree.rows[depth + ONE], moves.plan
    context = np.uint64(row.context)
    update_kept(guide, plan, context, step, tree.states, 0, tree.kept, depth, depth + ONE)
    step_on(plan, context, step, tree.states, 0)
    row.step = step
    below.context = plan.landing[context, step]
    below.arrival = context * np.uint64(plan.legal.shape[1]) + step
    below.cost = row.cost + np.int64(plan.cost[context, step])
    below.is_expanded = 0


@inner
def _is_goal(tree: Tree, moves: TreeMoves) -> Number:
    for goal in range(moves.goals.shape[0]):
        same = True
        for i in range(moves.goals.shape[1]):
            same &= tree.states[0, i] == moves.goals[goal, i]
        if same:
            return True
    return False


@compiled_loop
def search_tree(
    tree: Tree, moves: TreeMoves, guide: Any, base: Sums, bound: Number, most: Number, split: Number, paths: U16, cut: CutOff
) -> Number:
    """Search below the planted node until the goal is found, everything is cut off, or `most` nodes were expanded.

    split: nodes at this depth are not searched; the steps that lead to them are written to `paths`. Returns how many were; if
    there is no more room the search stops, and `status` is still SEARCHING. cut: what is noted of what is cut off.
    """
    progress, written, width = tree.progress[0], np.int64(0), np.uint64(moves.plan.legal.shape[1])
    depth, root_depth, stop = np.uint64(progress.depth), np.uint64(progress.root_depth), progress.expanded + most
    while True:
        row = tree.rows[depth]
        if row.is_expanded == 0:
            if progress.expanded >= stop:
                break
            if row.f <= row.cost + cut.goal_value and _is_goal(tree, moves):
                progress.status, progress.expanded = FOUND, progress.expanded + 1
                break
            progress.deepest = max(np.uint64(progress.deepest), depth)
            _expand(tree, moves, guide, base, depth, bound, cut)
            if progress.status == REFUSED:
                break
        if row.visited == row.children:
            if depth == root_depth:
                progress.status = EXHAUSTED
                break
            depth -= ONE
            above = tree.rows[depth]
            step_back(moves.plan, np.uint64(above.context), np.uint64(above.step), tree.states, 0)
            continue
        child = tree.children[depth * width + np.uint64(row.visited)]
        if depth + ONE == np.uint64(split):
            if written == paths.shape[0]:
                break
            for k in range(split - 1):
                paths[written, k] = tree.rows[k].step
            paths[written, split - 1] = child & STEP
            row.visited += 1
            written += 1
            continue
        row.visited += 1
        _descend(tree, moves, guide, depth, child & STEP)
        depth += ONE
        tree.rows[depth].f = np.int64(child >> SHIFT)
    progress.depth = depth
    return written


@inner
def _expand(tree: Tree, moves: TreeMoves, guide: Any, base: Sums, depth: Number, bound: Number, cut: CutOff) -> None:
    """Evaluate all children, and note those that the bound lets through."""
    progress, plan, row = tree.progress[0], moves.plan, tree.rows[depth]
    width, context, g, corrected_f = np.uint64(plan.legal.shape[1]), np.uint64(row.context), row.cost, row.f
    follow_at = np.uint64(row.arrival) * (width + ONE)
    begin = free = depth * width
    next_bound, count = np.int64(NEVER), np.uint64(moves.follow[follow_at])
    first, room = follow_at + ONE, bound - g
    if looks_ahead(guide):
        values_after(guide, plan, context, moves.follow, first, count, tree.states, 0, tree.kept, depth, room, tree.values)
    for k in range(count):
        step = np.uint64(moves.follow[first + k])
        cost = g + np.int64(plan.cost[context, step])
        if looks_ahead(guide):
            h = tree.values[0, k]
        else:
            h = whole(value_after(guide, plan, context, step, tree.states, 0, tree.kept, depth, bound - cost))
        if h < 0:  # no number, or infinite
            progress.status = REFUSED
        f = cost + max(h, np.int64(0))
        if f <= bound:
            tree.children[free] = step | (np.uint64(f) << SHIFT)
            free += ONE
            continue
        next_bound = min(next_bound, f)
        if cut.corrects_parent and moves.back[context, step] >= 0:
            corrected_f = max(corrected_f, g + (f - cost) - np.int64(moves.back[context, step]))
        if cut.notes_base:
            play_step(plan, context, step, tree.states, 0, 1)
            progress.next_base = min(progress.next_base, cost + np.int64(shared_out(base, sum_of(base, tree.states, 1))))
    if corrected_f > bound:
        next_bound, free = corrected_f, begin
    progress.next_bound = min(progress.next_bound, next_bound)
    progress.expanded += 1
    progress.expanded_below += row.f < bound
    progress.generated += np.int64(count)
    row.is_expanded, row.visited, row.children = 1, 0, free - begin
