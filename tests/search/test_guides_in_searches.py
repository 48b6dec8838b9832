"""A heuristic inside the loop leads to the very same search as outside it, and is held to its word as strictly."""

from dataclasses import replace

import numpy as np
import pytest

import undershoot as us
from outside import Outside
from undershoot.errors import Contradiction
from undershoot.guarantees import NO_GUARANTEE, PROVEN, Guarantee
from undershoot.heuristics.analytic import Additive
from undershoot.heuristics.neural import Network, NeuralHeuristic
from undershoot.puzzles.base_heuristics import BaseHeuristic
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.options import SearchOptions, Ties

OPTIONS = [SearchOptions(), SearchOptions(weight=1.5, ties=Ties.SHALLOW), SearchOptions(expand_per_step=3, max_expanded=40)]


@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "weighted", "three at a time"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("tiles-3x3", kind) for kind in ("base", "linear-conflict", "table", "learned", "small", "paper", "base+small")),
        *(("cube-2x2", kind) for kind in ("table", "paper", "learned")),
        *(("lights-out-5x5", kind) for kind in ("gf2", "learned")),
        ("pancake-8", "base"),
    ],
)
def test_searches_are_the_same_inside_the_loop_and_outside(name: str, kind: str, options: SearchOptions) -> None:
    puzzle = us.puzzle(name)
    states = us.scramble(puzzle.table, np.arange(20) % 9, 4).states
    heuristic = us.heuristic(puzzle, kind)
    inside, outside, threads = (
        [replace(result, seconds=0) for result in us.solve_many(puzzle, states, guide, options, threads=count)]
        for guide, count in ((heuristic, 1), (Outside(heuristic), 1), (heuristic, 2))
    )
    assert inside == outside == threads


def formula(puzzle: Puzzle, cost: int, guarantee: Guarantee) -> Additive:
    costs = np.full((puzzle.table.cells, puzzle.table.values), cost, dtype=np.int32)
    return Additive("by formula", puzzle.table, BaseHeuristic("constant", costs), guarantee)


@pytest.mark.parametrize("wrap", [lambda heuristic: heuristic, Outside], ids=["inside", "outside"])
def test_impossible_values_are_refused_inside_the_loop_as_outside(wrap: type) -> None:
    puzzle = us.puzzle("tiles-3x3")
    state = puzzle.parse("D")
    with pytest.raises(
        us.UndershootError, match=r"by formula gives -9.0, though it claims that it never overestimates, for 1 2"
    ):
        us.solve(puzzle, state, wrap(formula(puzzle, -1, PROVEN)))
    with pytest.raises(us.UndershootError, match=r"by formula gives -9.0, though it claims whole values from 0, for 1 2"):
        us.solve(puzzle, state, wrap(formula(puzzle, -1, NO_GUARANTEE)))
    with pytest.raises(Contradiction, match="says 9 of a state from which a solution costs 0"):
        us.solve(puzzle, puzzle.table.goals, wrap(formula(puzzle, 1, PROVEN)))
    width = puzzle.encoding.width
    layers = (np.full((width, 4), 1e38, dtype=np.float32), np.full((4, 1), 1e38, dtype=np.float32))
    endless = NeuralHeuristic(puzzle, Network(layers, (np.zeros(4, dtype=np.float32), np.zeros(1, dtype=np.float32))))
    with pytest.raises(us.UndershootError, match="the heuristic network gives inf, for 1 2 3"):
        us.solve(puzzle, state, wrap(endless))
    if wrap is not Outside:
        with pytest.raises(us.UndershootError, match="the heuristic network gives inf for 1 2 3"):
            us.solve(puzzle, state, endless, SearchOptions(algorithm=us.Algorithm.IDA))
