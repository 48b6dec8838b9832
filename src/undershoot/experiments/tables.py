"""Tables from records alone."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from undershoot.arrays import AnyArray
from undershoot.experiments.measures import (
    Columns,
    _mean,
    admissible,
    admissible_everywhere,
    expanded,
    expanded_solved_only,
    gap,
    shares,
    solved,
    spread,
)
from undershoot.experiments.protocol import ABLATION, BALL, OTHERS, PUBLISHED_DEPTH, PUZZLES, WEIGHTED

if TYPE_CHECKING:
    pass

NAMES = {
    "base": "h0",
    "mse": "MSE network",
    "raw": "paper, raw",
    "scramble": "paper, its offset",
    "exhaustive": "paper, exhaustive",
    "exceptions": "paper, exceptions",
    "learned": "learned, certified",
    "label-free": "label-free, certified",
    "small": "small, certified",
    "table": "perfect table",
}
"""Of the heuristics, in the order of the rows."""
IN_PAPER: dict[tuple[str, str], dict[str, float]] = {
    ("lights-out-3x3", "base"): {"expanded": 495.5, "spread": 24.3, "solved": 100, "admissible": 100, "gap": 0},
    ("lights-out-3x3", "mse"): {"expanded": 205.7, "spread": 15.2, "solved": 100, "admissible": 100, "gap": 0},
    ("lights-out-3x3", "raw"): {"expanded": 329.3, "spread": 18.5, "solved": 100, "admissible": 100, "gap": 0},
    ("lights-out-3x3", "scramble"): {"expanded": 329.3, "spread": 18.5, "solved": 100, "admissible": 100, "gap": 0},
    ("tiles-3x3", "base"): {"expanded": 17.5, "spread": 1.1, "solved": 100, "admissible": 100, "gap": 0},
    ("tiles-3x3", "mse"): {"expanded": 11.7, "spread": 0.8, "solved": 100, "admissible": 66, "gap": 0},
    ("tiles-3x3", "raw"): {"expanded": 13.6, "spread": 0.9, "solved": 100, "admissible": 100, "gap": 0},
    ("tiles-3x3", "scramble"): {"expanded": 13.8, "spread": 1.0, "solved": 100, "admissible": 100, "gap": 0},
    ("cube-2x2", "base"): {"expanded": 735.0, "spread": 50.0, "solved": 2, "admissible": 100, "gap": 0},
    ("cube-2x2", "mse"): {"expanded": 141.7, "spread": 11.2, "solved": 74, "admissible": 76, "gap": 0.03},
    ("cube-2x2", "raw"): {"expanded": 212.3, "spread": 15.6, "solved": 58, "admissible": 100, "gap": 0},
    ("cube-2x2", "scramble"): {"expanded": 212.3, "spread": 15.6, "solved": 58, "admissible": 100, "gap": 0},
}
"""The paper's Table 1, with the standard deviation of expansions. No node is ever opened again in it."""


PUZZLES_OF_PAPER = {puzzle for puzzle, _ in IN_PAPER}
SOLVED_ONLY = "expanded, solved only"
"""The paper's average."""


@dataclass(frozen=True)
class Table:
    """What a reader sees: cells are text."""

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def table_one(searches: Columns, spaces: Columns) -> list[Table]:
    """The paper's Table 1, one for each puzzle and instance set."""
    tables = []
    for puzzle in PUZZLES:
        for population, title in (
            ("published", f"scrambles of depth {PUBLISHED_DEPTH.get(puzzle, 10)}, ties shallow, the published setting"),
            ("all depths", "scrambles of all depths, ties deep"),
            ("uniform", "uniformly random states, ties deep"),
        ):
            chosen = searches.where(puzzle=puzzle, population=population, weight=1.0).among("heuristic", NAMES)
            if len(chosen):
                tables.append(_one(puzzle, population, title, chosen, spaces.where(puzzle=puzzle)))
    return tables


