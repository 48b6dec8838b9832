"""The 2x2 and the 3x3 cube, counting half turns as one move or as two."""

from collections.abc import Iterator

import numpy as np

from undershoot.arrays import AnyArray
from undershoot.puzzles.base_heuristics import zero_heuristic
from undershoot.puzzles.cube_geometry import AMOUNTS, FACES, NET, CubeGeometry, orthogonal_matrices
from undershoot.puzzles.cube_notation import CubeNotation
from undershoot.puzzles.cube_pieces import CubeSpace
from undershoot.puzzles.encoding import one_hot
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.pictures import Picture
from undershoot.puzzles.puzzle import Puzzle

FEWER = ("U", "U2", "U'", "D", "D2", "D'", "R2", "L2", "F2", "B2")
"""Of the 3x3: the turns of Kociemba's second phase."""
STYLES = ("on grey93", "on red3", "on green3", "on yellow1", "on dark_orange", "on blue1")


def cube(side: int, quarter_turns: bool) -> Puzzle:
    """cube-2x2 and cube-3x3; with `quarter_turns` (-qtm) a half turn costs two.

    On the 2x2 turning D is turning U and then holding the cube differently, so only U, R and F turn and the
    back-left-down corner stays where it is: one goal, 3,674,160 states.
    """
    geometry = CubeGeometry(side)
    turning = FACES[:3] if side == 2 else FACES
    turns = [(face, amount) for face in turning for amount in AMOUNTS]
    source = np.array([[geometry.turn(face, AMOUNTS[amount]) for face, amount in turns]], dtype=np.uint8)
    cells = source.shape[2]
    table = MoveTable(
        source=source,
        shift=np.zeros_like(source),
        modulus=np.full(cells, len(FACES), dtype=np.uint16),
        legal=np.ones((1, len(turns)), dtype=np.bool_),
        cost=np.array([2 if quarter_turns and amount == "2" else 1 for _, amount in turns], dtype=np.int32),
        action_names=tuple(face + amount for face, amount in turns),
        goals=geometry.face_of[None].astype(np.uint8),
    ).with_symmetries(_symmetries(geometry))
    space = CubeSpace(table, geometry)
    metric = "half turns cost two" if quarter_turns else "half turns cost one"
    return Puzzle(
        name=f"cube-{side}x{side}" + ("-qtm" if quarter_turns else ""),
        summary=f"the {side}x{side}x{side} cube, {metric}",
        table=table,
        space=space,
        notation=CubeNotation(table, geometry, space),
        picture=Picture(
            tuple(
                (NET[face][0] * side + row, NET[face][1] * side + column)
                for face in FACES
                for row in range(side)
                for column in range(side)
            ),
            tuple(f"{face} " for face in FACES),
            tuple(f"bold {'white' if face in 'RB' else 'black'} {style}" for face, style in zip(FACES, STYLES, strict=True)),
            gap=0,
        ),
        encoding=one_hot(table.modulus),
        base_heuristic=zero_heuristic(cells, len(FACES)),
        parity=space.corner_parity if quarter_turns else None,
        fewer_moves=FEWER if side == 3 else (),
        pieces=tuple(
            tuple(int(cell) for cell in piece)
            for piece in (*geometry.corners, *geometry.edges)
            if not np.isin(piece, space.held).any()
        ),
    )


def _symmetries(geometry: CubeGeometry) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Rotations and reflections with the colours renamed; on the 2x2 those that keep the corner by which it is held."""
    for matrix in orthogonal_matrices():
        if geometry.side == 3 or (matrix >= 0).all():
            cells = geometry.moved(matrix)
            colours = np.empty(len(FACES), dtype=np.uint8)
            colours[geometry.face_of[cells]] = geometry.face_of
            yield cells, colours
