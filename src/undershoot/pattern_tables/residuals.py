"""What a pattern costs above h0's share: what a network on a pattern says.

Each followed piece has a share of h0, by where it stands. The cost of an arrangement is the sum of the shares and some whole
number of steps: of 2 where the cost always differs from the sum by an even number, as with sliding tiles, otherwise of 1.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from undershoot.arrays import I64, U8, Number, freeze_arrays, read_only
from undershoot.errors import NotAvailable
from undershoot.kernels.compiler import compiled, inner
from undershoot.pattern_tables.pattern import UNREACHED, Pattern
from undershoot.pattern_tables.ranking import Ranking, turn_pieces, unrank_places
from undershoot.pattern_tables.tables import PatternTable
from undershoot.puzzles.base_heuristics import BaseHeuristic
from undershoot.puzzles.encoding import PAIRED, Encoding, Reading, every_token

AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Residuals:
    """The shares of h0 in a pattern, and in what steps its costs lie above their sum."""

    share: U8
    """uint8[k, M]: of each followed piece, in the order of the ranking, by its code."""
    step: int
    """1 or 2."""
    levels: int
    """The largest number of steps."""

    def __post_init__(self) -> None:
        freeze_arrays(self)


def code_counts(how: Ranking) -> list[int]:
    """In how many slots each ranked piece can stand: a code is place * turns + turn."""
    kinds = how.kind.tolist()
    places = [int(how.choices[i]) + kinds[:i].count(kind) for i, kind in enumerate(kinds)]
    return [count * int(turns) for count, turns in zip(places, how.all_turns, strict=True)]


def shares_of(pattern: Pattern, base: BaseHeuristic) -> U8:
    """uint8[k, M]: what each piece adds to h0 by itself, where a move that costs h0 something moves one piece; otherwise 0."""
    how, pieces = pattern.folded, pattern.pieces
    counts = code_counts(how)
    share = np.zeros((len(counts), max(counts)), dtype=np.uint8)
    is_alone = pattern.is_additive and base.divisor == 1 and base.pair_cost is None
    for i, piece in enumerate(how.pieces.tolist()):
        (cell, *others) = pieces.cells[piece]
        if not is_alone or others:
            continue
        value = pieces.table.goals[0, cell]
        for place in range(counts[i]):
            share[i, place] = base.cell_cost[how.slots[i, place, 0], value]
    return share


def residuals_of(table: PatternTable, base: BaseHeuristic, threads: int | None = None) -> Residuals:
    """Of all entries of a table; refused where h0's share is more than an arrangement costs."""
    pattern, entries = table.pattern, table.unpacked()
    share = shares_of(pattern, base)

    def look_at(first: int) -> tuple[int, int, bool]:
        return _range_of(pattern.folded, share, read_only(entries[first : first + AT_ONCE]), first)

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        least, most, odd = zip(*pool.map(look_at, range(0, len(entries), AT_ONCE)), strict=True)
    if min(least) < 0:
        raise NotAvailable("h0's share of this pattern is more than some arrangement costs; use another pattern")
    step = 1 if any(odd) else 2
    return Residuals(share, step, int(max(most)) // step)


@inner
def _write_codes(how: Ranking, turned: Number, base: I64, slots: I64, result: U8, b: Number) -> None:
    """Those of the arrangement with number `turned` in the block that begins with `base`, to row b. slots: written over."""
    turn_pieces(how, turned, base, slots)
    for i in range(slots.shape[0]):
        result[b, i] = np.int64(how.place[slots[i]]) * how.all_turns[i] + np.int64(how.turn[slots[i]])


@compiled
def codes_of(how: Ranking, first: Number, count: Number) -> U8:
    """uint8[count, k]: the codes of the arrangements from number `first` on."""
    pieces = how.kind.shape[0]
    result = np.empty((count, pieces), dtype=np.uint8)
    base, slots = np.zeros(pieces, dtype=np.int64), np.zeros(pieces, dtype=np.int64)
    block = np.int64(-1)
    for b in range(count):
        number = np.int64(first) + b
        if number // how.block != block:
            block = number // how.block
            unrank_places(how, block, base)
        _write_codes(how, number - block * how.block, base, slots, result, b)
    return result


@compiled
def codes_at(how: Ranking, numbers: I64) -> U8:
    """uint8[B, k]: the codes of arrangements with these numbers."""
    pieces = how.kind.shape[0]
    result = np.empty((numbers.shape[0], pieces), dtype=np.uint8)
    base, slots = np.zeros(pieces, dtype=np.int64), np.zeros(pieces, dtype=np.int64)
    for b in range(numbers.shape[0]):
        block = numbers[b] // how.block
        unrank_places(how, block, base)
        _write_codes(how, numbers[b] - block * how.block, base, slots, result, b)
    return result


@compiled
def _range_of(how: Ranking, share: U8, entries: U8, first: Number) -> tuple[Number, Number, Number]:
    """The least and the most that entries lie above the sums of shares, and whether one does so by an odd number."""
    codes = codes_of(how, first, entries.shape[0])
    least, most, odd = np.int64(0), np.int64(0), False
    for b in range(entries.shape[0]):
        if entries[b] == UNREACHED:
            continue
        above = np.int64(entries[b])
        for i in range(codes.shape[1]):
            above -= np.int64(share[i, codes[b, i]])
        least, most, odd = min(least, above), max(most, above), odd or above % 2 != 0
    return least, most, odd


@compiled
def sums_of(share: U8, codes: U8) -> I64:
    """int64[B]: the sums of the shares. codes: uint8[B, k]."""
    result = np.zeros(codes.shape[0], dtype=np.int64)
    for b in range(codes.shape[0]):
        for i in range(codes.shape[1]):
            result[b] += np.int64(share[i, codes[b, i]])
    return result


def encoding_of(pattern: Pattern, pairs: bool) -> Encoding:
    """How a network sees arrangements, uint8[B, k] of codes: one input for every piece and code, or every pair of them."""
    return encoding_by(pattern.folded, pairs)


def encoding_by(how: Ranking, pairs: bool) -> Encoding:
    """The same for any pieces that are ranked, the cursor among them or not."""
    counts = code_counts(how)
    size, count = max(counts), len(counts)
    if size > PAIRED:
        raise NotAvailable(f"a piece can stand in {size:,} slots, and networks on patterns take at most {PAIRED:,}")
    reading = Reading(
        image_cells=np.zeros((0, count), dtype=np.uint8),
        image_values=np.zeros((0, size), dtype=np.uint8),
        keys=np.zeros((0, count, size), dtype=np.int64),
        cells=np.arange(count, dtype=np.int32)[:, None],
        factors=np.ones((count, 1), dtype=np.int32),
        values=np.tile(np.arange(size, dtype=np.uint16), (count, 1)),
        size=size,
        pairs=pairs and count > 1,
    )
    if not reading.pairs:
        return every_token(reading, [range(n) for n in counts])
    tokens = []
    for i in range(count):
        for j in range(i + 1, count):
            a, b = np.divmod(np.arange(counts[i] * size), size)
            same = (how.kind[i] == how.kind[j]) & (a // how.all_turns[i] == b // how.all_turns[j])
            tokens.append(np.flatnonzero((b < counts[j]) & ~same).tolist())
    return every_token(reading, tokens)
