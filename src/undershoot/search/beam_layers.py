"""The layers of a beam search, compiled: make the children of one layer, and the next layer of those that are kept.

A child is noted as its parent, a step and a number to sort by; its state is made only if it is kept. States are told apart by
64 bits of hash in tables that forget: a state that is taken for another one is lost, and one that was forgotten is searched
twice. Neither makes anything false, since nothing is concluded from what a beam leaves out.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U8, U16, U64, Number, States, frozen
from undershoot.kernels.compiler import compiled_loop, inner
from undershoot.kernels.guides import looks_ahead, make_kept, value_after, values_after
from undershoot.kernels.plan import Plan
from undershoot.kernels.steps import play_step
from undershoot.puzzles.moves import MoveTable
from undershoot.search.depth_first import TreeMoves

FIXED_POINT, LARGEST = 2048.0, 2.0**20
"""What a child is sorted by is a whole number of 2048ths, up to that of this f, with bits of its hash below."""
NO_VALUE = np.uint64(0xFFFFFFFF)
ENOUGH = np.int64(1 << 30)
ONE, UPPER = np.uint64(1), np.uint64(32)
LOWER = np.uint64(0xFFFFFFFF)
MOST_FOUND = 64


class Layer(NamedTuple):
    """States at the same number of moves from the start."""

    states: U8
    """uint8[W, n]."""
    hashes: U64
    """uint64[W]."""
    costs: I64
    """int64[W]: g."""
    arrivals: I64
    """int64[W]: rows of `TreeMoves.follow`."""


class Children(NamedTuple):
    """Of a layer, before the best are kept."""

    keys: U64
    """uint64[M]: f, and below it bits of the hash, by which equal f are put into an order that is as good as random."""
    parents: I32
    """int32[M]: rows of the layer."""
    steps: U16
    """uint16[M]."""
    hashes: U64
    """uint64[M]."""


class Seen(NamedTuple):
    """What was met before, as far as that is remembered."""

    here: U64
    """uint64[a power of two]: among the children of this layer."""
    kept: U64
    """uint64[a power of two]: in a layer of this run."""


class Room(NamedTuple):
    """To work in."""

    states: U8
    """uint8[2, n]."""
    kept: I32
    """int32[2, kept_size]: what the guide keeps."""
    values: I64
    """int64[3, S]."""
    found: I64
    """int64[MOST_FOUND]: children that are goals, by their hashes."""


class Wanted(NamedTuple):
    """Which children count."""

    most_cost: Number
    """What a solution may cost that is of use."""
    values_are_proven: Number
    """Whether a child can be left out by the guide's value."""
    salt: Number
    """Of this layer and run."""
    goal_hashes: U64
    """uint64[G]."""


@lru_cache(maxsize=64)
def hash_words(table: MoveTable) -> U64:
    """uint64[n, values]: the hash of a state is the sum of one word a cell."""
    random = np.random.default_rng(20)
    return frozen(random.integers(2**64, size=(table.cells, table.values), dtype=np.uint64))


def hashes_of(table: MoveTable, states: States) -> U64:
    """uint64[B]."""
    words = hash_words(table)
    return np.asarray(words[np.arange(table.cells), states].sum(axis=1, dtype=np.uint64))


@inner
def _hash_after(plan: Plan, words: U64, context: Number, step: Number, states: States, h: Number) -> Number:
    """The hash one step after states[0], whose hash is h."""
    for k in range(plan.changes[context, step]):
        cell = np.int64(plan.cell[context, step, k])
        value = np.int64(states[0, plan.origin[context, step, k]]) + np.int64(plan.shift[context, step, k])
        if value >= plan.modulus[cell]:
            value -= np.int64(plan.modulus[cell])
        h += words[cell, value] - words[cell, states[0, cell]]
    return h


