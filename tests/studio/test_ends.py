"""How searches, races and trainings end: at limits, by a crash, by a full queue, and with the server."""

import contextlib
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import psutil

from studio.conftest import Server, Visits, studio_server
from undershoot.studio.processes import NICE
from undershoot.training.checkpoints import checkpoints, step_of

HARD = "0 12 9 13 / 15 11 10 14 / 3 7 2 5 / 4 8 6 1"


def workers(server: Server) -> list[psutil.Process]:
    """Those that work on tasks, not the one that answers all pages."""
    found = []
    for child in psutil.Process(server.process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # one that ends just now
            if child.cmdline()[-2:] == ["undershoot.studio.worker", str(NICE)]:
                found.append(child)
    return found


def begin(page: Any, seconds: int) -> None:
    page.wait_for_selector("[data-card=known] [data-heuristic]")
    page.select_option("[data-card=solve] label:first-child select", "base")
    page.fill("[data-do=seconds]", str(seconds))
    page.click("[data-do=solve]:enabled")


def test_what_was_found_outlives_limits_crashes_and_full_queues(tmp_path: Path, visits: Visits) -> None:
    with studio_server(tmp_path, "--max-seconds", "6", "--jobs", "1", "--queue", "0") as server:
        address = f"{server.address}/play/tiles-4x4?state={HARD}"
        with visits.page(address) as page, visits.page(address) as other:
            begin(page, 60)
            page.wait_for_selector("[data-say=limit] >> text=It ends itself after 6 seconds, the most")
            begin(other, 60)
            other.wait_for_selector("[data-say=solve] .is-wrong")
            assert other.inner_text("[data-say=solve]").startswith("no more tasks are taken here: 1 under way, 0 in the queue")
            page.wait_for_selector("[data-say=solve] .us-said", timeout=120_000)  # later than 6 seconds: it had to be compiled
            assert "The search stopped at the limit of time" in page.inner_text("[data-say=solve]")
            page.wait_for_selector(".us-moves button.is-solution")
            begin(other, 5)
            other.wait_for_selector("[data-bound=upper]", timeout=120_000)
            for worker in workers(server):
                worker.kill()
            other.wait_for_selector("[data-say=solve] .is-wrong")
            said = other.inner_text("[data-say=solve]")
            assert "ended unexpectedly (by SIGKILL)" in said
            found = re.search(
                r"No solution costs less than (\d+), proven\. A solution of cost (\d+) was found on the way\.", said
            )
            assert found
            assert int(found[1]) < int(found[2])
            other.wait_for_selector(".us-moves button.is-solution")
            other.keyboard.press("End")  # it would play for a while
            other.wait_for_selector(".us-board.is-solved")
            assert other.inner_text(".us-count").endswith(f"/ {found[2]}")


def test_a_race_that_is_started_twice_begins_once_and_stops_whole(server: Server, visits: Visits) -> None:
    with visits.page(f"{server.address}/race/tiles-4x4?state={HARD}") as page:
        page.wait_for_selector("[data-do=start]:enabled")
        for runner in page.locator("[data-runner]").all():
            runner.set_checked(runner.get_attribute("data-runner") in ("linear-conflict", "base"))
        page.dblclick("[data-do=start]")
        page.wait_for_function("document.querySelectorAll('[data-lane][data-stage=running]').length === 2")
        assert len(workers(server)) <= 3  # two that run, one that is ready for what comes next
        page.click("[data-do=stop]:enabled")
        page.wait_for_selector("[data-do=start]:enabled")
        until = time.monotonic() + 10
        while len(workers(server)) > 1:
            assert time.monotonic() < until
            time.sleep(0.1)


def test_a_training_leaves_its_checkpoint_when_a_terminal_ends_the_server(tmp_path: Path, visits: Visits) -> None:
    with studio_server(tmp_path) as server:
        with visits.page(f"{server.address}/train") as page:
            page.fill("[data-do=run-name]", "long")
            page.fill("[data-do=steps]", "1000000")
            page.fill("[data-do=hidden]", "16")
            page.click("[data-do=train]")
            page.wait_for_function("document.querySelector('.us-figures')?.innerText.includes('loss')", timeout=120_000)
            shown = int(page.inner_text(".us-figure b >> nth=0").replace(",", ""))
        children = psutil.Process(server.process.pid).children(recursive=True)
        os.killpg(server.process.pid, signal.SIGINT)  # as Ctrl-C does: to all that the terminal knows
        assert server.process.wait(30) is not None
        assert not psutil.wait_procs(children, timeout=10)[1]
    assert "Traceback" not in server.log.read_text(), server.log.read_text()
    assert max(map(step_of, checkpoints(server.runs / "long" / "checkpoints")), default=0) >= shown
