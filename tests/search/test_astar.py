"""A* against its definition, against exact costs, and against its own bounds."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import undershoot as us
from reference import cube_in_space, naive, naive_astar
from undershoot.arrays import F32, States
from undershoot.guarantees import NO_GUARANTEE, PROVEN, Guarantee, LabelKind, OptimalityKind, Rounding, Standing, Subject
from undershoot.oracles.breadth_first import explore
from undershoot.oracles.distance_table import DistanceTable
from undershoot.puzzles.base_heuristics import zero_heuristic
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.results import labels


@dataclass(frozen=True)
class Given:
    """A heuristic by its formula."""

    fingerprint: str
    formula: Callable[[States], F32]
    name: str = "given"
    guarantee: Guarantee = NO_GUARANTEE
    rounding: Rounding = Rounding.NONE

    def __call__(self, states: States) -> F32:
        return self.formula(states)


def costly() -> Puzzle:
    puzzle = us.puzzle("tiles-3x3")
    return replace(
        puzzle, name="costly", table=replace(puzzle.table, cost=np.array([1, 2, 3, 4], dtype=np.int32), symmetries=())
    )


@cache
def distances(name: str) -> tuple[Puzzle, DistanceTable]:
    puzzle = costly() if name == "costly" else us.puzzle(name)
    return puzzle, explore(puzzle)


def scaled(name: str, seed: int, low: float, high: float, whole: bool, guarantee: Guarantee) -> Given:
    """The true cost times a random factor of each state: as inconsistent as can be."""
    puzzle, table = distances(name)
    factors = np.random.default_rng(seed).uniform(low, high, size=table.states).astype(np.float32)

    def formula(states: States) -> F32:
        rows, true_cost = table.look_up(states)
        values = true_cost * factors[rows]
        return (np.floor(values) if whole else values).astype(np.float32)

    return Given(puzzle.table.fingerprint, formula, "scaled", guarantee, Rounding.INTEGER if whole else Rounding.NONE)


def by_definition(puzzle: Puzzle, state: States, h: Callable[[States], F32], options: us.SearchOptions) -> naive_astar.Search:
    def successors(at: naive_astar.State) -> dict[str, tuple[int, naive_astar.State]]:
        name = "tiles-3x3" if puzzle.name == "costly" else puzzle.name
        children = naive.successors(name, at)
        costs = dict(zip(puzzle.table.action_names, puzzle.table.cost.tolist(), strict=True))
        return {action: (costs[action], child) for action, child in children.items()}

    goal = tuple(puzzle.table.goals[0].tolist())
    return naive_astar.astar(
        tuple(state.tolist()),
        successors,
        lambda at: at == goal,
        lambda at: float(h(np.array([at], dtype=np.uint8))[0]),
        options.ties is us.Ties.DEEP,
        options.weight,
        options.max_expanded if options.max_expanded is not None else 10**9,
    )


@pytest.mark.parametrize("ties", us.Ties)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tiles-3x3", "base"),
        ("tiles-3x3", "linear-conflict"),
        ("tiles-3x3", "whole"),
        ("tiles-3x3", "fractions"),
        ("tiles-3x3", "inadmissible"),
        ("costly", "whole"),
        ("costly", "fractions"),
        ("lights-out-3x3", "base"),
        ("lights-out-3x3", "whole"),
        ("pancake-8", "base"),
        ("pancake-8", "fractions"),
        ("cube-2x2", "zero"),
    ],
)
def test_all_counters_equal_those_of_the_definition(name: str, kind: str, ties: us.Ties) -> None:
    puzzle = costly() if name == "costly" else us.puzzle(name)
    depths = np.arange(12) % 4 if kind == "zero" else np.arange(12) % 10 if name.startswith("lights") else np.arange(12) + 8
    states = us.scramble(puzzle.table, depths, 1).states
    if kind in ("base", "linear-conflict", "zero"):
        h = us.heuristic(puzzle, kind)
    else:
        high = 1.5 if kind == "inadmissible" else 1.0
        h = scaled(name, 5, 0.0, high, kind == "whole", NO_GUARANTEE if kind == "inadmissible" else PROVEN)
    reopened = 0
    for settings in ({}, {"weight": 1.5}, {"weight": 2.0}, {"max_expanded": 7}):
        options = us.SearchOptions(ties=ties, **settings)
        expected = [by_definition(puzzle, state, h, options) for state in states]
        reopened += sum(search.reopened for search in expected)
        for lock_step in (1, 7, 1000):
            results = us.solve_many(puzzle, states, h, options, lock_step=lock_step)
            for result, search in zip(results, expected, strict=True):
                for field in ("cost", "expanded", "expanded_below", "generated", "evaluated", "reopened", "stored"):
                    assert getattr(result, field) == getattr(search, field), field
                assert (result.status.value, list(result.actions)) == (search.status, search.actions)
    if kind in ("whole", "fractions") and name in ("tiles-3x3", "costly"):
        assert reopened > 0, "this heuristic must force reopenings, or it tests nothing"


def test_every_heuristic_is_optimal_on_all_of_lights_out_3x3() -> None:
    puzzle, table = distances("lights-out-3x3")
    states = table.states_of_rows(0, table.states)
    for name in ("base", "zero", "table", "gf2", "base+gf2"):
        results = us.solve_many(puzzle, states, us.heuristic(puzzle, name))
        assert [result.cost for result in results] == table.distance(states).tolist()
        assert all(result.optimality.kind is OptimalityKind.PROVEN for result in results)
        assert all(result.lower_bound == result.cost for result in results)
        assert all(result.overestimates == 0 for result in results)


def replayed(name: str, state: States, actions: tuple[str, ...]) -> naive_astar.State:
    at = tuple(state.tolist())
    for action in actions:
        at = naive.successors(name, at)[action]
    return at


@pytest.mark.parametrize("kind", ["table", "base", "linear-conflict"])
def test_uniform_8_puzzles_are_solved_optimally_and_their_plans_work(kind: str) -> None:
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(2000, 5)
    results = us.solve_many(puzzle, states, us.heuristic(puzzle, kind))
    assert [result.cost for result in results] == us.oracle(puzzle).distance(states).tolist()
    goal = tuple(puzzle.table.goals[0].tolist())
    assert all(replayed("tiles-3x3", s, r.actions) == goal for s, r in zip(states, results, strict=True))


def test_cubes_are_solved_optimally() -> None:
    puzzle = us.puzzle("cube-2x2")
    table = us.oracle(puzzle)
    uniform = puzzle.sample(2000, 6)
    perfect = us.solve_many(puzzle, uniform, us.heuristic(puzzle, "table"))
    assert [result.cost for result in perfect] == table.distance(uniform).tolist()
    near = us.scramble(puzzle.table, np.arange(500) % 7, 7).states
    for states in (uniform[:1], near):
        blind = us.solve_many(puzzle, states, us.heuristic(puzzle, "zero"), threads=2)
        assert [result.cost for result in blind] == table.distance(states).tolist()


def test_a_2x2_solution_solves_the_whole_cube_up_to_how_it_is_held() -> None:
    puzzle = us.puzzle("cube-2x2")
    guide = us.heuristic(puzzle, "table")
    for scramble in ("D R", "L2 B' D", "F R U B L D", "B", "x R2 D'"):
        result = us.solve(puzzle, puzzle.parse(scramble), guide)
        cube = cube_in_space.play(cube_in_space.solved(2), scramble, 2)
        # The solution is for the cube held by its back-left-down corner.
        cube = cube_in_space.play(cube_in_space.held_by_corner(cube), " ".join(result.actions), 2)
        assert cube_in_space.facelets(cube, 2) == "UUUURRRRFFFFDDDDLLLLBBBB"


def test_the_published_15_puzzle_instance_costs_57() -> None:
    puzzle = us.puzzle("tiles-4x4-blank-first")
    state = puzzle.parse("14 13 15 7 11 12 9 5 6 0 2 1 4 8 10 3")
    result = us.solve(puzzle, state, us.heuristic(puzzle, "base"))
    assert (result.cost, result.lower_bound, str(result.optimality)) == (57, 57, "optimal, proven")


@given(
    seed=st.integers(0, 2**32 - 1),
    whole=st.booleans(),
    ties=st.sampled_from(list(us.Ties)),
    per_step=st.sampled_from([1, 1, 5]),
)
def test_inconsistent_admissible_heuristics_never_give_suboptimal_costs(
    seed: int, whole: bool, ties: us.Ties, per_step: int
) -> None:
    for name in ("tiles-2x3", "costly"):
        puzzle, table = distances(name)
        h = scaled(name, seed, 0.0, 1.0, whole, PROVEN)
        states = us.scramble(puzzle.table, np.arange(30) % 21, seed % 1000).states
        results = us.solve_many(puzzle, states, h, us.SearchOptions(ties=ties, expand_per_step=per_step), lock_step=9)
        assert [result.cost for result in results] == table.distance(states).tolist()


@given(seed=st.integers(0, 2**32 - 1), ties=st.sampled_from(list(us.Ties)))
def test_admissible_along_one_optimal_path_is_enough(seed: int, ties: us.Ties) -> None:
    puzzle, table = distances("tiles-2x3")
    random = np.random.default_rng(seed)
    start = table.states_of_rows(int(random.integers(100, table.states)), table.states)[:1]
    path, state = [], start
    while table.distance(state)[0] > 0:
        path.append(state[0].tobytes())
        children, legal = us.successors(puzzle.table, state)
        best = [
            c
            for c, ok in zip(children[0], legal[0], strict=True)
            if ok and table.distance(c[None])[0] < table.distance(state)[0]
        ]
        state = best[int(random.integers(len(best)))][None]
    path.append(state[0].tobytes())

    def formula(states: States) -> F32:
        on_path = np.array([row.tobytes() in path for row in states])
        true_cost = table.distance(states)
        return np.where(on_path, np.floor(true_cost * 0.7), true_cost + 6).astype(np.float32)

    result = us.solve(
        puzzle, start, Given(puzzle.table.fingerprint, formula, rounding=Rounding.INTEGER), us.SearchOptions(ties=ties)
    )
    assert result.cost == table.distance(start)[0]


@pytest.mark.parametrize("weight", [1.2, 1.5, 2, 5])
def test_weighted_search_stays_within_its_weight(weight: float) -> None:
    puzzle, table = distances("tiles-3x3")
    states = puzzle.sample(300, 8)
    results = us.solve_many(puzzle, states, us.heuristic(puzzle, "base"), us.SearchOptions(weight=weight))
    for result, true_cost in zip(results, table.distance(states).tolist(), strict=True):
        assert result.cost is not None
        assert true_cost <= result.cost <= weight * true_cost
        assert result.lower_bound <= true_cost
        if result.optimality.kind is OptimalityKind.BOUNDED:
            assert result.optimality.factor is not None
            assert result.cost <= result.optimality.factor * true_cost + 1e-9
            assert result.optimality.factor <= weight
        else:
            assert result.cost == true_cost


@pytest.mark.parametrize("per_step", [1, 4])
@pytest.mark.parametrize(
    "limit", [{}, {"max_expanded": 0}, {"max_expanded": 1}, {"max_expanded": 40}, {"max_seconds": 0.0}, {"max_memory": 1 << 21}]
)
def test_lower_bounds_are_true_whatever_guides_and_whatever_limit_strikes(limit: dict[str, float], per_step: int) -> None:
    puzzle, table = distances("tiles-3x3")
    states = puzzle.sample(40 if limit else 12, 9)
    truth = table.distance(states).tolist()
    guides = [
        us.heuristic(puzzle, "base"),
        us.heuristic(puzzle, "zero"),
        scaled("tiles-3x3", 1, 0.0, 1.0, True, PROVEN),
        scaled("tiles-3x3", 2, 0.5, 2.5, False, NO_GUARANTEE),
        Given(puzzle.table.fingerprint, lambda states: np.full(len(states), -3, dtype=np.float32)),
    ]
    stopped = 0
    for guide in guides:
        options = us.SearchOptions(expand_per_step=per_step, **limit)  # type: ignore[arg-type]
        for result, true_cost, state in zip(us.solve_many(puzzle, states, guide, options), truth, states, strict=True):
            assert puzzle.base_heuristic(state[None])[0] <= result.lower_bound <= true_cost
            assert result.lower_bound % 2 == true_cost % 2
            if result.cost is None:
                stopped += 1
                assert result.status in (us.Status.BUDGET, us.Status.TIME, us.Status.MEMORY)
                assert result.optimality.kind is OptimalityKind.UNKNOWN
            else:
                assert result.cost >= true_cost
                assert (result.optimality.kind is OptimalityKind.PROVEN) == (result.lower_bound == result.cost)
                if result.optimality.kind is OptimalityKind.PROVEN:
                    assert result.cost == true_cost
    assert stopped or not limit or "max_memory" in limit


def test_each_limit_has_its_status_and_the_bound_grows_with_the_effort() -> None:
    puzzle = us.puzzle("tiles-4x4-blank-first")
    state = puzzle.parse("14 13 15 7 11 12 9 5 6 0 2 1 4 8 10 3")
    guide = us.heuristic(puzzle, "base")
    bounds = []
    for most in (0, 100, 10_000, 300_000):
        result = us.solve(puzzle, state, guide, us.SearchOptions(max_expanded=most))
        assert (result.status, result.expanded, result.cost, result.actions) == (us.Status.BUDGET, most, None, ())
        bounds.append(result.lower_bound)
    assert bounds == sorted(bounds)
    assert 41 <= bounds[0] < bounds[-1] <= 57
    assert us.solve(puzzle, state, guide, us.SearchOptions(max_seconds=0.05)).status is us.Status.TIME


def test_the_memory_limit_is_honoured_and_used() -> None:
    puzzle = us.puzzle("tiles-4x4-blank-first")
    state = puzzle.parse("14 13 15 7 11 12 9 5 6 0 2 1 4 8 10 3")
    from undershoot.search.astar import astar_batch

    for limit in (30_000_000, 100_000_000):
        batch = astar_batch(puzzle, state, us.heuristic(puzzle, "base"), us.SearchOptions(max_memory=limit))
        assert batch.results[0].status is us.Status.MEMORY
        assert 0.5 * limit < batch.peak_bytes <= limit
        assert batch.results[0].lower_bound <= 57


MEASURE = """
import sys
from pathlib import Path
import undershoot as us
sys.path.insert(0, TESTS)
from outside import Outside

