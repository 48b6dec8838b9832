"""IDA* in chunks of a device: what the compiled IDA* finds out, whatever stops it."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

import undershoot as us
from odd_puzzles import odd_puzzle
from subjects import PYRAMINX
from undershoot.arrays import States
from undershoot.errors import Contradiction
from undershoot.guarantees import OptimalityKind
from undershoot.heuristics.device_patterns import DevicePatterns, DeviceTable, on_device
from undershoot.heuristics.patterns import PatternHeuristic
from undershoot.kernels.scrambles import scramble
from undershoot.pattern_tables.looks import Look
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.device import depth_first
from undershoot.search.device.depth_first import deepen_on_device
from undershoot.search.device.expanding import Expander, expander_of
from undershoot.search.device.frontier import Frontier, Paths
from undershoot.search.options import Algorithm, SearchOptions
from undershoot.search.results import Result, Status

DEEP = SearchOptions(algorithm=Algorithm.IDA)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors: waiting for other threads would take most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frontiers are split, at every depth."""
    monkeypatch.setitem(depth_first.CHUNK, "cpu", 4)


STILL = """
name = "still"
goals = [{goals}]
cursor = "_"
[moves]
R = {{ at = {{ 2 = "(1 2)", 3 = "(2 3)" }} }}
L = {{ at = {{ 1 = "(1 2)", 2 = "(2 3)" }} }}
"""


def test_cells_in_which_nothing_moves_belong_to_the_goal(tmp_path: Path) -> None:
    (tmp_path / "still.toml").write_text(STILL.format(goals='"1 2 _ x y"'))
    puzzle = us.puzzle(tmp_path / "still.toml")
    states = np.concatenate([puzzle.parse("1 _ 2 y x"), puzzle.parse("1 _ 2 x y")])
    there, here = both_ways(puzzle, us.patterns(puzzle, "2"), states)
    assert [result.status for result in there] == [result.status for result in here] == [Status.UNSOLVABLE, Status.SOLVED]
    (tmp_path / "still.toml").write_text(STILL.format(goals='"1 2 _ x y", "2 1 _ y x"'))
    puzzle = us.puzzle(tmp_path / "still.toml")
    with pytest.raises(us.UndershootError, match="differ in cells that no move changes"):
        both_ways(puzzle, us.patterns(puzzle, "2"), puzzle.table.goals)


@cache
def posed(name: str, patterns: str) -> tuple[Puzzle, PatternHeuristic, DevicePatterns]:
    puzzle = us.puzzle(name)
    heuristic = us.patterns(puzzle, patterns)
    return puzzle, heuristic, on_device(heuristic, "cpu")


def both_ways(
    puzzle: Puzzle, heuristic: PatternHeuristic, states: States, options: SearchOptions = DEEP
) -> tuple[list[Result], list[Result]]:
    """On the device, and by the compiled search."""
    there = deepen_on_device(puzzle, states, on_device(heuristic, "cpu"), options)
    return there, us.solve_many(puzzle, states, heuristic, options)


FAMILIES = [
    ("tiles-2x2", "3", 0),
    ("tiles-2x3", "3-2", 0),
    ("tiles-2x4", "1 2 5 6 / 3 4 7", 0),
    ("tiles-3x3", "4-4+reflected", 0),
    ("tiles-3x3-blank-first", "1 2 3", 12),
    ("tiles-4x4-blank-first", "4-4-4-3+reflected", 24),
    ("tiles-6x6", "2-2-2-2-2-2-2-2-2-2-2-2-2-2-2-2-2-1+reflected", 20),
    ("cube-2x2", "4+4+inverse", 9),
    ("cube-2x2", "3+3+symmetric+inverse", 6),
    ("cube-2x2-qtm", "4+4", 9),
    ("cube-3x3", "4+4+inverse", 5),
    ("cube-3x3-qtm", "4+4", 5),
    ("pancake-2", "all", 0),
    ("pancake-8", "4+4", 0),
    ("pancake-20", "4+4+4+4+4", 5),
    ("topspin-8-4", "4+4+inverse", 0),
    ("topspin-9-3", "4+5+symmetric", 0),
    ("topspin-10-4", "5+5", 4),
    (PYRAMINX, "1+1+1+1+6", 0),
    (PYRAMINX, "3+4", 6),
]


