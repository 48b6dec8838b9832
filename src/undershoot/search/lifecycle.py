"""Beginning and ending searches."""

import numpy as np

from undershoot.arrays import F32, I64, Number, Record, Records, States
from undershoot.kernels.compiler import compiled_loop, inner, pasted
from undershoot.search.expansion import PARENT, let_wait
from undershoot.search.hash_index import FIRST_SLOTS, index_all_nodes
from undershoot.search.heads import FIRST_SPAN, clear_heads, heads_size
from undershoot.search.memory import release, take
from undershoot.search.nodes import FIRST_NODES, NO_NODE, OPEN, WAITING, copy_state, is_wrong, place_in_word
from undershoot.search.open_list import FIRST_ENTRIES
from undershoot.search.workspace import (
    ENTRIES,
    HEADS,
    IDLE,
    INDEX,
    NODES,
    OUT_OF_MEMORY,
    RUNNING,
    Moves,
    Rules,
    Workspace,
)

MOST_KEPT_SLOTS = 1 << 14
"""Of the index of a search whose memory the next one in its place takes over."""


@compiled_loop
def begin(ws: Workspace, lanes: I64, starts: States, moves: Moves, rules: Rules, rows: Number, out: States) -> Number:
    """Let searches begin with these states in `lanes`, whose values are due. Returns the number of rows in `out`.

    Where there is no room to begin, the search ends with OUT_OF_MEMORY.
    """
    for k in range(lanes.shape[0]):
        search = ws.searches[lanes[k]]
        if search.nodes_size > 0:
            clear_heads(ws, search, rules.buckets)
        elif not _take_regions(ws, search, rules.buckets):
            _reset(search)
            search.status = OUT_OF_MEMORY
            continue
        _reset(search)
        search.status, search.stored, search.evaluated = RUNNING, 1, 1
        _store_start(ws, search, starts, k, moves)
        index_all_nodes(ws, search)
        let_wait(ws, lanes[k], np.int64(0), np.bool_(True))
        if not rules.in_loop:
            search.first_row = rows
            for cell in range(moves.cells):
                out[rows, cell] = starts[k, cell]
            rows += 1
    return rows


@inner
def _reset(search: Record) -> None:
    """Nothing has happened yet."""
    search.status, search.goal, search.incumbent, search.refused = IDLE, NO_NODE, -1, NO_NODE
    search.stored, search.waiting, search.first_row = 0, 0, 0
    search.entries_used, search.entry_to_reuse, search.least_f, search.pushes = 0, 0, 0, 0
    search.expanded, search.generated, search.evaluated, search.reopened = 0, 0, 0, 0


@inner
def _take_regions(ws: Workspace, search: Record, buckets: Number) -> Number:
    """One of each kind; False, and none, if there is no room for all."""
    search.span, search.heads_size = FIRST_SPAN, heads_size(FIRST_SPAN, buckets)
    search.nodes_size, search.index_size, search.entries_size = FIRST_NODES, FIRST_SLOTS, FIRST_ENTRIES
    search.nodes_at = take(ws.node_words, ws.pools, NODES, search.nodes_size)
    search.index_at = take(ws.index_words, ws.pools, INDEX, search.index_size)
    search.heads_at = take(ws.heads, ws.pools, HEADS, search.heads_size)
    search.entries_at = take(ws.entry_words, ws.pools, ENTRIES, search.entries_size)
    if min(search.nodes_at, search.index_at, search.heads_at, search.entries_at) < 0:
        _release_regions(ws, search)
        return False
    for word in range(search.heads_size):
        ws.heads[search.heads_at + word] = 0
    return True


@inner
def _release_regions(ws: Workspace, search: Record) -> None:
    """Give back those that were taken."""
    if search.nodes_at >= 0:
        release(ws.node_words, ws.pools, NODES, search.nodes_at, search.nodes_size)
    if search.index_at >= 0:
        release(ws.index_words, ws.pools, INDEX, search.index_at, search.index_size)
    if search.heads_at >= 0:
        release(ws.heads, ws.pools, HEADS, search.heads_at, search.heads_size)
    if search.entries_at >= 0:
        release(ws.entry_words, ws.pools, ENTRIES, search.entries_at, search.entries_size)
    search.nodes_size = 0


@pasted
def _store_start(ws: Workspace, search: Record, starts: States, row: Number, moves: Moves) -> None:
    """The first node, for starts[row]."""
    start, node = ws.family[PARENT], ws.nodes[search.nodes_at]
    node.context = 0
    for w in range(start.state.shape[0]):
        start.state[w] = 0
    for cell in range(moves.cells):
        start.state[cell >> 3] |= np.uint64(starts[row, cell]) << place_in_word(cell)
        if starts[row, cell] == moves.plan.cursor:
            node.context = cell
    copy_state(start, node)
    node.parent, node.g, node.action, node.undo = NO_NODE, 0, 0, -1
    node.h = np.nan  # until it is known: this may be memory that another search has used
    node.flags = OPEN | WAITING


@compiled_loop
def end(ws: Workspace, lanes: I64, keep: Number) -> None:
    """Give back the memory of the searches in `lanes`; with `keep`, only what is large, and the next ones use the rest."""
    for k in range(lanes.shape[0]):
        search = ws.searches[lanes[k]]
        search.status = IDLE
        if search.nodes_size > 0 and (not keep or search.index_size > MOST_KEPT_SLOTS):
            _release_regions(ws, search)


@compiled_loop
def tally(searches: Records) -> tuple[Number, Number, Number]:
    """How many searches have ended and are not reported yet, how many run, and whether one of them is out of memory."""
    ended, running, is_short = 0, 0, False
    for i in range(searches.shape[0]):
        status = searches[i].status
        ended += status > RUNNING
        running += status == RUNNING
        is_short |= status == OUT_OF_MEMORY
    return ended, running, is_short


@compiled_loop
def first_wrong(values: F32, rules: Rules) -> Number:
    """The first row whose value no search can go on with; -1 if there is none."""
    for row in range(values.shape[0]):
        if is_wrong(values[row], rules):
            return row
    return -1
