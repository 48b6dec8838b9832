"""Beginning and ending searches, and reading off what they found."""

import numpy as np

from undershoot.arrays import F32, I32, I64, U64, AnyArray, Number, States
from undershoot.kernels.compiler import compiled
from undershoot.kernels.plan import Plan
from undershoot.search.layout import (
    CLOSED,
    FIRST_ENTRIES,
    FIRST_NODES,
    FIRST_SLOTS,
    FIRST_SPAN,
    MOST_KEPT_SLOTS,
    OPEN,
    WAITING,
    Analytic,
    Rules,
    heads_size,
    index_all,
    raw_sum,
    rounded_up,
)
from undershoot.search.workspace import (
    COUNT,
    COUNTERS,
    ENTRIES,
    ENTRIES_AT,
    ENTRIES_SIZE,
    EVALUATED,
    FIRST_ROW,
    GOAL,
    HEADS,
    HEADS_AT,
    HEADS_SIZE,
    IDLE,
    INCUMBENT,
    INDEX,
    INDEX_AT,
    INDEX_SIZE,
    NODES,
    NODES_AT,
    NODES_SIZE,
    OUT_OF_MEMORY,
    PENDING,
    RUNNING,
    SOLVED,
    SPAN,
    STATUS,
    Workspace,
    release,
    take,
)


@compiled
def _clear_heads(ws: Workspace, i: Number, buckets: Number) -> None:
    """Empty the open list of a search that ended; only rows that it used are touched."""
    at, span = ws.slots[i, HEADS_AT], ws.slots[i, SPAN]
    if not buckets:
        for f in range(span):
            ws.heads[at + f] = 0
        return
    for f in range(span):
        if ws.heads[at + span * span + f]:
            for g in range(span):
                ws.heads[at + f * span + g] = 0
            ws.heads[at + span * span + f] = 0
        ws.heads[at + span * span + span + f] = 0


@compiled
def begin(
    ws: Workspace,
    where: I64,
    starts: States,
    words: tuple[int, ...],
    rules: Rules,
    analytic: Analytic,
    plan: Plan,
    rows: Number,
    out: States,
) -> Number:
    """Put a start state into each of the slots `where`; its evaluation is due. Returns the number of rows in `out`.

    Where there is no room to begin, the search ends with OUT_OF_MEMORY.
    """
    for k in range(where.shape[0]):
        i = where[k]
        slots = ws.slots[i]
        if slots[NODES_SIZE] == 0:
            slots[:] = 0
            slots[NODES_AT] = take(ws.nodes, ws.pools, NODES, np.int64(FIRST_NODES * 8))
            slots[INDEX_AT] = take(ws.hashed, ws.pools, INDEX, np.int64(FIRST_SLOTS))
            slots[SPAN], slots[HEADS_SIZE] = FIRST_SPAN, heads_size(FIRST_SPAN, rules.buckets)
            slots[HEADS_AT] = take(ws.heads, ws.pools, HEADS, slots[HEADS_SIZE])
            slots[ENTRIES_AT] = take(ws.entries, ws.pools, ENTRIES, np.int64(FIRST_ENTRIES))
            if slots[NODES_AT] < 0 or slots[INDEX_AT] < 0 or slots[HEADS_AT] < 0 or slots[ENTRIES_AT] < 0:
                if slots[NODES_AT] >= 0:
                    release(ws.nodes, ws.pools, NODES, slots[NODES_AT], np.int64(FIRST_NODES * 8))
                if slots[INDEX_AT] >= 0:
                    release(ws.hashed, ws.pools, INDEX, slots[INDEX_AT], np.int64(FIRST_SLOTS))
                if slots[HEADS_AT] >= 0:
                    release(ws.heads, ws.pools, HEADS, slots[HEADS_AT], slots[HEADS_SIZE])
                if slots[ENTRIES_AT] >= 0:
                    release(ws.entries, ws.pools, ENTRIES, slots[ENTRIES_AT], np.int64(FIRST_ENTRIES))
                slots[:] = 0
                slots[STATUS], slots[GOAL], slots[INCUMBENT] = OUT_OF_MEMORY, -1, -1
                continue
            slots[NODES_SIZE], slots[INDEX_SIZE], slots[ENTRIES_SIZE] = FIRST_NODES * 8, FIRST_SLOTS, FIRST_ENTRIES
            for h in range(slots[HEADS_SIZE]):
                ws.heads[slots[HEADS_AT] + h] = 0
        else:
            _clear_heads(ws, i, rules.buckets)
        slots[COUNTERS:] = 0
        slots[STATUS], slots[GOAL], slots[INCUMBENT] = RUNNING, -1, -1
        at, context = slots[NODES_AT], 0
        for w in words:
            ws.nodes[at + w] = 0
        for c in range(rules.cells):
            ws.nodes[at + (c >> 3)] |= np.uint64(starts[k, c]) << np.uint64((c & 7) * 8)
            if starts[k, c] == plan.cursor:
                context = c
        fields = 2 * (at + len(words))
        ws.nodes32[fields], ws.nodes32[fields + 1] = -1, 0
        raw = raw_sum(ws.nodes, at, rules.cells, analytic.cell_cost, analytic.pair_cost)
        ws.nodes_float[fields + 2] = rounded_up(raw, analytic.divisor)
        ws.nodes32[fields + 3] = raw
        ws.nodes32[fields + 4] = (context << 16) | ((OPEN | WAITING) << 24)
        ws.nodes32[fields + 5] = -1
        slots[COUNT], slots[PENDING], slots[EVALUATED] = 1, 1, 1
        ws.pending[i, 0], ws.is_new[i, 0] = 0, 1
        index_all(ws, i, words)
        slots[FIRST_ROW] = rows
        if not rules.in_loop:
            for c in range(rules.cells):
                out[rows, c] = starts[k, c]
            rows += 1
    return rows


