"""What is called from Python with the wrong things is answered with one sentence, and one state may be given as such."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undershoot as us

PUZZLE = us.puzzle("tiles-2x3")
BASE = us.heuristic(PUZZLE, "base")
STATES = PUZZLE.sample(3, 1)
ANY: Any = us  # who calls with the wrong types has no type checker


def test_one_state_may_be_a_row() -> None:
    batch, row = us.solve(PUZZLE, STATES[:1], BASE), us.solve(PUZZLE, STATES[0], BASE)
    assert (row.cost, row.actions, row.expanded) == (batch.cost, batch.actions, batch.expanded)


def test_a_heuristic_may_be_named_by_a_path(tmp_path: Path) -> None:
    with pytest.raises(us.UndershootError, match="no heuristic"):
        us.heuristic(us.puzzle("tiles-3x3"), "x" * 5000)
    shipped = us.heuristic(us.puzzle("tiles-3x3"), Path("tiles-3x3"))
    assert shipped.guarantee.is_proven
    with pytest.raises(us.UndershootError, match="no heuristic"):
        us.heuristic(PUZZLE, tmp_path / "none")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ANY.heuristic("base", PUZZLE), 'takes a puzzle first, such as us.puzzle("tiles-3x3"); "base" came'),
        (lambda: ANY.heuristic("tiles-3x3", "base"), '"tiles-3x3" came'),
        (lambda: ANY.heuristic(PUZZLE, None), "or the path of a bundle; nothing came"),
        (lambda: ANY.heuristic(PUZZLE, PUZZLE), "an object of type Puzzle came"),
        (lambda: ANY.heuristic(PUZZLE, ""), 'a heuristic has a name, such as "base"'),
        (lambda: ANY.load(PUZZLE), "a bundle is needed, or a name such as tiles-3x3; an object of type Puzzle came"),
        (lambda: ANY.check(None), "the path of a bundle is needed"),
        (lambda: ANY.calibrate(3), "an object of type int came"),
        (lambda: ANY.puzzle(PUZZLE), "a puzzle has a name, such as tiles-3x3"),
        (lambda: ANY.oracle("tiles-2x3"), "us.oracle takes a puzzle first"),
        (lambda: ANY.solve("tiles-2x3", STATES[:1], BASE), "us.solve takes a puzzle first"),
        (lambda: ANY.solve(STATES[:1], PUZZLE, BASE), "an object of type ndarray came"),
        (lambda: ANY.solve_many("tiles-2x3", STATES, BASE), "takes a puzzle first"),
        (lambda: ANY.solve(PUZZLE, STATES[:1], "base"), 'takes a heuristic, such as us.heuristic(puzzle, "base"); "base"'),
        (lambda: ANY.solve(PUZZLE, STATES, BASE), "solve takes one state, 3 came"),
        (lambda: ANY.solve(PUZZLE, STATES[0].tolist(), BASE), "states must be an array uint8[B, 6]; list came"),
        (lambda: ANY.solve(PUZZLE, STATES[0].astype(np.int64), BASE), "states must be an array uint8[B, 6]; int64[1, 6] came"),
        (lambda: ANY.solve_many(PUZZLE, STATES[0], BASE), "states must be an array uint8[B, 6]; uint8[6] came"),
    ],
)
def test_wrong_arguments_are_answered_with_a_sentence(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(us.UndershootError) as refusal:
        call()
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)
