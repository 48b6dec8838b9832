"""Tables of distances that are wrong, with checksums that are right: found out before anything rests on them."""

import dataclasses
import hashlib
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import commands
import undershoot as us
from attacks.conftest import Make
from undershoot import trust
from undershoot.arrays import AnyArray
from undershoot.certification import check_every_state
from undershoot.guarantees import OptimalityKind
from undershoot.heuristics.learned_patterns import LearnedPatterns
from undershoot.kernels.cpu import pack
from undershoot.oracles import cache
from undershoot.oracles.breadth_first import explore
from undershoot.oracles.distance_table import DistanceTable
from undershoot.oracles.verification import WrongTable, verify
from undershoot.puzzles.puzzle import Puzzle

Forgery = Callable[[DistanceTable], DistanceTable]

ONE_WAY = """
name = "one-way"
goal = "1 2 3 4"

[moves]
A = "(1 2 3)"
B = { cycles = "(2 3 4)", cost = 3 }
"""


def one_way(tmp_path: Path) -> Puzzle:
    """Whose moves cannot be undone in one step, at costs of 1 and 3."""
    (tmp_path / "one-way.toml").write_text(ONE_WAY)
    return us.puzzle(tmp_path / "one-way.toml")


def with_costs(table: DistanceTable, costs: AnyArray, keys: AnyArray | None = None) -> DistanceTable:
    """The same states at other costs."""
    order = np.argsort(costs, kind="stable")
    held = table.keys if keys is None else keys
    return dataclasses.replace(table, keys=held[order], histogram=np.bincount(costs).astype(np.int64))


def without_the_last(table: DistanceTable) -> DistanceTable:
    histogram = table.histogram.copy()
    histogram[-1] -= 1
    return dataclasses.replace(table, keys=table.keys[:-1], histogram=histogram[: 1 + np.flatnonzero(histogram)[-1]])


def without_some(table: DistanceTable) -> DistanceTable:
    kept = np.random.default_rng(0).random(table.states) > 0.1
    kept[: len(table.table.goals)] = True
    return with_costs(table, table.true_costs()[kept], table.keys[kept])


