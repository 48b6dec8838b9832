"""undershoot reproduce"""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from undershoot.cli.interruption import Interrupted
from undershoot.cli.terminal import AsJson, plain, print_json, progress, show_table, stdout

if TYPE_CHECKING:
    from undershoot.experiments.report import Report


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
    from undershoot.workflows.reproduction import reproduce as run

    command = shlex.join(["undershoot", *sys.argv[1:]])
    try:
        with progress(f"reproducing, {profile}") as report:
            made = run(profile, only or (), seeds, out, workers, scheduler, resume, command, report)
    except KeyboardInterrupt:
        kept = (out or Path("runs") / f"reproduce-{profile}").exists()
        raise Interrupted("interrupted" + ("; what was done is kept, go on with --resume" if kept else "")) from None
    if as_json:
        tables = [{"key": t.key, "title": t.title, "columns": t.columns, "rows": t.rows} for t in made.report.tables]
        claims = [vars(verdict) for verdict in made.report.verdicts]
        about = {"profile": profile, "seconds": made.seconds, "report": str(made.page)}
        print_json({**about, "tables": tables, "verdicts": claims})
        return
    _show(made.report, made.seconds, made.page)


def _show(report: "Report", seconds: float, page: Path) -> None:
    from undershoot.errors import shown
    from undershoot.experiments.tables import SOLVED_ONLY

    console = stdout()
    kept = ("heuristic", "admissible, all states", "solved", "expanded, all", SOLVED_ONLY, "gap")
    for found in report.tables:
        if not found.key.startswith("table1") or not found.key.endswith("published"):
            continue
        places = [found.columns.index(name) for name in kept]
        show_table(kept, [[plain(shown(row[place])) for place in places] for row in found.rows], found.title)
        console.print()
    for verdict in report.verdicts:
        console.print(f"{verdict.verdict}: {verdict.claim}. {verdict.reason}.")
    console.print("[Figures in brackets] are the paper's. Pieces of work: " + report.about["work"] + ".")
    console.print(f"\n{seconds:.0f} s of computing; the report: {page}", soft_wrap=True)
