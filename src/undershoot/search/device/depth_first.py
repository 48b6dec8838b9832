"""IDA* on a device: depth-first in chunks of a million nodes, with pattern tables.

Every chunk is nodes of one depth, of one instance or of many; all their children are made, looked up and cut off at once. What
is proven is what IDA* proves: a bound is raised only when everything below it was searched.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from undershoot.arrays import F32, I32, I64, States
from undershoot.errors import NotAvailable, TooDear
from undershoot.heuristics.device_patterns import NO_VALUE, DevicePatterns
from undershoot.kernels.cpu import play_path
from undershoot.kernels.plan import forward_plan
from undershoot.puzzles.problem import Problem
from undershoot.search.conclusions import Ending, check_claim, check_request, conclude
from undershoot.search.depth_first import NEVER
from undershoot.search.device.expanding import Expander, expander_of
from undershoot.search.device.frontier import Frontier, Rows
from undershoot.search.glimpses import Glimpse, Watching
from undershoot.search.ida import Start, starts_of
from undershoot.search.options import Algorithm, SearchOptions, check_options
from undershoot.search.results import Result, Status

CHUNK = {"cuda": 1 << 21, "cpu": 1 << 14}
"""Nodes that are expanded at once."""
ALONE_FROM = 1 << 20
"""An instance with an iteration of so many expansions fills the device by itself, and is searched alone from then on."""
TOGETHER = 1 << 12
"""Instances that are searched at once, at most."""
LEAST_CHUNK = 1 << 14
"""Where memory runs out, chunks are halved down to this before a search gives up."""
MOST_BOUND = 10_000
"""What is left of a bound is held in 16 bits."""


def deepen_on_device(
    puzzle: Problem,
    states: States,
    heuristic: DevicePatterns,
    options: SearchOptions,
    progress: Callable[[int], None] | None = None,
    bounds: Sequence[int] | None = None,
) -> list[Result]:
    """IDA* from every state, uint8[N, n], on the device of the heuristic; results in the same order.

    bounds: for each, from which to begin, where solutions are known to cost so much at least.
    """
    states = check_request(puzzle, states, heuristic)
    check_options(replace(options, algorithm=Algorithm.IDA), 1)
    check_goals(puzzle, heuristic)
    starts = instances_of(puzzle, states, heuristic, bounds)
    expander, ended = expander_of(heuristic), 0
    for first in range(0, len(starts), TOGETHER):
        group = starts[first : first + TOGETHER]
        Rounds(puzzle, expander, group, options, ALONE_FROM).run()
        ended += sum(instance.is_over for instance in group)
        if progress is not None:
            progress(ended)
        for instance in group:
            if not instance.is_over:
                Rounds(puzzle, expander, [instance], options, None).run()
                ended += 1
                if progress is not None:
                    progress(ended)
    return conclude(puzzle, heuristic, states, _endings(puzzle, heuristic, starts))


def instances_of(puzzle: Problem, states: States, heuristic: DevicePatterns, bounds: Sequence[int] | None) -> list["Instance"]:
    """Those that a table says have no solution are over; a goal stands in for their states. So are those that differ from every
    goal where nothing ever moves, which no piece tells."""
    still = _still_cells(heuristic)
    is_dead = np.isinf(heuristic(states)) | (states[:, still] != puzzle.table.goals[0, still]).any(axis=1)
    alive = np.where(is_dead[:, None], puzzle.table.goals[:1], states)
    result = [Instance(start) for start in starts_of(puzzle, alive, heuristic, bounds)]
    for number in np.flatnonzero(is_dead).tolist():
        result[number].status = Status.UNSOLVABLE
    return result


def check_goals(puzzle: Problem, heuristic: DevicePatterns) -> None:
    """Refuse tables that say something of a goal, and goals that pieces do not tell apart."""
    goals = puzzle.table.goals
    if (goals[:, _still_cells(heuristic)] != goals[0, _still_cells(heuristic)]).any():
        raise NotAvailable(f"goals of {puzzle.name} differ in cells that no move changes; leave out --device")
    check_claim(puzzle, heuristic, goals, heuristic(goals), np.zeros(len(goals), dtype=np.int64))


def _still_cells(heuristic: DevicePatterns) -> I64:
    """Cells that belong to no piece."""
    pieces = heuristic.pieces
    return np.setdiff1d(np.arange(pieces.table.cells), np.concatenate([np.array(home) for home in pieces.cells]))


class Instance:
    """One start, and how far its search is."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.lower, self.bound = start.lower, self.to_parity(start.bound)
        """No solution costs less; and the bound of the next iteration."""
        self.expanded, self.generated, self.stored = 0, 0, 1
        self.seconds = 0.0
        self.status: Status | None = None
        """How it ended; None as long as it has not."""
        self.actions: I32 | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status is not None

    def to_parity(self, bound: int) -> int:
        """To a cost that a solution can have."""
        parity = self.start.parity
        return bound if parity is None else bound + ((bound ^ parity) & 1)

    def check_bound(self) -> None:
        """Refuse what is too large for the numbers that are used here."""
        if self.bound > MOST_BOUND:
            raise TooDear(f"costs above {MOST_BOUND:,} are not searched on a device; search on the cores")

    def raise_bound(self, least: int) -> None:
        """Everything within the bound was searched; what was cut off passes it by at least this much."""
        if least >= NO_VALUE // 2:
            self.status = Status.UNSOLVABLE  # whatever was cut off can never be solved
            return
        self.begin_from(self.bound + least)

    def begin_from(self, bound: int) -> None:
        """Every solution costs at least so much: the bound of the next iteration."""
        self.bound = self.to_parity(bound)
        self.check_bound()
        self.lower = max(self.lower, self.bound)


