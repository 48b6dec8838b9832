"""The studio as people see it, in a browser."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import undershoot as us
from studio.conftest import ROOT, Server, Visits
from undershoot.bundles.bundle import Bundle
from undershoot.guarantees import NO_GUARANTEE
from undershoot.heuristics.calibrated import CalibratedHeuristic, Calibration
from undershoot.heuristics.neural import Network
from undershoot.heuristics.survey import survey

PICTURES = ROOT / "docs" / "studio"
"""Taken anew if UNDERSHOOT_PICTURES is set."""


@pytest.fixture
def picture(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Takes a picture of a page; into the documentation if that is wanted."""
    folder = PICTURES if os.environ.get("UNDERSHOOT_PICTURES") else tmp_path
    folder.mkdir(exist_ok=True)

    def take(page: Any, name: str) -> Path:
        page.wait_for_timeout(400)
        path = folder / f"{name}.png"
        page.screenshot(path=path)
        assert path.stat().st_size > 5000
        with Image.open(path) as taken:  # 256 colours do, in a third of the bytes
            taken.convert("RGB").quantize(256, kmeans=3, dither=Image.Dither.NONE).save(path, optimize=True)
        return path

    return take


def stickers(page: Any) -> list[int]:
    """The values that a cube shows, cell by cell."""
    found = page.eval_on_selector_all(
        ".us-sticker", "all => all.map(one => [Number(one.dataset.cell), Number(one.dataset.value)])"
    )
    return [value for _, value in sorted(found)]


def lights(page: Any) -> str:
    return "".join(
        page.eval_on_selector_all(".us-light", "all => all.map(one => one.classList.contains('is-lit') ? '1' : '0')")
    )


def known(page: Any) -> None:
    page.wait_for_selector("[data-card=known] [data-heuristic]")


def test_a_cube_is_scrambled_solved_and_animated_to_the_solved_state(server: Server, visits: Visits, picture: Any) -> None:
    cube = us.puzzle("cube-2x2")
    with visits.page(f"{server.address}/play/cube-2x2", viewport={"width": 1280, "height": 1130}) as page:
        known(page)
        goal = cube.table.goals[0].tolist()
        assert stickers(page) == goal
        page.fill("[data-do=depth]", "5")
        page.fill("[data-do=seed]", "3")
        page.click("[data-do=scramble]")
        page.wait_for_selector(".us-moves button:nth-child(6).is-here")
        moves = page.eval_on_selector_all(".us-moves button", "all => all.slice(1).map(one => one.textContent)")
        assert stickers(page) == cube.parse(" ".join(moves))[0].tolist()
        page.click("[data-do=solve]:enabled")
        page.wait_for_selector("[data-say=solve] .is-proven", timeout=120_000)
        said = page.inner_text("[data-say=solve] .us-said")
        cost = us.solve(cube, cube.parse(" ".join(moves)), us.load("cube-2x2")).cost
        assert said == f"Cost {cost}: optimal, proven."
        page.wait_for_selector(".us-board.is-solved")
        assert stickers(page) == goal
        assert page.input_value(".us-scrubber input") == str(5 + (cost or 0))
        page.click(".us-moves button:nth-child(6)")  # back to where the search began
        page.wait_for_function("document.querySelector('.us-board.is-solved') === null")
        assert stickers(page) == cube.parse(" ".join(moves))[0].tolist()
        picture(page, "play")


def test_a_clicked_light_switches_its_neighbours_and_can_be_undone(server: Server, visits: Visits) -> None:
    with visits.page(f"{server.address}/play/lights-out-3x3") as page:
        page.click(".us-light[data-cell='0']")
        page.wait_for_selector(".us-light.is-lit")
        assert lights(page) == "110100000"
        page.wait_for_url("**state=110*")
        page.keyboard.press("Control+z")
        page.wait_for_function("document.querySelector('.us-light.is-lit') === null")
        page.keyboard.press("Control+y")
        page.wait_for_selector(".us-light.is-lit")
        assert lights(page) == "110100000"
        page.focus(".us-light[data-cell='0']")
        for key in ("ArrowRight", "ArrowDown", "Space"):  # the one in the middle, by the keyboard
            page.keyboard.press(key)
        page.wait_for_url("**state=100*")
        assert lights(page) == "100011010"


