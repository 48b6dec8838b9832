"""The paper's experiments, from the first training to the report."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from undershoot.errors import UndershootError
from undershoot.experiments.executors import cluster, processes
from undershoot.experiments.items import Item
from undershoot.experiments.protocol import PARTS, PROFILES, Profile, items
from undershoot.experiments.report import Report, make_report
from undershoot.experiments.runner import run, with_needs
from undershoot.experiments.store import Store
from undershoot.experiments.work import environment

MOST_WORKERS, MOST_SEEDS = 256, 1000
Progress = Callable[[int, str, int | None], None]


@dataclass(frozen=True, eq=False)
class Reproduced:
    """The report, and where it is."""

    report: Report
    page: Path
    seconds: float
    """Of computing, this time."""


def reproduce(
    profile: str = "quick",
    only: Sequence[str] = (),
    seeds: int | None = None,
    out: Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    command: str = "us.reproduce",
    progress: Progress | None = None,
) -> Reproduced:
    """Make the paper's tables and figures anew, as a report with a verdict on each of its claims.

    only: some parts, all if none are named; "report" draws what is there. seeds: trainings of each kind, if not as many as the
    profile says. out: runs/reproduce-PROFILE if not given. workers: processes, one a core if not given; or scheduler: the
    address of a Dask scheduler. resume: go on with what is there. command: what is said to have made it.

    Examples:
        >>> made = us.reproduce("quick", only=["ablation"])  # half a minute
        >>> made.page.as_posix()
        'runs/reproduce-quick/report/index.html'
        >>> made.report.tables[0].title
        "The ablation (the paper's Table 2)"
    """
    plan, parts = _profile(profile, seeds), tuple(only or PARTS)
    for part in parts:
        if part not in PARTS:
            raise UndershootError(f'no part "{part}" for --only; there are {", ".join(PARTS)}')
    if workers is not None and not 1 <= workers <= MOST_WORKERS:
        raise UndershootError(f"--workers is {workers}; allowed are 1 to {MOST_WORKERS}")
    if workers is not None and scheduler is not None:
        raise UndershootError(
            "--workers is for processes of this machine; with --scheduler, start as many Dask workers as you want"
        )
    folder = out or Path("runs") / f"reproduce-{plan.name}"
    store = Store(folder, plan.to_dict())
    if not store.is_new and not resume and parts != ("report",):
        raise UndershootError(f"{folder} holds a reproduction already; go on with --resume, or choose another --out")
    chosen = [item for part in items(plan, parts).values() for item in part]
    began = time.perf_counter()
    if chosen:
        store.begin({"command": command, **environment()})
        count = workers or os.cpu_count() or 1
        executor = (lambda: processes(count)) if scheduler is None else (lambda: cluster(scheduler))

        def report(ended: int, whole: int, name: str) -> None:
            if progress is not None:
                progress(ended, name, whole)

        run(chosen, store, executor, report)
    seconds = time.perf_counter() - began
    everything = list(with_needs(item for part in items(plan).values() for item in part).values())
    return Reproduced(_reported(store, plan, everything), folder / "report" / "index.html", seconds)


def _reported(store: Store, plan: Profile, everything: list[Item]) -> Report:
    """The report; what is no record among what others made is said to be that."""
    try:
        return make_report(store, plan, everything)
    except UndershootError:
        raise
    except Exception as error:  # columns of any names and types fail in more ways than can be listed
        if not store.foreign:
            raise
        raise UndershootError(
            f"{store.folder} holds records that this installation did not make and cannot read ({error}); remove its items, or "
            "choose another folder with --out"
        ) from error


def _profile(name: str, seeds: int | None) -> Profile:
    if name not in PROFILES:
        raise UndershootError(f'no profile "{name}"; there are {" and ".join(PROFILES)}')
    if seeds is None:
        return PROFILES[name]
    if not 1 <= seeds <= MOST_SEEDS:
        raise UndershootError(f"{seeds} seeds were asked for (--seeds); allowed are 1 to {MOST_SEEDS:,}")
    return replace(PROFILES[name], seeds=tuple(range(seeds)))
