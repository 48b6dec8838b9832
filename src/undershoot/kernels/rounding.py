"""Rounding up inside compiled loops: to whole numbers, or to those of the parity that all solutions of a state have."""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, U8, Number, States, frozen
from undershoot.guarantees import Rounding
from undershoot.kernels.compiler import called, inner
from undershoot.puzzles.problem import Problem


class RoundUp(NamedTuple):
    """How, and the parity as in `CostParity`."""

    is_whole: Number
    has_parity: Number
    bits: U8
    places: I32
    factors: I32
    numbers: I32
    constant: Number
    pieces: I32
    """int32[P], to work in."""


def rounding_up(puzzle: Problem, rounding: Rounding) -> RoundUp:
    """For one thread."""
    is_whole, parity = rounding is not Rounding.NONE, puzzle.parity_rule if rounding is Rounding.PARITY else None
    if parity is None:
        nothing = np.zeros(0, dtype=np.int32)
        empty = frozen(nothing)
        bits, places = frozen(np.zeros((0, 0), dtype=np.uint8)), frozen(np.zeros((0, 0), dtype=np.int32))
        return RoundUp(is_whole, False, bits, places, empty, empty, 0, nothing)
    pieces = np.zeros(len(parity.places), dtype=np.int32)
    return RoundUp(is_whole, True, parity.bits, parity.places, parity.factors, parity.numbers, int(parity.constant), pieces)


@called
def parity_of(how: RoundUp, states: States, row: Number) -> Number:
    """0 or 1, for states[row]."""
    count, pieces = np.int64(how.constant), how.pieces
    for i in range(how.bits.shape[0]):
        count += how.bits[i, states[row, i]]
    for p in range(how.places.shape[0]):
        code = np.int64(0)
        for j in range(how.places.shape[1]):
            code += how.factors[j] * np.int64(states[row, how.places[p, j]])
        pieces[p] = how.numbers[code]
        for q in range(p):
            count += pieces[p] < pieces[q]
    return count & 1


@inner
def rounded_up(how: RoundUp, value: Number, states: States, row: Number) -> Number:
    """float32: a value from 0, float64, rounded up for states[row]."""
    if how.is_whole:
        value = np.ceil(value)
        if how.has_parity:
            value += (np.int64(value) ^ parity_of(how, states, row)) & 1
    return np.float32(value)