def kilobytes(field):
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1])

for name, heuristic, count, limit in CASES:
    puzzle = us.puzzle(name)
    states, guide = puzzle.sample(count, 0), us.heuristic(puzzle, heuristic)
    guide = Outside(guide) if count > 100 else guide
    us.solve_many(puzzle, states[:20], guide, us.SearchOptions(max_expanded=100))
    Path("/proc/self/clear_refs").write_text("5")
    before = kilobytes("VmRSS")
    results = us.solve_many(puzzle, states, guide, us.SearchOptions(max_memory=limit))
    stopped = sum(result.status is us.Status.MEMORY for result in results)
    print((kilobytes("VmHWM") - before) * 1024 / limit, stopped)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from /proc")
def test_the_process_takes_no_more_memory_than_the_limit() -> None:
    cases = [("tiles-3x3", "linear-conflict", 2000, 20_000_000), ("tiles-3x3", "linear-conflict", 2000, 50_000_000)]
    cases += [("tiles-4x4", "base", 1, 20_000_000), ("cube-3x3", "zero", 2, 300_000_000)]
    script = MEASURE.replace("CASES", repr(cases)).replace("TESTS", repr(str(Path(__file__).parent.parent)))
    lines = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == len(cases)
    for case, line in zip(cases, lines, strict=True):
        share, stopped = line.split()
        assert float(share) <= 1.1, case
        assert int(stopped) > 0, case


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_a_search_at_once_and_with_one_line() -> None:
    for threads in (1, 2):
        script = (
            "import signal, undershoot as us\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # jobs in the background of a shell ignore it
            "import undershoot.experiments.comparison\n"
            "p = us.puzzle('tiles-4x4'); h = us.heuristic(p, 'linear-conflict'); s = p.sample(50, 0)\n"
            "us.solve_many(p, s[:4], h, us.SearchOptions(max_expanded=10)); print('ready', flush=True)\n"
            f"us.solve_many(p, s, h, threads={threads})"
        )
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=20)
        assert process.returncode != 0
        assert error.strip().splitlines()[-1] == "KeyboardInterrupt"


