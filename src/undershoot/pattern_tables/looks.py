"""Looks: a table asked about the state itself, its image under a symmetry, or its inverse, which all cost as much."""

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
            # What shows as this piece's first sticker in the image of the goal.
            cell = int(self.symmetry.cells[pieces.cells[piece][0]])
            other, sticker = next((p, home.index(cell)) for p, home in enumerate(pieces.cells) if cell in home)
            asked.append(other)
            at = pieces.stickers[:, sticker]
            slots[i, at >= 0] = to_image[at[at >= 0]]
        return np.array(asked, dtype=np.int64), slots


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
