"""Two bounds that meet: true costs, statements that are true whenever it is stopped, whatever guides it."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undershoot as us
from commands import undershoot
from undershoot.arrays import States
from undershoot.errors import Contradiction
from undershoot.guarantees import NO_GUARANTEE, PROVEN, Heuristic, OptimalityKind, Rounding
from undershoot.search.both import Meeting
from undershoot.search.known import Turns
from undershoot.search.options import Algorithm, SearchOptions
from undershoot.search.results import Result, Status
from undershoot.search.shares import Shares, Who
from undershoot.search.solving import choose

PYRAMINX = str(Path(__file__).parent.parent.parent / "examples" / "pyraminx.toml")
BOTH = SearchOptions(algorithm=Algorithm.BOTH)
FARTHEST = "8 6 7 / 2 5 4 / 3 0 1"


@pytest.mark.parametrize(
    ("name", "heuristic", "guide"),
    [
        ("tiles-2x3", "base", None),
        ("tiles-3x3", "base", "learned"),
        ("tiles-3x3", "patterns:4-4+reflected", None),
        ("cube-2x2", "patterns:4+4+inverse", "learned"),
        ("topspin-8-4", "patterns:4+4", None),
        ("pancake-8", "base", "zero"),
        ("lights-out-3x3", "base", None),
        (PYRAMINX, "patterns:1+1+1+1+6", None),
        ("cube-2x2-qtm", "patterns:4+4", "zero"),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_costs_are_the_true_ones(name: str, heuristic: str, guide: str | None, threads: int) -> None:
    puzzle = us.puzzle(name)
    states = puzzle.sample(8, seed=5)
    guided_by = None if guide is None else us.heuristic(puzzle, guide)
    results = us.solve_many(puzzle, states, us.heuristic(puzzle, heuristic), BOTH, threads=threads, guide=guided_by)
    assert [result.cost for result in results] == us.oracle(puzzle).distance(states).tolist()
    assert all(str(result.optimality) == "optimal, proven" for result in results)
    assert all((result.algorithm, result.status) == (Algorithm.BOTH, Status.SOLVED) for result in results)


def check(results: list[Result], cost: int) -> None:
    """Everything that was said on the way was true, and nothing was taken back."""
    for result in results:
        assert result.lower_bound <= cost
        assert result.cost is None or (result.cost >= cost and len(result.actions) > 0)
        assert (result.optimality.kind is OptimalityKind.PROVEN) == (result.cost == result.lower_bound)
    for before, after in pairwise(results):
        assert after.lower_bound >= before.lower_bound
        assert before.cost is None or (after.cost is not None and after.cost <= before.cost)
    assert [(moved.cost, moved.lower_bound) for moved in results[-1].history] == [(r.cost, r.lower_bound) for r in results]


@pytest.mark.parametrize("limit", [1, 10, 100, 1000, 10_000, None])
@pytest.mark.parametrize("threads", [1, 2])
def test_statements_are_true_wherever_a_limit_strikes(limit: int | None, threads: int) -> None:
    puzzle = us.puzzle("tiles-3x3")
    base = us.heuristic(puzzle, "base")
    states = puzzle.sample(10, seed=2)
    for k, cost in enumerate(us.oracle(puzzle).distance(states).tolist()):
        options = SearchOptions(algorithm=Algorithm.BOTH, max_expanded=limit)
        results = list(us.improve(puzzle, states[k], base, options=options, threads=threads))
        check(results, cost)
        assert (results[-1].status is Status.SOLVED) == (results[-1].cost == results[-1].lower_bound)
        assert limit is None or results[-1].expanded <= limit


class Says:
    """A guide that says whatever it likes."""

    rounding = Rounding.NONE
    guarantee = NO_GUARANTEE

    def __init__(self, puzzle: us.Puzzle, name: str, says: Callable[[States], Any]) -> None:
        self.fingerprint, self.name, self.says = puzzle.table.fingerprint, name, says

    def __call__(self, states: States) -> Any:
        return np.asarray(self.says(states), dtype=np.float32)


def noise(states: States) -> Any:
    return np.random.default_rng(int(states.sum())).normal(size=len(states)) * 1e6


WILD: dict[str, Callable[[States], Any]] = {
    "zero": lambda states: np.zeros(len(states)),
    "huge": lambda states: np.full(len(states), 1e30),
    "infinite": lambda states: np.full(len(states), np.inf),
    "no number": lambda states: np.full(len(states), np.nan),
    "negative": lambda states: np.full(len(states), -1e9),
    "noise": noise,
    "away from the goal": lambda states: 1000.0 * (states == np.array([1, 2, 3, 4, 5, 6, 7, 8, 0])).sum(axis=1),
}


@pytest.mark.parametrize("says", WILD)
def test_a_wild_guide_makes_nothing_false(says: str) -> None:
    puzzle = us.puzzle("tiles-3x3")
    guide, base = Says(puzzle, says, WILD[says]), us.heuristic(puzzle, "base")
    states = puzzle.sample(3, seed=6)
    for k, cost in enumerate(us.oracle(puzzle).distance(states).tolist()):
        results = list(us.improve(puzzle, states[k], base, guide))
        check(results, cost)
        assert results[-1].cost == cost


@pytest.mark.parametrize("says", WILD)
def test_a_wild_heuristic_is_only_a_guide(says: str) -> None:
    """Nothing is proven of it, so that the puzzle's own proves."""
    puzzle = us.puzzle("tiles-2x3")
    wild = Says(puzzle, says, lambda states: WILD[says](np.pad(states, ((0, 0), (0, 3)))))
    states = puzzle.sample(3, seed=6)
    for k, cost in enumerate(us.oracle(puzzle).distance(states).tolist()):
        check(list(us.improve(puzzle, states[k], wild)), cost)


