"""Work that takes long: a few tasks at a time, some in a queue, each in a process of its own, with limits."""

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from undershoot.errors import UndershootError
from undershoot.studio.processes import Crashed, Worker

KEPT_MEMORY = 700 * 2**20
"""Bytes of a process that may wait for its next task; a larger one is ended."""
SPARE = 1
"""Processes that wait, ready, for the next task."""
FAREWELL = 10.0
"""Seconds that tasks get to keep what they have, when the server ends."""
LOG = logging.getLogger("undershoot.studio")


def usual_tasks() -> int:
    """At once, on this machine."""
    return max(2, min(4, os.cpu_count() or 2))


@dataclass(frozen=True)
class Limits:
    """What jobs may take."""

    seconds: float = 900.0
    memory: int = 4 * 2**30
    """Bytes of each."""
    at_once: int = field(default_factory=usual_tasks)
    waiting: int = 8


class Stage(StrEnum):
    """Where a job is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


class QueueFull(UndershootError):
    """There is too much to do already."""


@dataclass(eq=False)
class Job:
    """One task."""

    what: str
    """For people: what it does."""
    task: str
    arguments: dict[str, Any]
    tell: Callable[["Job"], None]
    """Called whenever something is new."""
    seconds: float
    stage: Stage = Stage.WAITING
    event: dict[str, Any] = field(default_factory=dict)
    """The last that the process told."""
    result: dict[str, Any] | None = None
    error: str = ""
    is_crash: bool = False
    worker: Worker | None = None
    running: "asyncio.Task[None] | None" = None
    on_event: Callable[[dict[str, Any]], None] | None = None
    """Called with every event, if not only the last one counts."""
    others: "list[Callable[[Job], None]]" = field(default_factory=list)
    """Who else wants to be told."""
    keeps: bool = False
    """Whether it keeps what it has so far, if it is asked to stop."""
    is_asked_to_stop: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return self.stage in (Stage.DONE, Stage.FAILED, Stage.STOPPED)


class Jobs:
    """All that run or wait."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.jobs: list[Job] = []
        self.idle: list[Worker] = []
        self._room = asyncio.Semaphore(limits.at_once)
        self._preparing: asyncio.Task[None] | None = None
        self._is_closed = False

    def submit(
        self,
        what: str,
        task: str,
        arguments: dict[str, Any],
        tell: Callable[[Job], None],
        seconds: float | None = None,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        room: float = 0.0,
        keeps: bool = False,
    ) -> Job:
        """Begin a task as soon as there is room; QueueFull if too many wait.

        seconds: after which it is ended, at most what the studio allows. room: more of them, for a task that ends itself at
        its limit and has to load and to compile before. keeps: see `Job`.
        """
        here = sum(not job.is_over for job in self.jobs)  # of those that came just now none runs yet
        busy = min(here, self.limits.at_once)
        if here >= self.limits.at_once + self.limits.waiting:
            raise QueueFull(
                f"no more tasks are taken here: {busy} under way, {here - busy} in the queue; stop one, or try again later"
            )
        limit = min(self.limits.seconds, self.limits.seconds if seconds is None else seconds)
        job = Job(what, task, arguments, tell, limit + room, on_event=on_event, keeps=keeps)
        self.jobs.append(job)
        job.running = asyncio.create_task(self._run(job))
        return job

    async def _run(self, job: Job) -> None:
        try:
            self._say(job)  # that it waits
            async with self._room:
                if job.stage is not Stage.WAITING:
                    return
                job.stage = Stage.RUNNING
                job.worker = await self._take()
                self._say(job)
                if job.stage is Stage.RUNNING:  # nobody stopped it while its process started
                    await self._do(job, job.worker)
                await self._put_back(job.worker)
        except Exception as error:
            if not isinstance(error, UndershootError):
                LOG.exception("%s failed", job.what)
            if not job.is_over:
                job.error, job.is_crash, job.stage = str(error) or type(error).__name__, True, Stage.FAILED
            if job.worker is not None:
                await job.worker.end()
        finally:
            self.jobs.remove(job)
            self._say(job)
            job.others.clear()  # pages that are gone are not held

    async def _do(self, job: Job, worker: Worker) -> None:
        def tell(event: dict[str, Any]) -> None:
            job.event = event
            if job.on_event is not None:
                _call(job.on_event, event, job)
            self._say(job)

        try:
            job.result = await worker.do(job.task, job.arguments, tell, job.seconds, self.limits.memory)
            stage = Stage.DONE
        except UndershootError as error:
            job.error, job.is_crash, stage = str(error), isinstance(error, Crashed), Stage.FAILED
        if job.stage is Stage.RUNNING:
            job.stage = stage

    async def _put_back(self, worker: Worker) -> None:
        """Let it wait for its next task, if it can."""
        if worker.is_alive and worker.memory < KEPT_MEMORY and len(self.idle) < SPARE:
            self.idle.append(worker)
            return
        await worker.end()
        if not self._is_closed:
            self.prepare()

    async def _take(self) -> Worker:
        while self.idle:
            worker = self.idle.pop()
            if worker.is_alive:
                return worker
        return await Worker().start()

    def prepare(self) -> None:
        """Have a process ready for the next task."""
        if self._preparing is None or self._preparing.done():
            self._preparing = asyncio.create_task(self._prepare())

    async def _prepare(self) -> None:
        if len(self.idle) < SPARE:
            self.idle.append(await Worker().start())

    def stop(self, job: Job) -> None:
        """End a job at once; if it waits it never begins."""
        if not job.is_over:
            job.stage = Stage.STOPPED
            if job.worker is not None:
                job.worker.kill()
            self._say(job)

    def ask_to_stop(self, job: Job) -> None:
        """Let a task come to an end of its own; one that has no process yet never begins."""
        if job.worker is None:
            self.stop(job)
        elif not job.is_over:  # or its process may have another task by now
            job.is_asked_to_stop = True
            job.worker.send({"stop": True})

    def _say(self, job: Job) -> None:
        for tell in (job.tell, *job.others):
            _call(tell, job, job)

    async def close(self) -> None:
        """End everything; what keeps what it has is asked to stop, and waited for."""
        self._is_closed = True
        kept = [job for job in self.jobs if job.keeps and job.stage is Stage.RUNNING]
        for job in list(self.jobs):
            if job in kept:
                self.ask_to_stop(job)
            else:
                self.stop(job)
        if kept:
            await asyncio.wait([job.running for job in kept if job.running is not None], timeout=FAREWELL)
        for job in list(self.jobs):
            self.stop(job)
        if self._preparing is not None:
            await self._preparing
        await asyncio.gather(*(job.running for job in list(self.jobs) if job.running is not None))
        await asyncio.gather(*(worker.end() for worker in self.idle))
        self.idle.clear()


def _call(tell: Callable[[Any], None], what: Any, job: Job) -> None:
    """Tell somebody; that one of them fails is written down, and is no matter of the others."""
    try:
        tell(what)
    except Exception:
        LOG.exception("somebody could not be told of %s", job.what)
