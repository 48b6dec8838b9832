"""Where the stickers of a cube are in space, and what turns and rotations do to them.

Faces are numbered U R F D L B, stickers face by face in reading order, as in the usual facelet strings. x points to the
right, y up, z to the viewer; a sticker of an NxN cube sits at a vector with one coordinate +-N (its face) and the others
in -(N-1)..N-1 in steps of 2.
"""

from functools import cached_property
from itertools import permutations, product

import numpy as np

from undershoot.arrays import I64, U8, AnyArray, frozen

FACES = "URFDLB"
# The direction each face looks to, and those of its columns (to the right) and rows (downwards) in the unfolded net.
NORMAL = {"U": (0, 1, 0), "R": (1, 0, 0), "F": (0, 0, 1), "D": (0, -1, 0), "L": (-1, 0, 0), "B": (0, 0, -1)}
RIGHT = {"U": (1, 0, 0), "R": (0, 0, -1), "F": (1, 0, 0), "D": (1, 0, 0), "L": (0, 0, 1), "B": (-1, 0, 0)}
DOWN = {"U": (0, 0, 1), "R": (0, -1, 0), "F": (0, -1, 0), "D": (0, 0, -1), "L": (0, -1, 0), "B": (0, -1, 0)}
NET = {"U": (0, 1), "R": (1, 2), "F": (1, 1), "D": (2, 1), "L": (1, 0), "B": (1, 3)}
AMOUNTS = {"": 1, "2": 2, "'": 3}


class CubeGeometry:
    """The stickers of an NxN cube. Permutations are `source` rows: new[i] = old[source[i]]."""

    def __init__(self, side: int) -> None:
        self.side = side
        steps = range(1 - side, side, 2)
        spots = [
            side * np.array(NORMAL[face]) + column * np.array(RIGHT[face]) + row * np.array(DOWN[face])
            for face in FACES
            for row in steps
            for column in steps
        ]
        self.spots: I64 = frozen(np.array(spots, dtype=np.int64))
        """int64[n, 3]."""
        self._index = {tuple(spot): i for i, spot in enumerate(self.spots.tolist())}
        self.face_of = frozen(np.arange(len(spots)) // side**2)

    def moved(self, matrix: AnyArray, among: AnyArray | None = None) -> U8:
        """The permutation that carries each sticker (of those in the mask) from v to matrix v."""
        source = np.arange(len(self.spots), dtype=np.uint8)
        for i, spot in enumerate(self.spots):
            if among is None or among[i]:
                source[self._index[tuple((matrix @ spot).tolist())]] = i
        return source

    def turn(self, face: str, amount: int) -> U8:
        """`amount` clockwise quarter turns of a face, seen from outside."""
        return self.moved(_clockwise(NORMAL[face], amount), self.spots @ np.array(NORMAL[face]) >= self.side - 1)

    def rotation(self, axis: str, amount: int) -> U8:
        """The whole cube: x turns like R, y like U, z like F."""
        return self.moved(_clockwise(NORMAL[{"x": "R", "y": "U", "z": "F"}[axis]], amount))

    @cached_property
    def holds(self) -> U8:
        """uint8[24, n], all ways to hold the cube; the first changes nothing."""
        rotations = [self.moved(m) for m in orthogonal_matrices() if round(np.linalg.det(m)) == 1]
        return frozen(np.array(rotations, dtype=np.uint8))

    @cached_property
    def corners(self) -> I64:
        """int64[8, 3], the stickers of each corner clockwise from the U or D one."""
        outer = self.side - 1
        result = []
        for y, x, z in product((1, -1), repeat=3):
            stickers = [self._index[tuple(s)] for s in _sticker_spots((x * outer, y * outer, z * outer))]
            sx, sy, sz = stickers
            result.append([sy, sx, sz] if x * y * z > 0 else [sy, sz, sx])
        return frozen(np.array(result, dtype=np.int64))

    @cached_property
    def edges(self) -> I64:
        """int64[12, 2], the stickers of each edge of a 3x3; none on a 2x2."""
        if self.side == 2:
            return np.zeros((0, 2), dtype=np.int64)
        spots = [s for s in product((0, 2, -2), repeat=3) if s.count(0) == 1]
        return np.array([[self._index[tuple(v)] for v in _sticker_spots(s)] for s in spots], dtype=np.int64)

    def piece_name(self, stickers: I64) -> str:
        """The faces a piece touches, such as URF."""
        return "".join(FACES[self.face_of[i]] for i in stickers)


def orthogonal_matrices() -> list[I64]:
    """The 48 matrices that map the cube to itself, the identity first, mirrors included."""
    return [
        np.array([[signs[row] * (order[row] == column) for column in range(3)] for row in range(3)], dtype=np.int64)
        for order in permutations(range(3))
        for signs in product((1, -1), repeat=3)
    ]


def _clockwise(axis: tuple[int, int, int], amount: int) -> I64:
    """Quarter turns about an axis, clockwise for who looks at the cube from there: v -> axis (axis.v) - axis x v."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=np.int64)
    quarter = np.outer(axis, axis) - cross
    return np.linalg.matrix_power(quarter, amount)


def _sticker_spots(piece: tuple[int, ...]) -> list[list[int]]:
    """The stickers of the piece at this place: one coordinate at a time pushed out to its face."""
    return [[v + (1 if v > 0 else -1) * (k == axis) for k, v in enumerate(piece)] for axis in range(3) if piece[axis]]
