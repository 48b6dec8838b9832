"""Open lists on a device: nodes by whole f and g, ties as on the processor.

A node that is reached more cheaply is pushed again; what it leaves behind is skipped when it comes up, since the node is closed
or has another g by then. Two kinds: `stacks` for many searches that take a few nodes each, linked lists that never leave the
device; `runs` for one search that takes many.
"""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from undershoot.errors import UndershootError

FIRST_SPAN = 32
MOST_SPAN = 1 << 11
FIRST_ENTRIES = 1 << 12


@dataclass(frozen=True, eq=False)
class Taken:
    """The best nodes of L searches, k for each, the best first."""

    number: Tensor
    """int64[L, k]: nodes."""
    f: Tensor
    """int64[L, k]."""
    g: Tensor
    """int64[L, k]: with which they were pushed."""
    is_there: Tensor
    """bool[L, k]: whether there was one."""


@dataclass(frozen=True, eq=False)
class Pushed:
    """What goes into the open lists of L searches, up to K nodes for each, in this order."""

    number: Tensor
    """int64[L, K]: nodes."""
    f: Tensor
    """int64[L, K]."""
    g: Tensor
    """int64[L, K]."""
    is_meant: Tensor
    """bool[L, K]: the others are left out."""


class OpenList(Protocol):
    """Of L searches."""

    @property
    def bytes(self) -> int:
        """What it takes."""

    def bytes_with(self, more: int, f: int, g: int) -> int:
        """What it takes with room for so many entries more, and f and g up to these, while it is moved there."""

    def make_room(self, more: int, f: int, g: int) -> None:
        """For that."""

    def push(self, pushed: Pushed) -> None:
        """Into the lists; there must be room."""

    def take(self, most: Tensor, highest: int) -> Taken:
        """Of each search the best, up to most, int64[L]. highest: the largest of these."""

    def clear(self, lanes: Tensor) -> None:
        """Empty the lists of these searches, int64[E]."""


def span_for(span: int, value: int) -> int:
    """A power of two above the value, and not below `span`."""
    if value >= MOST_SPAN:
        raise UndershootError(f"values of f from {MOST_SPAN:,} on are not searched on a device; leave out --device")
    while span <= value:
        span *= 2
    return span