def one_cost_higher(table: DistanceTable) -> DistanceTable:
    costs = table.true_costs().copy()
    costs[table.states // 2] += 2
    return with_costs(table, costs)


def one_cost_lower(table: DistanceTable) -> DistanceTable:
    costs = table.true_costs().copy()
    costs[-1] -= 2
    return with_costs(table, costs)


def all_far_ones_higher(table: DistanceTable) -> DistanceTable:
    costs = table.true_costs().copy()
    costs[costs > 5] += 2
    return with_costs(table, costs)


def cut_off(table: DistanceTable) -> DistanceTable:
    return with_costs(table, np.minimum(table.true_costs(), 6))


def doubled_costs(table: DistanceTable) -> DistanceTable:
    return with_costs(table, table.true_costs() * 2)


def another_goal(table: DistanceTable) -> DistanceTable:
    costs = table.true_costs().copy()
    costs[len(table.table.goals)] = 0
    return with_costs(table, costs)


def the_goal_costs_something(table: DistanceTable) -> DistanceTable:
    return with_costs(table, table.true_costs() + 1)


def a_state_twice(table: DistanceTable) -> DistanceTable:
    keys = np.concatenate([table.keys, table.keys[-1:]])
    return with_costs(table, np.append(table.true_costs(), table.true_costs()[-1]), keys)


def one_state_for_another(table: DistanceTable) -> DistanceTable:
    keys = table.keys.copy()
    keys[-1] = keys[-2]
    return dataclasses.replace(table, keys=keys)


def no_state_is_farthest(table: DistanceTable) -> DistanceTable:
    return dataclasses.replace(table, histogram=np.append(table.histogram, [0, 0, 0]))


def a_ball_as_the_whole(table: DistanceTable) -> DistanceTable:
    return dataclasses.replace(table.within(4), radius=table.radius)


def not_a_state(table: DistanceTable) -> DistanceTable:
    keys = table.keys.copy()
    keys[-1] = np.uint64(2**64 - 1)
    return dataclasses.replace(table, keys=keys)


def a_state_of_another_orbit(table: DistanceTable) -> DistanceTable:
    state = table.states_of_rows(table.states - 1, table.states).copy()
    state[0, [0, 1]] = state[0, [1, 0]]
    return dataclasses.replace(table, keys=np.concatenate([table.keys[:-1], pack(table.table, state)]))


FORGERIES: list[Forgery] = [
    without_the_last,
    without_some,
    one_cost_higher,
    one_cost_lower,
    all_far_ones_higher,
    cut_off,
    doubled_costs,
    another_goal,
    the_goal_costs_something,
    a_state_twice,
    one_state_for_another,
    a_ball_as_the_whole,
    no_state_is_farthest,
    not_a_state,
    a_state_of_another_orbit,
]


def puzzles(tmp_path: Path) -> list[tuple[Puzzle, int | None]]:
    return [
        (us.puzzle("tiles-2x3"), None),
        (us.puzzle("pancake-6"), None),
        (one_way(tmp_path), None),
        (us.puzzle("tiles-2x3"), 9),
    ]


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.__name__)
def test_a_wrong_table_is_found_out_and_made_anew(tmp_path: Path, forgery: Forgery) -> None:
    for number, (puzzle, radius) in enumerate(puzzles(tmp_path)):
        right = explore(puzzle, radius)
        assert verify(right, puzzle.space).edges > 0
        if forgery is cut_off and len(right.histogram) <= 7:
            continue
        wrong = forgery(right)
        with pytest.raises(WrongTable):
            verify(wrong, puzzle.space)
        folder = tmp_path / str(number)
        cache.save(cache._path(folder / "oracles", puzzle, radius), wrong)
        with pytest.warns(UserWarning, match="are wrong"):
            found = us.oracle(puzzle, radius, folder)
        assert (found.keys == right.keys).all()
        assert found.histogram.tolist() == right.histogram.tolist()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            us.oracle(puzzle, radius, folder)


