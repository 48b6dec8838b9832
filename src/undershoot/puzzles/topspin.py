"""TopSpin: a ring of numbers; a turnstile reverses K neighbours."""

import numpy as np

from undershoot.puzzles.base_heuristics import zero_heuristic
from undershoot.puzzles.encoding import one_hot
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.notation import Words
from undershoot.puzzles.pictures import Picture
from undershoot.puzzles.puzzle import Puzzle
from undershoot.puzzles.spaces import OrbitSpace

MIN_SIZE, MAX_SIZE = 4, 32


def topspin(n: int, k: int) -> Puzzle:
    """topspin-N-K; move Ti reverses the K places that begin at place i, counted around the ring from 1."""
    source = np.tile(np.arange(n, dtype=np.uint8), (1, n, 1))
    for i in range(n):
        window = (i + np.arange(k)) % n
        source[0, i, window] = window[::-1]
    turns = [(i + direction * np.arange(n)) % n for direction in (1, -1) for i in range(n)]
    table = MoveTable(
        source=source,
        shift=np.zeros_like(source),
        modulus=np.full(n, n, dtype=np.uint16),
        legal=np.ones((1, n), dtype=np.bool_),
        cost=np.ones(n, dtype=np.int32),
        action_names=tuple(f"T{i + 1}" for i in range(n)),
        goals=np.arange(n, dtype=np.uint8)[None],
    ).with_symmetries((p, np.argsort(p)) for p in turns)
    half = -(-n // 2)
    oval = [(0, j) for j in range(half)] + [(1, half - 1 - j) for j in range(n - half)]
    width = len(str(n))
    return Puzzle(
        name=f"topspin-{n}-{k}",
        summary=f"a ring of {n} numbers of which any {k} neighbours can be reversed",
        table=table,
        space=OrbitSpace(table),
        notation=Words(
            table,
            [str(v + 1) for v in range(n)],
            n,
            f'the numbers around the ring, a permutation of 1..{n}, or moves such as "T1"',
        ),
        picture=Picture(
            tuple(oval),
            tuple(f" {v + 1:>{width}} " for v in range(n)),
            tuple("bold white on dark_blue" if v % 2 else "bold black on light_sky_blue1" for v in range(n)),
        ),
        encoding=one_hot(table.modulus),
        base_heuristic=zero_heuristic(n, n),
    )
