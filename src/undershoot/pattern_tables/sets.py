"""Sets of patterns by name, by their pieces, or chosen by size.

6-6-3              sliding tiles in three sets, whose costs are added
6-6-3+reflected    and once more through the reflection of the board; the larger sum counts
all                all pieces at once, where that is not too much
corners+7+7        the corners of the cube, and two sets of seven edges; the largest counts
1 2 5 / 3 4 7      by the names of the pieces
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np

from undershoot.errors import NotAvailable, SpaceTooLarge, UndershootError, what_came
from undershoot.kernels.plan import forward_plan
from undershoot.pattern_tables.cache import cached_bytes
from undershoot.pattern_tables.looks import check_inverse
from undershoot.pattern_tables.pattern import Pattern, rank_by
from undershoot.pattern_tables.room import memory_of
from undershoot.puzzles.moves import MoveTable, Symmetry
from undershoot.puzzles.pieces import Pieces, pieces_of
from undershoot.puzzles.problem import Problem

REFLECTED = "reflected"
SYMMETRIC = "symmetric"
INVERSE = "inverse"
LOOKS = (REFLECTED, SYMMETRIC, INVERSE)
"""How to look."""
PART = rf"all|corners|edges|{'|'.join(LOOKS)}|[0-9]{{1,4}}(-[0-9]{{1,4}})*"
MOST_ENTRIES = 25_000_000
"""Of a table that is chosen by size, while it is made, where no memory is given."""
BY_CELLS = {
    (4, 4, "5-5-5"): ("1 2 5 6 9", "3 4 7 8 12", "10 11 13 14 15"),
    (4, 4, "6-6-3"): ("1 5 6 9 10 13", "7 8 11 12 14 15", "2 3 4"),
    (4, 4, "7-8"): ("9 10 11 12 13 14 15", "1 2 3 4 5 6 7 8"),
    (5, 5, "5-5-5-5-4"): ("1 2 6 7 11", "3 4 5 9 10", "8 12 13 14 18", "15 19 20 23 24", "16 17 21 22"),
    (5, 5, "6-6-6-6"): ("1 2 6 7 11 12", "3 4 5 8 9 10", "13 14 15 18 19 20", "16 17 21 22 23 24"),
}
"""Cells of the goal with the blank last, counted from 1, by rows, columns and the set's name."""
EDGES = ["UF", "UR", "UB", "UL", "FR", "BL", "DF", "DB", "FL", "BR", "DR", "DL"]
"""The first k of them and their image under half a turn about the front cover all twelve edges, from k = 6 on."""
CUBIES = {"corners": 3, "edges": 2}
"""Stickers of each."""
FAMILIES = {"tiles-4x4-blank-first": "tiles-4x4", "tiles-5x5-blank-first": "tiles-5x5", "cube-3x3-qtm": "cube-3x3"}
"""Puzzles that take the sets of others."""
DEFAULTS = {"tiles-4x4": "6-6-3+reflected", "tiles-5x5": "5-5-5-5-4+reflected", "cube-3x3": "corners+6+6"}
LARGER = {"tiles-4x4": ("5-5-5+reflected", "6-6-3+reflected", "7-8+reflected"), "cube-3x3": ("corners+6+6", "corners+7+7")}
LARGER["tiles-5x5"] = ("5-5-5-5-4+reflected", "6-6-6-6+reflected", "6-6-6-6+5-5-5-5-4+reflected")


@dataclass(frozen=True, eq=False)
class PatternSet:
    """Which patterns are followed, and how their costs make a value."""

    name: str
    pieces: Pieces
    sums: tuple[tuple[Pattern, ...], ...]
    """The costs of each of these are added; the largest sum counts."""
    symmetries: tuple[Symmetry | None, ...] = (None,)
    """Through which every sum is looked up."""
    with_inverse: bool = False
    """Whether each is also looked up for the inverse of the state."""

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """All of them."""
        return tuple(pattern for group in self.sums for pattern in group)


def piece_names(puzzle: Problem, pieces: Pieces) -> tuple[str, ...]:
    """What people call them: the symbols on their cells in the goal."""
    goal = puzzle.table.goals[0]
    return tuple("".join(puzzle.symbol(int(goal[cell])) for cell in cells) for cells in pieces.cells)