def test_labels_from_searches_are_exact_only_if_all_are_proven() -> None:
    puzzle, table = distances("tiles-3x3")
    states = puzzle.sample(30, 5)
    solved = us.solve_many(puzzle, states, us.heuristic(puzzle, "base"))
    exact = labels(solved)
    assert exact.kind is LabelKind.EXACT
    assert exact.costs.tolist() == table.distance(states).tolist()
    stopped = us.solve_many(puzzle, states, us.heuristic(puzzle, "base"), us.SearchOptions(max_expanded=100))
    lower = labels(solved[:10] + stopped[10:])
    assert lower.kind is LabelKind.LOWER
    assert (lower.costs <= table.distance(states)).all()


def test_a_solved_state_and_several_goals() -> None:
    puzzle = us.puzzle("tiles-3x3")
    result = us.solve(puzzle, puzzle.table.goals, us.heuristic(puzzle, "base"))
    assert (result.cost, result.actions, result.expanded, result.generated) == (0, (), 1, 0)
    two = replace(puzzle.table, goals=np.concatenate([puzzle.table.goals, puzzle.parse("D")]), symmetries=())
    near = replace(puzzle, name="two-goals", table=two, base_heuristic=zero_heuristic(9, 9))
    assert us.solve(near, puzzle.parse("D D"), us.heuristic(near, "zero")).cost == 1


