"""Expanding a node: its children are made, looked up, and stored where they are new or reached more cheaply than before."""

from typing import Any

import numpy as np

from undershoot.arrays import Number, Record
from undershoot.kernels.compiler import inner, pasted
from undershoot.kernels.guides import kept_size, make_kept, update_kept, value_of
from undershoot.search.hash_index import ask_for_slot, hash_of, look_up, occupy
from undershoot.search.nodes import CLOSED, OPEN, WAITING, copy_state, place_in_word
from undershoot.search.workspace import MAX_COST, RUNNING, TOO_DEAR, Moves, Workspace

PARENT = np.int64(0)
"""The row of `family` for the node that is expanded; its children follow."""


@inner
def is_goal(node: Record, moves: Moves) -> Number:
    """Whether the node's state is one of the goals."""
    among = False
    for k in range(moves.goals.shape[0]):
        same = True
        for w in range(node.state.shape[0]):
            same &= node.state[w] == moves.goals[k, w]
        among |= same
    return among


@pasted
def expand(ws: Workspace, i: Number, number: Number, moves: Moves, guide: Any) -> Number:
    """Make the children of a node of search i. Returns RUNNING, or TOO_DEAR if one of them costs too much."""
    search = ws.searches[i]
    node = ws.nodes[search.nodes_at + number]
    context, g = np.int64(node.context), np.int64(node.g)
    ws.kept[PARENT, 0] = node.kept
    copy_state(node, ws.family[PARENT])
    status: Number = np.int64(RUNNING)
    for row in range(1, 1 + _make_children(ws, search, context, node.undo, moves)):
        child = ws.family[row]
        step = child.step
        cost = g + moves.plan.cost[context, step]
        known, slot = look_up(ws, search, child)
        if cost > MAX_COST:
            status = TOO_DEAR
            continue
        is_new = known < 0
        if is_new:
            known = _store(ws, search, row, slot, context, moves, guide)
        reached = ws.nodes[search.nodes_at + known]
        if not is_new:
            if reached.g <= cost:
                continue
            search.reopened += (reached.flags & CLOSED) != 0
            if reached.flags & WAITING:
                is_new = _withdraw(ws, i, known)
        reached.parent, reached.g = number, cost
        reached.action, reached.undo = step, moves.undo[context, step]
        reached.context, reached.flags = moves.plan.landing[context, step], OPEN | WAITING
        let_wait(ws, i, known, is_new)
    return status


@inner
def let_wait(ws: Workspace, i: Number, number: Number, is_new: Number) -> None:
    """A node is to be pushed in the next round. is_new: once it has its value."""
    search = ws.searches[i]
    ws.waiting[i, search.waiting], ws.is_new[i, search.waiting] = number, is_new
    search.waiting += 1


@inner
def _make_children(ws: Workspace, search: Record, context: Number, undo: Number, moves: Moves) -> Number:
    """Write all children but the one that goes back to `family`, and ask the memory for where the index has them.

    Going back leads to the parent, which is known already, and at less cost. Returns how many there are.
    """
    made = 0
    for step in range(moves.plan.legal.shape[1]):
        if not moves.plan.legal[context, step]:
            continue
        search.generated += 1
        if step == undo:
            continue
        made += 1
        child = ws.family[made]
        _make_child(ws, child, context, step, moves)
        child.step = step
        child.hash = hash_of(child)
        ask_for_slot(ws, search, child.hash)
    return made


@inner
def _make_child(ws: Workspace, child: Record, context: Number, step: Number, moves: Moves) -> None:
    """Write the state that the step leads to."""
    # Whole words, then the few cells that change: reading words that were written byte by byte stalls.
    plan = moves.plan
    copy_state(ws.family[PARENT], child)
    for k in range(plan.changes[context, step]):
        cell = np.int64(plan.cell[context, step, k])
        value = np.int64(ws.family_cells[PARENT, plan.origin[context, step, k]]) + np.int64(plan.shift[context, step, k])
        if value >= plan.modulus[cell]:
            value -= np.int64(plan.modulus[cell])
        place = place_in_word(cell)
        others = child.state[cell >> 3] & ~(np.uint64(255) << place)
        child.state[cell >> 3] = others | (np.uint64(value) << place)


@pasted
def _store(ws: Workspace, search: Record, row: Number, slot: Number, context: Number, moves: Moves, guide: Any) -> Number:
    """A new node for family[row], with its value if the guide is in the loop. Returns its number."""
    child, number = ws.family[row], search.stored
    occupy(ws, search, slot, number, child.hash)
    search.stored += 1
    search.evaluated += 1
    node = ws.nodes[search.nodes_at + number]
    copy_state(child, node)
    if kept_size(guide) == 1:
        update_kept(guide, moves.plan, context, child.step, ws.family_cells, PARENT, ws.kept, PARENT, row)
        node.kept = ws.kept[row, 0]
    else:
        make_kept(guide, ws.family_cells, row, ws.kept, row)
    node.h = value_of(guide, ws.family_cells, row, ws.kept, row)
    return number


@inner
def _withdraw(ws: Workspace, i: Number, number: Number) -> Number:
    """A node that waits was reached more cheaply: it will wait at the end instead. Returns whether it has no value yet."""
    is_new = False
    for k in range(ws.searches[i].waiting):
        if ws.waiting[i, k] == number:
            ws.waiting[i, k] = -1
            is_new = ws.is_new[i, k] != 0
    return is_new
