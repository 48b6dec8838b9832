"""The words in which calibrations say what they are: what is written with them, and read again, is nothing else.

A bundle comes from elsewhere, and its method and populations are printed in sentences of this program. So they are made here,
and a file that holds other words is refused.
"""

import re

METHODS = ("scramble", "max", "conformal", "grouped", "trajectory", "exhaustive", "exceptions")
"""How margins are fitted, in the order in which people read them."""
UNIFORM = "uniform states"
EVERYTHING = "all states"
FORMULAS = ("zero", "Manhattan", "gap", "lit / 5")
"""What is called base, by puzzle: a puzzle file has none, whatever puzzle it is like."""
NUMBER = r"\d{1,3}(?:,?\d{3}){0,4}"
POPULATION = re.compile(
    rf"{UNIFORM}|{EVERYTHING}(?: within {NUMBER} of the goal)?|scrambles {NUMBER}(?:\.\.{NUMBER}|(?:, {NUMBER})*), no undo"
    rf"|states expanded by A\* with base \((?:{'|'.join(map(re.escape, FORMULAS))})\) from {UNIFORM}, "
    rf"within {NUMBER} expansions, one a search"
)


def all_states(ball: int | None = None) -> str:
    """Every one, or every one within this cost of the goal."""
    return EVERYTHING if ball is None else f"{EVERYTHING} within {ball} of the goal"


def scrambles(depths: tuple[int, ...]) -> str:
    """Of depths 1..10, or 2, 9."""
    is_range = len(depths) > 1 and depths == tuple(range(depths[0], depths[-1] + 1))
    shown = f"{depths[0]}..{depths[-1]}" if is_range else ", ".join(map(str, depths))
    return f"scrambles {shown}, no undo"


def expanded(formula: str, budget: int) -> str:
    """One state of each search with base, which is this formula, within so many expansions."""
    return f"states expanded by A* with base ({formula}) from {UNIFORM}, within {budget:,} expansions, one a search"


def is_population(text: str) -> bool:
    """Whether one of the functions above writes this, or nothing, where there is none."""
    return not text or POPULATION.fullmatch(text) is not None
