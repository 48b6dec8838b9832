"""Calibrators against their definitions, on small spaces and by hand."""

import math
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import undershoot as us
from test_bundles import some_network
from undershoot.arrays import AnyArray, States
from undershoot.bundles.bundle import Bundle
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import METHODS, calibrate, calibrator
from undershoot.calibration.conformal import conformal
from undershoot.calibration.evidence import Evidence, order_statistic, scores_of_space
from undershoot.calibration.exceptions import exceptions
from undershoot.calibration.grouped import grouped
from undershoot.calibration.maximum import maximum
from undershoot.calibration.populations import LabelSource, Population, draw, exact, lower
from undershoot.calibration.scramble import scramble
from undershoot.calibration.trajectory import path_scores, trajectory
from undershoot.guarantees import Guarantee, LabelKind, OptimalityKind, Rounding, Standing, Subject
from undershoot.heuristics.calibrated import CalibratedHeuristic, Calibration
from undershoot.heuristics.neural import Network, NeuralHeuristic
from undershoot.kernels.scrambles import ScrambleRule, derived_seed
from undershoot.oracles.breadth_first import explore
from undershoot.oracles.distance_table import DistanceTable
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.astar import astar_batch

SMALL = ("lights-out-3x3", "tiles-2x3", "pancake-6", "topspin-8-4")


@cache
def network_for(name: str) -> tuple[NeuralHeuristic, DistanceTable]:
    """A random network whose answers have the size of costs."""
    puzzle = us.puzzle(name)
    distances = explore(puzzle)
    network = some_network(puzzle, (24, 8))
    raw = NeuralHeuristic(puzzle, network).raw(distances.states_of_rows(0, min(distances.states, 5000)))
    factor = np.float32(3 / raw.std())
    shift = np.float32(distances.mean) - factor * np.float32(raw.mean())
    last = (network.weights[-1] * factor, network.biases[-1] * factor + shift)
    scaled = Network((*network.weights[:-1], last[0]), (*network.biases[:-1], last[1]))
    return NeuralHeuristic(puzzle, scaled), distances


def evidence(scores: list[float], kind: LabelKind = LabelKind.EXACT, raw: list[float] | None = None) -> Evidence:
    values = np.array(scores)
    return Evidence("test states", values, kind, np.array(raw or [0.0] * len(scores), dtype=np.float32))


def every_state(heuristic: CalibratedHeuristic, distances: DistanceTable) -> tuple[AnyArray, AnyArray]:
    values = heuristic(distances.states_of_rows(0, distances.states))
    return values, np.repeat(np.arange(len(distances.histogram)), distances.histogram)


@pytest.mark.parametrize("rounding", Rounding)
@pytest.mark.parametrize("method", ["exhaustive", "exceptions"])
@pytest.mark.parametrize("name", SMALL)
def test_proven_methods_never_overestimate_and_are_tight(name: str, method: str, rounding: Rounding) -> None:
    network, distances = network_for(name)
    if rounding is Rounding.PARITY and not network.puzzle.has_cost_parity:
        pytest.skip("no parity")
    calibration = calibrate(network, method, Wanted(rounding=rounding, listed=0.05))
    values, true_cost = every_state(CalibratedHeuristic(network, calibration), distances)
    assert calibration.guarantee.is_proven
    assert (values <= true_cost).all()
    assert (values[: distances.histogram[0]] == 0).all()
    assert (values >= network.puzzle.base_heuristic(distances.states_of_rows(0, distances.states))).all()
    looser = CalibratedHeuristic(network, replace(calibration, margin=calibration.margin - 0.01))
    assert (every_state(looser, distances)[0] > true_cost).any()
    if rounding is not Rounding.NONE:
        assert (values == np.floor(values)).all()
    if rounding is Rounding.PARITY:
        assert ((values - true_cost) % 2 == 0).all()
    if method == "exceptions":
        assert 0 < len(calibration.exceptions) <= 0.05 * distances.states
        weaker = CalibratedHeuristic(network, calibrate(network, "exhaustive", Wanted(rounding=rounding)))
        assert values.mean() > every_state(weaker, distances)[0].mean()


