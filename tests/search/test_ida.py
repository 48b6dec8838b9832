"""IDA*: the same costs as A*, true bounds whatever stops it, one instance on several threads."""

from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import undershoot as us
from undershoot.guarantees import OptimalityKind
from undershoot.heuristics.far_looks import FarLooks
from undershoot.heuristics.patterns import PatternHeuristic
from undershoot.pattern_tables import room
from undershoot.search import ida
from undershoot.search.depth_first import Tree, search_tree
from undershoot.search.ida import solve_by_deepening
from undershoot.search.options import Algorithm, SearchOptions
from undershoot.search.results import Status
from undershoot.search.solving import choose, search_batch

PYRAMINX = str(Path(__file__).parent.parent.parent / "examples" / "pyraminx.toml")
DEEP = SearchOptions(algorithm=Algorithm.IDA)


@pytest.mark.parametrize(
    ("name", "heuristic"),
    [
        ("tiles-2x3", "base"),
        ("tiles-3x3", "base"),
        ("tiles-3x3", "learned"),
        ("tiles-3x3", "patterns:4-4+reflected"),
        ("tiles-3x3", "base+linear-conflict"),
        ("tiles-2x4", "patterns:1 2 5 6 / 3 4 7"),
        ("cube-2x2", "patterns:4+4+inverse"),
        ("topspin-8-4", "patterns:4+4+inverse"),
        ("pancake-8", "base"),
        ("lights-out-3x3", "base"),
        (PYRAMINX, "patterns:1+1+1+1+6"),
    ],
)
def test_costs_are_the_true_ones(name: str, heuristic: str) -> None:
    """Of all states of small spaces, of some at every distance elsewhere."""
    puzzle = us.puzzle(name)
    oracle = us.oracle(puzzle)
    states = oracle.states_of(np.arange(0, oracle.states, max(1, oracle.states // 1000)))
    results = us.solve_many(puzzle, states, us.heuristic(puzzle, heuristic), DEEP)
    assert [result.cost for result in results] == oracle.distance(states).tolist()
    assert all(result.optimality.kind is OptimalityKind.PROVEN for result in results)
    assert all(result.algorithm is Algorithm.IDA for result in results)


@pytest.mark.parametrize("heuristic", ["base", "patterns:4-4", "paper"])
@pytest.mark.parametrize("limit", [0, 1, 10, 100, 1000, 10000])
def test_lower_bounds_are_true_wherever_the_limit_strikes(heuristic: str, limit: int) -> None:
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(30, seed=2)
    costs = us.oracle(puzzle).distance(states)
    options = SearchOptions(algorithm=Algorithm.IDA, max_expanded=limit)
    results = us.solve_many(puzzle, states, us.heuristic(puzzle, heuristic), options)
    for result, cost in zip(results, costs.tolist(), strict=True):
        assert result.lower_bound <= cost
        assert result.expanded <= limit + (result.cost is not None)
        if result.optimality.kind is OptimalityKind.PROVEN:
            assert result.cost == cost


def test_a_heuristic_that_overestimates_gives_no_proof() -> None:
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(40, seed=3)
    exact = us.oracle(puzzle)
    from undershoot.bundles.reading import read_bundle

    raw = read_bundle("tiles-3x3-paper", with_calibration=False).raw
    for result, cost in zip(us.solve_many(puzzle, states, raw, DEEP), exact.distance(states).tolist(), strict=True):
        assert result.cost is not None
        assert result.lower_bound <= cost <= result.cost
        assert result.optimality.kind is not OptimalityKind.CALIBRATED


def test_several_threads_keep_to_the_limit_of_seconds_however_short_their_subtrees_are() -> None:
    puzzle = us.puzzle("cube-3x3")
    options = SearchOptions(algorithm=Algorithm.IDA, max_seconds=0.3)
    (result,) = us.solve_many(puzzle, puzzle.sample(1, seed=5), us.heuristic(puzzle, "base"), options, threads=2)
    assert result.status is Status.TIME
    assert result.seconds < 4  # it took 15


@pytest.mark.parametrize("room", [1, 7, 100_000])
def test_several_threads_find_the_same_cost_of_one_instance(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undershoot.search.ida.MOST_SUBTREES", room)  # if they are more, nothing may be left out
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(12, seed=11)
    base = us.heuristic(puzzle, "base")
    for state, cost in zip(states, us.oracle(puzzle).distance(states).tolist(), strict=True):
        (result,) = us.solve_many(puzzle, state[None], base, DEEP, threads=3)
        assert (result.cost, str(result.optimality)) == (cost, "optimal, proven")


def test_the_published_15_puzzle_instance_costs_57() -> None:
    puzzle = us.puzzle("tiles-4x4-blank-first")
    state = puzzle.parse("14 13 15 7 11 12 9 5 6 0 2 1 4 8 10 3")
    result = us.solve(puzzle, state, us.heuristic(puzzle, "patterns:5-5-5+reflected"), DEEP)
    assert (result.cost, str(result.optimality)) == (57, "optimal, proven")


def test_a_goal_and_an_empty_list() -> None:
    puzzle = us.puzzle("tiles-3x3")
    base = us.heuristic(puzzle, "base")
    assert us.solve(puzzle, puzzle.table.goals, base, DEEP).cost == 0
    assert us.solve_many(puzzle, puzzle.table.goals[:0], base, DEEP) == []


def test_what_cannot_be_solved_is_unsolvable_only_if_nothing_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "islands.toml"
    path.write_text('name = "islands"\ngoal = "a b c d"\n[moves]\nx = "(1 2)"\n')
    puzzle = us.puzzle(path)
    far = np.array([[0, 1, 3, 2]], dtype=np.uint8)
    with pytest.raises(us.UndershootError, match="cannot reach"):
        us.solve(puzzle, far, us.heuristic(puzzle, "base"), DEEP)


def test_weights_are_refused_and_functions_too() -> None:
    puzzle = us.puzzle("tiles-3x3")
    state = puzzle.sample(1, seed=0)
    with pytest.raises(us.UndershootError, match="does not read --weight"):
        us.solve(puzzle, state, us.heuristic(puzzle, "base"), SearchOptions(weight=2, algorithm=Algorithm.IDA))
    mine = us.wrap(puzzle, lambda states: np.zeros(len(states)), name="mine")
    with pytest.raises(us.UndershootError, match="use A"):
        us.solve(puzzle, state, mine, DEEP)


def test_auto_takes_what_fits_and_says_why() -> None:
    small, large = us.puzzle("tiles-3x3"), us.puzzle("tiles-4x4")
    auto = SearchOptions(algorithm=Algorithm.AUTO)
    assert choose(small, us.heuristic(small, "base"), auto)[0] is Algorithm.ASTAR
    first, reason = choose(large, us.heuristic(large, "base"), auto)
    assert (first, "do not fit into memory" in reason) == (Algorithm.BOTH, True)


@pytest.mark.parametrize("limit", [30, 300, 3000])
def test_auto_solves_what_either_solves_in_a_third_of_the_limit(limit: int) -> None:
    puzzle = us.puzzle("tiles-3x3")
    base, states = us.heuristic(puzzle, "base"), puzzle.sample(60, seed=8)
    solved = {}
    for algorithm, share in ((Algorithm.ASTAR, limit // 3), (Algorithm.IDA, limit // 3), (Algorithm.AUTO, limit)):
        results = us.solve_many(puzzle, states, base, SearchOptions(algorithm=algorithm, max_expanded=share))
        solved[algorithm] = {k for k, result in enumerate(results) if result.cost is not None}
        assert all(result.expanded <= share + 2 for result in results)
    assert solved[Algorithm.ASTAR] | solved[Algorithm.IDA] <= solved[Algorithm.AUTO]


def test_a_bound_from_before_is_where_the_search_begins() -> None:
    puzzle = us.puzzle("tiles-3x3")
    state = puzzle.parse("8 6 7 / 2 5 4 / 3 0 1")
    base = us.heuristic(puzzle, "base")
    (full,) = solve_by_deepening(puzzle, state, base, DEEP)
    (short,) = solve_by_deepening(puzzle, state, base, DEEP, bounds=[31])
    assert (full.cost, short.cost) == (31, 31)
    assert short.expanded < full.expanded


@pytest.mark.parametrize("count", [1, 3])
def test_what_one_thread_raises_stops_the_others(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ctrl-C does. Otherwise the others would search on until a limit strikes."""
    puzzle = us.puzzle("tiles-4x4")
    check, searches, raised = ida.Deepening._check_values, list[ida.Deepening](), Event()

    def fail_once(self: ida.Deepening, tree: Tree) -> None:
        searches.append(self)
        if self.counts["expanded"] > 100_000 and not raised.is_set():
            raised.set()
            raise KeyboardInterrupt
        check(self, tree)

    monkeypatch.setattr(ida.Deepening, "_check_values", fail_once)
    options = us.SearchOptions(algorithm=us.Algorithm.IDA, max_seconds=30)
    with pytest.raises(KeyboardInterrupt):
        us.solve_many(puzzle, puzzle.sample(count, seed=1), us.heuristic(puzzle, "zero"), options, threads=2)
    assert not any(search.limit_met for search in searches)


def test_algorithms_by_name() -> None:
    assert us.SearchOptions(algorithm="auto").algorithm is us.Algorithm.AUTO  # type: ignore[arg-type]
    with pytest.raises(us.UndershootError, match="allowed are astar, ida, both, auto"):
        us.SearchOptions(algorithm="nope")  # type: ignore[arg-type]


def test_large_tables_are_asked_ahead_and_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three sums, of which one leaves pieces out; as small tables, and as those that are too large to be spread out."""
    puzzle = us.puzzle("tiles-3x3")
    full, part = us.patterns(puzzle, "4-4+reflected"), us.patterns(puzzle, "1 2 3 / 4 5 6")
    sums, tables = (*full.sums, *part.sums), (*full.tables, *part.tables)
    states, options = puzzle.sample(200, seed=5), SearchOptions(algorithm=Algorithm.IDA)

    def asked(most_sparse: int) -> PatternHeuristic:
        monkeypatch.setattr(room, "MOST_SPARSE", most_sparse)
        heuristic = PatternHeuristic("several", full.pieces, sums, tables)
        assert isinstance(heuristic.guide(), FarLooks) == (most_sparse < 1 << 16)
        return heuristic

    small, large = asked(1 << 26), asked(1 << 12)
    assert 0 < large.guide().near.is_dense.sum() < len(large.guide().near.is_dense)
    assert (small(states) == large(states)).all()
    for one, other in zip(
        us.solve_many(puzzle, states, small, options), us.solve_many(puzzle, states, large, options), strict=True
    ):
        assert (one.cost, one.expanded, one.generated) == (other.cost, other.expanded, other.generated)
    assert [result.cost for result in us.solve_many(puzzle, states, large, SearchOptions(algorithm=Algorithm.ASTAR))] == [
        result.cost for result in us.solve_many(puzzle, states, us.heuristic(puzzle, "base"))
    ]


@pytest.mark.parametrize("algorithm", [us.Algorithm.IDA, us.Algorithm.ASTAR])
def test_no_more_is_expanded_than_was_allowed_even_if_a_goal_is_next(algorithm: us.Algorithm) -> None:
    puzzle = us.puzzle("tiles-3x3")
    states, heuristic = puzzle.sample(6, seed=2), us.load("tiles-3x3")
    full = us.solve_many(puzzle, states, heuristic, us.SearchOptions(algorithm=algorithm))
    for k, result in enumerate(full):
        for less in (1, result.expanded):
            options = us.SearchOptions(algorithm=algorithm, max_expanded=result.expanded - less)
            stopped = us.solve(puzzle, states[k], heuristic, options)
            assert (stopped.cost, stopped.expanded) == (None, result.expanded - less)
            assert stopped.lower_bound <= (result.cost or 0)


@pytest.mark.parametrize("algorithm", [us.Algorithm.IDA, us.Algorithm.BOTH])
def test_what_is_compiled_first_is_not_in_the_seconds_of_a_batch(
    monkeypatch: pytest.MonkeyPatch, algorithm: us.Algorithm
) -> None:
    puzzle, clock = us.puzzle("tiles-2x3"), [0.0]

    def slow(*arguments: Any) -> Any:
        clock[0] += 1000 * (arguments[4] == -1)  # the iteration that only compiles
        return search_tree(*arguments)

    monkeypatch.setattr("undershoot.search.ida.search_tree", slow)
    for module in ("solving", "both", "ida", "known"):
        monkeypatch.setattr(f"undershoot.search.{module}.time", SimpleNamespace(perf_counter=lambda: clock[0]))
    options = us.SearchOptions(algorithm=algorithm, max_expanded=10_000)
    batch = search_batch(puzzle, puzzle.sample(1, seed=1), us.heuristic(puzzle, "base"), options)
    assert clock[0] >= 2000  # before the clock starts, and when it is compiled already
    assert batch.seconds < clock[0]
