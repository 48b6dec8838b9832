"""Where work is done: processes of this machine, or the workers of a Dask cluster."""

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from undershoot.errors import UndershootError

ANSWER_WITHIN = 5.0
"""Seconds for a scheduler to answer."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """So many processes with one thread each, so that they do not fight over the cores."""
    kept = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))  # read by libraries when they are loaded, in the new processes
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """The workers of the Dask scheduler at this address."""
    try:
        from distributed import Client
    except ImportError as error:
        raise UndershootError("--scheduler needs Dask: pip install 'undershoot[cluster]'") from error
    try:
        client: Any = Client(address, timeout=ANSWER_WITHIN, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise UndershootError(f"no Dask scheduler answers at {address} within {ANSWER_WITHIN:g} seconds") from error
    try:
        if not client.scheduler_info()["workers"]:
            raise UndershootError(f"the Dask scheduler at {address} has no workers; start some: dask worker {address}")
        yield client.get_executor(pure=False, retries=3)
    finally:
        client.close()
