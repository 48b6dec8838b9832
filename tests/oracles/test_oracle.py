"""Distances against published counts and against a search with a dictionary."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import undershoot as us
from reference import naive
from undershoot.errors import SpaceTooLarge
from undershoot.oracles.breadth_first import explore
from undershoot.oracles.size import walks_within
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.puzzle import Puzzle
from undershoot.puzzles.spaces import UnknownSpace

PUBLISHED = {
    "lights-out-3x3": [1, 9, 36, 84, 126, 126, 84, 36, 9, 1],
    "lights-out-5x5": [
        *(1, 25, 300, 2300, 12650, 53130, 176176, 467104, 982335),
        *(1596279, 1935294, 1684446, 1004934, 383670, 82614, 7350),
    ],
    "tiles-3x3": [
        *(1, 2, 4, 8, 16, 20, 39, 62, 116, 152, 286, 396, 748, 1024, 1893, 2512, 4485, 5638, 9529, 10878, 16993),
        *(17110, 23952, 20224, 24047, 15578, 14560, 6274, 3910, 760, 221, 2),
    ],
    "cube-2x2": [1, 9, 54, 321, 1847, 9992, 50136, 227536, 870072, 1887748, 623800, 2644],
    "cube-2x2-qtm": [1, 6, 27, 120, 534, 2256, 8969, 33058, 114149, 360508, 930588, 1350852, 782536, 90280, 276],
}
MEANS = {"lights-out-3x3": 4.5, "lights-out-5x5": 9.903, "tiles-3x3": 21.972, "cube-2x2": 8.756, "cube-2x2-qtm": 10.666}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_whole_space_has_the_published_histogram(name: str) -> None:
    puzzle = us.puzzle(name)
    table = us.oracle(puzzle)
    assert table.histogram.tolist() == PUBLISHED[name]
    assert table.mean == pytest.approx(MEANS[name], abs=5e-4)
    assert table.radius is None
    assert table.is_bipartite == puzzle.has_cost_parity
    if puzzle.has_cost_parity:
        distance = np.repeat(np.arange(len(table.histogram)), table.histogram)
        for start in range(0, table.states, 1 << 18):
            states = table.states_of_rows(start, start + (1 << 18))
            assert (puzzle.cost_parity(states) == distance[start : start + len(states)] % 2).all()


def test_the_3x3_ball_of_radius_6_has_the_published_histogram() -> None:
    table = us.oracle(us.puzzle("cube-3x3"), radius=6)
    assert table.histogram.tolist() == [1, 18, 243, 3240, 43239, 574908, 7618438]


@pytest.mark.parametrize("name", ["pancake-8", "topspin-8-4", "tiles-2x3", "lights-out-2x4", "lights-out-1x2", "pancake-2"])
def test_every_distance_equals_that_of_a_search_with_a_dictionary(name: str) -> None:
    puzzle = us.puzzle(name)
    expected = naive.distances(name, tuple(puzzle.table.goals[0].tolist()))
    table = us.oracle(puzzle)
    assert table.states == len(expected)
    states = np.array(list(expected), dtype=np.uint8)
    assert table.distance(states).tolist() == list(expected.values())
    assert {tuple(state.tolist()) for state in table.states_of_rows(0, table.states)} == set(expected)


def test_states_outside_the_ball_are_unknown() -> None:
    cube = us.puzzle("cube-2x2")
    whole, ball = us.oracle(cube), explore(cube, radius=5)
    assert ball.histogram.tolist() == PUBLISHED["cube-2x2"][:6]
    states = np.concatenate([us.scramble(cube.table, np.arange(2000) % 9, 1).states, cube.sample(500, 2)])
    distance = whole.distance(states)
    assert (ball.distance(states) == np.where(distance <= 5, distance, us.UNKNOWN)).all()
    inner = ball.within(3)
    assert inner.histogram.tolist() == PUBLISHED["cube-2x2"][:4]
    assert (inner.distance(states) == np.where(distance <= 3, distance, us.UNKNOWN)).all()


def test_unsolvable_states_are_unknown_to_the_whole_space() -> None:
    table = us.oracle(us.puzzle("tiles-3x3"))
    assert table.distance(np.array([[1, 2, 3, 4, 5, 6, 8, 7, 0]], dtype=np.uint8)).tolist() == [us.UNKNOWN]


def test_states_are_listed_by_distance() -> None:
    table = us.oracle(us.puzzle("pancake-8"))
    rows, distance = table.look_up(table.states_of_rows(0, table.states))
    assert (rows == np.arange(table.states)).all()
    assert (np.diff(distance) >= 0).all()


def costly(costs: list[int]) -> Puzzle:
    """The 8-puzzle with a price for each direction; undoing a move then costs something else."""
    puzzle = us.puzzle("tiles-3x3")
    return replace(
        puzzle, name="costly", table=replace(puzzle.table, cost=np.array(costs, dtype=np.int32), symmetries=()), parity=None
    )


@pytest.mark.parametrize("costs", [[1, 2, 3, 4], [5, 5, 1, 1], [7, 1, 1, 30]])
def test_uneven_costs_satisfy_bellmans_equation_everywhere(costs: list[int]) -> None:
    puzzle = costly(costs)
    table = explore(puzzle)
    assert table.states == 181_440
    states = table.states_of_rows(0, table.states)
    here = table.distance(states)
    children, legal = us.successors(puzzle.table, states)
    best = np.full(len(states), np.iinfo(np.int32).max)
    for a in range(4):
        there = np.where(legal[:, a], table.distance(np.where(legal[:, a, None], children[:, a], states)) + costs[a], best)
        best = np.minimum(best, there)
    assert (here[1:] == best[1:]).all()
    assert here[0] == 0
    assert table.distance(puzzle.table.goals).tolist() == [0]
    ball = explore(puzzle, radius=9)
    assert ball.histogram.tolist() == table.histogram[:10].tolist()
    assert (ball.distance(states) == np.where(here <= 9, here, us.UNKNOWN)).all()


def one_way() -> Puzzle:
    """A ring of seven beads: rotate by one, or exchange the first two; distances follow the moves, not their undoing."""
    source = np.array([[[6, 0, 1, 2, 3, 4, 5], [1, 0, 2, 3, 4, 5, 6]]], dtype=np.uint8)
    table = MoveTable(
        source=source,
        shift=np.zeros_like(source),
        modulus=np.full(7, 7, dtype=np.uint16),
        legal=np.ones((1, 2), dtype=np.bool_),
        cost=np.ones(2, dtype=np.int32),
        action_names=("turn", "swap"),
        goals=np.arange(7, dtype=np.uint8)[None],
    )
    like = us.puzzle("pancake-7")
    return replace(like, name="one-way", table=table, space=UnknownSpace(table))


def test_distances_lead_to_the_goal_where_moves_cannot_be_undone() -> None:
    puzzle = one_way()
    assert not puzzle.table.is_reversible
    table = explore(puzzle)
    assert table.states == 5040
    states = table.states_of_rows(0, 5040)
    children, _ = us.successors(puzzle.table, states)
    there = np.stack([table.distance(children[:, a]) for a in range(2)])
    assert (table.distance(states)[1:] == 1 + there.min(axis=0)[1:]).all()
    walked = us.scramble(puzzle.table, np.arange(1000) % 20, 4)
    assert (table.distance(walked.states) <= walked.cost_walked).all()


@pytest.mark.parametrize(("name", "radius"), [("cube-3x3", 5), ("cube-3x3-qtm", 6), ("lights-out-5x5", 4), ("tiles-4x4", 12)])
def test_the_estimate_before_the_search_is_never_below_what_is_found(name: str, radius: int) -> None:
    table = us.puzzle(name).table
    found = explore(us.puzzle(name), radius).states
    estimate = walks_within(table, table.backward, radius, 10**30)
    assert found <= estimate <= 1.5 * found


def test_spaces_too_large_for_memory_are_refused_before_they_start() -> None:
    with pytest.raises(SpaceTooLarge, match=r"tiles-4x4 has 10,461,394,944,000 states.*TB of memory.*a ball around the goal"):
        explore(us.puzzle("tiles-4x4"))
    with pytest.raises(SpaceTooLarge, match=r"cube-3x3 has up to .* states within 15 of the goal.*smaller radius"):
        explore(us.puzzle("cube-3x3"), radius=15)
    with pytest.raises(SpaceTooLarge, match="cube-2x2 has 3,674,160 states"):
        explore(us.puzzle("cube-2x2"), memory=10**8)
    for radius in (-1, 65_536, 1.5):
        with pytest.raises(
            us.UndershootError, match=rf"\(--radius, --ball\) is {radius}; allowed are whole numbers from 0 to 65,535"
        ):
            explore(us.puzzle("cube-2x2"), radius=radius)  # type: ignore[arg-type]
    with pytest.raises(us.UndershootError, match="a radius of 4 was asked for"):
        explore(us.puzzle("cube-2x2"), radius=3).within(4)


def test_a_puzzle_with_more_states_than_it_says_is_caught() -> None:
    puzzle = us.puzzle("pancake-8")
    lying = replace(puzzle, space=us.puzzle("pancake-7").space)
    with pytest.raises(us.UndershootError, match="more states than the 5,040 that it says"):
        explore(lying)


def test_a_puzzle_with_a_false_parity_is_caught() -> None:
    puzzle = us.puzzle("pancake-8")
    lying = replace(puzzle, parity=us.puzzle("topspin-8-3").parity_rule)
    with pytest.raises(us.UndershootError, match="a move breaks it"):
        explore(lying)


def ring_of_three(costs: list[int]) -> Puzzle:
    source = np.array([[[2, 0, 1], [1, 2, 0], [2, 0, 1]]], dtype=np.uint8)
    table = replace(
        us.puzzle("pancake-3").table,
        source=source,
        shift=np.zeros_like(source),
        legal=np.ones((1, 3), dtype=np.bool_),
        cost=np.array(costs, dtype=np.int32),
        action_names=("t", "t'", "u"),
    )
    return replace(us.puzzle("pancake-3"), name="three", table=table, space=UnknownSpace(table))


@pytest.mark.parametrize(("costs", "expected"), [([2, 2, 2], True), ([1, 1, 1], False), ([2, 2, 3], False), ([2, 2, 4], True)])
def test_parity_is_that_of_costs_not_of_moves(costs: list[int], expected: bool) -> None:
    assert explore(ring_of_three(costs)).is_bipartite == expected


def test_tables_are_cached_and_a_damaged_one_is_made_anew_with_a_warning(tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-3x3")
    first = us.oracle(puzzle, cache_dir=tmp_path)
    (path,) = tmp_path.rglob("*.npz")
    again = us.oracle(puzzle, cache_dir=tmp_path)
    assert (again.keys == first.keys).all()
    assert again.seconds == first.seconds, "read, not computed"
    assert us.oracle(puzzle, radius=10, cache_dir=tmp_path).histogram.tolist() == PUBLISHED["tiles-3x3"][:11]
    whole = path.read_bytes()
    for damage in (whole[: len(whole) // 2], b"", b"something else", whole[:5000] + b"\0\1\2\3" + whole[5004:]):
        path.write_bytes(damage)
        with pytest.warns(UserWarning, match=r"tiles-3x3-.*\.npz are wrong"):
            repaired = us.oracle(puzzle, cache_dir=tmp_path)
        assert (repaired.keys == first.keys).all()
    assert [file.name for file in path.parent.iterdir()] == [path.name], "no temporary file is left"


def test_a_table_of_another_puzzle_is_refused(tmp_path: Path) -> None:
    us.oracle(us.puzzle("tiles-2x3"), cache_dir=tmp_path)
    (foreign,) = tmp_path.rglob("*.npz")
    us.oracle(us.puzzle("pancake-8"), cache_dir=tmp_path)
    (own,) = (path for path in tmp_path.rglob("*.npz") if path != foreign)
    own.write_bytes(foreign.read_bytes())
    with pytest.warns(UserWarning, match="belongs to another puzzle"):
        assert us.oracle(us.puzzle("pancake-8"), cache_dir=tmp_path).states == 40320


def test_a_table_of_another_radius_under_this_name_is_refused(tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-2x2")
    us.oracle(puzzle, radius=3, cache_dir=tmp_path)
    (ball,) = tmp_path.rglob("*.npz")
    ball.rename(ball.with_name(ball.name.replace("within-3", "all")))
    with pytest.warns(UserWarning, match="its radius is 3, not None"):
        assert us.oracle(puzzle, cache_dir=str(tmp_path)).states == 12


@pytest.mark.parametrize("radius", [None, 3])
@pytest.mark.parametrize("place", ["file", "file/folder", "long" * 100, "taken"])
def test_a_cache_that_cannot_be_written_is_only_one_warning(tmp_path: Path, place: str, radius: int | None) -> None:
    (tmp_path / "file").write_text("not a folder")
    puzzle = us.puzzle("tiles-2x3")
    us.oracle(puzzle, radius, tmp_path / "taken")
    (path,) = (tmp_path / "taken").rglob("*.npz")
    path.unlink()
    path.mkdir()  # can neither be read nor replaced
    with pytest.warns(UserWarning, match="could not be cached") as caught:
        assert us.oracle(puzzle, radius, tmp_path / place).states == (360 if radius is None else 11)
    (warning,) = caught
    assert f"{tmp_path / place}" in str(warning.message)


def test_a_cache_without_room_is_only_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(file: int) -> None:
        raise OSError("512 requested and 0 written")  # in words, without a number, as numpy does

    monkeypatch.setattr("os.fsync", fsync)
    with pytest.warns(UserWarning, match=r"could not be cached as .*: 512 requested and 0 written"):
        us.oracle(us.puzzle("tiles-2x2"), cache_dir=tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


DEAR = """
name = "dear"
goal = "0"
symbols = ["0", "1", "2"]

[moves]
a = { add = { 1 = 1 } }
b = { add = { 1 = 2 }, cost = 65535 }
"""


def test_a_dear_step_to_a_state_that_is_near_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "dear.toml").write_text(DEAR)
    table = explore(us.puzzle(tmp_path / "dear.toml"))
    assert table.histogram.tolist() == [1, 1, 1]
    assert not table.is_bipartite  # 65535 + 1 and 1
    (tmp_path / "even.toml").write_text(DEAR.replace('"2"]', '"2", "3"]').replace("= 2 }, cost = 65535", "= 2 }, cost = 65534"))
    assert explore(us.puzzle(tmp_path / "even.toml")).is_bipartite


def test_states_that_only_dear_steps_lead_to_are_refused(tmp_path: Path) -> None:
    (tmp_path / "far.toml").write_text(DEAR.replace("a = { add = { 1 = 1 } }\n", ""))
    with pytest.raises(us.UndershootError, match="has states farther than 65535 from the goal"):
        explore(us.puzzle(tmp_path / "far.toml"))
    assert explore(us.puzzle(tmp_path / "far.toml"), radius=65535).histogram.sum() == 2
