"""A beam on a device, here on the processor: its solutions are real, it ends, and no guide makes a statement false."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

import undershoot as us
from outside import Outside
from subjects import ALL
from undershoot.arrays import F32, States
from undershoot.guarantees import NO_GUARANTEE, PROVEN, Guarantee, Heuristic, Rounding
from undershoot.heuristics import device_values
from undershoot.heuristics.analytic import base
from undershoot.heuristics.device_values import values_on
from undershoot.heuristics.neural import Network, NeuralHeuristic
from undershoot.kernels.cpu import successors
from undershoot.oracles.breadth_first import explore
from undershoot.puzzles.base_heuristics import zero_heuristic
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.device import beam as beams
from undershoot.search.device.beam import DeviceBeam
from undershoot.search.device.beam_layers import LOWER_BITS, Best, Children, Growing, Marks, sort_keys
from undershoot.search.guiding import Guided
from undershoot.search.known import NO_COST, Known, Turns
from undershoot.search.options import SearchOptions
from undershoot.search.results import Status

CPU = torch.device("cpu")
ROOM = 1 << 28
WILD: dict[str, Callable[[States], Any]] = {
    "zero": lambda states: np.zeros(len(states)),
    "huge": lambda states: np.full(len(states), 1e30),
    "infinite": lambda states: np.full(len(states), np.inf),
    "no number": lambda states: np.full(len(states), np.nan),
    "some of them no numbers": lambda states: np.where(states[:, 0] < 4, np.nan, 3.0),
    "negative": lambda states: np.full(len(states), -1e9),
    "noise": lambda states: np.random.default_rng(int(states.sum())).normal(size=len(states)) * 1e6,
    "away from the goal": lambda states: 1000.0 * (states == np.array([1, 2, 3, 4, 5, 6, 7, 8, 0])).sum(axis=1),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many states are expanded at once does not depend on what else the machine does."""
    monkeypatch.setattr(beams, "SECONDS_A_SLICE", float("inf"))


@dataclass(frozen=True, eq=False)
class Says:
    """A guide that says whatever it likes."""

    fingerprint: str
    says: Callable[[States], Any]
    name: str = "says"
    guarantee: Guarantee = NO_GUARANTEE
    rounding: Rounding = Rounding.NONE

    def __call__(self, states: States) -> F32:
        return np.asarray(self.says(states), dtype=np.float32)


class Searched:
    """What became of a search by a beam alone."""

    def __init__(
        self,
        puzzle: Puzzle,
        state: States,
        guide: Heuristic,
        options: SearchOptions | None = None,
        memory: int = ROOM,
        proven: Heuristic | None = None,
        seed: int = 0,
    ) -> None:
        self.known = Known(puzzle, state.reshape(1, -1), 0, options or SearchOptions())
        self.known.offer(np.zeros(0, dtype=np.int32))
        self.beam = DeviceBeam(self.known, guide, proven or base(puzzle), CPU, memory, seed)
        self.beam.compile()
        self.known.begin()
        Guided(self.known, [self.beam.slices()], Turns()).search()

    @property
    def cost(self) -> int:
        return self.known.cost


def played(puzzle: Puzzle, state: States, actions: list[int]) -> tuple[int, bool]:
    """What the actions cost, one after another, and whether they lead to a goal."""
    cost = 0
    for action in actions:
        children, is_legal = successors(puzzle.table, state.reshape(1, -1))
        assert is_legal[0, action]
        state, cost = children[0, action], cost + int(puzzle.table.cost[action])
    return cost, bool((state == puzzle.table.goals).all(1).any())


def check_real(puzzle: Puzzle, state: States, searched: Searched) -> None:
    assert searched.cost < NO_COST
    assert played(puzzle, state, searched.known.actions.tolist()) == (searched.cost, True)


