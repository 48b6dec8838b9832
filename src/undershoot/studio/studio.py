"""The studio as one thing: its folders, its jobs, and the process that answers quick questions."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from undershoot.errors import UndershootError
from undershoot.puzzles.definitions import definition_of
from undershoot.puzzles.puzzle import Puzzle
from undershoot.studio.folders import NAME, Folders
from undershoot.studio.jobs import KEPT_MEMORY, Job, Jobs, Limits
from undershoot.studio.processes import Worker

ANSWER_SECONDS = 60.0
"""For a quick question; the first one may have to compile, or to enumerate a small space."""

SPARE_AFTER = 4.0
"""Seconds after the beginning: the first page comes first."""

RUNS = "runs/"
"""Before the name of a run in all lists: no name of the package has a slash, so that no run hides what comes with it."""


class Studio:
    """One for each server."""

    def __init__(self, folders: Folders, limits: Limits) -> None:
        self.folders, self.limits = folders, limits
        self.jobs = Jobs(limits)
        self.trainings: dict[str, Job] = {}
        """The last one in each run folder, under way or over, since the server began."""
        self.metrics: dict[str, list[dict[str, Any]]] = {}
        """What each of these told so far."""
        self.makings: dict[str, Job] = {}
        """The last table that was made of each puzzle, by its fingerprint, under way or over."""
        self._answering = Worker(nice=0)
        self._one_at_a_time = asyncio.Lock()
        self._later: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Start the processes that should be ready when they are needed: one for the first page, another for the first task."""
        await self._answering.start()
        self._later = asyncio.get_running_loop().call_later(SPARE_AFTER, self.jobs.prepare)

    async def ask(self, task: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The answer to a quick question, by a process that all pages share."""
        async with self._one_at_a_time:
            try:
                return await self._answering.do(task, arguments, lambda event: None, ANSWER_SECONDS, self.limits.memory)
            finally:
                if self._answering.memory > min(KEPT_MEMORY, 3 * self.limits.memory // 4):
                    await self._answering.end()
                    await self._answering.start()

    def make(self, puzzle: Puzzle, name: str, tell: Callable[[Job], None]) -> None:
        """Begin to make a table of a puzzle, which is then in the cache."""
        if self.making(puzzle) is not None:
            raise UndershootError(f"a table of {puzzle.name} is being made already; wait for it, or stop it")
        arguments = {"puzzle": asdict(definition_of(puzzle)), "name": name}
        self.makings[puzzle.table.fingerprint] = self.jobs.submit(f"{name} of {puzzle.name}", "make", arguments, tell)

    def making(self, puzzle: Puzzle) -> Job | None:
        """The table of a puzzle that is being made, whoever asked for it."""
        job = self.makings.get(puzzle.table.fingerprint)
        return None if job is None or job.is_over else job

    def bundle_paths(self) -> dict[str, str]:
        """Names and places of the bundles in the folder of runs; those that may not be read are left out."""
        found: dict[str, str] = {}
        for name in self.folders.bundles():
            with contextlib.suppress(UndershootError):
                found[RUNS + name] = str(self.folders.bundle(name).resolve())
        return found

    def heuristic_reference(self, name: str) -> str:
        """What other processes find a heuristic by: its name, or the place of the bundle of a run."""
        known = self._run(name) if name.startswith(RUNS) else name if NAME.fullmatch(name) else None
        if known is None:
            raise UndershootError(f"there is no heuristic {name[:60]!a} here; take one of the list")
        return known

    def _run(self, name: str) -> str | None:
        """Where the bundle of this run is."""
        with contextlib.suppress(UndershootError):
            return str(self.folders.bundle(name.removeprefix(RUNS)).resolve())
        return None

    def bundles(self) -> dict[str, str]:
        """Names and places of all bundles: those that come with the package, and those of runs."""
        return self._shipped() | self.bundle_paths()

    def _shipped(self) -> dict[str, str]:
        shipped = Path(__file__).parent.parent / "shipped"
        return {path.parent.name: str(path.parent) for path in sorted(shipped.glob("*/config.json"))}

    def bundle_reference(self, name: str) -> str:
        """What other processes find a bundle by."""
        found = self._run(name) if name.startswith(RUNS) else self._shipped().get(name)
        if found is None:
            raise UndershootError(f"there is no bundle {name[:60]!a} here; take one of the list")
        return found

    async def close(self) -> None:
        """End every process."""
        if self._later is not None:
            self._later.cancel()
        await self.jobs.close()
        await self._answering.end()