def names_of_sets(puzzle: Problem, max_memory: int | None = None) -> tuple[str, ...]:
    """Those that are worth knowing, the default first. max_memory: see `default_name`."""
    family = FAMILIES.get(puzzle.name, puzzle.name)
    given = [name for name, _ in puzzle.pattern_sets]
    return tuple(dict.fromkeys((default_name(puzzle, max_memory), *given, *LARGER.get(family, ()))))


def default_name(puzzle: Problem, max_memory: int | None = None) -> str:
    """The set that is taken if none is named. max_memory: bytes that its tables may take, cached ones as they are."""
    family = FAMILIES.get(puzzle.name, puzzle.name)
    known = [name for name, _ in puzzle.pattern_sets] or [DEFAULTS[name] for name in (family,) if name in DEFAULTS]
    if known and max_memory is None:
        return known[0]
    for name in dict.fromkeys((*known, *LARGER.get(family, ()))):
        if max_memory is not None and _memory_of_set(puzzle, name) <= max_memory:
            return name
    return _name_by_size(puzzle, max_memory)


def _memory_of_set(puzzle: Problem, name: str) -> int:
    """What making the tables that are missing in the cache, and searching with all of them, takes at most."""
    return memory_of(pattern_set(puzzle, name).patterns, lambda pattern: cached_bytes(pattern, puzzle.name))


def _name_by_size(puzzle: Problem, max_memory: int | None) -> str:
    """As many pieces to a pattern as may be; within a memory, entries are halved until it suffices."""
    if max_memory is None:
        return _name_within(puzzle, MOST_ENTRIES)
    most_entries = max_memory
    while (need := _memory_of_set(puzzle, name := _name_within(puzzle, most_entries))) > max_memory:
        if most_entries < 1:
            raise SpaceTooLarge(
                f"no set of patterns of {puzzle.name} fits into {max_memory:,} bytes: the smallest, {name}, takes "
                f"{need:,}; allow more memory"
            )
        most_entries //= 2
    return name


def _name_within(puzzle: Problem, most_entries: int) -> str:
    """most_entries: of each table, while it is made."""
    pieces = pieces_of(puzzle)
    if pieces.cursor is None and _fits(pieces, range(len(pieces)), most_entries):
        return "all"
    if _is_cube(puzzle):
        corners = [p for p, cells in enumerate(pieces.cells) if len(cells) == CUBIES["corners"]]
        edges = max((k for k in range(1, len(EDGES)) if _fits(pieces, _edges_of(puzzle, pieces)[:k], most_entries)), default=1)
        return ("corners+" if _fits(pieces, corners, most_entries) else "") + f"{edges}+{edges}"
    joint = "-" if adds(puzzle, pieces) else "+"
    sizes = [str(size) for size in _sizes(pieces, joint == "-", most_entries)]
    reflected = joint == "-" and _reflection(puzzle) is not None and len(sizes) > 1
    return joint.join(sizes) + (f"+{REFLECTED}" if reflected else "")


