"""A search that tells how far it is: expansions, and both bounds as they move."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from undershoot.arrays import States
from undershoot.guarantees import Heuristic
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.both import improve
from undershoot.search.glimpses import Glimpse
from undershoot.search.options import Algorithm, SearchOptions
from undershoot.search.results import Result, Status
from undershoot.search.solving import choose
from undershoot.search.solving import solve as search
from undershoot.studio.tasks import Tell
from undershoot.studio.tasks.subjects import heuristic_of, in_words, puzzle_of, state_of


def solve(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """Search from a state. Events: phase, expanded, lower, upper (with the solution, where it is new), seconds."""
    puzzle = puzzle_of(arguments)
    state = state_of(puzzle, arguments)
    tell({"phase": "loading"})
    heuristic = heuristic_of(puzzle, arguments["heuristic"])
    options = SearchOptions(
        max_expanded=arguments.get("max_expanded"),
        max_seconds=arguments.get("max_seconds"),
        max_memory=arguments.get("max_memory"),
        algorithm=Algorithm(arguments.get("algorithm", "auto")),
    )
    first, _ = choose(puzzle, heuristic, options)
    tell({"phase": "preparing; the first search of a kind is compiled, which takes up to a minute"})
    result = (
        _meet(puzzle, state, heuristic, options, tell)
        if first is Algorithm.BOTH
        else _search(puzzle, state, heuristic, options, tell)
    )
    return {
        **result.to_json(),
        "statement": statement(result),
        "heuristic": heuristic.name,
        **in_words(heuristic.guarantee),
    }


def _search(puzzle: Puzzle, state: States, heuristic: Heuristic, options: SearchOptions, tell: Tell) -> Result:
    """By A* or IDA*, whose lower bound is told."""

    def watch(glimpse: Glimpse) -> None:
        seconds = round(glimpse.seconds, 3)
        told = {"expanded": glimpse.expanded, "lower": glimpse.lower_bound, "upper": None, "seconds": seconds}
        tell({"phase": "searching", **told})

    return search(puzzle, state, heuristic, replace(options, watch=watch))


def _meet(puzzle: Puzzle, state: States, heuristic: Heuristic, options: SearchOptions, tell: Tell) -> Result:
    """Both bounds at once."""
    best = None
    for result in improve(puzzle, state, heuristic, options=options):
        seconds = round(result.seconds, 3)
        told: dict[str, Any] = {"expanded": result.expanded, "lower": result.lower_bound, "upper": result.cost}
        if result.cost is not None and result.cost != best:
            best = result.cost
            told["actions"] = list(result.actions)
        tell({"phase": "searching", **told, "seconds": seconds})
    return result


def statement(result: Result) -> str:
    """What is proven, in a sentence or two."""
    if result.cost is None:
        ended = _ended(result.status)
        return f"{ended[0].upper()}{ended[1:]}. No solution costs less than {result.lower_bound}."
    gap = result.cost - result.lower_bound
    rest = "" if gap == 0 else f" No solution costs less than {result.lower_bound}."
    stopped = "" if not result.status.is_limit else f" The search {_ended(result.status)}."
    return f"Cost {result.cost}: {result.optimality}.{rest}{stopped}"


def _ended(status: Status) -> str:
    """How a search ended, and what would let it go on, by the words of the page."""
    advice = {Status.BUDGET: "allow more expansions", Status.TIME: "allow more seconds"}
    advice[Status.MEMORY] = "start the studio with a larger --max-memory"
    return f"{status.sentence.partition(';')[0]}; {advice[status]}" if status in advice else status.sentence
