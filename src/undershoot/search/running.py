"""The searches that are under way in one workspace: fed from a queue, advanced, evaluated, and concluded when they end."""

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from undershoot.arrays import F32, I64, U64, AnyArray, States
from undershoot.errors import TooDear, UndershootError
from undershoot.guarantees import Heuristic, Rounding, Standing
from undershoot.kernels.cpu import is_goal
from undershoot.kernels.guides import Elsewhere, guide_of, kept_size
from undershoot.kernels.plan import forward_plan
from undershoot.kernels.sums import sums
from undershoot.puzzles.problem import Problem
from undershoot.search import lifecycle, readout
from undershoot.search import workspace as ws
from undershoot.search.advance import advance
from undershoot.search.conclusions import Ending, check_claim, conclude, whole_bound
from undershoot.search.glimpses import Glimpse, Watching
from undershoot.search.heads import MOST_SPAN
from undershoot.search.options import Algorithm, SearchOptions, Ties
from undershoot.search.results import Result, Status
from undershoot.search.workspace import MAX_COST, Moves, Rules

SECONDS_IN_LOOP, FIRST_QUANTUM, MOST_QUANTUM = 0.02, 100, 100_000
"""The loop lets Python look at the clock after about so many seconds, but between so many and so many expansions."""
ROOM_TO_BEGIN = 1 << 17
"""Bytes that a search should have, at least, when it begins."""
NO_LIMIT = 2**62
STATUSES = {
    ws.SOLVED: Status.SOLVED,
    ws.UNSOLVABLE: Status.UNSOLVABLE,
    ws.OVER_BUDGET: Status.BUDGET,
    ws.OUT_OF_MEMORY: Status.MEMORY,
    ws.OUT_OF_TIME: Status.TIME,
}
COUNTERS = ("expanded", "generated", "evaluated", "reopened", "stored")
NO_VALUES: F32 = np.zeros(0, dtype=np.float32)


class Draws:
    """One state of each search, each equally likely among those that it expanded, if wanted."""

    def __init__(self, starts: States, seed: int | None) -> None:
        self.states = starts[:0] if seed is None else starts.copy()
        """uint8[N, n], written as the searches end."""
        self.random: U64 = np.random.default_rng(seed).integers(2**63, size=len(self.states), dtype=np.uint64)


