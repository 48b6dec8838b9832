"""A* with reopening: `solve_many` runs many instances in lock-step, each exactly as if it were alone."""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from threading import Lock

import numpy as np

from undershoot.arrays import F32, I64, U64, AnyArray, States
from undershoot.errors import Contradiction, UndershootError
from undershoot.guarantees import Guarantee, Heuristic, Optimality, OptimalityKind, Rounding, Standing
from undershoot.heuristics.analytic import NO_PAIRS, Additive
from undershoot.kernels.cpu import is_goal
from undershoot.kernels.plan import forward_plan
from undershoot.oracles.size import available_memory
from undershoot.puzzles.base_heuristics import BaseHeuristic
from undershoot.puzzles.puzzle import Puzzle
from undershoot.search import lifecycle
from undershoot.search import workspace as ws
from undershoot.search.advance import advance
from undershoot.search.layout import MAX_COST, MOST_SPAN, Analytic, Rules
from undershoot.search.options import SearchOptions, Ties
from undershoot.search.results import Result, Status

LOCK_STEP = 1000
AT_ONCE_IN_LOOP = 32
QUANTUM = 100_000
ROOM_TO_BEGIN = 1 << 17
"""Bytes that a search should have, at least, when it begins."""
STATUSES = {
    ws.SOLVED: Status.SOLVED,
    ws.UNSOLVABLE: Status.UNSOLVABLE,
    ws.OVER_BUDGET: Status.BUDGET,
    ws.OUT_OF_MEMORY: Status.MEMORY,
    ws.OUT_OF_TIME: Status.TIME,
}
DEFAULTS = SearchOptions()


def solve(puzzle: Puzzle, states: States, heuristic: Heuristic, options: SearchOptions = DEFAULTS) -> Result:
    """Search from one state, uint8[1, n]."""
    if len(states) != 1:
        raise UndershootError(f"solve takes one state, {len(states)} came; solve_many takes several")
    return solve_many(puzzle, states, heuristic, options)[0]


