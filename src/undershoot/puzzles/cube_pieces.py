"""Which colourings of a cube are cubes: every piece there, twists, flips and exchanges as turns allow."""

import numpy as np

from undershoot.arrays import I64, Bools, States, frozen
from undershoot.puzzles.cube_geometry import FACES, CubeGeometry
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.parity import CostParity, of_pieces, permutation_parity
from undershoot.puzzles.spaces import OrbitSpace


class CubeSpace:
    """States of a cube that is held the standard way: the 2x2 by its back-left-down corner, the 3x3 by its centres."""

    size_is_exact = True

    def __init__(self, table: MoveTable, geometry: CubeGeometry) -> None:
        self._orbit = OrbitSpace(table)
        self._corners = _Recogniser(geometry.corners, geometry.face_of)
        self._edges = _Recogniser(geometry.edges, geometry.face_of)
        self.held = frozen(np.flatnonzero((table.source[0] == np.arange(table.cells)).all(axis=0)))
        """The cells that no turn moves, by which the cube is held."""
        self._goal = table.goals[0]
        corners = [f"its corner {geometry.piece_name(c)} has colours that no corner of a cube has" for c in geometry.corners]
        edges = [f"its edge {geometry.piece_name(e)} has colours that no edge of a cube has" for e in geometry.edges]
        self.reasons = (
            *corners,
            *edges,
            "two of its corners are the same piece",
            "two of its edges are the same piece",
            "a corner is twisted",
            "an edge is flipped",
            "two pieces are exchanged (odd parity)",
            "it is held another way (parse turns it)",
        )

    @property
    def size(self) -> int:
        """The order of the group that the turns generate; every element looks different."""
        return self._orbit.group.order

    def sample(self, random: np.random.Generator, count: int) -> States:
        """Uniform over the group, so uniform over the pieces' permutations and twists that turns allow."""
        return self._orbit.images_of_goal(random, count)

    @property
    def corner_parity(self) -> CostParity:
        """Whether the corners are an odd permutation; a quarter turn changes it."""
        return of_pieces(len(self._goal), self._corners.places, self._corners.piece, self._goal[None])

    def defects(self, states: States) -> I64:
        """The first of `reasons` that applies, plus one."""
        result = self.piece_defects(states)
        held = (states[:, self.held] == self._goal[self.held]).all(axis=1)
        return np.where((result == 0) & ~held, len(self.reasons), result)

    def piece_defects(self, states: States) -> I64:
        """The same however the cube is held, if its centres are in place."""
        corner, twist = self._corners(states)
        edge, flip = self._edges(states)
        pieces = np.concatenate([corner, edge], axis=1)
        first = pieces.shape[1] + 1
        checks = [
            _has_repeats(corner),
            _has_repeats(edge),
            twist.sum(axis=1) % 3 != 0,
            flip.sum(axis=1) % 2 != 0,
            (permutation_parity(corner) != permutation_parity(edge)) & (edge.shape[1] > 0),
        ]
        result = np.zeros(len(states), dtype=np.int64)
        for number, fails in reversed(list(enumerate(checks, start=first))):
            result[fails] = number
        broken = (pieces < 0).any(axis=1)
        result[broken] = 1 + np.argmax(pieces[broken] < 0, axis=1)
        return result


def _has_repeats(pieces: I64) -> Bools:
    return np.asarray((np.diff(np.sort(pieces, axis=1), axis=1) == 0).any(axis=1))


class _Recogniser:
    """Knows the pieces of one kind by their colours."""

    def __init__(self, places: I64, face_of: I64) -> None:
        """places: int64[P, K], the K stickers of each piece, in an order that turning a piece shifts cyclically."""
        self.places = frozen(places)
        """int64[P, K]."""
        size = places.shape[1]
        self.piece = np.full((len(FACES),) * size, -1, dtype=np.int64)
        """int64[6, ..., 6] in K dimensions: the piece with these colours, -1 for none."""
        self._turned = np.zeros_like(self.piece)
        for piece, stickers in enumerate(places):
            for turned in range(size):
                colours = tuple(np.roll(face_of[stickers], turned).tolist())
                self.piece[colours], self._turned[colours] = piece, turned
        self.piece, self._turned = frozen(self.piece), frozen(self._turned)

    def __call__(self, states: States) -> tuple[I64, I64]:
        """int64[B, P] twice: which piece stands at each place (-1: none that exists), and by how much it is turned."""
        colours = tuple(np.moveaxis(states[:, self.places], 2, 0))
        return self.piece[colours], self._turned[colours]
