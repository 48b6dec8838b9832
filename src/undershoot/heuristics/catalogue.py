"""Heuristics by name."""

import difflib
from collections.abc import Callable

from undershoot.errors import UndershootError
from undershoot.guarantees import Heuristic
from undershoot.heuristics.analytic import base, gf2, linear_conflict, zero
from undershoot.heuristics.table import TableHeuristic
from undershoot.oracles.cache import oracle
from undershoot.puzzles.problem import Problem

HEURISTICS: dict[str, tuple[Callable[[Problem], Heuristic], str]] = {
    "base": (base, "the puzzle's own: lit cells over five, Manhattan distance, gaps, or 0"),
    "zero": (zero, "0 everywhere"),
    "table": (lambda puzzle: TableHeuristic(oracle(puzzle)), "perfect, from the oracle, where the space fits into memory"),
    "gf2": (gf2, "perfect, for Lights Out, by elimination"),
    "linear-conflict": (linear_conflict, "for sliding tiles: Manhattan distance and tiles in each other's way"),
}


def heuristic(puzzle: Problem, name: str, others: tuple[str, ...] = ()) -> Heuristic:
    """The heuristic of this name for a puzzle.

    others: names that the caller knows, for the message if this one is not known.
    """
    if name not in HEURISTICS:
        names = (*others, *HEURISTICS)
        close = difflib.get_close_matches(name, names, n=1)
        hint = f' Did you mean "{close[0]}"?' if close else ""
        raise UndershootError(
            f'no heuristic "{name}".{hint} There are {", ".join(names)}, and paths of bundles; a+b takes the larger.'
        )
    return HEURISTICS[name][0](puzzle)
