"""Heuristics by formula, proven for every state."""

from dataclasses import dataclass

import numpy as np

from undershoot.arrays import F32, I32, U8, U64, Number, States, freeze_arrays, read_only
from undershoot.errors import NotAvailable
from undershoot.guarantees import PROVEN, Guarantee, Rounding
from undershoot.kernels.compiler import compiled
from undershoot.kernels.sums import Sums, shared_out, sum_of, sums
from undershoot.puzzles.base_heuristics import BaseHeuristic, zero_heuristic
from undershoot.puzzles.catalogue import puzzle as built_in
from undershoot.puzzles.lights_out import eliminate
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.puzzle import Puzzle


def check_shape(table: MoveTable, states: States) -> None:
    """Refuse what is no batch of states of this table. Values out of range are found by compiled code, which raises ValueError:
    that spares a second look at every state."""
    if not isinstance(states, np.ndarray) or states.dtype != np.uint8 or states.ndim != 2 or states.shape[1] != table.cells:
        table.check_states(states)


@compiled
def additive_value(formula: Sums, states: States, row: Number) -> Number:
    """`BaseHeuristic` for one row; a ValueError if values are out of range."""
    for i in range(states.shape[1]):
        if states[row, i] >= formula.cell_cost.shape[1]:
            raise ValueError("a value is out of range")
    return shared_out(formula, sum_of(formula, states, row))


@compiled
def _additive_values(formula: Sums, states: States) -> F32:
    result = np.empty(states.shape[0], dtype=np.float32)
    for b in range(states.shape[0]):
        result[b] = additive_value(formula, states, b)
    return result


@dataclass(frozen=True, eq=False)
class Additive:
    """A puzzle's own h0, or 0. Searches evaluate it inside their compiled loop."""

    name: str
    table: MoveTable
    formula: BaseHeuristic
    guarantee: Guarantee = PROVEN
    rounding: Rounding = Rounding.INTEGER

    @property
    def fingerprint(self) -> str:
        """Of the move table."""
        return self.table.fingerprint

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        check_shape(self.table, states)
        try:
            return _additive_values(sums(self.formula), read_only(states))
        except ValueError:
            self.table.check_states(states)
            raise


def base(puzzle: Puzzle) -> Additive:
    """The puzzle's h0: lit cells over five, Manhattan distance, gaps, or 0."""
    return Additive("base", puzzle.table, puzzle.base_heuristic)


def zero(puzzle: Puzzle) -> Additive:
    """Knows nothing; A* becomes uniform-cost search."""
    return Additive("zero", puzzle.table, zero_heuristic(puzzle.table.cells, puzzle.table.values))


MAX_NULLITY = 16


@dataclass(frozen=True, eq=False)
class FewestPresses:
    """The exact cost in Lights Out: one solution by elimination, then the best over all presses that change nothing."""

    name: str
    table: MoveTable
    solution: U64
    """uint64[n]: bit mask of presses for each light; those of the lit cells together are a solution."""
    silent: U64
    """uint64[2^nullity]: all sets of presses that change nothing."""
    guarantee: Guarantee = PROVEN
    rounding: Rounding = Rounding.INTEGER

    def __post_init__(self) -> None:
        freeze_arrays(self)

    @property
    def fingerprint(self) -> str:
        """Of the move table."""
        return self.table.fingerprint

    def __call__(self, states: States) -> F32:
        """float32[B]: the fewest presses."""
        check_shape(self.table, states)
        try:
            return _fewest(self.solution, self.silent, read_only(states))
        except ValueError:
            self.table.check_states(states)
            raise


def gf2(puzzle: Puzzle) -> FewestPresses:
    """For Lights Out of any size at whose board at most 16 independent sets of presses change nothing."""
    table = puzzle.table
    lamps = table.presses_commute and (table.modulus == 2).all() and (table.cost == 1).all()
    if not lamps or len(table.goals) > 1 or table.goals.any() or max(table.cells, table.actions) > 64:
        raise NotAvailable(f"gf2 is for Lights Out; {puzzle.name} is another kind of puzzle")
    n = table.cells
    # Rows (lights | presses): with the left side reduced, a row says which presses switch just the lights in it.
    rows = np.concatenate([table.shift[0], np.eye(table.actions, dtype=np.uint8)], axis=1)
    rank = eliminate(rows, n)
    nullity = len(rows) - rank
    if nullity > MAX_NULLITY:
        raise NotAvailable(f"gf2 handles at most {MAX_NULLITY} independent silent sets of presses; {puzzle.name} has {nullity}")
    bits = np.uint64(1) << np.arange(table.actions, dtype=np.uint64)
    masks = (rows[:, n:].astype(np.uint64) * bits).sum(axis=1, dtype=np.uint64)
    solution = np.zeros(n, dtype=np.uint64)
    solution[np.argmax(rows[:rank, :n], axis=1)] = masks[:rank]
    silent = np.zeros(1, dtype=np.uint64)
    for mask in masks[rank:]:
        silent = np.concatenate([silent, silent ^ mask])
    return FewestPresses("gf2", table, solution, silent)


