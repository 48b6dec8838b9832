"""Cubes in writing: Singmaster moves, and facelet strings in the order U R F D L B."""

import re

import numpy as np

from undershoot.arrays import U8
from undershoot.errors import MalformedState, UnsolvableState
from undershoot.puzzles.cube_geometry import AMOUNTS, FACES, CubeGeometry
from undershoot.puzzles.cube_pieces import CubeSpace
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.notation import check_values

MOVE = re.compile(r"([URFDLBxyz])(2'|2|3|'|)")


class CubeNotation:
    """Plays scrambles on all stickers, and then turns the whole cube the way its states are held."""

    def __init__(self, table: MoveTable, geometry: CubeGeometry, space: CubeSpace) -> None:
        self.table, self.geometry, self.space = table, geometry, space
        self.symbols = tuple(FACES)
        faces = " ".join(FACES)
        self.help = f'moves such as "R U2 F\'" (faces {faces}, rotations x y z), or {table.cells} facelets in the order {faces}'

    def parse(self, text: str) -> U8:
        """A facelet string held in any way, or a scramble."""
        words = text.replace("\u2019", "'").replace("(", " ").replace(")", " ").split()
        if not words:
            raise MalformedState(f"the text is empty; expected: {self.help}")
        return self._hold(self._facelets("".join(words)) if self._is_facelets(words) else self._scramble(words))

    def format(self, state: U8) -> str:
        """The facelet string."""
        return "".join(FACES[value] for value in state)

    def _is_facelets(self, words: list[str]) -> bool:
        joined = "".join(words)
        if set(joined) - set(FACES):
            return False
        if all(len(word) == 1 for word in words):
            # Single letters are turns, unless they are just as many of each face as there are stickers.
            return all(6 * joined.count(face) == self.table.cells for face in FACES)
        # Nobody writes a turn twice without a space ("UU"), so doubled letters are stickers, even if some are missing.
        return len(joined) == self.table.cells or bool(re.search(r"(.)\1", "".join(words)))

    def _scramble(self, words: list[str]) -> U8:
        state = self.table.goals[0]
        for word in words:
            turns = MOVE.findall(word)
            if "".join(face + amount for face, amount in turns) != word:
                raise MalformedState(f'"{word}" is not a move of this cube; expected: {self.help}')
            for face, written in turns:
                amount = {"3": 3, "2'": 2}.get(written) or AMOUNTS[written]
                permutation = self.geometry.turn if face in FACES else self.geometry.rotation
                state = state[permutation(face, amount)]
        return np.asarray(state)

    def _facelets(self, letters: str) -> U8:
        if len(letters) != self.table.cells:
            raise MalformedState(f"{len(letters)} facelets came; this cube has {self.table.cells}: {self.help}")
        state = np.array([FACES.index(letter) for letter in letters], dtype=np.uint8)
        check_values(self.table, state, FACES)
        return state

    def _hold(self, state: U8) -> U8:
        """Turn the whole cube until the stickers that no move touches are home."""
        if self.geometry.side == 2:
            # Without centres, first make sure that there is a back-left-down corner to hold it by.
            defect = int(self.space.piece_defects(state[None])[0])
            if defect:
                raise UnsolvableState(f"this is not a cube: {self.space.reasons[defect - 1]}: {self.format(state)}")
        held = state[self.geometry.holds]
        home = (held[:, self.space.held] == self.table.goals[0][self.space.held]).all(axis=1)
        if not home.any():
            centres = self.format(state[self.space.held])
            raise UnsolvableState(f"its centres are {centres} in the order U R F D L B, which is no way to hold a cube")
        return np.asarray(held[int(np.argmax(home))])
