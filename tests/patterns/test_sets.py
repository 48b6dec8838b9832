"""Sets of patterns that are chosen by the memory that they may take."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import undershoot as us
from commands import undershoot
from undershoot.bundles import loading
from undershoot.bundles.loading import default_heuristic
from undershoot.errors import SpaceTooLarge, UndershootError
from undershoot.pattern_tables import sets
from undershoot.pattern_tables.cache import HEADER, cached_bytes, check_room, table_of
from undershoot.pattern_tables.packing import packed_size
from undershoot.pattern_tables.room import disk_bytes, memory_of
from undershoot.pattern_tables.sets import default_name, pattern_set
from undershoot.puzzles.catalogue import from_text

PYRAMINX = str(Path(__file__).parent.parent.parent / "examples" / "pyraminx.toml")


@pytest.mark.parametrize("name", ["topspin-12-4", "cube-3x3", "tiles-4x4", "tiles-5x5", "tiles-3x3", "cube-2x2", PYRAMINX])
def test_a_default_set_keeps_to_the_memory_that_is_given(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERSHOOT_CACHE_DIR", str(tmp_path))  # tables that are made take less
    puzzle = us.puzzle(name)
    taken = [memory_of(pattern_set(puzzle, max_memory=memory).patterns) for memory in (10_000, 300_000, 3_000_000_000)]
    assert taken[0] <= 10_000
    assert taken[1] <= 300_000
    assert taken[0] < taken[1] < taken[2] <= 3_000_000_000


def test_more_memory_than_the_default_takes_changes_nothing_where_a_set_is_known() -> None:
    tiles = us.puzzle("tiles-4x4")
    assert default_name(tiles, 10**12) == default_name(tiles)


def test_a_set_whose_tables_are_made_is_taken_where_it_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERSHOOT_CACHE_DIR", str(tmp_path))
    tiles, memory = us.puzzle("tiles-3x3"), 500_000
    assert memory_of(pattern_set(tiles, "8").patterns) > memory
    assert pattern_set(tiles, max_memory=memory).name == "4-4+reflected"
    us.patterns(tiles, "8")
    assert pattern_set(tiles, max_memory=memory).name == "8"


def test_networks_give_way_to_the_default_set_alone_and_only_where_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    tiles = us.puzzle("tiles-4x4")
    monkeypatch.setattr(loading, "cached_seconds", lambda *_: 1.0)
    monkeypatch.setattr(sets, "cached_bytes", lambda pattern, name: packed_size(int(pattern.folded.size)))
    assert pattern_set(tiles, max_memory=60_000_000).name == "6-6-3+reflected"
    assert default_heuristic(tiles, max_memory=60_000_000) == "patterns"
    assert pattern_set(tiles, max_memory=30_000_000).name == "5-5-5+reflected"
    assert default_heuristic(tiles, max_memory=30_000_000) == "learned"
    solved = undershoot("solve", "tiles-4x4", "--scramble-depth", "3", "--max-memory", "30M", "--json")
    assert json.loads(solved.stdout)["heuristic"].startswith("learned")
    monkeypatch.setattr(sets, "cached_bytes", lambda pattern, name: None)
    assert default_heuristic(tiles, max_memory=60_000_000) == "learned"


def test_a_memory_that_no_set_fits_into_is_refused() -> None:
    with pytest.raises(SpaceTooLarge, match="no set of patterns of topspin-12-4 fits into 10 bytes"):
        pattern_set(us.puzzle("topspin-12-4"), max_memory=10)


def test_the_list_of_sets_begins_with_the_one_that_fits() -> None:
    listed = undershoot("patterns", "topspin-12-4", "--max-memory", "100k", "--json")
    assert json.loads(listed.stdout)["sets"][0]["set"] == "4+4+4"
    refused = undershoot("patterns", "topspin-12-4", "8+8", "--max-memory", "100k", code=2)
    assert "--max-memory chooses a default set, but a SET was given" in refused.stderr


def test_solve_makes_tables_within_its_memory() -> None:
    expected = default_name(us.puzzle("topspin-8-4"), 1 << 20)
    solved = undershoot("solve", "topspin-8-4", "--random", "1", "--heuristic", "patterns", "--max-memory", "1M", "--json")
    assert json.loads(solved.stdout)["heuristic"] == f"patterns {expected}"


@pytest.mark.parametrize("name", ["4+6", "6", "3+3+3", "2+3+6", "1+1+1+1+6", "1+2+1+1+1+6+5"])
def test_every_set_has_as_many_pieces_as_its_name_says(name: str) -> None:
    found = pattern_set(us.puzzle(PYRAMINX), name)
    assert [len(pattern.followed) for pattern in found.patterns] == [int(size) for size in name.split("+")]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("9" * 5000, "is no piece of tiles-4x4 and no set of patterns"),
        ("9" * 5000 + "-1", "is no piece of tiles-4x4 and no set of patterns"),
        ("", "says nothing"),
        ("+reflected", "says how to look, +reflected, but not at what"),
        ("6-6-3+reflected+reflected", "says +reflected more than once, or before its end"),
        ("16", "a set of 16 pieces was asked for; of one kind tiles-4x4 has 15"),
    ],
)
def test_names_of_no_set_get_a_sentence(name: str, says: str) -> None:
    with pytest.raises(UndershootError) as refused:
        pattern_set(us.puzzle("tiles-4x4"), name)
    assert says in str(refused.value)


@pytest.mark.parametrize("name", ["all", "corners", "edges"])
def test_sets_in_a_file_have_names_of_their_own(name: str) -> None:
    text = f'name = "mine"\ngoal = "a b c"\n[moves]\nL = "(1 2 3)"\n[patterns]\n{name} = "a b"\n'
    with pytest.raises(UndershootError, match="which every puzzle has already"):
        from_text(text, "mine.toml")


def test_a_cube_is_not_said_to_have_no_reflection() -> None:
    with pytest.raises(UndershootError, match=r"\+reflected is for boards with a blank, .* take \+symmetric here"):
        pattern_set(us.puzzle("cube-3x3"), "corners+6+6+reflected")
    with pytest.raises(UndershootError, match=r"tiles-2x3 has no reflection that keeps its goal; leave out \+reflected"):
        pattern_set(us.puzzle("tiles-2x3"), "2-3+reflected")


@pytest.mark.parametrize("halves", ["a b z", "a b / b c"])
def test_sets_in_a_file_are_checked_with_it(halves: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\ngoal = "a b c _"\ncursor = "_"\n[moves]\nL = { at = { 2 = "(1 2)", 3 = "(2 3)", 4 = "(3 4)" } }\n'
        f'R = {{ at = {{ 1 = "(1 2)", 2 = "(2 3)", 3 = "(3 4)" }} }}\n[patterns]\nhalves = "{halves}"\n'
    )
    refused = undershoot("puzzles", "--check", str(path), code=2)
    assert "the set of patterns halves in the file of mine: " in refused.stderr


@pytest.mark.parametrize("given", [{"threads": -1}, {"threads": 0}, {"threads": "x"}, {"max_memory": "1G"}, {"threads": 1.5}])
def test_what_is_no_number_of_threads_or_bytes_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UndershootError, match="allowed are whole numbers from"):
        us.patterns(us.puzzle("tiles-2x3"), "2-3" if "threads" in given else None, **given)
    with pytest.raises(UndershootError, match="give one of the two"):
        us.patterns(us.puzzle("tiles-2x3"), "2-3", max_memory=1)


def test_room_on_the_disk_is_asked_for_all_tables_before_the_first_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = pattern_set(us.puzzle("tiles-3x3"), "4-4")
    need = sum(disk_bytes(pattern) + HEADER for pattern in chosen.patterns)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=need - 1, f_frsize=1))
    with pytest.warns(UserWarning, match=r"are free\), so some of 2 pattern tables are made for this process alone; make room"):
        check_room(chosen.patterns, "tiles-3x3", tmp_path, again=True, device="cpu")


def test_a_full_disk_is_said_before_the_work_and_the_table_is_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pattern,) = pattern_set(us.puzzle("tiles-2x3"), "5").patterns
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=100, f_frsize=1))
    with pytest.warns(UserWarning, match=r"100 bytes are free.*UNDERSHOOT_CACHE_DIR"):
        table = table_of(pattern, "tiles-2x3", tmp_path)
    assert table.largest == 21
    assert not list(tmp_path.rglob("*.pattern"))


def test_what_a_table_takes_on_the_disk_is_not_more_than_its_file(tmp_path: Path) -> None:
    (pattern,) = pattern_set(us.puzzle("topspin-8-4"), "5").patterns
    made = table_of(pattern, "topspin-8-4", tmp_path)
    (path,) = tmp_path.rglob("*.pattern")
    assert disk_bytes(pattern) + HEADER == path.stat().st_size
    assert cached_bytes(pattern, "topspin-8-4", tmp_path) == len(made.entries)


def test_tables_that_a_symmetry_maps_onto_each_other_are_counted_once() -> None:
    shared, alone = (pattern_set(us.puzzle("topspin-12-4"), name).patterns for name in ("8+8", "8"))
    assert memory_of(shared) == memory_of(alone) < 2 * alone[0].folded.size


def test_searches_hold_each_table_once_and_what_they_write_out_counts() -> None:
    cube, tiles = us.patterns(us.puzzle("cube-2x2"), "4+4"), us.patterns(us.puzzle("tiles-3x3"), "4-4")
    for heuristic in (cube, tiles):
        guide, entries = heuristic.guide(), [table.entries for table in heuristic.tables]
        is_there = [np.shares_memory(part, guide.entries) for part in entries]
        assert is_there == [heuristic is cube] * len(entries)
        held = guide.entries.nbytes + sum(part.nbytes for part in entries if heuristic is tiles)
        assert held <= memory_of([table.pattern for table in heuristic.tables])
        assert heuristic(heuristic.pieces.table.goals).tolist() == [0]
    with pytest.raises(SpaceTooLarge, match="making and asking them included"):
        us.heuristic(us.puzzle("tiles-5x5"), "patterns:5-5-5-5-4+reflected", max_memory=30_000_000)


ONE_WAY = """
name = "one-way"
goal = "1 2 _ 3"
cursor = "_"
[moves]
R = { at = { 1 = "(1 4)", 2 = "(1 2)", 3 = "(2 3)", 4 = "(3 4)" } }
[patterns]
two = "1 2 / 3"
"""


def test_sliding_files_with_moves_that_cannot_be_undone_have_patterns_that_are_not_added(tmp_path: Path) -> None:
    path = tmp_path / "one-way.toml"
    path.write_text(ONE_WAY)
    puzzle = us.puzzle(str(path))
    distances = us.oracle(puzzle)
    states, costs = distances.states_of_rows(0, distances.states), distances.true_costs()
    for name in (None, "3", "two"):
        values = us.patterns(puzzle, name)(states)
        assert (values <= costs).all()
        assert values.max() > 0
    with pytest.raises(UndershootError, match=r"2-1 adds patterns, which takes moves that can all be undone"):
        us.patterns(puzzle, "2-1")
    assert not undershoot("solve", str(path), "--scramble-depth", "3", "--heuristic", "patterns").stderr.count("cannot")


def test_a_part_of_a_name_that_is_neither_set_nor_look_is_named() -> None:
    with pytest.raises(
        UndershootError, match=r'"foo" in 6-6-3\+foo is neither a set of patterns of tiles-4x4 nor a look; .*inverse'
    ):
        us.patterns(us.puzzle("tiles-4x4"), "6-6-3+foo")


def test_no_table_is_said_to_be_made_where_that_failed(tmp_path: Path) -> None:
    path = tmp_path / "dear.toml"
    path.write_text('name = "dear"\ngoal = "a b c d e"\n[moves]\nM = { cycles = "(1 2 3 4 5)", cost = 200 }\n')
    done = undershoot("solve", str(path), "--random", "1")
    assert "taking base" in done.stderr
    assert "made first" not in done.stdout


def test_what_is_wrong_with_a_name_is_said_before_tables_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undershoot.pattern_tables.cache.make_table", lambda *_: pytest.fail("a table was made"))
    tiles = us.puzzle("tiles-3x3")
    for name, says in (("patterns:3-5+mirror", 'no heuristic "mirror"'), ("patterns:3-5+patterns:9-9", "is 18 tiles")):
        with pytest.raises(UndershootError, match=says):
            us.heuristic(tiles, name)


def test_tables_of_a_named_set_keep_to_the_memory_that_is_given_too() -> None:
    refused = undershoot("solve", "tiles-4x4", "--random", "1", "--heuristic", "patterns:6-6-3", "--max-memory", "10M", code=2)
    assert "the tables of 6-6-3 take" in refused.stderr
    assert "10.5 MB may be used (--max-memory)" in refused.stderr


def test_the_list_shows_a_shared_table_once() -> None:
    puzzle = us.puzzle("tiles-3x3")
    us.patterns(puzzle, "4-4")
    (first,) = (row for row in json.loads(undershoot("patterns", "cube-3x3", "--json").stdout)["sets"][:1])
    assert first["set"] == "corners+6+6"
    assert first["table_of"] == [first["patterns"][0], first["patterns"][1], first["patterns"][1]]
    assert f"as {first['patterns'][1]}" in undershoot("patterns", "cube-3x3").stdout


@pytest.mark.parametrize(("name", "chosen", "twice"), [("cube-3x3", "UF RU FU", "UF"), ("topspin-8-4", "1 1 2", "1")])
def test_a_piece_that_came_twice_is_named(name: str, chosen: str, twice: str) -> None:
    with pytest.raises(UndershootError, match=f"follows different pieces; {twice} came twice"):
        pattern_set(us.puzzle(name), chosen)


def test_heuristics_and_tables_are_printed_in_a_line() -> None:
    tiles = us.puzzle("tiles-3x3")
    halves = us.patterns(tiles, "4-4+reflected")
    assert repr(halves) == "<PatternHeuristic patterns 4-4+reflected: never overestimates>"
    for one in (tiles, tiles.table, halves.tables[0], us.oracle(tiles), us.load("tiles-4x4"), us.heuristic(tiles, "learned")):
        assert len(repr(one)) < 100


def test_progress_that_cannot_be_called_is_refused() -> None:
    progress: Any = "x"
    with pytest.raises(UndershootError, match="progress is a function"):
        us.patterns(us.puzzle("tiles-2x3"), "2-3", progress=progress)


@pytest.mark.parametrize("given", [{"max_expanded": True}, {"max_expanded": "5"}, {"weight": "2"}, {"max_seconds": [1]}])
def test_limits_of_other_kinds_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UndershootError, match="number is needed"):
        us.SearchOptions(**given)
