"""Reading off what searches found: paths, bounds, and states that they expanded."""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import F32, I32, I64, U64, AnyArray, Number, Record, States
from undershoot.kernels.compiler import compiled_loop, inner
from undershoot.kernels.sums import Sums, shared_out, sum_of
from undershoot.search.heads import expansions_below
from undershoot.search.nodes import CLOSED, OPEN, WAITING, value_in_state
from undershoot.search.workspace import SOLVED, Moves, Rules, Workspace

FIRST = np.int64(0)


class Paths(NamedTuple):
    """Solutions of K searches, end to end, and what else is read off."""

    ends: I64
    """int64[K]: path k ends before action ends[k] and begins where the one before it ends; empty without a solution."""
    costs: I64
    """int64[K], 0 without a solution."""
    below: I64
    """int64[K]: expansions with f below that cost."""
    actions: I32
    """int32[sum of lengths]."""
    states: States
    """uint8[sum of lengths, n]: before each action."""
    values: F32
    """float32[sum of lengths]: h of these states."""
    start_values: F32
    """float32[K]: h of the starts; not a number where it was not asked for."""


def read_paths(ws: Workspace, lanes: I64, moves: Moves) -> Paths:
    """Of the searches in `lanes`."""
    lengths, costs, below = np.zeros((3, len(lanes)), dtype=np.int64)
    _measure_paths(ws, lanes, moves, lengths, costs, below)
    ends = np.cumsum(lengths)
    actions = np.zeros(int(lengths.sum()), dtype=np.int32)
    states = np.zeros((len(actions), moves.cells), dtype=np.uint8)
    values = np.zeros(len(actions), dtype=np.float32)
    _write_paths(ws, lanes, ends, actions, states, values)
    start_values = np.full(len(lanes), np.nan, dtype=np.float32)
    _write_start_values(ws, lanes, start_values)
    return Paths(ends, costs, below, actions, states, values, start_values)


@compiled_loop
def _measure_paths(ws: Workspace, lanes: I64, moves: Moves, lengths: I64, costs: I64, below: I64) -> None:
    for k in range(lanes.shape[0]):
        search = ws.searches[lanes[k]]
        number = search.goal
        while number >= 0:
            node = ws.nodes[search.nodes_at + number]
            number = np.int64(node.parent)
            if number >= 0:
                lengths[k] += 1
                costs[k] += moves.plan.cost[ws.nodes[search.nodes_at + number].context, node.action]
        below[k] = expansions_below(ws, search, costs[k])


@compiled_loop
def _write_paths(ws: Workspace, lanes: I64, ends: I64, actions: I32, states: States, values: F32) -> None:
    for k in range(lanes.shape[0]):
        search = ws.searches[lanes[k]]
        number, row = search.goal, ends[k]
        while number >= 0:
            node = ws.nodes[search.nodes_at + number]
            number = np.int64(node.parent)
            if number >= 0:
                row -= 1
                actions[row] = node.action
                previous = ws.nodes[search.nodes_at + number]
                values[row] = previous.h
                write_state(previous, states, row)


@compiled_loop
def _write_start_values(ws: Workspace, lanes: I64, values: F32) -> None:
    for k in range(lanes.shape[0]):
        search = ws.searches[lanes[k]]
        if search.stored > 0:
            values[k] = ws.nodes[search.nodes_at].h


@inner
def write_state(node: Record, states: States, row: Number) -> None:
    """To states[row]."""
    for cell in range(states.shape[1]):
        states[row, cell] = value_in_state(node, cell)


@compiled_loop
def open_bounds(
    ws: Workspace, lanes: I64, rules: Rules, base: Sums, guide_is_proven: Number, state: States, bounds: AnyArray
) -> None:
    """Of each search the least g + h over open nodes, infinite if there are none, to bounds, float64[K].

    h is the analytic value, or the guide's if that is proven and larger. Where the solution is optimal anyway nothing is
    sought. state: uint8[1, n], to work in.
    """
    for k in range(lanes.shape[0]):
        search = ws.searches[lanes[k]]
        bounds[k] = np.inf
        settled = search.status == SOLVED and guide_is_proven and rules.weight == 1
        for number in range(0 if settled else search.stored):
            node = ws.nodes[search.nodes_at + number]
            if node.flags & OPEN:
                write_state(node, state, FIRST)
                h = np.float64(shared_out(base, sum_of(base, state, FIRST)))
                # A child that waits for its value when a limit strikes has only the analytic one.
                if guide_is_proven and not node.flags & WAITING:
                    h = max(h, np.float64(node.h))
                bounds[k] = min(bounds[k], node.g + h)


@compiled_loop
def write_expanded(ws: Workspace, lanes: I64, random: U64, states: States) -> None:
    """One of the expanded states of each search, the random[k] mod their number-th; the start if there is none."""
    for k in range(lanes.shape[0]):
        search = ws.searches[lanes[k]]
        expanded = np.uint64(0)
        for number in range(search.stored):
            expanded += np.uint64((ws.nodes[search.nodes_at + number].flags & CLOSED) != 0)
        left = np.int64(random[k] % max(expanded, np.uint64(1)))
        chosen: Number = np.int64(0)
        for number in range(search.stored if expanded else 0):
            if ws.nodes[search.nodes_at + number].flags & CLOSED:
                if left == 0:
                    chosen = np.int64(number)
                    break
                left -= 1
        write_state(ws.nodes[search.nodes_at + chosen], states, k)