class Searches:
    """Up to `at_once` searches under way in one workspace."""

    def __init__(
        self,
        puzzle: Problem,
        starts: States,
        heuristic: Heuristic,
        options: SearchOptions,
        at_once: int,
        memory: int,
        queue: Iterator[int],
        draws: Draws,
        guide: Any,
        buckets: bool | None = None,
    ) -> None:
        """queue: numbers of instances to be searched, shared with others. guide: the heuristic in the loop, for this thread
        alone, or `Elsewhere`. buckets: None if the heuristic decides."""
        self.puzzle = puzzle
        self.starts = starts
        self.heuristic = heuristic
        self.options = options
        self.memory = memory
        self.queue = queue
        self.draws = draws
        self.moves = moves_of(puzzle)
        self.guide = guide
        self.rules = rules_of(heuristic, options, not isinstance(guide, Elsewhere), buckets)
        self.base = sums(puzzle.base_heuristic)
        steps, state_words = self.moves.plan.legal.shape[1], self.moves.goals.shape[1]
        self.workspace = ws.make_workspace(
            at_once, options.expand_per_step, steps, state_words, kept_size(self.guide), self.rules.buckets, memory
        )
        # A search that is stopped for its time leaves its rows behind, and the one that follows it adds its start.
        rows = 1 if self.rules.in_loop else at_once * (options.expand_per_step * steps + 2)
        self.out: States = np.empty((rows, puzzle.table.cells), dtype=np.uint8)
        self.instance = np.full(at_once, -1, dtype=np.int64)
        """int64[M]: the instance that each lane is for; -1 for none."""
        self.began = np.zeros(at_once)
        self.spent = np.zeros(at_once)
        """In the loop, where searches run one after another: the seconds of each search's own turns."""
        self.next_lane = 0
        """In the loop: whose turn it is."""
        self.quantum = FIRST_QUANTUM if self.rules.in_loop else NO_LIMIT
        """Expansions before Python looks at the clock."""
        self.watching = Watching(options.watch)
        self.is_stopped = False
        self.peak_bytes = 0

    def compile(self) -> None:
        """Compile everything, or fetch it from the cache, so that no instance is charged for it."""
        nothing = np.zeros(0, dtype=np.int64)
        self._begin_with(nothing, self.starts[nothing], 0)
        self._advance(NO_VALUES)
        list(self._endings(nothing))
        lifecycle.end(self.workspace, nothing, False)
        lifecycle.tally(self.workspace.searches)
        if not self.rules.in_loop:
            lifecycle.first_wrong(NO_VALUES, self.rules)
            self.heuristic(self.starts[:1])

    def run(self) -> Iterator[tuple[int, Result]]:
        """Search until the queue is empty; yields the number of an instance and its result."""
        searches = self.workspace.searches
        rows = self._begin(np.arange(len(self.instance)), 0)
        ended, running, is_short = lifecycle.tally(searches)
        while ended + running and not self.is_stopped:
            rows = self._advance_in_loop() if self.rules.in_loop else self._advance(self._evaluate(self.out[:rows]))
            if self.options.max_seconds is not None:
                self._stop_late_ones(self.options.max_seconds)
            ended, running, is_short = lifecycle.tally(searches)
            if running:
                self.watching.look(self._glimpse)
            # In lock-step, reporting many at once is cheaper than one by one; a few lanes may stay empty for a while,
            # unless memory is short.
            is_time = self.rules.in_loop or ended * 16 >= len(self.instance) or is_short
            if ended and (is_time or not running):
                lanes = np.flatnonzero(searches["status"] > ws.RUNNING)
                yield from self._report(lanes)
                self.instance[lanes] = -1
                lifecycle.end(self.workspace, lanes, True)
                rows = self._begin(lanes, rows)
                lifecycle.end(self.workspace, lanes[self.instance[lanes] < 0], False)
                ended, running, is_short = lifecycle.tally(searches)
        self.peak_bytes = max(self.peak_bytes, self._touched())

    def _begin(self, lanes: I64, rows: int) -> int:
        """Let the next instances of the queue begin in these lanes. Returns how many rows of `out` wait to be evaluated."""
        instances = list(islice(self.queue, len(lanes)))
        if not instances:
            return rows
        lanes = np.ascontiguousarray(lanes[: len(instances)])
        self.instance[lanes] = instances
        self.began[lanes], self.spent[lanes] = time.perf_counter(), 0
        return self._begin_with(lanes, self.starts[instances], rows)

    def _begin_with(self, lanes: I64, starts: States, rows: int) -> int:
        return int(lifecycle.begin(self.workspace, lanes, starts, self.moves, self.rules, rows, self.out))

    def _advance(self, values: F32) -> int:
        """One call of the compiled loop; returns how many rows of `out` wait to be evaluated."""
        rows, self.next_lane = advance(
            self.workspace, self.moves, self.guide, self.rules, values, self.out, self.quantum, self.next_lane
        )
        return int(rows)

    def _advance_in_loop(self) -> int:
        """Likewise, sharing the time that it took out over the searches that made expansions."""
        expanded_before, began = self.workspace.searches["expanded"].copy(), time.perf_counter()
        rows = self._advance(NO_VALUES)
        expansions, seconds = self.workspace.searches["expanded"] - expanded_before, time.perf_counter() - began
        self.spent += seconds * expansions / max(1, expansions.sum())
        self.quantum = int(min(max(expansions.sum() * SECONDS_IN_LOOP / seconds, FIRST_QUANTUM), MOST_QUANTUM))
        return rows

    def _evaluate(self, states: States) -> F32:
        """float32[B]: checked values of the heuristic."""
        if not len(states):
            return NO_VALUES
        heuristic, guarantee = self.heuristic, self.heuristic.guarantee
        values = np.ascontiguousarray(heuristic(states), dtype=np.float32)
        if values.shape != (len(states),):
            raise UndershootError(f"{heuristic.name} gave {values.shape} values for {len(states)} states")
        row = lifecycle.first_wrong(values, self.rules)
        if row >= 0:
            self._refuse(states[row : row + 1], float(values[row]))
        if guarantee.standing is Standing.PROVEN:
            reached = is_goal(self.puzzle.table, states)
            costs = np.zeros(int(reached.sum()), dtype=np.int64)
            check_claim(self.puzzle, heuristic, states[reached], values[reached], costs)
        return values

    def _refuse(self, state: States, value: float) -> None:
        """A value that no search can go on with."""
        name, guarantee = self.heuristic.name, self.heuristic.guarantee
        claim = f"that it {guarantee}" if guarantee.standing is Standing.PROVEN else "whole values from 0"
        claim = "whole values" if value >= 0 else claim
        reason = "" if not math.isfinite(value) else f", though it claims {claim}"
        raise UndershootError(f"the heuristic {name} gives {value}{reason}, for {self.puzzle.format(state)}")

    def _refuse_value_in_loop(self, lane: int) -> None:
        """Say of a value that came up in the loop what is said of it in a batch."""
        search = self.workspace.searches[lane]
        node = self.workspace.nodes[search["nodes_at"] + search["refused"]]
        self._evaluate(node["state"].view(np.uint8)[None, : self.puzzle.table.cells].copy())
        raise UndershootError(f"{self.heuristic.name} gives {node['h']} in the loop and another value in batches: report this")

    def _touched(self) -> int:
        """Bytes of nodes, hash indices and open lists, now or earlier."""
        return 8 * int(self.workspace.pools["touched"][-1])

    def _stop_late_ones(self, seconds: float) -> None:
        passed = self.spent if self.rules.in_loop else time.perf_counter() - self.began
        status = self.workspace.searches["status"]
        status[(status == ws.RUNNING) & (passed > seconds)] = ws.OUT_OF_TIME

    def _seconds(self, lane: int) -> float:
        """How long the instance in this lane has been searched."""
        return float(self.spent[lane] if self.rules.in_loop else time.perf_counter() - self.began[lane])

    def _report(self, lanes: I64) -> Iterator[tuple[int, Result]]:
        """The results of searches that have ended."""
        status = self.workspace.searches["status"][lanes]
        for lane in lanes[status == ws.TOO_DEAR].tolist():
            state = self.puzzle.format(self.starts[self.instance[lane]][None])
            raise TooDear(f"costs above {MAX_COST:,} are not searched; they come up from {state}")
        for lane in lanes[status == ws.WRONG_VALUE].tolist():
            self._refuse_value_in_loop(lane)
        for lane in lanes[status == ws.NEEDS_HEAP].tolist():
            yield from self._again_with_heap(lane)
        lanes = lanes[status != ws.NEEDS_HEAP]
        if not len(lanes):
            return
        instances = self.instance[lanes]
        if len(self.draws.states):
            drawn = np.empty((len(lanes), self.starts.shape[1]), dtype=np.uint8)
            readout.write_expanded(self.workspace, lanes, self.draws.random[instances], drawn)
            self.draws.states[instances] = drawn
        results = conclude(self.puzzle, self.heuristic, self.starts[instances], list(self._endings(lanes)))
        yield from zip(instances.tolist(), results, strict=True)

    def _glimpse(self) -> Glimpse:
        """Of the first search that is under way."""
        lanes = np.flatnonzero(self.workspace.searches["status"] == ws.RUNNING)[:1]
        ending = next(self._endings(lanes, Status.TIME))
        start = self.starts[self.instance[lanes]]
        return Glimpse(ending.expanded, whole_bound(self.puzzle, self.heuristic, start, ending), ending.seconds)

    def _endings(self, lanes: I64, under_way: Status | None = None) -> Iterator[Ending]:
        """How these searches ended; those that are under way as if they ended now, with the status `under_way`."""
        bounds, state = np.zeros(len(lanes)), np.zeros((1, self.puzzle.table.cells), dtype=np.uint8)
        is_proven = self.heuristic.guarantee.is_proven
        readout.open_bounds(self.workspace, lanes, self.rules, self.base, is_proven, state, bounds)
        paths = readout.read_paths(self.workspace, lanes, self.moves)
        costs, below, ends, bounds_of_open = paths.costs.tolist(), paths.below.tolist(), paths.ends.tolist(), bounds.tolist()
        columns = {name: self.workspace.searches[name][lanes].tolist() for name in ("status", "goal", *COUNTERS)}
        weight, begins = float(self.options.weight), 0
        for k, lane in enumerate(lanes.tolist()):
            is_solved = columns["goal"][k] >= 0
            start_value = float(paths.start_values[k])
            if math.isnan(start_value):  # its memory did not suffice to begin
                start_value = float(self.heuristic(self.starts[self.instance[lane]][None])[0])
            yield Ending(
                start_value=start_value,
                status=under_way or STATUSES[columns["status"][k]],
                cost=costs[k] if is_solved else None,
                actions=paths.actions[begins : ends[k]],
                path=paths.states[begins : ends[k]],
                path_values=paths.values[begins : ends[k]],
                open_bound=bounds_of_open[k],
                expanded_below=below[k] if is_solved and costs[k] <= MOST_SPAN else None,
                seconds=self._seconds(lane),
                weight=weight,
                goes_by_f=True,
                algorithm=Algorithm.ASTAR,
                **{name: columns[name][k] for name in COUNTERS},
            )
            begins = ends[k]

    def _again_with_heap(self, lane: int) -> Iterator[tuple[int, Result]]:
        """Costs are too large for buckets: this instance starts again, alone and with a heap, for the time that is left."""
        instance, spent, limit = int(self.instance[lane]), self._seconds(lane), self.options.max_seconds
        options = self.options if limit is None else replace(self.options, max_seconds=max(0.0, limit - spent))
        touched = self._touched()
        again = Searches(
            self.puzzle,
            self.starts,
            self.heuristic,
            options,
            1,
            max(ROOM_TO_BEGIN, self.memory - touched),
            iter([instance]),
            self.draws,
            self.guide,
            buckets=False,
        )
        yield from ((instance, replace(result, seconds=spent + result.seconds)) for _, result in again.run())
        self.peak_bytes = max(self.peak_bytes, touched + again.peak_bytes)


