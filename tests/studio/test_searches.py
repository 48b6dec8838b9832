"""What the studio says of searches and margins is what the library says."""

from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nicegui import Client, ui

import undershoot as us
from undershoot.arrays import F32, States
from undershoot.bundles.reading import read_bundle
from undershoot.errors import UndershootError
from undershoot.guarantees import NO_GUARANTEE
from undershoot.heuristics.calibrated import CalibratedHeuristic, Calibration
from undershoot.heuristics.survey import survey
from undershoot.puzzles.definitions import definition_of
from undershoot.search.glimpses import EVERY, Glimpse
from undershoot.studio.figures import shown
from undershoot.studio.folders import Folders
from undershoot.studio.games import Game, address
from undershoot.studio.jobs import Limits
from undershoot.studio.pages.layout import OF_A_PUZZLE, Links
from undershoot.studio.pages.margins import _methods
from undershoot.studio.pages.watch import Watching
from undershoot.studio.recording import record
from undershoot.studio.studio import Studio
from undershoot.studio.tasks import TASKS
from undershoot.studio.tasks.margins import lowered, margin_grid, searched
from undershoot.studio.tasks.watching import recorded


def sent(name: str | Path) -> dict[str, str]:
    """As a page tells of it."""
    return asdict(definition_of(us.puzzle(name)))