def test_a_wrong_state_gets_the_sentence_of_the_library(server: Server, visits: Visits) -> None:
    text = "1 2 3 / 4 5 6 / 8 7 0"
    with pytest.raises(us.UndershootError) as refused:
        us.puzzle("tiles-3x3").parse(text)
    with visits.page(f"{server.address}/play/tiles-3x3") as page:
        page.fill("[data-do=text]", text)
        page.click("[data-do=set]")
        page.wait_for_selector(".us-said.is-wrong")
        assert page.inner_text(".us-said.is-wrong") == str(refused.value)
        page.fill("[data-do=text]", "1 2 3 / 4 5 6 / 0 7 8")
        page.keyboard.press("Enter")
        page.wait_for_url("**state=*0%207%208")
        page.keyboard.press("ArrowLeft")
        page.wait_for_url("**state=*7%200%208")


def test_a_reload_and_a_shared_address_bring_the_same_state_and_visitors_are_apart(server: Server, visits: Visits) -> None:
    with (
        visits.page(f"{server.address}/play/lights-out-3x3") as one,
        visits.page(f"{server.address}/play/lights-out-3x3") as other,
    ):
        one.click(".us-light[data-cell='4']")
        one.wait_for_url("**state=*")
        assert lights(one) == "010111010"
        assert lights(other) == "000000000"
        other.click(".us-light[data-cell='8']")
        other.wait_for_selector(".us-light.is-lit")
        assert (lights(one), lights(other)) == ("010111010", "000001011")
        shared = one.url
        one.reload()
        one.wait_for_selector(".us-light.is-lit")
        assert lights(one) == "010111010"
        with visits.page(shared) as third:
            third.wait_for_selector(".us-light.is-lit")
            assert lights(third) == "010111010"


def test_a_search_is_stopped_and_boards_answer_while_it_runs(server: Server, visits: Visits) -> None:
    """The longer measurement of the same is benchmarks/studio.py."""
    text = "0 12 9 13 / 15 11 10 14 / 3 7 2 5 / 4 8 6 1"  # far from the goal
    tiles = us.puzzle("tiles-4x4")
    least = int(tiles.base_heuristic(tiles.parse(text))[0])
    with visits.page(f"{server.address}/play/tiles-4x4?state={text}") as page:
        known(page)
        page.select_option("[data-card=solve] label:first-child select", "base")
        page.fill("[data-do=seconds]", "20")
        page.click("[data-do=solve]:enabled")
        page.wait_for_selector("[data-bound=lower]", timeout=120_000)
        page.wait_for_selector("[data-bound=upper]", timeout=120_000)
        assert not page.is_visible("[data-say=about]")
        times = page.evaluate(CLICK_TILES, 12)
        assert sorted(times)[6] < 250, times  # two cores are shared with other tests here
        page.click("[data-do=stop]:enabled")
        page.wait_for_selector("[data-say=solve] .us-said")
        said = page.inner_text("[data-say=solve] .us-said")
        stopped = r"Stopped\. No solution costs less than (\d+), proven\. A solution of cost (\d+) was found on the way\."
        found = re.fullmatch(stopped, said)
        assert found
        assert least <= int(found[1]) < int(found[2])
        assert page.inner_text("[data-say=about]") == f"Of the state where this search began, {text}:"
        assert page.is_visible("[data-bound=lower]")  # though the board shows another state
        assert page.is_enabled("[data-do=solve]")
        assert len(page.inner_text("[data-say=moves] code").split()) == int(found[2])
        page.click("[data-do=replay]")
        page.wait_for_function(
            "(count) => document.querySelector('.us-count').textContent.endsWith(count)", arg=f"/ {found[2]}"
        )
        page.keyboard.press("Home")  # it would play for a while
        page.wait_for_function("(text) => new URL(location).searchParams.get('state') === text", arg=text)
        page.keyboard.press("End")
        page.wait_for_selector(".us-board.is-solved")


