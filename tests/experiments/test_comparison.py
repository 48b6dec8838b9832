"""Instance files, and the same instances for every heuristic."""

import json
from pathlib import Path

import pyarrow.parquet
import pytest

import commands
import undershoot as us
from undershoot.experiments.comparison import compare, write_records
from undershoot.experiments.instances import parse_depths, read_instances, scrambled_instances, uniform_instances


def test_instance_files_hold_states_comments_and_known_costs(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("# two boards\n\n1 2 3 4 5 6 7 0 8   # one move\n20: 7 0 1 / 4 2 5 / 8 6 3\n2:D D\n")
    posed = read_instances(us.puzzle("tiles-3x3"), path)
    assert posed.optimal_cost == (None, 20, 2)
    assert posed.states.tolist() == [[1, 2, 3, 4, 5, 6, 7, 0, 8], [7, 0, 1, 4, 2, 5, 8, 6, 3], [1, 2, 0, 4, 5, 3, 7, 8, 6]]


@pytest.mark.parametrize(
    ("depths", "shown"), [("2,9", "2, 9"), ("9,2", "9, 2"), ("2..4", "2..4"), ("1..2,4", "1, 2, 4"), ("5", "5")]
)
def test_scrambles_are_called_by_the_depths_that_were_drawn(depths: str, shown: str) -> None:
    posed = scrambled_instances(us.puzzle("tiles-3x3"), parse_depths(depths), 2, 7)
    assert posed.population == f"scrambles {shown}, no undo, 2 each, seed 7"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("# nothing\n\n", "holds no instances"),
        ("1 2 3 4 5 6 7 8 0\n1 2 3\n", "line 2: 3 values came"),
        ("1 2 3 4 5 6 8 7 0\n", "line 1: this state cannot reach the goal: it has odd parity"),
        ("x: 1 2 3 4 5 6 7 8 0\n", "line 1: "),
    ],
)
def test_bad_instance_files_are_refused_with_file_and_line(tmp_path: Path, text: str, part: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(us.UndershootError, match=part) as refusal:
        read_instances(us.puzzle("tiles-3x3"), path)
    assert "bad.txt" in str(refusal.value)
    with pytest.raises(us.UndershootError, match="cannot read the instances"):
        read_instances(us.puzzle("tiles-3x3"), tmp_path / "none.txt")


def test_depths_are_written_in_three_ways() -> None:
    assert parse_depths("10") == [10]
    assert parse_depths("1..4") == [1, 2, 3, 4]
    assert parse_depths("2, 4,8..9") == [2, 4, 8, 9]
    for bad in ("", "a", "1..", "4..1", "-3", "1.5"):
        with pytest.raises(us.UndershootError):
            parse_depths(bad)


def test_means_are_over_all_over_common_and_below() -> None:
    puzzle = us.puzzle("tiles-3x3")
    posed = scrambled_instances(puzzle, [4, 30], 20, 1)
    guides = [us.heuristic(puzzle, name) for name in ("zero", "base")]
    options = us.SearchOptions(max_expanded=300)
    (blind, base), records = compare(puzzle, posed, guides, options)
    alone = us.solve_many(puzzle, posed.states, guides[0], options)
    solved = [result for result in alone if result.cost is not None]
    both = [k for k in range(40) if alone[k].cost is not None and records[40 + k]["cost"] is not None]
    assert blind.solve_rate == len(solved) / 40 < base.solve_rate
    assert blind.mean_expanded == sum(result.expanded for result in alone) / 40
    assert blind.mean_expanded_common == sum(alone[k].expanded for k in both) / len(both)
    assert blind.mean_expanded_below == sum(alone[k].expanded_below or 0 for k in both) / len(both)
    assert base.gap_percent == 0 == blind.gap_percent
    assert blind.guarantee == "proven"
    assert len(records) == 80
    with pytest.raises(us.UndershootError, match="named twice"):
        compare(puzzle, posed, [guides[0], guides[0]], options)


def test_records_are_written_as_parquet(tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-2x3")
    _, records = compare(puzzle, uniform_instances(puzzle, 5, 1), [us.heuristic(puzzle, "base")], us.SearchOptions())
    write_records(tmp_path / "records.parquet", records)
    rows = pyarrow.parquet.read_table(tmp_path / "records.parquet").to_pylist()
    assert [row["cost"] for row in rows] == [record["cost"] for record in records]
    assert {"puzzle", "state", "heuristic", "expanded", "lower_bound", "optimality", "seconds"} <= set(rows[0])
    with pytest.raises(us.UndershootError, match="cannot write the records"):
        write_records(tmp_path / "records.parquet" / "x", records)


def test_a_wrong_known_cost_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text("5: D\n")
    puzzle = us.puzzle("tiles-3x3")
    with pytest.raises(us.UndershootError, match="instance 1 is said to cost 5, but 1 is proven"):
        compare(puzzle, read_instances(puzzle, path), [us.heuristic(puzzle, "base")], us.SearchOptions())


@pytest.mark.parametrize("options", [us.SearchOptions(max_expanded=1), us.SearchOptions(weight=4)])
def test_a_known_cost_below_what_every_solution_costs_is_noticed(tmp_path: Path, options: us.SearchOptions) -> None:
    """With or without a solution."""
    path, puzzle = tmp_path / "wrong.txt", us.puzzle("tiles-3x3")
    path.write_text(f"1: {puzzle.format(puzzle.sample(1, 2))}\n")
    with pytest.raises(us.UndershootError, match=r"is said to cost 1, but no solution costs less than \d+, which is proven"):
        compare(puzzle, read_instances(puzzle, path), [us.heuristic(puzzle, "base")], options)


def test_a_cost_that_stands_in_the_file_is_not_believed_for_the_gap(tmp_path: Path) -> None:
    """Who writes a file cannot make solutions look optimal: the gap is to what is proven."""
    puzzle, path = us.puzzle("tiles-3x3"), tmp_path / "claimed.txt"
    state = puzzle.format(puzzle.sample(1, 2))
    search = ("bench", "tiles-3x3", "--heuristics", "base", "--weight", "4", "--instances", str(path), "--json")
    gaps, costs = [], []
    path.write_text(f"{state}\n")
    weighted = us.solve(puzzle, puzzle.parse(state), us.heuristic(puzzle, "base"), us.SearchOptions(weight=4))
    assert weighted.gap
    for claimed, code in (("", 0), (f"{weighted.cost}: ", 0), ("1: ", 2)):
        path.write_text(f"{claimed}{state}\n")
        found = json.loads(commands.undershoot(*search, code=code).stdout)["heuristics"][0]
        gaps.append(found["gap_percent"])
        costs.append(found["proven_rate"])
    assert gaps == [pytest.approx(100 * weighted.gap / weighted.lower_bound)] * 3
    assert costs == [0.0] * 3