def test_each_method_is_its_formula() -> None:
    scores = [0.3, -1.0, 2.5, 0.1, 0.9]
    assert scramble(evidence(scores, LabelKind.UPPER))[0] == 2.5
    assert scramble(evidence([-3.0, -1.0], LabelKind.UPPER))[0] == 0
    assert scramble(evidence(scores, LabelKind.UPPER))[1].standing is Standing.NONE
    t, guarantee = maximum(evidence(scores), 0.9)
    assert t == 2.5
    assert guarantee.violation_rate == pytest.approx(1 - 0.1 ** (1 / 5))
    assert maximum(evidence([-3.0, -1.0]), 0.9)[0] == -1.0
    # ceil(6 * 0.6) = 4th smallest
    assert conformal(evidence(scores), 0.4, None)[0] == 0.9
    t, listed = exceptions(np.array(scores), 0.4)
    assert (t, listed.tolist()) == (0.3, [False, False, True, False, True])


def test_the_confident_order_statistic_is_the_least_that_the_binomial_allows() -> None:
    scores = np.arange(200.0)
    for alpha, confidence in ((0.05, 0.95), (0.1, 0.9), (0.02, 0.95)):
        k = int(order_statistic("x", scores, alpha, confidence)) + 1
        # The rate is above alpha exactly if at most n - k of n draws exceed the (1 - alpha)-quantile.
        assert stats.binom.cdf(200 - k, 200, alpha) <= 1 - confidence
        assert stats.binom.cdf(200 - k + 1, 200, alpha) > 1 - confidence


def test_too_few_labels_are_refused_with_how_many_are_needed() -> None:
    with pytest.raises(us.UndershootError, match=r"has 50 labels; .* it needs 59"):
        order_statistic("conformal", np.zeros(50), 0.05, 0.95)
    order_statistic("conformal", np.zeros(59), 0.05, 0.95)
    with pytest.raises(us.UndershootError, match=r"has 18 labels; .* it needs 19"):
        order_statistic("conformal", np.zeros(18), 0.05, None)
    order_statistic("conformal", np.zeros(19), 0.05, None)
    with pytest.raises(us.UndershootError, match="no group of"):
        grouped(evidence([0.0] * 50), 0.05, 0.95)
    for alpha, confidence in ((0.0, 0.9), (1.0, None), (0.1, 1.0)):
        with pytest.raises(us.UndershootError, match="allowed are numbers"):
            conformal(evidence([0.0] * 50), alpha, confidence)


def test_upper_bounds_are_refused_by_every_method_that_they_would_make_unsound() -> None:
    upper = evidence([0.0] * 1000, LabelKind.UPPER)
    for fit in (lambda: maximum(upper, 0.9), lambda: conformal(upper, 0.1, 0.9), lambda: grouped(upper, 0.1, 0.9)):
        with pytest.raises(us.UndershootError, match="these 1,000 labels are upper bounds"):
            fit()
    for kind in (LabelKind.UPPER, LabelKind.LOWER):
        with pytest.raises(us.UndershootError, match="`trajectory` needs the exact costs"):
            trajectory(evidence([0.0] * 1000, kind), 0.1, 0.9)
    network, _ = network_for("tiles-2x3")
    for method in ("max", "conformal", "grouped", "trajectory"):
        with pytest.raises(us.UndershootError, match="upper bounds"):
            calibrate(network, method, Wanted(labels=LabelSource.SCRAMBLE, population=Population.SCRAMBLES, n=500))


