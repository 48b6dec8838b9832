"""Sliding tiles: a tile next to the blank slides onto it."""

from math import factorial

import numpy as np

from undershoot.arrays import I32, I64, States, frozen
from undershoot.puzzles.base_heuristics import BaseHeuristic
from undershoot.puzzles.encoding import one_hot
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.notation import Words
from undershoot.puzzles.parity import permutation_parity
from undershoot.puzzles.pictures import Picture, grid
from undershoot.puzzles.puzzle import Puzzle

MIN_SIDE, MAX_SIDE = 2, 6
BLANK = 0
# A move is named after the way the tile goes; the blank goes the other way.
MOVES = {"U": (1, 0), "D": (-1, 0), "L": (0, 1), "R": (0, -1)}


def tiles(rows: int, columns: int, blank_first: bool) -> Puzzle:
    """tiles-RxC with goal 1 2 ... 0, or 0 1 2 ... with the blank first."""
    n = rows * columns
    goal = np.arange(n) if blank_first else (np.arange(n) + 1) % n
    source = np.tile(np.arange(n, dtype=np.uint8), (n, len(MOVES), 1))
    legal = np.zeros((n, len(MOVES)), dtype=np.bool_)
    for blank in range(n):
        r, c = divmod(blank, columns)
        for a, (dr, dc) in enumerate(MOVES.values()):
            if 0 <= r + dr < rows and 0 <= c + dc < columns:
                tile = (r + dr) * columns + c + dc
                source[blank, a, [blank, tile]] = tile, blank
                legal[blank, a] = True
    reflections = [np.arange(n)] + ([np.arange(n).reshape(rows, columns).T.ravel()] if rows == columns else [])
    table = MoveTable(
        source=source,
        shift=np.zeros_like(source),
        modulus=np.full(n, n, dtype=np.uint16),
        legal=legal,
        cost=np.ones(len(MOVES), dtype=np.int32),
        action_names=tuple(MOVES),
        goals=goal[None].astype(np.uint8),
        cursor=BLANK,
    ).with_symmetries((p, _relabelling(goal, p)) for p in reflections)
    width = len(str(n - 1))
    labels = tuple(" " * (width + 2) if v == BLANK else f" {v:>{width}} " for v in range(n))
    in_place = goal.reshape(rows, columns)
    # Tiles that belong in odd and even rows look different, so that disorder is seen at a glance.
    row_of = {int(v): r for r in range(rows) for v in in_place[r]}
    styles = tuple(
        "on grey11" if v == BLANK else ("bold black on wheat1" if row_of[v] % 2 else "bold white on dark_red") for v in range(n)
    )
    suffix = "-blank-first" if blank_first else ""
    example = " / ".join(" ".join(map(str, row)) for row in in_place.tolist())
    return Puzzle(
        name=f"tiles-{rows}x{columns}{suffix}",
        summary=f"{n - 1} sliding tiles on {rows} x {columns} cells, blank {'first' if blank_first else 'last'}",
        table=table,
        space=ParitySpace(table.goals, columns),
        notation=Words(
            table,
            [str(v) for v in range(n)],
            columns,
            f'rows of numbers with 0 for the blank such as "{example}", or moves U D L R (the way the tile goes)',
        ),
        picture=Picture(grid(rows, columns), labels, styles),
        encoding=one_hot(table.modulus, silent=BLANK),
        base_heuristic=BaseHeuristic("Manhattan", _manhattan(goal, columns)),
    )


def _relabelling(goal: I64, p: I64) -> I64:
    """Names for the tiles after the board is reflected, such that the goal stays the goal."""
    values = np.empty_like(goal)
    values[goal[p]] = goal
    return values


def _manhattan(goal: I64, columns: int) -> I32:
    """int32[n, n]: how far tile v on cell i is from home; the blank counts nothing."""
    r, c = np.divmod(np.arange(len(goal)), columns)
    home = np.argsort(goal)
    distance = abs(r[:, None] - r[home]) + abs(c[:, None] - c[home])
    distance[:, BLANK] = 0
    return distance.astype(np.int32)


class ParitySpace:
    """Half of all orders: each move is one exchange, and moves the blank to a cell of the other colour."""

    size_is_exact = True
    reasons = ("it has odd parity (exchange any two tiles and it can be solved)",)

    def __init__(self, goal: States, columns: int) -> None:
        n = goal.shape[1]
        self.size = factorial(n) // 2
        self._colour = frozen(np.arange(n) // columns + np.arange(n) % columns & 1)
        self._goal = frozen(self._invariant(goal))

    def _invariant(self, states: States) -> I64:
        colour: I64 = self._colour[np.argmax(states == BLANK, axis=1)]
        return permutation_parity(states) ^ colour

    def defects(self, states: States) -> I64:
        """1 for the half that cannot be solved."""
        return self._invariant(states) ^ self._goal

    def sample(self, random: np.random.Generator, count: int) -> States:
        """A random order each; where its parity is wrong, tiles 1 and 2 change places."""
        n = len(self._colour)
        states = random.permuted(np.tile(np.arange(n, dtype=np.uint8), (count, 1)), axis=1)
        wrong = self.defects(states) > 0
        states[wrong] = np.array([0, 2, 1, *range(3, n)], dtype=np.uint8)[states[wrong]]
        return states
