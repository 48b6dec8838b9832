"""Heuristics against exact costs, and what is said about them."""

import numpy as np
import pytest

import undershoot as us
from undershoot.arrays import F32, States
from undershoot.guarantees import NO_GUARANTEE, PROVEN, Guarantee, LabelKind, Labels, Rounding, Standing
from undershoot.heuristics.combined import Largest, rounded
from undershoot.heuristics.table import TableHeuristic
from undershoot.oracles.breadth_first import explore


@pytest.mark.parametrize("name", ["lights-out-3x3", "lights-out-5x5", "lights-out-2x3", "lights-out-4x4", "lights-out-1x2"])
def test_gf2_is_exact(name: str) -> None:
    puzzle = us.puzzle(name)
    table = us.oracle(puzzle)
    rows = np.unique(np.linspace(0, table.states - 1, 5000).astype(int))
    states = np.concatenate([table.states_of_rows(int(row), int(row) + 1) for row in rows])
    assert (us.heuristic(puzzle, "gf2")(states) == table.distance(states)).all()


def test_gf2_handles_large_boards_up_to_its_limit() -> None:
    puzzle = us.puzzle("lights-out-8x8")
    states = us.scramble(puzzle.table, np.arange(20), 1).states
    values = us.heuristic(puzzle, "gf2")(states)
    assert (values <= np.arange(20)).all()
    assert (values % 2 == np.arange(20) % 2).all()
    with pytest.raises(us.UndershootError, match="gf2 is for Lights Out; tiles-3x3 is another kind"):
        us.heuristic(us.puzzle("tiles-3x3"), "gf2")


@pytest.mark.parametrize("name", ["tiles-3x3", "tiles-2x3", "tiles-2x4", "tiles-3x3-blank-first"])
def test_linear_conflict_lies_between_manhattan_and_the_truth_everywhere(name: str) -> None:
    puzzle = us.puzzle(name)
    table = us.oracle(puzzle)
    states = table.states_of_rows(0, table.states)
    values, base = us.heuristic(puzzle, "linear-conflict")(states), puzzle.base_heuristic(states)
    assert (values <= table.distance(states)).all()
    assert (values >= base).all()
    assert (values > base).any()
    assert ((values - base) % 2 == 0).all()
    with pytest.raises(us.UndershootError, match="linear-conflict is for sliding tiles"):
        us.heuristic(us.puzzle("cube-2x2"), "linear-conflict")


def test_linear_conflict_counts_what_it_says() -> None:
    puzzle = us.puzzle("tiles-3x3")
    h = us.heuristic(puzzle, "linear-conflict")
    for board, extra in (
        ("2 1 3 4 5 6 7 8 0", 2),
        ("3 2 1 4 5 6 7 8 0", 4),
        ("1 2 3 4 5 6 7 8 0", 0),
        ("4 2 3 1 5 6 7 8 0", 2),
    ):
        state = np.array([[int(v) for v in board.split()]], dtype=np.uint8)
        assert h(state)[0] == puzzle.base_heuristic(state)[0] + extra


@pytest.mark.parametrize("name", ["lights-out-3x3", "tiles-3x3", "pancake-8", "cube-2x2", "topspin-8-4"])
def test_base_heuristics_never_overestimate(name: str) -> None:
    puzzle = us.puzzle(name)
    table = us.oracle(puzzle)
    for start in range(0, table.states, 1 << 18):
        states = table.states_of_rows(start, start + (1 << 18))
        assert (puzzle.base_heuristic(states) <= table.distance(states)).all()


def test_a_table_of_a_ball_is_one_more_than_its_radius_outside() -> None:
    puzzle = us.puzzle("tiles-3x3")
    whole, ball = us.oracle(puzzle), TableHeuristic(explore(puzzle, radius=10))
    states = puzzle.sample(500, 1)
    assert (ball(states) == np.minimum(whole.distance(states), 11)).all()
    results = us.solve_many(puzzle, states[:50], ball)
    assert [result.cost for result in results] == whole.distance(states[:50]).tolist()
    assert TableHeuristic(whole)(np.array([[1, 2, 3, 4, 5, 6, 8, 7, 0]], dtype=np.uint8)).tolist() == [32]


