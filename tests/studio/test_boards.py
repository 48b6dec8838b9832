"""Boards and their pages as hands use them: keys faster than answers, long histories, and lists that are chosen from."""

import psutil

import undershoot as us
from studio.conftest import Server, Visits
from undershoot.studio.games import MOST_MOVES


def test_keys_that_are_faster_than_answers_are_all_played(server: Server, visits: Visits) -> None:
    tiles = us.puzzle("tiles-3x3")
    with visits.page(f"{server.address}/play/tiles-3x3") as page:
        page.wait_for_selector(".us-board.is-solved")
        page.evaluate(
            """for (const way of ["Down", "Right", "Up", "Up", "Up", "Left", "Down"])
                 document.body.dispatchEvent(new KeyboardEvent("keydown", { key: `Arrow${way}`, bubbles: true }))"""
        )
        page.wait_for_selector(".us-moves button:nth-child(6).is-here")
        moves = page.eval_on_selector_all(".us-moves button", "all => all.slice(1).map(one => one.textContent)")
        assert moves == ["D", "R", "U", "L", "D"]  # the tile beyond the edge cannot go up
        expected = tiles.format(tiles.parse(" ".join(moves)))
        page.wait_for_function("(text) => new URL(location).searchParams.get('state') === text", arg=expected)


def test_steps_back_that_are_faster_than_answers_are_of_the_move_before_them(server: Server, visits: Visits) -> None:
    tiles = us.puzzle("tiles-3x3")
    with visits.page(f"{server.address}/play/tiles-3x3") as page:
        page.wait_for_selector(".us-board.is-solved")
        page.evaluate(
            """for (const key of ["ArrowDown", "ArrowRight", "z", "ArrowDown", "z", "Home", "End"])
                 document.body.dispatchEvent(new KeyboardEvent("keydown", { key, ctrlKey: key === "z", bubbles: true }))"""
        )
        expected = tiles.format(tiles.parse("D D"))
        page.wait_for_function("(text) => new URL(location).searchParams.get('state') === text", arg=expected)
        page.wait_for_selector(".us-moves button:nth-child(3).is-here")
        assert page.inner_text(".us-moves").split() == ["start", "D", "D"]
        assert page.inner_text("[data-say=state]") == expected
        shown = page.evaluate("Object.values(undershootBoards).map((board) => board.frames[board.at].state)[0]")
        assert shown == tiles.parse(expected)[0].tolist()


def test_the_tab_key_passes_a_list_of_moves_in_one_step_and_arrow_keys_go_along_it(server: Server, visits: Visits) -> None:
    focused = "(what) => document.activeElement.matches(what)"
    with visits.page(f"{server.address}/play/tiles-3x3?moves=30&seed=1") as page:
        page.focus(".us-scrubber input")
        page.keyboard.press("Tab")
        assert page.evaluate(focused, ".us-moves button:nth-child(31).is-here")
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector(".us-moves button:nth-child(30).is-here:focus")
        assert page.inner_text(".us-count") == "29 / 30"  # the arrow has moved no tile
        page.keyboard.press("Tab")
        assert not page.evaluate(focused, ".us-moves button")


def test_what_is_said_of_the_state_goes_along_while_a_history_plays(server: Server, visits: Visits) -> None:
    with visits.page(f"{server.address}/play/tiles-3x3?moves=30&seed=1") as page:
        page.wait_for_selector(".us-moves button:nth-child(31).is-here")
        page.keyboard.press("Home")
        page.wait_for_function("document.querySelector('[data-say=state]').textContent.endsWith('0')")
        page.keyboard.press("p")
        page.wait_for_function(
            """!document.querySelector('[data-say=state]').textContent.endsWith('0')
               && document.querySelector("[data-do=play]").textContent === "stop" """
        )


def test_a_history_that_is_full_is_undone_as_it_was_played(server: Server, visits: Visits) -> None:
    with visits.page(f"{server.address}/play/lights-out-3x3") as page:
        page.wait_for_selector(".us-board.is-solved")
        assert page.input_value("[data-do=depth]") == "9"
        page.goto(f"{server.address}/play/tiles-3x3")
        page.wait_for_selector(".us-board.is-solved")
        page.fill("[data-do=depth]", str(MOST_MOVES))
        page.click("[data-do=scramble]")
        count = "document.querySelector('.us-count').textContent"
        page.wait_for_function(f"{count} === '{MOST_MOVES} / {MOST_MOVES}'")
        for _ in range(3):
            before = page.evaluate("location.href")
            page.evaluate("for (const board of Object.values(undershootBoards)) board.act(board.frames[board.at].legal[0])")
            page.wait_for_function("(before) => location.href !== before", arg=before)
            assert page.evaluate(count) == f"{MOST_MOVES} / {MOST_MOVES}"
        page.keyboard.press("Control+z")
        page.wait_for_function("(before) => location.href === before", arg=before)
        assert page.evaluate(count) == f"{MOST_MOVES - 1} / {MOST_MOVES}"


def test_who_chooses_puzzles_by_the_keyboard_goes_on_choosing(server: Server, visits: Visits) -> None:
    focused = "document.activeElement?.matches('.us-pick')"
    with visits.page(f"{server.address}/play/cube-2x2") as page:
        page.wait_for_selector(".us-board.is-solved")
        while not page.evaluate(focused):
            page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")
        page.wait_for_url("**/play/cube-2x2-qtm?*")
        page.wait_for_function(focused)
        page.reload()
        page.wait_for_selector(".us-board.is-cube:not(.is-solved)")
        assert not page.evaluate(focused)  # who comes otherwise plays by the keys


