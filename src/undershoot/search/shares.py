"""A limit of expansions, in even shares for searches that run at once."""

from collections.abc import Sequence
from enum import StrEnum


class Who(StrEnum):
    """Searches of one instance."""

    GUIDED = "guided"
    """For solutions."""
    TREE = "tree"
    """IDA*, for the bound."""
    GRAPH = "graph"
    """A*, for the bound, too."""


class Shares:
    """What each of them may still expand; what one leaves is for the others. For one thread at a time."""

    def __init__(self, limit: int | None, who: Sequence[Who]) -> None:
        """limit: None for as much as they like."""
        self.left: dict[Who, int] | None = None
        if limit is not None:
            self.left = dict.fromkeys(who, 0)
            self._share_out(limit)

    def _share_out(self, size: int) -> None:
        assert self.left is not None
        for k, other in enumerate(self.left):
            self.left[other] += size // len(self.left) + (k < size % len(self.left))

    def take(self, who: Who, size: int) -> int:
        """So many it may expand now, of those that it asks for. At most half of its share: some of them may be given back, and
        another thread of the same search must not find nothing meanwhile."""
        if self.left is None:
            return size
        size = min(size, -(-self.left[who] // 2))
        self.left[who] -= size
        return size

    def give_back(self, who: Who, size: int) -> None:
        """Which it had taken and did not expand."""
        if self.left is not None:
            self.left[who] += size

    def leave(self, who: Who) -> None:
        """It searches no more."""
        if self.left is not None and len(self.left) > 1:
            self._share_out(self.left.pop(who, 0))

    def has(self, who: Who) -> bool:
        """Whether it may expand anything."""
        return self.left is None or self.left.get(who, 0) > 0

    @property
    def is_spent(self) -> bool:
        """Whether nobody may."""
        return self.left is not None and not any(self.left.values())
