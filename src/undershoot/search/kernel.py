"""The compiled part of A*: one function that advances many searches, and three that begin, report and bound them.

A node is SW words of state (a byte a cell) and three more:

    parent, g | h, raw sum of the analytic heuristic | action (16 bits), context (8), flags (8), the action that undoes it

A slot of the index is 1 + node number (32 bits) and 32 bits of the hash; words of states are compared all the same.

The open list is a table of buckets (f, g) where f is whole, otherwise a binary heap. A node that is reached more cheaply is
pushed again; what it leaves behind is skipped when it comes up, since the node is closed or has another g by then.
"""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import F32, I32, I64, U64, AnyArray, Number, States
from undershoot.kernels.compiler import compiled
from undershoot.kernels.hashing import finished, mixed
from undershoot.kernels.plan import Plan
from undershoot.kernels.prefetch import prefetch
from undershoot.search.workspace import (
    COUNT,
    COUNTERS,
    ENTRIES,
    ENTRIES_AT,
    ENTRIES_SIZE,
    EVALUATED,
    EXPANDED,
    FIRST_ROW,
    GENERATED,
    GOAL,
    HEADS,
    HEADS_AT,
    HEADS_SIZE,
    IDLE,
    INCUMBENT,
    INDEX,
    INDEX_AT,
    INDEX_SIZE,
    LEAST,
    NEEDS_HEAP,
    NODES,
    NODES_AT,
    NODES_SIZE,
    OUT_OF_MEMORY,
    OVER_BUDGET,
    PENDING,
    REOPENED,
    RUNNING,
    SERIAL,
    SOLVED,
    SPAN,
    STATUS,
    UNSOLVABLE,
    UNUSED,
    USED,
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
MOST_KEPT_SLOTS = 1 << 14
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


@compiled
def _byte(words: U64, at: Number, i: Number) -> Number:
    return np.int64((words[at + (i >> 3)] >> np.uint64((i & 7) * 8)) & np.uint64(255))


@compiled
def _raw_sum(nodes: U64, at: Number, cells: Number, cell_cost: I32, pair_cost: I32) -> Number:
    """The sum of the analytic heuristic for the state in these words."""
    total, before = np.int64(0), np.int64(0)
    for i in range(cells):
        value = _byte(nodes, at, i)
        total += cell_cost[i, value]
        if i > 0 and pair_cost.shape[0] > 0:
            total += pair_cost[before, value]
        before = value
    return total


@compiled
def _rounded_up(total: Number, divisor: Number) -> Number:
    return np.float32(total if divisor == 1 else -(-total // divisor))


@compiled
def _hash_of(nodes: U64, at: Number, words: tuple[int, ...]) -> Number:
    h: Number = np.uint64(0)
    for w in words:
        h = mixed(h, nodes[at + w])
    return finished(h)


@compiled
def _index_all(ws: Workspace, i: Number, words: tuple[int, ...]) -> None:
    """Empty the index of a search and put all its nodes into it."""
    at, size = ws.slots[i, INDEX_AT], ws.slots[i, INDEX_SIZE]
    mask, record = np.uint64(size - 1), len(words) + 3
    for k in range(size):
        ws.hashed[at + k] = 0
    count, nodes_at = ws.slots[i, COUNT], ws.slots[i, NODES_AT]
    for node in range(count):
        if node + AHEAD < count:
            later = _hash_of(ws.nodes, nodes_at + (node + AHEAD) * record, words)
            prefetch(ws.hashed, at + np.int64((later >> HALF) & mask))
        h = _hash_of(ws.nodes, nodes_at + node * record, words)
        slot = (h >> HALF) & mask
        while ws.hashed[at + np.int64(slot)]:
            slot = (slot + np.uint64(1)) & mask
        ws.hashed[at + np.int64(slot)] = np.uint64(node + 1) | (h << HALF)


@compiled
def _enlarge_index(ws: Workspace, i: Number, words: tuple[int, ...]) -> Number:
    """Twice the slots; False if there is no room."""
    at, size = ws.slots[i, INDEX_AT], ws.slots[i, INDEX_SIZE]
    new, _ = enlarge(ws.hashed, ws.pools, INDEX, at, size, 2 * size)
    if new < 0:
        return False
    ws.slots[i, INDEX_AT], ws.slots[i, INDEX_SIZE] = new, 2 * size
    _index_all(ws, i, words)
    return True


@compiled
def _heads_size(span: Number, buckets: Number) -> Number:
    """Words for buckets (f, g), for how many each f holds and where to look first, and for expansions by f."""
    need = span * span + 2 * span if buckets else span
    size = np.int64(1)
    while size < need:
        size *= 2
    return size


@compiled
def _enlarge_heads(ws: Workspace, i: Number, f: Number, buckets: Number) -> Number:
    """Room for f; False if there is none."""
    span, at = ws.slots[i, SPAN], ws.slots[i, HEADS_AT]
    wider = span
    while wider <= f:
        wider *= 2
    size = _heads_size(wider, buckets)
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
    """Put a start state into each of the slots `where`; its evaluation is due. Returns the number of rows in `out`."""
    for k in range(where.shape[0]):
        i = where[k]
        slots = ws.slots[i]
        if slots[NODES_SIZE] == 0:
            slots[:] = 0
            slots[NODES_AT] = take(ws.nodes, ws.pools, NODES, np.int64(FIRST_NODES * 8))
            slots[INDEX_AT] = take(ws.hashed, ws.pools, INDEX, np.int64(FIRST_SLOTS))
            slots[SPAN], slots[HEADS_SIZE] = FIRST_SPAN, _heads_size(FIRST_SPAN, rules.buckets)
            slots[HEADS_AT] = take(ws.heads, ws.pools, HEADS, slots[HEADS_SIZE])
            slots[ENTRIES_AT] = take(ws.entries, ws.pools, ENTRIES, np.int64(FIRST_ENTRIES))
            if slots[NODES_AT] < 0 or slots[INDEX_AT] < 0 or slots[HEADS_AT] < 0 or slots[ENTRIES_AT] < 0:
                return np.int64(-1)
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
        raw = _raw_sum(ws.nodes, at, rules.cells, analytic.cell_cost, analytic.pair_cost)
        ws.nodes_float[fields + 2] = _rounded_up(raw, analytic.divisor)
        ws.nodes32[fields + 3] = raw
        ws.nodes32[fields + 4] = (context << 16) | ((OPEN | WAITING) << 24)
        ws.nodes32[fields + 5] = -1
        slots[COUNT], slots[PENDING], slots[EVALUATED] = 1, 1, 1
        ws.pending[i, 0], ws.is_new[i, 0] = 0, 1
        _index_all(ws, i, words)
        slots[FIRST_ROW] = rows
        if not rules.in_loop:
            for c in range(rules.cells):
                out[rows, c] = starts[k, c]
            rows += 1
    return rows


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
def advance(
    ws: Workspace,
    plan: Plan,
    inverse: I32,
    goals: U64,
    analytic: Analytic,
    words: tuple[int, ...],
    rules: Rules,
    values: F32,
    out: States,
    quantum: Number,
    first: Number,
) -> tuple[Number, Number, Number]:
    """Every running search takes in the values of its pending children and expands `per_step` nodes more.

    With the analytic heuristic in the loop they run one after another, beginning with slot `first`, until one has made
    `quantum` expansions and is paused. Otherwise children that are new are written to `out`, and their values are
    expected at the next call. Returns the number of rows of `out` and of searches that ended, and the slot that is
    paused (-1 for none).
    """
    record, state_words, steps = len(words) + 3, len(words), plan.legal.shape[1]
    nodes, nodes32, nodes_float, index, heads = ws.nodes, ws.nodes32, ws.nodes_float, ws.hashed, ws.heads
    entries, entries_float, pending, is_new, slots = ws.entries, ws.entries_float, ws.pending, ws.is_new, ws.slots
    parent, children, hashes, sums, steps_made = ws.parent, ws.children, ws.hashes, ws.sums, ws.steps
    cell_cost, pair_cost = analytic.cell_cost, analytic.pair_cost
    changes, cell, origin, shift, modulus = plan.changes, plan.cell, plan.origin, plan.shift, plan.modulus
    legal, cost, landing = plan.legal, plan.cost, plan.landing
    in_loop, buckets, deep, weight, cells = rules.in_loop, rules.buckets, rules.deep, rules.weight, rules.cells
    divisor = analytic.divisor
    room = rules.per_step * steps + 1
    one = np.uint64(1)
    rows, ended, paused = np.int64(0), np.int64(0), np.int64(-1)
    for turn in range(slots.shape[0]):
        i = (first + turn) % slots.shape[0]
        if not in_loop:
            # The searches take turns and each finds its memory cold: ask for what one a few turns ahead will touch.
            far, near = i + 2 * AHEAD, i + AHEAD
            if far < slots.shape[0] and slots[far, STATUS] == RUNNING:
                tail = slots[far, NODES_AT] + (slots[far, COUNT] - 1) * record
                prefetch(nodes, tail)
                prefetch(nodes, tail - record)
                prefetch(entries, slots[far, ENTRIES_AT] + (slots[far, UNUSED] or slots[far, USED]))
            if buckets and near < slots.shape[0] and slots[near, STATUS] == RUNNING:
                span, row = slots[near, SPAN], slots[near, FIRST_ROW]
                heads_at = slots[near, HEADS_AT]
                prefetch(heads, heads_at + span * span + slots[near, LEAST])
                prefetch(heads, heads_at + span * span + span + slots[near, LEAST])
                for p in range(slots[near, PENDING]):
                    if pending[near, p] >= 0:
                        fields = 2 * (slots[near, NODES_AT] + pending[near, p] * record + state_words)
                        f = nodes32[fields + 1] + weight * np.float64(
                            values[row] if is_new[near, p] else nodes_float[fields + 2]
                        )
                        row += is_new[near, p]
                        prefetch(heads, heads_at + np.int64(f) * span + nodes32[fields + 1])
        if slots[i, STATUS] != RUNNING:
            continue
        if paused >= 0:
            break
        status: Number = np.int64(RUNNING)
        waiting, serial, least = slots[i, PENDING], slots[i, SERIAL], slots[i, LEAST]
        count, used, unused = slots[i, COUNT], slots[i, USED], slots[i, UNUSED]
        expanded, generated, evaluated, reopened = (
            slots[i, EXPANDED],
            slots[i, GENERATED],
            slots[i, EVALUATED],
            slots[i, REOPENED],
        )
        nodes_at, index_at, heads_at, entries_at = (
            slots[i, NODES_AT],
            slots[i, INDEX_AT],
            slots[i, HEADS_AT],
            slots[i, ENTRIES_AT],
        )
        span, mask = slots[i, SPAN], np.uint64(slots[i, INDEX_SIZE] - 1)
        row = slots[i, FIRST_ROW]
        last = expanded + quantum
        while True:
            # Room for what is pending and for one more round, before anything is taken from the open list.
            if (count + room) * record > slots[i, NODES_SIZE]:
                at, size = enlarge(nodes, ws.pools, NODES, nodes_at, slots[i, NODES_SIZE], (count + room) * record)
                if at < 0:
                    status = OUT_OF_MEMORY
                    break
                nodes_at, slots[i, NODES_AT], slots[i, NODES_SIZE] = at, at, size
            while count + room > MAX_LOAD * slots[i, INDEX_SIZE]:
                slots[i, COUNT] = count
                if not _enlarge_index(ws, i, words):
                    status = OUT_OF_MEMORY
                    break
                index_at, mask = slots[i, INDEX_AT], np.uint64(slots[i, INDEX_SIZE] - 1)
            if status != RUNNING:
                break
            need = used + 2 * room if buckets else 3 * (used + 2 * room)
            if need > slots[i, ENTRIES_SIZE]:
                at, size = enlarge(entries, ws.pools, ENTRIES, entries_at, slots[i, ENTRIES_SIZE], need)
                if at < 0:
                    status = OUT_OF_MEMORY
                    break
                entries_at, slots[i, ENTRIES_AT], slots[i, ENTRIES_SIZE] = at, at, size

            for p in range(waiting):
                node = pending[i, p]
                if node < 0:
                    continue
                at = nodes_at + node * record
                fields = 2 * (at + state_words)
                if is_new[i, p] and not in_loop:
                    nodes_float[fields + 2] = values[row]
                    row += 1
                nodes32[fields + 4] &= ~(WAITING << 24)
                g = np.int64(nodes32[fields + 1])
                f = g + weight * np.float64(nodes_float[fields + 2])
                if buckets:
                    bucket = np.int64(f)
                    if bucket >= span:
                        if bucket >= MOST_SPAN_OF_BUCKETS:
                            status = NEEDS_HEAP
                            break
                        if not _enlarge_heads(ws, i, bucket, True):
                            status = OUT_OF_MEMORY
                            break
                        heads_at, span = slots[i, HEADS_AT], slots[i, SPAN]
                    if unused:
                        entry = unused - 1
                        unused = np.int64(entries[entries_at + entry] >> HALF)
                    else:
                        entry = used
                        used += 1
                    here = heads_at + bucket * span + g
                    head, tail = heads[here] & LOW, heads[here] >> HALF
                    if deep:
                        entries[entries_at + entry] = np.uint64(node) | (head << HALF)
                        heads[here] = np.uint64(entry + 1)
                    else:
                        entries[entries_at + entry] = np.uint64(node)
                        if head:
                            before = entries_at + np.int64(tail) - 1
                            entries[before] = (entries[before] & LOW) | (np.uint64(entry + 1) << HALF)
                            heads[here] = head | (np.uint64(entry + 1) << HALF)
                        else:
                            heads[here] = np.uint64(entry + 1) | (np.uint64(entry + 1) << HALF)
                    summary = heads_at + span * span + bucket
                    held, look = heads[summary] & LOW, np.int64(heads[summary] >> HALF)
                    if held == 0 or (look < g if deep else look > g):
                        look = g
                    heads[summary] = (held + one) | (np.uint64(look) << HALF)
                    least = min(least, bucket)
                else:
                    tie = np.uint64(serial) | (np.uint64(g) << HALF)
                    if deep:
                        tie = ~tie
                    serial += 1
                    k = used
                    used += 1
                    while k > 0:
                        up = (k - 1) >> 1
                        there = entries_at + 3 * up
                        if entries_float[there] < f or (entries_float[there] == f and entries[there + 1] < tie):
                            break
                        here = entries_at + 3 * k
                        entries_float[here], entries[here + 1] = entries_float[there], entries[there + 1]
                        entries[here + 2] = entries[there + 2]
                        k = up
                    here = entries_at + 3 * k
                    entries_float[here], entries[here + 1], entries[here + 2] = f, tie, np.uint64(node)
            if status != RUNNING:
                break
            waiting = 0
            if expanded >= last:
                break

            taken = 0
            while taken < rules.per_step and (taken == 0 or expanded < rules.most_expanded):
                # Take the best node that is not stale.
                node, f, g = np.int64(-1), 0.0, np.int64(0)
                if buckets:
                    while node < 0:
                        while least < span and heads[heads_at + span * span + least] & LOW == 0:
                            least += 1
                        if least >= span:
                            break
                        summary = heads_at + span * span + least
                        look = np.int64(heads[summary] >> HALF)
                        while heads[heads_at + least * span + look] & LOW == 0:
                            look += -1 if deep else 1
                        here = heads_at + least * span + look
                        entry = np.int64(heads[here] & LOW) - 1
                        content = entries[entries_at + entry]
                        after = content >> HALF
                        heads[here] = (heads[here] & ~LOW) | after if after else np.uint64(0)
                        heads[summary] = ((heads[summary] & LOW) - one) | (np.uint64(look) << HALF)
                        entries[entries_at + entry] = np.uint64(unused) << HALF
                        unused = entry + 1
                        candidate = np.int64(content & LOW)
                        fields = 2 * (nodes_at + candidate * record + state_words)
                        if (nodes32[fields + 4] >> 24) & OPEN and nodes32[fields + 1] == look:
                            node, f, g = candidate, np.float64(least), look
                else:
                    while node < 0 and used > 0:
                        f = entries_float[entries_at]
                        g = np.int64((~entries[entries_at + 1] if deep else entries[entries_at + 1]) >> HALF)
                        candidate = np.int64(entries[entries_at + 2])
                        fields = 2 * (nodes_at + candidate * record + state_words)
                        if (nodes32[fields + 4] >> 24) & OPEN and nodes32[fields + 1] == g:
                            node = candidate
                        used -= 1
                        moved = entries_at + 3 * used
                        sunk_f, sunk_tie, sunk_node = entries_float[moved], entries[moved + 1], entries[moved + 2]
                        k = np.int64(0)
                        while True:
                            down = 2 * k + 1
                            if down >= used:
                                break
                            there = entries_at + 3 * down
                            if down + 1 < used and (
                                entries_float[there + 3] < entries_float[there]
                                or (
                                    entries_float[there + 3] == entries_float[there] and entries[there + 4] < entries[there + 1]
                                )
                            ):
                                down += 1
                                there += 3
                            if sunk_f < entries_float[there] or (
                                sunk_f == entries_float[there] and sunk_tie < entries[there + 1]
                            ):
                                break
                            here = entries_at + 3 * k
                            entries_float[here], entries[here + 1] = entries_float[there], entries[there + 1]
                            entries[here + 2] = entries[there + 2]
                            k = down
                        here = entries_at + 3 * k
                        entries_float[here], entries[here + 1], entries[here + 2] = sunk_f, sunk_tie, sunk_node
                incumbent = slots[i, INCUMBENT]
                if node < 0 or (incumbent >= 0 and f >= incumbent):
                    if node >= 0 and taken > 0:
                        # It is not wanted now, but may be after the children that wait: it goes back with them.
                        fields = 2 * (nodes_at + node * record + state_words)
                        nodes32[fields + 4] |= WAITING << 24
                        pending[i, waiting], is_new[i, waiting] = node, 0
                        waiting += 1
                    elif taken == 0:
                        status = SOLVED if incumbent >= 0 else UNSOLVABLE
                    break
                if expanded >= rules.most_expanded:
                    status = OVER_BUDGET
                    break
                taken += 1
                expanded += 1
                level = min(max(np.int64(np.floor(f)), 0), MOST_SPAN - 1)
                if level >= span:
                    if not _enlarge_heads(ws, i, level, buckets):
                        level = span - 1
                    heads_at, span = slots[i, HEADS_AT], slots[i, SPAN]
                heads[heads_at + level + (span * span + span if buckets else 0)] += one
                at = nodes_at + node * record
                fields = 2 * (at + state_words)
                marks = nodes32[fields + 4]
                context = (marks >> 16) & 255
                nodes32[fields + 4] = (marks & 0xFFFFFF) | (CLOSED << 24)
                for w in words:
                    parent[w] = nodes[at + w]
                is_goal = False
                for k in range(goals.shape[0]):
                    same = True
                    for w in words:
                        same &= parent[w] == goals[k, w]
                    is_goal |= same
                if is_goal:
                    if slots[i, INCUMBENT] < 0 or g < slots[i, INCUMBENT]:
                        slots[i, INCUMBENT], slots[i, GOAL] = g, node
                    if rules.per_step == 1:
                        break
                    continue
                raw_of_parent = np.int64(nodes32[fields + 3])
                undo, made = nodes32[fields + 5], 0
                # First all children, asking the memory for their slots of the index; then what to do with each.
                for s in range(steps):
                    if not legal[context, s]:
                        continue
                    generated += 1
                    if s == undo:
                        continue  # back to the parent, which is always known at less cost
                    for w in words:
                        children[made, w] = parent[w]
                    raw = raw_of_parent
                    for k in range(changes[context, s]):
                        c, o = np.int64(cell[context, s, k]), np.int64(origin[context, s, k])
                        value = np.int64((parent[o >> 3] >> np.uint64((o & 7) * 8)) & np.uint64(255))
                        value += np.int64(shift[context, s, k])
                        if value >= modulus[c]:
                            value -= np.int64(modulus[c])
                        place = np.uint64((c & 7) * 8)
                        old = np.int64((parent[c >> 3] >> place) & np.uint64(255))
                        word = children[made, c >> 3] & ~(np.uint64(255) << place)
                        children[made, c >> 3] = word | (np.uint64(value) << place)
                        raw += cell_cost[c, value] - cell_cost[c, old]
                    h: Number = np.uint64(0)
                    for w in words:
                        h = mixed(h, children[made, w])
                    h = finished(h)
                    prefetch(index, index_at + np.int64((h >> HALF) & mask))
                    hashes[made], sums[made], steps_made[made] = h, raw, s
                    made += 1
                for m in range(made):
                    h, raw, s = hashes[m], sums[m], steps_made[m]
                    slot = (h >> HALF) & mask
                    found = np.int64(-1)
                    while True:
                        occupant = index[index_at + np.int64(slot)]
                        if occupant == 0:
                            break
                        if ((occupant ^ (h << HALF)) >> HALF) == 0:
                            candidate = np.int64(occupant & LOW) - 1
                            there = nodes_at + candidate * record
                            same = True
                            for w in words:
                                same &= nodes[there + w] == children[m, w]
                            if same:
                                found = candidate
                                break
                        slot = (slot + one) & mask
                    reached = g + cost[context, s]
                    if found < 0:
                        found = count
                        count += 1
                        index[index_at + np.int64(slot)] = np.uint64(found + 1) | (h << HALF)
                        there = nodes_at + found * record
                        for w in words:
                            nodes[there + w] = children[m, w]
                        there = 2 * (there + state_words)
                        if in_loop:
                            if pair_cost.shape[0] > 0:
                                raw = _raw_sum(nodes, nodes_at + found * record, cells, cell_cost, pair_cost)
                            nodes_float[there + 2] = _rounded_up(raw, divisor)
                        nodes32[there + 3] = raw
                        evaluated += 1
                        flags = OPEN | WAITING
                        is_new[i, waiting] = 1
                    else:
                        there = 2 * (nodes_at + found * record + state_words)
                        if nodes32[there + 1] <= reached:
                            continue
                        flags = (nodes32[there + 4] >> 24) & 255
                        is_new[i, waiting] = 0
                        if flags & CLOSED:
                            reopened += 1
                        if flags & WAITING:
                            # It waits already, for a dearer way: it moves to the end of those that wait.
                            for p in range(waiting):
                                if pending[i, p] == found:
                                    pending[i, p] = -1
                                    is_new[i, waiting] = is_new[i, p]
                        flags = OPEN | WAITING
                    nodes32[there], nodes32[there + 1] = node, reached
                    nodes32[there + 4] = s | (landing[context, s] << 16) | (flags << 24)
                    nodes32[there + 5] = inverse[context, s]
                    pending[i, waiting] = found
                    waiting += 1

            if rules.per_step == 1 and slots[i, INCUMBENT] >= 0:
                status = SOLVED
            if status != RUNNING:
                break
            if not in_loop:
                break
        slots[i, STATUS] = status
        slots[i, COUNT], slots[i, USED], slots[i, UNUSED] = count, used, unused
        slots[i, SERIAL], slots[i, LEAST] = serial, least
        slots[i, EXPANDED], slots[i, GENERATED], slots[i, EVALUATED], slots[i, REOPENED] = (
            expanded,
            generated,
            evaluated,
            reopened,
        )
        slots[i, PENDING], slots[i, FIRST_ROW] = waiting, rows
        if status != RUNNING:
            ended += 1
        elif in_loop:
            paused = i
        else:
            for p in range(waiting):
                if pending[i, p] >= 0 and is_new[i, p]:
                    at = nodes_at + pending[i, p] * record
                    for k in range(cells):
                        out[rows, k] = (nodes[at + (k >> 3)] >> np.uint64((k & 7) * 8)) & np.uint64(255)
                    rows += 1
    return rows, ended, paused


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
                raw = _raw_sum(ws.nodes, at, rules.cells, analytic.cell_cost, analytic.pair_cost)
                h = np.float64(_rounded_up(raw, analytic.divisor))
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