def test_groups_have_their_own_margins_and_unseen_groups_answer_h0() -> None:
    draw_ = np.random.default_rng(0)
    raw = draw_.choice([0.5, 1.5, 3.5], size=3000, p=[0.5, 0.499, 0.001])
    scores = raw + draw_.normal(size=3000)
    margins, guarantee = grouped(Evidence("x", scores, LabelKind.EXACT, raw.astype(np.int64)), 0.1, 0.9)
    assert [math.isfinite(margin) for margin in margins] == [True, True, False, False, False]
    assert margins[1] - margins[0] == pytest.approx(1, abs=0.2)
    assert guarantee.groups == 2
    network, distances = network_for("tiles-2x3")
    calibrated = CalibratedHeuristic(network, Calibration("grouped", guarantee, group_margins=(math.inf,) * 5))
    states = distances.states_of_rows(1, distances.states)
    np.testing.assert_array_equal(calibrated(states), network.puzzle.base_heuristic(states))


def test_path_scores_are_the_least_over_all_optimal_paths() -> None:
    network, distances = network_for("tiles-2x3")
    scores = scores_of_space(network, distances, 1)
    best = path_scores(distances, scores)
    table = network.puzzle.table

    def slow(states: States) -> float:
        row, cost = (int(found[0]) for found in distances.look_up(states))
        if cost == 0:
            return -math.inf
        children, legal = us.successors(table, states)
        below = [child[None] for child in children[legal] if int(distances.distance(child[None])[0]) == cost - 1]
        return max(float(scores[row]), min(slow(child) for child in below))

    for row in np.random.default_rng(1).integers(distances.states, size=12).tolist():
        states = distances.states_of_rows(row, row + 1)
        if distances.distance(states)[0] <= 12:
            assert best[row] == slow(states)


def test_with_a_margin_for_its_path_a_search_is_optimal() -> None:
    network, distances = network_for("tiles-2x3")
    best = path_scores(distances, scores_of_space(network, distances, 1))
    for row in range(1, distances.states, 17):
        margin = float(best[row])
        calibration = Calibration("trajectory", of_solutions(), margin, rounding=Rounding.INTEGER)
        state = distances.states_of_rows(row, row + 1)
        result = us.solve(network.puzzle, state, CalibratedHeuristic(network, calibration))
        assert result.cost == distances.distance(state)[0]


def of_solutions() -> Guarantee:
    return trajectory(evidence([0.0] * 100), 0.1, 0.9)[1]


def test_search_reports_what_the_calibration_allows() -> None:
    network, _ = network_for("topspin-8-4")
    states = network.puzzle.sample(20, 3)
    kinds = {}
    for method in METHODS:
        calibrated = CalibratedHeuristic(network, calibrate(network, method, Wanted(n=2000, alpha=0.2)))
        results = us.solve_many(network.puzzle, states, calibrated)
        kinds[method] = {r.optimality.kind for r in results if r.gap is None or r.gap > 0 or calibrated.guarantee.is_proven}
        if method == "trajectory":
            (probability,) = {r.optimality.probability for r in results if r.optimality.kind is OptimalityKind.CALIBRATED}
            assert probability == pytest.approx(1 - 0.2 - 0.05)
    for method in ("exhaustive", "exceptions"):
        assert kinds[method] == {OptimalityKind.PROVEN}
    assert kinds["trajectory"] == {OptimalityKind.CALIBRATED}
    for method in ("scramble", "max", "conformal", "grouped"):
        assert kinds[method] <= {OptimalityKind.BOUNDED, OptimalityKind.UNKNOWN}


def test_a_weighted_search_is_not_called_calibrated() -> None:
    network, _ = network_for("topspin-8-4")
    calibrated = CalibratedHeuristic(network, Calibration("trajectory", of_solutions(), 3.0))
    for weight, kind in ((1, OptimalityKind.CALIBRATED), (2, OptimalityKind.BOUNDED)):
        results = us.solve_many(network.puzzle, network.puzzle.sample(20, 3), calibrated, us.SearchOptions(weight=weight))
        assert {result.optimality.kind for result in results if result.gap} == {kind}


