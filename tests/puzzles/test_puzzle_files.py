from pathlib import Path

import numpy as np
import pytest

import undershoot as us
from subjects import PYRAMINX
from undershoot.errors import PuzzleFileError
from undershoot.kernels.encodings import dense

GOOD = """
name = "ring"
goal = "a b c"
[moves]
turn = "(1 2 3)"
"""


def write(folder: Path, text: str) -> str:
    path = folder / "puzzle.toml"
    path.write_text(text)
    return str(path)


def test_pyraminx_has_the_published_number_of_states_at_each_distance() -> None:
    table = us.oracle(us.puzzle(PYRAMINX))
    assert table.histogram.tolist() == [1, 8, 48, 288, 1728, 9896, 51808, 220111, 480467, 166276, 2457, 32]
    assert us.puzzle(PYRAMINX).space.size == 933_120


def test_a_cycle_carries_each_cell_to_the_next(tmp_path: Path) -> None:
    puzzle = us.puzzle(write(tmp_path, GOOD))
    assert puzzle.format(puzzle.parse("turn")) == "c a b"
    assert puzzle.format(puzzle.parse("turn turn")) == "b c a"
    assert us.oracle(puzzle, cache_dir=tmp_path).distance(puzzle.parse("turn")).tolist() == [2]


def test_powers_add_the_turns_of_a_face(tmp_path: Path) -> None:
    puzzle = us.puzzle(write(tmp_path, 'name = "q"\ngoal = "a b c d"\npowers = true\n[moves]\nT = "(1 2 3 4)"\nS = "(1 2)"\n'))
    assert puzzle.table.action_names == ("T", "T2", "T'", "S")
    assert puzzle.format(puzzle.parse("T T2 T'")) == puzzle.format(puzzle.parse("T2"))


def test_a_cursor_makes_sliding_puzzles_on_any_board(tmp_path: Path) -> None:
    """The 8-puzzle written as a file has the distances of the 8-puzzle."""
    lines = [
        'name = "sliding"',
        'goal = "1 2 3 4 5 6 7 8 0"',
        'symbols = ["0", "1", "2", "3", "4", "5", "6", "7", "8"]',
        'cursor = "0"',
        "[moves]",
    ]
    for name, (dr, dc) in {"U": (1, 0), "D": (-1, 0), "L": (0, 1), "R": (0, -1)}.items():
        at = [
            f'{3 * r + c + 1} = "({3 * r + c + 1} {3 * (r + dr) + c + dc + 1})"'
            for r in range(3)
            for c in range(3)
            if 0 <= r + dr < 3 and 0 <= c + dc < 3
        ]
        lines.append(f"{name} = {{ at = {{ {', '.join(at)} }} }}")
    puzzle = us.puzzle(write(tmp_path, "\n".join(lines)))
    built_in = us.puzzle("tiles-3x3")
    assert puzzle.table.fingerprint == built_in.table.fingerprint
    assert puzzle.has_cost_parity


def test_presses_and_costs_can_be_written(tmp_path: Path) -> None:
    text = """
name = "lamps"
goal = "0 0 0"
symbols = ["0", "1", "2"]
[moves]
a = { add = { 1 = 1, 2 = 1 }, cost = 2 }
b = { add = { 2 = 2, 3 = 1 } }
[[symmetries]]
"""
    puzzle = us.puzzle(write(tmp_path, text))
    assert puzzle.table.cost.tolist() == [2, 1]
    assert puzzle.format(puzzle.parse("a b")) == "1 0 1"
    assert len(puzzle.table.symmetries) == 1
    table = us.oracle(puzzle, cache_dir=tmp_path)
    # Each move has order three, so undoing one is playing it twice.
    assert table.distance(puzzle.parse("a")).tolist() == [4]
    assert table.states == 9
    with pytest.raises(us.UndershootError, match="cannot draw uniformly"):
        puzzle.sample(1, 0)


