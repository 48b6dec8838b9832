"""How a network sees a state: which inputs are 1."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np

from undershoot.arrays import I32, I64, U8, U16, AnyArray, digest_of, freeze_arrays
from undershoot.errors import NotAvailable
from undershoot.puzzles.moves import MoveTable

TOKENS, PAIRED = 2**16, 2**8
"""Kernels hold the number of a token in 16 bits, so that a piece has at most so many contents, by itself and in pairs."""
MOST_ENTRIES = 2**27
"""Of an array of an encoding: half a gigabyte."""


@dataclass(frozen=True, eq=False)
class Reading:
    """How a state becomes tokens: of its images under the symmetries one is chosen, its pieces are read, and maybe paired.

    The image is the one with the least key, key = the sum over all cells i of keys[s, i, value], mod 2^64: the same for all
    states that are images of one another. A piece is read as values[p, sum over j of factors[p, j] * value of cells[p, j]].
    With pairs, tokens are a * M + b for pieces a, b of all pairs; otherwise the pieces themselves.
    """

    image_cells: U8
    """uint8[S, n] as in `Symmetry`; S is 0 or 1 if states are taken as they are."""
    image_values: U8
    """uint8[S, m]."""
    keys: I64
    """int64[S, n, m]."""
    cells: I32
    """int32[P, c]."""
    factors: I32
    """int32[P, c]; 0 pads."""
    values: U16
    """uint16[P, codes], all below M."""
    size: int
    """M, how many values a piece has; at most TOKENS, or with pairs PAIRED."""
    pairs: bool

    def __post_init__(self) -> None:
        freeze_arrays(self)

    @property
    def tokens(self) -> int:
        """How many a state has."""
        count = len(self.cells)
        return count * (count - 1) // 2 if self.pairs else count


@dataclass(frozen=True, eq=False)
class Encoding:
    """Token i switches on the inputs features[i, token, :]; -1 stands for none. Without a reading, tokens are the values of
    the cells.

    A first layer may add the weight rows of these inputs instead of multiplying a mostly empty vector.
    """

    width: int
    features: I32
    """int32[T, M, K], numbers below `width`."""
    reading: Reading | None = None

    def __post_init__(self) -> None:
        freeze_arrays(self)

    @cached_property
    def digest(self) -> str:
        """A checksum of all of it: two encodings with the same one see every state alike."""
        parts: list[object] = [self.width, self.features]
        if self.reading is not None:
            parts += [getattr(self.reading, part.name) for part in fields(self.reading)]
        return digest_of(parts)

    @property
    def active(self) -> int:
        """How many inputs can be 1 at once."""
        return int((self.features >= 0).any(axis=1).sum())


def one_hot(modulus: U16, silent: int | None = None) -> Encoding:
    """One input for every cell and value it can have; the value `silent` (a blank) has none."""
    cells, values = len(modulus), int(modulus.max())
    features = np.full((cells, values, 1), -1, dtype=np.int32)
    width = 0
    for i in range(cells):
        for v in range(int(modulus[i])):
            if v != silent:
                features[i, v, 0] = width
                width += 1
    return Encoding(width, features)


def of_pieces(table: MoveTable, pieces: Sequence[Sequence[int]], pairs: bool, canonical: bool) -> Encoding:
    """One input for every piece and what it can hold, or for every pair of pieces and what they can hold together.

    pieces: the cells of each; moves must carry pieces to pieces.
    """
    longest, base = max(map(len, pieces)), int(table.modulus.max())
    _check_entries(f"{len(pieces)} pieces of up to {longest} cells with {base} symbols", len(pieces) * base**longest, "cells")
    most, what, instead = (PAIRED, "pairs", "pieces, or cells") if pairs else (TOKENS, "pieces", "cells")
    contents = _contents(table, pieces, most)
    size = max(map(len, contents))
    if size > most:
        raise NotAvailable(
            f"a piece can hold {size:,} contents or more, and with the encoding `{what}` at most {most:,} are allowed; "
            f"use --set encoding={instead}"
        )
    if pairs and len(pieces) < 2:
        raise NotAvailable(f"pairs are of two or more pieces, and there is {len(pieces)}; use --set encoding={instead}")
    if pairs:
        _check_entries(f"pairs of {len(pieces)} pieces with {size} contents", comb(len(pieces), 2) * size**2, instead)
    cells, factors = np.zeros((2, len(pieces), longest), dtype=np.int32)
    values = np.zeros((len(pieces), base**longest), dtype=np.uint16)
    for p, (place, held) in enumerate(zip(pieces, contents, strict=True)):
        cells[p, : len(place)], factors[p, : len(place)] = place, base ** np.arange(len(place))
        for value, content in enumerate(held):
            values[p, np.dot(content, factors[p, : len(place)])] = value
    reading = Reading(*_images(table, canonical), cells, factors, values, size, pairs)
    if not pairs:
        return every_token(reading, [range(len(held)) for held in contents])
    # Where every piece is of its own kind, no two places hold the same one.
    kinds = [[tuple(sorted(content)) for content in held] for held in contents]
    in_goal = [tuple(sorted(table.goals[0, list(place)].tolist())) for place in pieces]
    are_distinct = len(table.goals) == 1 and len(set(in_goal)) == len(pieces) and not table.shift.any()
    possible = [
        [a * size + b for a, x in enumerate(kinds[p]) for b, y in enumerate(kinds[q]) if not (are_distinct and x == y)]
        for p, q in combinations(range(len(pieces)), 2)
    ]
    return every_token(reading, possible)


def _check_entries(what: str, entries: int, instead: str) -> None:
    """Refuse arrays that no memory holds, before they are made."""
    if entries > MOST_ENTRIES:
        about = f"{entries:,}" if entries < 10**15 else f"10^{len(str(entries)) - 1}"
        raise NotAvailable(
            f"{what} need a table of {about} entries, and at most {MOST_ENTRIES:,} are allowed; use --set encoding={instead}"
        )


def of_sums(table: MoveTable, matrix: U8, canonical: bool) -> Encoding:
    """One input for every row of the matrix over the field of two elements and value of its product with the state."""
    most = int(matrix.sum(axis=1).max())
    cells, factors = np.zeros((2, len(matrix), most), dtype=np.int32)
    for p, row in enumerate(matrix):
        among = np.flatnonzero(row)
        cells[p, : len(among)], factors[p, : len(among)] = among, 1
    values = np.tile(np.arange(most + 1, dtype=np.uint16) % 2, (len(matrix), 1))
    return every_token(Reading(*_images(table, canonical), cells, factors, values, 2, pairs=False), [range(2)] * len(matrix))


def every_token(reading: Reading, possible: Sequence[Sequence[int]]) -> Encoding:
    """One input for every token and each of its possible values."""
    features = np.full((reading.tokens, 1 + max(map(max, possible)), 1), -1, dtype=np.int32)
    width = 0
    for token, values in enumerate(possible):
        features[token, values, 0] = width + np.arange(len(values))
        width += len(values)
    return Encoding(width, features, reading)


def _contents(table: MoveTable, pieces: Sequence[Sequence[int]], most: int) -> list[list[tuple[int, ...]]]:
    """What each piece can hold: what moves bring there, from the goals on; all values if it is a single cell.

    Once a piece holds more than `most`, no more are looked for.
    """
    if all(len(place) == 1 for place in pieces):
        return [[(v,) for v in range(int(table.modulus[place[0]]))] for place in pieces]
    place_of = {cell: p for p, place in enumerate(pieces) for cell in place}
    held = [{tuple(goal[list(place)].tolist()) for goal in table.goals} for place in pieces]
    carried = []
    for c, a in np.argwhere(table.legal):
        for p, place in enumerate(pieces):
            sources = table.source[c, a, list(place)].tolist()
            q = place_of[sources[0]]
            order = [list(pieces[q]).index(cell) for cell in sources]
            carried.append((p, q, order, table.shift[c, a, list(place)], table.modulus[list(place)]))
    grew = True
    while grew:
        before = sum(map(len, held))
        for p, q, order, shift, modulus in carried:
            held[p] |= {tuple(((np.array(content)[order] + shift) % modulus).tolist()) for content in held[q]}
            if len(held[p]) > most:
                return [list(contents) for contents in held]
        grew = sum(map(len, held)) > before
    return [sorted(contents) for contents in held]


def _images(table: MoveTable, canonical: bool) -> tuple[U8, U8, I64]:
    """The first three fields of a reading."""
    symmetries = table.symmetries if canonical else ()
    m = int(table.modulus.max())
    cells = np.zeros((len(symmetries), table.cells), dtype=np.uint8)
    values: AnyArray = np.zeros((len(symmetries), m), dtype=np.uint8)
    keys = np.zeros((len(symmetries), table.cells, m), dtype=np.int64)
    # The stream of a bit generator is the same in all versions of numpy. Which image is chosen must never change: networks
    # know no other.
    stream = np.random.PCG64(0).random_raw(table.cells * m).astype(np.uint64) >> np.uint64(1)
    random = (stream.astype(np.int64) - 2**62).reshape(table.cells, m)
    for s, symmetry in enumerate(symmetries):
        cells[s], values[s] = symmetry.cells, symmetry.values
        # On cell i of the image stands values[state[cells[i]]].
        keys[s, symmetry.cells] = random[:, symmetry.values]
    return cells, values, keys
