"""Pattern: some pieces that are followed, and the number of each of their arrangements."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from undershoot.arrays import U8, frozen
from undershoot.errors import SpaceTooLarge, UndershootError
from undershoot.pattern_tables.ranking import Ranking
from undershoot.puzzles.pieces import Pieces

UNREACHED, MOST = 255, 254
"""Entries of tables: what has no solution, and the largest cost."""
TOO_DEAR = f"costs above {MOST} do not fit an entry of a pattern table; use another heuristic"
MOST_ARRANGEMENTS = 2**62
"""Their numbers are int64."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """Pieces that are followed. Its states are their arrangements in slots, with the cursor's cell where there is one.

    Where `is_additive`, a move costs only if it moves one of these pieces; otherwise it costs what it costs the puzzle.
    """

    pieces: Pieces
    followed: tuple[int, ...]
    """Numbers of pieces, without the cursor."""
    is_additive: bool

    def __post_init__(self) -> None:
        known = [p for p in range(len(self.pieces)) if p != self.pieces.cursor]
        if not self.followed or len(set(self.followed)) < len(self.followed) or not set(self.followed) <= set(known):
            raise UndershootError(f"a pattern follows different pieces among {known}; {list(self.followed)} came")

    @property
    def has_cursor(self) -> bool:
        """Whether the cursor's cell belongs to a state, as the last of its pieces."""
        return self.pieces.cursor is not None

    @property
    def has_regions(self) -> bool:
        """Whether places of the cursor are reached from each other for nothing; see `regions`."""
        return self.is_additive and self.has_cursor

    @cached_property
    def ranking(self) -> Ranking:
        """Of the followed pieces, and the cursor where there is one."""
        cursor = self.pieces.cursor
        return rank_by(self.pieces, self.followed if cursor is None else (*self.followed, cursor))

    @cached_property
    def folded(self) -> Ranking:
        """Of the followed pieces alone."""
        return rank_by(self.pieces, self.followed)

    @property
    def goals(self) -> U8:
        """uint8[G, k]: the slots of the ranked pieces in each goal."""
        return self.pieces.goal_slots[:, self.ranking.pieces]


def rank_by(pieces: Pieces, chosen: Sequence[int]) -> Ranking:
    """Numbers for the arrangements of these pieces. Of one kind, the last varies fastest; turns vary faster than places.

    Where all pieces of a kind are chosen and no move changes the sum of their turns, that of the last follows from the others.
    """
    cursor = pieces.cursor
    last = None if cursor is None else int(pieces.kind_of[cursor])
    order = sorted(chosen, key=lambda p: (int(pieces.kind_of[p]) == last, int(pieces.kind_of[p]), p == cursor))
    kinds = [int(pieces.kind_of[p]) for p in order]
    choices, turns, sums = [], [], []
    for i, kind in enumerate(kinds):
        here = pieces.kinds[kind]
        choices.append(here.places - kinds[:i].count(kind))
        is_last = kinds.count(kind) == here.places and kind not in kinds[i + 1 :]
        turns.append(1 if here.is_balanced and is_last else here.turns)
        at_goals = {
            int(pieces.turn[goal[[p for p in order if pieces.kind_of[p] == kind]]].sum()) % here.turns
            for goal in pieces.goal_slots
        }
        if turns[i] < here.turns and len(at_goals) > 1:
            turns[i] = here.turns  # goals differ in what never changes, so it is not known
        sums.append(min(at_goals))
    all_turns = prod(turns)
    if all_turns * prod(choices) > MOST_ARRANGEMENTS:
        raise SpaceTooLarge(f"{len(order)} pieces have more arrangements than can be numbered; follow fewer pieces")
    place_weight = [all_turns * prod(choices[i + 1 :]) for i in range(len(order))]
    turn_weight = [prod(turns[i + 1 :]) if turns[i] > 1 else 0 for i in range(len(order))]
    widest = max(kind.places for kind in pieces.kinds), max(kind.turns for kind in pieces.kinds)
    slots = np.zeros((len(order), *widest), dtype=np.uint8)
    for i, kind in enumerate(kinds):
        slots[i, : pieces.kinds[kind].places, : pieces.kinds[kind].turns] = pieces.kinds[kind].slots

    def numbers(values: Sequence[int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        return frozen(np.array(values, dtype=np.int64))

    return Ranking(
        pieces=numbers(order),
        kind=numbers(kinds),
        choices=numbers(choices),
        turns=numbers(turns),
        all_turns=numbers([pieces.kinds[kind].turns for kind in kinds]),
        turn_sum=numbers(sums),
        place_weight=numbers(place_weight),
        turn_weight=numbers(turn_weight),
        place=pieces.place,
        turn=pieces.turn,
        slots=frozen(slots),
        block=all_turns,
        size=all_turns * prod(choices),
    )
