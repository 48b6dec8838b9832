"""The first page and the way from there to a search that is watched: what is said, and that the state comes along."""

from urllib.parse import parse_qs, urlparse

import numpy as np

import undershoot as us
from studio.conftest import Server, Visits
from undershoot.studio.pages.layout import FIRST_MOVES

REFUSED = "Object.defineProperty(navigator, 'clipboard', { value: { writeText: () => Promise.reject(new Error('no')) } })"


def test_the_first_page_begins_near_the_goal_says_why_and_takes_its_state_along(server: Server, visits: Visits) -> None:
    tiles = us.puzzle("tiles-3x3")
    with visits.page(server.address) as page:
        page.wait_for_selector("[data-card=known] [data-heuristic]")
        text = page.inner_text("[data-say=state]")
        assert page.inner_text(".us-count") == f"{FIRST_MOVES} / {FIRST_MOVES}"
        cost = us.oracle(tiles).distance(tiles.parse(text))[0]
        assert cost > 0
        assert f"true cost {cost}" in page.inner_text("[data-card=known]")
        values = {float(h.inner_text()) for h in page.locator(".us-h").all()}
        assert len(values) > 2  # heuristics differ there
        assert 0 not in values
        assert "only if none of them is above the true cost" in page.inner_text("[data-say=why]")
        assert page.get_attribute("[data-say=why] a", "href") == "/watch?example=offset"
        page.keyboard.press("Control+z")
        page.wait_for_function("(text) => document.querySelector('[data-say=state]').textContent !== text", arg=text)
        text = page.inner_text("[data-say=state]")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.click("[data-do=copy]")
        page.wait_for_selector(".us-said.is-open")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert parse_qs(urlparse(copied).query)["state"] == [text]
        page.evaluate(REFUSED)
        page.click("[data-do=copy]")
        page.wait_for_function("document.querySelector('.us-said.is-open').textContent.includes('did not let')")
        assert page.inner_text(".us-said.is-open").endswith(copied)
        page.click(".us-nav a >> text=Race")
        page.wait_for_selector("[data-runner]")
        assert page.inner_text("[data-say=state]") == text
        page.click(".us-nav a >> text=Watch")
        page.wait_for_selector("[data-do=search]")
        assert page.input_value("[data-do=text]") == text
        page.click("[data-do=search]")
        page.wait_for_selector(".us-map svg")
        assert page.inner_text("[data-say=state]") == text
        page.fill("[data-do=depth]", "2")  # a scramble is wanted, in place of the state
        page.wait_for_function("document.querySelector('[data-do=text]').value === ''")
        page.click("[data-do=search]")
        page.wait_for_function("(text) => document.querySelector('[data-say=state]').textContent !== text", arg=text)
        near = tiles.parse(page.inner_text("[data-say=state]"))
        assert us.oracle(tiles).distance(near)[0] == 2
        page.click(".us-nav a >> text=Play")
        page.wait_for_selector(".us-board:not(.is-plain)")
        assert (tiles.parse(page.inner_text("[data-say=state]")) == near).all()


def test_where_no_true_cost_is_known_nothing_is_said_of_estimates(server: Server, visits: Visits) -> None:
    with visits.page(f"{server.address}/watch?puzzle=tiles-4x4") as page:
        page.click("[data-do=search]")
        page.wait_for_selector(".us-map svg")
        figures = {
            each.locator("span").inner_text(): each.locator("b").inner_text() for each in page.locator(".us-figure").all()
        }
        assert figures["of them too high"] == figures["open and too high"] == "not known"
        assert page.inner_text("[data-say=missed]") == ""


def test_a_whole_puzzle_is_solved_by_the_keyboard_alone(server: Server, visits: Visits) -> None:
    def tab_to(what: str) -> None:
        for _ in range(60):
            if page.evaluate("(what) => document.activeElement?.matches(what)", what):
                return
            page.keyboard.press("Tab")
        raise AssertionError(what)

    with visits.page(f"{server.address}/play/lights-out-3x3?moves=3&seed=4") as page:
        page.wait_for_selector("[data-do=solve]:enabled")
        tab_to("[data-do=solve]")
        page.keyboard.press("Enter")
        page.wait_for_selector(".us-board.is-solved", timeout=120_000)
        assert page.inner_text("[data-say=solve] .us-said").endswith("optimal, proven.")
        page.keyboard.press("Control+z")
        page.wait_for_selector(".us-board:not(.is-solved)")
        page.keyboard.press("p")
        page.wait_for_selector(".us-board.is-solved")


def test_boards_show_the_state_that_is_played(server: Server, visits: Visits) -> None:
    for name, key, move in (("tiles-3x3", "ArrowRight", "R"), ("pancake-8", "4", "F4")):
        puzzle = us.puzzle(name)
        with visits.page(f"{server.address}/play/{name}") as page:
            page.wait_for_selector(".us-board.is-solved")
            page.keyboard.press(key)
            page.wait_for_url("**state=*")
            page.wait_for_timeout(500)  # until they have moved
            drawn = page.eval_on_selector_all(
                ".us-tile, .us-pancake",
                "all => all.map(one => [one.getBoundingClientRect().top, one.getBoundingClientRect().left, one.textContent])",
            )
            order = [label for _, _, label in sorted(drawn, key=lambda one: (round(one[0]), round(one[1])))]
            expected = us.apply(puzzle.table, puzzle.table.goals[:1], np.array([puzzle.table.action_names.index(move)]))
            assert order == [each for each in puzzle.format(expected).replace("/", " ").split() if each != "0"]


def test_all_moves_and_cells_of_a_large_puzzle_file_are_in_reach(server: Server, visits: Visits) -> None:
    cells = " ".join(f"c{number}" for number in range(1, 61))
    moves = "\n".join(f'M{number} = "({number} {number + 1} {number + 2})"' for number in range(1, 59))
    (server.puzzles / "many.toml").write_text(f'name = "many"\ngoal = "{cells}"\n[moves]\n{moves}\n')
    with visits.page(f"{server.address}/play/many.toml", viewport={"width": 400, "height": 800}) as page:
        page.wait_for_selector(".us-board.is-solved")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        card, board = (page.locator(each).bounding_box() for each in (".us-card >> nth=0", ".us-cells"))
        assert board["x"] >= card["x"]
        assert all(
            card["x"] < (cell := each.bounding_box())["x"] and cell["x"] + cell["width"] < card["x"] + card["width"]
            for each in page.locator(".us-cell").all()[::7]
        )
        assert page.locator("[data-move]").count() == 58
        assert page.inner_text("[data-move=M2] kbd") == "2"
        page.click("[data-move=M58]")
        page.wait_for_selector(".us-moves button:nth-child(2).is-here")
        page.fill("[data-do=find]", "M57")
        page.keyboard.press("Enter")
        page.wait_for_selector(".us-moves button:nth-child(3).is-here")
        assert page.inner_text(".us-moves button.is-here") == "M57"
