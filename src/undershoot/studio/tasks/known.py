"""What is known of a state: the value and the guarantee of every heuristic at hand, and the true cost where that is known."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from undershoot.arrays import States
from undershoot.bundles.bundle import CONFIG, SHIPPED
from undershoot.bundles.documents import read_signed
from undershoot.bundles.names import LEARNED, bundle_folder
from undershoot.errors import UndershootError
from undershoot.kernels.cpu import is_goal
from undershoot.oracles.cache import is_cached
from undershoot.oracles.distance_table import UNKNOWN
from undershoot.oracles.size import available_memory, count_text, state_bytes
from undershoot.pattern_tables.cache import cached_seconds, has_any
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.sets import pattern_set
from undershoot.puzzles.pieces import pieces_of
from undershoot.puzzles.puzzle import Puzzle
from undershoot.studio.tasks import Tell
from undershoot.studio.tasks.subjects import QUICK_SPACE, distances_of, heuristic_of, in_words, puzzle_of, state_of

LARGE_TABLE = 3000
"""Entries of a move table: 25 tiles have fewer, 36 tiles and 64 pancakes more."""
ABOUT = {
    "learned": "the network that comes with the package",
    "label-free": "a network trained without a true cost",
    "small": "a network in a quarter of the table's bytes",
    "paper": "a network by the paper's recipe, certified on every state",
    "patterns": "tables of parts of the state",
    "table": "a table of all true costs",
    "gf2": "elimination over two elements",
    "linear-conflict": "Manhattan distance, and tiles in each other's way",
    "base": "the puzzle's own formula",
}


def known(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """bundles: names and paths of those that may be for this puzzle. `h` is exact, and none where there is no solution."""
    puzzle = puzzle_of(arguments)
    state = state_of(puzzle, arguments)
    references = at_hand(puzzle, arguments["bundles"])
    true_cost = _true_cost(puzzle, state, references)
    is_dead_end = "table" in references and int(distances_of(puzzle).distance(state)[0]) == UNKNOWN
    rows = [_row(puzzle, state, name, reference, true_cost) for name, reference in references.items()]
    if is_dead_end:  # the table holds no cost of it: what it says is for searches, which never come here
        rows = [row | {"h": None} if row["name"] == "table" else row for row in rows]
    return {
        "rows": rows,
        "true_cost": true_cost,
        "is_dead_end": is_dead_end,
        "offers": offers(puzzle, references),
    }


def _row(puzzle: Puzzle, state: States, name: str, reference: str, true_cost: int | None) -> dict[str, Any]:
    about = ABOUT.get(name, "a bundle of yours")
    if name == "base":
        about = f"the puzzle's own formula: {puzzle.base_heuristic.name}"
    try:
        heuristic = heuristic_of(puzzle, reference)
        value = float(heuristic(state)[0])
    except UndershootError as error:
        return {"name": name, "about": about, "error": str(error)}
    over = true_cost is not None and value > true_cost
    finite = value if math.isfinite(value) else None
    return {"name": name, "about": about, "h": finite, "over": over, **in_words(heuristic.guarantee)}


def _true_cost(puzzle: Puzzle, state: States, references: dict[str, str]) -> int | None:
    if is_goal(puzzle.table, state)[0]:
        return 0
    if "table" in references:
        cost = int(distances_of(puzzle).distance(state)[0])
        return None if cost == UNKNOWN else cost
    if "gf2" in references:
        return int(heuristic_of(puzzle, "gf2")(state)[0])
    return None


def at_hand(puzzle: Puzzle, bundles: dict[str, str]) -> dict[str, str]:
    """Heuristics that answer at once: what they are called, and what they are found by. The strongest first."""
    found: dict[str, str] = {}
    if not puzzle.definition:
        found = {name: name for name, ending in LEARNED.items() if (SHIPPED / f"{puzzle.name}{ending}").exists()}
    if has_table(puzzle):
        found["table"] = "table"
    if has_patterns(puzzle):
        found["patterns"] = "patterns"
    if puzzle.pressed is not None:
        found["gf2"] = "gf2"
    if not puzzle.definition and puzzle.name.startswith("tiles-"):
        found["linear-conflict"] = "linear-conflict"
    found["base"] = "base"
    for name, path in bundles.items():
        if is_for(puzzle, path):
            found[name] = path
    return found


def is_for(puzzle: Puzzle, path: str) -> bool:
    """Whether a bundle is one of this puzzle."""
    try:
        return bool(read_signed(bundle_folder(path) / CONFIG).get("fingerprint") == puzzle.table.fingerprint)
    except UndershootError:
        return False


def has_table(puzzle: Puzzle) -> bool:
    """Whether the true costs lie in the cache, or are quickly enumerated."""
    size = puzzle.space.size
    if size is not None and size <= QUICK_SPACE:
        return True
    return size is not None and fits(puzzle) and is_cached(puzzle)


def fits(puzzle: Puzzle) -> bool:
    """Whether a table of all costs fits well into memory."""
    return puzzle.space.size * state_bytes(2) < available_memory() // 4


def has_patterns(puzzle: Puzzle) -> bool:
    """Whether the tables of the puzzle's default patterns lie in the cache. To find out which these are takes seconds for large
    puzzles, and is done only where there are some."""
    if not has_any(puzzle.name, puzzle.table.fingerprint):
        return False
    try:
        return all(cached_seconds(pattern, puzzle.name) is not None for pattern in _default_patterns(puzzle))
    except UndershootError:
        return False


@lru_cache(maxsize=8)
def _default_patterns(puzzle: Puzzle) -> tuple[Pattern, ...]:
    return pattern_set(puzzle).patterns


@lru_cache(maxsize=32)
def _has_pieces(puzzle: Puzzle) -> bool:
    """Whether patterns can be made of it; of tables so large that it takes seconds to find out it is not asked."""
    if puzzle.table.source.size > LARGE_TABLE:
        return False
    try:
        pieces_of(puzzle)
    except UndershootError:
        return False
    return True


def offers(puzzle: Puzzle, references: dict[str, str]) -> list[dict[str, str]]:
    """What could be made, and what it would bring."""
    result = []
    if "table" not in references and fits(puzzle):
        words = f"Enumerate all {count_text(puzzle.space.size)} states: then every true cost is known"
        result.append({"name": "table", "text": words})
    if "patterns" not in references and _has_pieces(puzzle):
        result.append({"name": "patterns", "text": "Make its pattern tables: never above the true cost, and strong"})
    return result


def make(arguments: dict[str, Any], tell: Tell, should_stop: Callable[[], bool]) -> dict[str, Any]:
    """Make a table of true costs, or of patterns, which is then in the cache."""
    puzzle = puzzle_of(arguments)
    if arguments["name"] == "table":
        table = distances_of(puzzle)
        return {"text": f"{table.states:,} states are known, the farthest {len(table.histogram) - 1} from the goal"}
    from undershoot.bundles.loading import patterns

    made = patterns(
        puzzle, progress=lambda pieces, doing, done, of: tell({"text": f"{doing} {pieces}", "done": done, "of": of})
    )
    return {"text": f"{made.name}: {sum(len(table.entries) for table in made.tables):,} bytes, verified"}
