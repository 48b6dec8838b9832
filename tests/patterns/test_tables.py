"""Tables of patterns: right on whole spaces, and nothing wrong gets through the verification."""

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import undershoot as us
from planted import cut_off, missing, one, region_down
from undershoot import trust
from undershoot.arrays import U8
from undershoot.heuristics.patterns import pattern_heuristic
from undershoot.kernels.guides import values_of
from undershoot.pattern_tables import cache
from undershoot.pattern_tables.making import make_entries
from undershoot.pattern_tables.packing import AT_ONCE, MOST_HALF, can_pack, pack, packed_size, unpack
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.sets import default_name, pattern_set
from undershoot.pattern_tables.tables import PatternTable, fold, make_table
from undershoot.pattern_tables.verification import WrongPatternTable, verify_entries
from undershoot.puzzles.pieces import pieces_of

PYRAMINX = str(Path(__file__).parent.parent.parent / "examples" / "pyraminx.toml")
SETS = [
    ("tiles-2x3", "3-2"),
    ("tiles-3x3", "4-4+reflected"),
    ("tiles-3x3", "5-3"),
    ("tiles-3x3-blank-first", "4-4+reflected"),
    ("tiles-2x4", "1 2 5 6 / 3 4 7"),
    ("tiles-2x4", "1 2 5 6"),
    ("cube-2x2", "4+4"),
    ("cube-2x2", "corners"),
    ("cube-2x2", "all+inverse"),
    ("cube-2x2", "4+4+inverse"),
    ("topspin-8-4", "4+4+inverse"),
    ("pancake-8", "5+5+inverse"),
    (PYRAMINX, "1+1+1+1+6"),
    (PYRAMINX, "4+inverse"),
    (PYRAMINX, "all"),
]


@pytest.mark.parametrize(("name", "chosen"), SETS)
def test_values_never_exceed_the_true_cost_on_the_whole_space(name: str, chosen: str) -> None:
    puzzle = us.puzzle(name)
    made, exact = us.patterns(puzzle, chosen), us.oracle(puzzle)
    states, costs = exact.states_of_rows(0, exact.states), exact.true_costs()
    values = made(states)
    assert (values <= costs).all()
    assert (values[costs == 0] == 0).all()
    assert values.max() > 0
    if chosen in ("corners", "all", "all+inverse"):
        assert (values == costs).all()