@pytest.mark.parametrize(("name", "patterns", "depth"), FAMILIES)
def test_costs_are_those_of_the_compiled_search(name: str, patterns: str, depth: int) -> None:
    """depth: of scrambles; 0 for random states."""
    puzzle, heuristic, _ = posed(name, patterns)
    depths = np.arange(25) % (depth + 1)
    states = scramble(puzzle.table, depths, seed=3).states if depth else puzzle.sample(25, seed=3)
    there, here = both_ways(puzzle, heuristic, states)
    assert [result.cost for result in there] == [result.cost for result in here]
    if puzzle.space.size <= 200_000:
        assert [result.cost for result in there] == us.oracle(puzzle).distance(states).tolist()
    assert all(result.optimality.kind is OptimalityKind.PROVEN for result in there)
    assert all(result.algorithm is Algorithm.IDA for result in there)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize(("name", "patterns", "depth"), [FAMILIES[1], FAMILIES[4], FAMILIES[7], FAMILIES[13], FAMILIES[15]])
def test_small_chunks_find_the_same(name: str, patterns: str, depth: int) -> None:
    puzzle, heuristic, there = posed(name, patterns)
    states = scramble(puzzle.table, np.arange(3, 9) % (depth + 1), seed=3).states if depth else puzzle.sample(5, seed=4)
    results = deepen_on_device(puzzle, states, there, DEEP)
    assert [result.cost for result in results] == [result.cost for result in us.solve_many(puzzle, states, heuristic, DEEP)]


