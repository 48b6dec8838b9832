"""Pattern tables in the memory of a device, and looks at them: values of whole batches as tensor operations.

What `PatternHeuristic` says, bit for bit, from the same tables or from larger ones that were made and verified on the device
and never leave it. Of very many sums, the last ones are left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from undershoot.arrays import F32, States
from undershoot.guarantees import PROVEN, Guarantee, Rounding, one_line
from undershoot.heuristics.patterns import PatternHeuristic, check_sum, sums_of_looks
from undershoot.kernels.fused import Fused
from undershoot.kernels.tensor_pieces import TensorInverse, TensorPieces
from undershoot.pattern_tables.device import CHUNK, fold_entries, made_entries
from undershoot.pattern_tables.looks import Look
from undershoot.pattern_tables.packing import MOST_HALF, NO_HALF
from undershoot.pattern_tables.pattern import UNREACHED, Pattern
from undershoot.pattern_tables.sets import PatternSet, piece_names
from undershoot.puzzles.pieces import Pieces
from undershoot.puzzles.problem import Problem

NO_VALUE = 1 << 23
"""Of what has no solution: larger than every bound, whatever is taken from it; and a sum of 255 of them, as many as there are
pieces at most, fits into 32 bits."""
MOST_WORD = (1 << 31) - 1
NARROW = 1 << 31
MOST_LATER = 24
"""Sums that are asked of what is left, at most: each cuts off less than the one before."""
TOGETHER = 8
"""Looks at a table that are asked at once; what they cut off is then taken out."""
AT_ONCE = 1 << 18
"""States that are evaluated at once when a heuristic is asked from outside."""


@dataclass(frozen=True, eq=False)
class DeviceTable:
    """The costs of a pattern, where the search is."""

    pattern: Pattern
    entries: Tensor
    """uint8[size] by `pattern.folded`, or half as many, two to a byte, if `is_packed`: as in `PatternTable`."""
    is_packed: bool

    @cached_property
    def asked(self) -> Fused:
        """A kernel for several looks at this table at once: costs, int32[L, B], of (codes uint8[P, B], alive bool[B], pieces
        int64[L, k], words [L, k, C])."""
        digits = self.digits

        def asked(codes: Tensor, alive: Tensor, pieces: Tensor, words: Tensor) -> Tensor:
            look = torch.arange(pieces.shape[0], device=codes.device)[:, None]
            planes = [words[look, i, codes[pieces[:, i]].int()] for i in range(len(digits.kinds))]
            return self.costs(torch.where(alive, digits.number(planes), 0))

        return Fused(asked, self.entries.device)

    @cached_property
    def digits(self) -> "Digits":
        """How arrangements are numbered."""
        how = self.pattern.folded
        return Digits(tuple(how.kind.tolist()), tuple(how.choices.tolist()), int(how.block), int(how.size) > NARROW)

    def costs(self, numbers: Tensor) -> Tensor:
        """int32: the costs of arrangements; NO_VALUE of those without a solution. numbers: int64 or int32."""
        if not self.is_packed:
            found = self.entries[numbers].int()
            return torch.where(found == UNREACHED, NO_VALUE, found)
        both = self.entries[numbers >> 1].int()
        found = (both >> ((numbers & 1) * 4).int()) & NO_HALF
        return torch.where(found == NO_HALF, NO_VALUE, found)


class Digits(NamedTuple):
    """`Ranking` in plain numbers, of which compilers make constants."""

    kinds: tuple[int, ...]
    choices: tuple[int, ...]
    block: int
    is_wide: bool
    """Whether numbers need 64 bits."""

    def number(self, words: list[Tensor]) -> Tensor:
        """The number of an arrangement. words: int32 or int64 each, the place of a piece and 256 times what its turn adds."""
        places = [word & 255 for word in words]
        turned = words[0] >> 8
        for word in words[1:]:
            turned = turned + (word >> 8)
        number = places[0]
        for i, place in enumerate(places[1:], start=1):
            digit = place
            for j in range(i):
                if self.kinds[j] == self.kinds[i]:
                    digit = digit - (places[j] < place).int()
            number = number * self.choices[i] + digit
        return (number.long() if self.is_wide else number) * self.block + turned


class TensorLook:
    """A look at a table: which pieces of a state it asks for, and how their codes make a number.

    Of the code of each asked piece one word tells its place and what its turn adds: place + 256 * that.
    """

    def __init__(self, look: Look[DeviceTable], moves: TensorPieces) -> None:
        self.table, self.digits, self.is_inverse = look.table, look.table.digits, look.is_inverse
        self.size = int(look.table.pattern.folded.size)
        how, pieces = look.table.pattern.folded, look.table.pattern.pieces
        self.asked: tuple[int, ...] = tuple(look.asked.tolist())
        words = []
        for i, piece in enumerate(self.asked):
            slots = look.slots[i][moves.slot_of[moves.kinds[piece]]]
            turned = pieces.turn[slots].astype(np.int64) * int(how.turn_weight[i])
            words.append(pieces.place[slots].astype(np.int64) + (turned << 8))
        # Pieces that turn in many ways make words that pass 32 bits although the table is small.
        width = torch.int32 if max(int(row.max()) for row in words) <= MOST_WORD else torch.int64
        self.here = [torch.tensor(row, dtype=width, device=moves.device) for row in words]
        """int32[codes] for each piece, or int64."""
        self.pieces = torch.tensor(self.asked, device=moves.device)
        most = max(map(len, words))
        padded = np.array([np.pad(row, (0, most - len(row))) for row in words])
        self.words = torch.tensor(padded, dtype=width, device=moves.device)
        after = [moves.code_after[moves.kinds[piece]] for piece in self.asked]
        self.there = [
            torch.tensor(row[codes].ravel(), dtype=width, device=moves.device) for row, codes in zip(words, after, strict=True)
        ]
        """[C * S * codes] for each piece: the same after a step."""
        self.codes = [moves.codes[moves.kinds[piece]] for piece in self.asked]

    def costs(self, codes: Tensor, alive: Tensor | None = None, rows: Tensor | None = None) -> Tensor:
        """int32[B], or int32[S, B] after steps. rows: where these are found, see `TensorPieces.rows`.

        alive: bool; of others anything is said, without reading the table. Without it, anything is said of what is no state.
        """
        if rows is None:
            words = [here[codes[piece].int()] for piece, here in zip(self.asked, self.here, strict=True)]
        else:
            words = [
                there[rows * count + codes[piece].int()]
                for piece, there, count in zip(self.asked, self.there, self.codes, strict=True)
            ]
        number = self.digits.number(words)
        is_known = number.clamp(0, self.size - 1) if alive is None else torch.where(alive, number, 0)
        return self.table.costs(is_known)


class TensorLooks:
    """Several looks at one table, each of which is a sum of its own, asked at once: how pieces and words lie side by side."""

    def __init__(self, looks: Sequence[TensorLook]) -> None:
        self.table, self.is_inverse = looks[0].table, looks[0].is_inverse
        self.pieces = torch.stack([look.pieces for look in looks])
        codes, width = max(look.words.shape[1] for look in looks), max((look.words.dtype for look in looks), key=str)
        self.words = torch.stack([pad(look.words, (0, codes - look.words.shape[1])).to(width) for look in looks])

    def largest(self, codes: Tensor, alive: Tensor) -> Tensor:
        """int32[B], of uint8[P, B]; alive, bool[B]: of others anything is said, without reading the table."""
        costs: Tensor = self.table.asked(codes, alive, self.pieces, self.words)
        return costs.amax(0)


class TensorSum:
    """A sum of looks, of which some may be of the inverse."""

    def __init__(self, looks: Sequence[TensorLook]) -> None:
        self.looks, self.is_inverse = [TensorLooks([look]) for look in looks], any(look.is_inverse for look in looks)
        if len({look.is_inverse for look in looks}) > 1:
            raise ValueError("a sum is of the state or of its inverse")

    def largest(self, codes: Tensor, alive: Tensor) -> Tensor:
        """See `TensorLooks`."""
        return torch.stack([look.largest(codes, alive) for look in self.looks]).sum(0).int()


def grouped(sums: Sequence[Sequence[TensorLook]]) -> list[TensorLooks | TensorSum]:
    """Sums in the order in which they are asked, those of one look at one table together."""
    groups: list[list[TensorLook] | TensorSum] = []
    open_groups: dict[tuple[int, bool], list[TensorLook]] = {}
    for looks in sums:
        if len(looks) > 1:
            groups.append(TensorSum(looks))
            continue
        key = (id(looks[0].table), looks[0].is_inverse)
        if len(open_groups.get(key, [])) in (0, TOGETHER):
            open_groups[key] = []
            groups.append(open_groups[key])
        open_groups[key].append(looks[0])
    return [group if isinstance(group, TensorSum) else TensorLooks(group) for group in groups]


@dataclass(frozen=True, eq=False)
class DevicePatterns:
    """The largest of several sums of pattern tables, on a device. PROVEN, as `PatternHeuristic` is."""

    set_name: str
    moves: TensorPieces
    sums: tuple[tuple[Look[DeviceTable], ...], ...]
    """The first `first` of them are looked at for every child, the others for those that are left."""
    first: int
    guarantee: Guarantee = PROVEN
    rounding: Rounding = Rounding.INTEGER
    kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False)
    """What is made of it once, and goes with it: searches keep their kernels here."""

    def __post_init__(self) -> None:
        for group in self.sums:
            check_sum(self.pieces, group)

    @property
    def pieces(self) -> Pieces:
        """Of the puzzle."""
        return self.moves.pieces

    @property
    def device(self) -> torch.device:
        """Where the tables are."""
        return self.moves.device

    @property
    def name(self) -> str:
        """What people call it."""
        return f"patterns {self.set_name}"

    @property
    def fingerprint(self) -> str:
        """Of the move table."""
        return self.pieces.table.fingerprint

    @property
    def bytes(self) -> int:
        """Of its tables."""
        return sum({id(look.table): look.table.entries.numel() for group in self.sums for look in group}.values())

    @cached_property
    def looks(self) -> tuple[tuple[TensorLook, ...], ...]:
        """As `sums`."""
        return tuple(tuple(TensorLook(look, self.moves) for look in group) for group in self.sums)

    @cached_property
    def inverse(self) -> TensorInverse | None:
        """Where a look asks for it."""
        return TensorInverse(self.moves) if any(look.is_inverse for group in self.sums for look in group) else None

    def values(self, codes: Tensor) -> Tensor:
        """int32[B], of uint8[P, B]."""
        inverse = None if self.inverse is None else self.inverse(codes)
        largest = torch.zeros(codes.shape[1], dtype=torch.int32, device=codes.device)
        for group in self.looks:
            values = [look.costs(codes if inverse is None or not look.is_inverse else inverse) for look in group]
            largest = torch.maximum(largest, torch.stack(values).sum(0).int())
        return largest

    def __repr__(self) -> str:
        return one_line(self)

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        self.pieces.table.check_states(states)
        result = np.empty(len(states), dtype=np.float32)
        for start in range(0, len(states), AT_ONCE):
            codes = torch.tensor(self.moves.lift(states[start : start + AT_ONCE]), device=self.device)
            result[start : start + AT_ONCE] = self.values(codes).cpu().numpy()
        result[result >= NO_VALUE] = np.inf
        return result


def on_device(heuristic: PatternHeuristic, device: torch.device | str, later: int = MOST_LATER) -> DevicePatterns:
    """The same tables, copied to the device. later: see `in_order`."""
    moves = TensorPieces(heuristic.pieces, device)
    tables = {
        id(table): DeviceTable(table.pattern, torch.tensor(table.entries, device=device), table.is_packed)
        for table in heuristic.tables
    }
    sums = tuple(
        tuple(Look(tables[id(look.table)], look.symmetry, look.is_inverse) for look in group) for group in heuristic.sums
    )
    return DevicePatterns(heuristic.set_name, moves, *in_order(sums, later))


def made_on_device(
    puzzle: Problem,
    chosen: PatternSet,
    device: torch.device | str,
    progress: Callable[[str, str, int, int], None] | None = None,
    later: int = MOST_LATER,
) -> DevicePatterns:
    """Make and verify the tables of a set where they are used, which for large ones is quicker than reading a file.

    progress: called with the pieces of a pattern, what is being done, how much of it is, and how much there is.
    """
    names = piece_names(puzzle, chosen.pieces)

    def provide(pattern: Pattern) -> DeviceTable:
        called = " ".join(names[piece] for piece in pattern.followed)

        def report(doing: str) -> Callable[[int, int], None]:
            return lambda done, of: None if progress is None else progress(called, doing, done, of)

        entries = fold_entries(pattern, made_entries(pattern, str(device), report("making"), report("verifying")))
        return packed_table(pattern, entries)

    sums = sums_of_looks(chosen, provide)
    return DevicePatterns(chosen.name, TensorPieces(chosen.pieces, device), *in_order(sums, later))


def packed_table(pattern: Pattern, entries: Tensor) -> DeviceTable:
    """Two entries to a byte where costs allow."""
    chunk = 2 * CHUNK[entries.device.type]
    parts = torch.split(entries, chunk)
    if not all(bool(((part <= MOST_HALF) | (part == UNREACHED)).all()) for part in parts):
        return DeviceTable(pattern, entries, False)
    packed = torch.empty(-(-len(entries) // 2), dtype=torch.uint8, device=entries.device)
    for part, target in zip(parts, torch.split(packed, chunk // 2), strict=True):
        halves = part.clamp(max=NO_HALF)
        low, high = halves[::2], halves[1::2]
        target.copy_(low)
        target[: len(high)] |= high << 4
        target[len(high) :] |= NO_HALF << 4
    return DeviceTable(pattern, packed, True)


def in_order(sums: Sequence[Sequence[Look[Any]]], later: int = MOST_LATER) -> tuple[tuple[tuple[Look[Any], ...], ...], int]:
    """Sums in the order in which they are looked at, and how many of them are for every child: those of the state as it is.

    Small tables come first, since what they cut off is cheaply cut off. A sum that says what an earlier one said is left out: a
    pattern costs the same through every symmetry, and all pieces of a kind the same in the inverse. later: how many of those
    that are only asked of what is left are kept, at most.
    """
    seen, plain, others = set(), list[tuple[Look[Any], ...]](), list[tuple[Look[Any], ...]]()
    for number, group in enumerate(sums):
        says = frozenset((frozenset(look.asked.tolist()), look.is_inverse and not _is_group(look)) for look in group)
        if says in seen:
            continue
        seen.add(says)
        is_single = len(group) == 1 and not group[0].is_inverse and _is_own(group[0], sums)
        is_plain = number == 0 or is_single
        (plain if is_plain else others).append(tuple(group))
    plain.sort(key=lambda group: max(int(look.table.pattern.folded.size) for look in group))
    return (*plain, *_alternating(others)[:later]), len(plain)


def _alternating(sums: list[tuple[Look[Any], ...]]) -> list[tuple[Look[Any], ...]]:
    """Those of the inverse and of the state in turns, the inverse first: it differs most from what was looked at."""
    inverse = [group for group in sums if group[0].is_inverse]
    state = [group for group in sums if not group[0].is_inverse]
    pairs = [group for both in zip_longest(inverse, state) for group in both]
    return [group for group in pairs if group is not None]


def _is_own(look: Look[Any], sums: Sequence[Sequence[Look[Any]]]) -> bool:
    """Whether it is one of the first two looks at its table."""
    same = [other for group in sums for other in group if other.table is look.table]
    return any(look is other for other in same[:2])


def _is_group(look: Look[Any]) -> bool:
    """Whether it follows all pieces of a kind, so that their arrangements have inverses, too, which cost as much."""
    pieces, how = look.table.pattern.pieces, look.table.pattern.folded
    kinds = how.kind.tolist()
    ends = [i for i, (one, other) in enumerate(pairwise([*kinds, -1])) if one != other]
    return all(kinds.count(kinds[i]) == pieces.kinds[kinds[i]].places for i in ends)
