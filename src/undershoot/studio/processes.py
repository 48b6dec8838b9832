"""Processes that work for the studio, seen from the server: started, asked, watched and ended without ever waiting for them."""

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from undershoot.errors import GaveOut, UndershootError, cannot

LONGEST_LINE = 1 << 28
"""Bytes of an answer."""
LOOK_EVERY = 0.2
"""Seconds between looks at the memory and the clock of a process."""
NICE = 5
"""Tasks leave the processor to the pages, and to who answers them."""
Tell = Callable[[dict[str, Any]], None]


class Crashed(UndershootError):
    """A process ended, or failed, without an answer."""


class Worker:
    """One process, which does one task at a time."""

    def __init__(self, nice: int = NICE) -> None:
        self.nice = nice
        self.process: asyncio.subprocess.Process | None = None
        self._ending = ""

    async def start(self) -> "Worker":
        """Start it, or another one in its place; tasks may be given before it is ready."""
        self._ending = ""
        try:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # or modules would be looked for in whatever folder this is, before all others
                "-m",
                "undershoot.studio.worker",
                str(self.nice),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=LONGEST_LINE,
                start_new_session=True,  # Ctrl-C in a terminal is for the server, which then ends its workers
            )
        except OSError as error:
            raise cannot("start a process", error) from error
        return self

    @property
    def is_alive(self) -> bool:
        """Whether it can be given a task."""
        return self.process is not None and self.process.returncode is None

    @property
    def memory(self) -> int:
        """Bytes of memory that it holds; 0 where the system does not say."""
        try:
            pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) if self.process else 0
        except (OSError, ValueError, IndexError):
            return 0
        return pages * 4096

    def send(self, message: dict[str, Any]) -> None:
        """Hand it a line."""
        assert self.process is not None
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
            self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def do(self, task: str, arguments: dict[str, Any], tell: Tell, seconds: float, memory: int) -> dict[str, Any]:
        """What a task comes to. tell: called with each event. It is ended if it takes longer or more than this."""
        if not self.is_alive:
            await self.start()
        watching = asyncio.create_task(self._watch(seconds, memory))
        self.send({"task": task, "arguments": arguments})
        try:
            return await self._answer(tell)
        finally:
            watching.cancel()

    async def _answer(self, tell: Tell) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdout is not None
        while message := await self._read(self.process.stdout):
            if "event" in message:
                tell(message["event"])
            elif "done" in message:
                return dict(message["done"])
            elif "error" in message:
                raise (GaveOut if message["gave_out"] else UndershootError)(message["error"])
            elif "crash" in message:
                raise Crashed(f"the task failed where it should not ({message['crash']}); this is a fault of the program")
        how = await self._how_it_ended()
        raise Crashed(self._ending or f"the process that worked on it ended unexpectedly ({how})")

    async def _read(self, stdout: asyncio.StreamReader) -> dict[str, Any]:
        """The next message; none at the end. A process that says what nobody can read is ended: the rest would be as bad."""
        try:
            line = await stdout.readline()
            return dict(json.loads(line)) if line else {}
        except (ValueError, TypeError) as error:
            self.kill()
            raise Crashed(
                f"the process that worked on it was ended: what it answered is no message of at most {LONGEST_LINE >> 20} MB"
            ) from error

    async def _how_it_ended(self) -> str:
        assert self.process is not None
        code = await self.process.wait()
        return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"

    async def _watch(self, seconds: float, memory: int) -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_EVERY)
            if time.monotonic() - began > seconds:
                self._ending = f"it was ended after {seconds:g} seconds, the most that a task may take here"
                self.kill()
            elif self.memory > memory:
                self._ending = (
                    f"it was ended when it took more than {memory / 1e9:.1f} GB of memory, the most that a task may take here; "
                    "start the studio with a larger --max-memory"
                )
                self.kill()

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()

    async def end(self) -> None:
        """End it, and wait until it is gone."""
        self.kill()
        if self.process is not None:
            await self.process.wait()
            transport = getattr(self.process, "_transport", None)
            if transport is not None:
                transport.close()
