"""undershoot solve, undershoot bench"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from undershoot.cli.terminal import AsJson, PuzzleName, Seed, plain, print_json, progress, stdout
from undershoot.errors import UndershootError

if TYPE_CHECKING:
    from undershoot.arrays import States
    from undershoot.experiments.comparison import Summary
    from undershoot.guarantees import Heuristic
    from undershoot.puzzles.puzzle import Puzzle
    from undershoot.search.options import SearchOptions
    from undershoot.search.results import Result

Weight = Annotated[float, typer.Option(help="f = g + weight * h; 1 is plain A*.")]
TieRule = Annotated[str, typer.Option("--ties", metavar="deep|shallow", help="Which node of equal f comes first.")]
MaxExpanded = Annotated[int | None, typer.Option(help="Stop an instance after so many expansions.")]
MaxSeconds = Annotated[float | None, typer.Option(help="Stop an instance after so many seconds.")]
MaxMemory = Annotated[str | None, typer.Option(metavar="SIZE", help="All instances together, such as 500M or 4G.")]


def solve(
    puzzle: PuzzleName,
    state: Annotated[str | None, typer.Argument(metavar="[STATE]", help="A state or a scramble, in quotes.")] = None,
    random: Annotated[int | None, typer.Option(metavar="N", help="N uniformly random states.")] = None,
    scramble_depth: Annotated[int | None, typer.Option(metavar="D", help="The goal, scrambled by D moves.")] = None,
    heuristic: Annotated[
        str | None, typer.Option(help="learned, base, zero, table, gf2, linear-conflict, or a bundle's path; a+b: the larger.")
    ] = None,
    weight: Weight = 1.0,
    ties: TieRule = "deep",
    max_expanded: MaxExpanded = None,
    max_seconds: MaxSeconds = None,
    max_memory: MaxMemory = None,
    show: Annotated[bool, typer.Option("--show", help="Step through the solution.")] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Solve a state, a scramble or random states, optimally if the heuristic allows.

    Where a learned heuristic comes with the package, that is used; otherwise the puzzle's own, `base`.
    """
    from undershoot.bundles.loading import default_heuristic
    from undershoot.bundles.loading import heuristic as named
    from undershoot.experiments.instances import scrambled_instances, uniform_instances
    from undershoot.kernels.streams import Purpose
    from undershoot.puzzles.catalogue import puzzle as by_name
    from undershoot.search.astar import solve_many

    if sum(given is not None for given in (state, random, scramble_depth)) > 1:
        raise UndershootError("a state, --random and --scramble-depth exclude one another; give one of them")
    options = _options(weight, ties, max_expanded, max_seconds, max_memory)
    chosen = by_name(puzzle)
    if state is not None:
        states = chosen.parse(state)
    elif scramble_depth is not None:
        states = scrambled_instances(chosen, [scramble_depth], 1, seed, Purpose.INSTANCES).states
    else:
        states = uniform_instances(chosen, 1 if random is None else random, seed, Purpose.INSTANCES).states
    guide = named(chosen, heuristic or default_heuristic(chosen))
    with progress(f"solving {chosen.name}", len(states)) as report:
        results = solve_many(chosen, states, guide, options, progress=lambda done: report(done, guide.name))
    if as_json:
        found = [_result_fields(chosen, states, i, result) for i, result in enumerate(results)]
        print_json({"puzzle": chosen.name, "heuristic": guide.name, "guarantee": str(guide.guarantee), "results": found})
    elif len(results) == 1:
        _show_one(chosen, states, guide, results[0], show)
    else:
        _show_many(chosen, states, guide, results)
    if not all(result.cost is not None for result in results):
        raise typer.Exit(1)


