"""undershoot reproduce"""

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from undershoot.cli.interruption import Interrupted
from undershoot.cli.terminal import AsJson, print_json, progress, stdout
from undershoot.errors import UndershootError

if TYPE_CHECKING:
    from undershoot.experiments.protocol import Profile
    from undershoot.experiments.report import Report


MOST_WORKERS = 256


def reproduce(
    profile: Annotated[str, typer.Option(metavar="quick|paper", help="A few minutes, or the full protocol.")] = "quick",
    only: Annotated[list[str] | None, typer.Option(metavar="PART", help="Some parts; report draws what is there.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Trainings of each kind; the profile says otherwise.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="runs/reproduce-PROFILE if not given.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; one a core if not given.")] = None,
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, tcp://HOST:PORT.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make the paper's tables and figures anew, as a report with a verdict on each of its claims."""
    from undershoot.experiments.executors import cluster, processes
    from undershoot.experiments.protocol import PARTS, items
    from undershoot.experiments.report import make_report
    from undershoot.experiments.runner import run, with_needs
    from undershoot.experiments.store import Store
    from undershoot.experiments.work import environment

    plan = _profile(profile, seeds)
    parts = tuple(only or PARTS)
    for part in parts:
        if part not in PARTS:
            raise UndershootError(f'no part "{part}"; there are {", ".join(PARTS)}')
    if workers is not None and not 1 <= workers <= MOST_WORKERS:
        raise UndershootError(f"--workers is {workers}; allowed are 1 to {MOST_WORKERS}")
    if workers is not None and scheduler is not None:
        raise UndershootError(
            "--workers is for processes of this machine; with --scheduler, start as many Dask workers as you want"
        )
    count = workers or os.cpu_count() or 1
    folder = out or Path("runs") / f"reproduce-{plan.name}"
    store = Store(folder, plan.to_dict())
    if not store.is_new and not resume and parts != ("report",):
        raise UndershootError(f"{folder} holds a reproduction already; go on with --resume, or choose another --out")
    chosen = [item for part in items(plan, parts).values() for item in part]
    began = time.perf_counter()
    known = list(with_needs(item for part in items(plan).values() for item in part).values())
    try:
        if chosen:
            store.begin({"command": shlex.join(["undershoot", *sys.argv[1:]]), **environment()})
            with progress(f"reproducing, {plan.name}", len(with_needs(chosen))) as show:
                executor = (lambda: processes(count)) if scheduler is None else (lambda: cluster(scheduler))
                run(chosen, store, executor, lambda ended, _, name: show(ended, name))
        seconds = time.perf_counter() - began
        report = make_report(store, plan, known)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; what was done is kept, go on with --resume") from None
    page = folder / "report" / "index.html"
    if as_json:
        tables = [{"key": t.key, "title": t.title, "columns": t.columns, "rows": t.rows} for t in report.tables]
        claims = [vars(verdict) for verdict in report.verdicts]
        print_json({"profile": plan.name, "seconds": seconds, "report": str(page), "tables": tables, "verdicts": claims})
        return
    _show(report, seconds, page)


def _profile(name: str, seeds: int | None) -> "Profile":
    from dataclasses import replace

    from undershoot.experiments.protocol import PROFILES

    if name not in PROFILES:
        raise UndershootError(f'no profile "{name}"; there are {" and ".join(PROFILES)}')
    found = PROFILES[name]
    if seeds is None:
        return found
    if not 1 <= seeds <= 1000:
        raise UndershootError(f"{seeds} seeds were asked for; allowed are 1 to 1,000")
    return replace(found, seeds=tuple(range(seeds)))


def _show(report: "Report", seconds: float, page: Path) -> None:
    from rich.table import Table

    from undershoot.experiments.tables import SOLVED_ONLY

    console = stdout()
    kept = ("heuristic", "admissible, all states", "solved", "expanded, all", SOLVED_ONLY, "gap")
    for found in report.tables:
        if not found.key.startswith("table1") or not found.key.endswith("published"):
            continue
        table = Table(title=found.title, title_justify="left", box=None, padding=(0, 1))
        places = [found.columns.index(name) for name in kept]
        for name in kept:
            table.add_column(name, justify="left" if name == "heuristic" else "right")
        for row in found.rows:
            table.add_row(*(row[place] for place in places))
        console.print(table, "")
    for verdict in report.verdicts:
        console.print(f"{verdict.verdict}: {verdict.claim}. {verdict.reason}.")
    console.print("[Figures in brackets] are the paper's. Pieces of work: " + report.about["work"] + ".")
    console.print(f"\n{seconds:.0f} s of computing; the report: {page}", soft_wrap=True)
