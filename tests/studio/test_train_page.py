"""The page of trainings in a browser, beside what `test_pages` sees of it."""

from dataclasses import asdict
from itertools import count

import pytest

import undershoot as us
from studio.conftest import Server, Visits
from undershoot.puzzles.definitions import definition_of
from undershoot.studio.pages.train import _powers
from undershoot.studio.tasks import TASKS
from undershoot.training.recipes import RECIPES

PUZZLE = 'name = "rings"\ngoal = "A B C D E"\n[moves]\nX = "(1 2 3)"\nY = "(3 4 5)"\n'


def test_losses_that_are_nearly_nothing_do_not_press_the_others_together() -> None:
    for losses, expected in (
        ([1e-13, 0.02, 0.6], (1e-5, 1)),
        ([0.2], (0.1, 1)),
        ([], (0.1, 1)),
        ([1.0], (0.1, 1)),
        ([30.0, 2.0], (1, 100)),
    ):
        axis = _powers(losses)
        assert (axis["min"], axis["max"]) == pytest.approx(expected)


def test_a_run_of_before_is_shown_by_itself_and_gone_on_with(server: Server, visits: Visits) -> None:
    path, folder, calls = server.puzzles / "two rings.toml", server.runs / "before", count()
    path.write_text(PUZZLE)
    settings = {"recipe": "mse", "settings": ["steps=2000", "hidden=[8]"], "recipe_file": ""}
    puzzle = {"puzzle": asdict(definition_of(us.puzzle(path))), "puzzle_name": str(path)}
    TASKS["train"]({**puzzle, **settings, "folder": str(folder)}, lambda event: None, lambda: next(calls) > 5)
    with visits.page(f"{server.address}/train") as page:
        page.select_option("select >> nth=0", "tiles-4x4")
        page.select_option("select >> nth=1", "exact")
        assert page.locator("select >> nth=1").locator("option").count() == len(RECIPES)
        page.fill("[data-do=run-name]", "fails")
        page.fill("[data-do=hidden]", "abc")
        page.click("[data-do=train]")
        page.wait_for_selector(".us-said.is-wrong")
        assert page.inner_text(".us-said.is-wrong").startswith("the hidden layers are 'abc'; allowed are whole numbers")
        for wide in ("99999", "8193", " ".join(["8"] * 17)):
            page.fill("[data-do=hidden]", wide)
            page.click("[data-do=train]")
            page.wait_for_selector(f".us-said.is-wrong >> text=the hidden layers are '{wide[:20]}'; allowed")
        page.fill("[data-do=hidden]", "16")
        page.click("[data-do=train]")
        page.wait_for_selector("[data-say=train] .is-wrong", timeout=120_000)
        page.click("[data-do=show-before]")
        page.wait_for_selector(".us-figure")  # its curve, though this server has not trained it
        assert page.inner_text("[data-say=train]") == ""
        assert "2,000" not in page.inner_text(".us-figure >> nth=0")
        page.click("[data-do=go-on]:enabled")
        page.wait_for_selector("[data-say=train] .us-said", timeout=120_000)
        assert page.inner_text("[data-say=train]").startswith("Finished. The bundle runs/before is in all lists.")
        page.fill("[data-do=run-name]", "other")
        page.select_option("select >> nth=0", "lights-out-3x3")
        page.select_option("select >> nth=1", "mse")
        page.click("[data-do=train]")
        page.wait_for_selector("[data-do=show-other]")
        page.click("[data-do=show-before]")  # the list goes on, though another run is shown
        page.wait_for_selector(".us-row:has([data-do=show-other]) >> text=has a bundle", timeout=120_000)
        assert page.inner_text(".us-card >> nth=2 >> h2") == "before"
    made = f"undershoot train '{path}' --recipe {folder}/recipe.toml"
    assert made in (folder / "bundle" / "README.md").read_text().splitlines()


def test_a_run_that_leads_elsewhere_is_not_gone_on_with(server: Server, visits: Visits) -> None:
    outside = server.runs.parent / "outside"
    outside.mkdir()
    run = server.runs / "leads-out"
    run.mkdir()
    (run / "recipe.toml").write_text('puzzle = "lights-out-3x3"\nsteps = 100\n')
    (run / "checkpoints").symlink_to(outside)
    with visits.page(f"{server.address}/train") as page:
        page.click("[data-do=show-leads-out]")
        page.wait_for_selector(".us-said.is-wrong")
        page.click("[data-do=go-on]:enabled")
        page.wait_for_function("document.querySelector('.us-said.is-wrong').innerText.includes('cannot go on')")
        assert "'checkpoints' in leads-out leads out of the folder" in page.inner_text(".us-said.is-wrong")
    assert not list(outside.iterdir())
