"""Searching: from one state or from many, by A*, by IDA*, by both bounds at once, or by whichever suits."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from undershoot.arrays import States, owned
from undershoot.errors import TooDear, UndershootError
from undershoot.guarantees import Heuristic
from undershoot.kernels.guides import guide_of
from undershoot.oracles.size import available_memory, count_text
from undershoot.puzzles.problem import Problem, check_puzzle
from undershoot.search.astar import DEFAULTS, LOCK_STEP, Batch, astar_batch
from undershoot.search.both import meet_many
from undershoot.search.ida import compile_deepening, solve_by_deepening
from undershoot.search.options import CPU, Algorithm, SearchOptions, unread
from undershoot.search.results import Result
from undershoot.search.workspace import node_type

BESIDE_A_NODE = 24
"""Bytes that A* takes for a state that it has seen, in its index and its open list, about."""


def solve(
    puzzle: Problem,
    states: States,
    heuristic: Heuristic,
    options: SearchOptions = DEFAULTS,
    guide: Heuristic | None = None,
    device: str | None = None,
) -> Result:
    """Search from one state, uint8[1, n] or uint8[n]. guide: of the algorithm `both`; see `improve`. device: see `solve_many`.

    Examples:
        >>> tiles = us.puzzle("tiles-3x3")
        >>> state = tiles.parse("8 1 3 / 4 0 2 / 7 6 5")
        >>> result = us.solve(tiles, state, us.load("tiles-3x3"))
        >>> print(result.cost, result.optimality)
        14 optimal, proven
        >>> print(*result.actions)
        L U R R D D L U R U L D L U
    """
    check_puzzle(puzzle, "us.solve")
    if isinstance(states, np.ndarray) and states.ndim == 1:
        states = states[None]
    if isinstance(states, np.ndarray) and len(states) != 1:
        raise UndershootError(f"solve takes one state, {len(states)} came; solve_many takes several")
    return solve_many(puzzle, states, heuristic, options, guide=guide, device=device)[0]


def solve_many(
    puzzle: Problem,
    states: States,
    heuristic: Heuristic,
    options: SearchOptions = DEFAULTS,
    lock_step: int = LOCK_STEP,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
    guide: Heuristic | None = None,
    device: str | None = None,
) -> list[Result]:
    """Search from every state, uint8[N, n]; results in the same order.

    lock_step: in A*, how many searches share the calls of the heuristic; others wait until one of these ends. threads: over
    which the instances are spread; each calls the heuristic for its own. IDA* spreads one instance, too. progress: called with
    how many ended. guide: of the algorithm `both`; see `improve`, whose last result this is for each. device: cpu, cuda, cuda:N
    or auto, in place of that of the options; see the page on GPUs.

    Examples:
        >>> tiles = us.puzzle("tiles-3x3")
        >>> results = us.solve_many(tiles, tiles.sample(4, seed=0), us.load("tiles-3x3"))
        >>> [result.cost for result in results]
        [19, 22, 25, 20]
    """
    if device is not None:
        options = replace(options, device=device)
    return search_batch(puzzle, states, heuristic, options, lock_step, threads, progress, guide).results


def search_batch(
    puzzle: Problem,
    states: States,
    heuristic: Heuristic,
    options: SearchOptions = DEFAULTS,
    lock_step: int = LOCK_STEP,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
    guide: Heuristic | None = None,
) -> Batch:
    """`solve_many`, with the time and memory that it took."""
    states = owned(states)
    options = placed(options, heuristic, threads)
    first, _ = choose(puzzle, heuristic, options, guide)
    check_reads_guide(first, guide)
    if options.device != CPU and first is not Algorithm.BOTH:
        from undershoot.search.device.solving import search_on_device

        return search_on_device(puzzle, states, heuristic, options, first, progress)

    def by(algorithm: Algorithm, numbers: list[int], share: SearchOptions, bounds: list[int] | None = None) -> Batch:
        those = states[numbers] if bounds else states
        match algorithm:
            case Algorithm.ASTAR:
                return astar_batch(puzzle, those, heuristic, share, lock_step, threads, None if bounds else progress)
            case Algorithm.IDA:
                compile_deepening(puzzle, heuristic)
                began, report = time.perf_counter(), None if bounds else progress
                results = solve_by_deepening(puzzle, those, heuristic, share, threads, report, bounds)
                return Batch(results, time.perf_counter() - began, 0, those[:0])
            case Algorithm.BOTH:
                return meet_many(puzzle, those, heuristic, guide, share, threads, progress)
        raise UndershootError(f"{algorithm} is no algorithm by itself")

    is_followed = _is_followed(first, heuristic, options)
    share, rest = _shared(options) if is_followed else (options, options)
    batch = by(first, [], share)
    again = [number for number, result in enumerate(batch.results) if result.cost is None and result.status.is_limit]
    if not is_followed or not again:
        return batch
    second = Algorithm.ASTAR if first is Algorithm.IDA else Algorithm.IDA
    try:
        more = by(second, again, rest, [batch.results[number].lower_bound for number in again])
    except TooDear:
        return batch
    for number, other in zip(again, more.results, strict=True):
        batch.results[number] = batch.results[number].followed_by(other)
    return replace(batch, seconds=batch.seconds + more.seconds, peak_bytes=max(batch.peak_bytes, more.peak_bytes))


def placed(options: SearchOptions, heuristic: Heuristic, threads: int = 1) -> SearchOptions:
    """The options with the device that a search with this heuristic runs on, which is there."""
    if options.device == CPU:
        return options
    from undershoot.search.device.choosing import place

    return place(options, heuristic, threads)


def _is_followed(first: Algorithm, heuristic: Heuristic, options: SearchOptions) -> bool:
    """Whether another algorithm searches from those states at which the first one was stopped.

    None does with a heuristic that is calibrated for solutions of A*: what is said of the costs of all instances would count
    the solutions of IDA*, too, of which nothing is known.
    """
    if options.algorithm is not Algorithm.AUTO or first is Algorithm.BOTH:
        return False
    return heuristic.guarantee.solution_probability is None and can_deepen(heuristic, options)


def can_deepen(heuristic: Heuristic, options: SearchOptions) -> bool:
    """Whether IDA* can search with it, and reads all options."""
    return not unread(options) and guide_of(heuristic) is not None


def check_reads_guide(algorithm: Algorithm, guide: Heuristic | None) -> None:
    """Refuse a guide that nothing would read."""
    if guide is not None and algorithm is not Algorithm.BOTH:
        raise UndershootError(
            f"a guide (--guide) was given, but {algorithm.shown} goes by the heuristic alone; leave it out, or use both bounds "
            "(--algorithm both)"
        )


def choose(
    puzzle: Problem, heuristic: Heuristic, options: SearchOptions, guide: Heuristic | None = None
) -> tuple[Algorithm, str]:
    """Which algorithm comes first, and why.

    A* sees every state once, IDA* once for each way to it: where all states fit into memory, A* is the safe choice. Beyond that
    a proof may take long: so a guided search looks for solutions meanwhile. What is calibrated for solutions of A* is for A*.
    """
    if options.algorithm is not Algorithm.AUTO:
        return options.algorithm, "as was asked for"
    if guide is not None:
        return Algorithm.BOTH, "since a guide was given"
    if options.device != CPU:
        return _choose_on_device(heuristic, options)
    return _choose_on_cores(puzzle, heuristic, options)


def _choose_on_cores(puzzle: Problem, heuristic: Heuristic, options: SearchOptions) -> tuple[Algorithm, str]:
    if heuristic.guarantee.solution_probability is not None:
        return Algorithm.ASTAR, "since what is known of the heuristic is about solutions of A*"
    if not can_deepen(heuristic, options):
        return (
            Algorithm.ASTAR,
            "since IDA* reads no weight and no ties, and asks for one value at a time, in its compiled loop",
        )
    memory = available_memory() // 2 if options.max_memory is None else options.max_memory
    each = node_type(-(-puzzle.table.cells // 8)).itemsize + BESIDE_A_NODE
    most, size = memory // each, puzzle.space.size
    count = count_text(size)
    if size <= most:
        return Algorithm.ASTAR, f"since {'all' if puzzle.space.size_is_exact else 'up to'} {count} states fit into memory"
    return Algorithm.BOTH, f"since {'' if puzzle.space.size_is_exact else 'up to '}{count} states do not fit into memory"


def _choose_on_device(heuristic: Heuristic, options: SearchOptions) -> tuple[Algorithm, str]:
    """options: placed, see `search.device.choosing.place`."""
    from undershoot.search.device.choosing import has_tables

    if has_tables(heuristic) and not unread(options):
        return Algorithm.IDA, f"since its tables lie in the memory of the device {options.device}"
    return Algorithm.ASTAR, "since IDA* on a device goes by tables of patterns alone, and reads no weight and no ties"


def _shared(options: SearchOptions) -> tuple[SearchOptions, SearchOptions]:
    """Of the limits two thirds, and the third that is left for another algorithm."""
    expanded, seconds = options.max_expanded, options.max_seconds
    later = None if expanded is None else -(-expanded // 3), None if seconds is None else seconds / 3
    first = None if expanded is None else expanded - (later[0] or 0), None if seconds is None else seconds * 2 / 3
    return (
        replace(options, max_expanded=first[0], max_seconds=first[1]),
        replace(options, max_expanded=later[0], max_seconds=later[1]),
    )