def test_costs_too_large_for_buckets_are_searched_with_a_heap() -> None:
    puzzle = us.puzzle("tiles-2x3")
    dear = replace(
        puzzle, name="dear", table=replace(puzzle.table, cost=np.array([700, 800, 900, 1000], dtype=np.int32), symmetries=())
    )
    table = explore(dear)
    states = dear.sample(20, 1)
    results = us.solve_many(dear, states, us.heuristic(dear, "zero"))
    assert [result.cost for result in results] == table.distance(states).tolist()


def test_a_search_that_starts_again_with_a_heap_keeps_its_clock() -> None:
    puzzle = us.puzzle("tiles-2x3")
    dear = replace(
        puzzle, name="dear", table=replace(puzzle.table, cost=np.array([700, 800, 900, 1000], dtype=np.int32), symmetries=())
    )
    calls = 0

    def slow_at_first(states: States) -> F32:
        nonlocal calls
        calls += 1
        time.sleep(0.2 if calls in (2, 3) else 0)  # the first call only compiles
        return np.zeros(len(states), dtype=np.float32)

    guide = Given(dear.table.fingerprint, slow_at_first, rounding=Rounding.INTEGER)
    result = us.solve(dear, dear.sample(1, 1), guide)
    assert (result.status, result.seconds >= 0.4) == (us.Status.SOLVED, True)
    calls = 0
    assert us.solve(dear, dear.sample(1, 1), guide, us.SearchOptions(max_seconds=0.3)).status is us.Status.TIME


