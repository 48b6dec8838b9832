"""A rate of solutions is one of A*: whatever else could find solutions in the same run must not count among them."""

from dataclasses import replace

import numpy as np
import pytest

import undershoot as us
from undershoot.arrays import F32
from undershoot.bundles.bundle import Bundle
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import calibrate
from undershoot.guarantees import OptimalityKind
from undershoot.heuristics.calibrated import CalibratedHeuristic
from undershoot.heuristics.neural import Network
from undershoot.puzzles.catalogue import from_text
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.options import Algorithm, SearchOptions

ALPHA = 0.003
SWITCHES = ["x", *(f"y{number}" for number in range(1, 9)), "w"]


def switches() -> Puzzle:
    """Ten switches, each for 10, and the first and last of them at once for 21."""
    goal = " ".join(f"a{k} b{k}" for k in range(len(SWITCHES)))
    moves = [f'{name} = {{ cycles = "({2 * k + 1} {2 * k + 2})", cost = 10 }}' for k, name in enumerate(SWITCHES)]
    both = f'u = {{ cycles = "(1 2)({2 * len(SWITCHES) - 1} {2 * len(SWITCHES)})", cost = 21 }}'
    return from_text("\n".join(['name = "switches"', f'goal = "{goal}"', "[moves]", *moves, both]), "a test")


def network_that_leads_ida_astray(puzzle: Puzzle) -> Network:
    """Fine along an optimal path of every state for A*; on others, where `w` is left alone, far too much."""
    encoding = puzzle.encoded("cells")
    hidden: F32 = np.zeros((encoding.width, 3), dtype=np.float32)
    for number, name in enumerate(SWITCHES):
        hidden[encoding.features[2 * number, 2 * number + 1, 0]] = [1000, 1, 1] if name == "w" else [10, 0, -1]
    return Network(
        (hidden, np.array([[1], [10], [5000]], dtype=np.float32)),
        (np.array([-1000, 0, 0], dtype=np.float32), np.zeros(1, dtype=np.float32)),
    )


@pytest.fixture(scope="module")
def calibrated() -> CalibratedHeuristic:
    puzzle = switches()
    raw = Bundle(puzzle, network_that_leads_ida_astray(puzzle)).raw
    return CalibratedHeuristic(raw, calibrate(raw, "trajectory", Wanted(alpha=ALPHA, confidence=None, n=3000)))


@pytest.mark.parametrize("limit", [100, 200, 300])
def test_of_all_instances_no_more_end_above_the_optimum_than_is_said_wherever_a_limit_strikes(
    calibrated: CalibratedHeuristic, limit: int
) -> None:
    puzzle = calibrated.puzzle
    states = puzzle.sample(1000, 5)
    true_cost = us.oracle(puzzle).distance(states)
    for algorithm in (Algorithm.AUTO, Algorithm.ASTAR):
        results = us.solve_many(puzzle, states, calibrated, SearchOptions(algorithm=algorithm, max_expanded=limit))
        assert any(result.optimality.kind is OptimalityKind.CALIBRATED for result in results)
        assert any(result.status.is_limit for result in results)
        above = sum(result.cost is not None and result.cost > cost for result, cost in zip(results, true_cost, strict=True))
        assert above <= 4 * ALPHA * len(states)


def test_who_is_calibrated_for_astar_gets_astar_alone_and_the_whole_limit(calibrated: CalibratedHeuristic) -> None:
    states = calibrated.puzzle.sample(300, 6)
    options = SearchOptions(algorithm=Algorithm.AUTO, max_expanded=200)
    chosen = us.solve_many(calibrated.puzzle, states, calibrated, options)
    alone = us.solve_many(calibrated.puzzle, states, calibrated, replace(options, algorithm=Algorithm.ASTAR))
    assert {result.algorithm for result in chosen} == {Algorithm.ASTAR}
    assert [(r.status, r.cost, r.expanded) for r in chosen] == [(r.status, r.cost, r.expanded) for r in alone]


def test_others_still_deepen(calibrated: CalibratedHeuristic) -> None:
    puzzle = calibrated.puzzle
    options = SearchOptions(algorithm=Algorithm.AUTO, max_expanded=200)
    results = us.solve_many(puzzle, puzzle.sample(300, 6), calibrated.network, options)
    assert Algorithm.IDA in {result.algorithm for result in results}


@pytest.mark.parametrize("algorithm", [Algorithm.IDA, Algorithm.BOTH])
def test_no_other_search_says_a_rate(calibrated: CalibratedHeuristic, algorithm: Algorithm) -> None:
    puzzle = calibrated.puzzle
    options = SearchOptions(algorithm=algorithm, max_expanded=300)
    results = us.solve_many(puzzle, puzzle.sample(5, 7), calibrated, options)
    assert all(result.optimality.kind is not OptimalityKind.CALIBRATED for result in results)
