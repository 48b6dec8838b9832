"""The heads of a search: how many nodes it expanded by f, and, if f is whole, the table of buckets of its open list.

A region of heads holds, for f and g below `span`: expansions[f]; and for buckets, layer[f] and bucket[f, g].
"""

import numpy as np

from undershoot.arrays import Number, Record
from undershoot.kernels.compiler import inner
from undershoot.search.memory import release, take
from undershoot.search.workspace import HEADS, Workspace

FIRST_SPAN = 32
MOST_SPAN = 1 << 16


@inner
def heads_size(span: Number, buckets: Number) -> Number:
    """Words of a region for this span, a power of two."""
    need = span * span + 2 * span if buckets else span
    size = np.int64(1)
    while size < need:
        size *= 2
    return size


@inner
def layer_at(search: Record, f: Number) -> Number:
    """Where layer[f] is."""
    return search.heads_at + search.span + f


@inner
def bucket_at(search: Record, f: Number, g: Number) -> Number:
    """Where bucket[f, g] is."""
    return search.heads_at + 2 * search.span + f * search.span + g


@inner
def clear_heads(ws: Workspace, search: Record, buckets: Number) -> None:
    """As at the beginning; only layers that were used are touched."""
    for f in range(search.span):
        ws.heads[search.heads_at + f] = 0
        if buckets and ws.heads[layer_at(search, f)]:
            ws.heads[layer_at(search, f)] = 0
            for g in range(search.span):
                ws.heads[bucket_at(search, f, g)] = 0


@inner
def widen_heads(ws: Workspace, search: Record, f: Number, buckets: Number) -> Number:
    """Room for f; False if there is none."""
    old_at, old_span = search.heads_at, search.span
    span = old_span
    while span <= f:
        span *= 2
    size = heads_size(span, buckets)
    place = take(ws.heads, ws.pools, HEADS, size)
    if place < 0:
        return False
    for word in range(size):
        ws.heads[place + word] = 0
    old_size = search.heads_size
    search.heads_at, search.heads_size, search.span = place, size, span
    for k in range(old_span):
        ws.heads[place + k] = ws.heads[old_at + k]
        if buckets:
            ws.heads[layer_at(search, k)] = ws.heads[old_at + old_span + k]
            for g in range(old_span):
                ws.heads[bucket_at(search, k, g)] = ws.heads[old_at + 2 * old_span + k * old_span + g]
    release(ws.heads, ws.pools, HEADS, old_at, old_size)
    return True


@inner
def count_expansion(ws: Workspace, search: Record, f: Number, buckets: Number) -> Number:
    """One more expansion at this f; False if there is no room to count it."""
    level = np.int64(min(max(np.floor(f), 0.0), MOST_SPAN - 1.0))
    if level >= search.span and not widen_heads(ws, search, level, buckets):
        return False
    search.expanded += 1
    ws.heads[search.heads_at + level] += np.uint64(1)
    return True


@inner
def expansions_below(ws: Workspace, search: Record, f: Number) -> Number:
    """How many expansions had a smaller f."""
    total = np.int64(0)
    for level in range(min(f, search.span)):
        total += np.int64(ws.heads[search.heads_at + level])
    return total