def test_overestimates_along_the_solution_are_counted() -> None:
    puzzle, table = distances("tiles-3x3")
    states = puzzle.sample(50, 3)
    guide = Given(puzzle.table.fingerprint, lambda s: (table.distance(s) * 1.4).astype(np.float32))
    for result, true_cost in zip(us.solve_many(puzzle, states, guide), table.distance(states).tolist(), strict=True):
        assert result.cost is not None
        assert result.overestimates > 0 or result.cost >= 1.4 * true_cost


def test_results_do_not_depend_on_threads() -> None:
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(200, 4)
    one, two = (us.solve_many(puzzle, states, us.heuristic(puzzle, "base"), threads=t) for t in (1, 2))
    assert [replace(result, seconds=0) for result in one] == [replace(result, seconds=0) for result in two]


def test_proven_within_a_radius_proves_solutions_inside_it() -> None:
    puzzle, table = distances("tiles-3x3")
    ball = Guarantee(Standing.PROVEN, within=12)
    guide = Given(
        puzzle.table.fingerprint,
        lambda s: np.where(table.distance(s) <= 12, table.distance(s), 40).astype(np.float32),
        guarantee=ball,
        rounding=Rounding.INTEGER,
    )
    states = us.scramble(puzzle.table, np.arange(60) % 14, 5).states
    for result, true_cost in zip(us.solve_many(puzzle, states, guide), table.distance(states).tolist(), strict=True):
        if true_cost <= 12:
            assert (result.cost, result.optimality.kind) == (true_cost, OptimalityKind.PROVEN)


