"""The compiled loop of A*: rounds of many searches, each exactly as if it were alone.

A round of a search: nodes that wait, now that they have values, go into the open list; the best node is taken from it; if
it is a goal, the search ends; otherwise its children are made, and those that are new or reached more cheaply wait for the next
round.
"""

from typing import Any

import numpy as np

from undershoot.arrays import F32, Number, Record, States
from undershoot.kernels.compiler import compiled_loop, inner, pasted
from undershoot.kernels.prefetch import prefetch
from undershoot.search.expansion import evaluate_start, expand, is_goal, let_wait
from undershoot.search.hash_index import make_room_in_index
from undershoot.search.heads import bucket_at, count_expansion, layer_at
from undershoot.search.nodes import CLOSED, WAITING, f_of, is_wrong, make_room_for_nodes, value_in_state
from undershoot.search.open_list import make_room_in_open_list, pop, push
from undershoot.search.workspace import (
    OUT_OF_MEMORY,
    OVER_BUDGET,
    RUNNING,
    SOLVED,
    UNSOLVABLE,
    WRONG_VALUE,
    Moves,
    Rules,
    Workspace,
)

AHEAD = 8
"""Turns between asking the memory for something and using it."""


@compiled_loop
def advance(
    ws: Workspace, moves: Moves, guide: Any, rules: Rules, values: F32, out: States, quantum: Number, first_lane: Number
) -> tuple[Number, Number]:
    """One round of every search that runs; or, with the guide in the loop, so many rounds that it ends.

    In the loop they run one after another, beginning with that in `first_lane`, until together they have made `quantum`
    expansions. Otherwise new nodes get their values from `values`, float32[R], and the states of those that come up are written
    to `out`, uint8[R, n], whose values are expected at the next call. Returns the number of rows of `out`, and the lane to
    begin with.
    """
    rows, left, count = np.int64(0), np.int64(quantum), ws.searches.shape[0]
    for turn in range(count):
        lane = (first_lane + turn) % count
        if not rules.in_loop:
            _ask_ahead(ws, lane, values, rules)
        search = ws.searches[lane]
        if search.status != RUNNING:
            continue
        if left <= 0:
            return rows, lane
        if rules.in_loop and search.stored == 1:
            evaluate_start(ws, search, guide)
        expanded_before = search.expanded
        search.status = _rounds(ws, lane, moves, guide, rules, values, expanded_before + left)
        if not rules.in_loop:
            if search.status == RUNNING:
                rows = _write_new_states(ws, lane, moves.cells, rows, out)
            continue
        left -= search.expanded - expanded_before
        if search.status == RUNNING:
            return rows, lane
        if search.status == OUT_OF_MEMORY:
            left = np.int64(0)  # what it holds is given back before the next one runs
    return rows, np.int64(0)


@pasted
def _rounds(ws: Workspace, lane: Number, moves: Moves, guide: Any, rules: Rules, values: F32, most: Number) -> Number:
    """One round, or in the loop rounds until there are `most` expansions. Returns the status."""
    search = ws.searches[lane]
    while True:
        if not _make_room(ws, search, rules, rules.per_step * moves.plan.legal.shape[1] + 1):
            return OUT_OF_MEMORY
        status = _push_those_that_wait(ws, lane, moves, rules, values)
        if status != RUNNING or search.expanded >= most:
            return status
        status = _take_and_expand(ws, lane, moves, guide, rules)
        if status != RUNNING or not rules.in_loop:
            return status


@inner
def _make_room(ws: Workspace, search: Record, rules: Rules, children: Number) -> Number:
    """For what waits and for one round more, before anything is taken from the open list; False if there is none."""
    if search.stored + children > rules.most_nodes:
        return False
    if max(search.pushes, search.entries_used) + 2 * children > rules.most_entries:
        return False
    return (
        make_room_for_nodes(ws, search, children)
        and make_room_in_index(ws, search, children)
        and make_room_in_open_list(ws, search, 2 * children)
    )