@compiled
def tally(slots: I64) -> tuple[Number, Number, Number]:
    """How many searches have ended and are not reported yet, how many run, and whether one of them is out of memory."""
    ended, running, is_short = 0, 0, False
    for i in range(slots.shape[0]):
        status = slots[i, STATUS]
        ended += status > RUNNING
        running += status == RUNNING
        is_short |= status == OUT_OF_MEMORY
    return ended, running, is_short


@compiled
def first_wrong(values: F32, least: Number, whole: Number) -> Number:
    """The first row whose value is not finite, below `least`, or not whole though it should be; -1 if there is none."""
    for row in range(values.shape[0]):
        value = values[row]
        if not (least <= value < np.inf and value > -np.inf) or (whole and value != np.floor(value)):
            return row
    return -1


@compiled
def end(ws: Workspace, where: I64, keep: Number) -> None:
    """Give back the memory of these searches; with `keep`, only what is large, and the next ones use the rest."""
    for k in range(where.shape[0]):
        slots = ws.slots[where[k]]
        slots[STATUS] = IDLE
        if slots[NODES_SIZE] > 0 and (not keep or slots[INDEX_SIZE] > MOST_KEPT_SLOTS):
            release(ws.nodes, ws.pools, NODES, slots[NODES_AT], slots[NODES_SIZE])
            release(ws.hashed, ws.pools, INDEX, slots[INDEX_AT], slots[INDEX_SIZE])
            release(ws.heads, ws.pools, HEADS, slots[HEADS_AT], slots[HEADS_SIZE])
            release(ws.entries, ws.pools, ENTRIES, slots[ENTRIES_AT], slots[ENTRIES_SIZE])
            slots[NODES_SIZE] = 0


