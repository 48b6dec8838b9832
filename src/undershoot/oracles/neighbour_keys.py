"""Keys of a state's neighbours straight from its own key, without unpacking it.

Packing is a sum over cells, and so is what a step makes of it. The cells are taken in groups; a group's values together
are one digit of the key, and `parts[c, group, digit]` holds what they contribute to the keys of all neighbours.
"""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, U64, Number, frozen, sealed
from undershoot.kernels.compiler import compiled
from undershoot.kernels.plan import Packing
from undershoot.puzzles.moves import MoveTable, Steps

TABLE_BYTES = 1 << 18  # should stay in a core's own cache


class NeighbourKeys(NamedTuple):
    """S steps, W words, groups of cells in the order of the key's digits."""

    word: I32
    """int32[groups], the word that each group stands in."""
    radix: U64
    """uint64[groups], how many values each group has together."""
    cursor_cell: I32
    """int32[groups, digits], the cell of the cursor if the group holds it, otherwise 0; their sum is the context."""
    parts: U64
    """uint64[C, groups, digits, S * W]."""


def table_bytes(table: MoveTable, steps: Steps, words: int) -> int:
    """How much memory `parts` takes, at most."""
    contexts, width, cells = steps.source.shape
    return int(max(TABLE_BYTES, contexts * cells * table.values * width * words * 8))


def neighbour_keys(table: MoveTable, steps: Steps, packing: Packing) -> NeighbourKeys:
    """Groups as large as the size of the table allows."""
    contexts, width, cells = steps.source.shape
    words = int(packing.word[-1]) + 1
    modulus = table.modulus.astype(np.int64)
    groups = [[i] for i in range(cells)]
    size = 2
    while True:
        larger = [
            members[k : k + size]
            for members in (np.flatnonzero(packing.word == w).tolist() for w in range(words))
            for k in range(0, len(members), size)
        ]
        digits = max(np.prod(modulus[group], dtype=float) for group in larger)
        if size > cells or contexts * len(larger) * digits * width * words * 8 > TABLE_BYTES:
            break
        groups, size = larger, size + 1
    radix = np.array([np.prod(modulus[group]) for group in groups], dtype=np.uint64)
    parts = np.zeros((contexts, len(groups), int(radix.max()), width, words), dtype=np.uint64)
    cursor_cell = np.zeros((len(groups), int(radix.max())), dtype=np.int32)
    target = np.argsort(steps.source, axis=2)
    for g, group in enumerate(groups):
        rest = np.arange(int(radix[g]))
        for i in group:
            value, rest = rest % modulus[i], rest // modulus[i]
            if table.cursor is not None:
                cursor_cell[g, : len(value)] += np.where(value == table.cursor, i, 0).astype(np.int32)
            for c, s in np.argwhere(steps.legal):
                t = target[c, s, i]
                moved = ((value + steps.shift[c, s, t]) % modulus[t]).astype(np.uint64)
                parts[c, g, : len(value), s, packing.word[t]] += moved * packing.weight[t]
    first = packing.word[[group[0] for group in groups]]
    flat = parts.reshape(*parts.shape[:3], width * words)
    return NeighbourKeys(frozen(first), frozen(radix), frozen(cursor_cell), sealed(flat))


@compiled
def write_neighbours(neighbours: NeighbourKeys, keys: U64, row: Number, digits: U64, out: U64, at: Number) -> Number:
    """Write the keys of all neighbours of keys[row] to out[at : at + S * W]; returns the context.

    digits: uint64[groups], working space. Keys of illegal steps are meaningless.
    """
    radix, parts = neighbours.radix, neighbours.parts
    word: Number = -1
    rest: Number = np.uint64(0)
    context: Number = 0
    for g in range(radix.shape[0]):
        if neighbours.word[g] != word:
            word = neighbours.word[g]
            rest = keys[row, word]
        quotient = rest // radix[g]
        digits[g] = rest - quotient * radix[g]
        rest = quotient
        context += neighbours.cursor_cell[g, digits[g]]
    for e in range(parts.shape[3]):
        out[at + e] = parts[context, 0, digits[0], e]
    for g in range(1, radix.shape[0]):
        digit = digits[g]
        for e in range(parts.shape[3]):
            out[at + e] += parts[context, g, digit, e]
    return context