@pytest.mark.parametrize("alone_from", [1, 30, 1 << 20])
@pytest.mark.parametrize("together", [1, 7, 100])
def test_instances_are_searched_together_or_alone_with_the_same_answers(
    together: int, alone_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(depth_first, "TOGETHER", together)
    monkeypatch.setattr(depth_first, "ALONE_FROM", alone_from)
    puzzle, _, there = posed("tiles-3x3", "4-4+reflected")
    states, told = puzzle.sample(20, seed=6), list[int]()
    results = deepen_on_device(puzzle, states, there, DEEP, told.append)
    assert [result.cost for result in results] == us.oracle(puzzle).distance(states).tolist()
    assert told[-1] == 20
    assert told == sorted(told)


@pytest.mark.parametrize("chunk", [4, 1 << 14])
@pytest.mark.parametrize("count", [1, 12])
@pytest.mark.parametrize("limit", [0, 1, 2, 10, 100, 700])
def test_bounds_are_true_wherever_the_limit_of_expansions_strikes(
    limit: int, count: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(depth_first.CHUNK, "cpu", chunk)
    puzzle, _, there = posed("tiles-3x3", "1 2 3 / 4 5 6")
    states = np.concatenate([puzzle.sample(count, seed=2), puzzle.table.goals])
    costs = us.oracle(puzzle).distance(states).tolist()
    options = SearchOptions(algorithm=Algorithm.IDA, max_expanded=limit)
    batches = [states] if count > 1 else [states[:1], states[1:]]
    results = [result for batch in batches for result in deepen_on_device(puzzle, batch, there, options)]
    for result, cost in zip(results, costs, strict=True):
        assert result.lower_bound <= cost
        assert (result.lower_bound ^ cost) & 1 == 0
        assert result.expanded <= limit + (result.cost is not None)
        assert result.status is (Status.SOLVED if result.cost is not None else Status.BUDGET)
        assert result.cost in (None, cost)
    assert results[-1].cost == 0


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("seconds", [0, 0.002, 0.02])
def test_bounds_are_true_wherever_the_limit_of_time_strikes(seconds: float) -> None:
    puzzle, _, there = posed("tiles-3x3", "1 2 3 / 4 5 6")
    states = puzzle.sample(12, seed=7)
    options = SearchOptions(algorithm=Algorithm.IDA, max_seconds=seconds)
    results = deepen_on_device(puzzle, states, there, options)
    for result, cost in zip(results, us.oracle(puzzle).distance(states).tolist(), strict=True):
        assert result.lower_bound <= cost
        assert result.cost in (None, cost)
        assert result.status in (Status.TIME, Status.SOLVED)
    assert any(result.status is Status.TIME for result in results)


def test_seconds_of_what_ends_early_are_fewer() -> None:
    puzzle, _, there = posed("tiles-3x3", "1 2 3 / 4 5 6")
    near = scramble(puzzle.table, np.array([2]), seed=0).states
    first, second = deepen_on_device(puzzle, np.concatenate([near, puzzle.sample(1, seed=1)]), there, DEEP)
    assert 0 < first.seconds < second.seconds


def test_a_goal_and_an_empty_list() -> None:
    puzzle, _, there = posed("tiles-3x3", "4-4+reflected")
    (result,) = deepen_on_device(puzzle, puzzle.table.goals, there, DEEP)
    assert (result.cost, result.actions, result.expanded, str(result.optimality)) == (0, (), 1, "optimal, proven")
    assert deepen_on_device(puzzle, puzzle.table.goals[:0], there, DEEP) == []


def test_a_bound_from_before_is_where_the_search_begins() -> None:
    puzzle, _, there = posed("tiles-3x3", "1 2 3 / 4 5 6")
    state = puzzle.parse("8 6 7 / 2 5 4 / 3 0 1")
    (full,) = deepen_on_device(puzzle, state, there, DEEP)
    (short,) = deepen_on_device(puzzle, state, there, DEEP, bounds=[31])
    assert (full.cost, short.cost) == (31, 31)
    assert short.expanded < full.expanded


ODD = [
    ("swaps", "1 2 3 / 4 5"),
    ("prices", "1 2 3 / 4 5 6 7 8"),
    ("goals", "1 2 3 4 / 5 6"),
    ("costs", "a b c e / d f"),
    ("dead ends", "a b d e"),
    ("two kinds", "a / c d"),
]


@pytest.mark.parametrize(("name", "patterns"), ODD)
def test_other_costs_several_goals_and_one_way_moves(tmp_path: Path, name: str, patterns: str) -> None:
    puzzle = odd_puzzle(tmp_path, name)
    heuristic = us.patterns(puzzle, patterns)
    states = scramble(puzzle.table, np.arange(30) % 12, seed=8).states
    there, here = both_ways(puzzle, heuristic, states)
    assert [result.cost for result in there] == us.oracle(puzzle).distance(states).tolist()
    assert [result.lower_bound for result in there] == [result.cost for result in here]
    assert all(result.optimality.kind is OptimalityKind.PROVEN for result in there)
    for limit in (1, 3, 20):
        results = deepen_on_device(puzzle, states, on_device(heuristic, "cpu"), replace(DEEP, max_expanded=limit))
        assert all(few.lower_bound <= (full.cost or 0) for few, full in zip(results, there, strict=True))


ONCE = """
name = "once"
goal = "c a b d"
cursor = "c"
[moves]
down = { at = { 2 = "(1 2)", 3 = "(2 3)", 4 = "(3 4)" } }
turn = { at = { 3 = "(1 2)", 4 = "(1 2 3)" } }
"""
"""The cursor comes one cell nearer with each move down, and never goes back: every way has an end."""


def test_what_cannot_be_solved_is_unsolvable_once_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "once.toml"
    path.write_text(ONCE)
    puzzle = us.puzzle(path)
    there = on_device(us.patterns(puzzle, "a b"), "cpu")
    blind = DevicePatterns("blind", there.moves, ((Look(zero_table(there)),),), 1)
    states = np.array(list(permutations(range(4))), dtype=np.uint8)
    costs = us.oracle(puzzle).look_up(states)[1].tolist()
    assert {"down", "turn"} == set(puzzle.table.action_names)
    known = [cost if 0 <= cost < 100 else None for cost in costs]
    assert 0 < known.count(None) < 24
    for heuristic in (there, blind):
        results = deepen_on_device(puzzle, states, heuristic, DEEP)
        assert [result.cost for result in results] == known
        assert all((result.status is Status.UNSOLVABLE) == (result.cost is None) for result in results)
    assert sum(np.isinf(there(states))) > 0


def zero_table(heuristic: DevicePatterns) -> DeviceTable:
    """One that says nothing."""
    pattern = heuristic.sums[0][0].table.pattern
    return DeviceTable(pattern, torch.zeros(int(pattern.folded.size), dtype=torch.uint8), False)


def toll(folder: Path, cost: int) -> tuple[Puzzle, DevicePatterns]:
    """The only way out costs so much, which the pattern does not see; beside it is one that costs more than any bound."""
    path = folder / "toll.toml"
    path.write_text(
        f'name = "toll"\ngoal = "a b c d"\n[moves]\nx = "(1 2)"\ny = {{ cycles = "(3 4)", cost = {cost} }}\n'
        'z = { cycles = "(1 2)(3 4)", cost = 65535 }\n'
    )
    puzzle = us.puzzle(path)
    return puzzle, on_device(us.patterns(puzzle, "a b"), "cpu")


def test_a_dear_move_is_no_proof_that_there_is_no_way(tmp_path: Path) -> None:
    puzzle, there = toll(tmp_path, 9000)
    (result,) = deepen_on_device(puzzle, puzzle.table.goals[:, [0, 1, 3, 2]], there, DEEP)
    assert (result.cost, result.status, str(result.optimality)) == (9000, Status.SOLVED, "optimal, proven")


def test_costs_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    puzzle, there = toll(tmp_path, 11_000)
    with pytest.raises(us.UndershootError, match=r"costs above 10,000 are not searched on a device"):
        deepen_on_device(puzzle, puzzle.table.goals[:, [0, 1, 3, 2]], there, DEEP)


def raising_after(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of the device is full from then on."""
    expand, count = Expander.expand, [0]

    def full(self: Expander, rows: object, depth: int) -> object:
        count[0] += 1
        if count[0] > calls:
            raise torch.cuda.OutOfMemoryError
        return expand(self, rows, depth)  # type: ignore[arg-type]

    monkeypatch.setattr(Expander, "expand", full)


@pytest.mark.parametrize("calls", [0, 1, 5, 20, 60])
def test_memory_that_runs_out_is_a_status_with_a_true_bound(calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle, _, there = posed("tiles-3x3", "1 2 3 / 4 5 6")
    states = np.concatenate([puzzle.table.goals, scramble(puzzle.table, np.array([3, 9]), 1).states, puzzle.sample(5, seed=9)])
    costs = us.oracle(puzzle).distance(states).tolist()
    raising_after(calls, monkeypatch)
    results = deepen_on_device(puzzle, states, there, DEEP)
    for result, cost in zip(results, costs, strict=True):
        assert result.status in (Status.MEMORY, Status.SOLVED)
        assert result.lower_bound <= cost
        assert result.cost in (None, cost)
    assert results[0].status is Status.SOLVED
    assert results[-1].status is Status.MEMORY
    assert calls < 20 or results[1].status is Status.SOLVED


def test_smaller_chunks_are_tried_where_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth_first, "LEAST_CHUNK", 16)
    monkeypatch.setitem(depth_first.CHUNK, "cpu", 256)
    expand, sizes = Expander.expand, list[int]()

    def small(self: Expander, rows: object, depth: int) -> object:
        sizes.append(len(rows))  # type: ignore[arg-type]
        if sizes[-1] > 40:
            raise torch.cuda.OutOfMemoryError
        return expand(self, rows, depth)  # type: ignore[arg-type]

    monkeypatch.setattr(Expander, "expand", small)
    puzzle, _, there = posed("tiles-3x3", "1 2 3 / 4 5 6")
    states = puzzle.sample(3, seed=10)
    results = deepen_on_device(puzzle, states, there, DEEP)
    assert [result.cost for result in results] == us.oracle(puzzle).distance(states).tolist()
    assert max(sizes) > 40


def planted(heuristic: DevicePatterns, by: int, at: int | None = None) -> DevicePatterns:
    """A table with wrong entries: all but 0 by so much too large, or one of them."""
    look = heuristic.sums[0][0]
    entries = look.table.entries.clone()
    if at is None:
        entries[entries > 0] += by
    else:
        entries[at] += by
    wrong = DeviceTable(look.table.pattern, entries, look.table.is_packed)
    return replace(heuristic, sums=((Look(wrong),),), first=1)


def test_a_wrong_table_ends_in_a_contradiction_and_not_in_a_false_statement() -> None:
    puzzle, _, there = posed("tiles-3x3", "1 2 3 4")
    states = puzzle.sample(20, seed=11)
    with pytest.raises(Contradiction):
        deepen_on_device(puzzle, states, planted(there, 9), DEEP)


def test_a_table_that_says_something_of_a_goal_is_refused() -> None:
    puzzle, _, there = posed("cube-2x2", "4+4")
    look = there.sums[0][0]
    entries = torch.full_like(look.table.entries, 0x11)
    wrong = replace(there, sums=((Look(DeviceTable(look.table.pattern, entries, True)),),), first=1)
    with pytest.raises(Contradiction):
        deepen_on_device(puzzle, puzzle.sample(2, seed=0), wrong, DEEP)


def test_kernels_are_kept_with_the_heuristic_and_not_with_a_changed_copy() -> None:
    _, _, there = posed("cube-2x2", "4+4")
    assert expander_of(there) is expander_of(there)
    assert expander_of(replace(there)) is not expander_of(there)


def test_paths_over_several_words_are_read_back() -> None:
    rng = np.random.default_rng(0)
    for steps in (1, 2, 3, 18, 200):
        paths, played = Paths(steps), rng.integers(0, steps, size=(150, 3))
        path = torch.zeros((0, 3), dtype=torch.int64)
        for depth, row in enumerate(played):
            path = paths.extended(path, depth, torch.tensor(row))
        assert [paths.steps_of(path[:, k], 150) for k in range(3)] == played.T.tolist()


def test_a_frontier_gives_back_every_row_once() -> None:
    puzzle, _, there = posed("cube-2x2", "4+4")
    del puzzle
    expander, frontier = expander_of(there), Frontier(10)
    codes = there.moves.goals[:, :1].repeat(1, 37)
    from undershoot.search.device.frontier import Rows

    numbers = torch.arange(37, dtype=torch.int32)
    left = torch.full((37,), 9, dtype=torch.int16)
    frontier.push(3, Rows(codes, left, expander.arrival_of_starts(codes), numbers, torch.zeros((1, 37), dtype=torch.int64)))
    seen: list[int] = []
    while frontier:
        depth, rows = frontier.pop(7)
        assert (depth, len(rows) <= 7) == (3, True)
        seen += rows.instance.tolist()
        assert frontier.size == 37 - len(seen)
    assert sorted(seen) == list(range(37))


def test_options_that_are_not_read_are_refused() -> None:
    puzzle, _, there = posed("cube-2x2", "4+4")
    with pytest.raises(us.UndershootError, match="does not read --weight"):
        deepen_on_device(puzzle, puzzle.sample(1, seed=0), there, SearchOptions(weight=2))


def test_who_watches_sees_bounds_grow() -> None:
    puzzle, _, there = posed("tiles-3x3", "1 2 3 / 4 5 6")
    glimpses: list[us.Glimpse] = []
    options = SearchOptions(algorithm=Algorithm.IDA, watch=glimpses.append)
    (result,) = deepen_on_device(puzzle, puzzle.parse("8 6 7 / 2 5 4 / 3 0 1"), there, options)
    bounds = [glimpse.lower_bound for glimpse in glimpses]
    assert bounds == sorted(bounds)
    assert all(bound <= (result.cost or 0) for bound in bounds)
