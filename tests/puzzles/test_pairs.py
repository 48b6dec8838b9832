"""Pairs of steps, against a plain way of classifying them."""

from pathlib import Path

import numpy as np
import pytest

import undershoot as us
from odd_puzzles import FILES, odd_puzzle
from undershoot.arrays import U8
from undershoot.puzzles.moves import MoveTable, Steps
from undershoot.puzzles.pairs import Pair, Pairs, classify_pairs

NAMES = ["tiles-2x3", "tiles-4x4-blank-first", "cube-2x2", "cube-3x3-qtm", "lights-out-3x3", "pancake-7", "topspin-8-4"]


def plainly(table: MoveTable, steps: Steps) -> U8:
    """Everything that two steps do as bytes, in dictionaries."""
    contexts, width, cells = steps.source.shape
    result = np.full((contexts, width, width), Pair.NEW, dtype=np.uint8)
    for c in range(contexts):
        single, both, named = {}, {}, {}
        for x in np.flatnonzero(steps.legal[c]).tolist():
            single[steps.source[c, x].tobytes() + steps.shift[c, x].tobytes()] = int(steps.cost[c, x])
            then = int(steps.landing[c, x])
            for y in np.flatnonzero(steps.legal[then]).tolist():
                order = steps.source[then, y]
                shift = (steps.shift[c, x][order].astype(int) + steps.shift[then, y]) % table.modulus
                effect = steps.source[c, x][order].tobytes() + shift.astype(np.uint8).tobytes()
                actions = int(steps.action[c, x]), int(steps.action[then, y])
                both[x, y] = effect, actions, int(steps.cost[c, x]) + int(steps.cost[then, y])
                named[actions] = effect
        for (x, y), (effect, (first, second), cost) in both.items():
            if effect == np.arange(cells, dtype=np.uint8).tobytes() + bytes(cells):
                result[c, x, y] = Pair.UNDONE
            elif effect in single and single[effect] <= cost:
                result[c, x, y] = Pair.ONE_STEP
            elif second < first and named.get((second, first)) == effect:
                result[c, x, y] = Pair.EXCHANGED
    return result


@pytest.mark.parametrize("name", [*NAMES, *FILES])
def test_pairs_come_to_what_they_do(name: str, tmp_path: Path) -> None:
    puzzle = odd_puzzle(tmp_path, name) if name in FILES else us.puzzle(name)
    for steps in (puzzle.table.forward, puzzle.table.backward):
        assert (classify_pairs(puzzle.table, steps) == plainly(puzzle.table, steps)).all()


def test_pairs_can_be_asked_for_one_by_one() -> None:
    table = us.puzzle("tiles-3x3").table
    contexts, steps = np.nonzero(table.forward.legal)
    asked = [Pairs(table, table.forward).after(contexts[k : k + 1], steps[k : k + 1]) for k in range(len(steps))]
    assert (np.concatenate(asked) == classify_pairs(table, table.forward)[contexts, steps]).all()
