"""IDA*: iterations of depth-first search with growing bounds. It needs no memory to speak of.

With a proven heuristic the bound of an iteration, and after it the least f that was cut off, is a proven lower bound. With
another one the least g + h0 that was cut off is. So a limit ends a search with a true statement.
"""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from threading import Event, Lock
from typing import Any, NamedTuple

import numpy as np

from undershoot.arrays import I32, U16, States
from undershoot.errors import TooDear, UndershootError
from undershoot.guarantees import Heuristic
from undershoot.kernels.cpu import play_path
from undershoot.kernels.guides import LARGE, guide_of, kept_size
from undershoot.kernels.sums import sums
from undershoot.puzzles.problem import Problem
from undershoot.search.conclusions import Ending, check_claim, check_request, conclude
from undershoot.search.depth_first import (
    COUNTERS,
    EXHAUSTED,
    FOUND,
    NEVER,
    REFUSED,
    SEARCHING,
    CutOff,
    Tree,
    make_tree,
    plant,
    search_tree,
    tree_moves,
)
from undershoot.search.glimpses import Glimpse, Watching
from undershoot.search.options import Algorithm, SearchOptions, check_options
from undershoot.search.results import Result, Status
from undershoot.search.threads import spread

FIRST_SLICE, SECONDS_A_SLICE = 5_000, 0.02
"""Expansions before the clock is looked at, at first, and for how long a slice should run."""
ALONE = 20_000
"""Expansions before several threads are worth their while."""
SUBTREES = 200
"""How many of them a thread should have to choose from, at least."""
MOST_SUBTREES, MOST_SPLIT = 100_000, 256
"""And at which depth they begin, at most."""
MAX_BOUND = 1 << 20
NOTHING: U16 = np.zeros((0, 0), dtype=np.uint16)


def solve_by_deepening(
    puzzle: Problem,
    states: States,
    heuristic: Heuristic,
    options: SearchOptions,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
    bounds: Sequence[int] | None = None,
) -> list[Result]:
    """IDA* from every state, uint8[N, n]; results in the same order.

    threads: over the instances, or if there is one, over its subtrees. bounds: for each, from which to begin, where solutions
    are known to cost so much at least.
    """
    states = check_request(puzzle, states, heuristic)
    check_options(replace(options, algorithm=Algorithm.IDA), threads)
    guides = [loop_guide(heuristic)]
    starts = starts_of(puzzle, states, heuristic, bounds)
    cut, endings = cut_off(puzzle, heuristic), dict[int, Ending]()
    lock, stopped = Lock(), Event()

    def solve_instance(number: int) -> None:
        if stopped.is_set():
            return
        with lock:
            guide = guides.pop() if guides else loop_guide(heuristic)
        own_threads = threads if len(states) == 1 else 1
        ending = Deepening(puzzle, starts[number], heuristic, guide, options, own_threads, cut, stopped).run()
        with lock:
            guides.append(guide)
            endings[number] = ending
            if progress is not None:
                progress(len(endings))

    if threads == 1 or len(states) == 1:
        for number in range(len(states)):
            solve_instance(number)
    else:
        spread(solve_instance, range(len(states)), threads, stopped)
    return conclude(puzzle, heuristic, states, [endings[number] for number in range(len(states))])


def compile_deepening(puzzle: Problem, heuristic: Heuristic) -> None:
    """Compiled, or fetched from the cache: for who times what comes then."""
    goal = Start(puzzle.table.goals[:1], 0.0, 0, 0, None)
    options = SearchOptions(algorithm=Algorithm.IDA)
    Deepening(puzzle, goal, heuristic, loop_guide(heuristic), options, 1, cut_off(puzzle, heuristic), Event()).compile()


class Start(NamedTuple):
    """Where a search begins, and what is known there."""

    state: States
    """uint8[1, n]."""
    value: float
    """By the heuristic."""
    lower: int
    """No solution costs less, by h0 or by what was known before."""
    bound: int
    """Of the first iteration."""
    parity: int | None
    """Of what solutions cost, if the state says that."""


