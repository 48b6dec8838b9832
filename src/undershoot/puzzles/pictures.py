"""States drawn in the terminal: every cell is a coloured field on a grid."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from undershoot.arrays import U8

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True)
class Picture:
    """Where each cell stands, and what each value looks like there."""

    places: tuple[tuple[int, int], ...]
    """(row, column) of each cell."""
    labels: tuple[str, ...]
    """What is written for each value; all of one width."""
    styles: tuple[str, ...]
    """A rich style for each value."""
    gap: int = 1
    """Spaces between columns."""

    def draw(self, state: U8) -> "Text":
        """Lines of text in colour; read without colour, the labels still tell the values apart."""
        from rich.text import Text

        rows = 1 + max(row for row, _ in self.places)
        columns = 1 + max(column for _, column in self.places)
        width = len(self.labels[0])
        occupant = np.full((rows, columns), -1)
        for cell, place in enumerate(self.places):
            occupant[place] = state[cell]
        text = Text()
        for row in range(rows):
            for column in range(columns):
                value = occupant[row, column]
                text.append(*((" " * width, "") if value < 0 else (self.labels[value], self.styles[value])))
                text.append(" " * self.gap if column < columns - 1 else "")
            text.append("\n" if row < rows - 1 else "")
        return text


def grid(rows: int, columns: int) -> tuple[tuple[int, int], ...]:
    """Places of a rectangle in reading order."""
    return tuple((row, column) for row in range(rows) for column in range(columns))