def test_several_goals_are_all_at_distance_zero(tmp_path: Path) -> None:
    text = GOOD.replace('goal = "a b c"', 'goals = ["a b c", "c a b"]')
    puzzle = us.puzzle(write(tmp_path, text))
    assert us.oracle(puzzle, cache_dir=tmp_path).histogram.tolist() == [2, 1]
    assert us.scramble(puzzle.table, np.zeros(50, dtype=int), 1).states.tolist().count([0, 1, 2]) not in (0, 50)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (GOOD.replace("(1 2 3)", "(1 2 2)"), "move turn is not a permutation: cell 2 occurs twice"),
        (GOOD.replace("(1 2 3)", "(1 2)(2 3)"), "move turn is not a permutation: cell 2 occurs twice"),
        (GOOD.replace("(1 2 3)", "(1 2 4)"), 'names the cell "4"; cells are numbered 1 to 3'),
        (GOOD.replace("(1 2 3)", "1 2 3"), "expected are cycles"),
        (GOOD.replace("(1 2 3)", "(1)"), "move turn does nothing"),
        (GOOD + 'turn = "(1 2)"\n', "not a TOML file"),
        (GOOD.replace("goal =", 'cursor = "z"\ngoal ='), 'the cursor "z" occurs 0 times'),
        (GOOD.replace('"a b c"', '"a a c"\ncursor = "a"'), 'the cursor "a" occurs 2 times'),
        (GOOD.replace("goal", "gaol"), '"gaol" is not known'),
        (GOOD.replace('name = "ring"', ""), "name is missing"),
        (GOOD.replace('"ring"', '"My Ring"'), "small letters"),
        ('name = "x"\ngoal = "a b"\n', "there are no moves"),
        (GOOD.replace("[moves]", "[moves]\nother = 5"), "move other must be cycles"),
        (GOOD.replace('"(1 2 3)"', '{ cycles = "(1 2 3)", cost = 0 }'), "costs are whole numbers"),
        (GOOD.replace("goal =", 'symbols = ["a", "b"]\ngoal ='), "not among the symbols"),
        (GOOD.replace("goal =", 'symbols = ["a", "b", "c", "a"]\ngoal ='), 'two symbols are called "a"'),
        (GOOD.replace("[moves]", 'powers = true\n[moves]\n"turn\'" = "(1 3 2)"'), "two moves are called"),
        (GOOD + '[picture]\nrows = ["1 2"]\n', "no place for cell 3"),
        (GOOD + '[picture]\ncolours = { a = "nonsense" }\n', "unknown colour"),
        (GOOD + '[[symmetries]]\ncells = "(1 2)"\n', "no symmetry"),
        ("name = ", "not a TOML file"),
        ("symmetries = 5" + GOOD, "symmetries must be a list"),
        (GOOD + "[[symmetries]]\nvalues = 5\n", "`values` of a symmetry must be a table"),
        (GOOD + '[[symmetries]]\nvalues = { a = ["b"] }\n', "both must be symbols"),
        (GOOD + '[picture]\ncolours = "red"\n', "colours of the picture must be a table"),
        (GOOD + '[picture]\ncolours = { z = "red" }\n', 'colours "z", which is not a symbol'),
        (GOOD + '[picture]\nrows = ["1 2 3 1"]\n', "shows cell 1 twice"),
        (GOOD.replace("(1 2 3)", "(1 2 " + "9" * 5000 + ")"), "cells are numbered 1 to 3"),
        (GOOD.replace('"a b c"', '"a/b b c"'), "it must be one word without"),
        (GOOD.replace("turn =", '"a b" ='), "it must be one word without"),
        (GOOD.replace("turn =", '"1:" ='), "it must be one word without"),  # in a file of instances, `1:` is a known cost
        (GOOD.replace('"a b c"', '"1: b c"'), "it must be one word without"),
        (GOOD.replace("goal =", f"symbols = {[str(i) for i in range(300)]}\ngoal =".replace("'", '"')), "at most 256"),
        (GOOD.replace('"(1 2 3)"', "{ add = { 1 = true } }"), "adds True"),
        (GOOD.replace('"(1 2 3)"', "{ add = { 1 = 1, 01 = 2 } }"), "move turn gives cell 1 twice in `add`"),
        (
            GOOD.replace("goal =", 'cursor = "a"\ngoal =').replace('"(1 2 3)"', '{ at = { 1 = "(1 2)", 01 = "(1 3)" } }'),
            "in `at`",
        ),
        ("x = " + "[" * 5000, "cannot read|not a TOML"),
    ],
)
def test_bad_files_are_refused_by_name_and_with_the_reason(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(PuzzleFileError, match=part) as refusal:
        us.puzzle(write(tmp_path, text))
    assert "puzzle.toml" in str(refusal.value)


def test_symbols_that_are_also_moves_are_read_as_states_where_they_fit(tmp_path: Path) -> None:
    puzzle = us.puzzle(write(tmp_path, 'name = "q"\ngoal = "L R R"\n[moves]\nL = "(1 2)"\nR = "(2 3)"\n'))
    assert puzzle.format(puzzle.parse("L R R")) == "L R R"
    assert puzzle.format(puzzle.parse("L")) == "R L R"


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(GOOD, encoding="utf-8-sig")
    assert us.puzzle(path).name == "ring"


def test_large_puzzles_are_described_without_enumerating_anything(tmp_path: Path) -> None:
    n = 250
    goal = " ".join(f"s{i}" for i in range(n))
    cycle = " ".join(str(i + 1) for i in range(n))
    puzzle = us.puzzle(write(tmp_path, f'name = "large"\ngoal = "{goal}"\n[moves]\na = "({cycle})"\nb = "(1 2)"\n'))
    assert not puzzle.space.size_is_exact
    with pytest.raises(us.UndershootError, match=r"e\+\d+ states"):
        us.oracle(puzzle, cache_dir=tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PuzzleFileError, match=r"nowhere\.toml: No such file"):
        us.puzzle(str(tmp_path / "nowhere.toml"))


def test_symbols_that_no_goal_holds_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('name = "p"\ngoal = "b d"\nsymbols = ["a", "b", "c", "d"]\n[moves]\nswap = "(1 2)"\n')
    puzzle = us.puzzle(tmp_path / "p.toml")
    assert us.solve(puzzle, puzzle.parse("d b"), us.heuristic(puzzle, "base")).cost == 1
    assert puzzle.is_solvable(puzzle.table.goals).all()


def test_pairs_of_cells_that_moves_add_to_may_be_equal(tmp_path: Path) -> None:
    text = 'name = "p"\ngoal = "a b"\n[moves]\nup = { add = { 1 = 1 } }\ndown = { add = { 2 = 1 } }\n'
    (tmp_path / "p.toml").write_text(text)
    puzzle = us.puzzle(tmp_path / "p.toml")
    table = us.oracle(puzzle)
    assert (dense(puzzle.encoded("pairs"), table.states_of_rows(0, table.states)).sum(axis=1) == 1).all()