def starts_of(puzzle: Problem, states: States, heuristic: Heuristic, bounds: Sequence[int] | None) -> list[Start]:
    """All at once, which is quicker than one by one."""
    values = np.asarray(heuristic(states), dtype=np.float64)
    wrong = ~(values <= MAX_BOUND) | (values == -np.inf)
    if wrong.any():
        row = int(np.argmax(wrong))
        what = f"the heuristic {heuristic.name} gives {values[row]}"
        raise UndershootError(f"{what} for {puzzle.format(states[row : row + 1])}; IDA* takes values up to {MAX_BOUND:,}")
    known = np.zeros(len(states), dtype=np.int64) if bounds is None else np.asarray(bounds, dtype=np.int64)
    first = np.maximum(known, np.ceil(values).astype(np.int64)).tolist()
    lower = np.maximum(known, np.ceil(puzzle.base_heuristic(states)).astype(np.int64)).tolist()
    parity = puzzle.cost_parity(states).tolist() if puzzle.has_cost_parity else [None] * len(states)
    rows = (states[row : row + 1] for row in range(len(states)))
    return [Start(*known) for known in zip(rows, values.tolist(), lower, first, parity, strict=True)]


def cut_off(puzzle: Problem, heuristic: Heuristic) -> CutOff:
    """What follows from what this heuristic cuts off."""
    is_proven, goals = heuristic.guarantee.is_proven, puzzle.table.goals
    values = heuristic(goals)
    check_claim(puzzle, heuristic, goals, values, np.zeros(len(goals), dtype=np.int64))
    goal_value = max(0, math.ceil(values.max())) if np.isfinite(values).all() else NEVER
    return CutOff(not is_proven, is_proven and not getattr(heuristic, "is_consistent", False), goal_value)


def loop_guide(heuristic: Heuristic) -> Any:
    """The heuristic in the loop, for one thread; refused if it has a call for batches only."""
    guide = guide_of(heuristic)
    if guide is None:
        raise UndershootError(f"IDA* asks for one value at a time; {heuristic.name} has a call for batches only: use A*")
    return guide


