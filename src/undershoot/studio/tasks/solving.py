"""A search that tells how far it is: expansions, and both bounds as they move."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from undershoot.arrays import States
from undershoot.errors import UndershootError
from undershoot.guarantees import Heuristic, Optimality, OptimalityKind
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.glimpses import Glimpse
from undershoot.search.options import Algorithm, SearchOptions
from undershoot.search.results import Result, Status
from undershoot.search.solving import choose
from undershoot.search.solving import solve as search
from undershoot.studio.tasks import Tell
from undershoot.studio.tasks.subjects import heuristic_of, in_words, puzzle_of, state_of

AT_FIRST = 0.4
"""Seconds for a search to end before a quick solution is sought."""
QUICK_WEIGHTS, QUICK_SHARE, QUICK_SECONDS = (2.0, 5.0), 0.15, 6.0
"""How a solution of any cost is sought, in this share of the time, but no longer than so many seconds."""


def solve(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """Search from a state. Events: phase, expanded, lower, upper (with the solution, where it is new), seconds."""
    puzzle = puzzle_of(arguments)
    state = state_of(puzzle, arguments)
    tell({"phase": "loading"})
    heuristic = heuristic_of(puzzle, arguments["heuristic"])
    options = SearchOptions(
        weight=arguments.get("weight", 1.0),
        max_expanded=arguments.get("max_expanded"),
        max_seconds=arguments.get("max_seconds"),
        max_memory=arguments.get("max_memory"),
        algorithm=Algorithm(arguments.get("algorithm", "auto")),
    )
    _, why = choose(puzzle, heuristic, options)
    tell({"phase": "preparing; the first search of a kind is compiled, which takes up to a minute"})
    telling = _Telling(tell, puzzle, state, heuristic)
    result = telling.search(_at_most(options, AT_FIRST), "searching")
    if result.status is Status.TIME and options.weight == 1 and (options.max_seconds is None or options.max_seconds > AT_FIRST):
        quick = telling.find_any(options)
        result = telling.search(options, "searching")
        if quick is not None and (result.cost is None or result.cost > (quick.cost or 0)):
            result = _joined(result, quick)
    return {
        **result.to_json(),
        "statement": statement(result),
        "heuristic": heuristic.name,
        "why": why,
        **in_words(heuristic.guarantee),
    }


def _at_most(options: SearchOptions, seconds: float) -> SearchOptions:
    return replace(options, max_seconds=seconds if options.max_seconds is None else min(seconds, options.max_seconds))


class _Telling:
    """Searches of one instance, whose bounds are told."""

    def __init__(self, tell: Tell, puzzle: Puzzle, state: States, heuristic: Heuristic) -> None:
        self.tell, self.puzzle, self.state, self.heuristic = tell, puzzle, state, heuristic
        self.lower = 0
        self.upper: int | None = None

    def search(self, options: SearchOptions, phase: str) -> Result:
        def watch(glimpse: Glimpse) -> None:
            self.lower = max(self.lower, glimpse.lower_bound)
            self.tell(
                {
                    "phase": phase,
                    "expanded": glimpse.expanded,
                    "lower": self.lower,
                    "upper": self.upper,
                    "seconds": round(glimpse.seconds, 3),
                }
            )

        return search(self.puzzle, self.state, self.heuristic, replace(options, watch=watch))

    def find_any(self, options: SearchOptions) -> Result | None:
        """A solution that need not be optimal, for an upper bound while the search goes on."""
        seconds = QUICK_SECONDS if options.max_seconds is None else min(QUICK_SECONDS, QUICK_SHARE * options.max_seconds)
        for weight in QUICK_WEIGHTS:
            quick = SearchOptions(weight=weight, max_seconds=seconds / len(QUICK_WEIGHTS), max_memory=options.max_memory)
            found = self.search(quick, "seeking any solution first")
            if found.cost is not None:
                self.upper = found.cost
                self.lower = max(self.lower, found.lower_bound)
                self.tell({"phase": "searching", "lower": self.lower, "upper": self.upper, "actions": list(found.actions)})
                return found
        return None


def _joined(result: Result, quick: Result) -> Result:
    """What a search without a solution, or with a worse one, and a quick solution say together."""
    if quick.cost is None:
        raise UndershootError("a quick solution without a cost came")
    lower = min(max(result.lower_bound, quick.lower_bound), quick.cost)
    known = Optimality(OptimalityKind.PROVEN) if lower == quick.cost else quick.optimality
    if lower < quick.cost and lower > 0:
        known = Optimality(OptimalityKind.BOUNDED, factor=quick.cost / lower)
    return replace(result, cost=quick.cost, actions=quick.actions, lower_bound=lower, optimality=known)


def statement(result: Result) -> str:
    """What is proven, in a sentence or two."""
    if result.cost is None:
        ended = result.status.sentence
        return f"{ended[0].upper()}{ended[1:]}. No solution costs less than {result.lower_bound}."
    gap = result.cost - result.lower_bound
    rest = "" if gap == 0 else f" No solution costs less than {result.lower_bound}."
    stopped = "" if not result.status.is_limit else f" The search {result.status.sentence}."
    return f"Cost {result.cost}: {result.optimality}.{rest}{stopped}"
