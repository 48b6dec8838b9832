"""The same searches on this machine, or cut into chunks for the workers of a cluster."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from undershoot.arrays import States
from undershoot.errors import UndershootError, what_came
from undershoot.experiments.executors import Workers, cluster
from undershoot.guarantees import Guarantee, Heuristic
from undershoot.heuristics.analytic import Additive, FewestPresses, LinearConflict
from undershoot.heuristics.calibrated import CalibratedHeuristic
from undershoot.heuristics.catalogue import HEURISTICS
from undershoot.heuristics.catalogue import heuristic as named
from undershoot.heuristics.combined import Largest
from undershoot.heuristics.learned_patterns import LearnedPatterns, learned_patterns
from undershoot.heuristics.neural import NeuralHeuristic
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.heuristics.patterns import PatternHeuristic, pattern_heuristic
from undershoot.heuristics.table import TableHeuristic
from undershoot.pattern_tables.looks import distinct_patterns
from undershoot.pattern_tables.sets import pattern_set
from undershoot.puzzles.definitions import Definition, definition_of, made_of
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search.astar import Batch
from undershoot.search.conclusions import check_answers
from undershoot.search.options import CPU, SearchOptions
from undershoot.search.solving import search_batch

CHUNKS_A_WORKER, LARGEST_CHUNK = 4, 1000
"""Several, since some instances take longer than others; but not so few instances that sending them takes longer."""

OURS = (Additive, FewestPresses, LinearConflict, TableHeuristic)
"""Whose names say all of them."""


class Search(Protocol):
    """Searches from states, uint8[N, n], with a heuristic; report is called with how many ended."""

    def __call__(self, states: States, heuristic: Heuristic, report: Callable[[int], None] | None = None) -> Batch:
        """Results are in the order of the states."""


@contextmanager
def searching(
    puzzle: Puzzle,
    options: SearchOptions,
    threads: int = 1,
    scheduler: str | None = None,
    guide: Heuristic | None = None,
) -> Iterator[Search]:
    """On threads of this machine, or by the workers of the Dask scheduler at this address: answers and counters are the same.

    A limit of memory is then one of each worker, and a chunk. guide: of the algorithm `both`.
    """
    if scheduler is None:

        def search(states: States, heuristic: Heuristic, report: Callable[[int], None] | None = None) -> Batch:
            return search_batch(puzzle, states, heuristic, options, threads=threads, progress=report, guide=guide)

        yield search
        return
    if options.device != CPU:
        raise UndershootError(
            "--device is for this machine; leave it out with --scheduler, whose workers search on their cores"
        )
    if threads != 1:
        raise UndershootError(
            "--threads is for this machine; with --scheduler, start as many Dask workers as you want, with one thread each"
        )
    with cluster(scheduler) as workers:
        yield partial(spread, workers, puzzle, options, guide=guide)


def spread(
    workers: Workers,
    puzzle: Puzzle,
    options: SearchOptions,
    states: States,
    heuristic: Heuristic,
    report: Callable[[int], None] | None = None,
    guide: Heuristic | None = None,
) -> Batch:
    """Cut the instances into chunks, let the workers search from them, and put the results together in order.

    The memory of the batch is that of the largest chunk.
    """
    puzzle.check_solvable(states)
    task = _Task(definition_of(puzzle), _packed(heuristic), options, () if guide is None else _packed(guide))
    size = min(LARGEST_CHUNK, max(1, -(-len(states) // (CHUNKS_A_WORKER * workers.count))))
    waiting = iter(range(0, len(states), size))
    under_way: dict[Future[Batch], int] = {}
    found: dict[int, Batch] = {}
    began, done = time.perf_counter(), 0
    while True:
        while len(under_way) < 2 * workers.count and (start := next(waiting, None)) is not None:
            under_way[workers.submit(do_chunk, task, states[start : start + size])] = start
        if not under_way:
            break
        finished, _ = wait(under_way, return_when=FIRST_COMPLETED)
        for future in finished:
            start = under_way.pop(future)
            try:
                found[start] = future.result()
            except CancelledError as error:
                raise UndershootError("the scheduler went away; start it and its workers again, and then the search") from error
            check_answers(puzzle, states[start : start + size], found[start].results)
            done += len(found[start].results)
            if report is not None:
                report(done)
    batches = [batch for _, batch in sorted(found.items())]
    results = [result for batch in batches for result in batch.results]
    largest = max((batch.peak_bytes for batch in batches), default=0)
    return Batch(results, time.perf_counter() - began, largest, states[:0])


@dataclass(frozen=True)
class PatternsByName:
    """A set of patterns, whose tables a worker makes or has."""

    name: str


@dataclass(frozen=True, eq=False)
class NetworksByPattern:
    """Networks on the patterns of a set, which a worker finds by its name in the puzzle that they were learned on; with what is
    known of them here."""

    name: str
    set_name: str
    guarantee: Guarantee
    networks: tuple[tuple[Any, ...], ...]
    """Of each, all but its pattern."""


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned on a puzzle, and is asked about that one there, too: another file with the same moves may mean other
    patterns by the same name."""

    puzzle: Definition
    part: Any


