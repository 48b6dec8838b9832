"""A* on a device: the expansions, bounds and sentences of the processor's; the same tests run on CUDA where it is there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import undershoot as us
from odd_puzzles import odd_puzzle
from outside import Outside
from subjects import ALL, NAMED
from undershoot.arrays import F32, States
from undershoot.errors import Contradiction, NotAvailable
from undershoot.guarantees import NO_GUARANTEE, PROVEN, Guarantee, Heuristic, OptimalityKind, Rounding
from undershoot.oracles.breadth_first import explore
from undershoot.oracles.distance_table import DistanceTable
from undershoot.puzzles.base_heuristics import zero_heuristic
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.device import best_first, packing
from undershoot.search.device.best_first import Searches, astar_on_device
from undershoot.search.device.nodes import Nodes
from undershoot.search.device.stacks import Stacks
from undershoot.search.results import Result

NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=NEEDS_CUDA)]
ALSO_LARGE = ("lights-out-8x8", "tiles-6x6")
"""For states of so many bytes the search on the processor would be compiled once more; the cube has many words, too."""
ON_DEVICES = pytest.mark.parametrize("device", DEVICES)
FIELDS = (
    *("status", "actions", "cost", "lower_bound", "optimality", "expanded", "expanded_below"),
    *("generated", "evaluated", "reopened", "stored", "overestimates"),
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small tensors: waiting for other threads would take most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@dataclass(frozen=True)
class Given:
    """A heuristic by its formula."""

    fingerprint: str
    formula: Callable[[States], F32]
    name: str = "given"
    guarantee: Guarantee = NO_GUARANTEE
    rounding: Rounding = Rounding.INTEGER

    def __call__(self, states: States) -> F32:
        return self.formula(states)


def seen(result: Result) -> list[object]:
    return [getattr(result, field) for field in FIELDS]


def check_same(puzzle: Puzzle, states: States, heuristic: Heuristic, options: us.SearchOptions, device: str) -> list[Result]:
    """All that is said of every instance is what the processor says of it."""
    expected = us.solve_many(puzzle, states, Outside(heuristic), options)
    found = astar_on_device(puzzle, states, heuristic, options, device)
    assert [seen(one) for one in found] == [seen(one) for one in expected]
    return found


def costly() -> Puzzle:
    """Moves of different costs, so that ways to a state are found more cheaply later."""
    puzzle = us.puzzle("tiles-2x3")
    table = replace(puzzle.table, cost=np.array([1, 2, 3, 4], dtype=np.int32), symmetries=())
    return replace(puzzle, name="costly", table=table)


@cache
def distances(name: str) -> tuple[Puzzle, DistanceTable]:
    puzzle = costly() if name == "costly" else us.puzzle(name)
    return puzzle, explore(puzzle)


def scaled(name: str, seed: int, high: float, guarantee: Guarantee) -> Given:
    """The true cost times a random factor of each state, rounded down: as inconsistent as can be."""
    puzzle, table = distances(name)
    factors = np.random.default_rng(seed).uniform(0, high, size=table.states).astype(np.float32)

    def formula(states: States) -> F32:
        rows, true_cost = table.look_up(states)
        return np.asarray(np.floor(true_cost * factors[rows]), dtype=np.float32)

    return Given(puzzle.table.fingerprint, formula, "scaled", guarantee)


@ON_DEVICES
@pytest.mark.parametrize("name", [name for name in ALL if name not in ALSO_LARGE])
def test_every_puzzle_is_searched_as_on_the_processor(name: str, device: str) -> None:
    puzzle = us.puzzle(name)
    depths = np.arange(12) % (2 if name == "lights-out-1x2" else 6)
    states = us.scramble(puzzle.table, depths, 3).states
    base = us.heuristic(puzzle, "base")
    for ties in us.Ties:
        check_same(puzzle, states, base, us.SearchOptions(ties=ties, max_expanded=60), device)
    check_same(puzzle, states, base, us.SearchOptions(weight=1.5, max_expanded=9), device)


@ON_DEVICES
@pytest.mark.parametrize("ties", us.Ties)
@pytest.mark.parametrize("kind", ["tiles-2x3", "costly", "overestimates"])
def test_nodes_are_reopened_alike(kind: str, ties: us.Ties, device: str) -> None:
    name = "tiles-2x3" if kind == "overestimates" else kind
    puzzle, table = distances(name)
    guide = scaled(name, 5, 1.7, NO_GUARANTEE) if kind == "overestimates" else scaled(name, 5, 1.0, PROVEN)
    states = table.states_of_rows(0, table.states)[::9]
    reopened = 0
    for settings in ({}, {"weight": 2.0}, {"weight": 1.25}, {"max_expanded": 0}, {"max_expanded": 11}):
        results = check_same(puzzle, states, guide, us.SearchOptions(ties=ties, **settings), device)
        reopened += sum(result.reopened for result in results)
    assert reopened > 0, "this heuristic must force reopenings, or it tests nothing"


@ON_DEVICES
def test_uniform_8_puzzles_in_lock_step_are_those_of_the_processor(device: str) -> None:
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(300, 5)
    results = check_same(puzzle, states, us.heuristic(puzzle, "learned"), us.SearchOptions(), device)
    assert [result.cost for result in results] == us.oracle(puzzle).distance(states).tolist()


@ON_DEVICES
@pytest.mark.parametrize(
    ("name", "heuristic"),
    [
        ("tiles-3x3", "linear-conflict"),
        ("tiles-3x3", "paper"),
        ("tiles-3x3", "small+base"),
        ("tiles-3x3", "patterns:4-4+reflected"),
        ("tiles-2x4", "patterns:1 2 5 6 / 3 4 7"),
        ("cube-2x2", "paper"),
        ("cube-2x2", "patterns:4+4+inverse"),
        ("cube-2x2", "label-free"),
        ("lights-out-3x3", "paper"),
        ("lights-out-5x5", "learned"),
        ("lights-out-3x3", "gf2"),
        ("topspin-8-4", "patterns:4+4+inverse"),
    ],
)
def test_heuristics_guide_as_on_the_processor(name: str, heuristic: str, device: str) -> None:
    puzzle = us.puzzle(name)
    states = puzzle.sample(10, 7)
    for ties in us.Ties:
        check_same(puzzle, states, us.heuristic(puzzle, heuristic), us.SearchOptions(ties=ties, max_expanded=80), device)


@ON_DEVICES
@pytest.mark.parametrize("per_step", [2, 5, 16, 100, 3000])
@pytest.mark.parametrize("name", ["tiles-2x3", "costly"])
def test_many_nodes_a_step_give_true_costs_and_bounds(name: str, per_step: int, device: str) -> None:
    puzzle, table = distances(name)
    states = table.states_of_rows(0, table.states)[:: 9 if per_step < 16 else 40]
    truth = table.distance(states).tolist()
    guide = scaled(name, 3, 1.0, PROVEN)
    usual = us.SearchOptions(expand_per_step=per_step)
    for options in (
        usual,
        replace(usual, ties=us.Ties.SHALLOW),
        replace(usual, max_expanded=13),
        replace(usual, weight=2.0),
    ):
        for result, cost in zip(astar_on_device(puzzle, states, guide, options, device), truth, strict=True):
            assert result.lower_bound <= cost
            assert options.max_expanded is None or result.expanded <= options.max_expanded
            if options.weight == 1 and result.status is us.Status.SOLVED:
                assert (result.cost, result.optimality.kind) == (cost, OptimalityKind.PROVEN)
            elif result.cost is not None:
                assert cost <= result.cost
                assert result.status is not us.Status.SOLVED or result.cost <= 2 * cost
            assert result.status is us.Status.SOLVED or options.max_expanded is not None


@ON_DEVICES
@pytest.mark.parametrize("ties", us.Ties)
@pytest.mark.parametrize("per_step", [3, 7, 50])
def test_many_nodes_a_step_are_nearly_those_of_the_processor(per_step: int, ties: us.Ties, device: str) -> None:
    """What is stale when it comes up makes a step smaller, where the processor takes another node."""
    puzzle = us.puzzle("tiles-3x3")
    states = us.scramble(puzzle.table, np.arange(12) + 8, 4).states
    base = us.heuristic(puzzle, "base")
    for limit in (None, 45):
        options = us.SearchOptions(expand_per_step=per_step, ties=ties, max_expanded=limit)
        expected = us.solve_many(puzzle, states, Outside(base), options)
        found = astar_on_device(puzzle, states, base, options, device)
        for one, other in zip(found, expected, strict=True):
            assert (one.status, one.cost, one.lower_bound) == (other.status, other.cost, other.lower_bound)
            assert abs(one.expanded - other.expanded) <= per_step
        assert sum(seen(one) == seen(other) for one, other in zip(found, expected, strict=True)) >= 9


@ON_DEVICES
def test_lanes_are_taken_by_the_next_instances(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle, table = distances("tiles-2x3")
    states = table.states_of_rows(0, table.states)[::3]
    monkeypatch.setitem(best_first.LOCK_STEP, device, 16)
    done: list[int] = []
    found = astar_on_device(puzzle, states, us.heuristic(puzzle, "base"), us.SearchOptions(), device, done.append)
    assert done == list(range(1, len(states) + 1))
    expected = us.solve_many(puzzle, states, Outside(us.heuristic(puzzle, "base")))
    assert [seen(one) for one in found] == [seen(one) for one in expected]


def from_file(folder: Path, text: str) -> Puzzle:
    path = folder / "puzzle.toml"
    path.write_text(text)
    return us.puzzle(path)


@ON_DEVICES
def test_dead_ends_and_one_way_moves(device: str, tmp_path: Path) -> None:
    text = 'name = "dead"\ngoal = "a x b"\ncursor = "x"\n[moves]\nr = { at = { 1 = "(1 2)" } }\ns = { at = { 1 = "(1 3)" } }\n'
    puzzle = from_file(tmp_path, text)
    states = np.concatenate([puzzle.parse(text) for text in ("x a b", "b a x", "a x b")])
    found = check_same(puzzle, states, us.heuristic(puzzle, "base"), us.SearchOptions(), device)
    assert [result.status.value for result in found] == ["solved", "unsolvable", "solved"]
    for per_step in (3, 100):
        options = us.SearchOptions(expand_per_step=per_step)
        assert [r.status for r in astar_on_device(puzzle, states, us.heuristic(puzzle, "base"), options, device)] == [
            r.status for r in found
        ]


@ON_DEVICES
def test_a_solved_start_and_several_goals(device: str) -> None:
    puzzle = us.puzzle("tiles-3x3")
    base = us.heuristic(puzzle, "base")
    for per_step in (1, 100):
        options = us.SearchOptions(expand_per_step=per_step)
        (result,) = astar_on_device(puzzle, puzzle.table.goals, base, options, device)
        assert (result.cost, result.actions, result.expanded, result.generated) == (0, (), 1, 0)
    two = replace(puzzle.table, goals=np.concatenate([puzzle.table.goals, puzzle.parse("D")]), symmetries=())
    near = replace(puzzle, name="two-goals", table=two, base_heuristic=zero_heuristic(9, 9))
    states = np.concatenate([puzzle.parse("D D"), us.scramble(puzzle.table, np.arange(10), 2).states])
    assert check_same(near, states, us.heuristic(near, "zero"), us.SearchOptions(), device)[0].cost == 1
    assert astar_on_device(near, states[:0], us.heuristic(near, "zero"), us.SearchOptions(), device) == []


@ON_DEVICES
@pytest.mark.parametrize("per_step", [1, 5, 100])
@pytest.mark.parametrize("limit", [{"max_expanded": 40}, {"max_seconds": 0.0}, {"max_seconds": 0.05}])
def test_lower_bounds_are_true_whatever_limit_strikes(limit: dict[str, float], per_step: int, device: str) -> None:
    puzzle, table = distances("tiles-3x3")
    states = puzzle.sample(10, 9)
    stopped = set()
    for guide in (us.heuristic(puzzle, "base"), scaled("tiles-3x3", 2, 2.5, NO_GUARANTEE)):
        options = us.SearchOptions(expand_per_step=per_step, **limit)  # type: ignore[arg-type]
        results = astar_on_device(puzzle, states, guide, options, device)
        for result, cost, state in zip(results, table.distance(states).tolist(), states, strict=True):
            assert puzzle.base_heuristic(state[None])[0] <= result.lower_bound <= cost
            assert result.cost is None or result.cost >= cost
            if result.status.is_limit:
                stopped.add(result.status)
    expected = {us.Status.BUDGET if "max_expanded" in limit else us.Status.TIME}
    assert stopped == expected or (not stopped and limit.get("max_seconds", 0.0) > 0.0)  # a quick machine may need less


@ON_DEVICES
@pytest.mark.parametrize("per_step", [16, 100])
def test_the_memory_limit_is_honoured_and_used(per_step: int, device: str) -> None:
    puzzle, limit = us.puzzle("tiles-4x4-blank-first"), 1 << 20
    state = puzzle.parse("14 13 15 7 11 12 9 5 6 0 2 1 4 8 10 3")
    options = us.SearchOptions(max_memory=limit, expand_per_step=per_step, max_expanded=20_000)
    searches = Searches(puzzle, state, us.heuristic(puzzle, "base"), options, torch.device(device))
    ((_, result),) = searches.run()
    assert (result.status, result.cost) == (us.Status.MEMORY, None)
    assert 41 <= result.lower_bound <= 57
    assert 0.3 * limit < searches.peak_bytes <= limit


@ON_DEVICES
def test_the_memory_limit_strikes_only_those_that_reach_it(device: str) -> None:
    puzzle = us.puzzle("tiles-4x4-blank-first")
    hard = puzzle.parse("14 13 15 7 11 12 9 5 6 0 2 1 4 8 10 3")
    easy = us.scramble(puzzle.table, np.full(60, 9), 1).states
    states, base = np.concatenate([easy[:20], hard, hard, easy[20:]]), us.heuristic(puzzle, "base")
    options = us.SearchOptions(max_memory=1 << 20)
    found = astar_on_device(puzzle, states, base, options, device)
    expected = astar_on_device(puzzle, states, base, us.SearchOptions(max_expanded=400), device)
    is_hard = np.arange(len(states)) // 2 == 10
    for one, other, hopeless in zip(found, expected, is_hard.tolist(), strict=True):
        assert one.status is (us.Status.MEMORY if hopeless else us.Status.SOLVED)
        assert hopeless or seen(one) == seen(other)
        assert not hopeless or (one.expanded > 1000 and one.lower_bound <= 57)


@ON_DEVICES
@pytest.mark.parametrize("ties", us.Ties)
def test_what_is_forgotten_changes_nothing(ties: us.Ties, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("tiles-3x3")
    states, base = puzzle.sample(40, 2), us.heuristic(puzzle, "linear-conflict")
    monkeypatch.setitem(best_first.LOCK_STEP, device, 8)
    forgotten, forget = [], Nodes.forget

    def noted(nodes: Nodes, is_kept: torch.Tensor) -> torch.Tensor:
        forgotten.append(int((~is_kept).sum()))
        return forget(nodes, is_kept)

    monkeypatch.setattr(Nodes, "forget", noted)
    options = us.SearchOptions(ties=ties, max_expanded=300)
    expected = us.solve_many(puzzle, states, Outside(base), options)
    found = astar_on_device(puzzle, states, base, replace(options, max_memory=1 << 20), device)
    assert forgotten
    is_whole = [one.status is not us.Status.MEMORY for one in found]
    assert sum(is_whole) > 30
    for one, other, whole in zip(found, expected, is_whole, strict=True):
        assert not whole or seen(one) == seen(other)


@ON_DEVICES
def test_memory_that_gives_out_in_the_middle_of_a_step_leaves_a_true_bound(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    puzzle, table = distances("tiles-2x3")
    states = table.states_of_rows(0, table.states)[-40::4]
    truth = table.distance(states).tolist()
    for part, name in ((Nodes, "add"), (Nodes, "look_briefly"), (Stacks, "push"), (Stacks, "pop")):
        whole, calls = getattr(part, name), 0

        def gives_out(*given: object, whole: Callable[..., object] = whole, **named: object) -> object:
            nonlocal calls
            calls += 1
            if calls > 12:
                raise torch.cuda.OutOfMemoryError
            return whole(*given, **named)

        with monkeypatch.context() as patch:
            patch.setattr(part, name, gives_out)
            results = astar_on_device(puzzle, states, us.heuristic(puzzle, "base"), us.SearchOptions(), device)
        assert us.Status.MEMORY in {result.status for result in results}
        assert all(result.lower_bound <= cost for result, cost in zip(results, truth, strict=True))


@ON_DEVICES
@pytest.mark.parametrize(
    ("value", "guarantee", "part"),
    [
        (np.nan, NO_GUARANTEE, "the heuristic given gives nan, for 1 2 3"),
        (np.inf, NO_GUARANTEE, "the heuristic given gives inf, for"),
        (-1, PROVEN, "gives -1.0, though it claims that it never overestimates, for"),
        (0.5, PROVEN, "gives 0.5, though it claims whole values, for"),
        (40_000, NO_GUARANTEE, "values above 32,000 are not searched with on a device"),
        (5_000, NO_GUARANTEE, "values of f from 2,048 on are not searched on a device"),
    ],
)
def test_impossible_values_are_refused(value: float, guarantee: Guarantee, part: str, device: str) -> None:
    puzzle = us.puzzle("tiles-3x3")
    guide = Given(puzzle.table.fingerprint, lambda s: np.full(len(s), value, np.float32), "given", guarantee)
    with pytest.raises(us.UndershootError, match=part):
        astar_on_device(puzzle, puzzle.parse("D"), guide, us.SearchOptions(), device)


@ON_DEVICES
def test_what_a_device_cannot_do_is_said_in_one_sentence(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle, large = us.puzzle("tiles-3x3"), us.puzzle("cube-3x3")
    base = us.heuristic(puzzle, "base")
    with monkeypatch.context() as patch:
        patch.setattr(packing, "MOST_WORDS", 2)
        with pytest.raises(NotAvailable, match="at most 2 words of 64 bits, and a state of cube-3x3 takes 3; leave out"):
            astar_on_device(large, large.table.goals, us.heuristic(large, "base"), us.SearchOptions(), device)
    fraction = replace(Given(puzzle.table.fingerprint, base), rounding=Rounding.NONE)
    with pytest.raises(NotAvailable, match="goes by whole values, and given gives others"):
        astar_on_device(puzzle, puzzle.table.goals, fraction, us.SearchOptions(), device)
    with pytest.raises(us.UndershootError, match=r"the weight \(--weight\) is 1.23456; on a device f is whole"):
        astar_on_device(puzzle, puzzle.table.goals, base, us.SearchOptions(weight=1.23456), device)
    with pytest.raises(us.UndershootError, match="belongs to another puzzle"):
        astar_on_device(us.puzzle("tiles-2x3"), us.puzzle("tiles-2x3").table.goals, base, us.SearchOptions(), device)


@ON_DEVICES
@pytest.mark.parametrize("per_step", [1, 100])
def test_a_false_claim_is_caught_when_a_solution_contradicts_it(per_step: int, device: str) -> None:
    puzzle, _ = distances("tiles-2x3")
    _, table = distances("tiles-2x3")
    liar = Given(puzzle.table.fingerprint, lambda s: (3 * table.distance(s)).astype(np.float32), "liar", PROVEN)
    with pytest.raises(Contradiction, match=r"liar claims that it never overestimates, but says .* of a state"):
        astar_on_device(puzzle, puzzle.sample(20, 1), liar, us.SearchOptions(expand_per_step=per_step), device)
    at_goal = Given(puzzle.table.fingerprint, lambda s: np.ones(len(s), np.float32), "one", PROVEN)
    with pytest.raises(Contradiction, match="one claims that it never overestimates, but says 1 of a state"):
        astar_on_device(puzzle, puzzle.table.goals, at_goal, us.SearchOptions(expand_per_step=per_step), device)


@ON_DEVICES
def test_a_15_puzzle_state_takes_at_most_64_bytes(device: str) -> None:
    puzzle = us.puzzle("tiles-4x4-blank-first")
    state = puzzle.parse("14 13 15 7 11 12 9 5 6 0 2 1 4 8 10 3")
    options = us.SearchOptions(expand_per_step=4000, max_expanded=40_000)
    searches = Searches(puzzle, state, us.heuristic(puzzle, "base"), options, torch.device(device))
    ((_, result),) = searches.run()
    assert (result.status, result.expanded) == (us.Status.BUDGET, 40_000)
    assert searches.peak_bytes / result.stored <= 64 + 24  # room for what the last step could have stored
    assert us.solve(puzzle, state, us.heuristic(puzzle, "base"), us.SearchOptions(max_expanded=40_000)).lower_bound <= 57


@ON_DEVICES
def test_glimpses_show_true_bounds(device: str) -> None:
    puzzle = us.puzzle("tiles-3x3")
    state = puzzle.parse("8 6 7 / 2 5 4 / 3 0 1")
    for per_step in (1, 50):
        glimpses: list[us.Glimpse] = []
        options = us.SearchOptions(watch=glimpses.append, expand_per_step=per_step, max_expanded=2000)
        (result,) = astar_on_device(puzzle, state, us.heuristic(puzzle, "base"), options, device)
        assert glimpses
        assert all(glimpse.lower_bound <= result.lower_bound <= 31 for glimpse in glimpses)


def test_all_named_puzzles_pack() -> None:
    for name in NAMED:
        puzzle = us.puzzle(name)
        packing.check_packs(puzzle)
        cells = packing.Packing(puzzle.table, torch.device("cpu"))
        states = us.scramble(puzzle.table, np.arange(20) % 2, 0).states
        given = torch.tensor(states).long()
        assert (cells.unpack(cells.pack(given)) == given).all()


@ON_DEVICES
@pytest.mark.parametrize(("name", "chosen"), [("dead ends", "a b d e"), ("unreachable", "a b c d")])
def test_tables_that_know_of_dead_ends_guide_as_on_the_processor(name: str, chosen: str, device: str, tmp_path: Path) -> None:
    puzzle = odd_puzzle(tmp_path, name)
    table = us.oracle(puzzle)
    states = table.states_of_rows(0, table.states)
    may = states[puzzle.table.legal[puzzle.table.contexts_of(states), 0]]
    children = us.apply(puzzle.table, may, np.zeros(len(may), dtype=np.int64))
    states = np.concatenate([states, children])
    check_same(puzzle, states, us.patterns(puzzle, chosen), us.SearchOptions(), device)
    for per_step in (2, 100):
        found = astar_on_device(puzzle, states, us.patterns(puzzle, chosen), us.SearchOptions(expand_per_step=per_step), device)
        assert [result.cost for result in found[: table.states]] == table.distance(states[: table.states]).tolist()


MIRRORED = """name = "mirrored"
goal = "a b c d e f g"
[moves]
m0 = { cost = 60, cycles = "(1 3 2 6)" }
m1 = { cost = 60, cycles = "(2 5 6 4)" }
m2 = { cost = 60, cycles = "(1 6 7 5)" }
m3 = { cost = 60, cycles = "(1 4 6 3)" }
m4 = { cost = 60, cycles = "(2 4 7 6)" }
m5 = { cost = 60, cycles = "(3 6 5 7)" }
[[symmetries]]
cells = "(1 4 7 3 2 5)"
values = { "a" = "d", "b" = "e", "c" = "b", "d" = "g", "e" = "a", "f" = "f", "g" = "c" }
[[symmetries]]
cells = "(1 7 2)(3 5 4)"
values = { "a" = "g", "b" = "a", "c" = "e", "d" = "c", "e" = "d", "f" = "f", "g" = "b" }
"""


@ON_DEVICES
@pytest.mark.parametrize("per_step", [1, 2, 7])
def test_rows_that_are_no_states_are_not_looked_up_beside_the_table(per_step: int, device: str, tmp_path: Path) -> None:
    puzzle = from_file(tmp_path, MIRRORED)
    for chosen in ("a b+symmetric", "a g+symmetric"):
        states = puzzle.sample(8, per_step)
        options = us.SearchOptions(expand_per_step=per_step)
        found = astar_on_device(puzzle, states, us.patterns(puzzle, chosen), options, device)
        assert [result.cost for result in found] == us.oracle(puzzle).distance(states).tolist()
