"""Where nothing can be enumerated, searches prove what states cost; here where the oracle can look over their shoulders."""

from collections.abc import Callable

import numpy as np
import pytest

import undershoot as us
from undershoot.bundles.reading import read_bundle
from undershoot.calibration import populations, proofs
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.populations import LabelSource, Population, draw
from undershoot.calibration.trajectory import of_instances, of_proven_paths
from undershoot.errors import NotAvailable, SpaceTooLarge
from undershoot.guarantees import Heuristic, LabelKind, OptimalityKind
from undershoot.heuristics.analytic import base
from undershoot.heuristics.neural import NeuralHeuristic
from undershoot.puzzles.problem import Problem

WANTED = Wanted(alpha=0.1, confidence=0.9, n=200, seed=4)


@pytest.fixture
def network() -> NeuralHeuristic:
    raw = read_bundle("tiles-3x3-paper", with_calibration=False).raw
    assert isinstance(raw, NeuralHeuristic)
    return raw


@pytest.fixture
def by_base(monkeypatch: pytest.MonkeyPatch) -> Callable[[Problem], Heuristic]:
    """Proofs without pattern tables, which would have to be made."""
    monkeypatch.setattr(proofs, "proving_heuristic", base)
    return base


@pytest.fixture
def nothing_enumerable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise SpaceTooLarge("too large")

    monkeypatch.setattr(populations, "oracle", refuse)


@pytest.mark.usefixtures("by_base")
def test_a_proven_path_scores_no_less_than_the_best_one(network: NeuralHeuristic) -> None:
    best, proven = of_instances(network, WANTED), of_proven_paths(network, WANTED)
    assert proven.population == best.population
    assert len(proven.scores) == len(best.scores)
    assert np.isfinite(proven.scores).all()
    assert (proven.scores >= best.scores - 1e-5).all()
    assert (proven.scores > best.scores + 1e-5).any()


@pytest.mark.usefixtures("by_base")
def test_a_stopped_proof_scores_infinity_and_none_is_dropped(network: NeuralHeuristic, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = of_proven_paths(network, WANTED).scores
    monkeypatch.setattr(proofs, "MOST_EXPANDED", 3_000)
    stopped = of_proven_paths(network, WANTED).scores
    assert len(stopped) == len(whole)
    is_stopped = np.isinf(stopped)
    assert 0 < is_stopped.sum() < len(stopped)
    assert (stopped[~is_stopped] == whole[~is_stopped]).all()


@pytest.mark.usefixtures("by_base", "nothing_enumerable")
def test_too_many_stopped_proofs_are_refused(network: NeuralHeuristic, monkeypatch: pytest.MonkeyPatch) -> None:
    from undershoot.calibration.catalogue import calibrator

    fitted = calibrator("trajectory")(network, WANTED)
    assert str(fitted.guarantee).startswith("lets A* find an optimum on at least 0.9 of uniform states")
    monkeypatch.setattr(proofs, "MOST_EXPANDED", 300)
    with pytest.raises(us.UndershootError, match=r"found no proof for .* of 200 instances, which count as missed"):
        calibrator("trajectory")(network, WANTED)


@pytest.mark.usefixtures("by_base", "nothing_enumerable")
def test_the_rate_of_solutions_holds_and_only_of_astar(network: NeuralHeuristic, monkeypatch: pytest.MonkeyPatch) -> None:
    from undershoot.calibration.catalogue import calibrator
    from undershoot.heuristics.calibrated import CalibratedHeuristic

    heuristic = CalibratedHeuristic(network, calibrator("trajectory")(network, WANTED))
    monkeypatch.undo()
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(300, seed=77)
    costs = us.oracle(puzzle).distance(states)
    results = us.solve_many(puzzle, states, heuristic)
    missed = np.array([result.cost for result in results]) > costs
    assert missed.mean() <= 0.1
    assert {result.optimality.kind for result in results} <= {OptimalityKind.CALIBRATED, OptimalityKind.PROVEN}
    for algorithm in (us.Algorithm.IDA, us.Algorithm.BOTH):
        others = us.solve_many(puzzle, states[:20], heuristic, us.SearchOptions(algorithm=algorithm))
        assert all(result.optimality.kind is not OptimalityKind.CALIBRATED for result in others)


@pytest.mark.usefixtures("by_base", "nothing_enumerable")
@pytest.mark.parametrize("population", [Population.UNIFORM, Population.SCRAMBLES])
def test_labels_of_proofs_are_the_true_costs(population: Population, monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("tiles-3x3")
    proven = draw(puzzle, population, LabelSource.EXACT, 50, seed=3, depths=(4, 20))
    monkeypatch.setattr(proofs, "MOST_EXPANDED", 20)
    bounds = draw(puzzle, population, LabelSource.EXACT, 50, seed=3, depths=(4, 20))
    true_cost = us.oracle(puzzle).distance(proven.states)
    assert proven.labels.kind is LabelKind.EXACT
    assert (proven.labels.costs == true_cost).all()
    assert bounds.labels.kind is LabelKind.LOWER
    assert (bounds.labels.costs <= true_cost).all()
    assert len(bounds.labels) == len(proven.labels)


@pytest.mark.usefixtures("by_base")
def test_samples_are_certified_by_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("tiles-3x3")
    mine = us.wrap(puzzle, lambda states: np.full(len(states), 20.5), name="constant")
    known = us.certify(mine, sample=100).findings
    monkeypatch.setattr("undershoot.workflows.certification.is_enumerable", lambda puzzle: False)
    proven = us.certify(mine, sample=100).findings
    assert (proven.checked, proven.violations, proven.mean_true) == (100, known.violations, known.mean_true)
    monkeypatch.setattr(proofs, "MOST_EXPANDED", 100)
    stopped = us.certify(mine, sample=100).findings
    assert stopped.violations > known.violations > 0
    assert (known.compared_with, proven.compared_with, known.stopped) == ("true cost", "true cost", 0)
    assert stopped.stopped > 0
    assert "lower bound" in stopped.compared_with
    assert stopped.mean_true < known.mean_true


@pytest.mark.usefixtures("by_base")
def test_where_no_proof_is_near_the_message_says_what_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "MOST_EXPANDED_FIRST", 1000)
    puzzle = us.puzzle("cube-3x3")
    with pytest.raises(NotAvailable, match=r"none was proven within 1,000 expansions\. Possible here: states nearer"):
        draw(puzzle, Population.UNIFORM, LabelSource.EXACT, 20, seed=0)


@pytest.mark.usefixtures("by_base")
def test_solutions_of_the_15_puzzle_are_calibrated() -> None:
    puzzle = us.puzzle("tiles-4x4")
    manhattan = base(puzzle)
    mine = us.wrap(puzzle, lambda states: 1.2 * manhattan(states), name="more than Manhattan")
    wanted = Wanted(alpha=0.1, confidence=0.9, n=100, population=Population.SCRAMBLES, depths=(10, 20, 30))
    done = us.calibrate(mine, "trajectory", wanted)
    state = puzzle.parse("1 2 3 4 / 5 6 7 8 / 9 10 0 11 / 13 14 15 12")
    result = us.solve(puzzle, state, done.heuristic, us.SearchOptions(algorithm=us.Algorithm.AUTO))
    assert result.algorithm is us.Algorithm.ASTAR
    assert done.calibration.guarantee.population == "scrambles 10, 20, 30, no undo"
    assert done.calibration.guarantee.solution_probability == pytest.approx(0.8)
