"""Looks: a table asked about the state itself, its image under a symmetry, or its inverse, which all cost as much."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from undershoot.arrays import I64, U8, AnyArray
from undershoot.errors import NotAvailable
from undershoot.pattern_tables.pattern import Pattern
from undershoot.puzzles.moves import Symmetry
from undershoot.puzzles.pieces import Pieces


class OfPattern(Protocol):
    """What says something of every arrangement of a pattern: a table, or a network."""

    @property
    def pattern(self) -> Pattern:
        """Whose arrangements."""


Asked = TypeVar("Asked", bound=OfPattern)


@dataclass(frozen=True, eq=False)
class Look(Generic[Asked]):
    """A table or a network, and the symmetry through which it is asked; None for the state itself."""

    table: Asked
    symmetry: Symmetry | None = None
    is_inverse: bool = False
    """Whether it is asked about the inverse of that: the state that the moves lead to which undo those that led here."""

    def __post_init__(self) -> None:
        table = self.table.pattern.pieces.table
        if self.symmetry is not None and (len(table.goals) > 1 or (self.symmetry.image(table.goals) != table.goals).any()):
            raise NotAvailable(
                "a pattern is looked up through symmetries that keep the one goal of a puzzle; this one does not"
            )
        if self.is_inverse:
            check_inverse(self.table.pattern.pieces)

    @property
    def asked(self) -> I64:
        """int64[k]: the pieces of the state whose slots the digits of the table's number come from."""
        return self._mapped[0]

    @property
    def slots(self) -> U8:
        """uint8[k, n]: for each of them, the slot in the image for its slot in the state."""
        return self._mapped[1]

    @property
    def _mapped(self) -> tuple[I64, U8]:
        pieces, ranking = self.table.pattern.pieces, self.table.pattern.folded
        cells = pieces.table.cells
        if self.symmetry is None:
            return ranking.pieces, np.tile(np.arange(cells, dtype=np.uint8), (len(ranking.pieces), 1))
        to_image: AnyArray = np.argsort(self.symmetry.cells).astype(np.uint8)
        asked, slots = [], np.zeros((len(ranking.pieces), cells), dtype=np.uint8)
        for i, piece in enumerate(ranking.pieces.tolist()):
            other, sticker = _shown(pieces, self.symmetry, piece)
            asked.append(other)
            at = pieces.stickers[:, sticker]
            slots[i, at >= 0] = to_image[at[at >= 0]]
        return np.array(asked, dtype=np.int64), slots


def _shown(pieces: Pieces, symmetry: Symmetry, piece: int) -> tuple[int, int]:
    """The piece and the sticker that show as this piece's first sticker in the image of the goal."""
    cell = int(symmetry.cells[pieces.cells[piece][0]])
    return next((p, home.index(cell)) for p, home in enumerate(pieces.cells) if cell in home)


def symmetry_between(known: Pattern, pattern: Pattern) -> Symmetry | None:
    """A symmetry through which what is known of one pattern says the same of another; None if there is none."""
    pieces = known.pieces
    if len(pieces.table.goals) > 1 or known.is_additive != pattern.is_additive:
        return None
    for symmetry in pieces.table.symmetries:
        if {_shown(pieces, symmetry, piece)[0] for piece in known.followed} == set(pattern.followed):
            return symmetry
    return None


def representatives(patterns: Sequence[Pattern]) -> tuple[Pattern, ...]:
    """For each, the first of those that a symmetry maps onto it: a table or a network of that one serves for all."""
    kept: list[Pattern] = []
    for pattern in patterns:
        kept.append(next((known for known in kept if symmetry_between(known, pattern) is not None), pattern))
    return tuple(kept)


def distinct_patterns(patterns: Sequence[Pattern]) -> tuple[Pattern, ...]:
    """Of patterns that a symmetry maps onto each other, the first."""
    return tuple(dict.fromkeys(representatives(patterns)))


def check_inverse(pieces: Pieces) -> None:
    """Refuse puzzles in which the inverse of a state may cost something else.

    A state is where moves have carried all stickers; the moves that undo them, in the other order, carry the goal to its
    inverse, and cost as much if each is a move of the same cost.
    """
    table = pieces.table
    wrong = ""
    if len(table.goals) > 1:
        wrong = f"it has {len(table.goals)} goals"
    elif table.cursor is not None:
        wrong = "what a move does depends on where the cursor is"
    else:
        undo = table.inverse[0]
        for action in np.flatnonzero(table.legal[0]).tolist():
            if undo[action] < 0 or table.cost[table.alike[undo[action]]] != table.cost[table.alike[action]]:
                wrong = f"no move of the same cost takes {table.action_names[action]} back"
    if wrong:
        raise NotAvailable(f"the inverse of a state need not cost what the state costs in this puzzle: {wrong}")
