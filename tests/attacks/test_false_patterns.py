"""Puzzles on which patterns or IDA* could say something false: moves, goals and starts unlike those of tiles and cubes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undershoot as us
from undershoot.errors import Contradiction, NotAvailable
from undershoot.experiments.comparison import check_agreement
from undershoot.guarantees import NO_GUARANTEE, PROVEN
from undershoot.heuristics.analytic import Additive
from undershoot.heuristics.neural import Network, NeuralHeuristic
from undershoot.kernels.compiler import compiled
from undershoot.pattern_tables.pattern import Pattern, rank_by
from undershoot.pattern_tables.ranking import rank_of, turn_pieces, unrank_places
from undershoot.pattern_tables.sets import pattern_set
from undershoot.puzzles.base_heuristics import BaseHeuristic
from undershoot.puzzles.pieces import pieces_of
from undershoot.search.astar import astar_batch


def slide(name: str, by: int, cells: list[int]) -> str:
    """A move of the blank on a board of nine cells."""
    listed = ", ".join(f'{cell} = "({cell} {cell + by})"' for cell in cells)
    return f"{name} = {{ at = {{ {listed} }} }}\n"


SLIDES = (
    slide("U", 3, [1, 2, 3, 4, 5, 6])
    + slide("D", -3, [4, 5, 6, 7, 8, 9])
    + slide("L", 1, [1, 2, 4, 5, 7, 8])
    + slide("R", -1, [2, 3, 5, 6, 8, 9])
)
FILES = {
    "swaps beside the cursor": f'goal = "1 2 3 4 5 6 7 8 0"\ncursor = "0"\n[moves]\n{SLIDES}'
    'S = { at = { 9 = "(1 2)" } }\nT = { at = { 9 = "(2 3)" } }\n',
    "goals that mix kinds": 'goals = ["a b c d e f", "e b f a c d", "f c a b d e"]\n[moves]\n'
    'm0 = { cycles = "(1 2 3 4)", cost = 7 }\nm1 = { cycles = "(5 6)", cost = 2 }\n'
    'm3 = { cycles = "(1 2 3)(5 6)", cost = 2 }\nm4 = { cycles = "(1 4 2 3)", cost = 4 }\n',
    "a cursor and another kind": 'goal = "a b c d"\ncursor = "b"\n[moves]\n'
    'm2 = { at = { 1 = "(1 2)(3 4)", 2 = "(3 4)" }, cost = 9 }\n'
    'm3 = { at = { 2 = "(1 2)(3 4)", 1 = "(1 2)(3 4)" }, cost = 1 }\n',
    "a cursor that never moves": 'goal = "_ a b c"\ncursor = "_"\n[moves]\n'
    'S = { at = { 1 = "(2 3)" } }\nT = { at = { 1 = "(3 4)" } }\n',
    "a cursor that only arrives": 'goal = "a b c d e"\ncursor = "c"\n[moves]\n'
    'm0 = { at = { 1 = "(1 3 2)(4 5)", 2 = "(1 2)" }, cost = 7 }\n'
    'm1 = { at = { 2 = "(2 3)", 3 = "(4 5)", 1 = "(1 2)(4 5)" }, cost = 8 }\n',
    "pieces of two cells beside a cursor": 'goal = "a b c d e f"\ncursor = "e"\npieces = ["1 2", "3 4"]\n[moves]\n'
    'x = { at = { 6 = "(1 3 2 4)" } }\ny = { at = { 5 = "(1 4)(2 3)(5 6)", 6 = "(5 6)" } }\n',
    "pieces of two cells that turn beside a cursor": 'goal = "a b c d e f"\ncursor = "f"\npieces = ["1 2", "3 4"]\n[moves]\n'
    'x = { at = { 5 = "(1 4)(2 3)(5 6)", 6 = "(1 2)(3 4)" } }\ny = { at = { 6 = "(1 4)(2 3)(5 6)" } }\n',
    "the name of a cube": 'goal = "a b c d"\n[moves]\nm = "(1 2 3 4)"\nn = "(1 2)"\n',
    "a cursor inside a piece": 'goal = "a b c d e f"\ncursor = "a"\npieces = ["1 2", "3 4", "5 6"]\n[moves]\n'
    'm = { at = { 1 = "(1 3)(2 4)", 3 = "(3 5)(4 6)", 5 = "(5 1)(6 2)" } }\n',
    "a cursor that cannot leave": 'goal = "b c g d f e a"\ncursor = "g"\n[moves]\n'
    'm0 = { at = { 2 = "(2 3)", 4 = "(4 5)", 5 = "(5 7)", 3 = "(3 4)", 7 = "(5 7)", 6 = "(5 6)" }, cost = 2 }\n',
    "pieces that look alike, listed the other way round": 'goal = "a c b b a c a a"\npieces = ["1 2", "3 4", "6 5", "8 7"]\n'
    '[moves]\nm0 = "(5 7)(6 8)"\nm1 = "(1 5 3)(2 6 4)"\n',
    "dear moves": 'goal = "a b c d"\n[moves]\nM = { cycles = "(1 2 3 4)", cost = 200 }\nN = { cycles = "(1 2)", cost = 3 }\n',
}


def puzzle_of(name: str, folder: Path) -> us.Puzzle:
    path = folder / "puzzle.toml"
    called = "cube-3x3-mine" if name == "the name of a cube" else "odd"
    path.write_text(f'name = "{called}"\n{FILES[name]}')
    return us.puzzle(path)


@pytest.mark.parametrize("algorithm", list(us.Algorithm))
@pytest.mark.parametrize("name", FILES)
def test_what_is_called_proven_is_true(name: str, algorithm: us.Algorithm, tmp_path: Path) -> None:
    puzzle = puzzle_of(name, tmp_path)
    exact = us.oracle(puzzle)
    states = exact.states_of(np.arange(0, exact.states, max(1, exact.states // 30)))
    costs = exact.distance(states)
    guides: list[Any] = [us.heuristic(puzzle, "zero")]
    for chosen in (None, "all", "1+1", "2+1", "4-2"):
        try:
            guides.append(us.patterns(puzzle, chosen))
        except us.UndershootError:
            continue  # not available, in a sentence
    for guide in guides:
        assert (guide(states) <= costs).all()
        for limit in (3, 20_000):
            options = us.SearchOptions(algorithm=algorithm, max_expanded=limit)
            for result, cost in zip(us.solve_many(puzzle, states, guide, options), costs.tolist(), strict=True):
                assert result.status is not us.Status.UNSOLVABLE
                assert result.lower_bound <= cost
                assert result.optimality.kind.value != "proven" or result.cost == cost


def test_what_is_not_available_says_so(tmp_path: Path) -> None:
    for name, message in (
        ("goals that mix kinds", "no moves bring it"),
        ("a cursor that never moves", "never moves"),
        ("dear moves", "do not fit an entry"),
        ("pieces that look alike, listed the other way round", "cannot be told apart"),
        ("a cursor inside a piece", "its cursor on a piece of several cells"),
    ):
        with pytest.raises(NotAvailable, match=message):
            us.patterns(puzzle_of(name, tmp_path))


def test_a_piece_on_a_slot_of_another_kind_is_refused_not_looked_up(tmp_path: Path) -> None:
    symbols = ["a1", "a2", *(f"b{i}" for i in range(1, 65))]
    ring = " ".join(str(i) for i in range(3, 67))
    path = tmp_path / "kinds.toml"
    path.write_text(f'name = "kinds"\ngoal = "{" ".join(symbols)}"\n[moves]\nL = "(1 2)"\nR = "({ring})"\n')
    puzzle = us.puzzle(path)
    guide = us.patterns(puzzle, "a1 b1 b2 b3")
    mixed = puzzle.table.goals.copy()
    mixed[0, [0, 40]] = mixed[0, [40, 0]]
    for algorithm in us.Algorithm:
        with pytest.raises(us.UndershootError, match=r"lacks a piece|gives nan"):
            us.solve(puzzle, mixed, guide, us.SearchOptions(algorithm=algorithm, max_expanded=10))


@compiled
def unranked(how: Any, number: Any, base: Any, slots: Any) -> None:
    unrank_places(how, number // how.block, base)
    turn_pieces(how, number % how.block, base, slots)


@pytest.mark.parametrize("name", [*FILES, "cube-2x2", "tiles-2x3", "cube-3x3"])
def test_numbers_of_arrangements_are_one_to_one(name: str, tmp_path: Path) -> None:
    puzzle = puzzle_of(name, tmp_path) if name in FILES else us.puzzle(name)
    try:
        pieces = pieces_of(puzzle)
    except NotAvailable:
        return
    for count in (2, 3, 8):
        how = rank_by(pieces, range(len(pieces))[-count:])
        base, slots = np.zeros((2, len(how.kind)), dtype=np.int64)
        for number in np.unique(np.linspace(0, how.size - 1, 500).astype(np.int64)).tolist():
            unranked(how, number, base, slots)
            assert rank_of(how, slots) == number


def test_a_pattern_lists_different_pieces() -> None:
    pieces = pieces_of(us.puzzle("tiles-2x3"))
    for followed in ((), (0, 0), (9,), (pieces.cursor or 0,)):
        with pytest.raises(us.UndershootError, match="different pieces"):
            Pattern(pieces, followed, is_additive=True)


@pytest.mark.parametrize("copies", [51, 52])
def test_more_looks_than_a_byte_counts(copies: int) -> None:
    puzzle = us.puzzle("tiles-2x3")
    exact = us.oracle(puzzle)
    states = exact.states_of(np.arange(exact.states))
    many = us.patterns(puzzle, "+".join(["1-1-1-1-1"] * copies + ["5"]))
    assert (many(states) <= exact.distance(states)).all()


@pytest.mark.parametrize("extra", [1.0, 3.0])
def test_a_goal_is_found_whatever_is_said_of_it(extra: float) -> None:
    """IDA* looks whether a state is a goal where h says that it may be one."""
    puzzle = us.puzzle("tiles-2x3")
    costs = np.zeros((6, 6), dtype=np.int32)
    costs[0, 1] = int(extra)  # the goal, and every state with its first tile at home
    options = us.SearchOptions(algorithm=us.Algorithm.IDA, max_expanded=10_000)
    states = us.oracle(puzzle).states_of(np.arange(0, 360, 40))
    free = Additive("too much", puzzle.table, BaseHeuristic("too much", costs), NO_GUARANTEE)
    for result, cost in zip(us.solve_many(puzzle, states, free, options), us.oracle(puzzle).distance(states), strict=True):
        assert result.status is us.Status.SOLVED
        assert result.lower_bound <= cost <= (result.cost or 0)
    with pytest.raises(Contradiction, match="of a state from which a solution costs 0"):
        us.solve(puzzle, states[1], Additive("too much", puzzle.table, BaseHeuristic("too much", costs), PROVEN), options)


def test_values_beyond_all_costs_do_not_make_a_puzzle_unsolvable() -> None:
    puzzle = us.puzzle("tiles-3x3")
    layers = (np.zeros((puzzle.encoding.width, 2), dtype=np.float32), np.zeros((2, 1), dtype=np.float32))
    for value in (2.0**20 + 1, 1e13, 1e30):
        network = Network(layers, (np.zeros(2, dtype=np.float32), np.array([value], dtype=np.float32)))
        with pytest.raises(us.UndershootError, match="IDA\\* takes values up to 1,048,576"):
            us.solve(
                puzzle,
                puzzle.parse("D R"),
                NeuralHeuristic(puzzle, network),
                us.SearchOptions(algorithm=us.Algorithm.IDA),
            )


def test_many_pieces_are_not_numbered(tmp_path: Path) -> None:
    ring = " ".join(map(str, range(1, 25)))
    goal = " ".join(f"s{i}" for i in range(24))
    (tmp_path / "ring.toml").write_text(f'name = "ring"\ngoal = "{goal}"\n[moves]\nA = "({ring})"\nB = "(1 2)"\n')
    puzzle = us.puzzle(tmp_path / "ring.toml")
    assert us.solve(puzzle, puzzle.parse("A B"), us.patterns(puzzle, "2+2")).cost == 24
    with pytest.raises(us.UndershootError, match="more arrangements than can be numbered"):
        us.patterns(puzzle, "all")
    assert pattern_set(puzzle).name


@pytest.mark.parametrize(
    ("name", "chosen"), [("cube-2x2", "inverse"), ("cube-2x2", "4+inverse+inverse"), ("tiles-3x3", "reflected")]
)
def test_a_set_says_what_to_look_at(name: str, chosen: str) -> None:
    with pytest.raises(us.UndershootError, match=r"says how to look|more than once"):
        us.patterns(us.puzzle(name), chosen)


def test_searches_that_contradict_each_other_are_not_compared() -> None:
    puzzle = us.puzzle("tiles-2x3")
    heuristics = [us.heuristic(puzzle, "base"), us.heuristic(puzzle, "zero")]
    right, other = (astar_batch(puzzle, puzzle.sample(3, 1), heuristic) for heuristic in heuristics)
    check_agreement(heuristics, [right, other])
    wrong = replace(right, results=[*right.results[:2], replace(right.results[2], lower_bound=99, cost=None)])
    with pytest.raises(Contradiction, match=r"instance 3 costs at least 99 by .*, but .* found a solution of cost"):
        check_agreement(heuristics, [wrong, other])
