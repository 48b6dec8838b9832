"""Parts of a state as small numbers: what a move makes of each, and for pairs of them how far the goal is at least.

A state is *labelled* here: each cell holds the cell that its sticker has in the goal. A *view* sees labels in a few colours.
Few colourings can be reached, so they are numbered, and a table says which of them an action makes of which. Two views have so
few pairs of numbers that the least cost of each is known.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U8, U64, Number
from undershoot.kernels.compiler import compiled, compiled_loop, inner
from undershoot.puzzles.moves import MoveTable

MOST_COLOURINGS, MOST_PAIRS, MOST_PAIR_TABLES = 45_000, 1_500_000, 4
UNSEEN = 255
"""A colour of labels that a view does not look at; also a cost of pairs that cannot be reached."""


class View(NamedTuple):
    """Numbered colourings; that of the goal has number 0."""

    colour_of: U8
    """uint8[n]: the colour of a label."""
    after: I32
    """int32[N, A]: the colouring after an action; -1 for actions that are left out."""
    hash_slots: U64
    """uint64[a power of two]: hashes of the colourings, each at the first free slot from its own on."""
    number_slots: I32
    """int32, likewise: their numbers; -1 in slots that are free."""


class Coordinates(NamedTuple):
    """K views, and T tables of costs of pairs, for compiled code."""

    colour_of: U8
    """uint8[K, n]."""
    words: U64
    """uint64[n, 256]: the hash of a colouring is the sum of one word a cell."""
    first_slot: I64
    """int64[K + 1]: of each view in the slots below."""
    hash_slots: U64
    number_slots: I32
    first_after: I64
    """int64[K]: of each view in `after`."""
    after: I32
    """int32[sum of N * A]."""
    pairs: I64
    """int64[T, 4]: two views, how many colourings the second has, and where their costs begin."""
    costs: U8
    actions: Number


def hash_words(cells: int) -> U64:
    """uint64[n, 256]; what is not looked at adds nothing."""
    words = np.random.default_rng(7).integers(2**64, size=(cells, 256), dtype=np.uint64)
    words[:, UNSEEN] = 0
    return words


def make_view(table: MoveTable, colour_of: U8, actions: Sequence[int]) -> View | None:
    """All colourings that these actions make of the goal's; None if there are too many."""
    chosen = np.array(actions, dtype=np.int64)
    count, after, hash_slots, number_slots = _enumerate(
        np.ascontiguousarray(table.source[0][chosen]), np.ascontiguousarray(colour_of), hash_words(table.cells), MOST_COLOURINGS
    )
    if count > MOST_COLOURINGS:
        return None
    whole = np.full((count, table.actions), -1, dtype=np.int32)
    whole[:, chosen] = after[:count]
    return View(colour_of, whole, hash_slots, number_slots)


@compiled
def _enumerate(sources: U8, goal: U8, words: U64, most: Number) -> tuple[Number, I32, U64, I32]:
    """How many colourings there are, or `most` + 1, int32[most, A] what the actions make of them, and the slots."""
    actions, cells = sources.shape
    size = 1
    while size < 4 * most:
        size *= 2
    hash_slots, number_slots = np.zeros(size, dtype=np.uint64), np.full(size, -1, dtype=np.int32)
    colourings, after = np.zeros((most + 1, cells), dtype=np.uint8), np.zeros((most + 1, actions), dtype=np.int32)
    h: Number = np.uint64(0)
    for i in range(cells):
        colourings[0, i] = goal[i]
        h += words[i, goal[i]]
    slot = np.int64(h & np.uint64(size - 1))
    hash_slots[slot], number_slots[slot] = h, 0
    count, row = 1, 0
    while row < count:
        for a in range(actions):
            h = np.uint64(0)
            for i in range(cells):
                h += words[i, colourings[row, sources[a, i]]]
            slot = np.int64(h & np.uint64(size - 1))
            while number_slots[slot] >= 0 and hash_slots[slot] != h:
                slot = (slot + 1) & (size - 1)
            if number_slots[slot] < 0:
                if count == most:
                    return most + 1, after, hash_slots, number_slots
                hash_slots[slot], number_slots[slot] = h, count
                for i in range(cells):
                    colourings[count, i] = colourings[row, sources[a, i]]
                count += 1
            after[row, a] = number_slots[slot]
        row += 1
    return count, after, hash_slots, number_slots


def pair_costs(one: View, other: View, actions: Sequence[int], inverse: I32, cost: I32) -> U8:
    """uint8[N, M]: the least cost from each pair of colourings to the goal's; UNSEEN where that is not reached, or more."""
    result = np.full(len(one.after) * len(other.after), UNSEEN, dtype=np.uint8)
    back = np.array([inverse[a] for a in actions], dtype=np.int64)
    _spread_costs(one.after, other.after, back, cost[np.array(actions, dtype=np.int64)].astype(np.int64), result)
    return result


