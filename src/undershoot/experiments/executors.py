"""Where work is done: processes of this machine, or the workers of a Dask cluster."""

import asyncio
import logging
import multiprocessing
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from undershoot.errors import UndershootError
from undershoot.files import sources_digest

ANSWER_WITHIN = 3.0
"""Seconds for a scheduler to answer."""
SAFE_PATH = "PYTHONSAFEPATH"
"""With it processes look for modules nowhere but where they are installed, not first in whatever folder this is."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Workers:
    """Those who do the work."""

    executor: Executor
    count: int
    """How many pieces run at once."""

    def submit(self, function: Callable[..., Answer], *arguments: Any) -> "Future[Answer]":
        """Let one of them call a function of ours. Whoever has other sources refuses: we would believe what they compute."""
        return self.executor.submit(call_if_same, sources_digest(), function, *arguments)


def call_if_same(sources: str, function: Callable[..., Answer], *arguments: Any) -> Answer:
    """Call the function, on a worker, if its program is the one that asks for it."""
    if sources != sources_digest():
        raise UndershootError(
            f"a worker on {socket.gethostname()} has other source files of undershoot (their digest is "
            f"{sources_digest()[:12]}) than the machine that asks it ({sources[:12]}); install the same everywhere, and start "
            "the workers again"
        )
    return function(*arguments)


@contextmanager
def processes(count: int) -> Iterator[Workers]:
    """So many processes with one thread each, so that they do not fight over the cores."""
    kept = {name: os.environ.get(name) for name in (*THREADS, SAFE_PATH)}
    os.environ.update(dict.fromkeys(THREADS, "1"))  # read by libraries when they are loaded, in the new processes
    os.environ[SAFE_PATH] = "1"
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_end_with, initargs=(os.getpid(),))
    try:
        with _deaf_to_ctrl_c():
            for _ in range(count):
                pool.submit(os.getpid)  # starts a process
        yield Workers(pool, count)
    except KeyboardInterrupt:
        for process in multiprocessing.active_children():
            process.kill()  # waiting would take as long as what they are doing
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes that are started within never see Ctrl-C, not even before they can say that they ignore it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(parent: int) -> None:
    """End this process when the one that started it is gone, and only then: Ctrl-C is for that one to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def cluster(address: str) -> Iterator[Workers]:
    """The workers of the Dask scheduler at this address."""
    if not re.fullmatch(r"(tcp|tls|ws|wss)://.+:\d+", address):
        raise UndershootError(f'--scheduler is "{address}"; it must be an address such as tcp://127.0.0.1:8786')
    if address.startswith("tcp://"):  # before anything slow is loaded
        host, port = address.removeprefix("tcp://").rsplit(":", 1)
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_WITHIN).close()
        except (OSError, OverflowError) as error:
            raise UndershootError(f"no Dask scheduler answers at {address}: nothing listens there") from error
    try:
        from distributed import Client
        from distributed.comm.core import connect
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        raise UndershootError("--scheduler needs Dask: pip install 'undershoot[cluster]'") from error

    async def ask() -> None:
        comm = await connect(address, timeout=ANSWER_WITHIN)  # type: ignore[no-untyped-call]
        await comm.close()

    try:
        asyncio.run(ask())  # a client that fails to connect tries for long to close what is not open
    except Exception as error:  # whatever answers there, or does not
        raise UndershootError(f"no Dask scheduler answers at {address} within {ANSWER_WITHIN:g} seconds") from error
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is said once, by us
    client: Any = Client(address, timeout=ANSWER_WITHIN, set_as_default=False)  # type: ignore[no-untyped-call]
    try:
        threads = sum(client.nthreads().values())
        if not threads:
            raise UndershootError(f"the Dask scheduler at {address} has no workers; start some: dask worker {address}")
        yield Workers(client.get_executor(pure=False, retries=3), threads)
    except KilledWorker as error:
        raise UndershootError(
            "a piece of work ended several Dask workers, for want of memory perhaps; start fewer on a machine, then begin "
            "again (reproduce: with --resume)"
        ) from error
    finally:
        client.close()
