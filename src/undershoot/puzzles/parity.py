"""The parity that all solutions of a state have, as data."""

from dataclasses import dataclass

import numpy as np

from undershoot.arrays import I32, I64, U8, AnyArray, States, freeze_arrays


@dataclass(frozen=True, eq=False)
class CostParity:
    """Bits of the cells, the parity of a permutation of pieces, and a constant, added mod 2.

    The piece at place p has the number numbers[sum over j of factors[j] * value of cell places[p, j]].
    """

    bits: U8
    """uint8[n, m]: 1 where value v on cell i counts."""
    places: I32
    """int32[P, K], the cells of each place; P is 0 if no permutation counts."""
    factors: I32
    """int32[K]."""
    numbers: I32
    """int32[codes], different for different pieces."""
    constant: int = 0

    def __post_init__(self) -> None:
        freeze_arrays(self)

    def __call__(self, states: States) -> I64:
        """int64[B], 0 or 1."""
        counted = self.bits[np.arange(states.shape[1]), states].sum(axis=1, dtype=np.int64)
        codes = (states[:, self.places].astype(np.int64) * self.factors).sum(axis=2)
        return np.asarray((counted + permutation_parity(self.numbers[codes]) + self.constant) % 2, dtype=np.int64)


def permutation_parity(arrangements: AnyArray) -> I64:
    """int64[B], 0 for even and 1 for odd: how many pairs stand in the wrong order, mod 2. Values must be distinct."""
    odd = np.zeros(len(arrangements), dtype=np.bool_)
    for i in range(arrangements.shape[1]):
        odd ^= np.logical_xor.reduce(arrangements[:, i + 1 :] < arrangements[:, i : i + 1], axis=1)
    return odd.astype(np.int64)


def of_bits(bits: U8) -> CostParity:
    """Where no permutation counts."""
    nothing = np.zeros(0, dtype=np.int32)
    return CostParity(bits, nothing.reshape(0, 0), nothing, nothing)


def of_pieces(cells: int, places: AnyArray, piece_of: AnyArray, goal: States) -> CostParity:
    """The parity of the pieces' permutation, even for the goal, uint8[1, n].

    places: int[P, K]; piece_of: int[m, ..., m] in K dimensions, the number of the piece with these values.
    """
    base, size = piece_of.shape[0], places.shape[1]
    factors = base ** np.arange(size - 1, -1, -1)  # as numpy lays piece_of out
    bits = np.zeros((cells, base), dtype=np.uint8)
    found = CostParity(bits, places.astype(np.int32), factors.astype(np.int32), piece_of.ravel().astype(np.int32))
    return CostParity(found.bits, found.places, found.factors, found.numbers, int(found(goal)[0]))
