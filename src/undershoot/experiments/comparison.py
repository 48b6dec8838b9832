"""The same instances for several heuristics."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from undershoot.errors import Contradiction, UndershootError, cannot
from undershoot.experiments.instances import Instances
from undershoot.experiments.spreading import searching
from undershoot.experiments.store import table_bytes
from undershoot.files import check_writable, written_atomically
from undershoot.guarantees import Heuristic, Standing
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.astar import Batch
from undershoot.search.options import SearchOptions
from undershoot.search.results import Result


@dataclass(frozen=True)
class Summary:
    """One heuristic on all instances."""

    name: str
    guarantee: str
    """proven, proven within R (of the goal), sampled or none; and "provided" where it rests on what nobody can check."""
    solve_rate: float
    mean_expanded: float
    """Over all instances; those that were stopped count with what they had expanded."""
    mean_expanded_common: float | None
    """Over the instances that every heuristic solved."""
    mean_expanded_below: float | None
    """Of the nodes with f below the final cost, over the instances that every heuristic solved."""
    reopened: int
    gap_percent: float | None
    """How much dearer solutions are than the best lower bound known, on average over what this one solved."""
    proven_rate: float
    """The share of instances with a solution that is proven optimal."""
    expanded_per_second: float
    seconds: float
    peak_bytes: int


class WrongKnownCost(UndershootError):
    """An instance is not as far from the goal as it is said to be. What was found is kept here."""

    def __init__(self, message: str, summaries: list[Summary], records: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.summaries = summaries
        self.records = records


def compare(
    puzzle: Puzzle,
    instances: Instances,
    heuristics: list[Heuristic],
    options: SearchOptions,
    threads: int = 1,
    progress: Callable[[int, str], None] | None = None,
    scheduler: str | None = None,
    guide: Heuristic | None = None,
) -> tuple[list[Summary], list[dict[str, Any]]]:
    """A summary for each heuristic, and a record for each instance and heuristic.

    scheduler: the address of a Dask scheduler whose workers do it, instead of threads of this machine. guide: of the algorithm
    `both`, for all of them.
    If a search contradicts a cost that is said to be known, WrongKnownCost is raised at the end, with both.

    Examples:
        >>> tiles = us.puzzle("tiles-3x3")
        >>> instances = us.Instances("uniform", tiles.sample(50, seed=0), (None,) * 50)
        >>> heuristics = [us.heuristic(tiles, name) for name in ("base", "learned")]
        >>> summaries, records = us.compare(tiles, instances, heuristics, us.SearchOptions())
        >>> for row in summaries:
        ...     print(row.name, row.mean_expanded, row.proven_rate)
        base 574.44 1.0
        learned, exhaustive 22.36 1.0
        >>> len(records)
        100
    """
    names = [heuristic.name for heuristic in heuristics]
    if len(set(names)) < len(names):
        raise UndershootError(f"a heuristic is named twice in {', '.join(names)}")
    batches: list[Batch] = []
    with searching(puzzle, options, threads, scheduler, guide) as search:
        for k, heuristic in enumerate(heuristics):
            done = k * len(instances.states)

            def report(ended: int, done: int = done, name: str = heuristic.name) -> None:
                if progress is not None:
                    progress(done + ended, name)

            batches.append(search(instances.states, heuristic, report))
    everyone = [all(batch.results[i].cost is not None for batch in batches) for i in range(len(instances.states))]
    check_agreement(heuristics, batches)
    summaries = [
        _summary(h, batch, everyone, _bounds(h, heuristics, batches)) for h, batch in zip(heuristics, batches, strict=True)
    ]
    records = [
        {
            "puzzle": puzzle.name,
            "population": instances.population,
            "instance": i,
            "state": puzzle.format(instances.states[i : i + 1]),
            "known_cost": instances.optimal_cost[i],
            "heuristic": heuristic.name,
            **record_of(batch, i),
        }
        for heuristic, batch in zip(heuristics, batches, strict=True)
        for i in range(len(instances.states))
    ]
    for i, known in enumerate(instances.optimal_cost):
        for batch in batches:
            if known is not None and (contrary := _contrary(batch.results[i], known)):
                message = f"instance {i + 1} is said to cost {known}, but {contrary}; correct the file"
                raise WrongKnownCost(message, summaries, records)
    return summaries, records


def _bounds(mine: Heuristic, heuristics: list[Heuristic], batches: list[Batch]) -> list[int]:
    """The best lower bound of each instance that rests on nothing but what is said beside this heuristic."""
    those = [batch for one, batch in zip(heuristics, batches, strict=True) if one is mine or not _rests_on(one)]
    return [
        max(results, key=lambda result: result.lower_bound).lower_bound
        for results in zip(*(b.results for b in those), strict=True)
    ]


def _rests_on(heuristic: Heuristic) -> str:
    """What bounds by it are true provided."""
    return heuristic.guarantee.provided if heuristic.guarantee.standing is Standing.PROVEN else ""


def check_agreement(heuristics: list[Heuristic], batches: list[Batch]) -> None:
    """No search may prove more than another one needs."""
    for i, results in enumerate(zip(*(batch.results for batch in batches), strict=True)):
        for one, claims in zip(heuristics, results, strict=True):
            for other, found in zip(heuristics, results, strict=True):
                if found.cost is not None and claims.lower_bound > found.cost:
                    raise Contradiction(
                        f"instance {i + 1} costs at least {claims.lower_bound} by {one.name}, but {other.name} found a "
                        f"solution of cost {found.cost}: one of them is wrong; report this"
                    )


def _contrary(result: Result, known: int) -> str:
    """What a search found that cannot be if the optimal cost is the known one; nothing if all can be."""
    cost, is_proven = result.cost, result.optimality.kind.value == "proven"
    if cost is not None and is_proven and cost != known:
        return f"{cost} is proven"
    if result.lower_bound > known:
        return f"no solution costs less than {result.lower_bound}, which is proven"
    return f"a solution of cost {cost} was found" if cost is not None and cost < known else ""


def record_of(batch: Batch, i: int) -> dict[str, Any]:
    """The fields of a result, for a table."""
    result = batch.results[i]
    fields = {**result.to_json(), "actions": " ".join(result.actions)}
    del fields["history"]
    return fields


def _summary(heuristic: Heuristic, batch: Batch, everyone: list[bool], bounds: list[int]) -> Summary:
    results = batch.results
    common = [result for result, shared in zip(results, everyone, strict=True) if shared]
    solved = [(r.cost, bound) for r, bound in zip(results, bounds, strict=True) if r.cost is not None]
    expanded = sum(result.expanded for result in results)
    return Summary(
        name=heuristic.name,
        guarantee=heuristic.guarantee.label,
        solve_rate=sum(result.cost is not None for result in results) / len(results),
        mean_expanded=expanded / len(results),
        mean_expanded_common=fmean(result.expanded for result in common) if common else None,
        mean_expanded_below=fmean(result.expanded_below or 0 for result in common) if common else None,
        reopened=sum(result.reopened for result in results),
        gap_percent=fmean(100 * (cost - bound) / max(1, bound) for cost, bound in solved) if solved else None,
        proven_rate=sum(result.optimality.kind.value == "proven" for result in results) / len(results),
        expanded_per_second=expanded / batch.seconds,
        seconds=batch.seconds,
        peak_bytes=batch.peak_bytes,
    )


def check_records(path: Path) -> None:
    """Refuse a place that no records can be written to, before there are any."""
    try:
        _check_no_link(path)
        check_writable(path)
    except OSError as error:
        raise cannot(f"write the records {path}", error, "choose another place") from error


def write_records(path: Path, records: list[dict[str, Any]]) -> None:
    """Parquet, one row a record."""
    data = table_bytes(records)
    try:
        _check_no_link(path)
        with written_atomically(path, follow_links=_is_of_the_system(path) or (path.exists() and not path.is_file())) as file:
            file.write(data)
    except OSError as error:
        raise cannot(f"write the records {path}", error) from error


def _check_no_link(path: Path) -> None:
    """Others may have put it there, and what it leads to is not ours to change."""
    if path.is_symlink() and not _is_of_the_system(path):
        raise UndershootError(f"{path} is a link, and records are not written through links; remove it or choose another place")


def _is_of_the_system(path: Path) -> bool:
    """Devices and open files, such as /dev/stdout, which are links."""
    folder = os.path.realpath(path.parent)
    return folder == "/dev" or folder.startswith("/proc/")
