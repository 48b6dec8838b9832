"""Work for several threads, of which none goes on when another one fails."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any


def spread(work: Callable[[Any], None], over: Iterable[Any], threads: int, stopped: Event) -> None:
    """Over threads; what one of them raises, or Ctrl-C, stops all."""

    def work_or_stop(item: Any) -> None:
        with _stopping(stopped):
            work(item)

    with ThreadPoolExecutor(threads) as pool, _stopping(stopped):
        list(pool.map(work_or_stop, over))


@contextmanager
def _stopping(stopped: Event) -> Iterator[None]:
    """Whatever is raised within stops all threads, at once: the others may be waited for before it is seen."""
    try:
        yield
    except BaseException:
        stopped.set()
        raise