@inner
def _push_those_that_wait(ws: Workspace, lane: Number, moves: Moves, rules: Rules, values: F32) -> Number:
    """Into the open list, new ones with their values, which outside the loop were checked already. RUNNING, or why not."""
    search = ws.searches[lane]
    row = search.first_row
    for k in range(search.waiting):
        number = ws.waiting[lane, k]
        if number < 0:
            continue
        node = ws.nodes[search.nodes_at + number]
        if ws.needs_value[lane, k]:
            if not rules.in_loop:
                node.h = values[row]
                row += 1
            elif is_wrong(node.h, rules) or (rules.goals_are_0 and node.h > 0 and is_goal(node, moves)):
                search.refused = number
                return WRONG_VALUE
        node.flags &= ~WAITING
        status = push(ws, search, number, rules)
        if status != RUNNING:
            return status
    search.waiting = 0
    return RUNNING


@pasted
def _take_and_expand(ws: Workspace, lane: Number, moves: Moves, guide: Any, rules: Rules) -> Number:
    """Take up to `per_step` nodes from the open list and expand them. Returns the status."""
    search = ws.searches[lane]
    status: Number = np.int64(RUNNING)
    for taken in range(rules.per_step):
        if taken > 0 and search.expanded >= rules.most_expanded:
            break
        number, f = pop(ws, search, rules)
        has_solution = search.incumbent >= 0
        if number < 0 or (has_solution and f >= search.incumbent):
            if taken == 0:
                return SOLVED if has_solution else UNSOLVABLE
            if number >= 0:
                # It is not wanted now, but may be after the children that wait: it goes back with them.
                ws.nodes[search.nodes_at + number].flags |= WAITING
                let_wait(ws, lane, number, np.bool_(False))
            break
        if search.expanded >= rules.most_expanded:
            return OVER_BUDGET
        if not count_expansion(ws, search, f, rules.buckets):
            return OUT_OF_MEMORY
        node = ws.nodes[search.nodes_at + number]
        node.flags = CLOSED
        if not is_goal(node, moves):
            status = max(status, expand(ws, lane, number, moves, guide))
            continue
        if not has_solution or node.g < search.incumbent:
            search.incumbent, search.goal = node.g, number
        if rules.per_step == 1:
            return SOLVED
    return status


@inner
def _write_new_states(ws: Workspace, lane: Number, cells: Number, rows: Number, out: States) -> Number:
    """The states of nodes that wait for their values go to `out`, from row `rows` on. Returns the first row after them."""
    search = ws.searches[lane]
    search.first_row = rows
    for k in range(search.waiting):
        if ws.waiting[lane, k] >= 0 and ws.needs_value[lane, k]:
            node = ws.nodes[search.nodes_at + ws.waiting[lane, k]]
            for cell in range(cells):
                out[rows, cell] = value_in_state(node, cell)
            rows += 1
    return rows


@inner
def _ask_ahead(ws: Workspace, lane: Number, values: F32, rules: Rules) -> None:
    """The searches take turns and each finds its memory cold: ask for what those a few turns ahead will touch."""
    far, near = lane + 2 * AHEAD, lane + AHEAD
    if far < ws.searches.shape[0]:
        search = ws.searches[far]
        if search.status == RUNNING:
            newest = search.nodes_at + search.stored - 1
            prefetch(ws.nodes, newest)
            prefetch(ws.nodes, newest - 1)
            entry = search.entries_at + (search.entry_to_reuse or search.entries_used)
            if rules.buckets:
                prefetch(ws.entries, entry)
            else:
                prefetch(ws.heap, entry)
    if rules.buckets and near < ws.searches.shape[0]:
        search = ws.searches[near]
        if search.status == RUNNING:
            _ask_for_buckets(ws, near, values, rules)


@inner
def _ask_for_buckets(ws: Workspace, lane: Number, values: F32, rules: Rules) -> None:
    """Fetch the buckets into which the nodes that wait will go, and what is looked at when one is taken."""
    search = ws.searches[lane]
    row = search.first_row
    prefetch(ws.heads, search.heads_at + search.least_f)
    prefetch(ws.layers, layer_at(search, search.least_f))
    for k in range(search.waiting):
        if ws.waiting[lane, k] >= 0:
            node = ws.nodes[search.nodes_at + ws.waiting[lane, k]]
            f = f_of(node, rules)
            if ws.needs_value[lane, k]:
                f = node.g + rules.weight * np.float64(values[row])
                row += 1
            prefetch(ws.buckets, bucket_at(search, np.int64(f), np.int64(node.g)))
