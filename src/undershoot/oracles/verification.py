"""Whether a table of distances is right, established from the moves alone.

A table holds the true costs, and all of them, if
    - it holds every goal, and these and only these cost 0;
    - every other cost is the least over the moves that stay in the table of the move's cost plus the neighbour's;
    - it holds every predecessor of its states (of a ball of R: every one that costs at most R that way).
Costs are positive, so following the least leads down to a goal: no cost is too low. And along an optimal path, from the goal
back, every state is in the table and costs no more than that path: none is too high, and none is missing.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from undershoot.arrays import F32, I32, I64, U16, U64, Bools, Number
from undershoot.errors import MalformedState, UndershootError
from undershoot.kernels.compiler import compiled
from undershoot.kernels.cpu import pack
from undershoot.kernels.plan import packing_of
from undershoot.oracles.distance_table import DistanceTable
from undershoot.oracles.neighbour_keys import NeighbourKeys, neighbour_keys, write_neighbours
from undershoot.oracles.state_index import DISTANCE_BITS, MAX_DISTANCE, ROW, Words, find_slots, word_numbers
from undershoot.puzzles.moves import MoveTable, Steps
from undershoot.puzzles.spaces import Space

CHUNK = 1 << 14
BLOCK = 32
EDGES, INCONSISTENT, UNEVEN, MISSING, WRONG, FIRST_WRONG, TALLIES = range(7)
"""What a walk counts: moves; those with h(s) above cost + h(s'); those that join costs of the wrong parity; neighbours that
should be in the table and are not; states whose cost is not the least over their moves; and the first of these."""
Progress = Callable[[int], None]


class WrongTable(UndershootError):
    """A table that does not hold the true costs."""


@dataclass(frozen=True)
class Moves:
    """What walking all moves of a table found; the table is right."""

    edges: int
    """Moves between its states."""
    inconsistent: int
    """Moves with h(s) above cost + h(s')."""
    is_bipartite: bool
    """Whether no move joins two states at distances that its cost, mod 2, forbids."""


def verify(
    distances: DistanceTable, space: Space, values: F32 | None = None, threads: int = 1, progress: Progress | None = None
) -> Moves:
    """Walk every move of a table; WrongTable if its costs are not the true ones, or not all of them.

    values: float32[N], those of a heuristic on all states, for consistency. progress: called with the states walked.
    """
    table = distances.table
    _check_goals(distances)
    if distances.radius is None and space.size_is_exact and distances.states != space.size:
        raise WrongTable(f"it holds {distances.states:,} states, and there are {space.size:,}")
    if values is None:
        values = np.zeros(distances.states, dtype=np.float32)
    both_ways = _undone_at_the_same_cost(table)
    tallies = _walk_all(distances, table.forward, values, both_ways, True, threads, progress)
    wrong = tallies[tallies[:, WRONG] > 0]
    if len(wrong):
        state = distances.states_of(wrong[:1, FIRST_WRONG])[0].tolist()
        raise WrongTable(
            f"{wrong[:, WRONG].sum():,} states have costs that do not follow from their neighbours', first {state}"
        )
    missing = int(tallies[:, MISSING].sum())
    if not both_ways:
        missing = int(_walk_all(distances, table.backward, values, True, False, threads, None)[:, MISSING].sum())
    if missing:
        raise WrongTable(f"states are missing: {missing:,} moves lead to them")
    edges, inconsistent, uneven = (int(tallies[:, column].sum()) for column in (EDGES, INCONSISTENT, UNEVEN))
    return Moves(edges, inconsistent, uneven == 0)


def _check_goals(distances: DistanceTable) -> None:
    goals = distances.table.goals
    if len(distances.histogram) > MAX_DISTANCE + 1:
        raise WrongTable(f"it goes beyond {MAX_DISTANCE:,}")
    counts = distances.histogram
    if not len(counts) or counts[0] != len(goals) or counts[-1] == 0:
        raise WrongTable("not the goals, and only they, cost 0, or no state has the largest cost")
    if (counts < 0).any() or (counts > distances.states).any() or counts.sum() != distances.states:
        raise WrongTable("it counts other states than it holds")
    if distances.radius is not None and len(distances.histogram) > distances.radius + 1:
        raise WrongTable("it holds states beyond its radius")
    if (distances.distance(goals.copy()) != 0).any():
        raise WrongTable("a goal is missing, or costs something")


def _undone_at_the_same_cost(table: MoveTable) -> bool:
    """Whether predecessors are successors, at the same cost; then one walk does for both."""
    cheapest = table.alike[table.inverse[table.forward.legal]]
    return table.is_reversible and bool((table.cost[cheapest] == table.forward.cost[table.forward.legal]).all())


def _walk_all(
    distances: DistanceTable, steps: Steps, values: F32, closed: bool, least: bool, threads: int, progress: Progress | None
) -> I64:
    """int64[chunks, TALLIES]: over all states; see `_walk`."""
    table, keys = distances.table, distances.keys
    neighbours = neighbour_keys(table, steps, packing_of(table))
    cost = distances.true_costs(np.uint16)
    farthest = np.int64(2**62 if distances.radius is None else distances.radius)
    index = distances.index  # made once, before threads share it
    tallies = np.zeros((-(-distances.states // CHUNK), TALLIES), dtype=np.int64)

    def walk(start: int, stop: int) -> None:
        _check_keys(distances, start, stop)
        _walk(
            neighbours,
            steps.legal,
            steps.cost,
            start,
            stop,
            keys,
            cost,
            index,
            word_numbers(keys),
            values,
            farthest if closed else np.int64(-1),
            least,
            tallies[start // CHUNK],
        )

    for done in in_chunks(distances.states, threads, walk):
        if progress is not None:
            progress(done)
    return tallies


def _check_keys(distances: DistanceTable, start: int, stop: int) -> None:
    """Refuse what is no key of a state, or stands there twice; compiled code does not look."""
    states = distances.states_of_rows(start, stop)
    try:
        distances.table.check_states(states)
    except MalformedState as error:
        raise WrongTable(f"it holds what is no state: {error}") from error
    if (pack(distances.table, states) != distances.keys[start:stop]).any():
        raise WrongTable("it holds keys of no state")
    if (distances.look_up(states)[0] != np.arange(start, stop)).any():
        raise WrongTable("it holds a state twice")


def in_chunks(count: int, threads: int, work: Callable[[int, int], None]) -> Iterator[int]:
    """Do the work for rows 0..count, a chunk at a time on each thread; yields how many are done."""
    pieces = [(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
    with ThreadPoolExecutor(threads) as pool:
        for (_, stop), _ in zip(pieces, pool.map(lambda piece: work(*piece), pieces), strict=True):
            yield stop


@compiled
def _walk(
    neighbours: NeighbourKeys,
    legal: Bools,
    step_cost: I32,
    start: Number,
    stop: Number,
    keys: U64,
    cost: U16,
    index: U64,
    words: Words,
    values: F32,
    farthest: Number,
    least: Number,
    tally: I64,
) -> None:
    """All steps from the states of rows start..stop, a block at a time: first all keys, then all look-ups.

    A neighbour must be in the table if it is reached at no more than `farthest`. least: whether costs must be the least over
    the steps.
    """
    steps = legal.shape[1]
    digits = np.empty(neighbours.radix.shape[0], dtype=np.uint64)
    reached = np.empty((BLOCK * steps, len(words)), dtype=np.uint64)
    flat = reached.reshape(-1)
    hashes, slots = np.empty(BLOCK * steps, dtype=np.uint64), np.empty(BLOCK * steps, dtype=np.uint64)
    contexts = np.empty(BLOCK, dtype=np.int64)
    for first in range(start, stop, BLOCK):
        count = min(BLOCK, stop - first)
        for b in range(count):
            contexts[b] = write_neighbours(neighbours, keys, first + b, digits, flat, b * steps * len(words))
        find_slots(keys, index, reached, count * steps, words, hashes, slots)
        for b in range(count):
            row, context = first + b, contexts[b]
            here = np.int64(cost[row])
            lowest = np.int64(2**62)
            for s in range(steps):
                if not legal[context, s]:
                    continue
                price = np.int64(step_cost[context, s])
                occupant = index[slots[b * steps + s]]
                if occupant == 0:
                    tally[MISSING] += here + price <= farthest
                    continue
                there = np.int64(occupant >> DISTANCE_BITS)
                lowest = min(lowest, price + there)
                tally[EDGES] += 1
                tally[INCONSISTENT] += np.float64(values[row]) > price + np.float64(values[np.int64(occupant & ROW) - 1])
                tally[UNEVEN] += (here ^ there ^ price) & 1
            if least and here > 0 and lowest != here:
                if tally[WRONG] == 0:
                    tally[FIRST_WRONG] = row
                tally[WRONG] += 1
