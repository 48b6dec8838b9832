"""Distances to the goal by breadth-first search over the inverse moves, cost by cost."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U16, U32, U64, AnyArray, Bools, Number
from undershoot.errors import UndershootError
from undershoot.kernels.compiler import compiled
from undershoot.kernels.cpu import pack
from undershoot.kernels.plan import packing_of
from undershoot.oracles.distance_table import DistanceTable
from undershoot.oracles.neighbour_keys import NeighbourKeys, neighbour_keys, write_neighbours
from undershoot.oracles.size import available_memory, check_size, checked_radius
from undershoot.oracles.state_index import (
    DISTANCE_BITS,
    MAX_DISTANCE,
    ROW,
    Words,
    build_index,
    entry,
    find_slots,
    same_key,
    slots_for,
    word_numbers,
)
from undershoot.oracles.verification import WrongTable, verify
from undershoot.puzzles.moves import MoveTable, Steps
from undershoot.puzzles.pairs import Pair, classify_pairs
from undershoot.puzzles.problem import Problem

CHUNK = 1 << 14
BLOCK = 32


class _Store:
    """States found so far: keys and distances in the order of discovery, and a hash index over them."""

    def __init__(self, words: int, arrivals: int, room: int, most: int) -> None:
        """Room for so many states at first, and never for more than `most`; `arrivals` is the largest arrival number."""
        self.keys: U64 = np.empty((room, words), dtype=np.uint64)
        self.distance: U16 = np.empty(room, dtype=np.uint16)
        self.arrival: AnyArray = np.empty(room, dtype=np.min_scalar_type(arrivals))
        self.index: U64 = np.zeros(slots_for(room), dtype=np.uint64)
        self.count = 0
        self.most = most

    def make_room(self, more: int) -> None:
        """Grow, if need be, so that `more` states can be added."""
        need = min(self.count + more, self.most)
        if need > len(self.keys):
            room = min(self.most, max(need, int(1.5 * len(self.keys))))
            self.keys = _grown(self.keys, self.count, room)
            self.distance = _grown(self.distance, self.count, room)
            self.arrival = _grown(self.arrival, self.count, room)
        if slots_for(need) > len(self.index):
            self.index = np.zeros(0, dtype=np.uint64)  # let go of the old one before the new one is made
            self.index = build_index(self.keys[: self.count], self.distance[: self.count], slots_for(need))

    def add_goals(self, table: MoveTable, width: int) -> None:
        """Distance 0, reached by no step."""
        goals = pack(table, table.goals)
        self.count = len(goals)
        self.make_room(0)
        contexts = np.argmax(table.goals == table.cursor, axis=1) if table.cursor is not None else 0
        self.keys[: self.count], self.distance[: self.count] = goals, 0
        self.arrival[: self.count] = table.contexts * width + contexts
        self.index = build_index(goals, self.distance[: self.count], len(self.index))


def _grown(array: AnyArray, count: int, room: int) -> AnyArray:
    larger = np.empty((room, *array.shape[1:]), dtype=array.dtype)
    larger[:count] = array[:count]
    return larger


class _Scratch(NamedTuple):
    """Working space of `_expand`."""

    digits: U64
    keys: U64
    """Of the children of a block of parents."""
    flat_keys: U64
    """The same memory in one dimension."""
    hashes: U64
    slots: U64
    distance: I64
    arrival: I64
    found: U32
    """Rows that are new, or reached more cheaply than before."""
    found_at: U16
    """Their distances."""


def _scratch(groups: int, steps: int, words: int) -> _Scratch:
    keys = np.empty((BLOCK * steps, words), dtype=np.uint64)
    return _Scratch(
        np.empty(groups, dtype=np.uint64),
        keys,
        keys.reshape(-1),
        np.empty(BLOCK * steps, dtype=np.uint64),
        np.empty(BLOCK * steps, dtype=np.uint64),
        np.empty(BLOCK * steps, dtype=np.int64),
        np.empty(BLOCK * steps, dtype=np.int64),
        np.empty(CHUNK * steps, dtype=np.uint32),
        np.empty(CHUNK * steps, dtype=np.uint16),
    )


def _following(table: MoveTable, steps: Steps) -> tuple[Bools, bool]:
    """bool[C * S + C, S], the steps to try from a state: row c * S + x if it was reached by step x from context c, row
    C * S + c if it is a goal in context c. And whether the parity of distances may still turn out to be of use.

    All legal steps; where all cost the same, only those that make a new pair. That is sound. Let s have distance D, and
    be step y away from q at distance D - 1, which was reached by x from p. The pair (x, y) comes to neither one step nor
    none, for then s would be nearer. If it is exchanged, then s is also step x away from another state at distance
    D - 1, and x has the larger number. So the predecessor with the largest step number does lead to s.

    Nor is a breach of parity overlooked: the four states of an exchanged pair form a square, of which three sides are
    looked at, or follow from others in the same way; a pair that comes to one step of equal and odd cost is one by itself.
    """
    contexts, width = steps.legal.shape
    after = steps.legal[steps.landing].reshape(contexts * width, width)
    costs = steps.cost[steps.legal]
    # Of actions with one effect only the cheapest is followed; the others may differ from it in parity.
    alike_agree = bool((table.cost % 2 == table.cost[table.alike] % 2).all())
    if costs.min() < costs.max():
        return np.concatenate([after, steps.legal]), alike_agree
    pairs = classify_pairs(table, steps).reshape(contexts * width, width)
    triangles = (pairs == Pair.ONE_STEP).any() and costs[0] % 2 == 1
    return np.concatenate([after & (pairs == Pair.NEW), steps.legal]), alike_agree and not triangles


def explore(
    puzzle: Problem, radius: int | None = None, memory: int | None = None, progress: Callable[[int, int], None] | None = None
) -> DistanceTable:
    """The cost to the goal of every state, or of all within `radius` of it.

    memory: bytes that may be used, by default what the machine has free; a space that needs more is refused before it
    starts. progress: called now and then with (states found, distance reached).
    """
    table = puzzle.table
    radius = checked_radius(radius)
    packing, steps = packing_of(table), table.backward
    words, width = int(packing.word[-1]) + 1, steps.legal.shape[1]
    limit = available_memory() if memory is None else memory
    most = check_size(puzzle, radius, words, limit)
    following, is_bipartite = _following(table, steps)
    store = _Store(words, len(following), most if radius is None else min(most, 1 << 16), most)
    neighbours = neighbour_keys(table, steps, packing)
    scratch = _scratch(len(neighbours.radix), width, words)
    store.add_goals(table, width)
    buckets: dict[int, list[U32]] = {0: [np.arange(store.count, dtype=np.uint32)]}
    farthest, is_complete = MAX_DISTANCE if radius is None else radius, True

    def arguments(rows: U32, here: int) -> tuple[Any, ...]:
        known = (store.keys, store.distance, store.arrival, store.index, store.count, word_numbers(store.keys))
        return (neighbours, following, steps.cost, rows, here, farthest, *known, scratch)

    _expand(*arguments(np.zeros(0, dtype=np.uint32), 0))  # compiles, if need be, before the clock starts
    started = time.perf_counter()
    while buckets:
        here = min(buckets)
        if radius is not None and here >= radius:
            break  # costs are positive: nothing within the radius is left to be found
        waiting = np.concatenate(buckets.pop(here))
        for start in range(0, len(waiting), CHUNK):
            chunk = waiting[start : start + CHUNK]
            store.make_room(len(chunk) * width)
            store.count, found, odd, beyond = _expand(*arguments(chunk, here))
            if store.count < 0:
                raise UndershootError(f"{puzzle.name} has more states than the {most:,} that it says it has")
            is_complete &= not beyond
            is_bipartite &= odd == 0
            rows, distances = scratch.found[:found], scratch.found_at[:found]
            for distance in np.unique(distances).tolist():
                buckets.setdefault(distance, []).append(rows[distances == distance])
            if progress is not None:
                progress(store.count, here)
    store.index = np.zeros(0, dtype=np.uint64)  # sorting below takes its place in memory
    found_all = DistanceTable.from_search(
        table,
        store.keys[: store.count],
        store.distance[: store.count],
        radius,
        is_bipartite=is_bipartite,
        seconds=time.perf_counter() - started,
    )
    if radius is None and not is_complete:
        found_all = _with_dear_steps(found_all, puzzle)
    if puzzle.has_cost_parity and not found_all.is_bipartite:
        raise UndershootError(f"{puzzle.name} claims that all solutions of a state have one parity, but a move breaks it")
    return found_all


def _with_dear_steps(found: DistanceTable, puzzle: Problem) -> DistanceTable:
    """The table of a search that left out steps to costs that no table holds: right if there were cheaper ways all over."""
    try:
        moves = verify(found, puzzle.space)
    except WrongTable as error:
        raise UndershootError(
            f"{puzzle.name} has states farther than {MAX_DISTANCE} from the goal; tables end there"
        ) from error
    return replace(found, is_bipartite=found.is_bipartite and moves.is_bipartite)


@compiled
def _expand(
    neighbours: NeighbourKeys,
    following: Bools,
    cost: I32,
    rows: U32,
    here: Number,
    farthest: Number,
    keys: U64,
    distance: U16,
    arrival: AnyArray,
    index: U64,
    count: Number,
    words: Words,
    scratch: _Scratch,
) -> tuple[Number, Number, Number, Number]:
    """Add the predecessors of the states in `rows`, all at distance `here`: for a block of parents first all their
    children's keys, then where each of them belongs, then the insertions."""
    steps, mask, one = following.shape[1], np.uint64(index.shape[0] - 1), np.uint64(1)
    children, hashes, slots = scratch.keys, scratch.hashes, scratch.slots
    reached, came_by = scratch.distance, scratch.arrival
    found_rows, found_at = scratch.found, scratch.found_at
    found, odd_edges, beyond = 0, 0, False
    for start in range(0, rows.shape[0], BLOCK):
        made = 0
        for r in range(start, min(start + BLOCK, rows.shape[0])):
            parent = np.int64(rows[r])
            if distance[parent] != here:
                continue  # it has been reached more cheaply since
            c = write_neighbours(neighbours, keys, parent, scratch.digits, scratch.flat_keys, made * len(words))
            first = made
            for s in range(steps):
                if following[arrival[parent], s]:
                    if here + cost[c, s] > farthest:
                        beyond = True
                        continue
                    if made < first + s:
                        for w in words:
                            children[made, w] = children[first + s, w]
                    reached[made] = here + cost[c, s]
                    came_by[made] = c * steps + s
                    made += 1
        find_slots(keys, index, children, made, words, hashes, slots)
        known = count
        for j in range(made):
            slot, occupant = slots[j], index[slots[j]]
            # A slot that was empty a moment ago may have been taken by a child of this block; then look on from there.
            look_on = np.int64(occupant & ROW) > known
            while look_on and occupant != 0 and not same_key(keys, (occupant & ROW) - one, children, j, words):
                slot = (slot + one) & mask
                occupant = index[slot]
            if occupant:
                row: Number = np.int64(occupant & ROW) - 1
                before = np.int64(occupant >> DISTANCE_BITS)
                odd_edges += (before ^ reached[j]) & 1
                if before <= reached[j]:
                    continue
            else:
                if count == keys.shape[0]:
                    return -1, found, odd_edges, beyond
                row = count
                count += 1
                for w in words:
                    keys[row, w] = children[j, w]
            index[slot] = entry(row, hashes[j], reached[j])
            distance[row] = reached[j]
            arrival[row] = came_by[j]
            found_rows[found] = row
            found_at[found] = reached[j]
            found += 1
    return count, found, odd_edges, beyond