@compiled
def _spread_costs(one: I32, other: I32, back: I64, cost: I64, result: U8) -> None:
    """Level by level from the pair 0, 0; back: the actions that undo those whose costs these are."""
    width = other.shape[0]
    result[0] = 0
    level, last = 0, 0
    while level <= last and level < UNSEEN - 1:
        for pair in range(result.shape[0]):
            if result[pair] != level:
                continue
            for k in range(back.shape[0]):
                before = np.int64(one[pair // width, back[k]]) * width + np.int64(other[pair % width, back[k]])
                if result[before] > level + cost[k] and level + cost[k] < UNSEEN:
                    result[before] = level + cost[k]
                    last = max(last, level + cost[k])
        level += 1


def coordinates(table: MoveTable, views: Sequence[View], actions: Sequence[int]) -> Coordinates:
    """The views, and the costs of the pairs of them that say most."""
    sizes = [len(view.after) for view in views]
    inverse, tables = table.inverse[0], []
    for i in range(len(views)):
        for j in range(i):
            if sizes[i] * sizes[j] <= MOST_PAIRS:
                costs = pair_costs(views[j], views[i], actions, inverse, table.cost)
                tables.append((float(costs[costs < UNSEEN].mean()), j, i, costs))
    tables.sort(key=lambda entry: -entry[0])
    chosen = tables[:MOST_PAIR_TABLES]
    used = sorted({k for _, j, i, _ in chosen for k in (i, j)})
    views, sizes = [views[k] for k in used], [sizes[k] for k in used]
    chosen = [(mean, used.index(j), used.index(i), costs) for mean, j, i, costs in chosen]
    starts = np.cumsum([0, *(len(entry[3]) for entry in chosen)])
    return Coordinates(
        np.array([view.colour_of for view in views], dtype=np.uint8),
        hash_words(table.cells),
        np.cumsum([0, *(len(view.hash_slots) for view in views)]).astype(np.int64),
        np.concatenate([view.hash_slots for view in views]),
        np.concatenate([view.number_slots for view in views]),
        np.cumsum([0, *(view.after.size for view in views[:-1])]).astype(np.int64),
        np.concatenate([view.after.ravel() for view in views]),
        np.array([[j, i, sizes[i], start] for (_, j, i, _), start in zip(chosen, starts[:-1], strict=True)], dtype=np.int64),
        np.concatenate([entry[3] for entry in chosen]),
        table.actions,
    )


@inner
def read_numbers(at: Coordinates, labels: U8, row: Number, numbers: I32, to: Number) -> Number:
    """Write the numbers of labels[row] to numbers[to]; False if one has none."""
    for k in range(at.colour_of.shape[0]):
        h = np.uint64(0)
        for i in range(labels.shape[1]):
            h += at.words[i, at.colour_of[k, labels[row, i]]]
        size = at.first_slot[k + 1] - at.first_slot[k]
        slot = np.int64(h & np.uint64(size - 1))
        while at.number_slots[at.first_slot[k] + slot] >= 0 and at.hash_slots[at.first_slot[k] + slot] != h:
            slot = (slot + 1) & (size - 1)
        numbers[to, k] = at.number_slots[at.first_slot[k] + slot]
        if numbers[to, k] < 0:
            return False
    return True


@inner
def numbers_after(at: Coordinates, action: Number, numbers: I32, row: Number, to: Number) -> None:
    """Write the numbers one action after numbers[row] to numbers[to]."""
    for k in range(at.colour_of.shape[0]):
        numbers[to, k] = at.after[at.first_after[k] + np.int64(numbers[row, k]) * at.actions + action]


@inner
def cost_of(at: Coordinates, numbers: I32, row: Number) -> Number:
    """What the goal of the views costs from numbers[row], at least."""
    largest = np.int64(0)
    for t in range(at.pairs.shape[0]):
        one, other = np.int64(numbers[row, at.pairs[t, 0]]), np.int64(numbers[row, at.pairs[t, 1]])
        largest = max(largest, np.int64(at.costs[at.pairs[t, 3] + one * at.pairs[t, 2] + other]))
    return largest


@compiled_loop
def numbers_of(at: Coordinates, labels: U8, numbers: I32) -> Number:
    """For one labelled state, uint8[1, n]: its numbers, int32[1, K], and what the goal of the views costs from there, at least;
    -1 if it is none that the actions make."""
    if not read_numbers(at, labels, 0, numbers, 0):
        return np.int64(-1)
    return cost_of(at, numbers, 0)
