"""Functions that somebody brings: calibrated, checked, compared and searched with like ours, and never believed."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undershoot as us
from undershoot.arrays import AnyArray, States
from undershoot.bundles.bundle import Bundle
from undershoot.calibration.catalogue import METHODS
from undershoot.errors import Contradiction
from undershoot.guarantees import PROVEN, OptimalityKind, Standing
from undershoot.heuristics.combined import Largest
from undershoot.heuristics.neural import Network
from undershoot.heuristics.wrapped import WrappedHeuristic

PUZZLE = us.puzzle("tiles-2x3")
BASE = us.heuristic(PUZZLE, "base")
DISTANCES = us.oracle(PUZZLE)
STATES = PUZZLE.sample(40, 1)
WANTED = us.Wanted(n=300)
PROVIDED = "provided that the function mine says the same of equal states"


def cost(states: States) -> AnyArray:
    return DISTANCES.distance(states).astype(np.float64)


def low(states: States) -> AnyArray:
    return 0.7 * cost(states)


def high(states: States) -> AnyArray:
    """Above the true cost of the states that are farther than 10."""
    return np.where(cost(states) > 10, 1.3 * cost(states), 0.8 * cost(states))


def wrapped(function: Callable[[States], Any], name: str = "mine") -> WrappedHeuristic:
    return us.wrap(PUZZLE, function, name=name)


def test_nothing_is_known_of_it_until_it_is_checked() -> None:
    mine = wrapped(low)
    assert str(mine.guarantee) == "nothing is known about overestimates"
    result = us.solve(PUZZLE, STATES[:1], mine)
    assert result.cost == DISTANCES.distance(STATES[:1])[0]
    checked = us.check(mine)
    assert checked.is_proven
    assert checked.findings.checked == DISTANCES.states
    assert str(checked.heuristic.guarantee).startswith(f"never overestimates, {PROVIDED}")
    assert mine.guarantee.standing is Standing.NONE  # only of what was returned is it said


def test_solutions_found_with_it_say_what_they_rest_on() -> None:
    proven = us.check(wrapped(low)).heuristic
    for result, true in zip(us.solve_many(PUZZLE, STATES, proven), DISTANCES.distance(STATES), strict=True):
        assert (result.cost, result.optimality.kind) == (true, OptimalityKind.PROVEN)
        assert f"optimal, proven, {PROVIDED}" in str(result.optimality)
        assert "says the same of equal states" in result.to_json()["provided"]
    stopped = us.solve_many(PUZZLE, STATES, proven, us.SearchOptions(max_expanded=1))
    assert all("says the same" in result.to_json()["provided"] for result in stopped)
    summaries, records = us.compare(PUZZLE, us.Instances("some", STATES, (None,) * len(STATES)), [proven], us.SearchOptions())
    assert summaries[0].guarantee == "proven, provided"
    assert all("says the same" in record["provided"] for record in records)
    bounded = us.solve_many(PUZZLE, STATES, proven, us.SearchOptions(weight=3))
    assert all(PROVIDED in str(result.optimality) for result in bounded if result.cost)
    # What h0 proves by itself rests on nothing else.
    unknown = us.solve_many(PUZZLE, STATES, wrapped(low))
    assert not any("provided" in str(result.optimality) for result in unknown)


def test_overestimates_are_found_and_named() -> None:
    checked = us.check(wrapped(high))
    above = int((DISTANCES.true_costs() > 10).sum())
    assert (checked.findings.violations, checked.is_proven, checked.passed) == (above, False, False)
    assert len(checked.findings.examples) == 5
    assert checked.heuristic.guarantee.standing is Standing.NONE
    within = us.certify(wrapped(high), ball=10)
    assert str(within.heuristic.guarantee).startswith(f"never overestimates within 10 of the goal, {PROVIDED}")
    sampled = us.check(wrapped(high), sample=50)
    assert (sampled.is_sample, sampled.is_proven) == (True, False)
    assert sampled.heuristic.guarantee.standing is Standing.NONE


@pytest.mark.parametrize("method", METHODS)
def test_every_method_calibrates_it(method: str) -> None:
    wanted = us.Wanted(n=300, alpha=0.2) if method == "grouped" else WANTED
    made = us.calibrate(wrapped(high), method, wanted)
    known, values = made.heuristic.guarantee, made.heuristic(DISTANCES.states_of_rows(0, DISTANCES.states))
    above = (values > DISTANCES.true_costs()).mean()
    if method == "scramble":
        assert known.standing is Standing.NONE
    else:
        assert PROVIDED in str(known)
        assert made.trial.violation_rate == pytest.approx(above, abs=0.05)
    if method in ("exhaustive", "exceptions"):
        assert (known.is_proven, above) == (True, 0)
    assert (us.solve(PUZZLE, STATES[0], made.heuristic).cost or 0) >= DISTANCES.distance(STATES[:1])[0]


def test_what_is_calibrated_is_checked_like_the_rest() -> None:
    made = us.calibrate(wrapped(high), "exhaustive")
    assert made.calibration.margin == pytest.approx(0.3 * (len(DISTANCES.histogram) - 1), abs=1e-4)
    assert us.certify(made.heuristic).is_proven
    forged = replace(made.heuristic, calibration=replace(made.calibration, margin=0.0))
    refuted = us.check(forged)
    assert not refuted.is_proven
    assert refuted.heuristic.guarantee.standing is Standing.NONE


def test_methods_and_heuristics_are_compared() -> None:
    compared = us.compare_methods(wrapped(high), us.Wanted(n=300, alpha=0.2))
    assert [row["method"] for row in compared.rows] == ["none", *METHODS]
    assert not [row["error"] for row in compared.rows if "error" in row]
    proven = us.check(wrapped(low, "checked")).heuristic
    posed = us.Instances("some", STATES, (None,) * len(STATES))
    (raw, checked, base), _ = us.compare(PUZZLE, posed, [wrapped(low), proven, BASE], us.SearchOptions())
    assert (raw.guarantee, checked.guarantee, checked.proven_rate) == ("none", "proven, provided", 1.0)
    assert checked.mean_expanded < base.mean_expanded


def test_threads_ask_one_at_a_time() -> None:
    inside = []

    def alone(states: States) -> AnyArray:
        inside.append(1)
        assert len(inside) == 1
        values = low(states)
        inside.pop()
        return values

    found = us.solve_many(PUZZLE, STATES, wrapped(alone), threads=4)
    assert [result.cost for result in found] == [result.cost for result in us.solve_many(PUZZLE, STATES, BASE)]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda s: np.full(len(s), np.nan), "gives nan, which is no cost, for "),
        (lambda s: np.full(len(s), np.inf), "gives inf, which is no cost, for "),
        (lambda s: np.full(len(s), 1e300), "gives 1e+300, which is no cost, for "),
        (lambda s: np.zeros((len(s), 1)), r"gave float64[40, 1] for 40 states; a number for each is needed"),
        (lambda s: np.zeros(len(s) + 1), r"gave float64[41] for 40 states"),
        (lambda s: 3.0, r"gave float64[] for 40 states"),
        (lambda s: None, r"gave object[] for 40 states"),
        (lambda s: np.zeros(len(s), dtype=complex), "gave complex128[40]"),
        (lambda s: ["far"] * len(s), "gave <U3[40]"),
        (lambda s: [object()] * len(s), "gave object[40]"),
        (lambda s: 1 / 0, "failed: ZeroDivisionError: division by zero"),
        (lambda s: [0.0, [1.0]], "failed: ValueError"),
        (lambda s: s.__setitem__(0, 1), "failed: ValueError: assignment destination is read-only"),
    ],
)
def test_bad_answers_are_refused_in_a_sentence_that_names_the_heuristic(answer: Callable[[States], Any], sentence: str) -> None:
    mine = wrapped(answer)
    asked: list[Callable[[], Any]] = [lambda: mine(STATES), lambda: us.solve_many(PUZZLE, STATES, mine)]
    asked += [lambda: us.check(mine), lambda: us.calibrate(mine)]
    for ask in asked:
        with pytest.raises(us.UndershootError, match="the function of the heuristic mine") as refusal:
            ask()
        assert "\n" not in str(refusal.value)
    with pytest.raises(us.UndershootError) as refusal:
        mine(STATES)
    assert sentence in str(refusal.value)


def test_values_below_0_count_as_0_and_so_do_goals() -> None:
    mine = wrapped(lambda states: cost(states) - 3)
    values = mine(DISTANCES.states_of_rows(0, DISTANCES.states))
    np.testing.assert_array_equal(values, np.maximum(DISTANCES.true_costs() - 3, 0))
    assert us.check(mine).is_proven
    assert wrapped(lambda states: np.full(len(states), 5))(PUZZLE.table.goals).tolist() == [0]


def test_whole_numbers_lists_and_no_states_are_answered() -> None:
    assert wrapped(lambda states: [1] * len(states))(STATES).dtype == np.float32
    assert wrapped(lambda states: states.max(axis=1))(STATES[:0]).shape == (0,)  # which the function could not answer
    with pytest.raises(us.UndershootError, match="states must be an array"):
        wrapped(low)(STATES.astype(np.int64))


def test_it_keeps_and_changes_nothing_of_ours() -> None:
    kept: list[AnyArray] = []
    mine = np.zeros(len(STATES), dtype=np.float32)

    def keeps(states: States) -> AnyArray:
        kept.append(states)
        with pytest.raises(ValueError, match="read-only"):
            states[:] = 0
        with pytest.raises(ValueError, match="WRITEABLE"):
            states.flags.writeable = True
        return mine

    before = STATES.copy()
    values = wrapped(keeps)(STATES)
    mine[:] = 7
    np.testing.assert_array_equal(STATES, before)
    assert not values.any()
    assert not np.shares_memory(kept[0], STATES)


def test_a_function_that_answers_otherwise_when_asked_again_is_refused() -> None:
    random = np.random.default_rng(0)
    fickle = wrapped(lambda states: low(states) + random.random(len(states)))
    by_batch = wrapped(lambda states: low(states) / len(states))
    for mine in (fickle, by_batch):
        for ask in (us.check, us.calibrate, us.certify):
            with pytest.raises(us.UndershootError, match=r"function of the heuristic mine says .* of the same state, so that"):
                ask(mine)


def test_last_bits_may_differ_where_margins_leave_room() -> None:
    random = np.random.default_rng(0)
    sums = wrapped(lambda states: low(states) + 1e-5 * random.random(len(states)))
    with pytest.raises(us.UndershootError, match="of the same state"):
        us.check(sums)
    assert us.check(us.calibrate(sums).heuristic).is_proven


def test_a_function_that_changes_after_the_check_is_caught_by_what_a_search_sees() -> None:
    more = [0.0]
    proven = us.check(wrapped(lambda states: cost(states) + more[0])).heuristic
    assert us.solve(PUZZLE, STATES[:1], proven).optimality.kind is OptimalityKind.PROVEN
    more[0] = 2.0
    with pytest.raises(Contradiction, match="mine claims that it never overestimates, provided that the function mine says"):
        us.solve(PUZZLE, STATES[:1], proven)


def test_it_cannot_be_saved(tmp_path: Path) -> None:
    mine = wrapped(low)
    made = us.calibrate(mine)
    for thing in (mine, made.heuristic, us.check(mine).heuristic):
        with pytest.raises(us.UndershootError, match="mine cannot be saved or sent elsewhere: a function has no checksum"):
            pickle.dumps(thing)
    calibrate: Any = us.calibrate
    with pytest.raises(us.UndershootError, match="mine is a function and cannot be saved, so leave `out` out: a function has"):
        calibrate(mine, out=tmp_path / "bundle")
    for refused in (calibrate, us.compare_methods):
        with pytest.raises(us.UndershootError, match="mine is a function and cannot be converted; leave whole_numbers out"):
            refused(mine, whole_numbers=True)
    # Nor can what is known of it be put into the bundle of a network.
    layers = (np.zeros((PUZZLE.encoding.width, 2), dtype=np.float32), np.zeros((2, 1), dtype=np.float32))
    network = Network(layers, (np.zeros(2, dtype=np.float32), np.zeros(1, dtype=np.float32)))
    with pytest.raises(us.UndershootError, match="this calibration is of a function, and cannot be saved"):
        Bundle(PUZZLE, network, calibration=made.calibration).save(tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_the_larger_of_it_and_another_rests_on_the_same() -> None:
    proven = us.check(wrapped(low)).heuristic
    both, same = Largest((BASE, proven)), Largest((proven, proven))
    assert str(both.guarantee) == str(same.guarantee) == str(proven.guarantee)
    assert Largest((wrapped(low), BASE)).guarantee.standing is Standing.NONE
    assert PROVEN.joined(PROVEN) == PROVEN


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("tiles-2x3", low), "us.wrap takes a puzzle first"),
        ((low, PUZZLE), "us.wrap takes a puzzle first"),
        ((PUZZLE, "base"), 'us.wrap takes a function of states second; "base" came'),
        ((PUZZLE, low, ""), "the name of a heuristic is one line of text"),
        ((PUZZLE, low, "two\nlines"), "the name of a heuristic is one line of text"),
        ((PUZZLE, low, 3), "the name of a heuristic is one line of text; an object of type int came"),
    ],
)
def test_what_cannot_be_wrapped_is_refused(arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(us.UndershootError) as refusal:
        us.wrap(*arguments)
    assert sentence in str(refusal.value)


def test_networks_are_checked_by_their_bundle() -> None:
    check: Any = us.check
    with pytest.raises(us.UndershootError, match="is a network; give the path of its bundle"):
        check(us.load("tiles-3x3"))
    assert us.wrap(PUZZLE, low).name == "low"