def _one(puzzle: str, population: str, title: str, shown: Columns, spaces: Columns) -> Table:
    common = _solved_by_all(shown)
    rows = []
    for name, label in NAMES.items():
        seeds = shown.where(heuristic=name).split("seed")
        if not seeds:
            continue
        paper = IN_PAPER.get((puzzle, name), {}) if population == "published" else {}
        rows.append(
            (
                label,
                _beside(shares(map(admissible, seeds), 2), paper.get("admissible")),
                admissible_everywhere(space_of(spaces, name)),
                _beside(shares(map(solved, seeds), 1), paper.get("solved")),
                spread(map(expanded, seeds), 1),
                spread((_mean(part.of("expanded")[np.isin(part.of("instance"), common)]) for part in seeds), 1),
                _beside(spread(map(expanded_solved_only, seeds), 1), paper.get("expanded")),
                _beside(spread((float(part.of("reopened").sum()) for part in seeds), 0), 0 if paper else None),
                _beside(spread(map(gap, seeds), 2, " %"), paper.get("gap")),
                spread((1000 * _mean(part.of("seconds")) for part in seeds), 3),
            )
        )
    columns = (
        *("heuristic", "admissible, test states", "admissible, all states", "solved", "expanded, all"),
        *(f"where all solved ({len(common):,})", SOLVED_ONLY, "reopened", "gap", "ms each, in lock-step"),
    )
    count = len(shown.split("heuristic")[0].split("seed")[0])
    notes = [
        f"{count:,} instances; budget {int(shown.of('budget')[0]):,} expansions, which count where nothing was found.",
        "exhaustive, exceptions and certified networks are rounded up to whole costs, of the right parity where there is one.",
        "Shares are rounded down: 100 % means all. Times are of whatever machine did a piece of work, beside other work.",
    ]
    if population == "published" and puzzle in PUZZLES_OF_PAPER:
        notes.append("[Figures in brackets] are the paper's.")
        if puzzle == "cube-2x2":
            notes.append("Those of the 2x2 are for another puzzle: two stickers of its R turn are swapped.")
    return Table(f"table1-{puzzle}-{population.replace(' ', '-')}", f"{puzzle}: {title}", columns, tuple(rows), tuple(notes))


def _beside(ours: str, theirs: float | None) -> str:
    return ours if theirs is None else f"{ours} [{theirs:g}]"


def ablation(searches: Columns, spaces: Columns) -> list[Table]:
    """The paper's Table 2."""
    paper = {"operator": (91.8, 16.4), "raw": (98.0, 17.3), "scramble": (100.0, 17.7)}
    labels = {"operator": "targets only", "raw": "and the loss", "scramble": "and the offset"}
    if not len(searches.where(puzzle=ABLATION, heuristic="operator")):
        return []
    rows = []
    for name, label in labels.items():
        chosen = searches.where(puzzle=ABLATION, weight=1.0, heuristic=name)
        seeds = chosen.where(population="published").split("seed")
        over = space_of(spaces.where(puzzle=ABLATION), name)
        rows.append(
            (
                label,
                _beside(shares(map(admissible, seeds), 2), paper[name][0]),
                shares(map(admissible, chosen.where(population="all depths").split("seed")), 2),
                admissible_everywhere(over),
                _beside(spread(map(expanded, seeds), 1), paper[name][1]),
                spread(over.of("mean_h").tolist(), 2),
            )
        )
    columns = (
        *("8-puzzle", "admissible, depth 10", "admissible, depths 1 to 10", "admissible, all states"),
        *("expanded, depth 10", "mean h, all states"),
    )
    notes = ("[Figures in brackets] are the paper's.",)
    return [Table("ablation", "The ablation (the paper's Table 2)", columns, tuple(rows), notes)]


def by_depth(searches: Columns) -> list[Table]:
    """What is solved of the 2x2, by scramble depth."""
    chosen = searches.where(puzzle="cube-2x2", population="all depths", weight=1.0).among("heuristic", NAMES)
    depths = sorted(set(chosen.of("depth_walked").tolist()))
    rows = []
    for name, label in NAMES.items():
        found = chosen.where(heuristic=name)
        if len(found):
            rows.append((label, *(shares(map(solved, found.where(depth_walked=d).split("seed")), 1) for d in depths)))
    if not rows:
        return []
    columns = ("2x2 cube", *(f"depth {int(depth)}" for depth in depths))
    note = f"Solved within {int(chosen.of('budget')[0]):,} expansions, ties deep."
    return [Table("solved-by-depth", "Solved by scramble depth", columns, tuple(rows), (note,))]


