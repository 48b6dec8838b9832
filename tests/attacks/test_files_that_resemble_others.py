"""Puzzle files with the name and the moves of a puzzle of the catalogue, and something else beside them."""

from pathlib import Path

import pytest

import undershoot as us
from undershoot.oracles.breadth_first import explore

TILES = """
name = "tiles-3x2"
goal = "1 2 3 4 5 0"
symbols = ["0", "1", "2", "3", "4", "5"]
cursor = "0"

[moves]
U = { at = { 1 = "(1 3)", 2 = "(2 4)", 3 = "(3 5)", 4 = "(4 6)" } }
D = { at = { 3 = "(3 1)", 4 = "(4 2)", 5 = "(5 3)", 6 = "(6 4)" } }
L = { at = { 1 = "(1 2)", 3 = "(3 4)", 5 = "(5 6)" } }
R = { at = { 2 = "(2 1)", 4 = "(4 3)", 6 = "(6 5)" } }
"""
PICTURES = {"in a row": ["1 2 3 4 5 6"], "in rows of three": ["1 2 3", "4 5 6"], "in a column": ["1", "2", "3", "4", "5", "6"]}


@pytest.mark.parametrize("picture", PICTURES)
def test_another_picture_changes_nothing_of_what_is_proven(tmp_path: Path, picture: str) -> None:
    rows = ", ".join(f'"{row}"' for row in PICTURES[picture])
    (tmp_path / "p.toml").write_text(f"{TILES}\n[picture]\nrows = [{rows}]\n")
    alike, tiles = us.puzzle(tmp_path / "p.toml"), us.puzzle("tiles-3x2")
    assert alike.table.fingerprint == tiles.table.fingerprint
    heuristic, distances = us.heuristic(alike, "linear-conflict"), explore(tiles)
    states = distances.states_of_rows(0, distances.states)
    assert (heuristic(states) <= distances.true_costs()).all()
    assert (heuristic(states) == us.heuristic(tiles, "linear-conflict")(states)).all()
    result = us.solve(alike, alike.parse("1 5 4 3 0 2"), heuristic)
    assert (result.cost, str(result.optimality)) == (13, "optimal, proven")