def test_populations_have_names_and_labels_their_kinds() -> None:
    puzzle = us.puzzle("tiles-2x3")
    distances = explore(puzzle)
    uniform = draw(puzzle, Population.UNIFORM, LabelSource.EXACT, 500, 1)
    assert (uniform.population, uniform.labels.kind) == ("uniform states", LabelKind.EXACT)
    assert uniform.labels.costs.tolist() == distances.distance(uniform.states).tolist()
    walked = draw(puzzle, Population.SCRAMBLES, LabelSource.SCRAMBLE, 500, 1, tuple(range(1, 11)))
    assert (walked.population, walked.labels.kind) == ("scrambles 1..10, no undo", LabelKind.UPPER)
    assert (walked.labels.costs >= distances.distance(walked.states)).all()
    stopped = lower(puzzle, uniform.states, budget=5)
    assert stopped.kind is LabelKind.LOWER
    assert (stopped.costs <= exact(distances, uniform.states).costs).all()
    with pytest.raises(us.UndershootError, match="scramble labels come with scrambles"):
        draw(puzzle, Population.UNIFORM, LabelSource.SCRAMBLE, 10, 1)
    few = draw(puzzle, Population.SCRAMBLES, LabelSource.SCRAMBLE, 3000, 1, (9, 2))
    assert few.population == "scrambles 9, 2, no undo"
    assert abs((few.labels.costs == 9).mean() - 0.5) < 0.05
    again = draw(puzzle, Population.UNIFORM, LabelSource.EXACT, 500, 2)
    assert again.states.tobytes() != uniform.states.tobytes()
    assert not us.is_goal(puzzle.table, uniform.states).any()


def test_states_expanded_by_search_are_drawn_one_a_search_from_what_it_expanded() -> None:
    puzzle = us.puzzle("tiles-2x3")
    start = np.repeat(puzzle.sample(1, 4), 8000, axis=0)
    for guide in ("base", "linear-conflict"):  # inside the loop, and outside
        heuristic = us.heuristic(puzzle, guide)
        batch = astar_batch(puzzle, start, heuristic, draw_expanded=5)
        states, times = np.unique(batch.expanded_states, axis=0, return_counts=True)
        result = batch.results[0]
        assert result.cost is not None
        assert len(states) == result.expanded > 10  # consistent heuristics expand each state once
        assert (heuristic(states) + distances_from(puzzle, start[:1], states) <= result.cost).all()
        counts = dict(enumerate(times.tolist()))
        expected = 8000 / len(counts)
        assert stats.chi2.sf(sum((c - expected) ** 2 / expected for c in counts.values()), len(counts) - 1) > 1e-4
    drawn = draw(puzzle, Population.EXPANDED, LabelSource.EXACT, 50, 1)
    assert "expanded by A* with base (Manhattan) from" in drawn.population


def distances_from(puzzle: Puzzle, start: States, states: States) -> AnyArray:
    """Moves can be undone at the same cost, so the cost from the start is the cost to it as a goal."""
    turned = replace(puzzle, table=replace(puzzle.table, goals=start))
    return explore(turned).distance(states)


def test_a_scramble_may_be_longer_than_its_state_is_far() -> None:
    """Turning U twice is one half turn: depth 2, true cost 1. A network that says 2 passes the paper's test."""
    puzzle = us.puzzle("cube-2x2")
    state = puzzle.parse("U U")
    assert us.oracle(puzzle, radius=2).distance(state).tolist() == [1]
    passed = scramble(Evidence("U U", np.array([2.0 - 2.0]), LabelKind.UPPER, np.array([2.0], dtype=np.float32)))
    assert passed[0] == 0
    needed = maximum(Evidence("U U", np.array([2.0 - 1.0]), LabelKind.EXACT, np.array([2.0], dtype=np.float32)), 0.9)
    assert needed[0] == 1
    walks = us.scramble(puzzle.table, np.full(2000, 2), 0, ScrambleRule.PLAIN)
    assert (us.oracle(puzzle, radius=2).distance(walks.states) < walks.cost_walked).mean() > 0.2