@pytest.mark.parametrize(
    ("value", "guarantee", "rounding", "part"),
    [
        (np.nan, NO_GUARANTEE, Rounding.NONE, "the heuristic given gives nan, for 1 2 3"),
        (np.inf, NO_GUARANTEE, Rounding.NONE, "the heuristic given gives inf, for"),
        (-1, PROVEN, Rounding.NONE, "gives -1.0, though it claims that it never overestimates, for"),
        (0.5, PROVEN, Rounding.INTEGER, "gives 0.5, though it claims whole values, for"),
    ],
)
def test_impossible_values_are_refused_with_the_heuristic_and_the_state(
    value: float, guarantee: Guarantee, rounding: Rounding, part: str
) -> None:
    puzzle = us.puzzle("tiles-3x3")
    guide = Given(puzzle.table.fingerprint, lambda s: np.full(len(s), value, np.float32), "given", guarantee, rounding)
    with pytest.raises(us.UndershootError, match=part):
        us.solve(puzzle, puzzle.parse("D"), guide)


def test_bad_input_is_refused() -> None:
    puzzle, other = us.puzzle("tiles-3x3"), us.puzzle("tiles-2x3")
    base = us.heuristic(puzzle, "base")
    with pytest.raises(us.UndershootError, match="belongs to another puzzle than tiles-2x3"):
        us.solve(other, other.table.goals, base)
    with pytest.raises(us.UndershootError, match="odd parity"):
        us.solve(puzzle, np.array([[1, 2, 3, 4, 5, 6, 8, 7, 0]], dtype=np.uint8), base)
    with pytest.raises(us.UndershootError, match="states must be an array"):
        us.solve(puzzle, other.table.goals, base)
    with pytest.raises(us.UndershootError, match="solve takes one state, 2 came"):
        us.solve(puzzle, puzzle.sample(2, 0), base)
    for settings, part in (
        ({"weight": 0.5}, r"the weight \(--weight\) is 0.5"),
        ({"weight": float("nan")}, r"the weight \(--weight\) is nan"),
        ({"weight": 1e19}, r"the weight \(--weight\) is 1e"),
        ({"max_expanded": -1}, "-1 expansions"),
        ({"max_seconds": -1.0}, "-1.0 seconds"),
        ({"max_memory": 5}, "5 bytes"),
        ({"expand_per_step": 0}, r"expand_per_step \(--expand-per-step\) is 0"),
    ):
        with pytest.raises(us.UndershootError, match=part):
            us.SearchOptions(**settings)
    assert us.solve_many(puzzle, puzzle.table.goals[:0], base) == []


def from_file(folder: Path, text: str) -> Puzzle:
    path = folder / "puzzle.toml"
    path.write_text(text)
    return us.puzzle(path)


def test_heuristics_are_not_given_to_puzzles_that_only_look_alike(tmp_path: Path) -> None:
    lamps = 'name = "lo"\nsymbols = ["0", "1"]\ngoal = "1 1 1"\n[moves]\n'
    lamps += "".join(f"m{i} = {{ add = {{ {i} = 1 }} }}\n" for i in (1, 2, 3))
    with pytest.raises(us.UndershootError, match="gf2 is for Lights Out"):
        us.heuristic(from_file(tmp_path, lamps), "gf2")
    discs = 'name = "discs"\ngoal = "a b c d"\n[moves]\nturn = "(1 2 3 4)"\n[picture]\nrows = ["1 2", "4 3"]\n'
    with pytest.raises(us.UndershootError, match="linear-conflict is for sliding tiles"):
        us.heuristic(replace(from_file(tmp_path, discs), name="tiles-3x3"), "linear-conflict")


def test_a_false_claim_of_admissibility_is_caught_when_a_solution_contradicts_it() -> None:
    puzzle, _ = distances("tiles-3x3")
    liar = scaled("tiles-3x3", 0, 3, 3, True, PROVEN)
    with pytest.raises(us.UndershootError, match=r"scaled claims that it never overestimates, but says .* of a state"):
        us.solve_many(puzzle, puzzle.sample(20, 1), liar, us.SearchOptions(weight=2))


