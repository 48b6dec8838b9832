"""Arrangements of pieces in slots as dense numbers, compiled.

A number is, for each piece, which of the places that earlier pieces of its kind have left free it takes, and then for each
piece how it is turned: digits of one number in mixed radix. Numbers that differ in turns only lie side by side, in a *block*.
"""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import I64, U8, Number
from undershoot.kernels.bits import ones
from undershoot.kernels.compiler import compiled, inner


class Ranking(NamedTuple):
    """How the arrangements of k pieces are numbered."""

    pieces: I64
    """int64[k], in the order of their digits: those of one kind together, the cursor last."""
    kind: I64
    """int64[k]."""
    choices: I64
    """int64[k]: how many places are left for each."""
    turns: I64
    """int64[k]: in how many ways each is turned, 1 if that follows from the others."""
    all_turns: I64
    """int64[k]: likewise, whether it follows or not."""
    turn_sum: I64
    """int64[k]: where it follows, the sum of all turns of the kind, mod `all_turns`."""
    place_weight: I64
    """int64[k]."""
    turn_weight: I64
    """int64[k], 0 where the turn follows from the others."""
    place: U8
    """uint8[n], the place of a slot among those of its kind."""
    turn: U8
    """uint8[n]."""
    slots: U8
    """uint8[k, places, turns]: the slot of a place and a turn."""
    block: Number
    """How many numbers differ in turns only."""
    size: Number
    """How many there are."""


@inner
def rank(how: Ranking, slots: I64) -> Number:
    """The number of an arrangement. slots: int64[k], of how.pieces."""
    number, occupied = np.int64(0), np.uint64(0)
    for i in range(how.kind.shape[0]):
        if i > 0 and how.kind[i] != how.kind[i - 1]:
            occupied = np.uint64(0)
        slot = slots[i]
        bit = np.uint64(1) << np.uint64(how.place[slot])
        free = np.int64(how.place[slot]) - np.int64(ones(occupied & (bit - np.uint64(1))))
        number += free * how.place_weight[i] + np.int64(how.turn[slot]) * how.turn_weight[i]
        occupied |= bit
    return number


@inner
def unrank_places(how: Ranking, block: Number, slots: I64) -> None:
    """Write the slots of the first arrangement of a block, where no piece is turned, to slots[:k]."""
    number, occupied = np.int64(block) * how.block, np.uint64(0)
    for i in range(how.kind.shape[0]):
        if i > 0 and how.kind[i] != how.kind[i - 1]:
            occupied = np.uint64(0)
        left = number // how.place_weight[i]
        number -= left * how.place_weight[i]
        place = np.int64(0)
        while True:
            if (occupied >> np.uint64(place)) & np.uint64(1) == 0:
                if left == 0:
                    break
                left -= 1
            place += 1
        occupied |= np.uint64(1) << np.uint64(place)
        slots[i] = how.slots[i, place, 0]


@inner
def turn_pieces(how: Ranking, turned: Number, base: I64, slots: I64) -> None:
    """Write the arrangement with number `turned` in its block to slots[:k]. base: the first one of the block."""
    left, total = np.int64(turned), np.int64(0)
    for i in range(how.kind.shape[0]):
        if i > 0 and how.kind[i] != how.kind[i - 1]:
            total = np.int64(0)
        by = np.int64(0)
        if how.turn_weight[i] > 0:
            by = left // how.turn_weight[i]
            left -= by * how.turn_weight[i]
            total += by
        elif how.all_turns[i] > 1:
            by = (how.turn_sum[i] - total) % how.all_turns[i]
        slots[i] = how.slots[i, how.place[base[i]], by]


@compiled
def rank_of(how: Ranking, slots: I64) -> Number:
    """`rank`, to be asked from Python."""
    return rank(how, slots)
