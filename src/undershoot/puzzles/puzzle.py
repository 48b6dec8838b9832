"""Puzzle: a move table and what people and networks need to know about it."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from undershoot.arrays import I64, U8, Bools, States, freeze_arrays
from undershoot.errors import MalformedState, NotAvailable, UndershootError, UnsolvableState, what_came
from undershoot.puzzles import encoding as encodings
from undershoot.puzzles.base_heuristics import BaseHeuristic
from undershoot.puzzles.encoding import Encoding
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.notation import Notation, one_state
from undershoot.puzzles.parity import CostParity, of_pieces, permutation_parity
from undershoot.puzzles.pictures import Picture
from undershoot.puzzles.spaces import Space

if TYPE_CHECKING:
    from rich.text import Text


def check_puzzle(puzzle: object, asker: str) -> None:
    """Refuse what is no puzzle, such as its name, in a sentence."""
    if not isinstance(puzzle, Puzzle):
        raise UndershootError(f'{asker} takes a puzzle first, such as us.puzzle("tiles-3x3"); {what_came(puzzle)} came')


@dataclass(frozen=True, eq=False)
class Puzzle:
    """One puzzle. Its parts are data; the methods below only read them."""

    name: str
    summary: str
    table: MoveTable
    space: Space
    notation: Notation
    picture: Picture
    encoding: Encoding
    base_heuristic: BaseHeuristic
    """h0: float32[B] for states uint8[B, n], never above the true cost."""
    parity: CostParity | None = None
    """See `cost_parity`; where it is None, that of the permutation serves if every action agrees with it."""
    definition: str = ""
    """The text of its puzzle file; empty for puzzles of the catalogue."""
    pieces: tuple[tuple[int, ...], ...] = ()
    """The cells of each piece, where several move together (the stickers of a corner); empty if every cell is a piece."""
    pressed: U8 | None = None
    """uint8[n, n], where presses commute: its product with a state, mod 2, is a set of presses that solves it."""

    def __post_init__(self) -> None:
        freeze_arrays(self)

    def encoded(self, name: str = "cells", canonical: bool = False) -> Encoding:
        """An encoding by its name: `cells` (the puzzle's own), `pieces`, `pairs` (of pieces), or `presses`.

        canonical: states that are images of one another under the puzzle's symmetries are seen alike.
        """
        if canonical and not self.table.symmetries:
            raise NotAvailable(f"{self.name} has no symmetries given; leave canonical out (--set canonical=false)")
        if name == "cells" and canonical:
            raise UndershootError(
                "the encoding `cells` takes states as they are; for canonical ones use another, such as --set encoding=pairs"
            )
        if name == "cells":
            return self.encoding
        if name == "presses":
            if self.pressed is None:
                raise NotAvailable(f"{self.name} has no encoding `presses`; it is for Lights Out. Use cells, pieces or pairs")
            return encodings.of_sums(self.table, self.pressed, canonical)
        if name not in ("pieces", "pairs"):
            raise UndershootError(f"no encoding {name[:40]!a}; there are cells, pieces, pairs and presses")
        single = tuple((cell,) for cell in range(self.table.cells))
        return encodings.of_pieces(self.table, self.pieces or single, name == "pairs", canonical)

    def parse(self, text: str) -> States:
        """uint8[1, n], from the notation of this puzzle: a state, or a scramble played on the goal."""
        states = self.notation.parse(text)[None]
        self.check_solvable(states)
        return states

    def format(self, states: States) -> str:
        """One state as text that `parse` takes."""
        self.table.check_states(one_state(states)[None])
        return self.notation.format(one_state(states))

    def draw(self, states: States) -> "Text":
        """One state as coloured text for the terminal."""
        return self.picture.draw(one_state(states))

    def is_solvable(self, states: States) -> Bools:
        """bool[B]; NotAvailable where this puzzle cannot tell without enumerating its states."""
        self.table.check_states(states)
        if self.space.defects is None:
            raise NotAvailable(f"{self.name} cannot tell whether a state is solvable; its oracle can: undershoot oracle")
        result = self.table.holds_right_values(states)
        result[result] = self.space.defects(states[result]) == 0
        return result

    def check_solvable(self, states: States) -> None:
        """Refuse the first state that is known to have no solution, with the reason."""
        self.table.check_states(states)
        wrong = ~self.table.holds_right_values(states)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise MalformedState(f"state {row} does not hold the values of {self.name}: {states[row].tolist()}")
        if self.space.defects is None:
            return
        defects = self.space.defects(states)
        if defects.any():
            row = int(np.argmax(defects > 0))
            reason = self.space.reasons[defects[row] - 1]
            raise UnsolvableState(f"this state cannot reach the goal: {reason}: {self.format(states[row : row + 1])}")

    def sample(self, count: int, seed: int) -> States:
        """uint8[count, n]: solvable states, independent and each equally likely; NotAvailable where that cannot be."""
        if count < 0 or seed < 0:
            raise UndershootError(f"{count} states with seed {seed} were asked for; both must be at least 0")
        if self.space.sample is None:
            raise NotAvailable(
                f"{self.name} cannot draw uniformly random states; scramble its goal instead "
                "(solve --scramble-depth D, bench --scrambles D)"
            )
        return self.space.sample(np.random.default_rng(seed), count)

    @cached_property
    def parity_rule(self) -> CostParity | None:
        """See `cost_parity`; None where solutions of a state differ."""
        table = self.table
        if self.parity is not None or len(table.goals) > 1 or not table.has_distinct_values:
            return self.parity
        every = np.argwhere(table.legal)
        odd = permutation_parity(table.source[every[:, 0], every[:, 1]])
        if (odd != table.cost[every[:, 1]] % 2).any():
            return None
        return of_pieces(table.cells, np.arange(table.cells)[:, None], np.arange(table.values), table.goals)

    @property
    def has_cost_parity(self) -> bool:
        """Whether all solutions of a state have costs of one parity."""
        return self.parity_rule is not None

    def cost_parity(self, states: States) -> I64:
        """int64[B], the cost of every solution of the state mod 2; NotAvailable where solutions differ."""
        if self.parity_rule is None:
            raise NotAvailable(f"{self.name} has states with solutions of even and of odd cost")
        self.table.check_states(states)
        return self.parity_rule(states)
