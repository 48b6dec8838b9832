"""A* with reopening: many instances in lock-step, each exactly as if it were alone."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

from undershoot.arrays import States
from undershoot.errors import UndershootError
from undershoot.guarantees import Heuristic
from undershoot.kernels.guides import Elsewhere
from undershoot.oracles.size import available_memory
from undershoot.puzzles.problem import Problem
from undershoot.search.conclusions import check_request
from undershoot.search.options import SearchOptions, check_options
from undershoot.search.results import Result
from undershoot.search.running import ROOM_TO_BEGIN, Draws, Searches, guide_in_loop

LOCK_STEP = 1000
AT_ONCE_IN_LOOP = 32
DEFAULTS = SearchOptions()


@dataclass(frozen=True)
class Batch:
    """What was found, and what it took all together."""

    results: list[Result]
    seconds: float
    peak_bytes: int
    """Of nodes, hash indices and open lists."""
    expanded_states: States
    """uint8[N, n] if they were asked for: one state of each search, each equally likely among those that it expanded."""


def astar_batch(
    puzzle: Problem,
    states: States,
    heuristic: Heuristic,
    options: SearchOptions = DEFAULTS,
    lock_step: int = LOCK_STEP,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
    draw_expanded: int | None = None,
) -> Batch:
    """Search from every state, uint8[N, n]; with the time and memory that it took. See `solve_many`.

    draw_expanded: a seed, to draw one expanded state a search.
    """
    states = check_request(puzzle, states, heuristic)
    check_options(options, threads)
    if lock_step < 1:
        raise UndershootError(f"lock_step is {lock_step}; at least 1 is needed")
    results: list[Result | None] = [None] * len(states)
    done, lock = 0, Lock()

    def collect(ended: Iterator[tuple[int, Result]]) -> None:
        nonlocal done
        for instance, result in ended:
            results[instance] = result
            with lock:
                done += 1
                if progress is not None:
                    progress(done)

    free = available_memory()
    memory = free // 2 if options.max_memory is None else min(options.max_memory, free)
    workers = min(threads, max(1, len(states)))
    guides = [guide_in_loop(heuristic) for _ in range(workers)]
    together = -(-lock_step // workers) if isinstance(guides[0], Elsewhere) else AT_ONCE_IN_LOOP
    at_once = max(1, min(together, -(-len(states) // workers), memory // workers // ROOM_TO_BEGIN))
    queue, draws = iter(range(len(states))), Draws(states, draw_expanded)
    searches = [
        Searches(puzzle, states, heuristic, options, at_once, memory // workers, queue, draws, guide) for guide in guides
    ]
    searches[0].compile()
    began = time.perf_counter()
    if workers == 1:
        collect(searches[0].run())
    else:
        with ThreadPoolExecutor(workers) as pool:
            try:
                for future in [pool.submit(collect, one.run()) for one in searches]:
                    future.result()
            except BaseException:
                for one in searches:
                    one.is_stopped = True
                raise
    return Batch(
        [result for result in results if result is not None],
        time.perf_counter() - began,
        sum(one.peak_bytes for one in searches),
        draws.states,
    )