@compiled
def _fewest(solution: U64, silent: U64, states: States) -> F32:
    result = np.empty(states.shape[0], dtype=np.float32)
    seen: Number = np.uint8(0)
    for b in range(states.shape[0]):
        presses: Number = np.uint64(0)
        for i in range(states.shape[1]):
            seen |= states[b, i]
            if states[b, i]:
                presses ^= solution[i]
        best = np.int64(65)
        for k in range(silent.shape[0]):
            x = presses ^ silent[k]
            x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
            x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
            x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
            best = min(best, np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56)))
        result[b] = best
    if seen > 1:  # nothing was read out of bounds, and looking here leaves the loop as fast as it was
        raise ValueError("a value is out of range")
    return result


@dataclass(frozen=True, eq=False)
class LinearConflict:
    """Manhattan distance, and two more for every tile that must leave its row or column for others to pass.

    In each line the tiles that belong there must come into order; all but a longest run that already is in order have to
    step aside, and each of them spends two moves that Manhattan distance does not count.
    """

    name: str
    table: MoveTable
    cell_cost: I32
    home: U8
    """uint8[n], the cell each tile belongs to."""
    columns: int
    guarantee: Guarantee = PROVEN
    rounding: Rounding = Rounding.INTEGER

    def __post_init__(self) -> None:
        freeze_arrays(self)

    @property
    def fingerprint(self) -> str:
        """Of the move table."""
        return self.table.fingerprint

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        check_shape(self.table, states)
        try:
            return _linear_conflict(self.cell_cost, self.home, self.columns, read_only(states))
        except ValueError:
            self.table.check_states(states)
            raise


def linear_conflict(puzzle: Puzzle) -> LinearConflict:
    """For sliding tiles."""
    # The name alone would do for a puzzle file too; only these very moves and goal will do.
    if not puzzle.name.startswith("tiles-") or built_in(puzzle.name).table.fingerprint != puzzle.table.fingerprint:
        raise NotAvailable(f"linear-conflict is for sliding tiles; {puzzle.name} is another kind of puzzle")
    columns = 1 + max(column for _, column in puzzle.picture.places)
    home = np.argsort(puzzle.table.goals[0]).astype(np.uint8)
    return LinearConflict("linear-conflict", puzzle.table, puzzle.base_heuristic.cell_cost, home, columns)


@compiled
def _out_of_order(goals: I32, count: Number, longest: I32) -> Number:
    """How many of the first `count` numbers lie outside a longest increasing run of them."""
    best = 0
    for k in range(count):
        longest[k] = 1
        for j in range(k):
            if goals[j] < goals[k] and longest[j] + 1 > longest[k]:
                longest[k] = longest[j] + 1
        best = max(best, longest[k])
    return count - best


@compiled
def _linear_conflict(cell_cost: I32, home: U8, columns: Number, states: States) -> F32:
    n = states.shape[1]
    rows = n // columns
    goals, longest = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    result = np.empty(states.shape[0], dtype=np.float32)
    for b in range(states.shape[0]):
        total = 0
        for i in range(n):
            if states[b, i] >= n:
                raise ValueError("a value is out of range")
            total += cell_cost[i, states[b, i]]
        for r in range(rows):
            count = 0
            for c in range(columns):
                tile = states[b, r * columns + c]
                if tile and home[tile] // columns == r:
                    goals[count] = home[tile] % columns
                    count += 1
            total += 2 * _out_of_order(goals, count, longest)
        for c in range(columns):
            count = 0
            for r in range(rows):
                tile = states[b, r * columns + c]
                if tile and home[tile] % columns == c:
                    goals[count] = home[tile] // columns
                    count += 1
            total += 2 * _out_of_order(goals, count, longest)
        result[b] = total
    return result