def weighted(searches: Columns) -> list[Table]:
    """Weighted A* with the network that overestimates."""
    chosen = searches.where(puzzle=WEIGHTED, population="published")
    heavy = len(chosen.where(weight=1.5))
    rows = []
    for weight, name in ((1.0, "mse"), (1.5, "mse"), (1.0, "raw"), (1.0, "learned")):
        seeds = chosen.where(weight=weight, heuristic=name).split("seed")
        if seeds:
            rows.append(
                (
                    f"{NAMES[name]}, w = {weight:g}",
                    shares(map(solved, seeds), 1),
                    spread(map(expanded_solved_only, seeds), 1),
                    spread(map(expanded, seeds), 1),
                    spread(map(gap, seeds), 2, " %"),
                )
            )
    columns = ("2x2 cube", "solved", SOLVED_ONLY, "expanded, all", "gap")
    note = "Scrambles of depth 10, ties shallow. The paper, on its own puzzle, with w = 1.5: 82 %, 98.4 solved only, gap 2.1 %."
    return [Table("weighted", "Weighted A*", columns, tuple(rows), (note,))] if heavy else []


def whole_spaces(spaces: Columns) -> list[Table]:
    """Every state of all four spaces: the paper's check of 512 states, extended."""
    rows = []
    for puzzle in PUZZLES:
        for name, shown in NAMES.items():
            over = space_of(spaces.where(puzzle=puzzle), name)
            if len(over):
                edges = over.of("inconsistent_edges") / np.maximum(over.of("edges"), 1)
                rows.append(
                    (
                        puzzle,
                        shown,
                        f"{int(over.of('states')[0]):,}",
                        spread(over.of("overestimates").tolist(), 0),
                        spread(over.of("supremum").tolist(), 3),
                        spread(over.of("mean_h").tolist(), 3),
                        f"{over.of('mean_true')[0]:.3f}",
                        spread((100 * edges).tolist(), 3, " %"),
                    )
                )
    columns = ("puzzle", "heuristic", "states", "overestimates", "sup(h - h*)", "mean h", "mean h*", "inconsistent moves")
    note = (
        "Moves from 20,000 uniformly random states. The paper checked the 512 states of Lights Out 3x3: MSE 86.52 % admissible."
    )
    return [Table("spaces", "Every state", columns, tuple(rows), (note,))] if rows else []


def calibrators(searches: Columns, spaces: Columns) -> list[Table]:
    """All methods on one network: what is claimed, what is true, what it costs."""
    rows = []
    for puzzle, seed in compared(spaces):
        for part in spaces.where(puzzle=puzzle, heuristic="paper", seed=seed).split("variant"):
            name = part.text("variant")[0]
            found = searches.where(puzzle=puzzle, population="uniform", heuristic=name, seed=seed, weight=1.0)
            cost = found.of("cost")
            dearer = int((cost > found.of("true_cost")).sum())
            rows.append(
                (
                    puzzle,
                    name,
                    part.text("guarantee")[0],
                    f"{int(part.of('overestimates')[0]):,}",
                    spread(part.of("mean_h").tolist(), 3),
                    shares([solved(found)], 1) if len(found) else "–",
                    spread([expanded(found)], 1),
                    f"{dearer} of {int((~np.isnan(cost)).sum()):,}" if len(found) else "–",
                )
            )
    columns = ("puzzle", "method", "it", "overestimates, all states", "mean h", "solved", "expanded", "suboptimal")
    note = "Uniformly random states, ties deep; a search that finds nothing counts its budget."
    return [Table("calibrators", "Calibrators", columns, tuple(rows), (note,))] if rows else []


def compared(spaces: Columns) -> list[tuple[str, float]]:
    """The puzzles, and the seed, on which all methods were tried."""
    tried = spaces.where(variant=OTHERS[0])
    return [(puzzle, tried.where(puzzle=puzzle).of("seed")[0]) for puzzle in PUZZLES if len(tried.where(puzzle=puzzle))]