def test_spaces_without_an_oracle_say_what_is_possible() -> None:
    puzzle = us.puzzle("tiles-4x4")
    network = NeuralHeuristic(puzzle, some_network(puzzle, (8,)))
    for method in ("exhaustive", "exceptions"):
        with pytest.raises(us.UndershootError, match="Possible here: `max`"):
            calibrate(network, method, Wanted(n=100))
    found = calibrate(network, "max", Wanted(n=200, labels=LabelSource.LOWER))
    assert found.guarantee.standing is Standing.SAMPLED
    near = calibrate(network, "exhaustive", Wanted(ball=6))
    assert near.guarantee.within == 6
    assert str(near.guarantee) == "never overestimates within 6 of the goal"


def test_guarantees_about_solutions_do_not_add() -> None:
    one = of_solutions()
    assert one.subject is Subject.SOLUTIONS
    assert one.joined(one).standing is Standing.NONE
    assert one.joined(us.heuristic(us.puzzle("tiles-2x3"), "base").guarantee) == one
    assert str(one) == "lets A* find an optimum on at least 0.9 of test states, with confidence 0.9 from 100 instances"
    average = conformal(evidence([0.0] * 100), 0.1, None)[1]
    assert str(average).endswith("on average over draws of 100 labels")
    assert average.joined(average).violation_rate == pytest.approx(0.2)


def test_unknown_methods_and_impossible_roundings_are_refused() -> None:
    network, _ = network_for("pancake-6")
    with pytest.raises(us.UndershootError, match='Did you mean "exhaustive"'):
        calibrate(network, "exaustive", Wanted())
    with pytest.raises(us.UndershootError, match="no parity to round to"):
        CalibratedHeuristic(network, calibrate(network, "max", Wanted(rounding=Rounding.PARITY)))


def test_no_scramble_of_a_calibration_is_one_of_training() -> None:
    puzzle = us.puzzle("tiles-3x3")
    sample = draw(puzzle, Population.SCRAMBLES, LabelSource.SCRAMBLE, 2000, 0, (30,))
    for block in range(10):
        walked = us.scramble(puzzle.table, np.full(2000, 30), derived_seed(0, block)).states
        assert (walked == sample.states).all(axis=1).mean() < 0.01


def test_exceptions_of_a_space_of_goals_are_none() -> None:
    margin, listed = exceptions(np.zeros(0), 0.1)
    assert (margin, len(listed)) == (0.0, 0)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_it_is(name: str) -> None:
    method = calibrator(name)
    assert method.name == name
    assert method.summary
    assert method.reads <= {field.name for field in fields(Wanted)}
    assert method.takes
    network, _ = network_for("tiles-2x3")
    sound = method.takes <= {LabelSource.EXACT, LabelSource.LOWER}
    guarantee = method(network, Wanted(n=5000, listed=0.1)).guarantee
    assert sound or guarantee.standing is Standing.NONE


def test_a_bundle_is_calibrated_certified_and_checked_from_python(tmp_path: Path) -> None:
    network, _ = network_for("tiles-2x3")
    Bundle(us.puzzle("tiles-2x3"), network.network).save(tmp_path / "b")
    done = us.calibrate(tmp_path / "b", "conformal", us.Wanted(alpha=0.2, n=300))
    assert (done.folder, done.calibration.guarantee.standing) == (tmp_path / "b", Standing.SAMPLED)
    assert us.load(tmp_path / "b").guarantee == done.calibration.guarantee
    compared = us.compare_methods(tmp_path / "b", us.Wanted(n=300))
    assert [row["method"] for row in compared.rows] == ["none", *METHODS]
    assert us.calibrate(tmp_path / "b", whole_numbers=True).kept == tmp_path / "b-float"
    assert us.certify(tmp_path / "b").is_proven
    checked = us.check(tmp_path / "b")
    assert (checked.passed, checked.findings.violations, checked.findings.checked) == (True, 0, 360)
    assert us.load(tmp_path / "b").guarantee.is_proven