CLICK_TILES = """async (count) => {
  const times = [];
  for (let i = 0; i < count; i++) {
    const tile = document.querySelector(".us-tile.can-move"), before = tile.style.transform, began = performance.now();
    tile.click();
    while (tile.style.transform === before && performance.now() - began < 5000) await new Promise((go) => setTimeout(go, 2));
    times.push(performance.now() - began);
    await new Promise((done) => setTimeout(done, 60));
  }
  return times;
}"""


def test_the_map_is_stepped_through_and_shows_the_state_at_hand(server: Server, visits: Visits, picture: Any) -> None:
    lights_out = us.puzzle("lights-out-3x3")
    with visits.page(f"{server.address}/watch?puzzle=lights-out-3x3&state=101010101") as page:
        page.click("[data-do=search]")
        page.wait_for_selector(".us-map svg")
        expanded = us.solve(lights_out, lights_out.parse("101010101"), us.heuristic(lights_out, "base")).expanded
        assert page.inner_text(".us-map .us-count") == f"1 / {expanded}"
        assert lights(page) == "101010101"
        page.click(".us-map [data-do=step]")
        page.click(".us-map [data-do=step]")
        assert page.inner_text(".us-map .us-count") == f"3 / {expanded}"
        assert lights(page) != "101010101"
        page.click(".us-map [data-do=back]")
        page.click(".us-map [data-do=back]")
        assert lights(page) == "101010101"
        page.click(".us-map [data-do=last]")
        assert lights(page) == "000000000"


@pytest.mark.parametrize("which", ["squared", "offset"])
def test_an_example_misses_the_optimum_and_the_certified_network_does_not(
    which: str, server: Server, visits: Visits, picture: Any
) -> None:
    begun = f"?example={which}" if which == "offset" else ""  # as the first page leads there
    with visits.page(f"{server.address}/watch{begun}", viewport={"width": 1280, "height": 1120}) as page:
        if not begun:
            page.click(f"[data-example={which}]")
        page.wait_for_selector(".us-map svg", timeout=240_000)
        missed = re.fullmatch(r"The optimum is missed: (\d+) instead of (\d+)\.", page.inner_text(".us-said.is-wrong"))
        assert missed
        assert int(missed[1]) > int(missed[2])
        sentence = page.inner_text("[data-say=missed]")
        told = re.fullmatch(
            r"This state lies on a cheapest way\. It costs (\d+) from here, the estimate says ([\d.]+): "
            r"f = (\d+) \+ \2 = ([\d.]+), (so A\* took the goal at \d+ before|no less than the goal at \d+, ).*\.",
            sentence,
        )
        assert told, sentence
        assert int(told[3]) + int(told[1]) == int(missed[2])
        assert float(told[4]) >= int(missed[1])
        page.click("[data-do=look]")
        page.wait_for_selector("[data-say=step] >> text=This state lies on a cheapest way.")
        assert page.inner_text("[data-say=step]") == sentence
        pancakes = us.puzzle("pancake-7")
        tops = page.eval_on_selector_all(".us-pancake", "all => all.map(one => [one.style.top, one.textContent])")
        stack = [label for _, label in sorted(tops)]
        assert us.oracle(pancakes).distance(pancakes.parse(" ".join(stack)))[0] == int(told[1])
        picture(page, f"watch-{which}")
        page.click(".us-map [data-do=back]")
        assert page.inner_text("[data-say=step]").startswith("Expansion ")
        page.press("[data-do=missed]", "Enter")  # the mark on the map
        assert page.inner_text("[data-say=step]") == sentence
        page.click("[data-do=recording-1]")
        page.wait_for_selector(".us-said.is-proven")
        assert page.inner_text(".us-said.is-proven") == f"The optimum is found: {missed[2]}."
        assert page.inner_text("[data-say=missed]").startswith("Of the state that the other search missed, this estimate says ")
        assert page.locator("[data-do=missed]").count() == 0
        assert page.input_value("select >> nth=0") == "pancake-7"


