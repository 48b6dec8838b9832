"""Networks on patterns: trained on a table, fitted so that no arrangement is overestimated, asked inside searches."""

import dataclasses
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import undershoot as us
from undershoot.calibration.on_patterns import Fitting, fit_within, fitting
from undershoot.errors import NotAvailable
from undershoot.guarantees import PROVEN, OptimalityKind
from undershoot.heuristics.device_arrangements import check_on, parts_on
from undershoot.heuristics.every_arrangement import check_every_arrangement, every_part
from undershoot.heuristics.learned_patterns import LearnedPatterns
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.heuristics.patterns import sums_of_looks
from undershoot.heuristics.whole_numbers import WholeNetwork, to_whole_numbers
from undershoot.pattern_tables.looks import Look
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.ranking import rank_of
from undershoot.pattern_tables.residuals import codes_of, encoding_of, residuals_of
from undershoot.pattern_tables.sets import pattern_set
from undershoot.pattern_tables.tables import PatternTable, make_table
from undershoot.puzzles.pieces import pieces_of
from undershoot.training.on_patterns import PatternLearner
from undershoot.training.recipe import Recipe

SMALL = {"encoding": "pairs", "hidden": (24, 16), "batch": 256, "steps": 300, "learning_rate": 5e-3, "hard_share": 0.25}


@cache
def learned(puzzle: str, pieces: tuple[int, ...], is_additive: bool = True) -> tuple[PatternNetwork, PatternTable, Fitting]:
    problem = us.puzzle(puzzle)
    table = make_table(Pattern(pieces_of(problem), pieces, is_additive), device="cpu")
    residuals = residuals_of(table, problem.base_heuristic)
    recipe = Recipe(puzzle, **SMALL)  # type: ignore[arg-type]
    network = PatternLearner(table, residuals, recipe).train()
    encoding = encoding_of(table.pattern, pairs=True)
    size = int(table.pattern.folded.size)
    whole = to_whole_numbers(network, encoding, codes_of(table.pattern.folded, 0, min(size, 2000)))
    untried = PatternNetwork(table.pattern, whole, residuals, (0,) * whole.widths[-1])
    made = fitting(untried, table, threads=2)
    return made.fit(), table, made


def pieces_with(puzzle: str, symbols: str) -> tuple[int, ...]:
    problem = us.puzzle(puzzle)
    pieces = pieces_of(problem)
    names = [problem.symbol(int(problem.table.goals[0, cells[0]])) for cells in pieces.cells]
    return tuple(names.index(symbol) for symbol in symbols.split())


CASES = [("tiles-3x3", "1 2 3 4"), ("tiles-3x3", "5 6 7 8"), ("tiles-2x4", "1 2 5")]


@pytest.mark.parametrize(("puzzle", "symbols"), CASES)
def test_a_fitted_network_is_nowhere_too_high_and_learned_something(puzzle: str, symbols: str) -> None:
    network, table, _ = learned(puzzle, pieces_with(puzzle, symbols))
    found = check_every_arrangement(network, table, threads=2)
    assert (found.violations, found.first, found.arrangements) == (0, None, table.histogram.sum())
    assert found.mean_cost == pytest.approx(table.mean)
    shares = dataclasses.replace(network, thresholds=(2**24,) * len(network.thresholds))
    nothing = check_every_arrangement(shares, table).mean
    assert found.mean - nothing > 0.3 * (table.mean - nothing)


@pytest.mark.parametrize(("puzzle", "symbols"), CASES)
def test_a_threshold_that_is_the_least_bit_lower_is_found_out(puzzle: str, symbols: str) -> None:
    network, table, _ = learned(puzzle, pieces_with(puzzle, symbols))
    tight = [level for level, threshold in enumerate(network.thresholds) if abs(threshold) < 2**24]
    assert tight
    for level in tight:
        lower = tuple(threshold - (k == level) for k, threshold in enumerate(network.thresholds))
        found = check_every_arrangement(dataclasses.replace(network, thresholds=lower), table)
        assert found.violations > 0
        assert found.first is not None
        assert network.values(np.array([found.first]))[0] <= table.unpacked()[found.first]


