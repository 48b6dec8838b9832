"""PatternHeuristic: the largest of several sums of pattern tables, which never overestimates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from undershoot.arrays import F32, States, read_only
from undershoot.errors import MalformedState, UndershootError
from undershoot.guarantees import PROVEN, Guarantee, Rounding, one_line
from undershoot.heuristics.far_looks import FarLooks
from undershoot.heuristics.sliding_looks import can_slide, joined, sliding_looks
from undershoot.heuristics.slot_looks import slot_looks
from undershoot.kernels.guides import values_of
from undershoot.kernels.plan import forward_plan
from undershoot.pattern_tables.cache import check_room, table_of
from undershoot.pattern_tables.looks import Asked, Look, representatives, symmetry_between
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.sets import PatternSet, piece_names
from undershoot.pattern_tables.tables import AUTO, PatternTable, check_device
from undershoot.puzzles.moves import Symmetry
from undershoot.puzzles.pieces import Pieces
from undershoot.puzzles.problem import Problem


@dataclass(frozen=True, eq=False)
class PatternHeuristic:
    """Searches evaluate it inside their compiled loop.

    PROVEN by construction: what a pattern costs is at most what any state costs that looks like it, a symmetry keeps costs, and
    only looks are added of which no move costs two (`check_sum`).
    """

    set_name: str
    pieces: Pieces
    sums: tuple[tuple[Look[PatternTable], ...], ...]
    tables: tuple[PatternTable, ...]
    guarantee: Guarantee = PROVEN
    rounding: Rounding = Rounding.INTEGER

    def __post_init__(self) -> None:
        for group in self.sums:
            check_sum(self.pieces, group)

    @property
    def name(self) -> str:
        """What people call it."""
        return f"patterns {self.set_name}"

    @property
    def fingerprint(self) -> str:
        """Of the move table."""
        return self.pieces.table.fingerprint

    @property
    def is_consistent(self) -> bool:
        """Whether no move changes its value by more than it costs. The least over the cursor's places may, and inverses do."""
        return self.pieces.cursor is None and not any(look.is_inverse for group in self.sums for look in group)

    @cached_property
    def _guide(self) -> Any:
        if can_slide(self.pieces, self.sums):
            near = sliding_looks(self.pieces, self.sums)
            return FarLooks(near, forward_plan(self.pieces.table).legal.shape[1]) if near.is_dense.any() else near
        looks = [look for group in self.sums for look in group]
        is_packed = all(look.table.is_packed for look in looks)
        tables = list({id(look.table): look.table for look in looks}.values())
        entries, starts = joined(tables, as_packed=is_packed)
        where = {id(table): start * (1 + is_packed) for table, start in zip(tables, starts.tolist(), strict=True)}
        offsets = np.array([where[id(look.table)] for look in looks], dtype=np.int64)
        return slot_looks(self.pieces, self.sums, entries, offsets, is_packed)

    def guide(self) -> Any:
        """For searches. All threads share it: it has nothing to work in."""
        return self._guide

    def __repr__(self) -> str:
        return one_line(self)

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        self.pieces.table.check_states(states)
        values, _ = values_of(self._guide, read_only(states))
        if np.isnan(values).any():
            row = int(np.argmax(np.isnan(values)))
            raise MalformedState(f"state {row} lacks a piece of this puzzle: {states[row].tolist()}")
        return values


def check_sum(pieces: Pieces, looks: Sequence[Look[Any]]) -> None:
    """Refuse to add looks if a move may cost two of them, wherever the pieces stand."""
    if len(looks) < 2:
        return
    if not all(look.table.pattern.is_additive for look in looks):
        raise UndershootError("patterns are added only if each counts the moves of its own pieces alone")
    table, cursor = pieces.table, pieces.cursor
    followed = [set(look.asked.tolist()) for look in looks]
    for i, one in enumerate(followed):
        for other in followed[:i]:
            if one & other:
                cells = ", ".join(str(cell + 1) for cell in pieces.cells[min(one & other)])
                raise UndershootError(
                    f"patterns that share a piece cannot be added: the one at home on cell {cells} would count twice"
                )
    moved = (pieces.after != np.arange(table.cells)) & table.legal[:, :, None]
    kinds = {int(pieces.kind_of[p]) for group in followed for p in group}
    for kind in kinds:
        slots = pieces.kinds[kind].slots
        for c, a in np.argwhere(table.legal):
            places = [row for row in slots if moved[c, a, row].any() and not (cursor is not None and c in row)]
            if len(places) > 1 or (places and len(kinds) > 1):
                raise UndershootError(
                    f"these patterns cannot be added: the move {table.action_names[a]} moves {len(places)} pieces at once, "
                    "and may count twice; take the larger instead"
                )


def pattern_heuristic(
    puzzle: Problem,
    chosen: PatternSet,
    cache_dir: Path | str | None = None,
    threads: int | None = None,
    progress: Callable[[str, str, int, int], None] | None = None,
    device: str = AUTO,
    again: bool = False,
) -> PatternHeuristic:
    """The heuristic of a set. Tables come from the cache or are made; of those that a symmetry maps onto each other, one.

    progress: called with the pieces of a pattern, what is being done, how much of it is, and how much there is. device: see
    `make_table`.
    """
    check_device(device)
    names = piece_names(puzzle, chosen.pieces)
    tables: list[PatternTable] = []
    check_room(chosen.patterns, puzzle.name, cache_dir, again, device)

    def provide(pattern: Pattern) -> PatternTable:
        called = " ".join(names[piece] for piece in pattern.followed)
        report = None if progress is None else partial(progress, called)
        tables.append(table_of(pattern, puzzle.name, cache_dir, threads, report, again, device))
        return tables[-1]

    return PatternHeuristic(chosen.name, chosen.pieces, sums_of_looks(chosen, provide), tuple(tables))


def sums_of_looks(chosen: PatternSet, provide: Callable[[Pattern], Asked]) -> tuple[tuple[Look[Asked], ...], ...]:
    """What the sums of a set look at. provide: what is asked about a pattern, called for the first of those that a symmetry
    maps onto each other."""
    first_of = dict(zip(chosen.patterns, representatives(chosen.patterns), strict=True))
    asked = {first: provide(first) for first in dict.fromkeys(first_of.values())}
    looks = {
        pattern: Look(asked[first], None if pattern is first else symmetry_between(first, pattern))
        for pattern, first in first_of.items()
    }
    return tuple(
        tuple(_through(looks[pattern], symmetry, is_inverse) for pattern in group)
        for is_inverse in ((False, True) if chosen.with_inverse else (False,))
        for symmetry in chosen.symmetries
        for group in chosen.sums
    )


def _through(look: Look[Asked], symmetry: Symmetry | None, is_inverse: bool) -> Look[Asked]:
    """A look through one more symmetry, or at the inverse."""
    if symmetry is None:
        return replace(look, is_inverse=is_inverse)
    if look.symmetry is None:
        return Look(look.table, symmetry, is_inverse)
    first, then = symmetry, look.symmetry
    joint = Symmetry(first.cells[then.cells], then.values[first.values], then.actions[first.actions])
    return Look(look.table, joint, is_inverse)
