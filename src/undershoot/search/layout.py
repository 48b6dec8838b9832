"""How a search lies in memory, for the compiled parts of A*.

A node is SW words of state (a byte a cell) and three more:

    parent, g | h, raw sum of the analytic heuristic | action (16 bits), context (8), flags (8), the action that undoes it

A slot of the index is 1 + node number (32 bits) and 32 bits of the hash; words of states are compared all the same.

The open list is a table of buckets (f, g) where f is whole, otherwise a binary heap. A node that is reached more cheaply is
pushed again; what it leaves behind is skipped when it comes up, since the node is closed or has another g by then.
"""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, U64, Number
from undershoot.kernels.compiler import compiled
from undershoot.kernels.hashing import finished, mixed
from undershoot.kernels.prefetch import prefetch
from undershoot.search.workspace import (
    COUNT,
    HEADS,
    HEADS_AT,
    HEADS_SIZE,
    INDEX,
    INDEX_AT,
    INDEX_SIZE,
    NODES_AT,
    SPAN,
    Workspace,
    enlarge,
    release,
    take,
)

OPEN, CLOSED, WAITING = 1, 2, 4
"""Flags of a node: in the open list; expanded; about to be pushed."""
FIRST_NODES, FIRST_SLOTS, FIRST_ENTRIES, FIRST_SPAN = 64, 256, 128, 32
MOST_SPAN_OF_BUCKETS = 1024
MOST_SPAN = 1 << 16
MAX_COST = 1 << 24  # up to here float32 holds every whole number
MOST_KEPT_SLOTS = 1 << 14
MOST_NODES, MOST_ENTRIES = 2**31 - 1, 2**32 - 1
"""Numbers of nodes have 31 bits, those of entries of an open list, and the serial numbers of a heap, 32."""
AHEAD = 8
MAX_LOAD = 0.7
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


class Analytic(NamedTuple):
    """A heuristic that is evaluated inside the loop; see `BaseHeuristic`."""

    cell_cost: I32
    pair_cost: I32
    """int32[m, m], or int32[0, 0] for none."""
    divisor: Number


class Rules(NamedTuple):
    """What stays the same for all searches of a call."""

    in_loop: Number
    """Whether `Analytic` guides; otherwise values come from outside."""
    buckets: Number
    deep: Number
    weight: Number
    per_step: Number
    most_expanded: Number
    cells: Number
    most_nodes: Number = MOST_NODES
    most_entries: Number = MOST_ENTRIES


@compiled
def byte_of(words: U64, at: Number, i: Number) -> Number:
    """The value of cell i of the state that begins at words[at]."""
    return np.int64((words[at + (i >> 3)] >> np.uint64((i & 7) * 8)) & np.uint64(255))


@compiled
def raw_sum(nodes: U64, at: Number, cells: Number, cell_cost: I32, pair_cost: I32) -> Number:
    """The sum of the analytic heuristic for the state in these words."""
    total, before = np.int64(0), np.int64(0)
    for i in range(cells):
        value = byte_of(nodes, at, i)
        total += cell_cost[i, value]
        if i > 0 and pair_cost.shape[0] > 0:
            total += pair_cost[before, value]
        before = value
    return total


@compiled
def rounded_up(total: Number, divisor: Number) -> Number:
    """The analytic heuristic from its sum."""
    return np.float32(total if divisor == 1 else -(-total // divisor))


@compiled
def hash_of(nodes: U64, at: Number, words: tuple[int, ...]) -> Number:
    """Of the state that begins at nodes[at]."""
    h: Number = np.uint64(0)
    for w in words:
        h = mixed(h, nodes[at + w])
    return finished(h)


@compiled
def index_all(ws: Workspace, i: Number, words: tuple[int, ...]) -> None:
    """Empty the index of a search and put all its nodes into it."""
    at, size = ws.slots[i, INDEX_AT], ws.slots[i, INDEX_SIZE]
    mask, record = np.uint64(size - 1), len(words) + 3
    for k in range(size):
        ws.hashed[at + k] = 0
    count, nodes_at = ws.slots[i, COUNT], ws.slots[i, NODES_AT]
    for node in range(count):
        if node + AHEAD < count:
            later = hash_of(ws.nodes, nodes_at + (node + AHEAD) * record, words)
            prefetch(ws.hashed, at + np.int64((later >> HALF) & mask))
        h = hash_of(ws.nodes, nodes_at + node * record, words)
        slot = (h >> HALF) & mask
        while ws.hashed[at + np.int64(slot)]:
            slot = (slot + np.uint64(1)) & mask
        ws.hashed[at + np.int64(slot)] = np.uint64(node + 1) | (h << HALF)


@compiled
def enlarge_index(ws: Workspace, i: Number, words: tuple[int, ...]) -> Number:
    """Twice the slots; False if there is no room."""
    at, size = ws.slots[i, INDEX_AT], ws.slots[i, INDEX_SIZE]
    new, _ = enlarge(ws.hashed, ws.pools, INDEX, at, size, 2 * size)
    if new < 0:
        return False
    ws.slots[i, INDEX_AT], ws.slots[i, INDEX_SIZE] = new, 2 * size
    index_all(ws, i, words)
    return True


@compiled
def heads_size(span: Number, buckets: Number) -> Number:
    """Words for buckets (f, g), for how many each f holds and where to look first, and for expansions by f."""
    need = span * span + 2 * span if buckets else span
    size = np.int64(1)
    while size < need:
        size *= 2
    return size


@compiled
def enlarge_heads(ws: Workspace, i: Number, f: Number, buckets: Number) -> Number:
    """Room for f; False if there is none."""
    span, at = ws.slots[i, SPAN], ws.slots[i, HEADS_AT]
    wider = span
    while wider <= f:
        wider *= 2
    size = heads_size(wider, buckets)
    new = take(ws.heads, ws.pools, HEADS, size)
    if new < 0:
        return False
    for k in range(size):
        ws.heads[new + k] = 0
    if buckets:
        for a in range(span):
            for b in range(span):
                ws.heads[new + a * wider + b] = ws.heads[at + a * span + b]
            ws.heads[new + wider * wider + a] = ws.heads[at + span * span + a]
            ws.heads[new + wider * wider + wider + a] = ws.heads[at + span * span + span + a]
    else:
        for a in range(span):
            ws.heads[new + a] = ws.heads[at + a]
    release(ws.heads, ws.pools, HEADS, at, ws.slots[i, HEADS_SIZE])
    ws.slots[i, HEADS_AT], ws.slots[i, HEADS_SIZE], ws.slots[i, SPAN] = new, size, wider
    return True
