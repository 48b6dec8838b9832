"""Puzzle: a problem that people can write down and look at."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from undershoot.arrays import States
from undershoot.puzzles.notation import Notation, one_state
from undershoot.puzzles.pictures import Picture
from undershoot.puzzles.problem import Problem

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Puzzle(Problem):
    """One puzzle: a problem, with a notation and a picture.

    Examples:
        >>> tiles = us.puzzle("tiles-3x3")
        >>> state = tiles.parse("1 2 3 / 4 5 6 / 0 7 8")
        >>> print(state)
        [[1 2 3 4 5 6 0 7 8]]
        >>> print(tiles.base_heuristic(state))
        [2.]
        >>> tiles.format(tiles.table.goals)
        '1 2 3 / 4 5 6 / 7 8 0'
    """

    summary: str
    notation: Notation
    picture: Picture
    definition: str = ""
    """The text of its puzzle file; empty for puzzles of the catalogue."""

    def parse(self, text: str) -> States:
        """uint8[1, n], from the notation of this puzzle: a state, or a scramble played on the goal."""
        states = self.notation.parse(text)[None]
        self.check_solvable(states)
        return states

    def symbol(self, value: int) -> str:
        """What people write for a value."""
        return self.notation.symbols[value]

    def format(self, states: States) -> str:
        """One state as text that `parse` takes."""
        self.table.check_states(one_state(states)[None])
        return self.notation.format(one_state(states))

    def draw(self, states: States) -> "Text":
        """One state as coloured text for the terminal."""
        return self.picture.draw(one_state(states))