def _sizes(pieces: Pieces, is_additive: bool, most: int) -> list[int]:
    """As many pieces to a pattern as `most` entries allow, in sets that cover all of them."""
    movable = [p for p in range(len(pieces)) if p != pieces.cursor]
    sizes = []
    for kind in range(len(pieces.kinds)):
        mine = [p for p in movable if pieces.kind_of[p] == kind]
        if not mine:
            continue  # the cursor alone
        extra = [pieces.cursor] if pieces.cursor is not None else []
        largest = 1
        while largest < len(mine) and _fits(pieces, mine[: largest + 1] + extra, most):
            largest += 1
        parts = -(-len(mine) // largest)
        even = [len(mine) // parts + (i < len(mine) % parts) for i in range(parts)]
        sizes += even if is_additive else [largest] * parts
    return sizes


def _fits(pieces: Pieces, chosen: Sequence[int], most: int) -> bool:
    """Whether a table of these is small enough to be chosen unasked."""
    try:
        return bool(rank_by(pieces, chosen).size <= most)
    except SpaceTooLarge:
        return False


def adds(puzzle: Problem, pieces: Pieces) -> bool:
    """Whether costs of patterns that share no piece are added: each move slides one piece to where the cursor is, and back."""
    return forward_plan(puzzle.table).slides and puzzle.table.is_reversible and len(pieces.kinds) == 1


def is_part_of_set(part: str) -> bool:
    """Whether this can stand between the "+" of a set's name."""
    return re.fullmatch(PART, part) is not None


def pattern_set(puzzle: Problem, name: str | None = None, max_memory: int | None = None) -> PatternSet:
    """The set of this name, or these pieces; if none is given the default one, within this memory: see `default_name`."""
    if not isinstance(name, str | None):
        raise UndershootError(f"a set of patterns has a name, such as {default_name(puzzle)}; {what_came(name)} came")
    pieces = pieces_of(puzzle)
    text = (default_name(puzzle, max_memory) if name is None else name).strip()
    given = dict(puzzle.pattern_sets)
    bare, looks = (text, ()) if text in given else _without_looks(text)
    symmetries, with_inverse = _symmetries_of(puzzle, looks), INVERSE in looks
    if with_inverse:
        check_inverse(pieces)
    if bare in given:
        try:
            found = _by_pieces(puzzle, pieces, given[bare])
        except UndershootError as error:
            raise type(error)(f"the set of patterns {bare} in the file of {puzzle.name}: {error}") from error
        return replace(found, name=text, symmetries=symmetries, with_inverse=with_inverse)
    parts = bare.split("+")
    if wrong := [part for part in parts if is_part_of_set(parts[0]) and not is_part_of_set(part)]:
        there = f"sets are {', '.join(names_of_sets(puzzle))}; more looks are {', '.join(LOOKS)}"
        raise UndershootError(
            f'"{wrong[0][:40]}" in {text[:60]} is neither a set of patterns of {puzzle.name} nor a look; {there}'
        )
    if bare and not is_part_of_set(parts[0]):
        found = _by_pieces(puzzle, pieces, bare)
        return replace(found, name="+".join((found.name, *looks)), symmetries=symmetries, with_inverse=with_inverse)
    if not bare:
        what = "nothing" if not text else f"how to look, {text}, but not at what"
        raise UndershootError(f"the set of patterns says {what}; such as {default_name(puzzle)}")
    if twice := sorted(set(LOOKS) & set(parts)):
        raise UndershootError(f"{text} says +{twice[0]} more than once, or before its end; once, and at the end, is enough")
    if any("-" in part for part in parts):
        if wrong := [part for part in parts if part in ("all", "corners", "edges")]:
            raise UndershootError(f"{wrong[0]} cannot stand beside sums of tiles in {text}")
        sums = [_tiles(puzzle, pieces, part) for part in parts]
    else:
        sums = [(group,) for group in _windows(puzzle, pieces, parts)]
    made = tuple(tuple(Pattern(pieces, group, adds(puzzle, pieces)) for group in groups) for groups in sums)
    return PatternSet(text, pieces, made, symmetries, with_inverse)


def _without_looks(text: str) -> tuple[str, tuple[str, ...]]:
    """What is looked at, and how: each look at most once, in any order, at the end."""
    looks: list[str] = []
    while (last := text.rpartition("+"))[2].strip() in set(LOOKS) - set(looks):
        text = last[0].rstrip()
        looks.insert(0, last[2].strip())
    return text, tuple(looks)


def _symmetries_of(puzzle: Problem, looks: Sequence[str]) -> tuple[Symmetry | None, ...]:
    if SYMMETRIC in looks:
        return (None, *_symmetries(puzzle))
    if REFLECTED not in looks:
        return (None,)
    reflection = _reflection(puzzle)
    if reflection is None:
        if puzzle.table.cursor is None and _others(puzzle.table):
            raise NotAvailable(f"+{REFLECTED} is for boards with a blank, and {puzzle.name} has none; take +{SYMMETRIC} here")
        raise NotAvailable(f"{puzzle.name} has no reflection that keeps its goal; leave out +{REFLECTED}")
    return (None, reflection)


def _reflection(puzzle: Problem) -> Symmetry | None:
    """A symmetry that is not the identity and keeps the goal, of a puzzle with a cursor."""
    table = puzzle.table
    return next(iter(_others(table)), None) if table.cursor is not None else None


def _symmetries(puzzle: Problem) -> tuple[Symmetry, ...]:
    """All that are not the identity and keep the goal."""
    others = _others(puzzle.table)
    if not others:
        raise NotAvailable(f"{puzzle.name} has no symmetry that keeps its one goal; leave out +{SYMMETRIC}")
    return others


def _others(table: MoveTable) -> tuple[Symmetry, ...]:
    """Symmetries that are not the identity and keep the one goal."""
    kept = (s for s in table.symmetries if len(table.goals) == 1 and (s.image(table.goals) == table.goals).all())
    return tuple(s for s in kept if (s.cells != np.arange(table.cells)).any())


def _tiles(puzzle: Problem, pieces: Pieces, name: str) -> tuple[tuple[int, ...], ...]:
    """Tiles in sets of these sizes."""
    if forward_plan(puzzle.table).slides and not adds(puzzle, pieces):
        raise NotAvailable(
            f"{name} adds patterns, which takes moves that can all be undone, and pieces that all come where the cursor does; "
            f"those of {puzzle.name} are not such; take sets such as {default_name(puzzle)}, of which the largest counts"
        )
    if not adds(puzzle, pieces):
        moved = (puzzle.table.forward.source[0, 0] != np.arange(puzzle.table.cells)).nonzero()[0]
        count = len({p for p, home in enumerate(pieces.cells) if set(home) & set(moved.tolist())})
        raise NotAvailable(
            f"{name} adds patterns, which is for sliding tiles: of {puzzle.name} the move {puzzle.table.action_names[0]} moves "
            f"{count} pieces at once, and would count for each pattern that one of them is in; take sets such as "
            f"{default_name(puzzle)}, of which the largest counts"
        )
    cells, cursor = puzzle.table.cells, pieces.cursor
    tiles = sorted((p for p in range(len(pieces)) if p != cursor), key=lambda p: pieces.cells[p])
    sizes = [int(size) for size in name.split("-")]
    if sum(sizes) != len(tiles) or min(sizes) < 1:
        raise UndershootError(f"{name} is {sum(sizes)} tiles; {puzzle.name} has {len(tiles)}, in sets of 1 or more")
    columns = int(puzzle.table.landing[0].max())
    known = BY_CELLS.get((cells // columns, columns, name)) if columns else None
    home = None if cursor is None else pieces.cells[cursor][0]
    if known is None or home not in (0, cells - 1):
        return tuple(tuple(tiles[first:last]) for first, last in pairwise(accumulate(sizes, initial=0)))
    groups = [[int(cell) - 1 for cell in group.split()] for group in known]
    if home == 0:  # the blank is first: the same board turned round
        groups = [[cells - 1 - cell for cell in group] for group in groups]
    by_cell = {home[0]: p for p, home in enumerate(pieces.cells)}
    return tuple(tuple(sorted(by_cell[cell] for cell in group)) for group in groups)


def _windows(puzzle: Problem, pieces: Pieces, parts: Sequence[str]) -> list[tuple[int, ...]]:
    """Pieces in sets of these sizes, evenly spread over those of the kind that has room for them."""
    movable = [p for p in range(len(pieces)) if p != pieces.cursor]
    by_kind = [[p for p in movable if pieces.kind_of[p] == kind] for kind in range(len(pieces.kinds))]
    result: list[tuple[int, ...]] = []
    for part in parts:
        if part == "all":
            result.append(tuple(movable))
        elif part in CUBIES:
            chosen = [p for p in movable if len(pieces.cells[p]) == CUBIES[part]]
            if not chosen:
                raise NotAvailable(f"{puzzle.name} has no {part}")
            result.append(tuple(chosen))
    sizes = [int(part) for part in parts if part.isdecimal()]
    edges = _edges_of(puzzle, pieces) if _is_cube(puzzle) else []
    if edges:
        return [*result, *(_edge_window(puzzle, pieces, edges, size, number) for number, size in enumerate(sizes))]
    kinds = _kinds_for(puzzle, by_kind, sizes)
    for number, (kind, size) in enumerate(zip(kinds, sizes, strict=True)):
        mine, place = by_kind[kind], kinds[:number].count(kind)
        first = 0 if kinds.count(kind) == 1 else (len(mine) - size) * place // (kinds.count(kind) - 1)
        result.append(tuple(mine[first : first + size]))
    return result


def _kinds_for(puzzle: Problem, by_kind: list[list[int]], sizes: Sequence[int]) -> list[int]:
    """Of several kinds, one for each size: the first with room for it whose pieces are not covered yet, or else the least."""
    covered, result = [0] * len(by_kind), list[int]()
    for size in sizes:
        rooms = [kind for kind, mine in enumerate(by_kind) if len(mine) >= size]
        if not rooms or size < 1:
            there = ", ".join(str(len(mine)) for mine in by_kind if mine)
            raise UndershootError(f"a set of {size} pieces was asked for; of one kind {puzzle.name} has {there}")
        kind = min(rooms, key=lambda kind: covered[kind] // len(by_kind[kind]))
        covered[kind] += size
        result.append(kind)
    return result


def _is_cube(puzzle: Problem) -> bool:
    return FAMILIES.get(puzzle.name, puzzle.name) == "cube-3x3"


def _edges_of(puzzle: Problem, pieces: Pieces) -> list[int]:
    names = piece_names(puzzle, pieces)
    return [names.index(_as_named(edge, names)) for edge in EDGES]


def _as_named(edge: str, names: Sequence[str]) -> str:
    return next(name for name in names if sorted(name) == sorted(edge))


def _edge_window(puzzle: Problem, pieces: Pieces, edges: list[int], size: int, number: int) -> tuple[int, ...]:
    """The first edges, and for the second set their image under half a turn."""
    if not 1 <= size <= len(edges) or number > 1:
        came = f"one of {size} edges" if number < 2 else f"a set number {number + 1}"
        raise UndershootError(f"{puzzle.name} takes one or two sets of 1 to {len(edges)} edges; {came} was asked for")
    chosen = edges[:size]
    if number == 1:
        names = piece_names(puzzle, pieces)
        turned = str.maketrans("UDLR", "DURL")
        chosen = [names.index(_as_named(names[p].translate(turned), names)) for p in chosen]
    return tuple(chosen)


def _by_pieces(puzzle: Problem, pieces: Pieces, text: str) -> PatternSet:
    """Pieces by their names, sets separated by a slash: added where that may be done, otherwise the largest counts."""
    names = piece_names(puzzle, pieces)
    known = {name: p for p, name in enumerate(names) if p != pieces.cursor}
    sorted_names = ["".join(sorted(name)) for name in names]
    groups = []
    for part in text.split("/"):
        chosen = []
        for given in part.split():
            same = "".join(sorted(given))  # UR is RU
            is_turned = given not in known and given.isalpha() and sorted_names.count(same) == 1
            word = names[sorted_names.index(same)] if is_turned else given
            if word not in known:
                raise UndershootError(
                    f'"{word[:40]}" is no piece of {puzzle.name} and no set of patterns; sets are '
                    f"{', '.join(names_of_sets(puzzle))}, pieces are {' '.join(known)}"
                )
            chosen.append(known[word])
        if repeated := [names[p] for p in chosen if chosen.count(p) > 1]:
            raise UndershootError(f"a pattern follows different pieces; {repeated[0]} came twice in {part.strip()[:60]}")
        if not chosen:
            raise UndershootError(
                f'a set of patterns lists pieces between slashes, such as "1 2 5 / 3 4 7"; "{text[:60]}" came'
            )
        groups.append(tuple(chosen))
    is_sum = adds(puzzle, pieces)
    followed = [p for group in groups for p in group]
    twice = [word for word, p in known.items() if is_sum and followed.count(p) > 1]
    if twice:
        raise UndershootError(f"patterns that share a piece cannot be added: every move of {twice[0]} would count twice")
    sums = (tuple(groups),) if is_sum else tuple((group,) for group in groups)
    made = tuple(tuple(Pattern(pieces, group, is_sum) for group in those) for those in sums)
    return PatternSet(" / ".join(" ".join(names[p] for p in group) for group in groups), pieces, made)