@pytest.mark.parametrize("chosen", ["4-4-3", "1 2 5 6 / 3 4 7 8"])
def test_in_a_ball_values_are_at_most_and_solutions_just_the_true_cost(chosen: str) -> None:
    """Of a board that is too large to be enumerated in a test."""
    puzzle = us.puzzle("tiles-3x4")
    made, ball = us.patterns(puzzle, chosen), us.oracle(puzzle, radius=18)
    costs = ball.true_costs()
    assert (made(ball.states_of_rows(0, ball.states)) <= costs).all()
    rows = np.arange(0, ball.states, ball.states // 200)
    results = us.solve_many(puzzle, ball.states_of(rows), made, us.SearchOptions(algorithm=us.Algorithm.IDA))
    assert [result.cost for result in results] == costs[rows].tolist()


@pytest.mark.parametrize(("name", "chosen"), SETS)
def test_what_claims_to_be_consistent_is(name: str, chosen: str) -> None:
    puzzle = us.puzzle(name)
    made = us.patterns(puzzle, chosen)
    states = puzzle.sample(2000, seed=1)
    falls = []
    for action in range(puzzle.table.actions):
        legal = puzzle.table.legal[puzzle.table.contexts_of(states), action]
        after = us.apply(puzzle.table, states[legal], np.full(int(legal.sum()), action))
        falls.append(made(states[legal]) - made(after) - puzzle.table.cost[action])
    if made.is_consistent:
        assert np.concatenate(falls).max() <= 0


def test_a_pattern_of_all_tiles_is_the_puzzle() -> None:
    puzzle = us.puzzle("tiles-2x3")
    entries = make_entries(Pattern(pieces_of(puzzle), (0, 1, 2, 3, 4), is_additive=False))
    histogram = us.oracle(puzzle).histogram
    assert np.bincount(entries[entries < 255]).tolist() == histogram.tolist()


def all_zero(entries: U8, pattern: Pattern) -> None:
    entries[entries < 255] = 0


@pytest.mark.parametrize("change", [one(1), one(-1), region_down, missing, cut_off, all_zero])
@pytest.mark.parametrize(
    ("name", "followed", "is_additive"),
    [("tiles-3x3", (0, 1, 3, 4), True), ("tiles-3x3", (0, 1, 2), False), ("cube-2x2", (0, 1, 2, 3), False)],
)
def test_planted_faults_are_found(
    name: str, followed: tuple[int, ...], is_additive: bool, change: Callable[[U8, Pattern], None]
) -> None:
    if change is region_down and name == "cube-2x2":
        pytest.skip("it has no cursor")
    pattern = Pattern(pieces_of(us.puzzle(name)), followed, is_additive)
    entries = make_entries(pattern)
    verify_entries(pattern, entries)
    change(entries, pattern)
    with pytest.raises(WrongPatternTable):
        verify_entries(pattern, entries)


def test_threads_make_the_same_table() -> None:
    pattern = Pattern(pieces_of(us.puzzle("tiles-3x3")), (0, 1, 2, 3, 4), is_additive=True)
    assert (make_entries(pattern, threads=1) == make_entries(pattern, threads=3)).all()


def test_moves_of_different_costs() -> None:
    puzzle = us.puzzle("cube-2x2-qtm")
    table = make_table(Pattern(pieces_of(puzzle), tuple(range(7)), is_additive=False))
    assert table.histogram.tolist() == us.oracle(puzzle).histogram.tolist()


def test_batches_and_loops_say_the_same() -> None:
    for name, chosen in (("tiles-3x3", "4-4+reflected"), ("cube-2x2", "4+4+inverse")):
        puzzle = us.puzzle(name)
        made = us.patterns(puzzle, chosen)
        states = puzzle.sample(500, seed=3)
        assert (values_of(made.guide(), states)[0] == made(states)).all()


def test_a_symmetry_saves_a_table() -> None:
    puzzle = us.puzzle("tiles-3x3")
    made = us.patterns(puzzle, "2 3 6 / 4 7 8 / 1 5")
    assert len(made.tables) == 2


def test_a_cached_table_counts_only_if_this_installation_made_it(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    puzzle = us.puzzle("tiles-3x3")
    pattern = pattern_set(puzzle, "4-4").patterns[0]
    made = cache.table_of(pattern, puzzle.name, tmp_path)
    path = cache.path_of(pattern, puzzle.name, tmp_path)
    assert cache.table_of(pattern, puzzle.name, tmp_path).cached == path
    forged = replace(made, entries=np.where(made.entries < 255, made.entries + 1, 255).astype(np.uint8))
    cache.save(path, forged)
    assert (cache.table_of(pattern, puzzle.name, tmp_path).entries == made.entries).all()
    assert "did not make it" in str(recwarn.pop().message)


def test_two_users_of_a_cache_each_make_a_table_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("tiles-3x3")
    pattern = pattern_set(puzzle, "3-5").patterns[0]
    path = cache.path_of(pattern, puzzle.name, tmp_path)
    for user, is_there in (("one", False), ("other", False), ("one", True), ("other", True)):
        monkeypatch.setenv("UNDERSHOOT_STATE_DIR", str(tmp_path / user))
        monkeypatch.setattr(trust, "_of_this_process", set())
        assert (cache.cached_seconds(pattern, puzzle.name, tmp_path) is not None) == is_there
        with warnings.catch_warnings():
            warnings.simplefilter("error" if is_there else "ignore")
            assert (cache.table_of(pattern, puzzle.name, tmp_path).cached == path) == is_there


def test_where_nothing_can_be_cached_it_is_said_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("tiles-3x3")
    (tmp_path / "file").write_text("")
    said: list[str] = []

    def made(pattern: Pattern, *_: object) -> PatternTable:
        said.append("made")
        return make_table(pattern)

    monkeypatch.setattr(cache, "make_table", made)
    monkeypatch.setattr(warnings, "warn", lambda message, **_: said.append(message))
    cache.table_of(pattern_set(puzzle, "3-5").patterns[0], puzzle.name, tmp_path / "file")
    assert said[1:] == ["made"]
    assert "made for this process alone" in said[0]


def test_what_a_kill_left_beside_a_table_is_removed_later(tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-3x3")
    pattern = pattern_set(puzzle, "3-5").patterns[0]
    path = cache.path_of(pattern, puzzle.name, tmp_path)
    path.parent.mkdir()
    old, new = (path.parent / f".{path.name}.{end}" for end in ("abcdefgh", "ijklmnop"))
    for left in (old, new):
        left.write_bytes(b"half a table")
    os.utime(old, (0, 0))
    cache.table_of(pattern, puzzle.name, tmp_path)
    assert [old.exists(), new.exists()] == [False, True]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-5], "cut off"),
        (lambda data: data + b"x", "too long"),
        (lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:], "checksum"),
        (lambda data: b"{" * 2000, "begin"),
        (lambda data: data.replace(b'"is_additive": true', b'"is_additive": null'), "moves count in another way"),
        (lambda data: b"", "begin"),
    ],
)
def test_damaged_tables_are_named_and_made_again(
    tmp_path: Path, damage: Callable[[bytes], bytes], message: str, recwarn: pytest.WarningsRecorder
) -> None:
    puzzle = us.puzzle("tiles-2x3")
    pattern = pattern_set(puzzle, "3-2").patterns[0]
    made = cache.table_of(pattern, puzzle.name, tmp_path)
    path = cache.path_of(pattern, puzzle.name, tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    assert (cache.table_of(pattern, puzzle.name, tmp_path).entries == made.entries).all()
    warning = str(recwarn.pop().message)
    assert message in warning
    assert path.name in warning


def test_a_foreign_table_without_a_cursor_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("cube-2x2")
    pattern = pattern_set(puzzle, "4+4").patterns[0]
    made = make_table(pattern)
    path = cache.path_of(pattern, puzzle.name, tmp_path)
    cache.save(path, made)
    assert cache.table_of(pattern, puzzle.name, tmp_path).cached == path
    wrong = made.entries.copy()
    wrong[17] += 1
    cache.save(path, replace(made, entries=wrong))
    with pytest.warns(UserWarning, match="does not follow"):
        assert (cache.table_of(pattern, puzzle.name, tmp_path).entries == made.entries).all()


def test_too_little_memory_is_said_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undershoot.pattern_tables.room.available_memory", lambda: 1000)
    with pytest.raises(us.UndershootError, match="follow fewer pieces"):
        make_entries(Pattern(pieces_of(us.puzzle("tiles-3x3")), (0, 1, 2), is_additive=True))


def test_folding_takes_the_least_over_the_places_of_the_cursor() -> None:
    pattern = Pattern(pieces_of(us.puzzle("tiles-2x3")), (0, 1), is_additive=True)
    entries = make_entries(pattern)
    assert (fold(pattern, entries) == entries.reshape(-1, int(pattern.ranking.choices[-1])).min(axis=1)).all()


@pytest.mark.parametrize(
    ("name", "chosen", "message"),
    [
        ("tiles-4x4", "6-6", "tiles-4x4 has 15"),
        ("tiles-4x4", "1 2 / 2 3", "2 would count twice"),
        ("tiles-4x4", "1 2/2 3", "2 would count twice"),
        ("tiles-4x4", "1 2 99", "no piece of tiles-4x4"),
        ("tiles-4x4", "1 / ", "between slashes"),
        ("tiles-3x4", "6-5+reflected", "no reflection"),
        ("cube-3x3", "6-6", "for sliding tiles"),
        ("cube-3x3", "13", "1 to 12 edges"),
        ("cube-2x2", "edges", "has no edges"),
        ("topspin-8-4", "9", "a set of 9 pieces"),
        ("lights-out-3x3", "all", "algebra"),
        ("tiles-3x3", "4-4+inverse", "depends on where the cursor is"),
        ("tiles-4x4", "6-6-3+all", "all cannot stand beside sums"),
        ("tiles-4x4", "6-6-3+reflected+reflected", "more than once"),
        ("tiles-4x4", "0-15", "in sets of 1 or more"),
        ("tiles-5x5", "1 2 31", "no piece of tiles-5x5"),
    ],
)
def test_sets_that_cannot_be_are_refused(name: str, chosen: str, message: str) -> None:
    with pytest.raises(us.UndershootError, match=message):
        pattern_set(us.puzzle(name), chosen)


def test_a_board_whose_blank_belongs_inside_has_sets_of_its_own(tmp_path: Path) -> None:
    def slides(by: int, cells: list[int]) -> str:
        return ", ".join(f'{cell} = "({cell} {cell + by})"' for cell in cells)

    inner = [cell for cell in range(1, 17) if cell % 4]
    moves = {"U": slides(4, list(range(1, 13))), "D": slides(-4, list(range(5, 17))), "L": slides(1, inner)}
    moves["R"] = slides(-1, [cell + 1 for cell in inner])
    lines = "\n".join(f"{name} = {{ at = {{ {at} }} }}" for name, at in moves.items())
    path = tmp_path / "centre.toml"
    path.write_text(f'name = "centre"\ngoal = "1 2 3 4 5 _ 6 7 8 9 10 11 12 13 14 15"\ncursor = "_"\n[moves]\n{lines}\n')
    puzzle = us.puzzle(path)
    for name in (default_name(puzzle), "5-5-5", "6-6-3"):
        chosen = pattern_set(puzzle, name)
        followed = [p for pattern in chosen.sums[0] for p in pattern.followed]
        assert sorted(followed) == [p for p in range(16) if p != chosen.pieces.cursor]


def test_patterns_that_a_move_may_cost_twice_are_not_added() -> None:
    puzzle = us.puzzle("cube-2x2")
    pieces = pieces_of(puzzle)
    halves = [make_table(Pattern(pieces, half, is_additive=True)) for half in ((0, 1), (2, 3))]
    from undershoot.heuristics.patterns import PatternHeuristic
    from undershoot.pattern_tables.looks import Look

    with pytest.raises(us.UndershootError, match="may count twice"):
        PatternHeuristic("halves", pieces, (tuple(map(Look, halves)),), tuple(halves))


def test_progress_is_reported() -> None:
    seen = []
    puzzle = us.puzzle("tiles-2x4")
    pattern_heuristic(puzzle, pattern_set(puzzle, "2-2-3"), progress=lambda *what: seen.append(what))
    assert {doing for _, doing, _, _ in seen} == {"making", "verifying"}
    assert all(done <= of for _, _, done, of in seen)


ONE_WAY = 'name = "odd"\ngoal = "a b c d"\n[moves]\nm = "(1 2 3 4)"\nn = "(1 2)"\n'
DEARER_BACK = 'name = "odd"\ngoal = "a b c d"\n[moves]\nm = "(1 2 3 4)"\nb = { cycles = "(4 3 2 1)", cost = 2 }\nn = "(1 2)"\n'
TWO_GOALS = 'name = "odd"\ngoals = ["a b c d", "b a c d"]\n[moves]\nm = "(1 2 3 4)"\nb = "(4 3 2 1)"\nn = "(1 2)"\n'


@pytest.mark.parametrize(
    ("text", "message"), [(ONE_WAY, "takes m back"), (DEARER_BACK, "same cost takes"), (TWO_GOALS, "it has 2 goals")]
)
def test_inverses_are_asked_only_where_they_cost_as_much(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text(text)
    with pytest.raises(us.UndershootError, match=message):
        us.patterns(us.puzzle(tmp_path / "odd.toml"), "all+inverse")


@pytest.mark.parametrize("size", [1, 2, 7, 2 * AT_ONCE, 2 * AT_ONCE + 3])
def test_packed_entries_are_the_same(size: int) -> None:
    entries = np.random.default_rng(size).integers(0, MOST_HALF + 1, size).astype(np.uint8)
    entries[::5] = 255
    assert can_pack(entries)
    assert (unpack(pack(entries), size) == entries).all()
    assert len(pack(entries)) == packed_size(size)
    entries[-1] = MOST_HALF + 1
    assert not can_pack(entries)


def test_packed_tables_say_what_others_say() -> None:
    puzzle = us.puzzle("cube-2x2")
    made = us.patterns(puzzle, "4+4+inverse")
    assert all(table.is_packed for table in made.tables)
    wide = {id(table): replace(table, entries=table.unpacked(), is_packed=False) for table in made.tables}
    sums = tuple(tuple(replace(look, table=wide[id(look.table)]) for look in group) for group in made.sums)
    states = puzzle.sample(5000, seed=4)
    assert (replace(made, sums=sums, tables=tuple(wide.values()))(states) == made(states)).all()
    assert [table.histogram.tolist() for table in wide.values()] == [table.histogram.tolist() for table in made.tables]


def test_pieces_may_be_named_from_any_sticker() -> None:
    cube = us.puzzle("cube-3x3")
    assert pattern_set(cube, "UR FU").patterns[0].followed == pattern_set(cube, "RU UF").patterns[0].followed
    with pytest.raises(us.UndershootError, match="a set of patterns has a name"):
        us.patterns(cube, 5)  # type: ignore[arg-type]


def test_tables_are_made_again_if_asked() -> None:
    puzzle = us.puzzle("tiles-2x3")
    us.patterns(puzzle, "3-2")
    assert all(table.cached is not None for table in us.patterns(puzzle, "3-2").tables)
    assert all(table.cached is None for table in us.patterns(puzzle, "3-2", again=True).tables)
