"""undershoot bench"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from undershoot.cli.posing import (
    NAMES,
    AlgorithmName,
    Device,
    GuideName,
    InstanceFile,
    MaxExpanded,
    MaxMemory,
    MaxSeconds,
    PerStep,
    Random,
    Scheduler,
    Threads,
    TieRule,
    Weight,
    exclusive,
    heuristic_for,
    on_machine,
    options,
    random_or_listed,
    refuse_unread,
)
from undershoot.cli.terminal import AsJson, PuzzleName, Seed, or_dash, percent, plain, print_json, progress, show_table, stdout
from undershoot.errors import UndershootError

if TYPE_CHECKING:
    from undershoot.experiments.comparison import Summary
    from undershoot.experiments.instances import Instances
    from undershoot.puzzles.puzzle import Puzzle

USUAL_COUNT = 100


def bench(
    context: typer.Context,
    puzzle: PuzzleName,
    heuristics: Annotated[
        str | None, typer.Option(metavar="A,B,...", help=f"Which to compare: {NAMES}, or paths of bundles.")
    ] = None,
    random: Random = None,
    scrambles: Annotated[
        str | None, typer.Option(metavar="DEPTHS", help="Scrambles of these depths: 10, 1..10 or 2,4.")
    ] = None,
    per_depth: Annotated[int, typer.Option(help="How many scrambles of each depth.")] = 100,
    instances: InstanceFile = None,
    algorithm: AlgorithmName = "astar",
    guide: GuideName = None,
    weight: Weight = 1.0,
    ties: TieRule = "deep",
    expand_per_step: PerStep = 1,
    max_expanded: MaxExpanded = None,
    max_seconds: MaxSeconds = None,
    max_memory: MaxMemory = None,
    threads: Threads = 1,
    device: Device = "cpu",
    scheduler: Scheduler = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a record of each instance, as Parquet.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compare heuristics on the same instances."""
    from undershoot.bundles.loading import default_heuristic
    from undershoot.experiments.comparison import WrongKnownCost, check_records, compare, write_records
    from undershoot.puzzles.catalogue import puzzle as by_name

    exclusive(context, "random", "scrambles", "instances")
    exclusive(context, "instances", "seed")
    refuse_unread(context, {"per_depth": ("scrambles",)})
    how = options(weight, ties, expand_per_step, max_expanded, max_seconds, max_memory, algorithm, device)
    how, tables_on = on_machine(how, threads, scheduler)
    if out is not None:
        check_records(out)
    chosen = by_name(puzzle)
    posed = _posed(chosen, scrambles, per_depth, USUAL_COUNT if random is None else random, instances, seed)
    if heuristics is None:
        heuristics = ",".join(dict.fromkeys((default_heuristic(chosen, tables_on, how.max_memory), "base", "zero")))
    names = [name.strip() for name in heuristics.split(",") if name.strip()]
    chosen_heuristics = [heuristic_for(chosen, name, how.max_memory, device=tables_on) for name in names]
    if not chosen_heuristics:
        raise UndershootError("no heuristics are named; write for example --heuristics base,zero")
    guided_by = None if guide is None else heuristic_for(chosen, guide, how.max_memory)
    refusal: UndershootError | None = None  # what was found is shown nevertheless
    try:
        with progress(f"searching {chosen.name}", len(chosen_heuristics) * len(posed.states)) as report:
            summaries, records = compare(chosen, posed, chosen_heuristics, how, threads, report, scheduler, guided_by)
    except WrongKnownCost as error:
        summaries, records, refusal = error.summaries, error.records, error
    is_written = False
    if out is not None:
        try:
            write_records(out, records)
            is_written = True
        except UndershootError as error:
            refusal = error if refusal is None else UndershootError(f"{refusal}. And {error}")
    if as_json:
        document = {
            "puzzle": chosen.name,
            "population": posed.population,
            "algorithm": algorithm,
            "guide": None if guided_by is None else guided_by.name,
            "instances": len(posed.states),
        }
        print_json({**document, "heuristics": [asdict(summary) for summary in summaries]})
    else:
        _show_summaries(f"{chosen.name}: {len(posed.states):,} instances ({posed.population})", summaries)
        if is_written:
            stdout().print(f"{len(records):,} records written to {out}", soft_wrap=True)
    if refusal is not None:
        raise refusal


def _posed(
    puzzle: "Puzzle", scrambles: str | None, per_depth: int, random: int, instances: Path | None, seed: int
) -> "Instances":
    """Those that were asked for."""
    from undershoot.experiments.instances import parse_depths, scrambled_instances
    from undershoot.kernels.streams import Purpose

    if scrambles is not None:
        return scrambled_instances(puzzle, parse_depths(scrambles), per_depth, seed, Purpose.INSTANCES)
    return random_or_listed(puzzle, random, instances, seed)


def _show_summaries(title: str, summaries: "list[Summary]") -> None:
    rows = {
        "guarantee": [s.guarantee for s in summaries],
        "solved": [percent(s.solve_rate) for s in summaries],
        "proven optimal": [percent(s.proven_rate) for s in summaries],
        "expanded, mean": [f"{s.mean_expanded:,.1f}" for s in summaries],
        "  where all solved": [or_dash(s.mean_expanded_common, ",.1f") for s in summaries],
        "  of these, f < cost": [or_dash(s.mean_expanded_below, ",.1f") for s in summaries],
        "reopened": [f"{s.reopened:,}" for s in summaries],
        "gap": [or_dash(s.gap_percent, ".2f", " %") for s in summaries],
        "expanded per second": [f"{s.expanded_per_second:,.0f}" for s in summaries],
        "seconds": [f"{s.seconds:.3f}" for s in summaries],
        "peak memory": [f"{s.peak_bytes / 1e6:,.1f} MB" for s in summaries],
    }
    cells = [[plain(label, "dim"), *values] for label, values in rows.items()]
    show_table(["", *(s.name for s in summaries)], cells, title, padding=2)
    about = "Means are over all instances; the gap is to the best lower bound known, over what was solved."
    stdout().print(about, style="dim")