@pytest.mark.parametrize("forgery", [without_some, one_cost_higher, all_far_ones_higher, a_ball_as_the_whole])
def test_a_wrong_table_in_the_cache_certifies_nothing_and_misleads_no_search(
    make: Make, tmp_path: Path, forgery: Forgery, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, puzzle = make(), us.puzzle("tiles-2x3")
    right = explore(puzzle)
    for number, command in enumerate(("check", "certify", "table")):
        monkeypatch.setenv("UNDERSHOOT_CACHE_DIR", str(tmp_path / f"cache {number}"))
        place = cache._path(tmp_path / f"cache {number}" / "oracles", puzzle, None)
        cache.save(place, forgery(right))
        if command != "table":
            done = commands.undershoot(command, str(folder))
            assert f"{place} are wrong" in done.stderr
            assert "360 of 360 states checked, 0 above" in " ".join(done.stdout.split())
    states = right.states_of_rows(0, right.states)
    with pytest.warns(UserWarning, match="are wrong"):
        heuristic = us.heuristic(puzzle, "table")
    for result, cost in zip(us.solve_many(puzzle, states, heuristic), right.true_costs(), strict=True):
        assert (result.cost, result.optimality.kind) == (cost, OptimalityKind.PROVEN)


def test_a_certificate_establishes_the_costs_itself(make: Make) -> None:
    """Whoever hands a table to the check: it is verified in the same pass."""
    heuristic = us.load(make())
    assert not isinstance(heuristic, LearnedPatterns)
    right = explore(us.puzzle("tiles-2x3"))
    for forgery in FORGERIES:
        with pytest.raises(WrongTable):
            check_every_state(heuristic, forgery(right))


def rewritten(path: Path, **changes: Any) -> None:
    """Other fields beside the same arrays, with a checksum that is right."""
    with np.load(path) as archive:
        keys, histogram, about = archive["keys"], archive["histogram"], json.loads(str(archive["about"]))
    about.pop("sha256")
    keys, histogram = changes.pop("keys", keys), changes.pop("histogram", histogram)
    about |= changes
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for array in (np.asarray(keys), np.asarray(histogram)):
        digest.update(f"{array.dtype.str} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    np.savez(path, keys=keys, histogram=histogram, about=np.array(json.dumps({**about, "sha256": digest.hexdigest()})))


@pytest.mark.parametrize(
    "changes",
    [
        {"histogram": np.array([1, -5, 364], dtype=np.int64)},
        {"histogram": np.zeros(0, dtype=np.int64)},
        {"histogram": np.array([1, 2**62, 2**62, 2**62, 2**62, 359], dtype=np.int64)},  # the sum wraps around
        {"histogram": np.append(np.zeros(70_000, dtype=np.int64), 360)},
        {"histogram": np.array([[1, 359]], dtype=np.int64)},
        {"histogram": np.array([1.0, 359.0])},
        {"keys": np.zeros(360, dtype=np.uint64)},
        {"keys": np.zeros((360, 2), dtype=np.uint64)},
        {"keys": np.zeros((360, 1), dtype=np.int64)},
        {"seconds": "soon"},
        {"seconds": None},
        {"seconds": 0.0},
        {"seconds": -1.0},
        {"seconds": 1e-300},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"radius": "all"},
        {"format": ["x"]},
    ],
    ids=str,
)
def test_tables_of_wrong_types_are_made_anew(tmp_path: Path, changes: dict[str, Any]) -> None:
    puzzle = us.puzzle("tiles-2x3")
    path = cache._path(tmp_path / "oracles", puzzle, None)
    cache.save(path, explore(puzzle))
    rewritten(path, **dict(changes))
    with pytest.warns(UserWarning, match="are wrong"):
        assert us.oracle(puzzle, cache_dir=tmp_path).states == 360


def test_a_false_parity_in_the_cache_is_found_out(tmp_path: Path) -> None:
    puzzle = us.puzzle("cube-2x2")
    path = cache._path(tmp_path / "oracles", puzzle, 3)
    cache.save(path, dataclasses.replace(explore(puzzle, 3), is_bipartite=True))
    with pytest.warns(UserWarning, match="breaks the parity"):
        assert not us.oracle(puzzle, 3, tmp_path).is_bipartite


def test_a_link_in_the_cache_leads_nowhere(tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-2x3")
    path = cache._path(tmp_path / "oracles", puzzle, None)
    path.parent.mkdir()
    (tmp_path / "precious").write_text("keep")
    path.symlink_to(tmp_path / "precious")
    with pytest.warns(UserWarning, match="are wrong"):
        us.oracle(puzzle, cache_dir=tmp_path)
    assert (tmp_path / "precious").read_text() == "keep"
    assert not path.is_symlink()


def test_a_pipe_in_the_cache_is_not_waited_for(tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-2x3")
    path = cache._path(tmp_path / "oracles", puzzle, None)
    path.parent.mkdir()
    os.mkfifo(path)
    assert us.oracle(puzzle, cache_dir=tmp_path).states == 360


def test_a_part_of_a_table_ends_with_its_farthest_states(tmp_path: Path) -> None:
    puzzle = one_way(tmp_path)
    whole = explore(puzzle)
    for radius in range(len(whole.histogram)):
        part = whole.within(radius)
        assert part.histogram[-1] > 0
        assert verify(part, puzzle.space).edges >= 0
        assert part.histogram.tolist() == explore(puzzle, radius).histogram.tolist()


def test_a_right_table_of_somebody_else_is_verified_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("tiles-2x3")
    cache.save(cache._path(tmp_path / "oracles", puzzle, None), explore(puzzle))
    looked = []

    def counted(table: DistanceTable, *rest: object, **more: object) -> object:
        looked.append(table)
        return verify(table, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(cache, "verify", counted)
    for _ in range(3):
        us.oracle(puzzle, cache_dir=tmp_path)
    trust._of_this_process.clear()
    us.oracle(puzzle, cache_dir=tmp_path)
    assert len(looked) == 1
