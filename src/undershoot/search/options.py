"""How to search, where, and when to stop."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from numbers import Integral, Real

from undershoot.errors import UndershootError, what_came
from undershoot.search.glimpses import Glimpse

MAX_WEIGHT = 1_000_000
MAX_PER_STEP = 1_000_000
CPU, AUTO = "cpu", "auto"
"""Devices: the cores, whose searches are compiled loops; and a CUDA device where that suits."""


class Ties(StrEnum):
    """Which of several open nodes with the least f comes first.

    Examples:
        >>> tiles = us.puzzle("tiles-3x3")
        >>> state, manhattan = tiles.parse("8 1 3 / 4 0 2 / 7 6 5"), us.heuristic(tiles, "base")
        >>> for ties in us.Ties:
        ...     print(ties, us.solve(tiles, state, manhattan, us.SearchOptions(ties=ties)).expanded)
        deep 42
        shallow 77
    """

    DEEP = "deep"
    """Larger g, then newest."""
    SHALLOW = "shallow"
    """Smaller g, then oldest."""


class Algorithm(StrEnum):
    """How to search.

    Examples:
        >>> tiles = us.puzzle("tiles-3x3")
        >>> state = tiles.parse("8 6 7 / 2 5 4 / 3 0 1")
        >>> deepening = us.SearchOptions(algorithm=us.Algorithm.IDA)
        >>> us.solve(tiles, state, us.heuristic(tiles, "linear-conflict"), deepening).cost
        31
    """

    ASTAR = "astar"
    """Keeps every state that it has seen."""
    IDA = "ida"
    """Iterative deepening A*: keeps only the path that it is on."""
    BOTH = "both"
    """A guided search for solutions, and at the same time IDA* and A* for the bound."""
    AUTO = "auto"
    """A* where all states fit into memory, and where limits stop that IDA*; otherwise both bounds."""

    @property
    def shown(self) -> str:
        """For people."""
        return {
            Algorithm.ASTAR: "A*",
            Algorithm.IDA: "IDA*",
            Algorithm.BOTH: "a guided search, IDA* and A*",
            Algorithm.AUTO: "A* or IDA*",
        }[self]


@dataclass(frozen=True)
class SearchOptions:
    """Limits are per instance, but for memory, which all instances that run together share. None: no limit.

    Examples:
        >>> tiles = us.puzzle("tiles-4x4")
        >>> options = us.SearchOptions(max_expanded=1000)
        >>> result = us.solve(tiles, tiles.sample(1, seed=0), us.heuristic(tiles, "base"), options)
        >>> print(result.status, result.cost, result.lower_bound)
        budget None 39
    """

    weight: float = 1.0
    """f = g + weight * h."""
    ties: Ties = Ties.DEEP
    expand_per_step: int = 1
    """Nodes taken from the open list before their children are evaluated together; 1 is classic A*."""
    max_expanded: int | None = None
    max_seconds: float | None = None
    max_memory: int | None = None
    """Bytes; None for half of what the machine has free."""
    algorithm: Algorithm = Algorithm.ASTAR
    watch: Callable[[Glimpse], None] | None = None
    """Called now and then, by the thread that searches, with how far the first instance is that is under way."""
    device: str = CPU
    """cpu for the cores; cuda, or cuda:N, for a CUDA device; auto for one where tables of patterns are searched by IDA*."""

    def __post_init__(self) -> None:
        if self.algorithm not in list(Algorithm):
            raise UndershootError(f"the algorithm is {what_came(self.algorithm)}; allowed are {', '.join(Algorithm)}")
        object.__setattr__(self, "algorithm", Algorithm(self.algorithm))
        if not isinstance(self.device, str) or not re.fullmatch(r"cpu|auto|cuda(:[0-9]{1,4})?", self.device):
            raise UndershootError(f"the device (--device) is {what_came(self.device)}; allowed are cpu, cuda, cuda:N and auto")
        self._check_kinds()
        if not 1 <= self.weight <= MAX_WEIGHT:
            raise UndershootError(
                f"the weight (--weight) is {self.weight}; allowed are numbers from 1 (plain A*) to {MAX_WEIGHT:,}"
            )
        if not 1 <= self.expand_per_step <= MAX_PER_STEP:
            raise UndershootError(
                f"expand_per_step (--expand-per-step) is {self.expand_per_step}; "
                f"allowed are whole numbers from 1 to {MAX_PER_STEP:,}"
            )
        if self.max_expanded is not None and self.max_expanded < 0:
            raise UndershootError(f"the limit of {self.max_expanded} expansions (--max-expanded) is below 0")
        if self.max_seconds is not None and not self.max_seconds >= 0:
            raise UndershootError(f"the limit of {self.max_seconds} seconds (--max-seconds) is not a number from 0")
        if self.max_memory is not None and self.max_memory < 1 << 20:
            raise UndershootError(
                f"the limit of {self.max_memory} bytes (--max-memory) is below 1 MiB, too little for any search"
            )

    def _check_kinds(self) -> None:
        numbers = {"weight": Real, "max_seconds": Real, "expand_per_step": Integral, "max_expanded": Integral}
        for name, kind in {**numbers, "max_memory": Integral}.items():
            given = getattr(self, name)
            is_left_out = given is None and name.startswith("max_")
            if not is_left_out and (isinstance(given, bool) or not isinstance(given, kind)):
                raise UndershootError(f"{name} is {what_came(given)}; a {'whole ' if kind is Integral else ''}number is needed")


def check_options(options: SearchOptions, threads: int) -> None:
    """Refuse what cannot be done, before anything large is made for it."""
    if threads < 1:
        raise UndershootError(f"{threads} threads were asked for (--threads); at least 1 is needed")
    if threads > 1 and options.device not in (CPU, AUTO):
        raise UndershootError(
            f"{threads} threads were asked for (--threads), but the device {options.device} has none; leave out --threads, or "
            "--device"
        )
    if options.algorithm in (Algorithm.IDA, Algorithm.BOTH) and unread(options):
        raise UndershootError(
            f"IDA* does not read {' and '.join(unread(options))}; leave it out, or use A* (--algorithm astar)"
        )
    if options.algorithm is Algorithm.BOTH and options.max_seconds == 0:
        raise UndershootError(
            "a limit of 0 seconds (--max-seconds) leaves no time for two searches; give more, or leave it out to have both "
            "bounds meet"
        )


def unread(options: SearchOptions) -> list[str]:
    """Options that were set and that IDA* does not read."""
    usual = SearchOptions()
    names = {"weight": "--weight", "ties": "--ties", "expand_per_step": "--expand-per-step"}
    return [shown for name, shown in names.items() if getattr(options, name) != getattr(usual, name)]