def test_a_network_that_overestimates_guides_and_base_proves() -> None:
    from undershoot.bundles.reading import read_bundle

    puzzle = us.puzzle("tiles-3x3")
    raw = read_bundle("tiles-3x3-paper", with_calibration=False).raw
    states = puzzle.sample(5, seed=3)
    results = us.solve_many(puzzle, states, raw, BOTH)
    assert [result.cost for result in results] == us.oracle(puzzle).distance(states).tolist()
    assert all(str(result.optimality) == "optimal, proven" for result in results)


def test_stopped_at_two_hundred_random_moments_the_last_result_is_true() -> None:
    puzzle = us.puzzle("tiles-3x3")
    base, states = us.heuristic(puzzle, "base"), puzzle.sample(50, seed=9)
    costs, drawn = us.oracle(puzzle).distance(states).tolist(), random.Random(1)
    found, proven = 0, 0
    list(us.improve(puzzle, states[0], base))  # compiled
    for k in range(200):
        options = SearchOptions(algorithm=Algorithm.BOTH, max_seconds=10 ** drawn.uniform(-4, -1.5))
        results = list(us.improve(puzzle, states[k % 50], base, options=options, threads=1 + k % 2))
        check(results, costs[k % 50])
        found += results[-1].cost is not None
        proven += results[-1].cost == costs[k % 50] == results[-1].lower_bound
    assert 0 < proven < found < 200


def last_statement(text: str) -> tuple[int | None, int]:
    """The best cost and the lower bound of the last line that was printed whole."""
    lines = [line for line in text.split("\n")[:-1] if "at least" in line or "moves:" in line]
    if not lines:
        return None, 0
    words = lines[-1].split(" (")[0]
    if "optimal, proven" in words:
        return int(words.split()[0]), int(words.split()[0])
    cost = None if words.startswith("no solution") else int(words.split()[0])
    return cost, int(words.split("at least ")[1])