@compiled
def report(
    ws: Workspace,
    where: I64,
    words: tuple[int, ...],
    rules: Rules,
    analytic: Analytic,
    plan: Plan,
    guide_is_proven: Number,
    numbers: I64,
    bounds: AnyArray,
) -> None:
    """Of each search: the length and cost of its path, expansions with f below that cost, and a bound from open nodes.

    numbers: int64[K, 3]. bounds: float64[K], the least g + h over open nodes, infinite if there are none; h is the
    analytic value, or the guide's if that is proven and larger. Where the solution is optimal anyway it is not sought.
    """
    record, state_words = len(words) + 3, len(words)
    for k in range(where.shape[0]):
        i = where[k]
        slots = ws.slots[i]
        bounds[k] = np.inf
        settled = slots[STATUS] == SOLVED and guide_is_proven and rules.weight == 1
        for number in range(0 if settled else slots[COUNT]):
            at = slots[NODES_AT] + number * record
            fields = 2 * (at + state_words)
            if (ws.nodes32[fields + 4] >> 24) & OPEN:
                raw = raw_sum(ws.nodes, at, rules.cells, analytic.cell_cost, analytic.pair_cost)
                h = np.float64(rounded_up(raw, analytic.divisor))
                # A child that waits for its value when a limit strikes has only the analytic one.
                if guide_is_proven and not (ws.nodes32[fields + 4] >> 24) & WAITING:
                    h = max(h, np.float64(ws.nodes_float[fields + 2]))
                bounds[k] = min(bounds[k], ws.nodes32[fields + 1] + h)
        length, cost = np.int64(0), np.int64(0)
        node: Number = slots[GOAL]
        while node >= 0:
            fields = 2 * (slots[NODES_AT] + node * record + state_words)
            before = np.int64(ws.nodes32[fields])
            if before >= 0:
                length += 1
                fields_before = 2 * (slots[NODES_AT] + before * record + state_words)
                cost += plan.cost[(ws.nodes32[fields_before + 4] >> 16) & 255, ws.nodes32[fields + 4] & 0xFFFF]
            node = before
        below = np.int64(0)
        for f in range(min(cost, slots[SPAN])):
            span = slots[SPAN]
            below += np.int64(ws.heads[slots[HEADS_AT] + f + (span * span + span if rules.buckets else 0)])
        numbers[k, 0], numbers[k, 1], numbers[k, 2] = length, cost, below


@compiled
def write_expanded(ws: Workspace, where: I64, words: tuple[int, ...], random: U64, states: States) -> None:
    """One of the expanded states of each search, the random[k] mod their number-th; the start if there is none."""
    record, state_words = len(words) + 3, len(words)
    for k in range(where.shape[0]):
        slots = ws.slots[where[k]]
        closed = np.uint64(0)
        for node in range(slots[COUNT]):
            fields = 2 * (slots[NODES_AT] + node * record + state_words)
            closed += np.uint64((ws.nodes32[fields + 4] >> 24) & CLOSED != 0)
        left = np.int64(random[k] % max(closed, np.uint64(1)))
        chosen: Number = np.int64(0)
        for node in range(slots[COUNT] if closed else 0):
            fields = 2 * (slots[NODES_AT] + node * record + state_words)
            if (ws.nodes32[fields + 4] >> 24) & CLOSED:
                if left == 0:
                    chosen = np.int64(node)
                    break
                left -= 1
        at = slots[NODES_AT] + chosen * record
        for c in range(states.shape[1]):
            states[k, c] = (ws.nodes[at + (c >> 3)] >> np.uint64((c & 7) * 8)) & np.uint64(255)


@compiled
def write_paths(ws: Workspace, where: I64, words: tuple[int, ...], ends: I64, actions: I32, states: States) -> None:
    """The solution of each search: its actions up to actions[ends[k]], and the states before each of them."""
    record, state_words = len(words) + 3, len(words)
    for k in range(where.shape[0]):
        slots = ws.slots[where[k]]
        node: Number = slots[GOAL]
        row: Number = ends[k]
        while node >= 0:
            at = slots[NODES_AT] + node * record
            fields = 2 * (at + state_words)
            before = np.int64(ws.nodes32[fields])
            if before >= 0:
                row -= 1
                actions[row] = ws.nodes32[fields + 4] & 0xFFFF
                there = slots[NODES_AT] + before * record
                for c in range(states.shape[1]):
                    states[row, c] = (ws.nodes[there + (c >> 3)] >> np.uint64((c & 7) * 8)) & np.uint64(255)
            node = before
