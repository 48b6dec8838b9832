"""undershoot solve"""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from undershoot.cli.meeting import Loading, loading, show_meeting
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
)
from undershoot.cli.terminal import AsJson, PuzzleName, Seed, plain, print_json, progress, stdout

if TYPE_CHECKING:
    from pathlib import Path

    from undershoot.arrays import States
    from undershoot.guarantees import Heuristic
    from undershoot.puzzles.puzzle import Puzzle
    from undershoot.search.options import Algorithm
    from undershoot.search.results import Result


def solve(
    context: typer.Context,
    puzzle: PuzzleName,
    state: Annotated[str | None, typer.Argument(metavar="[STATE]", help="A state or a scramble, in quotes.")] = None,
    random: Random = None,
    scramble_depth: Annotated[int | None, typer.Option(metavar="D", help="The goal, scrambled by D moves.")] = None,
    instances: InstanceFile = None,
    heuristic: Annotated[str | None, typer.Option(help=f"{NAMES}, or the path of a bundle; a+b is the larger.")] = None,
    algorithm: AlgorithmName = "auto",
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
    show: Annotated[bool, typer.Option("--show", help="Step through the solutions.")] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Solve a state, a scramble, states of a file or random states, optimally if the heuristic allows.

    Where a learned heuristic comes with the package, that is used; otherwise patterns, whose tables are made on first use, or
    for puzzles without pieces their own heuristic, `base`. Networks on patterns give way to tables that were made already. Two
    bounds are printed as they move.
    """
    from undershoot.experiments.spreading import searching
    from undershoot.puzzles.catalogue import puzzle as by_name
    from undershoot.search.both import improve
    from undershoot.search.solving import check_reads_guide, choose, placed

    exclusive(context, "state", "random", "scramble_depth", "instances")
    exclusive(context, "state", "seed")
    exclusive(context, "instances", "seed")
    how = options(weight, ties, expand_per_step, max_expanded, max_seconds, max_memory, algorithm, device)
    how, tables_on = on_machine(how, threads, scheduler)
    chosen = by_name(puzzle)
    states = _states(chosen, state, scramble_depth, 1 if random is None else random, instances, seed)
    chosen.check_solvable(states)
    with loading() as loaded:
        used = _heuristic(chosen, heuristic, how.max_memory, loaded.made, tables_on)
        guided_by = None if guide is None else heuristic_for(chosen, guide, how.max_memory, loaded.made)
    how = placed(how, used, threads)
    first, reason = choose(chosen, used, how, guided_by)
    check_reads_guide(first, guided_by)
    is_shown = len(states) == 1 and first.value == "both" and scheduler is None and not as_json
    if is_shown:
        stdout().print(chosen.draw(states), "")
        results = [show_meeting(chosen, improve(chosen, states, used, guided_by, how, threads))]
    else:
        searches = searching(chosen, how, threads, scheduler, guided_by)
        with progress(f"solving {chosen.name}", len(states)) as report, searches as search:
            results = search(states, used, lambda done: report(done, used.name)).results
    if as_json:
        about = {
            "guide": (guided_by or used).name if first.value == "both" else None,
            "algorithm": first.value,
            "reason": reason,
            "device": how.device,
            "loading_seconds": loaded.seconds,
            "tables_made": sorted(loaded.made),
        }
        _print_json(chosen, states, used, results, about)
    elif len(results) == 1:
        if not is_shown:
            stdout().print(chosen.draw(states), "")
        _show_one(chosen, states, used, results[0], show, _why(results, first, reason))
        _say_loading(loaded)
    else:
        _show_many(chosen, states, used, results, show, _why(results, first, reason))
    if not all(result.cost is not None for result in results):
        raise typer.Exit(1)


def _states(
    puzzle: "Puzzle", state: str | None, scramble_depth: int | None, random: int, instances: "Path | None", seed: int
) -> "States":
    """Those that were asked for."""
    from undershoot.experiments.instances import scrambled_instances
    from undershoot.kernels.streams import Purpose

    if state is not None:
        return puzzle.parse(state)
    if scramble_depth is not None:
        return scrambled_instances(puzzle, [scramble_depth], 1, seed, Purpose.INSTANCES).states
    return random_or_listed(puzzle, random, instances, seed).states


def _print_json(puzzle: "Puzzle", states: "States", used: "Heuristic", results: "list[Result]", about: dict[str, Any]) -> None:
    found = [{"state": puzzle.format(states[i : i + 1]), **result.to_json()} for i, result in enumerate(results)]
    document = {"puzzle": puzzle.name, "heuristic": used.name, "guarantee": str(used.guarantee), **about, "results": found}
    print_json(document)


def _show_one(puzzle: "Puzzle", states: "States", used: "Heuristic", result: "Result", show: bool, why: str) -> None:
    console = stdout()
    if result.cost is None:
        console.print(plain("").append(result.status.sentence, "bold red").append(_bound(result)))
    else:
        moves = " ".join(result.actions) or "(already solved)"
        console.print(moves, style="bold green", soft_wrap=True)
        console.print(f"cost {result.cost}: {result.optimality} (cost - lower bound = {result.gap})")
    console.print(
        f"{result.expanded:,} expanded, {result.generated:,} generated, {result.evaluated:,} evaluated, "
        f"{result.reopened:,} reopened, {result.seconds:.3f} s"
    )
    console.print(f"{why}; heuristic {used.name}: {used.guarantee}")
    if result.overestimates:
        console.print(f"h was above the true cost of {result.overestimates} states along the solution", style="yellow")
    if show:
        _step_through(console, puzzle, states, result)


def _say_loading(loaded: Loading) -> None:
    """What no limit was charged for, if that took long."""
    if loaded.made:
        tables = "1 table of patterns was" if len(loaded.made) == 1 else f"{len(loaded.made)} tables of patterns were"
        stdout().print(f"{tables} made first, once, in {loaded.seconds:.1f} s", style="dim")


def _heuristic(puzzle: "Puzzle", name: str | None, max_memory: int | None, made: set[str], device: str) -> "Heuristic":
    """The one of this name, or the best that there is; where patterns turn out not to be, the puzzle's own."""
    from undershoot.bundles.loading import default_heuristic
    from undershoot.errors import NotAvailable

    if name is not None:
        return heuristic_for(puzzle, name, max_memory, made, device)
    try:
        return heuristic_for(puzzle, default_heuristic(puzzle, device, max_memory), max_memory, made, device)
    except NotAvailable as reason:
        print(f"undershoot: {reason}; taking base", file=sys.stderr)
        made.clear()
        return heuristic_for(puzzle, "base")


def _why(results: "list[Result]", first: "Algorithm", reason: str) -> str:
    """Which algorithm searched, and why."""
    others = [result.algorithm for result in results if result.algorithm != first]
    then = f", then {others[0].shown} for {len(others):,} that limits stopped" if others else ""
    return f"{first.shown} {reason}{then}"


def _bound(result: "Result") -> str:
    """What is known of a state that was not solved; of one that cannot be solved there is nothing to bound."""
    return "." if result.status.value == "unsolvable" else f". Every solution costs at least {result.lower_bound}."


def _step_through(console: Any, puzzle: "Puzzle", states: "States", result: "Result") -> None:
    import numpy as np

    from undershoot.puzzles.notation import play

    at, names = states[0], puzzle.table.action_names
    for number, action in enumerate(result.actions, start=1):
        at = play(puzzle.table, at, [names.index(action)])
        console.print(f"\n{number}. {action}")
        console.print(puzzle.draw(np.asarray(at)[None]))


def _show_many(puzzle: "Puzzle", states: "States", used: "Heuristic", results: "list[Result]", show: bool, why: str) -> None:
    """For each the state, the solution, and in one line what is known of it."""
    console = stdout()
    for i, result in enumerate(results):
        console.print(f"{i + 1}. {puzzle.format(states[i : i + 1])}", soft_wrap=True)
        work = f"{result.expanded:,} expanded, {result.seconds:.3f} s"
        if result.cost is None:
            console.print(plain("   ").append(result.status.sentence, "bold red").append(_bound(result) + f" {work}"))
            continue
        console.print(plain("   ").append(" ".join(result.actions) or "(already solved)", "bold green"), soft_wrap=True)
        console.print(f"   cost {result.cost}: {result.optimality}; {work}")
        if show:
            _step_through(console, puzzle, states[i : i + 1], result)
    solved = [result for result in results if result.cost is not None]
    proven = sum(result.optimality.kind.value == "proven" for result in results)
    console.print(
        f"{len(solved):,} of {len(results):,} solved, {proven:,} proven optimal, "
        f"{sum(result.expanded for result in results):,} expanded"
    )
    console.print(f"{why}; heuristic {used.name}: {used.guarantee}")
