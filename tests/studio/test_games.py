"""Games: a line of states, the same parser and moves as everywhere, and addresses that hold a state."""

import threading
from itertools import pairwise
from urllib.parse import parse_qs, urlparse

import numpy as np
import pytest
from nicegui import Client, ui

import undershoot as us
from studio.test_jobs import in_a_loop_of_its_own
from subjects import ALL
from undershoot.studio.boards import place_of
from undershoot.studio.drawing import specification
from undershoot.studio.games import MOST_MOVES, Game, address, costs_on_the_way, scramble_moves, usual_depth
from undershoot.studio.pages.instances import Instance
from undershoot.studio.pages.layout import Links


@pytest.mark.parametrize("name", ALL)
def test_a_scramble_leads_where_its_moves_lead_and_every_address_leads_back(name: str) -> None:
    puzzle = us.puzzle(name)
    if not puzzle.table.is_reversible:
        with pytest.raises(us.UndershootError, match="cannot be undone"):
            scramble_moves(puzzle, 3, 0)
        return
    game = Game(puzzle, name)
    game.scramble(min(7, puzzle.table.actions) if puzzle.table.presses_commute else 7, seed=5)
    moves = [puzzle.table.action_names.index(move) for move in game.moves]
    state = puzzle.table.goals[:1]
    for move in moves:
        state = us.apply(puzzle.table, state, np.array([move]))
    assert (game.state == state).all()
    again = Game(puzzle, name)
    again.read(parse_qs(urlparse(address("play", name, game.text)).query)["state"][0])
    assert (again.state == game.state).all()


@pytest.mark.parametrize("name", ALL)
def test_every_puzzle_has_a_drawing_with_a_place_for_every_move(name: str) -> None:
    puzzle = us.puzzle(name)
    spec = specification(puzzle)
    moves = spec["actions"] if spec["kind"] == "lights" else [move["name"] for move in spec["moves"]]
    assert [move for move in moves if move] == list(puzzle.table.action_names)
    keys = [move["key"] for move in spec["moves"] if move["key"]]
    assert len(set(keys)) == len(keys)


def test_no_scramble_undoes_its_own_moves() -> None:
    moves = scramble_moves(us.puzzle("cube-3x3"), 200, seed=1)
    assert all(one[0] != other[0] for one, other in pairwise(moves))
    assert scramble_moves(us.puzzle("cube-3x3"), 200, seed=1) == moves
    assert len(set(scramble_moves(us.puzzle("lights-out-3x3"), 9, seed=1))) == 9


def test_a_move_after_steps_back_forgets_what_came_after() -> None:
    game = Game(us.puzzle("tiles-3x3"), "tiles-3x3")
    for move in ("D", "R", "U"):
        game.act(move)
    game.go(1)
    game.act("D")
    assert (game.moves, game.at) == (["D", "D"], 2)
    with pytest.raises(us.UndershootError, match="is not possible there"):
        game.act("D")
    with pytest.raises(us.UndershootError, match="no move"):
        game.act("<script>")
    for place in (-1, 3):
        with pytest.raises(us.UndershootError, match="no place"):
            game.go(place)
    assert (game.moves, game.at) == (["D", "D"], 2)


def test_a_scramble_is_made_beside_the_pages_and_moves_meanwhile_do_not_mix_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    game, threads = Game(us.puzzle("tiles-3x3"), "tiles-3x3"), list[int]()

    def scrambled(*_: object) -> list[str]:
        threads.append(threading.get_ident())
        game.act("D")  # as a visitor does
        return ["R", "D"]

    monkeypatch.setattr("undershoot.studio.games.scramble_moves", scrambled)
    with Client(ui.page("")):
        instance = Instance(game, "play", Links("play"), 12, lambda: threads.append(threading.get_ident()))
        in_a_loop_of_its_own(instance.scramble())
    assert game.moves == ["R", "D"]
    assert len(set(threads)) == 2  # it is shown where pages are answered


def test_a_solution_comes_next_and_is_marked() -> None:
    game = Game(us.puzzle("cube-2x2"), "cube-2x2")
    game.read("R U")
    game.show(["U'", "R'"])
    assert game.at == 0
    assert [frame["found"] for frame in game.frames()] == [False, True, True]
    assert game.frames()[-1]["solved"]
    assert [frame["undo"] for frame in game.frames()] == ["", "U", "R"]


@pytest.mark.parametrize("name", ["tiles-2x3", "pancake-7"])
def test_costs_on_the_way_of_a_cheapest_solution_are_true(name: str) -> None:
    puzzle = us.puzzle(name)
    start, table = puzzle.sample(1, seed=3)[0], us.oracle(puzzle)
    moves = list(us.solve(puzzle, start, us.heuristic(puzzle, "table")).actions)
    costs = costs_on_the_way(puzzle, start, moves)
    assert len(costs) == len(moves) > 3
    for state, cost in costs.items():
        assert table.distance(np.frombuffer(state, dtype=np.uint8)[None])[0] == cost


def test_as_many_moves_are_usual_as_a_scramble_may_have() -> None:
    for name, usual in (("lights-out-3x3", 9), ("lights-out-5x5", 12), ("tiles-2x2", 12)):
        puzzle = us.puzzle(name)
        assert usual_depth(puzzle, 12) == usual
        scramble_moves(puzzle, usual, seed=1)


@pytest.mark.parametrize("sent", [[1], "<b>", None, {"a": 1}, 1e400, True, 1.5])
def test_places_of_the_wrong_kind_are_none(sent: object) -> None:
    assert place_of(sent) == -1
    assert place_of(3) == 3


def test_histories_and_texts_have_an_end() -> None:
    game = Game(us.puzzle("pancake-8"), "pancake-8")
    for _ in range(MOST_MOVES + 10):
        game.act("F3")
    assert len(game.moves) == game.at == MOST_MOVES
    game.go(MOST_MOVES - 1)
    game.show(["F2", "F3"])
    game.go(MOST_MOVES + 1)
    game.act("F4")
    assert [frame["found"] for frame in game.frames()[-4:]] == [False, True, True, True]
    with pytest.raises(us.UndershootError, match="at most 4,000 are read"):
        game.read("F3 " * 5000)