class Rounds:
    """Iterations of several instances at once, each with a bound of its own; a round ends when none has anything left."""

    def __init__(
        self, puzzle: Problem, expander: Expander, instances: list[Instance], options: SearchOptions, alone_from: int | None
    ) -> None:
        """alone_from: instances are left as they are after an iteration of more expansions; None for never."""
        self.puzzle, self.expander, self.instances, self.options = puzzle, expander, instances, options
        self.alone_from = alone_from
        self.device = expander.heuristic.device
        self.frontier = Frontier(CHUNK[self.device.type])
        self.watching = Watching(options.watch)
        self.began = time.perf_counter()
        self.before = [instance.seconds for instance in instances]
        self.stored = 1

    def run(self) -> None:
        """Until every instance is over, or should be searched alone."""
        self._begin()
        going = [k for k, instance in enumerate(self.instances) if not instance.is_over]
        while going:
            expanded = [self.instances[k].expanded for k in going]
            self._round(going)
            grown = [self.instances[k].expanded - before for k, before in zip(going, expanded, strict=True)]
            going = [
                k
                for k, size in zip(going, grown, strict=True)
                if not self.instances[k].is_over and (self.alone_from is None or size < self.alone_from)
            ]
        self._clock([k for k in range(len(self.instances)) if not self.instances[k].is_over])

    def _begin(self) -> None:
        for instance in self.instances:
            if instance.is_over:
                continue
            instance.check_bound()
            instance.lower = max(instance.lower, instance.bound)
            if (instance.start.state == self.puzzle.table.goals).all(1).any():
                instance.status, instance.actions = Status.SOLVED, np.zeros(0, dtype=np.int32)
                instance.expanded += 1

    def _round(self, going: list[int]) -> None:
        """One iteration of each."""
        try:
            least = torch.full((len(self.instances),), NO_VALUE, dtype=torch.int32, device=self.device)
            self.frontier.push(0, self._planted(going))
            while self.frontier and not self._stop_for_time(going):
                self._step(going, least)
            cut_off = least.tolist()
        except torch.cuda.OutOfMemoryError:
            self._make_room(going)
            return  # what was left of this iteration is gone: nothing follows from it
        finally:
            self.frontier.clear()
        for k in going:
            if not self.instances[k].is_over:
                self._raise_bound(k, cut_off[k])
        self._clock([k for k in going if self.instances[k].status is Status.UNSOLVABLE])

    def _raise_bound(self, k: int, least: int) -> None:
        """After an iteration that ended. least: see `Instance.raise_bound`."""
        self.instances[k].raise_bound(least)

    def _make_room(self, going: list[int]) -> None:
        """Smaller chunks, with which the iteration begins anew; or the end of all that go on."""
        if self.frontier.chunk <= LEAST_CHUNK:
            self._stop(going, Status.MEMORY)
        self.frontier.chunk //= 2

    def _planted(self, going: list[int]) -> Rows:
        states = np.concatenate([self.instances[k].start.state for k in going])
        codes = torch.tensor(self.expander.moves.lift(states), device=self.device)
        bounds = [self.instances[k].bound for k in going]
        return Rows(
            codes,
            torch.tensor(bounds, dtype=torch.int16, device=self.device),
            self.expander.arrival_of_starts(codes),
            torch.tensor(going, dtype=torch.int32, device=self.device),
            torch.zeros((0, len(going)), dtype=torch.int64, device=self.device),
        )

    def _step(self, going: list[int], least: Tensor) -> None:
        """Expand a chunk."""
        most = self._reserve()
        if not most:
            return
        depth, rows = self.frontier.pop(most)
        if len(self.instances) > 1 or self.options.max_expanded is not None:
            rows = self._within_limits(rows)
            if not len(rows):
                return
        made = self.expander.expand(rows, depth)
        instance = rows.instance.long()
        if len(self.instances) == 1:
            least.clamp_(max=made.least.amin())  # millions that are written to one place would wait for each other
        else:
            least.scatter_reduce_(0, instance, made.least, "amin")
        self._count(going, instance, made.generated)
        reached = self.expander.moves.is_goal(made.children.codes)
        if bool(reached.any()):
            self._found(made.children, reached, depth + 1)
        self.frontier.push(depth + 1, made.children)
        self.stored = max(self.stored, self.frontier.size)
        self.watching.look(self._glimpse)

    def _reserve(self) -> int:
        """How many nodes may be expanded now; 0 if a limit has struck."""
        return self.frontier.chunk

    def _within_limits(self, rows: Rows) -> Rows:
        """Only what belongs to instances that go on; of those that come to their limit, no more than that allows."""
        limit = self.options.max_expanded
        allowed = [
            0 if instance.is_over else NEVER if limit is None else max(0, limit - instance.expanded)
            for instance in self.instances
        ]
        counts = torch.bincount(rows.instance, minlength=len(allowed)).tolist()
        if all(count <= most for count, most in zip(counts, allowed, strict=True)):
            return rows
        order = torch.argsort(rows.instance, stable=True)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        sorted_instances = rows.instance[order].long()
        place = torch.arange(len(rows), device=self.device) - torch.tensor(first, device=self.device)[sorted_instances]
        pick = order[place < torch.tensor(allowed, device=self.device)[sorted_instances]]
        for k, (count, most) in enumerate(zip(counts, allowed, strict=True)):
            if count > most and not self.instances[k].is_over:
                self._stop([k], Status.BUDGET)
        return rows.chosen(torch.sort(pick)[0])

    def _count(self, going: list[int], instance: Tensor, generated: Tensor) -> None:
        counts, made = [len(instance)], [int(generated.sum())]
        if len(self.instances) > 1:
            counts = torch.bincount(instance, minlength=len(self.instances)).tolist()
            sums = torch.zeros(len(self.instances), dtype=torch.int64, device=self.device)
            made = sums.index_add_(0, instance, generated.long()).tolist()
        for k in going:
            self.instances[k].expanded += counts[k]
            self.instances[k].generated += made[k]

    def _found(self, children: Rows, reached: Tensor, depth: int) -> None:
        """Goals: the first of each instance is its solution, since nothing cheaper was left."""
        numbers = reached.nonzero()[:, 0]
        owners = children.instance[numbers].tolist()
        for number, k in zip(numbers.tolist(), owners, strict=True):
            instance = self.instances[k]
            if instance.actions is None:
                steps = self.expander.paths.steps_of(children.path[:, number], depth)
                instance.actions = np.array(steps, dtype=np.int32)
                instance.expanded += 1
                self._stop([k], Status.SOLVED)

    def _stop(self, numbers: Sequence[int], status: Status) -> None:
        for k in numbers:
            if self.instances[k].status is None or status is Status.SOLVED:
                self.instances[k].status = status
        self._clock(numbers)

    def _clock(self, numbers: Sequence[int]) -> None:
        for k in numbers:
            self.instances[k].seconds = self.before[k] + time.perf_counter() - self.began
            self.instances[k].stored = max(self.instances[k].stored, self.stored)

    def _stop_for_time(self, going: list[int]) -> bool:
        """Whether nothing is to be done any more."""
        limit, passed = self.options.max_seconds, time.perf_counter() - self.began
        if limit is not None:
            self._stop([k for k in going if not self.instances[k].is_over and self.before[k] + passed > limit], Status.TIME)
        return all(self.instances[k].is_over for k in going)

    def _glimpse(self) -> Glimpse:
        instance = next((one for one in self.instances if not one.is_over), self.instances[0])
        return Glimpse(instance.expanded, instance.to_parity(instance.lower), time.perf_counter() - self.began)


