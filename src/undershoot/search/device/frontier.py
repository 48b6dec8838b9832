"""Nodes that wait to be expanded, by how many steps led to them, in the memory of a device."""

from dataclasses import dataclass

import torch
from torch import Tensor

WORD_BITS = 62
"""Of a word that holds steps."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Nodes of one depth."""

    codes: Tensor
    """uint8[P, B]: where the pieces stand."""
    left: Tensor
    """int16[B]: what a solution from here may still cost, by the bound of the iteration."""
    arrival: Tensor
    """int16[B], or int32[B] where 16 bits are too few: by which step it was reached, and from where, or where it starts: which
    steps are worth trying."""
    instance: Tensor
    """int32[B]: from which start."""
    path: Tensor
    """int64[W, B]: the steps that led here, the first in the lowest bits."""

    def __len__(self) -> int:
        return len(self.left)

    @property
    def parts(self) -> tuple[Tensor, ...]:
        """All of them."""
        return self.codes, self.left, self.arrival, self.instance, self.path

    def cut(self, first: int, last: int) -> "Rows":
        """Some that are next to each other, without a copy."""
        return Rows(*(part[..., first:last] for part in self.parts))

    def chosen(self, numbers: Tensor) -> "Rows":
        """Those with these numbers, int64[K]."""
        return Rows(*(part.index_select(part.dim() - 1, numbers) for part in self.parts))


def joined(rows: list[Rows]) -> Rows:
    """All of them, of one depth."""
    return rows[0] if len(rows) == 1 else Rows(*(torch.cat(parts, -1) for parts in zip(*(r.parts for r in rows), strict=True)))


class Paths:
    """Steps in words of whole numbers."""

    def __init__(self, steps: int) -> None:
        self.bits = max(1, (steps - 1).bit_length())
        self.per_word = WORD_BITS // self.bits

    def extended(self, path: Tensor, depth: int, steps: Tensor) -> Tensor:
        """int64[W, B]: the paths of `depth` steps, and one step more. steps: int64[B]."""
        word, place = divmod(depth, self.per_word)
        if word == len(path):
            return torch.cat([path, steps[None]])
        path = path.clone()
        path[word] |= steps << (place * self.bits)
        return path

    def steps_of(self, path: Tensor, depth: int) -> list[int]:
        """The steps of one path, int64[W]."""
        words = path.tolist()
        mask = (1 << self.bits) - 1
        places = (divmod(number, self.per_word) for number in range(depth))
        return [(words[word] >> (place * self.bits)) & mask for word, place in places]


class Frontier:
    """Takes rows from the deepest depth that fills a chunk, else from the least deep: so chunks are large, and few wait."""

    def __init__(self, chunk: int) -> None:
        self.chunk = chunk
        self.waiting: dict[int, list[Rows]] = {}
        self.counts: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self.waiting)

    @property
    def size(self) -> int:
        """How many wait."""
        return sum(self.counts.values())

    def push(self, depth: int, rows: Rows) -> None:
        """Let these wait."""
        if len(rows):
            self.waiting.setdefault(depth, []).append(rows)
            self.counts[depth] = self.counts.get(depth, 0) + len(rows)

    def pop(self, most: int) -> tuple[int, Rows]:
        """A depth, and up to so many rows of it, and at most a chunk."""
        most = min(most, self.chunk)
        full = [depth for depth, count in self.counts.items() if count >= most]
        depth = max(full) if full else min(self.counts)
        taken, size, waiting = [], 0, self.waiting[depth]
        while waiting and size < most:
            rows = waiting.pop()
            if size + len(rows) > most:
                left = len(rows) - (most - size)
                waiting.append(rows.cut(0, left))
                rows = rows.cut(left, len(rows))
            taken.append(rows)
            size += len(rows)
        self.counts[depth] -= size
        if not waiting:
            del self.waiting[depth], self.counts[depth]
        return depth, joined(taken)

    def clear(self) -> None:
        """Nothing waits any more."""
        self.waiting.clear()
        self.counts.clear()