def test_what_is_listed_lets_others_through() -> None:
    none_listed, table, made = learned("tiles-3x3", pieces_with("tiles-3x3", "1 2 3 4"))
    some_listed = made.fit(worth=3)
    assert len(none_listed.listed) == 0 < len(some_listed.listed)
    assert (some_listed.listed_costs == table.unpacked()[some_listed.listed]).all()
    found, before = check_every_arrangement(some_listed, table), check_every_arrangement(none_listed, table)
    assert found.violations == 0
    assert before.mean < found.mean <= table.mean
    assert made.fit(worth=10**9).thresholds == none_listed.thresholds
    (within,) = fit_within([made], len(some_listed.listed))
    assert 0 < len(within.listed) <= len(some_listed.listed)
    for k in range(len(some_listed.listed)):
        numbers, costs = np.delete(some_listed.listed, k), np.delete(some_listed.listed_costs, k)
        found = check_every_arrangement(dataclasses.replace(some_listed, listed=numbers, listed_costs=costs), table)
        assert (found.violations, found.first) == (1, some_listed.listed[k])


def test_what_was_not_kept_is_not_overestimated(monkeypatch: pytest.MonkeyPatch) -> None:
    none_listed, table, _ = learned("tiles-3x3", pieces_with("tiles-3x3", "1 2 3 4"))
    for most in (1, 7, 40):
        monkeypatch.setattr("undershoot.calibration.on_patterns.MOST_KEPT", most)
        monkeypatch.setattr("undershoot.heuristics.every_arrangement.AT_ONCE", 100)
        few = fitting(dataclasses.replace(none_listed, thresholds=(0,) * len(none_listed.thresholds)), table)
        assert max(len(kept.numbers) for kept in few.candidates.kept) <= 2 * most + 100
        assert check_every_arrangement(few.fit(), table).violations == 0
        assert check_every_arrangement(few.fit(worth=2), table).violations == 0


def test_values_are_the_same_on_the_cores_on_a_device_and_one_by_one() -> None:
    _, table, made = learned("tiles-3x3", pieces_with("tiles-3x3", "1 2 3 4"))
    network = made.fit(worth=3)
    found = check_every_arrangement(network, table)
    every = np.arange(len(table.unpacked()))
    assert network.values(every).mean() == pytest.approx(found.mean)
    assert check_on(network, table, "cpu").tolist() == [
        found.arrangements,
        0,
        -1,
        network.values(every).sum(),
        table.unpacked().sum(dtype=np.int64),
    ]
    sums = np.concatenate([part.sums for part in every_part(network, table)])
    seen = parts_on(network, table, "cpu", np.full(len(network.thresholds), -(2**30)))
    for part in seen:
        assert (part.sums == sums[part.numbers]).all()
        assert (part.costs == table.unpacked()[part.numbers]).all()


def test_another_table_is_refused() -> None:
    network, _, _ = learned("tiles-3x3", pieces_with("tiles-3x3", "1 2 3 4"))
    _, other, _ = learned("tiles-3x3", pieces_with("tiles-3x3", "5 6 7 8"))
    with pytest.raises(us.UndershootError, match="another pattern"):
        check_every_arrangement(network, other)
    _, foreign, _ = learned("tiles-2x4", pieces_with("tiles-2x4", "1 2 5"))
    with pytest.raises(us.UndershootError, match="another p"):
        check_every_arrangement(network, foreign)


def test_shares_for_other_codes_are_refused() -> None:
    network, _, _ = learned("tiles-3x3", pieces_with("tiles-3x3", "1 2 3 4"))
    padded = dataclasses.replace(network.residuals, share=np.pad(network.residuals.share, ((0, 0), (0, 2))))
    with pytest.raises(us.UndershootError, match="this pattern has others"):
        dataclasses.replace(network, residuals=padded)


@cache
def heuristic(reflected: bool) -> LearnedPatterns:
    puzzle = us.puzzle("tiles-3x3")
    made = [learned("tiles-3x3", pieces_with("tiles-3x3", symbols))[2] for symbols in ("1 2 3 4", "5 6 7 8")]
    networks = [one.fit(worth=3) for one in made]
    assert all(len(network.listed) for network in networks)
    symmetries = pattern_set(puzzle, "4-4+reflected").symmetries if reflected else (None,)
    sums = tuple(tuple(Look(network, symmetry) for network in networks) for symmetry in symmetries)
    return LearnedPatterns("networks", puzzle, networks[0].pattern.pieces, sums, guarantee=PROVEN)