def test_a_dragged_margin_shows_the_violations_that_the_library_counts(server: Server, visits: Visits, picture: Any) -> None:
    with visits.page(f"{server.address}/margins?bundle=lights-out-3x3-paper", viewport={"width": 1280, "height": 1000}) as page:
        page.click("[data-do=draw-margins]")
        page.wait_for_selector(".us-margins svg", timeout=120_000)
        from undershoot.bundles.reading import read_bundle

        network, table = read_bundle("lights-out-3x3-paper", with_calibration=False).raw, us.oracle(us.puzzle("lights-out-3x3"))
        seen = set()
        page.hover("[data-do=margin]")  # when it stands still
        page.mouse.down()
        box, grip = (page.locator(each).bounding_box() for each in (".us-margins svg", "[data-do=margin]"))
        for share in (0.02, 0.15, 0.3, 0.6, 0.9):
            page.mouse.move(box["x"] + share * box["width"], grip["y"], steps=3)
            margin = float(page.inner_text("[data-figure=margin]"))
            moved = CalibratedHeuristic(network, Calibration("by hand", NO_GUARANTEE, margin, arithmetic_margin=0.0))
            found = survey(moved, table)
            assert page.inner_text("[data-figure=violations]") == f"{found.overestimates:,}"
            assert page.inner_text("[data-figure=mean]") == f"{found.mean_h:.3f}"
            seen.add(found.overestimates)
        page.mouse.up()
        assert len(seen) > 2
        assert 0 in seen
        page.wait_for_function("document.querySelector('[data-figure=suboptimal]').textContent !== '…'", timeout=120_000)
        page.focus("[data-do=margin]")
        measured = list[str]()
        while len(measured) < 2:  # of two margins beside each other one has no searches of its own
            page.keyboard.press("ArrowLeft")
            named = [page.inner_text(f"[data-figure={name}] + span") for name in ("expanded", "suboptimal")]
            of, _, where = named[1].partition(" at ")
            assert of == "of 100 solutions not optimal"
            assert named[0] == f"mean expansions of A*{named[1].removeprefix(of)}"
            measured.append(where)
        assert any(measured)
        page.click("[data-do=check]:enabled")
        page.wait_for_selector("[data-say=check] .is-proven", timeout=120_000)
        assert "512 of 512 states checked, 0 above their true cost" in page.inner_text("[data-say=check]")
        page.click("[data-do=fit]:enabled")
        page.wait_for_selector("[data-method=exceptions]", timeout=120_000)
        assert page.locator("[data-method]").count() == 8
        assert page.locator(".us-margins .marker").count() == 7  # one for each calibrator
        assert page.inner_text("[data-method=grouped] td:nth-child(2)") == "several"
        assert page.locator(".us-margins .tick").count() > 7  # of these each has a tick
        assert page.locator(".us-margins [role=slider], .us-margins input").count() == 1
        red, bars = page.locator(".over-area"), page.locator(".us-margins .bin.is-over")
        assert float(red.get_attribute("x")) == float(bars.first.get_attribute("x"))


@pytest.mark.skipif("UNDERSHOOT_PICTURES" not in os.environ, reason="UNDERSHOOT_PICTURES takes the documentation's picture")
def test_the_picture_of_margins_is_of_the_8_puzzle(server: Server, visits: Visits, picture: Any) -> None:
    with visits.page(f"{server.address}/margins?bundle=tiles-3x3-paper", viewport={"width": 1280, "height": 1000}) as page:
        page.click("[data-do=draw-margins]")
        page.wait_for_selector(".us-margins svg", timeout=180_000)
        page.click("[data-do=fit]:enabled")
        page.wait_for_selector("[data-do=fit]:enabled", timeout=180_000)
        page.wait_for_selector("[data-method=exceptions]", timeout=180_000)
        picture(page, "margins")


