"""Sets of patterns that are chosen by the memory that they may take."""

import json
from pathlib import Path

import pytest

import undershoot as us
from commands import undershoot
from undershoot.errors import SpaceTooLarge
from undershoot.pattern_tables.sets import default_name, memory_of, pattern_set

PYRAMINX = str(Path(__file__).parent.parent.parent / "examples" / "pyraminx.toml")


@pytest.mark.parametrize("name", ["topspin-12-4", "cube-3x3", "tiles-4x4", "tiles-5x5", "tiles-3x3", "cube-2x2", PYRAMINX])
def test_a_default_set_keeps_to_the_memory_that_is_given(name: str) -> None:
    puzzle = us.puzzle(name)
    taken = [memory_of(pattern_set(puzzle, max_memory=memory)) for memory in (10_000, 300_000, 3_000_000_000)]
    assert taken[0] <= 10_000
    assert taken[1] <= 300_000
    assert taken[0] < taken[1] < taken[2] <= 3_000_000_000


def test_more_memory_than_the_default_takes_changes_nothing_where_a_set_is_known() -> None:
    tiles = us.puzzle("tiles-4x4")
    assert default_name(tiles, 10**12) == default_name(tiles)


def test_a_memory_that_no_set_fits_into_is_refused() -> None:
    with pytest.raises(SpaceTooLarge, match="no set of patterns of topspin-12-4 fits into 10 bytes"):
        pattern_set(us.puzzle("topspin-12-4"), max_memory=10)


def test_the_list_of_sets_begins_with_the_one_that_fits() -> None:
    listed = undershoot("patterns", "topspin-12-4", "--max-memory", "100k", "--json")
    assert json.loads(listed.stdout)["sets"][0]["set"] == "4+4+4"
    refused = undershoot("patterns", "topspin-12-4", "8+8", "--max-memory", "100k", code=2)
    assert "--max-memory chooses a default set, but a SET was given" in refused.stderr


def test_solve_makes_tables_within_its_memory() -> None:
    solved = undershoot("solve", "topspin-8-4", "--random", "1", "--heuristic", "patterns", "--max-memory", "1M", "--json")
    assert json.loads(solved.stdout)["heuristic"] == f"patterns {default_name(us.puzzle('topspin-8-4'), 1 << 20)}"
