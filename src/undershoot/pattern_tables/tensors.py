"""Arrangements of a pattern and the steps between them as tensor operations: the numbers of `ranking`, on any device.

A piece is a *code* here, place * turns + turn, in a tensor of its own: a few operations, without branches, do a whole batch.
"""

from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from undershoot.pattern_tables.pattern import UNREACHED, Pattern
from undershoot.pattern_tables.ranking import Ranking

DEAR = 1000
"""What every step costs here that costs more: in either case it does not fit an entry."""
NO_COST = 1 << 14
"""Of what has no solution."""
NARROW = 1 << 31
"""Numbers below it fit 32 bits."""


class TensorRanking:
    """`rank` and `unrank` for batches; a batch of arrangements is a list of int32 tensors, the codes of its pieces."""

    def __init__(self, how: Ranking) -> None:
        self.size, self.block, self.count = int(how.size), int(how.block), len(how.kind)
        self.choices, self.turns = tuple(how.choices.tolist()), tuple(how.turns.tolist())
        self.all_turns, self.turn_sum = tuple(how.all_turns.tolist()), tuple(how.turn_sum.tolist())
        kinds = how.kind.tolist()
        self.alike = tuple((i, j) for i, j in combinations(range(self.count), 2) if kinds[i] == kinds[j])
        """Pairs of pieces of one kind, the first before the second."""

    def codes_of(self, numbers: Tensor) -> list[Tensor]:
        """The arrangements with these numbers. numbers: int64[B]."""
        most = self.size
        left = numbers if most > NARROW else numbers.int()
        left, turned = _divided(left, self.block)
        turned, most = turned.int(), most // self.block
        places: list[Tensor] = []
        for choice in reversed(self.choices):
            left = left if most > NARROW else left.int()
            left, digit = _divided(left, choice)
            places.insert(0, digit.int())
            most //= choice
        # A place among those that are left becomes one among those that were left one piece earlier.
        for i, j in reversed(self.alike):
            places[j] = places[j] + (places[j] >= places[i])
        turns = self._turns(turned)
        return [
            place if turn is None else place * every + turn
            for place, turn, every in zip(places, turns, self.all_turns, strict=True)
        ]

    def _turns(self, turned: Tensor) -> list[Tensor | None]:
        turns: list[Tensor | None] = [None] * self.count
        for i in reversed(range(self.count)):
            if self.turns[i] > 1:
                turned, turns[i] = _divided(turned, self.turns[i])
        for i in range(self.count):
            if self.turns[i] == 1 and self.all_turns[i] > 1:  # it follows from those of the same kind
                rest = torch.full_like(turned, self.turn_sum[i] + self.count * self.all_turns[i])
                for first, second in self.alike:
                    other = turns[first]
                    if second == i and other is not None:
                        rest = rest - other
                turns[i] = _divided(rest, self.all_turns[i])[1]
        return turns

    def numbers_of(self, codes: list[Tensor]) -> Tensor:
        """int64: the numbers of these arrangements."""
        parts = [_divided(code, every) for code, every in zip(codes, self.all_turns, strict=True)]
        places = [place for place, _ in parts]
        digits = list(places)
        for i, j in self.alike:
            digits[j] = digits[j] - (places[i] < places[j]).int()
        number, most = digits[0], self.choices[0]
        for digit, radix in [
            *zip(digits[1:], self.choices[1:], strict=True),
            *((turn, radix) for (_, turn), radix in zip(parts, self.turns, strict=True) if radix > 1),
        ]:
            most *= radix
            number = (number if most <= NARROW else number.long()) * radix + digit
        return number.long()


def _divided(numbers: Tensor, by: int) -> tuple[Tensor, Tensor]:
    """Quotient and remainder of numbers that are not negative."""
    if by == 1:
        return numbers, torch.zeros((), dtype=numbers.dtype, device=numbers.device)
    quotient = torch.div(numbers, by, rounding_mode="trunc")
    return quotient, numbers - quotient * by