@inner
def sort_key(cost: Number, value: Number, h: Number, salt: Number) -> Number:
    """uint64: by f; what is no number comes last."""
    f = np.float64(cost) + max(np.float64(value), 0.0)
    upper = np.uint64(f * FIXED_POINT) if f <= LARGEST else NO_VALUE
    return (upper << UPPER) | (((h ^ salt) * np.uint64(0x9E3779B97F4A7C15)) >> UPPER)


@compiled_loop
def expand_rows(
    layer: Layer,
    first: Number,
    last: Number,
    moves: TreeMoves,
    guide: Any,
    words: U64,
    seen: Seen,
    wanted: Wanted,
    room: Room,
    out: Children,
    count: Number,
) -> tuple[Number, Number]:
    """Note the children of these rows after the `count` that are there. Returns how many there are then, and how many of those
    that were noted now are goals; these are listed in `room.found`."""
    plan, cells, found = moves.plan, layer.states.shape[1], np.int64(0)
    width, mask_here, mask_kept = plan.legal.shape[1], np.uint64(len(seen.here) - 1), np.uint64(len(seen.kept) - 1)
    for row in range(first, last):
        context = np.int64(0)
        for i in range(cells):
            room.states[0, i] = layer.states[row, i]
            if room.states[0, i] == plan.cursor:
                context = np.int64(i)
        make_kept(guide, room.states, 0, room.kept, np.uint64(0))
        follow_at = np.int64(layer.arrivals[row]) * (width + 1)
        steps = np.int64(moves.follow[follow_at])
        if looks_ahead(guide):
            values_after(
                guide, plan, np.uint64(context), moves.follow, np.uint64(follow_at + 1), np.uint64(steps), room.states, 0,
                room.kept, np.uint64(0), ENOUGH, room.values,
            )  # fmt: skip
        for k in range(steps):
            step = np.int64(moves.follow[follow_at + 1 + k])
            h = _hash_after(plan, words, context, step, room.states, layer.hashes[row])
            mark = h ^ wanted.salt
            if seen.here[mark & mask_here] == mark or seen.kept[h & mask_kept] == h:
                continue
            seen.here[mark & mask_here] = mark
            cost = layer.costs[row] + np.int64(plan.cost[context, step])
            if looks_ahead(guide):
                value = np.float64(room.values[0, k])
            else:
                after = value_after(
                    guide, plan, np.uint64(context), np.uint64(step), room.states, 0, room.kept, np.uint64(0), ENOUGH
                )
                value = np.float64(after)
            for goal in range(wanted.goal_hashes.shape[0]):
                if wanted.goal_hashes[goal] == h and found < MOST_FOUND:
                    room.found[found] = count
                    found += 1
            is_goal = found > 0 and room.found[found - 1] == count
            least = cost + (value if wanted.values_are_proven else 0.0)
            if least > wanted.most_cost and not is_goal:
                continue
            out.keys[count] = sort_key(cost, value, h, wanted.salt)
            out.parents[count], out.steps[count], out.hashes[count] = row, step, h
            count += 1
    return count, found


@compiled_loop
def make_layer(layer: Layer, children: Children, chosen: I64, moves: TreeMoves, seen: Seen, room: Room, out: Layer) -> None:
    """Write the chosen children to the rows of `out`."""
    plan, cells = moves.plan, layer.states.shape[1]
    width, mask = plan.legal.shape[1], np.uint64(len(seen.kept) - 1)
    for number in range(chosen.shape[0]):
        child = chosen[number]
        row, step, context = np.int64(children.parents[child]), np.int64(children.steps[child]), np.int64(0)
        for i in range(cells):
            room.states[0, i] = layer.states[row, i]
            if room.states[0, i] == plan.cursor:
                context = np.int64(i)
        play_step(plan, context, step, room.states, 0, 1)
        for i in range(cells):
            out.states[number, i] = room.states[1, i]
        out.hashes[number] = children.hashes[child]
        out.costs[number] = layer.costs[row] + np.int64(plan.cost[context, step])
        out.arrivals[number] = context * width + step
        seen.kept[children.hashes[child] & mask] = children.hashes[child]
