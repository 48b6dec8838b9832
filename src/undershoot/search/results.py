"""What a search found out."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from undershoot.errors import Contradiction
from undershoot.guarantees import LabelKind, Labels, Optimality, OptimalityKind
from undershoot.search.options import Algorithm


class Status(StrEnum):
    """How a search ended.

    Examples:
        >>> print(us.Status.BUDGET, "-", us.Status.BUDGET.sentence)
        budget - stopped at the limit of expansions; raise --max-expanded
    """

    SOLVED = "solved"
    UNSOLVABLE = "unsolvable"
    BUDGET = "budget"
    TIME = "time"
    MEMORY = "memory"
    COST = "cost"
    SEARCHING = "searching"
    """It has not ended: a result on the way, of `improve`."""

    @property
    def is_limit(self) -> bool:
        """Whether more of something would have let it go on."""
        return self in (Status.BUDGET, Status.TIME, Status.MEMORY, Status.COST)

    @property
    def sentence(self) -> str:
        """For people, with what to do."""
        return {
            Status.SOLVED: "solved",
            Status.UNSOLVABLE: "no sequence of moves reaches the goal: nothing is left to search",
            Status.BUDGET: "stopped at the limit of expansions; raise --max-expanded",
            Status.TIME: "stopped at the limit of time; raise --max-seconds",
            Status.MEMORY: "stopped at the limit of memory, or of 2 billion nodes; raise --max-memory",
            Status.COST: "stopped since costs are higher than searches count to",
            Status.SEARCHING: "still searching",
        }[self]


class Moved(NamedTuple):
    """When a bound moved, and what both were then."""

    seconds: float
    cost: int | None
    """Of the best solution; None before there is one."""
    lower_bound: int


@dataclass(frozen=True)
class Result:
    """One instance. Costs are None where there is no solution.

    Examples:
        >>> tiles = us.puzzle("tiles-2x3")
        >>> result = us.solve(tiles, tiles.parse("1 2 3 / 0 4 5"), us.heuristic(tiles, "base"))
        >>> result.status, result.actions, result.cost, result.lower_bound
        (<Status.SOLVED: 'solved'>, ('L', 'L'), 2, 2)
        >>> result.expanded, result.generated, result.gap
        (3, 5, 0)
    """

    status: Status
    actions: tuple[str, ...]
    """The names of the moves of the solution."""
    cost: int | None
    lower_bound: int
    """No solution is cheaper, whatever guided the search."""
    optimality: Optimality
    expanded: int
    """Nodes taken from the open list, the goal included."""
    expanded_below: int | None
    """Those of them with f below the final cost, which tie-breaking cannot change; None without a solution."""
    generated: int
    """Children made, over distinct legal effects."""
    evaluated: int
    """States that the heuristic was asked for, each once."""
    reopened: int
    """Expanded nodes that were reached more cheaply and opened again."""
    stored: int
    """Nodes in memory at the end: distinct states seen."""
    overestimates: int
    """States along the solution whose h is above the cost that the solution still needs. None seen proves nothing."""
    seconds: float
    """While this instance was being searched; instances that run in lock-step share the clock."""
    algorithm: Algorithm = Algorithm.ASTAR
    """Which one ended with this result."""
    history: tuple[Moved, ...] = ()
    """Of two searches at once: how their bounds moved."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, as programs read them."""
        fields = asdict(self)
        fields |= {
            "status": self.status.value,
            "algorithm": self.algorithm.value,
            "actions": list(self.actions),
            "optimality": self.optimality.kind.value,
            "history": [moved._asdict() for moved in self.history],
        }
        known = self.optimality
        return {**fields, "provided": known.provided, "factor": known.factor, "probability": known.probability}

    def followed_by(self, other: "Result") -> "Result":
        """What another search of the same instance adds to this one, which found no solution: all work is counted."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("expanded", "generated", "evaluated", "reopened")}
        seconds, lower = self.seconds + other.seconds, max(self.lower_bound, other.lower_bound)
        if other.cost is not None and other.cost < lower:
            raise Contradiction(f"a solution of cost {other.cost} was found where an earlier search implies at least {lower}")
        provided = " and ".join(dict.fromkeys(text for text in (self.optimality.provided, other.optimality.provided) if text))
        optimality = replace(other.optimality, provided=provided)
        if other.cost == lower:
            optimality = Optimality(OptimalityKind.PROVEN, provided=provided)
        return replace(other, **sums, seconds=seconds, lower_bound=lower, optimality=optimality)

    @property
    def gap(self) -> int | None:
        """Cost minus lower bound."""
        return None if self.cost is None else self.cost - self.lower_bound


def labels(results: Sequence[Result]) -> Labels:
    """What searches tell about the costs of their starts: EXACT if every one is proven optimal, otherwise LOWER."""
    proven = all(result.optimality.kind is OptimalityKind.PROVEN for result in results)
    bounds = np.array([result.lower_bound for result in results], dtype=np.float32)
    return Labels(LabelKind.EXACT if proven else LabelKind.LOWER, bounds)