class TensorSteps:
    """All steps forwards, or all backwards, from batches of arrangements."""

    def __init__(self, pattern: Pattern, backward: bool, device: torch.device | str) -> None:
        how, pieces, table = pattern.ranking, pattern.pieces, pattern.pieces.table
        steps = table.backward if backward else table.forward
        self.ranking, self.kinds = TensorRanking(how), tuple(how.kind.tolist())
        self.followed, self.has_cursor = len(pattern.followed), pattern.has_cursor
        self.is_additive = pattern.is_additive
        contexts = np.zeros(1, dtype=np.int64)
        if pattern.has_cursor:
            contexts = pieces.kinds[self.kinds[-1]].slots[:, 0].astype(np.int64)
        legal = steps.legal[contexts]
        self.count = int(legal.shape[1])
        self.step = torch.arange(self.count, dtype=torch.int32, device=device)[:, None]
        self.price = torch.tensor(
            np.where(legal, np.minimum(steps.cost[contexts], DEAR), 0).ravel(), dtype=torch.int16, device=device
        )
        """int16[C * S], by the cursor's place; 0 where a step is not legal."""
        self.prices = tuple(sorted({int(price) for price in np.unique(self.price.cpu().numpy()) if price > 0}))
        self.codes: dict[int, int] = {}
        self.after: dict[int, Tensor] = {}
        """int32[C * S * codes] by kind: the code after a step; the same where it is not legal."""
        for kind in set(self.kinds):
            slots = pieces.kinds[kind].slots.astype(np.int64).ravel()
            turns = pieces.kinds[kind].turns
            after = np.tile(np.arange(len(slots)), (*legal.shape, 1))
            for c, s in np.argwhere(legal):
                there = np.argsort(steps.source[contexts[c], s])[slots]
                after[c, s] = pieces.place[there].astype(np.int64) * turns + pieces.turn[there]
            self.codes[kind] = len(slots)
            self.after[kind] = torch.tensor(after.ravel(), dtype=torch.int32, device=device)
        goals = torch.tensor(pattern.goals.astype(np.int64))
        place, turn = torch.tensor(how.place.astype(np.int32)), torch.tensor(how.turn.astype(np.int32))
        codes = [place[slots] * every + turn[slots] for slots, every in zip(goals.T, self.ranking.all_turns, strict=True)]
        self.goals = sorted(set(self.ranking.numbers_of(codes).tolist()))
        """The numbers of the goals."""

    def neighbours(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """(int64[S, B], int16[S, B]): where each step leads, and what it costs the pattern; itself, and 0, if it is not legal.

        numbers: int64[B]. Where costs do not depend on the arrangement they are int16[S, 1].
        """
        moved, price = self.moved(self.ranking.codes_of(numbers))
        return self.ranking.numbers_of(moved), price

    def moved(self, codes: list[Tensor]) -> tuple[list[Tensor], Tensor]:
        """The same for codes: int32[S, B] for each piece; and what `neighbours` says of costs."""
        row = self.step
        if self.has_cursor:
            row = _divided(codes[-1], self.ranking.all_turns[-1])[0] * self.count + row
        price = self.price[row]
        moved = [self.after[kind][row * self.codes[kind] + code] for kind, code in zip(self.kinds, codes, strict=True)]
        if self.is_additive:
            is_touched = moved[0] != codes[0]
            for after, before in zip(moved[1 : self.followed], codes[1 : self.followed], strict=True):
                is_touched = is_touched | (after != before)
            price = torch.where(is_touched, price, 0)
        return moved, price

    def reached(self, numbers: Tensor, price: Tensor) -> Tensor:
        """int64[S, B]: where the steps lead that cost just this; itself for others. price: int16[]; 0 for the cursor alone."""
        targets, prices = self.neighbours(numbers)
        return torch.where(prices == price, targets, numbers)

    def due(self, numbers: Tensor, entries: Tensor) -> Tensor:
        """int16[S, B]: what the steps cost, with the entries that they lead to; NO_COST where that is nowhere.

        entries: uint8[size].
        """
        targets, prices = self.neighbours(numbers)
        there = entries[targets].to(torch.int16)
        return torch.where((prices > 0) & (there < UNREACHED), there + prices, NO_COST)