@cache
def of_many_moved(puzzle: str, name: str) -> LearnedPatterns:
    """Of a puzzle whose moves move several pieces."""
    problem = us.puzzle(puzzle)
    chosen = pattern_set(problem, name)

    def provide(pattern: Pattern) -> PatternNetwork:
        return learned(puzzle, pattern.followed, pattern.is_additive)[2].fit(worth=3)

    return LearnedPatterns("networks", problem, chosen.pieces, sums_of_looks(chosen, provide), guarantee=PROVEN)


def mixed_looks() -> LearnedPatterns:
    """Sums that the loop for sliding tiles does not take: one part is seen through a symmetry."""
    asked = heuristic(reflected=True)
    (one, other), (_, mirrored) = asked.sums
    free = [look for look in (mirrored, other) if not set(look.asked) & set(one.asked)]
    return dataclasses.replace(asked, sums=((one,), (mirrored,), (free[0], one)))


SUBJECTS: dict[str, Callable[[], LearnedPatterns]] = {
    "4-4": lambda: heuristic(reflected=False),
    "4-4+reflected": lambda: heuristic(reflected=True),
    "mixed": mixed_looks,
    "2x2": lambda: of_many_moved("cube-2x2", "3+3"),
    "topspin": lambda: of_many_moved("topspin-8-4", "4+4"),
}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_in_searches_it_says_what_the_networks_say(subject: str) -> None:
    """Every state, and never above its cost."""
    asked = SUBJECTS[subject]()
    oracle = us.oracle(asked.puzzle)
    states = oracle.states_of(np.arange(0, oracle.states, 1 + oracle.states // 5000))
    values = asked(states)
    assert values.max() > 2
    assert (values <= oracle.distance(states)).all()
    pieces = asked.pieces
    slots = pieces.slots_of(states)
    expected = np.zeros(len(states))
    for group in asked.sums:
        total = np.zeros(len(states))
        for look in group:
            all_values = look.table.values(np.arange(int(look.table.pattern.folded.size)))
            for row in range(len(states)):
                places = np.array([look.slots[i, slots[row, piece]] for i, piece in enumerate(look.asked)], dtype=np.int64)
                total[row] += all_values[rank_of(look.table.pattern.folded, places)]
        expected = np.maximum(expected, total)
    assert (values == expected).all()


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("algorithm", [us.Algorithm.IDA, us.Algorithm.ASTAR])
def test_solutions_are_optimal(subject: str, algorithm: us.Algorithm) -> None:
    asked = SUBJECTS[subject]()
    states = asked.puzzle.sample(100 if subject.startswith("4-4") else 10, seed=2)
    results = us.solve_many(asked.puzzle, states, asked, us.SearchOptions(algorithm=algorithm), threads=2)
    assert [result.cost for result in results] == us.oracle(asked.puzzle).distance(states).tolist()
    assert all(result.optimality.kind is OptimalityKind.PROVEN for result in results)


def test_networks_that_the_loop_would_misread_are_refused() -> None:
    """It reads the first layer by pairs, and all networks layer by layer."""
    asked = heuristic(reflected=True)
    one, other = asked.networks
    single = encoding_of(one.pattern, pairs=False)
    weights = (np.zeros((single.width, 16), dtype=np.int8), np.zeros((16, 16), dtype=np.int8), one.network.weights[-1])
    biases = (np.zeros(16, dtype=np.int32), np.zeros(16, dtype=np.int32), one.network.biases[-1])
    scales = (np.ones(16, dtype=np.float32), np.ones(16, dtype=np.float32), one.network.scales[-1])
    alone = dataclasses.replace(one, network=WholeNetwork(weights, biases, scales), pairs=False)
    with pytest.raises(NotAvailable, match="see pairs"):
        dataclasses.replace(asked, sums=((Look(alone), Look(other)),))
    deeper = WholeNetwork(
        (*one.network.weights[:-1], np.eye(16, dtype=np.int8), one.network.weights[-1]),
        (*one.network.biases[:-1], np.zeros(16, dtype=np.int32), one.network.biases[-1]),
        (*one.network.scales[:-1], np.ones(16, dtype=np.float32), one.network.scales[-1]),
    )
    with pytest.raises(NotAvailable, match="as many layers"):
        dataclasses.replace(asked, sums=((Look(dataclasses.replace(one, network=deeper)), Look(other)),))
    cube = of_many_moved("cube-2x2", "3+3")
    backwards = dataclasses.replace(cube.sums[0][0], is_inverse=True)
    with pytest.raises(NotAvailable, match="inverse"):
        dataclasses.replace(cube, sums=((backwards,),))