def _endings(puzzle: Problem, heuristic: DevicePatterns, instances: Sequence[Instance]) -> list[Ending]:
    """Their paths are evaluated in one call."""
    paths = [_path(puzzle, instance) for instance in instances]
    values = heuristic(np.concatenate([path for path, _ in paths])) if paths else np.zeros(0, dtype=np.float32)
    ends = np.cumsum([len(path) for path, _ in paths], dtype=np.int64).tolist()
    parts = [values[end - len(path) : end] for (path, _), end in zip(paths, ends, strict=True)]
    return [_ending(instance, path, cost, part) for instance, (path, cost), part in zip(instances, paths, parts, strict=True)]


def _path(puzzle: Problem, instance: Instance) -> tuple[States, int]:
    """The states before each move of a solution, uint8[L, n], and what it costs."""
    actions = np.zeros(0, dtype=np.int32) if instance.actions is None else instance.actions
    states = np.repeat(instance.start.state, len(actions) + 1, axis=0)
    cost = int(play_path(forward_plan(puzzle.table), actions, states))
    return states[:-1], cost


def _ending(instance: Instance, path: States, cost: int, values: F32) -> Ending:
    return Ending(
        status=instance.status or Status.TIME,
        cost=None if instance.actions is None else cost,
        actions=np.zeros(0, dtype=np.int32) if instance.actions is None else instance.actions,
        path=path,
        path_values=values,
        start_value=instance.start.value,
        open_bound=float("inf") if instance.status is Status.UNSOLVABLE else float(instance.lower),
        expanded=instance.expanded,
        expanded_below=None,
        generated=instance.generated,
        evaluated=instance.generated + 1,
        reopened=0,
        stored=instance.stored,
        seconds=instance.seconds,
        weight=1.0,
        goes_by_f=True,
        algorithm=Algorithm.IDA,
    )
