"""Two stages: first into the states that fewer moves solve, then home by these alone.

Which moves is a part of the puzzle's data (`Problem.fewer_moves`). What each stage has to bring about follows from them: cells
that the fewer moves connect count as one, so that the first stage brings every sticker to cells of its own kind, and the second
brings it home. Both are seen through `coordinates`.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from undershoot.arrays import I64, U8, AnyArray, States, frozen
from undershoot.errors import NotAvailable
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.pieces import Pieces, pieces_of
from undershoot.puzzles.problem import Problem
from undershoot.search.coordinates import UNSEEN, Coordinates, View, coordinates, make_view

MOST_COLOURS = 5
"""Of one kind of piece; there are 52 ways to take five of them for fewer."""


@dataclass(frozen=True, eq=False)
class Stages:
    """Of one puzzle."""

    table: MoveTable
    pieces: Pieces
    fewer: tuple[int, ...]
    """The actions of the second stage."""
    first: Coordinates
    second: Coordinates
    aspects: tuple[tuple[U8, AnyArray], ...]
    """Ways to look at a state so that other moves are the fewer ones: cells, and the action for each action of the image."""

    def labels_of(self, state: States) -> U8:
        """uint8[n]: for each cell of a state, uint8[1, n], where its sticker is in the goal."""
        labels = np.arange(self.table.cells, dtype=np.uint8)
        for piece, slot in enumerate(self.pieces.slots_of(state)[0].tolist()):
            cells = self.pieces.cells[piece]
            labels[self.pieces.stickers[slot][: len(cells)]] = cells
        return labels


@lru_cache(maxsize=8)
def stages_of(puzzle: Problem) -> Stages | None:
    """None where the puzzle names no fewer moves, or where what they leave to do cannot be seen in parts."""
    if not puzzle.fewer_moves or not puzzle.table.is_permutation_puzzle or len(puzzle.table.goals) != 1:
        return None
    table = puzzle.table
    fewer = tuple(table.action_names.index(name) for name in puzzle.fewer_moves)
    try:
        pieces = pieces_of(puzzle)
    except NotAvailable:
        return None
    every = [a for a in range(table.actions) if table.alike[a] == a]
    kinds = _connected(table, fewer)
    if (table.inverse[0][every] < 0).any() or not set(table.inverse[0][list(fewer)].tolist()) <= set(fewer):
        return None
    first, second = _first_views(table, pieces, kinds, every), _second_views(table, pieces, kinds, fewer)
    if len(first) < 2 or len(second) < 2 or not _tell_apart(first, kinds, pieces) or not _tell_apart(second, None, pieces):
        return None
    aspects = _aspects(table, fewer)
    return Stages(table, pieces, fewer, coordinates(table, first, every), coordinates(table, second, fewer), aspects)


def _connected(table: MoveTable, actions: tuple[int, ...]) -> I64:
    """int64[n]: cells that these actions connect have one number, that of the least of them."""
    number = np.arange(table.cells)
    while True:
        least = np.minimum.reduce([number, *(number[table.source[0, a]] for a in actions)])
        for a in actions:
            np.minimum.at(least, table.source[0, a], number)
        if (least == number).all():
            return number
        number = least


def _cells_of_kind(pieces: Pieces, kind: int) -> list[int]:
    return [cell for piece, cells in enumerate(pieces.cells) if pieces.kind_of[piece] == kind for cell in cells]


def _first_views(table: MoveTable, pieces: Pieces, kinds: I64, actions: list[int]) -> list[View]:
    """For each kind of piece: its cells by what the fewer moves connect, and with some of these taken for one."""
    views: list[View] = []
    for kind in range(len(pieces.kinds)):
        cells = _cells_of_kind(pieces, kind)
        colours = sorted({int(kinds[cell]) for cell in cells})
        kept: list[tuple[tuple[int, ...], int]] = []
        for merged in _partitions(len(colours)) if 1 < len(colours) <= MOST_COLOURS else []:
            colour_of = np.full(table.cells, UNSEEN, dtype=np.uint8)
            for cell in cells:
                colour_of[cell] = merged[colours.index(int(kinds[cell]))]
            view = make_view(table, colour_of, actions)
            # A view that takes more colours for one, and has as many colourings, tells nothing that the other does not.
            if view is None or any(size == len(view.after) and _is_coarser(merged, finer) for finer, size in kept):
                continue
            kept.append((merged, len(view.after)))
            views.append(view)
    return views


def _second_views(table: MoveTable, pieces: Pieces, kinds: I64, actions: tuple[int, ...]) -> list[View]:
    """Pieces that the fewer moves exchange with one another, each sticker by itself."""
    groups: dict[frozenset[int], list[int]] = {}
    for cells in pieces.cells:
        groups.setdefault(frozenset(int(kinds[cell]) for cell in cells), []).extend(cells)
    views = []
    for cells_of_group in groups.values():
        colour_of = np.full(table.cells, UNSEEN, dtype=np.uint8)
        colour_of[cells_of_group] = np.arange(len(cells_of_group))
        view = make_view(table, colour_of, actions)
        if view is not None:
            views.append(view)
    return views


def _partitions(count: int) -> list[tuple[int, ...]]:
    """All ways to take some of so many colours for one, but not all: the class of each; finer ones first."""
    ways: list[tuple[int, ...]] = [(0,)]
    for _ in range(1, count):
        ways = [(*way, k) for way in ways for k in range(max(way) + 2)]
    return sorted((way for way in ways if max(way) > 0), key=lambda way: -max(way))


def _is_coarser(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether colours that `other` takes for one are one in `one`, too."""
    return len(set(zip(other, one, strict=True))) == len(set(other))


def _tell_apart(views: list[View], kinds: I64 | None, pieces: Pieces) -> bool:
    """Whether the views together tell any two stickers of one kind of piece apart, or those that `kinds` does."""
    for kind in range(len(pieces.kinds)):
        cells = _cells_of_kind(pieces, kind)
        looks = {cell: tuple(int(view.colour_of[cell]) for view in views) for cell in cells}
        wanted = {cell: cell if kinds is None else int(kinds[cell]) for cell in cells}
        if len(set(looks.values())) < len(set(wanted.values())):
            return False
    return True


def _aspects(table: MoveTable, fewer: tuple[int, ...]) -> tuple[tuple[U8, AnyArray], ...]:
    """Symmetries under which other moves are the fewer ones, one for each set of moves; first the state as it is."""
    chosen: dict[frozenset[int], tuple[U8, AnyArray]] = {}
    chosen[frozenset(fewer)] = np.arange(table.cells, dtype=np.uint8), np.arange(table.actions)
    for symmetry in table.symmetries:
        back = np.argsort(symmetry.actions)
        if sorted(symmetry.actions.tolist()) == list(range(table.actions)):
            chosen.setdefault(frozenset(back[list(fewer)].tolist()), (symmetry.cells, back))
    return tuple((frozen(cells), frozen(back)) for cells, back in chosen.values())
