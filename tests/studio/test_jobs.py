"""Work in other processes: its limits, its queue, and what becomes of it when it dies."""

import asyncio
import contextlib
import errno
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

import undershoot as us
from commands import undershoot
from studio.conftest import studio_server
from undershoot.puzzles.definitions import definition_of
from undershoot.studio.folders import Folders
from undershoot.studio.jobs import Job, Jobs, Limits, QueueFull, Stage
from undershoot.studio.processes import Crashed, Worker
from undershoot.studio.studio import Studio

HARD = {
    "puzzle": asdict(definition_of(us.puzzle("tiles-4x4"))),
    "state": [0, 12, 9, 13, 15, 11, 10, 14, 3, 7, 2, 5, 4, 8, 6, 1],
    "heuristic": "base",
}
Result = TypeVar("Result")
EASY = {"puzzle": asdict(definition_of(us.puzzle("lights-out-3x3"))), "state": [1, 0, 1, 0, 1, 0, 1, 0, 1], "bundles": {}}


def in_a_loop_of_its_own(work: Coroutine[Any, Any, Result]) -> Result:
    """In a thread, since a browser that other tests have open may keep this one's loop running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def with_jobs(limits: Limits, do: Callable[[Jobs], Awaitable[None]]) -> None:
    async def run() -> None:
        jobs = Jobs(limits)
        try:
            await do(jobs)
        finally:
            await jobs.close()
        assert not jobs.jobs
        await asyncio.sleep(0.1)
        assert not [child for child in psutil.Process().children() if "undershoot.studio.worker" in child.cmdline()]

    in_a_loop_of_its_own(run())


async def over(job: Job, seconds: float = 60) -> Job:
    until = time.monotonic() + seconds
    while not job.is_over:
        assert time.monotonic() < until
        await asyncio.sleep(0.05)
    return job


def submit(jobs: Jobs, task: str = "solve", **arguments: object) -> Job:
    return jobs.submit("a task", task, {**HARD, "max_seconds": 600.0, **arguments}, lambda job: None)


def test_a_full_queue_says_so_and_what_waits_comes_when_there_is_room() -> None:
    async def do(jobs: Jobs) -> None:
        told: list[Stage] = []
        first, second = submit(jobs), jobs.submit("a question", "known", EASY, lambda job: told.append(job.stage))
        with pytest.raises(QueueFull, match="1 under way, 1 in the queue"):
            submit(jobs)  # though none of these has begun
        await asyncio.sleep(0)
        assert told == [Stage.WAITING]
        with pytest.raises(QueueFull, match="1 under way, 1 in the queue"):
            submit(jobs)
        jobs.stop(first)
        assert (await over(second)).stage is Stage.DONE
        assert second.result is not None
        lights_out = us.puzzle("lights-out-3x3")
        assert second.result["true_cost"] == us.oracle(lights_out).distance(lights_out.parse("101010101"))[0]

    with_jobs(Limits(at_once=1, waiting=1), do)


def test_a_task_is_ended_at_its_limits_and_a_dead_process_is_shown_as_one() -> None:
    async def do(jobs: Jobs) -> None:
        late = jobs.submit("a task", "solve", {**HARD, "max_seconds": 600.0}, lambda job: None, seconds=1.0)
        roomy = jobs.submit("a task", "known", EASY, lambda job: None, seconds=2000.0, room=5.0)
        assert roomy.seconds == jobs.limits.seconds + 5.0
        killed = submit(jobs)
        while killed.worker is None or killed.worker.process is None:
            await asyncio.sleep(0.02)
        os.kill(killed.worker.process.pid, signal.SIGKILL)
        assert (await over(killed)).is_crash
        assert killed.error == "the process that worked on it ended unexpectedly (by SIGKILL)"
        assert (await over(late)).error == "it was ended after 1 seconds, the most that a task may take here"
        wrong = jobs.submit("a task", "solve", {**HARD, "heuristic": "no-such-thing"}, lambda job: None)
        assert (await over(wrong)).stage is Stage.FAILED
        assert not wrong.is_crash
        assert wrong.error.startswith("there is no heuristic 'no-such-thing' here; there are ")
        failing = jobs.submit("a task", "solve", {"puzzle": HARD["puzzle"]}, lambda job: None)
        assert (await over(failing)).is_crash
        assert "KeyError" in failing.error

    with_jobs(Limits(at_once=2, waiting=4), do)


def test_a_process_that_cannot_be_started_or_understood_is_told_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(*arguments: object, **options: object) -> None:
        raise OSError(errno.EAGAIN, "no more processes")

    def fail(job: Job) -> None:
        raise ValueError("a page with a fault")

    async def do(jobs: Jobs) -> None:
        with monkeypatch.context() as changed:
            changed.setattr("asyncio.create_subprocess_exec", refuse)
            unborn = jobs.submit("a task", "known", EASY, fail)
            assert (await over(unborn)).error.startswith("cannot start a process")
        assert unborn.stage is Stage.FAILED
        assert "a page with a fault" in caplog.text
        monkeypatch.setattr("undershoot.studio.processes.LONGEST_LINE", 100)
        long = jobs.submit("a task", "known", EASY, lambda job: None)
        assert (await over(long)).error.startswith("the process that worked on it was ended: what it answered is no message")

    with_jobs(Limits(at_once=1, waiting=1), do)


def test_a_training_is_stopped_however_early_that_is_asked(tmp_path: Path) -> None:
    def train(jobs: Jobs, name: str) -> Job:
        arguments = {"recipe": "mse", "settings": ["steps=1000000", "hidden=[8]"], "folder": str(tmp_path / name)}
        return jobs.submit(name, "train", {"puzzle": EASY["puzzle"], **arguments}, lambda job: None, keeps=True)

    async def do(jobs: Jobs) -> None:
        unborn = train(jobs, "unborn")
        while unborn.stage is Stage.WAITING:
            await asyncio.sleep(0)
        assert unborn.worker is None
        jobs.ask_to_stop(unborn)
        early = train(jobs, "early")
        while early.worker is None:
            await asyncio.sleep(0.01)
        jobs.ask_to_stop(early)  # its process is there, but not ready for anything
        assert early.is_asked_to_stop
        assert (await over(unborn)).stage is Stage.STOPPED
        assert not (tmp_path / "unborn").exists()
        await over(early)
        assert early.result is not None
        assert not early.result["is_finished"]
        assert (tmp_path / "early" / "recipe.toml").exists()

    with_jobs(Limits(at_once=1), do)


def test_a_task_that_takes_too_much_memory_is_ended() -> None:
    async def run() -> None:
        worker = await Worker().start()
        try:
            with pytest.raises(Crashed, match=r"more than 0\.1 GB of memory.* --max-memory"):
                await worker.do("solve", {**HARD, "max_seconds": 60.0}, lambda event: None, 60, 10**8)
        finally:
            await worker.end()

    in_a_loop_of_its_own(run())


def test_a_worker_ends_when_its_server_is_gone() -> None:
    async def run() -> int:
        worker = await Worker().start()
        worker.send({"task": "solve", "arguments": {**HARD, "max_seconds": 600.0}})
        await asyncio.sleep(1.5)
        assert worker.process is not None
        assert worker.process.stdin is not None
        worker.process.stdin.close()
        return await asyncio.wait_for(worker.process.wait(), 10)

    assert in_a_loop_of_its_own(run()) == 0


def test_who_answers_pages_is_not_as_nice_as_who_searches_and_comes_again_when_it_dies(tmp_path: Path) -> None:
    async def run() -> None:
        studio = Studio(Folders(tmp_path, tmp_path), Limits())
        await studio.open()
        search = await Worker().start()
        try:
            answer = await studio.ask("known", EASY)
            await search.do("known", EASY, lambda event: None, 60, 2**31)
            assert search.process is not None
            answering = next(
                child for child in psutil.Process().children() if child.cmdline()[-2:] == ["undershoot.studio.worker", "0"]
            )
            assert psutil.Process(search.process.pid).nice() > answering.nice()
            answering.kill()
            with contextlib.suppress(Crashed):  # it may not be noticed before it is asked
                await studio.ask("known", EASY)
            assert await studio.ask("known", EASY) == answer
        finally:
            await search.end()
            await studio.close()

    in_a_loop_of_its_own(run())


def test_who_answers_pages_is_renewed_when_it_holds_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("undershoot.studio.studio.KEPT_MEMORY", 1)

    async def run() -> None:
        studio = Studio(Folders(tmp_path, tmp_path), Limits())
        await studio.open()
        try:
            first, answer = answering(), await studio.ask("known", EASY)
            assert answering() != first
            assert await studio.ask("known", EASY) == answer
        finally:
            await studio.close()

    def answering() -> int:
        return int(next(child.pid for child in psutil.Process().children() if child.cmdline()[-1:] == ["0"]))

    in_a_loop_of_its_own(run())


def test_one_table_of_a_puzzle_is_made_at_a_time_and_all_who_wait_are_told(tmp_path: Path) -> None:
    def page_is_gone() -> None:
        raise RuntimeError

    async def run() -> None:
        studio, lights_out = Studio(Folders(tmp_path, tmp_path), Limits()), us.puzzle("lights-out-3x3")
        told: list[Stage] = []
        try:
            studio.make(lights_out, "table", lambda job: None)
            job = studio.making(lights_out)
            assert job is not None
            job.others += [lambda job: page_is_gone(), lambda job: told.append(job.stage)]
            with pytest.raises(us.UndershootError, match="is being made already"):
                studio.make(us.puzzle("lights-out-3x3"), "patterns", lambda job: None)
            assert studio.making(us.puzzle("tiles-2x3")) is None
            assert (await over(job)).stage is Stage.DONE
            assert (told[0], told[-1]) == (Stage.WAITING, Stage.DONE)
            await asyncio.sleep(0)
            assert not job.others
            assert studio.making(lights_out) is None
        finally:
            await studio.close()

    in_a_loop_of_its_own(run())


def test_no_process_is_left_behind_by_a_server_that_ends(tmp_path: Path) -> None:
    with studio_server(tmp_path) as server:
        children = psutil.Process(server.process.pid).children(recursive=True)
        assert children
    gone, alive = psutil.wait_procs(children, timeout=10)
    assert len(gone) == len(children)
    assert not alive


def test_what_it_means_to_listen_elsewhere_is_said_and_bad_addresses_get_a_sentence(tmp_path: Path) -> None:
    with studio_server(tmp_path, "--host", "0.0.0.0") as server:
        said = server.log.read_text()
        assert "whoever reaches this machine can use its processors and memory" in said
        busy = undershoot("studio", "--no-open", "--port", str(server.port), code=2).stderr
        assert busy.startswith(f"undershoot: cannot listen on 127.0.0.1, port {server.port}: ")
    assert "no address of this machine" in undershoot("studio", "--no-open", "--host", "nowhere.invalid", code=2).stderr
    assert "at least 256M" in undershoot("studio", "--no-open", "--max-memory", "1M", code=2).stderr


def test_without_its_packages_the_command_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nicegui", None)
    assert "pip install 'undershoot[studio]'" in undershoot("studio", "--no-open", code=2).stderr
