"""The open list: a table of buckets by f and g where f is whole, otherwise a binary heap.

A node that is reached more cheaply is pushed again; what it leaves behind is skipped when it comes up, since the node is closed
or has another g by then.
"""

import numpy as np

from undershoot.arrays import Number, Record
from undershoot.kernels.compiler import inner
from undershoot.search.heads import bucket_at, layer_at, widen_heads
from undershoot.search.memory import enlarge
from undershoot.search.nodes import NO_NODE, OPEN, f_of
from undershoot.search.workspace import ENTRIES, NEEDS_HEAP, OUT_OF_MEMORY, RUNNING, Rules, Workspace

FIRST_ENTRIES = 128
MOST_SPAN_OF_BUCKETS = 1024
HALF = np.uint64(32)


@inner
def push(ws: Workspace, search: Record, number: Number, rules: Rules) -> Number:
    """Put a node into the open list. RUNNING, or why that cannot be. There must be room for an entry."""
    node = ws.nodes[search.nodes_at + number]
    f = f_of(node, rules)
    if not rules.buckets:
        _push_to_heap(ws, search, f, np.int64(node.g), number, rules.deep)
        return RUNNING
    if not f < MOST_SPAN_OF_BUCKETS:
        return NEEDS_HEAP
    if np.int64(f) >= search.span and not widen_heads(ws, search, np.int64(f), rules.buckets):
        return OUT_OF_MEMORY
    _push_to_bucket(ws, search, np.int64(f), np.int64(node.g), number, rules.deep)
    return RUNNING


@inner
def pop(ws: Workspace, search: Record, rules: Rules) -> tuple[Number, Number]:
    """Take the best node that is not stale: its number and f; NO_NODE if there is none."""
    while True:
        if rules.buckets:
            number, f, g = _pop_from_bucket(ws, search, rules.deep)
        else:
            number, f, g = _pop_from_heap(ws, search, rules.deep)
        if number < 0:
            return number, f
        node = ws.nodes[search.nodes_at + number]
        if node.flags & OPEN and node.g == g:
            return number, f


@inner
def make_room_in_open_list(ws: Workspace, search: Record, more: Number) -> Number:
    """Room for so many entries more; False if there is none."""
    need = search.entries_used + more
    if need > search.entries_size:
        place, size = enlarge(ws.entry_words, ws.pools, ENTRIES, search.entries_at, search.entries_size, need)
        if place < 0:
            return False
        search.entries_at, search.entries_size = place, size
    return True


@inner
def _push_to_bucket(ws: Workspace, search: Record, f: Number, g: Number, number: Number, deep: Number) -> None:
    """deep: the newest of a bucket comes first, otherwise the oldest."""
    link = _free_entry(ws, search)
    entry = ws.entries[search.entries_at + link - 1]
    bucket = ws.buckets[bucket_at(search, f, g)]
    entry.node = number
    if deep:
        entry.next = bucket.head
        bucket.head = link
    else:
        entry.next = 0
        if bucket.head:
            ws.entries[search.entries_at + np.int64(bucket.tail) - 1].next = link
        else:
            bucket.head = link
        bucket.tail = link
    layer = ws.layers[layer_at(search, f)]
    if layer.held == 0 or (layer.g < g if deep else layer.g > g):
        layer.g = g
    layer.held += 1
    search.least_f = min(search.least_f, f)


@inner
def _free_entry(ws: Workspace, search: Record) -> Number:
    """1 + an entry that is not in use."""
    link = search.entry_to_reuse
    if link:
        search.entry_to_reuse = np.int64(ws.entries[search.entries_at + link - 1].next)
        return link
    search.entries_used += 1
    return search.entries_used


@inner
def _pop_from_bucket(ws: Workspace, search: Record, deep: Number) -> tuple[Number, Number, Number]:
    """The first node of the first bucket that holds one, with its f and g; NO_NODE if all are empty."""
    f = search.least_f
    while f < search.span and ws.layers[layer_at(search, f)].held == 0:
        f += 1
    search.least_f = f
    if f >= search.span:
        return np.int64(NO_NODE), 0.0, np.int64(0)
    layer = ws.layers[layer_at(search, f)]
    g = np.int64(layer.g)
    while ws.buckets[bucket_at(search, f, g)].head == 0:
        g += -1 if deep else 1
    bucket = ws.buckets[bucket_at(search, f, g)]
    link = np.int64(bucket.head)
    entry = ws.entries[search.entries_at + link - 1]
    number = np.int64(entry.node)
    bucket.head = entry.next
    layer.held -= 1
    layer.g = g
    entry.next = search.entry_to_reuse
    search.entry_to_reuse = link
    return number, np.float64(f), g


@inner
def _comes_before(f: Number, tie: Number, entry: Record) -> Number:
    return f < entry.f or (f == entry.f and tie < entry.tie)


@inner
def _put(entry: Record, f: Number, tie: Number, node: Number) -> None:
    entry.f, entry.tie, entry.node = f, tie, node


@inner
def _push_to_heap(ws: Workspace, search: Record, f: Number, g: Number, number: Number, deep: Number) -> None:
    """deep: of equal f the largest g and then the newest comes first, otherwise the smallest and the oldest."""
    tie = np.uint64(search.pushes) | (np.uint64(g) << HALF)
    if deep:
        tie = ~tie
    search.pushes += 1
    k = search.entries_used
    search.entries_used += 1
    while k > 0:
        upper = ws.heap[search.entries_at + ((k - 1) >> 1)]
        if not _comes_before(f, tie, upper):
            break
        _put(ws.heap[search.entries_at + k], upper.f, upper.tie, upper.node)
        k = (k - 1) >> 1
    _put(ws.heap[search.entries_at + k], f, tie, np.uint64(number))


@inner
def _pop_from_heap(ws: Workspace, search: Record, deep: Number) -> tuple[Number, Number, Number]:
    """The first node with its f and g; NO_NODE if there is none."""
    if search.entries_used == 0:
        return np.int64(NO_NODE), 0.0, np.int64(0)
    top = ws.heap[search.entries_at]
    f, number = top.f, np.int64(top.node)
    g = np.int64((~top.tie if deep else top.tie) >> HALF)
    search.entries_used -= 1
    # The last entry fills the gap and sinks to where it belongs.
    last = ws.heap[search.entries_at + search.entries_used]
    last_f, last_tie, last_node = last.f, last.tie, last.node
    k = np.int64(0)
    while True:
        child = 2 * k + 1
        if child >= search.entries_used:
            break
        other = ws.heap[search.entries_at + child + 1]
        if child + 1 < search.entries_used and _comes_before(other.f, other.tie, ws.heap[search.entries_at + child]):
            child += 1
        smaller = ws.heap[search.entries_at + child]
        if _comes_before(last_f, last_tie, smaller):
            break
        _put(ws.heap[search.entries_at + k], smaller.f, smaller.tie, smaller.node)
        k = child
    _put(ws.heap[search.entries_at + k], last_f, last_tie, last_node)
    return number, f, g