def test_killed_at_random_moments_the_last_line_is_true() -> None:
    """Really killed, at once: what has been printed is all there is."""
    state, cost = "14 13 15 7 / 11 12 9 5 / 6 0 2 1 / 4 8 10 3", 57
    command = [sys.executable, "-m", "undershoot", "solve", "tiles-4x4-blank-first", state, "--algorithm", "both"]
    drawn, seen = random.Random(2), []
    for k in range(4):
        with subprocess.Popen(
            [*command, "--heuristic", "linear-conflict"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            begun = [process.stdout.readline() for _ in range(6)]  # the board, and the first statement
            time.sleep(drawn.uniform(0, 1))
            os.kill(process.pid, signal.SIGKILL if k % 2 else signal.SIGINT)
            text = "".join(begun) + process.stdout.read()
        seen.append(last_statement(text))
    assert all(lower <= cost and (best is None or best >= cost) for best, lower in seen)
    assert any(best is not None for best, _ in seen)


def test_the_lines_say_how_the_bounds_move() -> None:
    text = undershoot("solve", "tiles-3x3", FARTHEST, "--algorithm", "both", "--heuristic", "base").stdout
    assert last_statement(text) == (31, 31)
    assert "cost 31: optimal, proven" in text


def test_json_has_the_history() -> None:
    import json

    text = undershoot(
        "solve", "tiles-3x3", "8 6 7 / 2 5 4 / 3 0 1", "--algorithm", "both", "--heuristic", "base", "--json"
    ).stdout
    (result,) = json.loads(text)["results"]
    assert result["algorithm"] == "both"
    assert result["history"][-1] == {"seconds": result["seconds"], "cost": 31, "lower_bound": 31}


def test_a_false_claim_is_contradicted() -> None:
    puzzle = us.puzzle("tiles-3x3")
    state = puzzle.parse("1 2 3 / 4 5 6 / 0 7 8")
    false = Says(puzzle, "false", lambda states: np.full(len(states), 8.0))
    false.guarantee = PROVEN
    with pytest.raises(Contradiction, match="a solution of cost 2 was found where false, which claims"):
        us.solve(puzzle, state, false, BOTH)


def test_a_goal_an_empty_list_and_several_states() -> None:
    puzzle = us.puzzle("tiles-3x3")
    base = us.heuristic(puzzle, "base")
    (only,) = us.improve(puzzle, puzzle.table.goals, base)
    assert (only.cost, only.actions, str(only.optimality)) == (0, (), "optimal, proven")
    assert us.solve_many(puzzle, puzzle.table.goals[:0], base, BOTH) == []
    with pytest.raises(us.UndershootError, match="takes one state, 2 came"):
        next(us.improve(puzzle, puzzle.sample(2, seed=0), base))


def test_bad_requests_are_answered_with_one_sentence() -> None:
    puzzle = us.puzzle("tiles-3x3")
    state, base = puzzle.sample(1, seed=0), us.heuristic(puzzle, "base")
    other = us.heuristic(us.puzzle("tiles-2x3"), "base")
    with pytest.raises(us.UndershootError, match=r"the guide .* belongs to another puzzle than tiles-3x3"):
        us.solve(puzzle, state, base, BOTH, guide=other)
    with pytest.raises(us.UndershootError, match="goes by the heuristic alone"):
        us.solve(puzzle, state, base, guide=base)
    with pytest.raises(us.UndershootError, match=r"0 seconds .* leaves no time"):
        us.solve(puzzle, state, base, SearchOptions(algorithm=Algorithm.BOTH, max_seconds=0))
    with pytest.raises(us.UndershootError, match="does not read --weight"):
        us.solve(puzzle, state, base, SearchOptions(algorithm=Algorithm.BOTH, weight=2))
    refused = undershoot("solve", "tiles-3x3", "--algorithm", "both", "--guide", "nothing", code=2).stderr
    assert "linear-conflict" in refused  # what there is
    refused = undershoot("solve", "lights-out-8x8", "--algorithm", "both", "--guide", "patterns", code=2).stderr
    assert "gf2" in refused
    refused = undershoot("solve", "tiles-3x3", "--algorithm", "both", "--max-seconds", "0", code=2).stderr
    assert "leaves no time" in refused


def test_what_a_guide_raises_ends_both() -> None:
    puzzle = us.puzzle("tiles-4x4")

    def fails(states: States) -> Any:
        raise ValueError("out of ideas")

    mine = us.wrap(puzzle, fails, name="mine")
    with pytest.raises(us.UndershootError, match="the function of the heuristic mine failed: ValueError: out of ideas"):
        us.solve(puzzle, puzzle.sample(1, seed=0), us.heuristic(puzzle, "base"), BOTH, guide=mine)


def test_who_asks_for_no_more_results_ends_the_search() -> None:
    puzzle = us.puzzle("tiles-4x4")
    before = threading.active_count()
    for _ in us.improve(puzzle, puzzle.sample(1, seed=0), us.heuristic(puzzle, "zero")):
        break
    assert threading.active_count() == before


def test_auto_takes_both_where_a_proof_may_take_long() -> None:
    puzzle = us.puzzle("tiles-4x4")
    base, auto = us.heuristic(puzzle, "base"), SearchOptions(algorithm=Algorithm.AUTO)
    assert choose(puzzle, base, auto)[0] is Algorithm.BOTH
    small = us.puzzle("tiles-3x3")
    assert choose(small, us.heuristic(small, "base"), auto)[0] is Algorithm.ASTAR
    assert choose(small, us.heuristic(small, "base"), auto, us.heuristic(small, "zero"))[0] is Algorithm.BOTH


@pytest.mark.parametrize("name", ["cube-3x3", "cube-3x3-qtm"])
def test_the_cube_is_solved_in_two_stages(name: str) -> None:
    puzzle = us.puzzle(name)
    zero: Heuristic = us.heuristic(puzzle, "zero")
    options = SearchOptions(algorithm=Algorithm.BOTH, max_seconds=2.0)
    for result in us.solve_many(puzzle, puzzle.sample(2, seed=0), zero, options):
        assert result.cost is not None
        assert 1 < result.lower_bound < result.cost <= (30 if name == "cube-3x3" else 40)
        assert result.optimality.kind is OptimalityKind.BOUNDED


@pytest.mark.parametrize("limit", [5, 300, 3000])
def test_a_limit_of_expansions_is_used_up(limit: int) -> None:
    """What one of the two has only set aside does not end the other."""
    puzzle = us.puzzle("tiles-4x4")
    base, options = us.heuristic(puzzle, "base"), SearchOptions(algorithm=Algorithm.BOTH, max_expanded=limit)
    for result in us.solve_many(puzzle, puzzle.sample(4, seed=5), base, options):
        assert (result.status, result.expanded) == (Status.BUDGET, limit)


@pytest.mark.parametrize("heuristic", ["zero", "base"])
def test_whatever_one_algorithm_solves_in_a_third_of_the_limit_is_solved(heuristic: str) -> None:
    """Without a heuristic A* needs a thousandth of the expansions of IDA* here, and on easy boards IDA* fewer than A*."""
    puzzle = us.puzzle("tiles-3x3")
    used, states = us.heuristic(puzzle, heuristic), puzzle.sample(6, seed=4)
    costs = us.oracle(puzzle).distance(states).tolist()
    for k, cost in enumerate(costs):
        alone = us.solve(puzzle, states[k], used).expanded
        if heuristic == "base":
            deepening = SearchOptions(algorithm=Algorithm.IDA)
            alone = min(alone, us.solve(puzzle, states[k], used, deepening).expanded)
        *_, last = us.improve(puzzle, states[k], used, options=SearchOptions(algorithm=Algorithm.BOTH, max_expanded=3 * alone))
        assert (last.status, last.cost, last.lower_bound) == (Status.SOLVED, cost, cost)


def test_what_one_proof_knows_the_other_begins_with() -> None:
    """An iteration whose bound is known to be too low ends, and nothing is concluded from what it had cut off by then."""
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(4, seed=8)
    zero = us.heuristic(puzzle, "zero")
    for k, cost in enumerate(us.oracle(puzzle).distance(states).tolist()):
        for known in (0, 3, cost - 2, cost):
            meeting = Meeting(puzzle, states[k : k + 1], zero, zero, BOTH)
            raised = threading.Timer(0.001 * known, meeting.known.raise_bound, (known,))
            raised.start()
            results = list(meeting.results())
            raised.join()
            check(results, cost)
            assert results[-1].cost == results[-1].lower_bound == cost


def test_shares_of_a_limit_add_up() -> None:
    shares = Shares(10, tuple(Who))
    assert shares.left == {Who.GUIDED: 4, Who.TREE: 3, Who.GRAPH: 3}
    assert [shares.take(Who.TREE, 100) for _ in range(4)] == [2, 1, 0, 0]
    shares.give_back(Who.TREE, 1)
    shares.leave(Who.GRAPH)
    assert shares.left == {Who.GUIDED: 6, Who.TREE: 2}
    assert not shares.is_spent
    assert Shares(None, tuple(Who)).take(Who.GRAPH, 7) == 7


def test_a_thread_is_shared_by_seconds_whatever_turns_are_long() -> None:
    """One whose turns are short, another that is held up, and one whose turns are long."""
    turns, used, until = Turns(), dict.fromkeys(Who, 0.0), time.perf_counter() + 1.5

    def work(who: Who, seconds: float, keep: float) -> None:
        while time.perf_counter() < until:
            with turns.taken(who, keep=keep):
                began = time.perf_counter()
                time.sleep(seconds)
                used[who] += time.perf_counter() - began
        turns.release(who)

    lengths = {Who.TREE: (0.001, 0.02), Who.GRAPH: (0.02, 0.0), Who.GUIDED: (0.09, 0.0)}
    threads = [threading.Thread(target=work, args=(who, *how)) for who, how in lengths.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert min(used.values()) > 0.2 * sum(used.values())


def test_costs_other_than_one_leave_time_for_the_proof() -> None:
    """Iterations are many and short then, and each must not cost a round of turns."""
    text = 'name = "dear"\ngoal = "1 2 3 4 5 6 7 8 _"\ncursor = "_"\n[moves]\n'
    for name, cost, step in (("U", 11, -3), ("D", 13, 3), ("L", 12, -1), ("R", 14, 1)):
        at = [c for c in range(9) if 0 <= c + step < 9 and (abs(step) == 3 or c // 3 == (c + step) // 3)]
        swaps = ", ".join(f'{c + 1} = "({c + 1} {c + step + 1})"' for c in at)
        text += f"{name} = {{ cost = {cost}, at = {{ {swaps} }} }}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dear.toml"
        path.write_text(text)
        puzzle = us.puzzle(str(path))
    zero, state = us.patterns(puzzle, "3-3-2"), us.scramble(puzzle.table, np.array([60]), 3).states
    alone = us.solve(puzzle, state, zero, SearchOptions(algorithm=Algorithm.IDA))
    options = SearchOptions(algorithm=Algorithm.BOTH, max_seconds=max(0.2, 6 * alone.seconds))
    *_, last = us.improve(puzzle, state, zero, options=options)
    assert (last.status, last.cost) == (Status.SOLVED, alone.cost)