def do(task: str, **arguments: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    return TASKS[task](arguments, events.append, lambda: False), events


@pytest.mark.parametrize(
    ("name", "heuristic"),
    [
        ("tiles-3x3", "linear-conflict"),
        ("lights-out-3x3", "learned"),
        ("pancake-7", "base"),
        ("cube-2x2", "small"),
        ("tiles-2x3", "zero"),
    ],
)
def test_a_recorded_search_makes_the_expansions_of_the_library(name: str, heuristic: str) -> None:
    puzzle = us.puzzle(name)
    chosen = us.heuristic(puzzle, heuristic)
    for state in us.scramble(puzzle.table, np.array([3, 6, 9]), seed=4).states:
        made = record(puzzle, state[None], chosen, 100_000)
        result = us.solve(puzzle, state, chosen)
        assert (made.cost, tuple(made.actions)) == (result.cost, result.actions)
        assert (len(made.expansions), made.generated, made.reopened) == (result.expanded, result.generated, result.reopened)
        assert len({node.state for node in (*made.expansions, *made.waiting)}) == result.stored


def test_a_recorded_search_with_a_network_that_overestimates_does_so_too() -> None:
    puzzle = us.puzzle("tiles-2x3")
    wild = us.wrap(puzzle, lambda states: (states[:, 0] * 7 + states[:, 3] * 3) % 11)
    for state in puzzle.sample(8, seed=1):
        made, result = record(puzzle, state[None], wild, 100_000), us.solve(puzzle, state, wild)
        assert (made.cost, len(made.expansions), made.reopened) == (result.cost, result.expanded, result.reopened)


def test_an_optimum_that_was_missed_is_explained_by_a_state_whose_estimate_is_too_high() -> None:
    puzzle = us.puzzle("pancake-6")
    table, missed = us.oracle(puzzle), 0
    for seed, scale in product(range(6), (1.5, 1.00001)):

        def wild(states: States, seed: int = seed, scale: float = scale) -> F32:
            true = table.distance(states).astype(np.float32)
            return np.where((states[:, 0] + seed) % 3 == 0, true * np.float32(scale), true)

        heuristic = us.wrap(puzzle, wild)
        for state in puzzle.sample(15, seed=seed):
            found = recorded(puzzle, state[None], heuristic, "wild")
            optimum, hidden = int(table.distance(state[None])[0]), found["hidden"]
            exact = [
                h > true for h, true in zip(found["h"], table.distance(np.array(found["states"], dtype=np.uint8)), strict=True)
            ]
            assert found["over"] == exact
            if found["cost"] == optimum:
                assert hidden is None
                continue
            missed += 1
            at = np.array([hidden["state"]], dtype=np.uint8)
            true, h = int(table.distance(at)[0]), float(heuristic(at)[0])
            assert hidden["g"] + true == optimum
            assert hidden["g"] + h >= found["cost"]
            assert found["waiting"]["over"][0]
            f = shown(hidden["g"] + h, optimum)
            assert f"It costs {true} from here, the estimate says {shown(h, true)}: f = {hidden['g']} + " in hidden["text"]
            assert f" = {f}, " in hidden["text"]
    assert missed > 5


@pytest.mark.parametrize("value", [1.00004, 0.99999, 1 + 2**-40, 1.0, 3.25, 2.0])
def test_numbers_are_shown_with_the_digits_that_tell_them_from_the_true_cost(value: float) -> None:
    assert (float(shown(value, 1)) > 1, float(shown(value, 1)) < 1) == (value > 1, value < 1)
    assert len(shown(value, 1)) == 1 or not shown(value, 1).endswith("0")


@pytest.mark.parametrize("algorithm", ["astar", "ida"])
def test_glimpses_are_true_and_grow(algorithm: str) -> None:
    tiles = us.puzzle("tiles-4x4")
    seen: list[Glimpse] = []
    options = us.SearchOptions(max_seconds=6 * EVERY, algorithm=us.Algorithm(algorithm), watch=seen.append)
    state = tiles.parse("0 12 9 13 / 15 11 10 14 / 3 7 2 5 / 4 8 6 1")
    result = us.solve(tiles, state, us.heuristic(tiles, "base"), options)
    assert len(seen) >= 2
    assert [glimpse.expanded for glimpse in seen] == sorted(glimpse.expanded for glimpse in seen)
    assert all(glimpse.lower_bound <= result.lower_bound for glimpse in seen)
    assert seen[-1].lower_bound % 2 == result.lower_bound % 2
    assert seen[0].lower_bound >= tiles.base_heuristic(state)[0]


def test_a_solved_task_says_what_the_library_says_and_a_stopped_one_has_both_bounds() -> None:
    tiles = us.puzzle("tiles-3x3")
    state = tiles.sample(1, seed=3)
    result, _ = do("solve", puzzle=sent("tiles-3x3"), state=state[0].tolist(), heuristic="linear-conflict")
    expected = us.solve(tiles, state, us.heuristic(tiles, "linear-conflict"))
    assert (result["cost"], result["actions"], result["expanded"]) == (expected.cost, list(expected.actions), expected.expanded)
    assert result["statement"] == f"Cost {expected.cost}: optimal, proven."
    hard = [0, 12, 9, 13, 15, 11, 10, 14, 3, 7, 2, 5, 4, 8, 6, 1]
    result, events = do("solve", puzzle=sent("tiles-4x4"), state=hard, heuristic="base", max_seconds=1.5)
    assert result["cost"] > result["lower_bound"]
    assert result["optimality"] == "bounded"
    assert result["factor"] == result["cost"] / result["lower_bound"]
    assert "The search stopped at the limit of time" in result["statement"]
    lower = [event["lower"] for event in events if "lower" in event]
    assert lower == sorted(lower)
    assert any(event.get("upper") == result["cost"] for event in events)


def test_tasks_are_about_the_puzzle_of_the_page_whatever_its_file_says_by_then(tmp_path: Path) -> None:
    runs, puzzles = tmp_path / "runs", tmp_path / "puzzles"
    puzzles.mkdir()
    text = 'name = "mine"\ngoal = "a b c d e"\n[moves]\n'
    text += 'X = { cycles = "(1 2 3 4 5)", cost = 7 }\nY = { cycles = "(1 2)", cost = 3 }\n'
    (puzzles / "mine.toml").write_text(text)
    game = Game(Folders(runs, puzzles).puzzle("mine.toml"), "mine.toml")
    game.read("X Y X X")
    state, game_cost = game.state[0].tolist(), us.solve(game.puzzle, game.state, us.heuristic(game.puzzle, "base")).cost
    (puzzles / "mine.toml").write_text(text.replace("cost = 7", "cost = 1"))
    result, _ = do("solve", puzzle=game.definition, state=state, heuristic="base")
    answer, _ = do("known", puzzle=game.definition, state=state, bundles={})
    assert result["statement"] == f"Cost {game_cost}: optimal, proven."
    assert answer["true_cost"] in (None, game_cost)
    with pytest.raises(UndershootError, match="another puzzle by the name mine"):
        do("solve", puzzle={**game.definition, "fingerprint": "0" * 64}, state=state, heuristic="base")


@pytest.mark.parametrize("name", ["/etc", "../outside", "runs", "base+runs", "patterns:../x"])
def test_heuristics_that_are_not_on_the_list_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    studio = Studio(Folders(tmp_path, tmp_path), Limits())
    tiles = us.puzzle("tiles-2x3")

    def solve_by(reference: str) -> None:
        do("solve", puzzle=sent("tiles-2x3"), state=tiles.table.goals[0].tolist(), heuristic=reference)

    with pytest.raises(UndershootError, match="there is no heuristic"):
        solve_by(studio.heuristic_reference(name))
    with pytest.raises(UndershootError):
        solve_by(name)


def training(folder: Path, **changes: Any) -> dict[str, Any]:
    wanted: dict[str, Any] = {"puzzle": sent("tiles-2x3"), "puzzle_name": "tiles-2x3", "folder": str(folder)}
    wanted |= {"recipe": "mse", "settings": ["steps=40", "hidden=[8]"], "recipe_file": "runs/run/recipe.toml"}
    return wanted | changes


def test_going_on_with_a_run_that_has_ended_leaves_its_certified_bundle_alone(tmp_path: Path) -> None:
    wanted = training(tmp_path / "run")
    assert do("train", **wanted)[0]["is_finished"]
    us.calibrate(tmp_path / "run")
    us.certify(tmp_path / "run")
    assert do("train", **wanted)[0]["is_finished"]
    assert us.load(tmp_path / "run").guarantee.is_proven


@pytest.mark.parametrize(
    ("known", "made_by"),
    [
        ({}, "undershoot train tiles-2x3 --recipe mse --set=steps=40 '--set=hidden=[8]'"),
        ({"recipe": "", "settings": []}, "undershoot train tiles-2x3 --recipe runs/run/recipe.toml"),
        ({"recipe": "paper", "settings": []}, "undershoot train tiles-2x3 --recipe runs/run/recipe.toml"),
    ],
)
def test_a_bundle_names_the_command_that_makes_it_after_a_stop_too(known: dict[str, Any], made_by: str, tmp_path: Path) -> None:
    stopped = TASKS["train"](training(tmp_path / "run"), lambda event: None, lambda: True)
    assert not stopped["is_finished"]
    assert do("train", **training(tmp_path / "run", **known))[0]["is_finished"]
    assert made_by in (tmp_path / "run" / "bundle" / "README.md").read_text().splitlines()


def test_the_curve_of_a_run_is_read_from_its_metrics(tmp_path: Path) -> None:
    result, events = do("train", **training(tmp_path / "run", settings=["steps=400", "hidden=[8]", "curriculum.interval=100"]))
    rows, _ = do("curve", folder=str(tmp_path / "run"))
    told = [event for event in events if "steps" in event]
    assert rows["rows"][-1]["steps"] == result["steps"] == 400
    assert rows["rows"][-1]["of"] == 400
    assert set(rows["rows"][-1]) <= {*told[-1]}
    assert any(row["solve_rate"] is not None for row in rows["rows"]) == any(e["solve_rate"] is not None for e in told)
    assert do("curve", folder=str(tmp_path / "none"))[0] == {"rows": []}


def test_margins_are_those_of_the_library_and_come_before_the_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undershoot.studio.tasks.margins.BLOCK", 100)  # as if the space were large
    found, events = do("margins", bundle="lights-out-3x3-paper")
    first = next(event["found"] for event in events if "found" in event)
    assert [row["violations"] for row in first["grid"]] == [row["violations"] for row in found["grid"]]
    assert sum(event["text"].startswith(f"{len(found['grid'])} margins") for event in events) == 6
    from undershoot.bundles.reading import read_bundle

    network, table = read_bundle("lights-out-3x3-paper", with_calibration=False).raw, us.oracle(us.puzzle("lights-out-3x3"))
    assert 0 in [row["margin"] for row in found["grid"]]
    for row in found["grid"][:: len(found["grid"]) // 6]:
        moved = CalibratedHeuristic(network, Calibration("by hand", NO_GUARANTEE, row["margin"], arithmetic_margin=0.0))
        expected = survey(moved, table)
        assert (row["violations"], sum(row["histogram"])) == (expected.overestimates, 512)
        assert row["mean_h"] == pytest.approx(expected.mean_h)
        above = [count for count, edge in zip(row["histogram"], found["edges"], strict=False) if edge > 0]
        assert sum(above) == row["violations"]
    assert found["grid"][-1]["violations"] == 0
    assert sum(row["expanded"] is not None for row in found["grid"]) >= 5


def test_calibrators_are_compared_a_block_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undershoot.studio.tasks.margins.BLOCK", 100)
    found, events = do("calibrators", bundle="lights-out-3x3-paper")
    rows = {row["method"]: row for row in found["rows"]}
    by_library = {row["method"]: row for row in us.compare_methods("lights-out-3x3-paper", us.Wanted(n=2000)).rows}
    assert list(rows) == list(by_library)
    for method, row in rows.items():
        assert row["violations"] == by_library[method]["violations"]
        if by_library[method]["t"] is not None:
            assert row["margins"] == [by_library[method]["t"]]
        assert row["mean_h"] == pytest.approx(by_library[method]["mean_h"])
    assert rows["none"]["margins"] == []
    assert len(rows["grouped"]["margins"]) > 1
    assert all("rows" in event for event in events)  # those before it stay in sight while the next one is counted


def test_searches_that_were_stopped_are_counted_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undershoot.studio.tasks.margins.MOST_EXPANDED", 20)
    network = read_bundle("lights-out-3x3-paper", with_calibration=False).raw
    starts = network.puzzle.sample(50, seed=1)
    costs = us.oracle(network.puzzle).distance(starts)
    found = searched(lowered(network, 3.0), starts, costs)
    results = us.solve_many(network.puzzle, starts, lowered(network, 3.0), us.SearchOptions(max_expanded=20))
    unsolved = sum(result.cost is None for result in results)
    assert 0 < unsolved < 50
    assert (found["stopped"], found["solved"], found["most_expanded"]) == (unsolved, 50 - unsolved, 20)
    row = {"method": "none", "margins": [], "claim": "", "violations": 0, "mean_h": 1.0, **found}
    assert f"{unsolved} stopped at 20<" in _methods([row])
    assert f">0 of {50 - unsolved}<" in _methods([row])


def test_a_network_whose_answers_would_not_fit_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undershoot.studio.tasks.margins.KEPT", 1024)
    for task in ("margins", "calibrators"):
        with pytest.raises(us.UndershootError, match="has 512 states; what the network says of them takes"):
            do(task, bundle="lights-out-3x3-paper")


def test_margins_on_the_axis_are_round_numbers_from_low_to_high() -> None:
    grid = margin_grid(np.random.default_rng(0).normal(-1, 1, 10_000), 60)
    assert 0 in grid
    assert 30 <= len(grid) <= 130
    assert grid == sorted(grid)
    assert grid[-1] > 2


def test_a_goal_costs_nothing_even_where_no_table_is_at_hand() -> None:
    answer, _ = do("known", puzzle=sent("tiles-4x4"), state=us.puzzle("tiles-4x4").table.goals[0].tolist(), bundles={})
    assert answer["true_cost"] == 0


def test_of_a_state_that_cannot_be_solved_no_true_cost_is_said(tmp_path: Path) -> None:
    file = tmp_path / "oneway.toml"
    file.write_text(
        'name = "oneway"\ngoal = "a b c _"\ncursor = "_"\n[moves]\nS = { at = { 4 = "(1 2)" } }\n'
        'D = { at = { 4 = "(3 4)" } }\nE = { at = { 3 = "(1 2)" } }\n'
    )
    puzzle = us.puzzle(str(file))
    us.oracle(puzzle)
    answer, _ = do("known", puzzle=sent(file), state=puzzle.parse("a b _ c")[0].tolist(), bundles={})
    assert answer["true_cost"] is None
    assert answer["is_dead_end"]
    assert {"base", "table"} <= {row["name"] for row in answer["rows"]}
    assert not any(row["over"] for row in answer["rows"])
    assert [row["h"] for row in answer["rows"] if row["name"] == "table"] == [None]


def test_what_is_known_of_a_state_is_what_each_heuristic_says() -> None:
    tiles = us.puzzle("tiles-3x3")
    state = tiles.sample(1, seed=9)
    answer, _ = do("known", puzzle=sent("tiles-3x3"), state=state[0].tolist(), bundles={})
    assert answer["true_cost"] == us.oracle(tiles).distance(state)[0]
    rows = {row["name"]: row for row in answer["rows"]}
    assert {"learned", "paper", "table", "linear-conflict", "base"} <= set(rows)
    for name, row in rows.items():
        heuristic = us.heuristic(tiles, name)
        assert row["h"] == heuristic(state)[0]
        assert row["sentence"] == heuristic.guarantee.sentence
        assert not row["over"]


def test_links_lead_to_the_puzzle_that_was_searched_whatever_is_chosen_by_now(tmp_path: Path) -> None:
    game, studio = Game(us.puzzle("tiles-2x3"), "tiles-2x3"), Studio(Folders(tmp_path, tmp_path), Limits())
    found, _ = do("watch", puzzle=game.definition, state=game.state[0].tolist(), heuristics={"base": "base"})
    with Client(ui.page("")):
        links = Links("watch")
        watching = Watching(studio, links, "tiles-2x3", "")
        watching.game = game
        watching.puzzle.offer(watching.puzzle.options, "tiles-3x3")
        watching._show(found)
    assert {links.elements[page].props["href"] for page in OF_A_PUZZLE} == {
        address(page, "tiles-2x3", game.text) for page in OF_A_PUZZLE
    }
    assert watching.puzzle.value == "tiles-3x3"
