"""Pieces and slots: what moves as one, and where it can stand.

A *piece* is a tile, or a cubie with its stickers. It stands in a *slot*, which the cell of its first sticker names: on a cube
that says where the piece is and how it is turned. A move sends slots to slots, the same for every piece.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from undershoot.arrays import I32, U8, AnyArray, States, freeze_arrays
from undershoot.errors import MalformedState, MoveTableError, NotAvailable
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.problem import Problem

NOWHERE = 255
MAX_PLACES = 64
"""Places of one kind of piece: so many bits has a word."""
MAX_CODES = 1 << 20
"""Ways in which the stickers of a piece could be coloured."""


@dataclass(frozen=True, eq=False)
class Kind:
    """Pieces that can stand in the same slots."""

    slots: U8
    """uint8[places, turns]: which slot is a piece in this place, turned so."""
    is_balanced: bool
    """Whether no move changes the sum of all turns, mod `turns`."""

    def __post_init__(self) -> None:
        freeze_arrays(self)

    @property
    def places(self) -> int:
        """How many there are."""
        return len(self.slots)

    @property
    def turns(self) -> int:
        """In how many ways a piece can stand in a place."""
        return int(self.slots.shape[1])


@dataclass(frozen=True, eq=False)
class Pieces:
    """All pieces that move, in the order in which the puzzle lists them."""

    table: MoveTable
    cells: tuple[tuple[int, ...], ...]
    """The cells of each piece in the first goal; the first of them is its slot there."""
    kind_of: I32
    """int32[P]: to which of `kinds` a piece belongs."""
    kinds: tuple[Kind, ...]
    stickers: I32
    """int32[n, w]: the cells of a piece that stands in this slot; -1 pads, and fills the rows that are no slot."""
    place: U8
    """uint8[n]: the place of a slot among those of its kind."""
    turn: U8
    """uint8[n]: how a piece in this slot is turned."""
    after: U8
    """uint8[C, A, n]: where a legal action sends a slot."""

    def __post_init__(self) -> None:
        freeze_arrays(self)

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def cursor(self) -> int | None:
        """The piece whose cell is the context."""
        if self.table.cursor is None:
            return None
        cell = int(np.flatnonzero(self.table.goals[0] == self.table.cursor)[0])
        return self.cells.index((cell,))

    @cached_property
    def goal_slots(self) -> U8:
        """uint8[G, P]: where the pieces stand in each goal."""
        return self.slots_of(self.table.goals)

    @cached_property
    def kind_of_slot(self) -> I32:
        """int32[n]: whose pieces can stand in a slot; -1 for a cell that is none."""
        result = np.full(self.table.cells, -1, dtype=np.int32)
        for number, kind in enumerate(self.kinds):
            result[kind.slots.ravel()] = number
        return result

    @cached_property
    def piece_by_code(self) -> I32:
        """int32[kinds, m^w]: which piece of a kind shows these colours, from its first sticker on; -1 for none."""
        return _codes(self.table, self.cells, self.stickers, self.kind_of, self.kinds)

    def slots_of(self, states: States) -> U8:
        """uint8[B, P]: where each piece stands; MalformedState if a piece is missing."""
        base, width = self.table.values, self.stickers.shape[1]
        padded = np.concatenate([states.astype(np.int64), np.zeros((len(states), 1), dtype=np.int64)], axis=1)
        slots = np.flatnonzero(self.stickers[:, 0] >= 0)
        factors = np.where(self.stickers[slots] >= 0, (base + 1) ** np.arange(width), 0)
        codes = ((padded[:, self.stickers[slots]] + 1) * factors).sum(axis=2)
        shown = self.piece_by_code[self.kind_of_slot[slots], codes]
        result = np.full((len(states), len(self)), NOWHERE, dtype=np.uint8)
        row, column = np.nonzero(shown >= 0)
        result[row, shown[row, column]] = slots[column]
        result[(shown >= 0).sum(axis=1) != len(self)] = NOWHERE  # one is there twice
        if (result == NOWHERE).any():
            wrong = int(np.argmax((result == NOWHERE).any(axis=1)))
            raise MalformedState(f"state {wrong} lacks a piece of this puzzle: {states[wrong].tolist()}")
        return result


def pieces_of(puzzle: Problem) -> Pieces:
    """The pieces of a puzzle; NotAvailable where it has none, or where they cannot be told apart."""
    table = puzzle.table
    if puzzle.pressed is not None or table.presses_commute:
        is_lights = puzzle.pressed is not None
        instead = "and algebra solves it (--heuristic gf2)" if is_lights else "so take another heuristic than patterns"
        raise NotAvailable(f"{puzzle.name} has no pieces: its moves add up in any order, {instead}")
    if table.shift.any():
        raise NotAvailable(f"{puzzle.name} has no pieces: its moves change values, they do not only carry them")
    homes = puzzle.pieces or tuple((cell,) for cell in range(table.cells))
    after = np.zeros((table.contexts, table.actions, table.cells), dtype=np.uint8)
    for c, a in np.argwhere(table.legal):
        after[c, a] = np.argsort(table.source[c, a])
    moving = [home for home in homes if _moves(table, after, home)]
    if not moving or (
        table.cursor is not None and not _moves(table, after, np.flatnonzero(table.goals[0] == table.cursor).tolist())
    ):
        raise NotAvailable(f"{puzzle.name} has no pieces to follow: its cursor never moves, or nothing does")
    if table.cursor is not None and not any(len(home) == 1 and table.goals[0, home[0]] == table.cursor for home in moving):
        raise NotAvailable(f"{puzzle.name} has its cursor on a piece of several cells; list pieces without the cursor's cell")
    if not puzzle.pieces:
        _check_distinct(puzzle, moving)
    return _assemble(puzzle, tuple(map(tuple, moving)), after)


def _counted(cells: Sequence[int]) -> str:
    """Cells as puzzle files write them, from 1 on."""
    return " ".join(str(cell + 1) for cell in cells)


def _moves(table: MoveTable, after: U8, home: Sequence[int]) -> bool:
    """Whether any action moves what stands on these cells."""
    return bool((after[:, :, list(home)] != list(home))[table.legal].any())


def _check_distinct(puzzle: Problem, homes: Sequence[Sequence[int]]) -> None:
    for goal in puzzle.table.goals:
        values = [int(goal[cell]) for (cell,) in homes]
        if len(set(values)) < len(values):
            raise NotAvailable(
                f"{puzzle.name} has symbols that stand on several cells, so that its pieces cannot be told apart; "
                'where several cells move as one piece, list the cells of each in the puzzle file: pieces = ["CELL CELL", ...]'
            )


def _assemble(puzzle: Problem, homes: tuple[tuple[int, ...], ...], after: U8) -> Pieces:
    table = puzzle.table
    stickers: dict[int, tuple[int, ...]] = {}
    reached = [_reach(table, home, stickers) for home in homes]
    sets = list(dict.fromkeys(frozenset(slots) for slots in reached))
    places_of_homes = {frozenset(home) for home in homes}
    place, turn = np.zeros((2, table.cells), dtype=np.uint8)
    kinds = []
    for number, slots in enumerate(sets):
        if any(slots & other for other in sets[:number]):
            raise NotAvailable(f"{puzzle.name} has pieces that share some of their slots, but not all; patterns need the same")
        wrong = [slot for slot in slots if frozenset(stickers[slot]) not in places_of_homes]
        if wrong:
            raise MoveTableError(
                f"the pieces of {puzzle.name} do not stay whole: one comes to lie on cells {_counted(stickers[wrong[0]])}"
            )
        kinds.append(_kind(puzzle, sorted(slots), stickers, place, turn, after))
    width = max(map(len, homes))
    rows = np.full((table.cells, width), -1, dtype=np.int32)
    for slot, cells in stickers.items():
        rows[slot, : len(cells)] = cells
    kind_of = np.array([sets.index(frozenset(slots)) for slots in reached], dtype=np.int32)
    pieces = Pieces(table, homes, kind_of, tuple(kinds), rows, place, turn, after)
    try:
        pieces.goal_slots  # noqa: B018  here, so that colours that do not tell pieces apart are refused at once
    except MalformedState as error:
        raise NotAvailable(f"{puzzle.name} has goals in which a piece stands where no moves bring it from others") from error
    return pieces


def _reach(table: MoveTable, home: tuple[int, ...], stickers: dict[int, tuple[int, ...]]) -> set[int]:
    """All slots that a piece can come to, forwards or backwards, with the cells of its stickers there."""
    is_cursor = table.cursor is not None and table.goals[0, home[0]] == table.cursor
    reached, waiting = {home[0]}, [home]
    while waiting:
        cells = waiting.pop()
        if stickers.setdefault(cells[0], cells) != cells:
            one, other = _counted(stickers[cells[0]]), _counted(cells)
            raise MoveTableError(f"moves do not keep pieces whole: the cells {one} and {other} begin on the same one")
        contexts = np.arange(table.contexts)
        if table.cursor is not None:
            contexts = np.array([cells[0]]) if is_cursor else np.setdiff1d(contexts, cells)
        for steps in (table.forward, table.backward):
            for c, a in np.argwhere(steps.legal[contexts]):
                then = tuple(np.argsort(steps.source[contexts[c], a])[list(cells)].tolist())
                if then[0] not in reached:
                    reached.add(then[0])
                    waiting.append(then)
                elif stickers.get(then[0], then) != then:
                    raise MoveTableError(
                        f"moves do not keep pieces whole: {stickers[then[0]]} and {then} begin on the same cell"
                    )
    return reached


def _kind(puzzle: Problem, slots: list[int], stickers: dict[int, tuple[int, ...]], place: U8, turn: U8, after: U8) -> Kind:
    """Number the places and turns of these slots."""
    by_place: dict[frozenset[int], list[int]] = {}
    for slot in slots:
        by_place.setdefault(frozenset(stickers[slot]), []).append(slot)
    turns = {len(group) for group in by_place.values()}
    if len(by_place) > MAX_PLACES or len(turns) > 1:
        raise NotAvailable(
            f"{puzzle.name} has a piece with {len(by_place)} places, in which it can be turned in {sorted(turns)} ways; "
            f"patterns need at most {MAX_PLACES} places, all alike"
        )
    result = np.zeros((len(by_place), turns.pop()), dtype=np.uint8)
    for number, group in enumerate(by_place.values()):
        order = [cell for cell in stickers[group[0]] if cell in group]
        result[number] = order
        place[order], turn[order] = number, np.arange(len(order))
    return Kind(result, _is_balanced(puzzle.table, result, turn, after))


def _is_balanced(table: MoveTable, slots: U8, turn: U8, after: U8) -> bool:
    """Whether every action turns each place's piece by a fixed amount, and all of them together by nothing."""
    turns = slots.shape[1]
    if table.cursor is not None or turns == 1:
        return False
    moved: AnyArray = turn[after[0][:, slots]].astype(int) - np.arange(turns)
    by = moved[:, :, :1]
    return bool(((moved - by) % turns == 0).all() and (by.sum(axis=(1, 2)) % turns == 0).all())