@dataclass(frozen=True, eq=False)
class _Task:
    """What a worker needs to know besides the states."""

    puzzle: Definition
    parts: tuple[Any, ...]
    options: SearchOptions
    guide: tuple[Any, ...] = ()


def do_chunk(task: _Task, states: States) -> Batch:
    """Search from these states, on a worker."""
    puzzle = made_of(task.puzzle)
    guide = _unpacked(puzzle, task.guide) if task.guide else None
    return search_batch(puzzle, states, _unpacked(puzzle, task.parts), task.options, guide=guide)


def _packed(heuristic: Heuristic) -> tuple[Any, ...]:
    """What travels: networks, with what is known of them here; and names of what is made there, as tables, which are large."""
    if isinstance(heuristic, Largest):
        return tuple(part for member in heuristic.members for part in _packed(member))
    # Copies: what was compiled for them here stays here.
    if isinstance(heuristic, CalibratedHeuristic) and isinstance(heuristic.network, NeuralHeuristic):
        copy = CalibratedHeuristic(replace(heuristic.network), heuristic.calibration)
        return (Learned(definition_of(heuristic.network.puzzle), copy),)
    if isinstance(heuristic, NeuralHeuristic):
        return (Learned(definition_of(heuristic.puzzle), replace(heuristic)),)
    if isinstance(heuristic, PatternHeuristic):
        return (PatternsByName(heuristic.set_name),)
    if isinstance(heuristic, LearnedPatterns) and heuristic.set_name is not None:
        networks = tuple(
            (one.network, one.residuals, one.thresholds, one.pairs, one.listed, one.listed_costs) for one in heuristic.networks
        )
        sent = NetworksByPattern(heuristic.name, heuristic.set_name, heuristic.guarantee, networks)
        return (Learned(definition_of(heuristic.puzzle), sent),)
    is_ball = isinstance(heuristic, TableHeuristic) and heuristic.distances.radius is not None
    if not isinstance(heuristic, OURS) or heuristic.name not in HEURISTICS or is_ball:
        raise UndershootError(f"the heuristic {heuristic.name} cannot be sent to other machines; leave --scheduler out")
    return (heuristic.name,)


def _unpacked(puzzle: Puzzle, parts: tuple[Any, ...]) -> Heuristic:
    members = tuple(_one(puzzle, part) for part in parts)
    return members[0] if len(members) == 1 else Largest(members)


def _one(puzzle: Puzzle, part: Any) -> Heuristic:
    """Made anew from what came, which is checked and frozen as everything is that is made."""
    if isinstance(part, str):
        return named(puzzle, part)
    if isinstance(part, Learned):
        return _one(made_of(part.puzzle), part.part)
    if isinstance(part, PatternsByName):
        return pattern_heuristic(puzzle, pattern_set(puzzle, part.name))
    if isinstance(part, NetworksByPattern):
        patterns = distinct_patterns(pattern_set(puzzle, part.set_name).patterns)
        networks = [
            PatternNetwork(pattern, replace(whole), replace(residuals), *others)
            for pattern, (whole, residuals, *others) in zip(patterns, part.networks, strict=True)
        ]
        return learned_patterns(part.name, puzzle, part.set_name, networks, part.guarantee)
    if isinstance(part, CalibratedHeuristic):
        network = _one(puzzle, part.network)
        assert isinstance(network, NeuralHeuristic)
        return CalibratedHeuristic(network, replace(part.calibration))
    if isinstance(part, NeuralHeuristic):
        encoding = part.encoding
        reading = None if encoding.reading is None else replace(encoding.reading)
        return replace(part, puzzle=puzzle, network=replace(part.network), own_encoding=replace(encoding, reading=reading))
    raise UndershootError(f"no heuristic came to a worker, but {what_came(part)}")
