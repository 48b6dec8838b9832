"""Heuristics by formula, proven for every state."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from undershoot.arrays import F32, I32, I64, U8, U64, Number, States, freeze_arrays, frozen, read_only
from undershoot.errors import NotAvailable
from undershoot.guarantees import PROVEN, Guarantee, Rounding, one_line
from undershoot.kernels.compiler import compiled, inner
from undershoot.kernels.guides import implements, keeps_nothing, value_of
from undershoot.kernels.sums import Sums, guide_by_sums, shared_out, sum_of, sums
from undershoot.puzzles.base_heuristics import BaseHeuristic, zero_heuristic
from undershoot.puzzles.catalogue import puzzle as built_in
from undershoot.puzzles.lights_out import eliminate
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.problem import Problem


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

    def __repr__(self) -> str:
        return one_line(self)

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        check_shape(self.table, states)
        try:
            return _additive_values(sums(self.formula), read_only(states))
        except ValueError:
            self.table.check_states(states)
            raise

    def guide(self) -> Any:
        """For searches."""
        return guide_by_sums(self.table, self.formula)


def base(puzzle: Problem) -> Additive:
    """The puzzle's h0: lit cells over five, Manhattan distance, gaps, or 0."""
    return Additive("base", puzzle.table, puzzle.base_heuristic)


def zero(puzzle: Problem) -> Additive:
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

    def __repr__(self) -> str:
        return one_line(self)

    def __call__(self, states: States) -> F32:
        """float32[B]: the fewest presses."""
        check_shape(self.table, states)
        try:
            return _fewest(self.solution, self.silent, read_only(states))
        except ValueError:
            self.table.check_states(states)
            raise

    def guide(self) -> "Presses":
        """For searches."""
        return Presses(self.solution, self.silent)


@keeps_nothing
class Presses(NamedTuple):
    """`FewestPresses`, for compiled code."""

    solution: U64
    silent: U64


def gf2(puzzle: Problem) -> FewestPresses:
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


@inner
def _ones(bits: Number) -> Number:
    """How many bits of a word are 1."""
    bits = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inner
def _fewest_of_row(solution: U64, silent: U64, states: States, row: Number) -> Number:
    """float32, for states[row]."""
    presses: Number = np.uint64(0)
    for i in range(solution.shape[0]):
        if states[row, i]:
            presses ^= solution[i]
    best = np.int64(65)
    for k in range(silent.shape[0]):
        best = min(best, _ones(presses ^ silent[k]))
    return np.float32(best)


@implements(value_of, Presses)
def _value_of_presses(guide: Presses, states: States, row: Number, kept: I32, at: Number) -> Number:
    return _fewest_of_row(guide.solution, guide.silent, states, row)


@compiled
def _fewest(solution: U64, silent: U64, states: States) -> F32:
    result = np.empty(states.shape[0], dtype=np.float32)
    seen: Number = np.uint8(0)
    for b in range(states.shape[0]):
        for i in range(states.shape[1]):
            seen |= states[b, i]
        result[b] = _fewest_of_row(solution, silent, states, b)
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

    def __repr__(self) -> str:
        return one_line(self)

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        check_shape(self.table, states)
        try:
            return _linear_conflicts(self.guide(), read_only(states))
        except ValueError:
            self.table.check_states(states)
            raise

    def guide(self) -> "Lines":
        """For searches."""
        goals, longest = np.zeros((2, self.table.cells), dtype=np.int64)
        own_row, own_column = self.home // self.columns, self.home % self.columns
        return Lines(self.cell_cost, frozen(own_row), frozen(own_column), self.columns, goals, longest)


@keeps_nothing
class Lines(NamedTuple):
    """`LinearConflict`, for compiled code."""

    cell_cost: I32
    own_row: U8
    """uint8[n], where each tile belongs; the blank, 0, belongs nowhere."""
    own_column: U8
    columns: Number
    goals: I64
    """int64[n], to work in; `longest` too."""
    longest: I64


def linear_conflict(puzzle: Problem) -> LinearConflict:
    """For sliding tiles."""
    # The name alone would do for a puzzle file too; only these very moves and goal will do.
    if not puzzle.name.startswith("tiles-") or built_in(puzzle.name).table.fingerprint != puzzle.table.fingerprint:
        raise NotAvailable(f"linear-conflict is for sliding tiles; {puzzle.name} is another kind of puzzle")
    # Nothing else of a puzzle that only looks like tiles is believed.
    tiles = built_in(puzzle.name)
    columns = int(tiles.table.landing[0].max())  # the blank goes from the first cell to the second, or to the next row
    home = np.argsort(tiles.table.goals[0]).astype(np.uint8)
    return LinearConflict("linear-conflict", tiles.table, tiles.base_heuristic.cell_cost, home, columns)


@inner
def _out_of_order(goals: I64, count: Number, longest: I64) -> Number:
    """How many of the first `count` numbers lie outside a longest increasing run of them."""
    best = np.int64(0)
    for k in range(count):
        longest[k] = 1
        for j in range(k):
            if goals[j] < goals[k] and longest[j] + 1 > longest[k]:
                longest[k] = longest[j] + 1
        best = max(best, longest[k])
    return count - best


@inner
def _conflicts(
    guide: Lines,
    own_line: U8,
    own_place: U8,
    line: Number,
    first: Number,
    step: Number,
    count: Number,
    states: States,
    row: Number,
) -> Number:
    """Of the tiles on cells first, first + step, ... that belong to this line, how many must step aside."""
    found = np.int64(0)
    for k in range(count):
        tile = states[row, first + k * step]
        if tile and own_line[tile] == line:
            guide.goals[found] = own_place[tile]
            found += 1
    return _out_of_order(guide.goals, found, guide.longest) if found > 1 else 0


@implements(value_of, Lines)
def _value_of_lines(guide: Lines, states: States, row: Number, kept: I32, at: Number) -> Number:
    cells, columns = guide.cell_cost.shape[0], np.int64(guide.columns)
    rows, total, aside = cells // columns, np.int64(0), np.int64(0)
    for i in range(cells):
        total += guide.cell_cost[i, states[row, i]]
    for r in range(rows):
        aside += _conflicts(guide, guide.own_row, guide.own_column, r, r * columns, 1, columns, states, row)
    for c in range(columns):
        aside += _conflicts(guide, guide.own_column, guide.own_row, c, c, columns, rows, states, row)
    return np.float32(total + 2 * aside)


@compiled
def _linear_conflicts(guide: Lines, states: States) -> F32:
    result, nothing = np.empty(states.shape[0], dtype=np.float32), np.zeros((1, 1), dtype=np.int32)
    for b in range(states.shape[0]):
        for i in range(states.shape[1]):
            if states[b, i] >= states.shape[1]:
                raise ValueError("a value is out of range")
        result[b] = value_of(guide, states, b, nothing, 0)
    return result