def moves_of(puzzle: Problem) -> Moves:
    """The puzzle, for the compiled loop."""
    table = puzzle.table
    undo = np.where(table.inverse >= 0, table.alike[table.inverse], -1).astype(np.int32)
    return Moves(forward_plan(table), undo, _as_words(table.goals), table.cells)


def guide_in_loop(heuristic: Heuristic) -> Any:
    """The heuristic as a guide in the compiled loop, for one thread; `Elsewhere` if it is evaluated outside."""
    guide = guide_of(heuristic)
    return Elsewhere() if guide is None else guide


def rules_of(heuristic: Heuristic, options: SearchOptions, in_loop: bool, buckets: bool | None) -> Rules:
    """buckets: None to use them where all f are whole."""
    is_whole = heuristic.rounding is not Rounding.NONE and float(options.weight).is_integer()
    buckets = is_whole if buckets is None else buckets
    claims = heuristic.guarantee.standing is Standing.PROVEN
    return Rules(
        in_loop=in_loop,
        buckets=buckets,
        least_value=0.0 if claims or buckets else -math.inf,
        goals_are_0=claims,
        deep=options.ties is Ties.DEEP,
        weight=float(options.weight),
        per_step=options.expand_per_step,
        most_expanded=NO_LIMIT if options.max_expanded is None else min(options.max_expanded, NO_LIMIT),
    )


def _as_words(states: States) -> AnyArray:
    """uint64[B, SW], a byte a cell. At least two words: for each number of them everything is compiled anew."""
    padded = np.zeros((len(states), max(2, -(-states.shape[1] // 8)) * 8), dtype=np.uint8)
    padded[:, : states.shape[1]] = states
    return padded.view(np.uint64)