def test_the_largest_of_several() -> None:
    puzzle = us.puzzle("tiles-3x3")
    both = us.heuristic(puzzle, "base+linear-conflict")
    states = puzzle.sample(100, 2)
    assert (both(states) == us.heuristic(puzzle, "linear-conflict")(states)).all()
    assert both.guarantee is not NO_GUARANTEE
    assert both.guarantee == PROVEN
    assert both.name == "max(base, linear-conflict)"
    with pytest.raises(us.UndershootError, match="different puzzles"):
        Largest((us.heuristic(puzzle, "base"), us.heuristic(us.puzzle("tiles-2x3"), "base")))
    with pytest.raises(us.UndershootError, match=r'no heuristic "bose"\. Did you mean "base"'):
        us.heuristic(puzzle, "bose")


def test_rounding_up_stays_admissible_and_is_stronger() -> None:
    puzzle = us.puzzle("lights-out-3x3")
    table = us.oracle(puzzle)
    states = table.states_of_rows(0, table.states)
    truth = table.distance(states)

    class Fraction:
        name, fingerprint, guarantee, rounding = "fraction", puzzle.table.fingerprint, PROVEN, Rounding.NONE

        def __call__(self, states: States) -> F32:
            return (table.distance(states) * 0.61).astype(np.float32)

    plain = Fraction()
    none, whole, parity = (rounded(plain, puzzle, rounding)(states) for rounding in Rounding)
    assert (none <= whole).all()
    assert (whole <= parity).all()
    assert (parity <= truth).all()
    assert (parity % 2 == truth % 2).all()
    assert none.mean() < whole.mean() < parity.mean()
    with pytest.raises(us.UndershootError, match="no parity to round to"):
        rounded(plain, us.puzzle("cube-2x2"), Rounding.PARITY)


def test_guarantees_join_as_they_should() -> None:
    def sampled(population: str, rate: float, confidence: float) -> Guarantee:
        return Guarantee(Standing.SAMPLED, population=population, violation_rate=rate, confidence=confidence, labels=1000)

    ball = Guarantee(Standing.PROVEN, within=6)
    assert PROVEN.joined(PROVEN) == PROVEN
    assert PROVEN.joined(ball) == ball == ball.joined(Guarantee(Standing.PROVEN, within=9))
    assert PROVEN.joined(NO_GUARANTEE) == NO_GUARANTEE == NO_GUARANTEE.joined(PROVEN)
    one, two, other = (
        sampled("uniform states", 0.01, 0.99),
        sampled("uniform states", 0.02, 0.95),
        sampled("scrambles", 0.1, 0.9),
    )
    assert PROVEN.joined(one) == one == one.joined(PROVEN)
    joined = one.joined(two)
    assert (joined.violation_rate, joined.confidence) == pytest.approx((0.03, 0.94))
    assert one.joined(other) == NO_GUARANTEE == one.joined(ball)
    assert str(PROVEN) == "never overestimates"
    assert str(ball) == "never overestimates within 6 of the goal"
    assert str(one) == "overestimates on at most 0.01 of uniform states, with confidence 0.99 from 1,000 labels"
    assert str(NO_GUARANTEE) == "nothing is known about overestimates"


@pytest.mark.parametrize("name", ["lights-out-4x4", "tiles-3x4", "pancake-9", "cube-2x2"])
def test_base_is_the_formula_of_the_puzzle(name: str) -> None:
    puzzle = us.puzzle(name)
    states = puzzle.sample(500, 3)
    np.testing.assert_array_equal(us.heuristic(puzzle, "base")(states), puzzle.base_heuristic(states))


def test_labels_are_costs() -> None:
    costs = np.array([3, 4], dtype=np.float32)
    assert len(Labels(LabelKind.EXACT, costs)) == 2
    for wrong in (-costs, costs * np.nan):
        with pytest.raises(us.UndershootError, match="from 0"):
            Labels(LabelKind.EXACT, wrong)