def bench(
    puzzle: PuzzleName,
    heuristics: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Which to compare: names, or paths of bundles.")
    ] = None,
    random: Annotated[int | None, typer.Option(metavar="N", help="N uniformly random states.")] = None,
    scrambles: Annotated[
        str | None, typer.Option(metavar="DEPTHS", help="Scrambles of these depths: 10, 1..10 or 2,4.")
    ] = None,
    per_depth: Annotated[int, typer.Option(help="How many scrambles of each depth.")] = 100,
    instances: Annotated[Path | None, typer.Option(metavar="FILE", help="One state a line.")] = None,
    weight: Weight = 1.0,
    ties: TieRule = "deep",
    max_expanded: MaxExpanded = None,
    max_seconds: MaxSeconds = None,
    max_memory: MaxMemory = None,
    threads: Annotated[int, typer.Option(help="Spread the instances over so many.")] = 1,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a record of each instance, as Parquet.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Compare heuristics on the same instances."""
    from dataclasses import asdict

    from undershoot.bundles.loading import default_heuristic
    from undershoot.bundles.loading import heuristic as named
    from undershoot.experiments.comparison import check_records, compare, write_records
    from undershoot.experiments.instances import parse_depths, read_instances, scrambled_instances, uniform_instances
    from undershoot.kernels.streams import Purpose
    from undershoot.puzzles.catalogue import puzzle as by_name

    if sum(given is not None for given in (random, scrambles, instances)) > 1:
        raise UndershootError("--random, --scrambles and --instances exclude one another; give one of them")
    options = _options(weight, ties, max_expanded, max_seconds, max_memory)
    if out is not None:
        check_records(out)
    chosen = by_name(puzzle)
    if instances is not None:
        posed = read_instances(chosen, instances)
    elif scrambles is not None:
        posed = scrambled_instances(chosen, parse_depths(scrambles), per_depth, seed, Purpose.INSTANCES)
    else:
        posed = uniform_instances(chosen, 100 if random is None else random, seed, Purpose.INSTANCES)
    if heuristics is None:
        heuristics = ",".join(dict.fromkeys((default_heuristic(chosen), "base", "zero")))
    guides = [named(chosen, name.strip()) for name in heuristics.split(",") if name.strip()]
    if not guides:
        raise UndershootError("no heuristics are named; write for example --heuristics base,zero")
    with progress(f"searching {chosen.name}", len(guides) * len(posed.states)) as report:
        summaries, records = compare(chosen, posed, guides, options, threads, report)
    refusal: UndershootError | None = None
    if out is not None:
        try:
            write_records(out, records)
        except UndershootError as error:  # what was found is shown nevertheless
            refusal = error
    if as_json:
        document = {"puzzle": chosen.name, "population": posed.population, "instances": len(posed.states)}
        print_json({**document, "heuristics": [asdict(summary) for summary in summaries]})
    else:
        _show_summaries(f"{chosen.name}: {len(posed.states):,} instances ({posed.population})", summaries)
        if out is not None and refusal is None:
            stdout().print(f"{len(records):,} records written to {out}", soft_wrap=True)
    if refusal is not None:
        raise refusal


def _show_summaries(title: str, summaries: "list[Summary]") -> None:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, padding=(0, 2))
    table.add_column("")
    for s in summaries:
        table.add_column(s.name, justify="right")
    rows = {
        "guarantee": [s.guarantee for s in summaries],
        "solved": [f"{s.solve_rate:.1%}" for s in summaries],
        "proven optimal": [f"{s.proven_rate:.1%}" for s in summaries],
        "expanded, mean": [f"{s.mean_expanded:,.1f}" for s in summaries],
        "  where all solved": [_or_dash(s.mean_expanded_common, ",.1f") for s in summaries],
        "  of these, f < cost": [_or_dash(s.mean_expanded_below, ",.1f") for s in summaries],
        "reopened": [f"{s.reopened:,}" for s in summaries],
        "gap": [_or_dash(s.gap_percent, ".2f", " %") for s in summaries],
        "expanded per second": [f"{s.expanded_per_second:,.0f}" for s in summaries],
        "seconds": [f"{s.seconds:.3f}" for s in summaries],
        "peak memory": [f"{s.peak_bytes / 1e6:,.1f} MB" for s in summaries],
    }
    for label, cells in rows.items():
        table.add_row(plain(label, "dim"), *cells)
    console = stdout()
    console.print(table)
    about = "Means are over all instances; the gap is to the best lower bound known, over what was solved."
    console.print(about, style="dim")


def _options(
    weight: float, ties: str, max_expanded: int | None, max_seconds: float | None, max_memory: str | None
) -> "SearchOptions":
    from undershoot.search.options import SearchOptions, Ties

    if ties not in list(Ties):
        raise UndershootError(f'--ties is "{ties}"; allowed are {" and ".join(Ties)}')
    memory = None if max_memory is None else parse_bytes(max_memory)
    return SearchOptions(weight, Ties(ties), 1, max_expanded, max_seconds, memory)


def parse_bytes(text: str) -> int:
    """500M, 4G, 1.5GiB or a number of bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(i?[bB])?\s*", text)
    if not match:
        raise UndershootError(f'"{text}" is no amount of memory; write 500M, 4G or a number of bytes')
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def _or_dash(value: float | None, form: str, unit: str = "") -> str:
    return "-" if value is None else f"{value:{form}}{unit}"