def test_a_table_is_made_once_is_seen_by_all_and_can_be_stopped(server: Server, visits: Visits) -> None:
    address = f"{server.address}/play/tiles-3x4"
    with visits.page(address) as page, visits.page(address) as other:
        page.click("[data-do=make-patterns]")
        page.wait_for_selector("[data-do=make-patterns]:disabled")
        other.reload()
        other.wait_for_selector("[data-do=make-patterns]:disabled")
        other.click("[data-do=stop-making]")
        page.wait_for_selector("[data-say=make] .us-said")
        assert page.inner_text("[data-say=make]") == "Stopped; nothing of it is kept."
        page.wait_for_selector("[data-do=make-patterns]:enabled")
        assert not page.is_visible("[data-do=stop-making]")


def test_an_example_is_stopped(server: Server, visits: Visits) -> None:
    with visits.page(f"{server.address}/watch") as page:
        page.wait_for_selector("[data-do=stop]:disabled")
        page.click("[data-example=offset]")
        page.click("[data-do=stop]:enabled")
        page.wait_for_selector(".us-said.is-open")
        assert page.inner_text(".us-said.is-open") == "Stopped."
        page.wait_for_selector("[data-do=stop]:disabled")


def test_where_there_is_no_page_the_studio_says_so(server: Server, visits: Visits) -> None:
    assert server.get("/nowhere") == (404, "there is nothing here")
    misread = "moves is 'abc' in the address; allowed are whole numbers, as in /play/tiles-3x3?moves=14&seed=2"
    assert server.get("/play/tiles-3x3?moves=abc") == (422, misread)
    with visits.page(f"{server.address}/nowhere/<b>x") as page:
        assert page.inner_text(".us-said") == "there is no page '/nowhere/<b>x' here; the links above lead to all there are"
        assert page.locator(".us-nav a").count() == 7
        page.goto(f"{server.address}/play/tiles-3x3?moves=abc")
        assert page.inner_text(".us-said") == misread


def test_letters_of_charts_keep_their_size_on_a_narrow_screen(server: Server, visits: Visits) -> None:
    for place, do, svg in (
        ("margins?bundle=lights-out-3x3-paper", "draw-margins", ".us-margins svg"),
        ("watch?puzzle=lights-out-3x3&state=111000000", "search", ".us-map svg"),
    ):
        with visits.page(f"{server.address}/{place}", viewport={"width": 390, "height": 900}) as page:
            page.click(f"[data-do={do}]")
            page.wait_for_selector(svg, timeout=120_000)
            scale = "(svg) => { const e = document.querySelector(svg); return e.clientWidth / e.viewBox.baseVal.width; }"
            page.wait_for_function(f"(svg) => ({scale})(svg) > .95", arg=svg)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_board_lives_on_whatever_a_browser_sends(server: Server, visits: Visits) -> None:
    with visits.page(f"{server.address}/play/lights-out-3x3") as page:
        page.wait_for_selector(".us-board.is-solved")
        page.evaluate(
            """const board = Object.values(window.undershootBoards)[0];
               for (const sent of [[1], "<b>", null, {}, 1e400]) { board.$emit("at", sent); board.$emit("act", sent); }"""
        )
        page.wait_for_selector(".us-said.is-wrong")
        page.click(".us-light[data-cell='0']")
        page.wait_for_url("**state=110*")
    assert psutil.Process(server.process.pid).is_running()
    assert "Traceback" not in server.log.read_text()


def test_what_is_known_of_the_state_before_is_not_shown_beside_another(server: Server, visits: Visits) -> None:
    def cost(text: str) -> int:
        lights_out = us.puzzle("lights-out-3x3")
        return int(us.oracle(lights_out).distance(lights_out.parse(text))[0])

    children = psutil.Process(server.process.pid).children()
    answering = next(child for child in children if child.cmdline()[-2:] == ["undershoot.studio.worker", "0"])
    with visits.page(f"{server.address}/play/lights-out-3x3?state=101010101") as page:
        page.wait_for_selector("[data-card=known] [data-heuristic]")
        assert page.inner_text("[data-card=known] .us-badge.is-true") == f"= true cost {cost('101010101')}"
        answering.suspend()
        try:
            page.click(".us-light[data-cell='4']")
            page.wait_for_url("**state=111*")
            page.wait_for_selector("[data-heuristic=base]", state="hidden")
            assert "= true cost" not in page.inner_text("[data-card=known]")
        finally:
            answering.resume()
        page.wait_for_selector("[data-heuristic=base]", state="visible")
        assert page.inner_text("[data-card=known] .us-badge.is-true") == f"= true cost {cost('111 101 111')}"


def test_letters_on_dark_cells_are_light_and_the_title_names_the_puzzle(server: Server, visits: Visits) -> None:
    with visits.page(f"{server.address}/play/pyraminx.toml") as page:
        page.wait_for_selector(".us-cell")
        assert page.title() == "pyraminx.toml · undershoot studio"
        pairs = page.eval_on_selector_all(".us-cell", "all => all.map(one => [one.style.background, one.style.color])")
        assert ["rgb(0, 0, 255)", "rgb(255, 255, 255)"] in pairs
        assert ["rgb(255, 255, 0)", "rgb(21, 26, 28)"] in pairs


def test_moves_that_a_small_puzzle_does_not_have_are_not_asked_for(server: Server, visits: Visits) -> None:
    for place, least in (("play/lights-out-2x2", "4"), ("race/lights-out-2x2", "4"), ("watch?puzzle=lights-out-2x2", "4")):
        with visits.page(f"{server.address}/{place}") as page:
            page.wait_for_function("(n) => document.querySelector('input[type=number]')?.value === n", arg=least)
