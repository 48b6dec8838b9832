"""Networks on patterns as compiled loops ask them: by the places of a few pieces, packed into one number.

A search meets the same arrangement of a few pieces again and again, while the others move. So what a network says is kept in a
small memory, by the arrangement; only what is not found there, and is not listed, goes through the network.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from undershoot.arrays import U64, Number, frozen
from undershoot.errors import NotAvailable
from undershoot.heuristics.packed_networks import Desk, PackedNetworks, desk, finish_layers, pack, passed_levels
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.kernels.compiler import called, compiled, inner
from undershoot.kernels.vectors import add_rows

ONE, NONE = np.uint64(1), np.uint64(0)
UNKNOWN = -1
CODE_BITS = 48
"""The most that the codes of all pieces of a network take together."""
MOST_NETWORKS = 255
"""Their numbers are bytes."""
REMEMBERED_BITS = 18
"""2^18 arrangements are remembered, each by the last one that came to its place."""
SPREAD = np.uint64(0x9E3779B97F4A7C15)
LEVEL_BITS = np.uint64(8)


class AskedNetworks(NamedTuple):
    """For one thread."""

    packed: PackedNetworks
    bits: Number
    """How many the code of a piece takes; the first piece has the lowest."""
    remembered: U64
    """uint64[2^r]: an arrangement and its network, and the levels that were passed."""
    listed: U64
    """uint64[2^q], likewise, of those that are listed, each at the first free place from its own on; 0 where none is."""
    desk: Desk


def bits_of(codes: int) -> int:
    """What one of so many codes of a piece takes. codes: of the piece that has most."""
    return (codes - 1).bit_length()


def check_askable(pieces: int, codes: int) -> None:
    """Refuse patterns whose arrangements searches could not tell apart. codes: see `bits_of`."""
    most = CODE_BITS // bits_of(codes)
    if pieces > most:
        raise NotAvailable(f"a network follows {pieces} pieces; of this puzzle searches ask such networks about at most {most}")


def asked_networks(networks: Sequence[PatternNetwork], bits: int) -> AskedNetworks:
    """Of networks that see pairs, and have as many layers as each other."""
    packed = pack(networks)
    memory = np.zeros(1 << REMEMBERED_BITS, dtype=np.uint64)
    return AskedNetworks(packed, bits, memory, frozen(_listed(networks, bits)), desk(packed))


def with_own_memory(asked: AskedNetworks) -> AskedNetworks:
    """The same for another thread, with nothing remembered."""
    return asked._replace(remembered=np.zeros_like(asked.remembered), desk=desk(asked.packed))


def _listed(networks: Sequence[PatternNetwork], bits: int) -> U64:
    """All listed arrangements, by a hash of them, in a table that is at most half full."""
    words = [np.zeros(0, dtype=np.uint64)]
    for n, network in enumerate(networks):
        codes = network.listed_codes.astype(np.uint64)
        joint = (codes << (np.arange(codes.shape[1], dtype=np.uint64) * np.uint64(bits))).sum(axis=1, dtype=np.uint64)
        key = ((np.uint64(n) << np.uint64(CODE_BITS)) | joint) + ONE
        words.append((key << LEVEL_BITS) | network.listed_levels.astype(np.uint64))
    every = np.concatenate(words)
    table = np.zeros(1 << max(1, (2 * len(every)).bit_length()), dtype=np.uint64)
    _fill(table, every)
    return table


@compiled
def _fill(table: U64, words: U64) -> None:
    last = np.uint64(table.shape[0] - 1)
    for word in words:
        at = _place_of(table, word >> LEVEL_BITS)
        while table[at] != NONE:
            at = (at + ONE) & last
        table[at] = word


@inner
def _place_of(table: U64, key: Number) -> Number:
    return ((key * SPREAD) >> np.uint64(32)) & np.uint64(table.shape[0] - 1)


@inner
def levels_of(asked: AskedNetworks, network: Number, code: Number) -> Number:
    """How many levels a network says of an arrangement: remembered, listed, or found out."""
    key = ((np.uint64(network) << np.uint64(CODE_BITS)) | code) + ONE
    slot = _place_of(asked.remembered, key)
    known = asked.remembered[slot]
    if known >> LEVEL_BITS == key:
        return np.int64(known & np.uint64(255))
    levels = _listed_levels(asked.listed, key)
    if levels == UNKNOWN:
        levels = _ask(asked, network, code)
    asked.remembered[slot] = (key << LEVEL_BITS) | np.uint64(levels)
    return levels


@inner
def _listed_levels(table: U64, key: Number) -> Number:
    """UNKNOWN if it is not listed."""
    last, at = np.uint64(table.shape[0] - 1), _place_of(table, key)
    while table[at] != NONE:
        if table[at] >> LEVEL_BITS == key:
            return np.int64(table[at] & np.uint64(255))
        at = (at + ONE) & last
    return np.int64(UNKNOWN)


@called
def _ask(asked: AskedNetworks, network: Number, code: Number) -> Number:
    """Through the layers."""
    packed, desk = asked.packed, asked.desk
    count, token, bits = np.uint64(packed.sizes[network]), NONE, np.uint64(asked.bits)
    mask, codes = (ONE << bits) - ONE, np.uint64(packed.share.shape[2])
    for first in range(count):
        row = ((code >> (np.uint64(first) * bits)) & mask) * codes
        for second in range(np.uint64(first) + ONE, count):
            inside = row + ((code >> (np.uint64(second) * bits)) & mask)
            desk.wanted[token] = packed.pair[network, token] + np.int64(inside)
            token += ONE
    width = packed.widths[0]
    add_rows(packed.bias, np.int64(network) * width, packed.rows, width, desk.wanted, token, desk.sums)
    finish_layers(packed, desk, network, 0)
    return passed_levels(packed, desk, network)
