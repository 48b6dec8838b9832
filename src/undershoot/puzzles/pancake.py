"""Pancakes: turn over the top of a stack until it is sorted, smallest on top."""

import numpy as np

from undershoot.puzzles.base_heuristics import BaseHeuristic
from undershoot.puzzles.encoding import one_hot
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.notation import Words
from undershoot.puzzles.pictures import Picture, grid
from undershoot.puzzles.puzzle import Puzzle
from undershoot.puzzles.spaces import AllPermutations

MIN_SIZE, MAX_SIZE = 2, 64


def pancake(n: int) -> Puzzle:
    """pancake-N; move Fk turns over the top k."""
    flips = range(2, n + 1)
    table = MoveTable(
        source=np.array([[[*reversed(range(k)), *range(k, n)] for k in flips]], dtype=np.uint8),
        shift=np.zeros((1, n - 1, n), dtype=np.uint8),
        modulus=np.full(n, n, dtype=np.uint16),
        legal=np.ones((1, n - 1), dtype=np.bool_),
        cost=np.ones(n - 1, dtype=np.int32),
        action_names=tuple(f"F{k}" for k in flips),
        goals=np.arange(n, dtype=np.uint8)[None],
    )
    size = np.arange(n)
    apart = (abs(size[:, None] - size) > 1).astype(np.int32)
    on_plate = np.zeros((n, n), dtype=np.int32)
    on_plate[n - 1, : n - 1] = 1
    palette = ("dark_orange3", "orange3", "gold3", "dark_goldenrod")
    return Puzzle(
        name=f"pancake-{n}",
        summary=f"{n} pancakes to sort by turning over the top of the stack",
        table=table,
        space=AllPermutations(n),
        notation=Words(
            table, [str(v + 1) for v in range(n)], n, f'sizes from the top, a permutation of 1..{n}, or flips such as "F3"'
        ),
        picture=Picture(
            grid(n, 1),
            # At most 61 wide, so that tall stacks still fit a terminal.
            tuple(("━" * (1 + 2 * (v * min(n, 31) // n))).center(2 * min(n, 31) + 1) + f" {v + 1:>2}" for v in range(n)),
            tuple(f"bold {palette[v % len(palette)]}" for v in range(n)),
        ),
        encoding=one_hot(table.modulus),
        # A flip joins or parts only one pair of neighbours (the plate counts as the largest pancake).
        base_heuristic=BaseHeuristic("gap", on_plate, pair_cost=apart),
    )