def ball(searches: Columns, spaces: Columns) -> list[Table]:
    """The 3x3 cube near the goal."""
    rows = []
    blind = expanded(searches.where(puzzle=BALL, heuristic="zero"))
    for name, label in (("zero", "blind"), ("raw", "paper, raw"), ("exhaustive", "paper, exhaustive in the ball")):
        seeds = searches.where(puzzle=BALL, heuristic=name).split("seed")
        over = spaces.where(puzzle=BALL, variant=name)
        if seeds:
            rows.append(
                (
                    label,
                    spread(over.of("overestimates").tolist(), 0),
                    f"{int(over.of('states')[0]):,}" if len(over) else "–",
                    shares(map(solved, seeds), 1),
                    spread(map(expanded, seeds), 1),
                    "–" if name == "zero" else spread((100 * (1 - expanded(part) / blind) for part in seeds), 1, " %"),
                )
            )
    columns = ("3x3 cube", "overestimates in the ball", "states in the ball", "solved", "expanded", "fewer than blind")
    note = "The paper: no overestimate at depths up to 6, 15.4 % fewer nodes than blind search."
    return [Table("ball", "The 3x3 cube near the goal", columns, tuple(rows), (note,))] if rows else []


def latency(timings: Columns) -> list[Table]:
    """Milliseconds."""
    rows = []
    for puzzle in PUZZLES:
        states = timings.where(puzzle=puzzle, what="states")
        if len(states):
            times = [*states.of("seconds").tolist(), *timings.where(puzzle=puzzle, what="search").of("seconds").tolist()]
            rows.append((puzzle, *(f"{1000 * seconds:,.3f}" for seconds in times)))
    if not rows:
        return []
    sizes = [int(size) for size in dict.fromkeys(timings.where(what="states").of("count").tolist())]
    columns = ("the paper's network, ms", *("one state" if size == 1 else f"{size:,} states" for size in sizes), "one search")
    note = (
        "One thread, no other piece of work beside it; searches one at a time, scrambles of the published depth. The paper: "
        "one state 0.45 ms, 128 states 1.82 ms; a search 12.5 ms (Lights Out 3x3), 1.2 ms (8-puzzle) and 62 ms (its 2x2)."
    )
    return [Table("latency", "Latency", columns, tuple(rows), (note,))]


def trainings(records: Columns) -> list[Table]:
    """How far they came, and how long they took."""
    rows = []
    for puzzle in (*PUZZLES, BALL):
        for part in records.where(puzzle=puzzle).split("recipe"):
            rows.append(
                (
                    puzzle,
                    part.text("recipe")[0],
                    f"{len(part)}",
                    f"{int(part.of('steps')[0]):,}",
                    spread(part.of("depth").tolist(), 1),
                    shares((100 * part.of("solve_rate")).tolist(), 0),
                    spread(part.of("seconds").tolist(), 0),
                )
            )
    columns = ("puzzle", "recipe", "trainings", "steps", "scramble depth reached", "solved at that depth", "seconds")
    note = (
        "One thread each, several at once, with the searches that decide when to go deeper; times are of whatever machine did "
        "a piece of work. The paper: about 15 minutes."
    )
    return [Table("trainings", "Trainings", columns, tuple(rows), (note,))] if rows else []


def space_of(spaces: Columns, name: str) -> Columns:
    """The whole-space rows of a heuristic of Table 1."""
    if name == "mse":
        return spaces.where(heuristic="mse", variant="raw")
    if name == "operator":
        return spaces.where(heuristic="operator", variant="raw")
    if name in ("raw", "scramble", "exhaustive", "exceptions"):
        return spaces.where(heuristic="paper", variant=name)
    return spaces.where(heuristic=name, variant=name)


def _solved_by_all(searches: Columns) -> AnyArray:
    """Instances that every heuristic solved with every seed."""
    failed = searches.of("instance")[np.isnan(searches.of("cost"))]
    return np.setdiff1d(searches.of("instance"), failed)