def _result_fields(puzzle: "Puzzle", states: "States", i: int, result: "Result") -> dict[str, Any]:
    from dataclasses import asdict

    fields = {"state": puzzle.format(states[i : i + 1]), **asdict(result)}
    fields["status"] = result.status.value
    fields["actions"] = list(result.actions)
    fields["optimality"] = result.optimality.kind.value
    fields |= {"factor": result.optimality.factor, "probability": result.optimality.probability}
    return fields


def _show_one(puzzle: "Puzzle", states: "States", guide: "Heuristic", result: "Result", show: bool) -> None:
    import numpy as np

    from undershoot.puzzles.notation import play

    console = stdout()
    console.print(puzzle.draw(states), "")
    if result.cost is None:
        stopped = plain("").append(result.status.sentence, "bold red")
        console.print(stopped.append(f". Every solution costs at least {result.lower_bound}."))
    else:
        moves = " ".join(result.actions) or "(already solved)"
        console.print(moves, style="bold green", soft_wrap=True)
        console.print(f"cost {result.cost}: {result.optimality} (cost - lower bound = {result.gap})")
    console.print(
        f"{result.expanded:,} expanded, {result.generated:,} generated, {result.evaluated:,} evaluated, "
        f"{result.reopened:,} reopened, {result.seconds:.3f} s; heuristic {guide.name}: {guide.guarantee}"
    )
    if result.overestimates:
        console.print(f"h was above the true cost of {result.overestimates} states along the solution", style="yellow")
    if show:
        state, names = states[0], puzzle.table.action_names
        for k, action in enumerate(result.actions, start=1):
            state = play(puzzle.table, state, [names.index(action)])
            console.print(f"\n{k}. {action}")
            console.print(puzzle.draw(np.asarray(state)[None]))


def _show_many(puzzle: "Puzzle", states: "States", guide: "Heuristic", results: "list[Result]") -> None:
    from rich.table import Table

    table = Table("cost", "bound", "expanded", "seconds", "optimality", "solution", box=None, padding=(0, 1))
    for column in table.columns[:4]:
        column.justify = "right"
    for result in results:
        table.add_row(
            _or_dash(result.cost, "d"),
            str(result.lower_bound),
            f"{result.expanded:,}",
            f"{result.seconds:.3f}",
            result.status.value if result.cost is None else result.optimality.kind.value,
            " ".join(result.actions),
        )
    console = stdout()
    console.print(table)
    solved = [result for result in results if result.cost is not None]
    proven = sum(result.optimality.kind.value == "proven" for result in results)
    console.print(
        f"{len(solved):,} of {len(results):,} solved, {proven:,} proven optimal, "
        f"{sum(result.expanded for result in results):,} expanded; heuristic {guide.name}: {guide.guarantee}"
    )