def test_a_training_is_stopped_goes_on_and_its_bundle_is_in_all_lists(server: Server, visits: Visits, picture: Any) -> None:
    with visits.page(f"{server.address}/train") as page:
        page.fill("[data-do=run-name]", "mine")
        page.fill("[data-do=steps]", "2000")
        page.fill("[data-do=hidden]", "16")
        page.click("[data-do=train]")
        page.wait_for_function("document.querySelector('.us-figures')?.innerText.includes('loss')", timeout=120_000)
        page.click("[data-do=stop]:enabled")
        page.wait_for_selector("[data-say=train] .is-open")
        assert "with a checkpoint" in page.inner_text("[data-say=train]")
        page.click("[data-do=go-on]:enabled")
        page.wait_for_function("document.querySelector('[data-say=train]').innerText.startsWith('Finished')", timeout=120_000)
        picture(page, "train")
        assert page.locator("canvas").bounding_box()["width"] > 300
        assert (server.runs / "mine" / "bundle" / "config.json").exists()
        page.goto(f"{server.address}/margins")
        assert "runs/mine" in page.inner_text("select")
        page.goto(f"{server.address}/play/lights-out-3x3?state=111000000")
        page.wait_for_selector("[data-heuristic='runs/mine']")
        assert "Nothing is known about overestimates" in page.inner_text("[data-heuristic='runs/mine']")


def test_an_overestimate_stands_out_at_once(server: Server, visits: Visits) -> None:
    lights_out = us.puzzle("lights-out-3x3")
    weights = [np.zeros(shape, dtype=np.float32) for shape in ((lights_out.encoding.width, 2), (2, 1))]
    biases = [np.zeros(2, dtype=np.float32), np.full(1, 6.5, dtype=np.float32)]  # it says 6.5 of every state
    Bundle(lights_out, Network(tuple(weights), tuple(biases))).save(server.runs / "wild" / "bundle")
    biases[1] = np.full(1, 1.00004, dtype=np.float32)
    Bundle(lights_out, Network(tuple(weights), tuple(biases))).save(server.runs / "barely" / "bundle")
    with visits.page(f"{server.address}/play/lights-out-3x3?state=110100000") as page:
        page.wait_for_selector("[data-heuristic='runs/wild'].is-over")
        for name, value in (("runs/wild", "6.5"), ("runs/barely", "1.00004")):
            assert "overestimates here" in page.inner_text(f"[data-heuristic='{name}']")
            assert page.inner_text(f"[data-heuristic='{name}'] .us-h") == value
        assert "true cost 1" in page.inner_text("[data-card=known]")
        for row in page.locator("[data-heuristic]").all():  # what other tests have trained may be too high, too
            is_over = "is-over" in (row.get_attribute("class") or "").split()
            assert is_over == (float(row.locator(".us-h").inner_text()) > 1), row.inner_text()
        assert "is-over" not in (page.get_attribute("[data-heuristic=learned]", "class") or "")


def test_tables_that_are_not_there_are_made_when_they_are_asked_for(server: Server, visits: Visits) -> None:
    with visits.page(f"{server.address}/play/discs.toml") as page:
        known(page)
        assert page.locator("[data-heuristic=patterns]").count() == 0
        page.click("[data-do=make-patterns]")
        page.wait_for_selector("[data-heuristic=patterns]", timeout=120_000)
        assert page.locator("[data-do=make-patterns]").count() == 0


def test_a_limit_of_expansions_ends_a_search_with_a_bound(server: Server, visits: Visits) -> None:
    with visits.page(f"{server.address}/play/lights-out-3x3?state=101010101") as page:
        known(page)
        page.select_option("[data-card=solve] label:first-child select", "base")
        page.fill("[data-do=expansions]", "3")
        page.click("[data-do=solve]:enabled")
        page.wait_for_selector("[data-say=solve] .us-said", timeout=120_000)
        assert re.fullmatch(
            r"Stopped at the limit of expansions; allow more expansions\. No solution costs less than \d+\.",
            page.inner_text("[data-say=solve] .us-said"),
        )


