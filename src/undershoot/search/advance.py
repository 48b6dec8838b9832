"""The compiled loop of A*: takes in values, takes nodes from the open lists, expands them."""

import numpy as np

from undershoot.arrays import F32, I32, U64, Number, States
from undershoot.kernels.compiler import compiled
from undershoot.kernels.hashing import finished, mixed
from undershoot.kernels.plan import Plan
from undershoot.kernels.prefetch import prefetch
from undershoot.search.layout import (
    AHEAD,
    CLOSED,
    HALF,
    LOW,
    MAX_COST,
    MAX_LOAD,
    MOST_SPAN,
    MOST_SPAN_OF_BUCKETS,
    OPEN,
    WAITING,
    Analytic,
    Rules,
    enlarge_heads,
    enlarge_index,
    raw_sum,
    rounded_up,
)
from undershoot.search.workspace import (
    COUNT,
    ENTRIES,
    ENTRIES_AT,
    ENTRIES_SIZE,
    EVALUATED,
    EXPANDED,
    FIRST_ROW,
    GENERATED,
    GOAL,
    HEADS_AT,
    INCUMBENT,
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
    TOO_DEAR,
    UNSOLVABLE,
    UNUSED,
    USED,
    Workspace,
    enlarge,
)


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
) -> tuple[Number, Number]:
    """Every running search takes in the values of its pending children and expands `per_step` nodes more.

    With the analytic heuristic in the loop they run one after another, beginning with slot `first`, until together they
    have made `quantum` expansions. Otherwise children that are new are written to `out`, and their values are expected
    at the next call. Returns the number of rows of `out`, and the slot to begin with next.
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
    rows, left = np.int64(0), np.int64(quantum)
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
        if left <= 0:
            return rows, i
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
        last = expanded + left
        while True:
            # Room for what is pending and for one more round, before anything is taken from the open list.
            if count + room > rules.most_nodes or max(serial, used) + 2 * room > rules.most_entries:
                status = OUT_OF_MEMORY
                break
            if (count + room) * record > slots[i, NODES_SIZE]:
                at, size = enlarge(nodes, ws.pools, NODES, nodes_at, slots[i, NODES_SIZE], (count + room) * record)
                if at < 0:
                    status = OUT_OF_MEMORY
                    break
                nodes_at, slots[i, NODES_AT], slots[i, NODES_SIZE] = at, at, size
            while count + room > MAX_LOAD * slots[i, INDEX_SIZE]:
                slots[i, COUNT] = count
                if not enlarge_index(ws, i, words):
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
                    if not f < MOST_SPAN_OF_BUCKETS:
                        status = NEEDS_HEAP
                        break
                    bucket = np.int64(f)
                    if bucket >= span:
                        if not enlarge_heads(ws, i, bucket, True):
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
                level = np.int64(min(max(np.floor(f), 0.0), MOST_SPAN - 1.0))
                if level >= span:
                    if not enlarge_heads(ws, i, level, buckets):
                        status = OUT_OF_MEMORY
                        break
                    heads_at, span = slots[i, HEADS_AT], slots[i, SPAN]
                expanded += 1
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
                    if reached > MAX_COST:
                        status = TOO_DEAR
                        continue
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
                                raw = raw_sum(nodes, nodes_at + found * record, cells, cell_cost, pair_cost)
                            nodes_float[there + 2] = rounded_up(raw, divisor)
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
        if in_loop:
            left -= expanded - (last - left)
            if status == RUNNING:
                return rows, i
            if status == OUT_OF_MEMORY:
                left = np.int64(0)  # what it holds is given back before the next one runs
        elif status == RUNNING:
            for p in range(waiting):
                if pending[i, p] >= 0 and is_new[i, p]:
                    at = nodes_at + pending[i, p] * record
                    for k in range(cells):
                        out[rows, k] = (nodes[at + (k >> 3)] >> np.uint64((k & 7) * 8)) & np.uint64(255)
                    rows += 1
    return rows, np.int64(0)
