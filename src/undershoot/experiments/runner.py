"""Do what is not done yet."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager

from undershoot.errors import UndershootError
from undershoot.experiments.executors import Workers
from undershoot.experiments.items import Files, Item
from undershoot.experiments.store import Store
from undershoot.experiments.work import do

Report = Callable[[int, int, str], None]
MOST_RESTARTS = 5
"""Of executors that lost a process."""


def with_needs(items: Iterable[Item]) -> dict[str, Item]:
    """All items by key, what is needed before what needs it, each once."""
    found: dict[str, Item] = {}

    def add(item: Item) -> None:
        for need in item.needs.values():
            add(need)
        found.setdefault(item.key, item)

    for item in items:
        add(item)
    return found


def run(
    items: Iterable[Item],
    store: Store,
    workers: Callable[[], AbstractContextManager[Workers]],
    report: Report | None = None,
) -> int:
    """Do every item that the store does not have; returns how many were done. report: called with (done, all, name).

    A process that dies takes its pool with it; then a new one is made, and what was under way is done again.
    """
    everything = with_needs(items)
    done = {key for key, item in everything.items() if store.read(item) is not None}
    already, restarts = len(done), 0
    while len(done) < len(everything):
        try:
            with workers() as found:
                _finish(everything, done, store, found, report)
        except BrokenProcessPool as error:
            restarts += 1
            if restarts > MOST_RESTARTS:
                raise UndershootError(
                    f"processes died {restarts} times, for want of memory perhaps; lower --workers"
                ) from error
        except CancelledError as error:
            raise UndershootError("the scheduler went away; what was done so far is kept, go on with --resume") from error
    return len(done) - already


def _finish(everything: dict[str, Item], done: set[str], store: Store, workers: Workers, report: Report | None) -> None:
    """Timings last, one at a time, so that nothing else is on the cores."""
    under_way: dict[Future[Files], Item] = {}
    waiting = sorted((item for key, item in everything.items() if key not in done), key=lambda item: item.kind == "timing")
    while waiting or under_way:
        for item in [item for item in waiting if all(need.key in done for need in item.needs.values())]:
            # A few more than can run, so that no one is idle, and files are not held long.
            if len(under_way) >= (1 if item.kind == "timing" else 2 * workers.count):
                break
            inputs = {name: _files(store, need) for name, need in item.needs.items()}
            under_way[workers.submit(do, item.kind, item.spec, inputs)] = item
            waiting.remove(item)
        finished, _ = wait(under_way, return_when=FIRST_COMPLETED)
        for future in finished:
            item = under_way.pop(future)
            store.write(item, future.result())
            done.add(item.key)
            if report is not None:
                report(len(done), len(everything), item.name)


def _files(store: Store, item: Item) -> Files:
    files = store.read(item)
    if files is None:
        raise UndershootError(f"{store.path(item)} vanished while it was needed; go on with --resume")
    return files