def test_a_race_ends_with_the_same_cost_for_all_runners(server: Server, visits: Visits, picture: Any) -> None:
    with visits.page(f"{server.address}/race/lights-out-3x3?state=101010101") as page:
        page.wait_for_selector("[data-runner=gf2]")
        for runner in page.locator("[data-runner]").all():
            runner.set_checked(runner.get_attribute("data-runner") in ("learned", "base"))
        page.click("[data-do=start]:enabled")
        page.wait_for_function("document.querySelectorAll('[data-lane][data-stage=done]').length === 2", timeout=120_000)
        said = [lane.inner_text() for lane in page.locator("[data-lane] .said").all()]
        lights_out = us.puzzle("lights-out-3x3")
        cost = us.oracle(lights_out).distance(lights_out.parse("101010101"))[0]
        assert all(f"Cost {cost}: optimal, proven." in words for words in said)
        picture(page, "race")
        page.click("[data-do=draw]")  # another state, of which nothing was found out
        page.wait_for_selector("[data-lane]", state="detached")
        assert page.is_enabled("[data-do=start]")


def test_every_board_is_drawn_and_moves_by_its_keys(server: Server, visits: Visits) -> None:
    keys = {
        "tiles-3x3": "ArrowDown",
        "cube-3x3": "R",
        "pancake-8": "4",
        "topspin-8-4": "1",
        "pyraminx.toml": "1",
    }
    for name, key in keys.items():
        with visits.page(f"{server.address}/play/{name}") as page:
            page.wait_for_selector(".us-board.is-solved")
            page.keyboard.press(key)
            page.wait_for_url("**state=*")
            puzzle = us.puzzle(server.puzzles / name if name.endswith(".toml") else name)
            move = page.inner_text(".us-moves button.is-here")
            expected = puzzle.format(us.apply(puzzle.table, puzzle.table.goals[:1], _action(puzzle, move)))
            assert page.evaluate("new URL(location).searchParams.get('state')") == expected


def _action(puzzle: us.Puzzle, move: str) -> Any:
    return np.array([puzzle.table.action_names.index(move)])


def test_dark_and_light_are_remembered_and_all_pages_fit_a_narrow_screen(server: Server, visits: Visits, picture: Any) -> None:
    with visits.page(f"{server.address}/help", viewport={"width": 390, "height": 800}, color_scheme="light") as page:
        page.wait_for_function("document.querySelector('[data-do=dark]') && window.Quasar")
        assert not page.evaluate("Quasar.Dark.isActive")
        page.click("[data-do=dark]")
        page.wait_for_function("Quasar.Dark.isActive")
        for place in ("help", "play/cube-2x2", "race/tiles-3x3", "watch", "margins", "train", "reports"):
            page.goto(f"{server.address}/{place}")
            page.wait_for_function("window.Quasar?.Dark?.isActive")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 390, place


def test_pictures_of_help_and_reports(server: Server, visits: Visits, picture: Any) -> None:
    report = server.runs / "reproduce-paper" / "report"
    report.mkdir(parents=True)
    (report / "index.html").write_text("<h1>A report</h1><script>document.title = 'ran'</script><img src='a.png'>")
    with visits.page(f"{server.address}/reports") as page:
        frame = page.frame_locator("iframe")
        assert frame.locator("h1").inner_text() == "A report"
        assert page.frames[1].title() != "ran"  # nothing in a report runs
        assert page.get_attribute("iframe", "sandbox") == ""
        shutil.copytree(ROOT / "docs" / "results", report, ignore=shutil.ignore_patterns("records"), dirs_exist_ok=True)
        page.reload()
        frame.locator("h1").wait_for()
        picture(page, "reports")
    with visits.page(f"{server.address}/help") as page:
        picture(page, "help")


@pytest.fixture(scope="module", autouse=True)
def at_the_end(visits: Visits, server: Server) -> Iterator[None]:
    """After all tests of this file: nothing was asked of another machine, no page failed, and the server wrote no traceback."""
    yield
    outside = {url for url in visits.requests if not re.match(r"(https?|wss?)://127\.0\.0\.1:\d+/|data:|blob:", url)}
    assert not outside, json.dumps(sorted(outside))
    assert len(visits.requests) > 100
    assert not visits.complaints
    assert "Traceback" not in server.log.read_text(), server.log.read_text()