@pytest.mark.parametrize("name", ALL)
def test_solutions_of_every_puzzle_are_real(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is near is kept, since some have no base heuristic that would say anything."""
    monkeypatch.setitem(beams.FIRST_WIDTH, "cpu", 1 << 12)
    puzzle = us.puzzle(name)
    depths = np.array([1] if name == "lights-out-1x2" else [1, 2, 3])
    walked = us.scramble(puzzle.table, depths, 3)
    for state, cost in zip(walked.states, walked.cost_walked.tolist(), strict=True):
        searched = Searched(puzzle, state, base(puzzle), SearchOptions(max_expanded=20_000))
        check_real(puzzle, state, searched)
        assert searched.cost <= cost


@pytest.mark.parametrize("name", ["tiles-2x3", "tiles-3x3", "pancake-8", "lights-out-3x3", "topspin-8-4"])
@pytest.mark.parametrize("guide", ["zero", "base"])
def test_a_beam_that_leaves_nothing_out_finds_the_best_solution_and_ends(name: str, guide: str) -> None:
    puzzle = us.puzzle(name)
    states = puzzle.sample(3, seed=4)
    for state, cost in zip(states, us.oracle(puzzle).distance(states).tolist(), strict=True):
        searched = Searched(puzzle, state, us.heuristic(puzzle, guide))
        check_real(puzzle, state, searched)
        assert searched.cost == cost
        assert searched.known.status is None  # it ended by itself
        assert not searched.beam.was_cut


@pytest.mark.parametrize("says", WILD)
def test_wild_guides_only_make_solutions_later(says: str) -> None:
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(1, seed=6)
    for state, cost in zip(states, us.oracle(puzzle).distance(states).tolist(), strict=True):
        searched = Searched(puzzle, state, Says(puzzle.table.fingerprint, WILD[says]), SearchOptions(max_expanded=200_000))
        assert searched.beam.asks_the_host
        if says not in ("away from the goal", "some of them no numbers"):  # or it is not found so soon
            check_real(puzzle, state, searched)
            assert searched.cost >= cost


def test_a_state_without_solution_is_searched_to_the_end() -> None:
    puzzle = us.puzzle("tiles-2x3")
    state = puzzle.table.goals[0][[1, 0, 2, 3, 4, 5]]
    searched = Searched(puzzle, state, us.heuristic(puzzle, "zero"))
    assert (searched.cost, searched.known.status, searched.known.counts["expanded"]) == (NO_COST, None, 360)


def test_a_solved_start_is_no_work() -> None:
    puzzle = us.puzzle("tiles-3x3")
    searched = Searched(puzzle, puzzle.table.goals[0], base(puzzle))
    assert (searched.cost, searched.known.status, searched.known.counts["expanded"]) == (0, Status.SOLVED, 0)


def test_the_nearest_of_several_goals_is_found() -> None:
    puzzle = us.puzzle("tiles-2x3")
    goals = np.stack([puzzle.table.goals[0], *puzzle.sample(3, seed=8)])
    table = replace(puzzle.table, goals=goals, symmetries=())
    several = replace(puzzle, name="several", table=table, base_heuristic=zero_heuristic(6, 6))
    states = puzzle.sample(6, seed=9)
    for state, cost in zip(states, explore(several).distance(states).tolist(), strict=True):
        searched = Searched(several, state, Says(several.table.fingerprint, WILD["zero"]), proven=us.heuristic(several, "zero"))
        check_real(several, state, searched)
        assert searched.cost == cost


def test_costs_other_than_one_count() -> None:
    puzzle = us.puzzle("tiles-2x3")
    table = replace(puzzle.table, cost=np.array([1, 2, 3, 4], dtype=np.int32), symmetries=())
    costly = replace(puzzle, name="costly", table=table)
    states = puzzle.sample(8, seed=2)
    for state, cost in zip(states, explore(costly).distance(states).tolist(), strict=True):
        searched = Searched(costly, state, base(costly))
        check_real(costly, state, searched)
        assert cost <= searched.cost <= 2 * cost


def test_children_are_sorted_by_f_and_what_is_no_number_comes_last() -> None:
    costs = torch.tensor([5, 1, 1, 0, 0, 2, 2])
    values = torch.tensor([1.0, 9.0, 2.5, np.nan, np.inf, -7.0, 1e30])
    keys = sort_keys(costs, values, torch.arange(7), salt=3)
    assert keys.argsort()[:4].tolist() == [5, 2, 0, 1]
    assert (keys >= 0).all()
    assert (keys >> LOWER_BITS).tolist()[:3] == [6 * 2048, 10 * 2048, 3.5 * 2048]
    same = [
        sort_keys(costs[:1].expand(99), values[:1].expand(99), torch.arange(99), salt).argsort().tolist() for salt in (1, 2)
    ]
    assert same[0] != same[1]  # ties are broken otherwise
    assert same[0] != list(range(99))


@pytest.mark.parametrize("limit", [0, 1, 2, 100, 5000])
def test_a_limit_of_expansions_is_used_up_and_kept(limit: int) -> None:
    puzzle = us.puzzle("tiles-4x4")
    searched = Searched(puzzle, puzzle.sample(1, seed=1), us.heuristic(puzzle, "zero"), SearchOptions(max_expanded=limit))
    assert (searched.known.counts["expanded"], searched.known.status) == (limit, Status.BUDGET)


def test_a_limit_of_time_is_kept() -> None:
    puzzle = us.puzzle("tiles-4x4")
    searched = Searched(puzzle, puzzle.sample(1, seed=1), us.heuristic(puzzle, "zero"), SearchOptions(max_seconds=0.2))
    assert searched.known.status is Status.TIME
    assert searched.known.seconds < 2


def test_slices_become_shorter_where_they_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("tiles-4x4")
    beam = Searched(puzzle, puzzle.sample(1, seed=1), base(puzzle), SearchOptions(max_expanded=0)).beam
    assert beam.rows == 4096
    monkeypatch.setattr(beams, "SECONDS_A_SLICE", 0.02)
    for rows in (4096, 2048, 1024):
        beam.keep_pace(rows, 1.0)
        assert beam.rows == rows // 2
    beam.keep_pace(3, 0.0)
    assert beam.rows == 512  # that was no whole slice
    beam.keep_pace(512, 0.0)
    assert beam.rows == 1024


def test_memory_is_bounded() -> None:
    """A beam that finds nothing would note its layers for ever."""
    puzzle = us.puzzle("tiles-4x4")
    zero, state = us.heuristic(puzzle, "zero"), puzzle.sample(1, seed=1)
    none = Searched(puzzle, state, zero, memory=1000)
    assert none.known.counts["expanded"] == 0
    at_once = none.beam.at_once
    assert (at_once, none.beam.most_rows) == (0, 1)
    known = Known(puzzle, state, 0, SearchOptions())
    beam = DeviceBeam(known, zero, zero, CPU, ROOM)
    most = 20_000
    beam.memory = beam.bytes_of(64) + most
    run = beams._Run(beam, 1)
    beam.was_cut = False
    layers = sum(1 for _ in run.slices())
    assert most < run.noted <= most + 4 * 64
    assert layers > 60
    assert not beam.was_cut  # a wider one is not tried
    assert sum(part.numel() * part.element_size() for part in run.trail) == run.noted


def test_memory_of_the_device_that_gives_out_ends_the_beam_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("tiles-3x3")

    def full(*_: object) -> None:
        raise torch.cuda.OutOfMemoryError

    state = puzzle.sample(1, seed=1)
    monkeypatch.setattr(Growing, "children", full)
    searched = Searched(puzzle, state, base(puzzle))
    assert (searched.cost, searched.known.status) == (NO_COST, None)


def test_the_same_seed_finds_the_same_solutions() -> None:
    puzzle = us.puzzle("tiles-4x4")
    state, guide = puzzle.sample(1, seed=3), base(puzzle)
    options = SearchOptions(max_expanded=30_000)
    found = [Searched(puzzle, state, guide, options, seed=seed).known for seed in (0, 0, 1)]
    assert found[0].actions.tolist() == found[1].actions.tolist()
    assert found[0].counts == found[1].counts
    assert found[0].counts != found[2].counts


def test_what_cannot_be_better_is_left_out() -> None:
    puzzle = us.puzzle("tiles-3x3")
    state = puzzle.parse("8 6 7 / 2 5 4 / 3 0 1")
    best = us.solve(puzzle, state, base(puzzle))
    actions = np.array([puzzle.table.action_names.index(name) for name in best.actions], dtype=np.int32)
    expanded = []
    for proven in ("zero", "base", "patterns:4-4+reflected"):
        known = Known(puzzle, state, 0, SearchOptions())
        known.offer(actions)
        beam = DeviceBeam(known, us.heuristic(puzzle, "zero"), us.heuristic(puzzle, proven), CPU, ROOM)
        Guided(known, [beam.slices()], Turns()).search()
        assert known.cost == 31
        expanded.append(known.counts["expanded"])
    assert expanded[0] > 2 * expanded[1] > 4 * expanded[2]


def test_a_guide_is_asked_on_the_host_only_if_the_device_does_not_know_it() -> None:
    puzzle = us.puzzle("tiles-3x3")
    state, options = puzzle.sample(1, seed=5), SearchOptions(max_expanded=3000)
    there = {"base": False, "linear-conflict": True, "patterns:4-4": False, "paper": False, "small": False}
    for name, asks in there.items():
        guide = us.heuristic(puzzle, name)
        searched = Searched(puzzle, state, guide, options)
        assert searched.beam.asks_the_host == asks
        check_real(puzzle, state, searched)
        if name in ("base", "patterns:4-4"):
            alike = Searched(puzzle, state, Outside(guide), options, proven=base(puzzle)).known
            assert (searched.known.actions == alike.actions).all()


def test_a_float_network_guides_where_the_states_are_whatever_is_known_of_it() -> None:
    puzzle = us.puzzle("tiles-3x3")
    drawn = np.random.default_rng(1)
    layers = Network(
        tuple(drawn.normal(size=size).astype(np.float32) for size in ((puzzle.encoding.width, 8), (8, 1))),
        tuple(drawn.normal(size=size).astype(np.float32) for size in (8, 1)),
    )
    network = NeuralHeuristic(puzzle, layers, guarantee=PROVEN)
    states = torch.tensor(puzzle.sample(50, seed=7)).long()
    exactly, nearly = (values_on(puzzle, network, CPU, exactly=exactly) for exactly in (True, False))
    assert isinstance(exactly, device_values.Outside)
    assert not isinstance(nearly, device_values.Outside)
    assert (exactly(states) - nearly(states)).abs().max() < 1e-3
    check_real(puzzle, puzzle.sample(1, seed=5)[0], Searched(puzzle, puzzle.sample(1, seed=5), network))


def test_marks_remember_the_first_of_each_kind() -> None:
    marks = Marks(1 << 10, CPU)
    asked = torch.tensor([5, 7, 5, 5 + (1 << 10), 7, -3])
    assert marks.lack(asked).all()
    assert marks.claim(asked).tolist() == [True, True, False, True, False, True]
    assert marks.lack(asked).tolist() == [False, False, False, True, False, False]
    assert marks.claim(asked[[0, 1, 5]]).tolist() == [False, False, False]
    assert marks.claim(asked[[3, 3]]).tolist() == [True, False]  # and 5 is forgotten
    assert marks.claim(asked[:1]).tolist() == [True]


@pytest.mark.parametrize("parts", [1, 4, 50])
def test_the_best_of_all_children_are_taken(parts: int) -> None:
    keys = torch.randperm(5000, generator=torch.Generator().manual_seed(1))
    everything = Children(keys[None] * 10, torch.arange(5000).int(), keys)
    best = Best(width=70)
    for part in torch.arange(5000).chunk(parts):
        best.add(everything.chosen(part))
        assert best.held <= 4 * 70
    taken = best.taken()
    assert taken is not None
    assert best.was_cut
    assert sorted(taken.keys.tolist()) == list(range(70))
    assert (taken.rows.diff() > 0).all()
    assert (taken.words[0] == 10 * taken.keys).all()
    assert (keys[taken.rows.long()] == taken.keys).all()


def test_few_children_are_all_taken() -> None:
    best = Best(width=70)
    assert best.taken() is None
    best.add(Children(torch.zeros(2, 60, dtype=torch.int64), torch.arange(60).int(), torch.arange(60)))
    taken = best.taken()
    assert taken is not None
    assert len(taken.rows) == 60
    assert not best.was_cut