def _codes(table: MoveTable, cells: Sequence[Sequence[int]], stickers: I32, kind_of: I32, kinds: Sequence[Kind]) -> I32:
    """See `Pieces.piece_by_code`. NotAvailable if two pieces, or two turns of one, look alike."""
    base = table.values + 1
    if base ** stickers.shape[1] > MAX_CODES:
        raise NotAvailable(f"pieces of {stickers.shape[1]} cells with {table.values} colours are too many to tell apart")
    result = np.full((len(kinds), base ** stickers.shape[1]), -1, dtype=np.int32)
    seen: dict[frozenset[tuple[int, int]], tuple[int, ...]] = {}
    for p, home in enumerate(cells):
        colours = table.goals[0, list(home)].tolist()
        result[kind_of[p], sum((colour + 1) * base**j for j, colour in enumerate(colours))] = p
        for slot in kinds[kind_of[p]].slots.ravel().tolist():
            # In whatever order stickers are listed, and whatever kinds that makes: what is seen on the cells must say which.
            look = frozenset(zip((cell for cell in stickers[slot].tolist() if cell >= 0), colours, strict=True))
            if look in seen:
                raise NotAvailable(
                    f"the pieces on cells {_counted(seen[look])} and {_counted(home)} cannot be told apart; where several "
                    "cells move as one piece, list all such pieces"
                )
            seen[look] = tuple(home)
    return result
