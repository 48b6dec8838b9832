"""Problem: a move table and what is known about it, which is all that exploring, learning and searching need."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from undershoot.arrays import I64, U8, Bools, States, freeze_arrays
from undershoot.errors import MalformedState, NotAvailable, UndershootError, UnsolvableState, what_came
from undershoot.puzzles import encoding as encodings
from undershoot.puzzles.base_heuristics import BaseHeuristic, zero_heuristic
from undershoot.puzzles.encoding import Encoding
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.notation import one_state
from undershoot.puzzles.parity import CostParity, of_pieces, permutation_parity
from undershoot.puzzles.spaces import Space, UnknownSpace

MOST_STATES = 100_000_000
"""That are drawn at a time."""


def check_puzzle(puzzle: object, asker: str) -> None:
    """Refuse what is no puzzle, such as its name, in a sentence."""
    if not isinstance(puzzle, Problem):
        raise UndershootError(f'{asker} takes a puzzle first, such as us.puzzle("tiles-3x3"); {what_came(puzzle)} came')


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """States and moves without a notation or a picture. Its parts are data; the methods below only read them."""

    name: str
    table: MoveTable
    space: Space
    encoding: Encoding
    base_heuristic: BaseHeuristic
    """h0: float32[B] for states uint8[B, n], never above the true cost."""
    parity: CostParity | None = None
    """See `cost_parity`; where it is None, that of the permutation serves if every action agrees with it."""
    pieces: tuple[tuple[int, ...], ...] = ()
    """The cells of each piece, where several move together (the stickers of a corner); empty if every cell is a piece."""
    pattern_sets: tuple[tuple[str, str], ...] = ()
    """Sets of patterns that its file gives: names, and pieces as `pattern_set` reads them; the first is the default."""
    fewer_moves: tuple[str, ...] = ()
    """Names of moves, with those that undo them, that solve many states alone: a search may first bring a state among these."""
    pressed: U8 | None = None
    """uint8[n, n], where presses commute: its product with a state, mod 2, is a set of presses that solves it."""

    def __post_init__(self) -> None:
        freeze_arrays(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

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

    def symbol(self, value: int) -> str:
        """What a value is called."""
        return str(value)

    def format(self, states: States) -> str:
        """One state as text: its values."""
        return " ".join(map(str, one_state(states).tolist()))

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
        if count > MOST_STATES:
            raise UndershootError(f"{count:,} random states were asked for; at most {MOST_STATES:,} can be drawn at a time")
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


def bare_problem(name: str, table: MoveTable) -> Problem:
    """A problem of which nothing but the moves is known."""
    return Problem(
        name=name,
        table=table,
        space=UnknownSpace(table),
        encoding=encodings.one_hot(table.modulus),
        base_heuristic=zero_heuristic(table.cells, table.values),
    )