def test_a_stopped_search_does_not_claim_what_only_a_finished_one_proves(tmp_path: Path) -> None:
    text = 'name = "r"\ngoal = "a b c d"\n[moves]\nturn = "(1 2 3 4)"\nback = { cycles = "(4 3 2 1)", cost = 10 }\n'
    puzzle = from_file(tmp_path, text)
    state = puzzle.parse("turn")
    zero = us.heuristic(puzzle, "zero")
    assert us.solve(puzzle, state, zero).cost == 3
    of_solutions = Guarantee(
        Standing.SAMPLED, population="x", violation_rate=0.1, confidence=0.9, labels=50, subject=Subject.SOLUTIONS
    )
    for guarantee in (PROVEN, Guarantee(Standing.PROVEN, within=50), of_solutions):
        guide = Given(puzzle.table.fingerprint, zero, "zero", guarantee, Rounding.INTEGER)
        stopped = []
        for most in range(6):
            result = us.solve(puzzle, state, guide, us.SearchOptions(expand_per_step=2, max_expanded=most))
            assert result.lower_bound <= 3
            if result.cost == 10:
                stopped.append(result.status)
                assert result.optimality.kind not in (OptimalityKind.PROVEN, OptimalityKind.CALIBRATED)
                assert result.optimality.factor is None or result.optimality.factor >= 10 / 3
        assert stopped == [us.Status.BUDGET]


def test_dead_ends_do_not_stop_the_perfect_table(tmp_path: Path) -> None:
    text = 'name = "dead"\ngoal = "a x b"\ncursor = "x"\n[moves]\nr = { at = { 1 = "(1 2)" } }\ns = { at = { 1 = "(1 3)" } }\n'
    puzzle = from_file(tmp_path, text)
    result = us.solve(puzzle, puzzle.parse("x a b"), us.heuristic(puzzle, "table"))
    assert (result.cost, result.status) == (1, us.Status.SOLVED)
    lost = us.solve(puzzle, puzzle.parse("b a x"), us.heuristic(puzzle, "base"))
    assert (lost.status, lost.cost, lost.expanded) == (us.Status.UNSOLVABLE, None, 1)


def test_costs_beyond_what_is_exact_are_an_error_and_not_unsolvable(tmp_path: Path) -> None:
    cycles, first = [], 1
    for length in (3, 4, 5, 7):  # 420 steps until they all come round
        cycles.append("(" + " ".join(str(first + i) for i in range(length)) + ")")
        first += length
    goal = " ".join(f"s{i}" for i in range(1, first))
    text = f'name = "dear"\ngoal = "{goal}"\n[moves]\nstep = {{ cycles = "{"".join(cycles)}", cost = 65535 }}\n'
    puzzle = from_file(tmp_path, text)
    with pytest.raises(us.UndershootError, match="costs above 16,777,216 are not searched"):
        us.solve(puzzle, puzzle.parse("step step step"), us.heuristic(puzzle, "zero"))


def test_limits_strike_only_those_that_reach_them() -> None:
    puzzle = us.puzzle("tiles-4x4-blank-first")
    hard = puzzle.parse("14 13 15 7 11 12 9 5 6 0 2 1 4 8 10 3")
    easy = us.scramble(puzzle.table, np.full(20, 2), 1).states
    states = np.concatenate([hard, hard, easy])
    base = us.heuristic(puzzle, "base")
    for limit in ({"max_seconds": 0.2}, {"max_memory": 8 << 20}):
        results = us.solve_many(puzzle, states, base, us.SearchOptions(**limit))
        assert [result.status for result in results[2:]] == [us.Status.SOLVED] * 20
        assert all(result.status in (us.Status.TIME, us.Status.MEMORY) for result in results[:2])
        assert min(result.expanded for result in results[:2]) > 10_000


def test_many_instances_in_little_memory_end_with_a_status() -> None:
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(300, 2)
    for guide in (us.heuristic(puzzle, "base"), us.heuristic(puzzle, "linear-conflict")):
        results = us.solve_many(puzzle, states, guide, us.SearchOptions(max_memory=2 << 20))
        assert len(results) == 300
        assert {result.status for result in results} <= {us.Status.SOLVED, us.Status.MEMORY}
        assert sum(result.status is us.Status.SOLVED for result in results) > 100
    assert us.solve(puzzle, states[:1], us.heuristic(puzzle, "base"), us.SearchOptions(max_memory=2**60)).cost is not None
    assert us.solve(puzzle, states[:1], us.heuristic(puzzle, "base"), us.SearchOptions(max_expanded=2**70)).cost is not None
