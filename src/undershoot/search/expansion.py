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
def expand(ws: Workspace, lane: Number, number: Number, moves: Moves, guide: Any) -> Number:
    """Make the children of a node. Returns RUNNING, or TOO_DEAR if one of them costs too much."""
    search = ws.searches[lane]
    parent = ws.nodes[search.nodes_at + number]
    context, parent_g = np.int64(parent.context), np.int64(parent.g)
    ws.kept[PARENT, 0] = parent.kept
    copy_state(parent, ws.family[PARENT])
    status: Number = np.int64(RUNNING)
    for row in range(1, 1 + _make_children(ws, search, context, parent.undo, moves)):
        step = ws.family[row].step
        g = parent_g + moves.plan.cost[context, step]
        child, slot = look_up(ws, search, ws.family[row])
        if g > MAX_COST:
            status = TOO_DEAR
            continue
        needs_value = child < 0
        if needs_value:
            child = _store(ws, search, row, slot, context, moves, guide)
        node = ws.nodes[search.nodes_at + child]
        if not needs_value:
            if node.g <= g:
                continue
            search.reopened += (node.flags & CLOSED) != 0
            if node.flags & WAITING:
                needs_value = _withdraw(ws, lane, child)
        node.parent, node.g = number, g
        node.action, node.undo = step, moves.undo[context, step]
        node.context, node.flags = moves.plan.landing[context, step], OPEN | WAITING
        let_wait(ws, lane, child, needs_value)
    return status


@inner
def let_wait(ws: Workspace, lane: Number, number: Number, needs_value: Number) -> None:
    """A node is to be pushed in the next round. needs_value: once it has one."""
    search = ws.searches[lane]
    ws.waiting[lane, search.waiting], ws.needs_value[lane, search.waiting] = number, needs_value
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


@pasted
def evaluate_start(ws: Workspace, search: Record, guide: Any) -> None:
    """The value of a search's first node, from the guide in the loop."""
    start, node = ws.family[PARENT], ws.nodes[search.nodes_at]
    copy_state(node, start)
    make_kept(guide, ws.family_cells, PARENT, ws.kept, PARENT)
    node.h, node.kept = value_of(guide, ws.family_cells, PARENT, ws.kept, PARENT), ws.kept[PARENT, 0]


@inner
def _withdraw(ws: Workspace, lane: Number, number: Number) -> Number:
    """A node that waits was reached more cheaply: it will wait at the end instead. Returns whether it has no value yet."""
    needs_value = False
    for k in range(ws.searches[lane].waiting):
        if ws.waiting[lane, k] == number:
            ws.waiting[lane, k] = -1
            needs_value = ws.needs_value[lane, k] != 0
    return needs_value