def solve_many(
    puzzle: Puzzle,
    states: States,
    heuristic: Heuristic,
    options: SearchOptions = DEFAULTS,
    lock_step: int = LOCK_STEP,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> list[Result]:
    """Search from every state, uint8[N, n]; results in the same order.

    lock_step: how many searches share the calls of the heuristic; others wait until one of these ends. threads: over
    which the instances are spread; each calls the heuristic for its own. progress: called with how many ended.
    """
    return solve_batch(puzzle, states, heuristic, options, lock_step, threads, progress).results


@dataclass(frozen=True)
class Batch:
    """What `solve_many` found, and what it took all together."""

    results: list[Result]
    seconds: float
    peak_bytes: int
    """Of nodes, hash indices and open lists."""
    expanded_states: States
    """uint8[N, n] if they were asked for: one state of each search, each equally likely among those that it expanded."""


def solve_batch(
    puzzle: Puzzle,
    states: States,
    heuristic: Heuristic,
    options: SearchOptions = DEFAULTS,
    lock_step: int = LOCK_STEP,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
    draw_expanded: int | None = None,
) -> Batch:
    """`solve_many` with the time and memory that it took. draw_expanded: a seed, to draw one expanded state a search."""
    puzzle.check_solvable(states)
    if heuristic.fingerprint != puzzle.table.fingerprint:
        raise UndershootError(f"the heuristic {heuristic.name} belongs to another puzzle than {puzzle.name}")
    if lock_step < 1 or threads < 1:
        raise UndershootError(f"lock_step ({lock_step}) and threads ({threads}) must be at least 1")
    results: list[Result | None] = [None] * len(states)
    done, lock = 0, Lock()

    def collect(found: Iterator[tuple[int, Result]]) -> None:
        nonlocal done
        for number, result in found:
            results[number] = result
            with lock:
                done += 1
                if progress is not None:
                    progress(done)

    free = available_memory()
    memory = free // 2 if options.max_memory is None else min(options.max_memory, free)
    queue = iter(range(len(states)))
    workers = min(threads, max(1, len(states)))
    together = AT_ONCE_IN_LOOP if isinstance(heuristic, Additive) else -(-lock_step // workers)
    at_once = max(1, min(together, -(-len(states) // workers), memory // workers // ROOM_TO_BEGIN))
    searches = [_Searches(puzzle, states, heuristic, options, at_once, memory // workers, queue) for _ in range(workers)]
    drawn = states[:0] if draw_expanded is None else states.copy()
    for one in searches:
        one.drawn, one.random = drawn, np.random.default_rng(draw_expanded).integers(2**63, size=len(drawn), dtype=np.uint64)
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
        drawn,
    )


class _Searches:
    """The searches that are under way in one workspace, fed from a queue of instances."""

    def __init__(
        self,
        puzzle: Puzzle,
        starts: States,
        heuristic: Heuristic,
        options: SearchOptions,
        at_once: int,
        memory: int,
        queue: Iterator[int],
        buckets: bool | None = None,
    ) -> None:
        table = puzzle.table
        self.puzzle, self.starts, self.heuristic, self.options, self.queue, self.memory = (
            puzzle,
            starts,
            heuristic,
            options,
            queue,
            memory,
        )
        self.plan = forward_plan(table)
        self.inverse = np.where(table.inverse >= 0, table.alike[table.inverse], -1).astype(np.int32)
        self.in_loop = isinstance(heuristic, Additive)
        formula = heuristic.formula if isinstance(heuristic, Additive) else puzzle.base_heuristic
        self.analytic = _analytic(formula)
        self.base = _analytic(puzzle.base_heuristic)
        whole = heuristic.rounding is not Rounding.NONE and float(options.weight).is_integer()
        self.rules = Rules(
            self.in_loop,
            whole if buckets is None else buckets,
            options.ties is Ties.DEEP,
            float(options.weight),
            options.expand_per_step,
            2**62 if options.max_expanded is None else min(options.max_expanded, 2**62),
            table.cells,
        )
        state_words = -(-table.cells // 8)
        self.words = tuple(range(state_words))
        children = options.expand_per_step * self.plan.legal.shape[1] + 1
        self.workspace = ws.make_workspace(at_once, options.expand_per_step, self.plan.legal.shape[1], state_words, memory)
        self.goals = _as_words(table.goals, state_words)
        # A search that is stopped for its time leaves its rows behind, and the one that follows it adds its start.
        self.out: States = np.empty((1 if self.in_loop else at_once * (children + 1), table.cells), dtype=np.uint8)
        self.number = np.full(at_once, -1, dtype=np.int64)
        self.began = np.zeros(at_once)
        self.spent = np.zeros(at_once)
        """In the loop, where searches run one after another: the seconds of each slot's own turns."""
        self.drawn: States = starts[:0]
        """Where a state that each search expanded is written, if wanted."""
        self.random: U64 = np.zeros(0, dtype=np.uint64)
        self.is_stopped = False
        self.peak_bytes = 0
        self.first = 0

    def compile(self) -> None:
        """Compile everything, or fetch it from the cache, so that no instance is charged for it."""
        nothing = np.zeros(0, dtype=np.int64)
        none = self.starts[nothing]
        lifecycle.begin(self.workspace, nothing, none, self.words, self.rules, self.analytic, self.plan, 0, self.out)
        self._advance(np.zeros(0, dtype=np.float32))
        self._numbers(nothing)
        lifecycle.end(self.workspace, nothing, False)
        lifecycle.tally(self.workspace.slots)
        lifecycle.first_wrong(np.zeros(0, dtype=np.float32), 0.0, False)
        self.heuristic(self.starts[:1])

    def _advance(self, values: F32) -> int:
        """One call of the kernel; returns how many rows of `out` wait to be evaluated."""
        expanded = self.workspace.slots[:, ws.EXPANDED]
        before, began = expanded.copy() if self.in_loop else expanded, time.perf_counter()
        rows, self.first = advance(
            self.workspace,
            self.plan,
            self.inverse,
            self.goals,
            self.analytic,
            self.words,
            self.rules,
            values,
            self.out,
            QUANTUM if self.in_loop else 2**62,
            self.first,
        )
        if self.in_loop:
            made = expanded - before
            self.spent += (time.perf_counter() - began) * made / max(1, made.sum())
        return int(rows)

    def _touched(self) -> int:
        """Bytes of nodes, hash indices and open lists, now or earlier."""
        return 8 * int(self.workspace.pools[ws.TOTAL, ws.TOUCHED])

    def run(self) -> Iterator[tuple[int, Result]]:
        """Search until the queue is empty; yields the number of an instance and its result."""
        values: F32 = np.zeros(0, dtype=np.float32)
        rows = self._begin(np.arange(len(self.number)), 0)
        status = self.workspace.slots[:, ws.STATUS]
        ended, running, is_short = lifecycle.tally(self.workspace.slots)
        while ended + running and not self.is_stopped:
            if not self.in_loop:
                values = self._evaluate(self.out[:rows])
            rows = self._advance(values)
            if self.options.max_seconds is not None:
                self._stop_late_ones(self.options.max_seconds)
            ended, running, is_short = lifecycle.tally(self.workspace.slots)
            # In lock-step, reporting many at once is cheaper than one by one; a few slots may stay empty for a while,
            # unless memory is short.
            at_once = self.in_loop or ended * 16 >= len(self.number) or is_short
            if ended and (at_once or not running):
                finished = np.flatnonzero(status > ws.RUNNING)
                yield from self._report(finished)
                self.number[finished] = -1
                lifecycle.end(self.workspace, finished, True)
                rows = self._begin(finished, rows)
                lifecycle.end(self.workspace, finished[self.number[finished] < 0], False)
                ended, running, is_short = lifecycle.tally(self.workspace.slots)
        self.peak_bytes = max(self.peak_bytes, self._touched())

    def _begin(self, slots: I64, rows: int) -> int:
        """Fill these slots from the queue."""
        numbers = list(islice(self.queue, len(slots)))
        if not numbers:
            return rows
        filled = np.ascontiguousarray(slots[: len(numbers)])
        self.number[filled] = numbers
        self.began[filled], self.spent[filled] = time.perf_counter(), 0
        rows = lifecycle.begin(
            self.workspace, filled, self.starts[numbers], self.words, self.rules, self.analytic, self.plan, rows, self.out
        )
        return int(rows)

    def _evaluate(self, states: States) -> F32:
        if not len(states):
            return np.zeros(0, dtype=np.float32)
        values = np.ascontiguousarray(self.heuristic(states), dtype=np.float32)
        if values.shape != (len(states),):
            raise UndershootError(f"{self.heuristic.name} gave {values.shape} values for {len(states)} states")
        guarantee = self.heuristic.guarantee
        least = 0.0 if guarantee.standing is Standing.PROVEN or self.rules.buckets else -math.inf
        row = lifecycle.first_wrong(values, least, self.rules.buckets)
        if row >= 0:
            state = self.puzzle.format(states[row : row + 1])
            claim = f"that it {self.heuristic.guarantee}" if guarantee.standing is Standing.PROVEN else "whole values from 0"
            claim = "whole values" if values[row] >= 0 else claim
            reason = "" if not math.isfinite(values[row]) else f", though it claims {claim}"
            raise UndershootError(f"the heuristic {self.heuristic.name} gives {values[row]}{reason}, for {state}")
        if guarantee.standing is Standing.PROVEN:
            reached = is_goal(self.puzzle.table, states)
            self._check_claim(states[reached], values[reached], np.zeros(int(reached.sum()), dtype=np.int64))
        return values

    def _stop_late_ones(self, seconds: float) -> None:
        passed = self.spent if self.in_loop else time.perf_counter() - self.began
        late = (self.workspace.slots[:, ws.STATUS] == ws.RUNNING) & (passed > seconds)
        self.workspace.slots[late, ws.STATUS] = ws.OUT_OF_TIME

    def _seconds(self, slot: int) -> float:
        """How long this slot's instance has been searched."""
        return float(self.spent[slot] if self.in_loop else time.perf_counter() - self.began[slot])

    def _report(self, slots: I64) -> Iterator[tuple[int, Result]]:
        for slot in slots:
            if self.workspace.slots[slot, ws.STATUS] == ws.TOO_DEAR:
                state = self.puzzle.format(self.starts[self.number[slot]][None])
                raise UndershootError(f"costs above {MAX_COST:,} are not searched; they come up from {state}")
        heap = [slot for slot in slots if self.workspace.slots[slot, ws.STATUS] == ws.NEEDS_HEAP]
        for slot in heap:
            # Costs are too large for buckets: this instance starts again, alone and with a heap, for the time that is left.
            number, spent = int(self.number[slot]), self._seconds(slot)
            limit = self.options.max_seconds
            used = self._touched()
            again = _Searches(
                self.puzzle,
                self.starts,
                self.heuristic,
                self.options if limit is None else replace(self.options, max_seconds=max(0.0, limit - spent)),
                1,
                max(ROOM_TO_BEGIN, self.memory - used),
                iter([number]),
                buckets=False,
            )
            again.drawn, again.random = self.drawn, self.random
            yield from ((number, replace(result, seconds=spent + result.seconds)) for _, result in again.run())
            self.peak_bytes = max(self.peak_bytes, used + again.peak_bytes)
        slots = np.array([slot for slot in slots if slot not in heap], dtype=np.int64)
        if not len(slots):
            return
        if len(self.drawn):
            found = np.empty((len(slots), self.starts.shape[1]), dtype=np.uint8)
            lifecycle.write_expanded(self.workspace, slots, self.words, self.random[self.number[slots]], found)
            self.drawn[self.number[slots]] = found
        guarantee = self.heuristic.guarantee
        numbers, bounds, actions, states = self._numbers(slots)
        ends = np.cumsum(numbers[:, 0])
        above = self._overestimates(states, self._costs_to_go(states, actions, ends, numbers), ends, numbers)
        starts = self.starts[self.number[slots]]
        least = self.puzzle.base_heuristic(starts)
        if guarantee.is_proven:
            least = np.maximum(least, self.heuristic(starts))
        parity = self.puzzle.cost_parity(starts) if self.puzzle.has_cost_parity else None
        names = self.puzzle.table.action_names
        for k, slot in enumerate(slots.tolist()):
            row = self.workspace.slots[slot]
            status = STATUSES[int(row[ws.STATUS])]
            length, cost, below = numbers[k].tolist()
            found = row[ws.GOAL] >= 0
            bound = min(float(bounds[k]), cost if found else math.inf)
            complete = status is Status.SOLVED and self.options.weight == 1
            inside = guarantee.standing is Standing.PROVEN and guarantee.within is not None and cost <= guarantee.within
            if complete and (guarantee.is_proven or inside):
                bound = cost
            bound = max(bound if math.isfinite(bound) else 0, float(least[k]))
            lower = math.ceil(bound)
            if parity is not None:
                lower += (lower ^ int(parity[k])) & 1
            if found and lower > cost:
                raise Contradiction(
                    f"a solution of cost {cost} was found where {self.heuristic.name}, which claims that it {guarantee}, "
                    f"implies at least {lower}: {self.puzzle.format(starts[k : k + 1])}"
                )
            yield (
                int(self.number[slot]),
                Result(
                    status=status,
                    actions=tuple(names[a] for a in actions[ends[k] - length : ends[k]]),
                    cost=cost if found else None,
                    lower_bound=lower,
                    optimality=_optimality(status, cost if found else None, lower, guarantee, self.options.weight),
                    expanded=int(row[ws.EXPANDED]),
                    expanded_below=below if found and cost <= MOST_SPAN else None,
                    generated=int(row[ws.GENERATED]),
                    evaluated=int(row[ws.EVALUATED]),
                    reopened=int(row[ws.REOPENED]),
                    stored=int(row[ws.COUNT]),
                    overestimates=int(above[k]),
                    seconds=self._seconds(slot),
                ),
            )

    def _numbers(self, slots: I64) -> tuple[I64, AnyArray, AnyArray, States]:
        """Lengths, costs and expansions below; bounds from open nodes; actions and states of all paths, end to end."""
        numbers, bounds = np.zeros((len(slots), 3), dtype=np.int64), np.zeros(len(slots))
        is_proven = self.heuristic.guarantee.is_proven
        lifecycle.report(self.workspace, slots, self.words, self.rules, self.base, self.plan, is_proven, numbers, bounds)
        ends = np.cumsum(numbers[:, 0])
        actions = np.zeros(int(numbers[:, 0].sum()), dtype=np.int32)
        states = np.zeros((len(actions), self.starts.shape[1]), dtype=np.uint8)
        lifecycle.write_paths(self.workspace, slots, self.words, ends, actions, states)
        return numbers, bounds, actions, states

    def _costs_to_go(self, states: States, actions: AnyArray, ends: I64, numbers: I64) -> I64:
        """int64: what the paths, end to end, still cost from each of their states."""
        costs = self.plan.cost[self.puzzle.table.contexts_of(states), actions]
        walked = np.concatenate([[0], np.cumsum(costs)])
        return np.asarray(np.repeat(walked[ends], numbers[:, 0]) - walked[:-1], dtype=np.int64)

    def _overestimates(self, states: States, to_go: I64, ends: I64, numbers: I64) -> I64:
        """int64[K]: how many states of each path have h above what the path still costs."""
        if not len(states):
            return np.zeros(len(ends), dtype=np.int64)
        values = self.heuristic(states)
        self._check_claim(states, values, to_go)
        over = np.concatenate([[0], np.cumsum(values > to_go)])
        result: I64 = over[ends] - over[ends - numbers[:, 0]]
        return result

    def _check_claim(self, states: States, values: F32, cost: I64) -> None:
        """A value above what a state was found to cost, at most, refutes the claim that h never overestimates.

        cost: int64[B]. Of a claim within R, only where that is at most R.
        """
        guarantee = self.heuristic.guarantee
        if guarantee.standing is not Standing.PROVEN:
            return
        above = (values > cost) & (cost <= (MAX_COST if guarantee.within is None else guarantee.within))
        if above.any():
            row = int(np.argmax(above))
            raise Contradiction(
                f"{self.heuristic.name} claims that it {guarantee}, but says {values[row]:g} of a state from which a solution "
                f"costs {cost[row]}: {self.puzzle.format(states[row : row + 1])}. Nothing follows from its claim"
            )


def _optimality(status: Status, cost: int | None, lower_bound: int, guarantee: Guarantee, weight: float) -> Optimality:
    if cost is None:
        return Optimality(OptimalityKind.UNKNOWN)
    if cost == lower_bound:
        return Optimality(OptimalityKind.PROVEN)
    probability = guarantee.solution_probability
    if probability is not None and status is Status.SOLVED and weight == 1:
        return Optimality(OptimalityKind.CALIBRATED, probability=probability, population=guarantee.population)
    # The weight bounds the cost only of a search that ran to its end.
    factors = [weight] if guarantee.is_proven and status is Status.SOLVED else []
    factors += [cost / lower_bound] if lower_bound > 0 else []
    return Optimality(OptimalityKind.BOUNDED, factor=min(factors)) if factors else Optimality(OptimalityKind.UNKNOWN)


def _analytic(formula: BaseHeuristic) -> Analytic:
    return Analytic(formula.cell_cost, NO_PAIRS if formula.pair_cost is None else formula.pair_cost, formula.divisor)


def _as_words(states: States, state_words: int) -> AnyArray:
    """uint64[B, SW], a byte a cell."""
    padded = np.zeros((len(states), 8 * state_words), dtype=np.uint8)
    padded[:, : states.shape[1]] = states
    return padded.view("<u8").astype(np.uint64)