class Deepening:
    """One instance."""

    def __init__(
        self,
        puzzle: Problem,
        start: Start,
        heuristic: Heuristic,
        guide: Any,
        options: SearchOptions,
        threads: int,
        cut: CutOff,
        stopped: Event,
    ) -> None:
        self.puzzle, self.start, self.heuristic, self.options = puzzle, start, heuristic, options
        self.guides = [guide] + [loop_guide(heuristic) for _ in range(threads - 1)]
        self.threads = threads
        self.slices = [FIRST_SLICE] * threads
        """Expansions of each worker's next slice."""
        self.moves = tree_moves(puzzle.table)
        self.base = sums(puzzle.base_heuristic)
        self.cut, self.stopped = cut, stopped
        self.kept_size = kept_size(guide)
        self.cheapest = int(self.moves.plan.cost[self.moves.plan.legal].min())
        self.lower = start.lower
        """A proven lower bound, by the iterations that ended."""
        self.counts = dict.fromkeys(COUNTERS, 0)
        self.deepest = 0
        self.began = 0.0
        self.limit_met: Status | None = None
        self.actions: I32 | None = None
        self.lock = Lock()
        self.watching = Watching(options.watch)

    def run(self) -> Ending:
        """Search until a limit strikes or the goal is found."""
        self.compile()  # before the clock starts
        self.began, self.limit_met = time.perf_counter(), None
        bound = self._to_parity(self.start.bound)
        status = Status.UNSOLVABLE
        while bound < NEVER:
            if bound > MAX_BOUND:
                raise TooDear(f"costs above {MAX_BOUND:,} are not searched by IDA*; use A*")
            if self.heuristic.guarantee.is_proven:
                self._raise_bound(bound)
            if self._is_over():
                status = self.limit_met or Status.TIME
                break
            self.counts["expanded_below"] = 0
            next_bound, next_base = self._iterate(bound)
            if self._is_over():
                status = Status.SOLVED if self.actions is not None else self.limit_met or Status.TIME
                break
            if not self.heuristic.guarantee.is_proven:
                self._raise_bound(min(next_base, NEVER))
            bound = self._to_parity(next_bound)
            self._look_at_limits(bound < NEVER)  # iterations may be shorter than a slice
        return self._ending(status)

    def compile(self) -> None:
        """Or fetch from the cache what is compiled."""
        self._iterate_alone(-1)
        self.counts = dict.fromkeys(COUNTERS, 0)

    def _raise_bound(self, lower: int) -> None:
        """No solution costs less."""
        self.lower = max(self.lower, lower)

    def _to_parity(self, bound: int) -> int:
        """To a cost that a solution can have."""
        parity = self.start.parity
        return bound if bound >= NEVER or parity is None else bound + ((bound ^ parity) & 1)

    def _iterate(self, bound: int) -> tuple[int, int]:
        """One iteration; returns the least f, and the least g + h0, that were cut off. The first ones are not worth sharing."""
        is_short = self.counts["expanded"] < ALONE
        return self._iterate_alone(bound) if self.threads == 1 or is_short else self._iterate_together(bound)

    def _tree(self, bound: int) -> Tree:
        return make_tree(self.moves, max(bound, 0) // self.cheapest + 1, self.kept_size)

    def _iterate_alone(self, bound: int) -> tuple[int, int]:
        tree = self._tree(bound)
        plant(tree, self.moves, self.guides[0], self.start.state, np.zeros(1, dtype=np.uint16), 0)
        if bound >= 0:
            self._search(tree, 0, bound)
        else:
            search_tree(tree, self.moves, self.guides[0], self.base, -1, 0, -1, NOTHING, self.cut)
        at = tree.progress[0]
        return int(at["next_bound"]), int(at["next_base"])

    def _search(self, tree: Tree, worker: int, bound: int) -> None:
        """Go on until the planted node is exhausted, the goal is found, or the search was stopped."""
        progress, slice_size, guide = tree.progress[0], self.slices[worker], self.guides[worker]
        while progress["status"] == SEARCHING and not self._is_over() and not self._is_vain():
            before = {name: int(progress[name]) for name in COUNTERS}
            with self.turn(worker):
                most = self._reserve(slice_size)  # only now: what one waits with, others would lack
                began = time.perf_counter()
                search_tree(tree, self.moves, guide, self.base, bound, most, -1, NOTHING, self.cut)
                seconds = max(1e-6, time.perf_counter() - began)
            with self.lock:
                self._count({name: int(progress[name]) - before[name] for name in COUNTERS}, most)
                self.deepest = max(self.deepest, int(progress["deepest"]))
                if progress["status"] == FOUND and self.actions is None:
                    self.actions = self._path(tree)
                self.watching.look(self._glimpse)
            self._check_values(tree)
            self._look_at_limits(progress["status"] == SEARCHING)
            if progress["status"] == SEARCHING:  # otherwise it was shorter than a slice
                slice_size = max(1, min(int(slice_size * SECONDS_A_SLICE / seconds), 100 * slice_size))
        self.slices[worker] = slice_size

    def turn(self, worker: int) -> AbstractContextManager[None]:
        """Within it one of the threads searches a slice, where others share that thread."""
        return nullcontext()

    def rest(self, worker: int) -> None:
        """One of the threads waits for others."""

    def _count(self, done: dict[str, int], reserved: int) -> None:
        """Work that was done, for which so many expansions were counted ahead."""
        for name, number in done.items():
            self.counts[name] += number
        self.counts["expanded"] -= reserved

    def _glimpse(self) -> Glimpse:
        return Glimpse(self.counts["expanded"], self._to_parity(self.lower), time.perf_counter() - self.began)

    def _is_over(self) -> bool:
        return self.limit_met is not None or self.actions is not None or self.stopped.is_set()

    def _is_vain(self) -> bool:
        """Whether an iteration need not end, since somebody else knows what would follow from it."""
        return False

    def _check_values(self, tree: Tree) -> None:
        """Refuse a value that no search can go on with."""
        if tree.progress[0]["status"] == REFUSED:
            state = self.puzzle.format(tree.states[:1])
            raise UndershootError(
                f"the heuristic {self.heuristic.name} gives no number from 0 to {LARGE:,.0f} for a state one move from {state}"
            )

    def _reserve(self, size: int) -> int:
        """So many expansions may be made; they are counted already."""
        with self.lock:
            if self.options.max_expanded is not None:
                size = max(0, min(size, self.options.max_expanded - self.counts["expanded"]))
            self.counts["expanded"] += size
            return size

    def _look_at_limits(self, goes_on: bool) -> None:
        if not goes_on or self.actions is not None:
            return
        self._look_at_clock()
        most = self.options.max_expanded
        if self.limit_met is None and most is not None and self.counts["expanded"] >= most:
            self.limit_met = Status.BUDGET

    def _look_at_clock(self) -> None:
        limit = self.options.max_seconds
        if limit is not None and self.actions is None and time.perf_counter() - self.began > limit:
            self.limit_met = Status.TIME

    def _path(self, tree: Tree) -> I32:
        return np.asarray(tree.rows["step"][: int(tree.progress[0]["depth"])], dtype=np.int32)

    def _iterate_together(self, bound: int) -> tuple[int, int]:
        """One iteration over subtrees, which threads take one by one."""
        before = dict(self.counts)
        tree, paths, length = self._subtrees(bound)
        if tree.progress[0]["status"] == SEARCHING and self.limit_met is None:
            self.counts = before  # there is no room for so many, and none may be left out
            return self._iterate_alone(bound)
        least = [int(tree.progress[0]["next_bound"])], [int(tree.progress[0]["next_base"])]
        waiting = iter(paths)

        def work(worker: int) -> None:
            mine = self._tree(bound)
            while not self._is_over() and not self._is_vain():
                with self.lock:
                    path = next(waiting, None)
                if path is None:
                    break
                self._look_at_clock()  # subtrees may be shorter than a slice
                for name in COUNTERS:
                    mine.progress[0][name] = 0
                plant(mine, self.moves, self.guides[worker], self.start.state, path, length)
                self._search(mine, worker, bound)
                with self.lock:
                    least[0].append(int(mine.progress[0]["next_bound"]))
                    least[1].append(int(mine.progress[0]["next_base"]))
            self.rest(worker)

        if not self._is_over():
            spread(work, range(self.threads), self.threads, self.stopped)
        return min(least[0]), min(least[1])

    def _subtrees(self, bound: int) -> tuple[Tree, U16, int]:
        """The steps to all nodes at a depth where there are enough of them; what lies above is searched here."""
        before = dict(self.counts)
        for split in range(1, min(max(bound, 1) + 1, MOST_SPLIT) + 1):
            self.counts = dict(before)
            tree, paths = self._tree(bound), np.zeros((MOST_SUBTREES, split), dtype=np.uint16)
            plant(tree, self.moves, self.guides[0], self.start.state, np.zeros(1, dtype=np.uint16), 0)
            most = self._reserve(MOST_SUBTREES)
            written = search_tree(tree, self.moves, self.guides[0], self.base, bound, most, split, paths, self.cut)
            at = tree.progress[0]
            self._count({name: int(at[name]) for name in COUNTERS}, most)
            if at["status"] == FOUND:
                self.actions = self._path(tree)
            self._check_values(tree)
            self._look_at_limits(at["status"] == SEARCHING or written > 0)
            if at["status"] != EXHAUSTED or written >= SUBTREES * self.threads or not written or self._is_over():
                break
        return tree, paths[:written], split

    def _ending(self, status: Status) -> Ending:
        seconds = time.perf_counter() - self.began
        actions = np.zeros(0, dtype=np.int32) if self.actions is None else self.actions
        states = np.repeat(self.start.state, len(actions) + 1, axis=0)
        cost = int(play_path(self.moves.plan, actions, states))
        is_solved, path = self.actions is not None, states[:-1]
        values = self.heuristic(path) if len(path) else np.zeros(0, dtype=np.float32)
        return Ending(
            status=status,
            cost=cost if is_solved else None,
            actions=actions,
            path=path,
            path_values=np.asarray(values, dtype=np.float32),
            start_value=self.start.value,
            open_bound=float("inf") if status is Status.UNSOLVABLE else float(self.lower),
            expanded=self.counts["expanded"],
            expanded_below=self.counts["expanded_below"] if is_solved else None,
            generated=self.counts["generated"],
            evaluated=self.counts["generated"] + 1,
            reopened=0,
            stored=self.deepest + 1,
            seconds=seconds,
            weight=1.0,
            goes_by_f=True,
            algorithm=Algorithm.IDA,
        )
