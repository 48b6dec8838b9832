"""Searches that are asked for on a device: where they run, what they answer, and what is refused. No CUDA device is needed."""

import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import undershoot as us
from commands import undershoot
from outside import Outside
from undershoot.bundles.loading import default_heuristic
from undershoot.bundles.loading import heuristic as by_name
from undershoot.errors import GaveOut
from undershoot.guarantees import Heuristic, OptimalityKind
from undershoot.heuristics.device_patterns import DevicePatterns
from undershoot.heuristics.patterns import PatternHeuristic
from undershoot.search.beam import Beam
from undershoot.search.both import Meeting
from undershoot.search.device import beam as device_beam
from undershoot.search.device import choosing, depth_first, solving
from undershoot.search.device.beam import DeviceBeam
from undershoot.search.device.beam_layers import Growing
from undershoot.search.device.choosing import place, settled
from undershoot.search.device.expanding import Expander
from undershoot.search.device.proving import DeviceProver
from undershoot.search.device.solving import patterns_there
from undershoot.search.guiding import ON_DEVICE, ON_ONE_CORE
from undershoot.search.options import Algorithm, SearchOptions
from undershoot.search.results import Status
from undershoot.search.solving import choose
from undershoot.search.staged import Staged

HERE = SearchOptions(algorithm=Algorithm.IDA)
IDA, BOTH = (SearchOptions(algorithm=algorithm, device="cuda") for algorithm in (Algorithm.IDA, Algorithm.BOTH))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def two_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor stands in for them."""
    monkeypatch.setattr(choosing, "cuda_devices", lambda: 2)
    monkeypatch.setattr(choosing, "torch_device", lambda device: torch.device("cpu"))
    monkeypatch.setattr(solving, "torch_device", lambda device: torch.device("cpu"))


@pytest.fixture
def no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "cuda_devices", lambda: 0)


@pytest.mark.usefixtures("two_devices")
@pytest.mark.parametrize("device", ["cuda", "cuda:1", "auto"])
def test_patterns_are_searched_there_with_the_same_answers(device: str) -> None:
    puzzle = us.puzzle("tiles-3x3")
    patterns, states = us.patterns(puzzle, "4-4+reflected"), puzzle.sample(8, seed=1)
    costs = us.oracle(puzzle).distance(states).tolist()
    for algorithm in (Algorithm.AUTO, Algorithm.IDA):
        results = us.solve_many(puzzle, states, patterns, SearchOptions(algorithm=algorithm), device=device)
        assert [result.cost for result in results] == costs
        assert all(result.algorithm is Algorithm.IDA for result in results)
        assert all(result.expanded_below is None for result in results)  # as it is there alone
    assert us.solve(puzzle, states[0], patterns, IDA).cost == costs[0]
    assert patterns_there(patterns, "cuda") is patterns_there(patterns, "cuda")


@pytest.mark.usefixtures("no_device")
def test_without_a_device_the_cores_search_and_one_sentence_says_so() -> None:
    puzzle = us.puzzle("tiles-3x3")
    patterns, states = us.patterns(puzzle, "4-4+reflected"), puzzle.sample(3, seed=1)
    with pytest.warns(UserWarning, match="torch finds no CUDA device here; the cores search instead"):
        results = us.solve_many(puzzle, states, patterns, IDA, threads=2)
    assert [result.expanded_below is None for result in results] == [False] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert us.solve(puzzle, states[0], patterns, device="auto").cost == results[0].cost
    with pytest.raises(us.UndershootError, match="is cuda:7, but torch finds no CUDA device here"):
        us.solve(puzzle, states[0], patterns, device="cuda:7")


@pytest.mark.usefixtures("two_devices")
def test_a_number_that_no_device_has_is_refused() -> None:
    assert settled("cuda:1") == "cuda:1"
    with pytest.raises(us.UndershootError, match="is cuda:2, but torch finds 2 here, counted from 0"):
        settled("cuda:2")


@pytest.mark.parametrize("device", ["tpu", "cuda:", "cuda:x", "CUDA", "", 3, None])
def test_what_is_no_device_is_refused(device: str) -> None:
    with pytest.raises(us.UndershootError, match=r"allowed are cpu, cuda, cuda:N and auto"):
        SearchOptions(device=device)


@pytest.mark.usefixtures("two_devices")
def test_options_that_only_the_cores_have_are_refused() -> None:
    puzzle = us.puzzle("tiles-3x3")
    patterns, state = us.patterns(puzzle, "4-4+reflected"), puzzle.sample(1, seed=1)
    with pytest.raises(us.UndershootError, match=r"threads were asked for"):
        us.solve_many(puzzle, state, patterns, IDA, threads=2)
    with pytest.raises(us.UndershootError, match="does not read --weight"):
        us.solve(puzzle, state, patterns, SearchOptions(weight=2, algorithm=Algorithm.IDA, device="cuda"))
    with pytest.raises(us.UndershootError, match=r"a guide \(--guide\) was given"):
        us.solve(puzzle, state, patterns, IDA, guide=us.heuristic(puzzle, "base"))
    with pytest.raises(us.UndershootError, match=r"IDA\* on a device goes by tables of patterns, and base is none"):
        us.solve(puzzle, state, us.heuristic(puzzle, "base"), IDA)
    with pytest.raises(us.UndershootError, match="leave it out with --scheduler"):
        us.compare(puzzle, us.Instances("one", state, (None,)), [patterns], IDA, scheduler="tcp://127.0.0.1:1")


@pytest.mark.usefixtures("two_devices")
def test_auto_takes_a_device_for_patterns_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERSHOOT_CACHE_DIR", str(tmp_path))  # other tests may have made the tables of the default set
    puzzle = us.puzzle("tiles-3x3")
    patterns, base = us.patterns(puzzle, "4-4+reflected"), us.heuristic(puzzle, "base")
    auto = SearchOptions(algorithm=Algorithm.AUTO, device="auto")
    assert place(auto, patterns).device == "cuda"
    assert place(auto, base).device == "cpu"
    assert place(auto, patterns, threads=2).device == "cpu"
    assert place(SearchOptions(device="auto"), patterns).device == "cpu"
    assert choose(puzzle, patterns, place(auto, patterns))[0] is Algorithm.IDA
    assert choose(puzzle, base, SearchOptions(algorithm=Algorithm.AUTO, device="cuda"))[0] is Algorithm.ASTAR
    large = us.puzzle("tiles-4x4")
    assert (default_heuristic(large), default_heuristic(large, "cuda")) == ("learned", "patterns")
    assert default_heuristic(puzzle, "cuda") == "learned"


@pytest.mark.usefixtures("two_devices")
def test_a_set_is_copied_or_made_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from undershoot.bundles import loading

    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(5, seed=2)
    copied = by_name(puzzle, "patterns:4-4", device="cuda")
    monkeypatch.setattr(loading, "CUDA_FROM", 100)
    monkeypatch.setattr(loading, "are_cached", lambda *_: False)
    made = by_name(puzzle, "patterns:4-4", device="cuda")
    here = by_name(puzzle, "patterns:4-4")
    assert isinstance(here, PatternHeuristic)
    for there in (copied, made):
        assert isinstance(there, DevicePatterns)
        assert (there(states) == here(states)).all()
        assert us.solve(puzzle, states[0], there, IDA).cost == us.solve(puzzle, states[0], here).cost


@pytest.mark.usefixtures("two_devices")
def test_memory_that_runs_out_before_the_search_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("tiles-3x3")
    state = puzzle.sample(1, seed=1)

    def full(*_: object) -> None:
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(solving, "on_device", full)
    with pytest.raises(GaveOut, match="the memory of the device cuda ran out before the search began"):
        us.solve(puzzle, state, us.patterns(puzzle, "3-3-2"), IDA)
    monkeypatch.undo()
    monkeypatch.setattr(choosing, "cuda_devices", lambda: 2)
    monkeypatch.setattr(solving, "torch_device", lambda device: torch.device("cpu"))
    patterns = us.patterns(puzzle, "3-3-2")
    there = patterns_there(patterns, "cuda")
    monkeypatch.setattr(DevicePatterns, "values", full)
    with pytest.raises(GaveOut, match="take smaller patterns"):
        us.solve(puzzle, state, there, IDA)


@pytest.mark.usefixtures("two_devices")
@pytest.mark.parametrize("name", ["tiles-3x3", "cube-2x2", "topspin-9-3"])
def test_both_bounds_meet_with_the_proof_on_the_device(name: str) -> None:
    puzzle = us.puzzle(name)
    sets = {"tiles-3x3": "4-4+reflected", "cube-2x2": "4+4+inverse", "topspin-9-3": "4+5+symmetric"}
    patterns, states = us.patterns(puzzle, sets[name]), puzzle.sample(4, seed=3)
    for state, expected in zip(states, us.solve_many(puzzle, states, patterns, HERE), strict=True):
        cost = expected.cost or 0
        results = list(us.improve(puzzle, state, patterns, options=BOTH))
        bounds = [result.lower_bound for result in results]
        assert bounds == sorted(bounds)
        assert all(bound <= cost for bound in bounds)
        assert (results[-1].cost, str(results[-1].optimality)) == (cost, "optimal, proven")
    results = us.solve_many(puzzle, states, patterns_there(patterns, "cuda"), BOTH)
    assert all(result.optimality.kind is OptimalityKind.PROVEN for result in results)


@pytest.mark.usefixtures("two_devices")
def test_the_beam_of_both_is_on_the_device_and_takes_its_turns_there(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("tiles-3x3")
    patterns, state = us.patterns(puzzle, "4-4+reflected"), puzzle.parse("8 6 7 / 2 5 4 / 3 0 1")

    def meeting(guide: Heuristic) -> Meeting:
        return Meeting(puzzle, state, patterns, guide, BOTH)

    default = meeting(patterns)
    (beam,), (guided,) = default.parts, default.guided
    assert isinstance(beam, DeviceBeam)
    assert beam.bound is None  # the guide says what is proven: it is asked once
    assert isinstance(default.prover, DeviceProver)
    assert (guided.turns is default.prover.turns, guided.pace) == (True, ON_DEVICE)
    learned = meeting(us.heuristic(puzzle, "learned"))
    assert isinstance(learned.parts[0], DeviceBeam)
    assert learned.parts[0].bound is not None
    asks = meeting(Outside(us.heuristic(puzzle, "linear-conflict")))
    assert isinstance(asks.parts[0], DeviceBeam)
    assert asks.guided[0].pace is ON_ONE_CORE
    assert asks.guided[0].turns is asks.graph.turns
    assert isinstance(meeting(us.heuristic(puzzle, "linear-conflict")).parts[0], Beam)  # which has it in its loop
    monkeypatch.setattr(device_beam, "MOST_WORDS", 0)
    assert isinstance(meeting(patterns).parts[0], Beam)


@pytest.mark.usefixtures("two_devices")
@pytest.mark.parametrize("guide", [None, "learned", "linear-conflict", "outside", "zero"])
def test_both_bounds_meet_on_the_device_with_any_guide(guide: str | None) -> None:
    puzzle = us.puzzle("tiles-3x3")
    patterns, states = us.patterns(puzzle, "1 2 3 / 4 5 6"), puzzle.sample(3, seed=8)
    named = None if guide is None else us.heuristic(puzzle, "base" if guide == "outside" else guide)
    guided_by = Outside(named) if named is not None and guide == "outside" else named
    results = us.solve_many(puzzle, states, patterns, BOTH, guide=guided_by)
    assert [result.cost for result in results] == us.oracle(puzzle).distance(states).tolist()
    assert all(str(result.optimality) == "optimal, proven" for result in results)


@pytest.mark.usefixtures("two_devices")
def test_the_beam_finds_beside_two_stages_and_a_beam_without_memory_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("cube-3x3")
    patterns = us.patterns(puzzle, "4")
    state = us.scramble(puzzle.table, np.array([4]), 2).states

    def full(*_: object) -> None:
        raise torch.cuda.OutOfMemoryError

    for there in (False, True):
        meeting = Meeting(puzzle, state, patterns, patterns, BOTH)
        assert [type(part) for part in meeting.parts] == [Staged, DeviceBeam]
        assert len(meeting.guided) == 2
        *_, result = meeting.results()
        assert (result.cost, str(result.optimality)) == (4, "optimal, proven")
        if not there:
            monkeypatch.setattr(Growing, "children", full)


@pytest.mark.usefixtures("two_devices")
@pytest.mark.parametrize("limit", [1, 10, 200, 3000])
def test_bounds_are_true_wherever_limits_strike_both(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(depth_first.CHUNK, "cpu", 8)
    puzzle = us.puzzle("tiles-3x3")
    patterns, states = us.patterns(puzzle, "1 2 3 / 4 5 6"), puzzle.sample(5, seed=4)
    options = SearchOptions(algorithm=Algorithm.BOTH, device="cuda", max_expanded=limit)
    results = us.solve_many(puzzle, states, patterns, options)
    for result, cost in zip(results, us.oracle(puzzle).distance(states).tolist(), strict=True):
        assert result.lower_bound <= cost
        assert result.cost is None or result.cost >= cost
        assert result.expanded <= limit + 1
        assert result.status in (Status.BUDGET, Status.SOLVED)


@pytest.mark.usefixtures("two_devices")
def test_a_prover_without_memory_ends_both(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(Expander, "expand", full)
    puzzle = us.puzzle("tiles-3x3")
    state = puzzle.parse("8 6 7 / 2 5 4 / 3 0 1")
    (result,) = us.solve_many(puzzle, state, us.patterns(puzzle, "1 2 3 / 4 5 6"), BOTH)
    assert result.status is Status.MEMORY
    assert result.lower_bound <= 31


@pytest.mark.usefixtures("two_devices")
def test_the_command_line_searches_there(tmp_path: Path) -> None:
    done = undershoot(
        "solve", "tiles-3x3", "8 6 7 / 2 5 4 / 3 0 1", "--heuristic", "patterns:4-4+reflected", "--device", "cuda"
    )
    assert "cost 31: optimal, proven" in done.stdout
    assert "IDA* since its tables lie in the memory of the device cuda" in done.stdout
    done = undershoot("solve", "cube-2x2", "--random", "3", "--heuristic", "patterns:4+4", "--device", "cuda:1", "--json")
    document = json.loads(done.stdout)
    assert (document["algorithm"], document["device"]) == ("ida", "cuda:1")
    assert [result["optimality"] for result in document["results"]] == ["proven"] * 3
    names = "patterns:4-4,patterns:3-3-2"
    done = undershoot("bench", "tiles-3x3", "--heuristics", names, "--random", "5", "--algorithm", "ida", "--device", "auto")
    assert "proven optimal" in done.stdout
    assert done.stderr.count("warning") == 0


@pytest.mark.usefixtures("two_devices")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--device", "tpu"), "allowed are cpu, cuda, cuda:N and auto"),
        (("--device", "cuda:7"), "the device (--device) is cuda:7, but torch finds 2 here"),
        (("--device", "cuda", "--threads", "2"), "leave out --threads, or --device"),
        (("--device", "cuda", "--scheduler", "tcp://127.0.0.1:1"), "leave it out with --scheduler"),
        (("--device", "cuda", "--algorithm", "ida", "--guide", "base"), "IDA* goes by the heuristic alone"),
        (("--device", "cuda", "--algorithm", "ida", "--weight", "2"), "does not read --weight"),
        (("--device", "cuda", "--algorithm", "ida", "--heuristic", "base"), "goes by tables of patterns, and base is none"),
        (("--device", "cuda", "--algorithm", "both", "--heuristic", "base"), "goes by tables of patterns, and base is none"),
    ],
)
def test_the_command_line_refuses_with_one_sentence(options: tuple[str, ...], sentence: str) -> None:
    patterns = () if "--heuristic" in options else ("--heuristic", "patterns:4-4")
    done = undershoot("solve", "tiles-3x3", "--random", "1", *patterns, *options, code=2)
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("no_device")
def test_the_command_line_falls_back_and_says_so_once() -> None:
    names = ("--heuristics", "patterns:4-4,base", "--algorithm", "ida", "--threads", "2")
    done = undershoot("bench", "tiles-3x3", "--random", "3", "--device", "cuda", *names)
    assert done.stderr.count("torch finds no CUDA device here") == 1
    done = undershoot("solve", "tiles-3x3", "--random", "1", "--heuristic", "patterns:4-4", "--device", "auto")
    assert "CUDA" not in done.stderr


def test_nothing_changes_for_who_does_not_ask() -> None:
    puzzle = us.puzzle("tiles-3x3")
    base, state = us.heuristic(puzzle, "base"), puzzle.sample(1, seed=0)
    assert SearchOptions().device == "cpu"
    one, other = (us.solve(puzzle, state, base, device=device) for device in (None, "cpu"))
    assert (one.cost, one.expanded) == (other.cost, other.expanded)
