"""A* on a device: one instance that expands many nodes at a time, or many instances in lock-step.

With one node a step, every search makes the expansions that A* on the processor makes, one by one.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, islice

import numpy as np
import torch
from torch import Tensor

from undershoot.arrays import I64, States
from undershoot.errors import NotAvailable, UndershootError
from undershoot.guarantees import Heuristic, Rounding, Standing
from undershoot.heuristics.device_values import values_on
from undershoot.oracles.size import available_memory
from undershoot.puzzles.problem import Problem
from undershoot.search.conclusions import Ending, check_request, conclude, whole_bound
from undershoot.search.device.endings import Reader
from undershoot.search.device.lanes import IDLE, OUT_OF_MEMORY, OUT_OF_TIME, RUNNING, Lanes, rules_of
from undershoot.search.device.nodes import FIRST_NODES, MOST_COST, Nodes
from undershoot.search.device.open_lists import OpenList
from undershoot.search.device.packing import check_packs
from undershoot.search.device.replays import replays_of
from undershoot.search.device.rounds import NoRoomError, Rounds, TooDearError, WrongValueError
from undershoot.search.device.runs import Runs
from undershoot.search.device.stacks import Stacks
from undershoot.search.device.step_kernels import MOST_VALUE, round_kernels
from undershoot.search.glimpses import Glimpse, Watching
from undershoot.search.options import Algorithm, SearchOptions, check_options
from undershoot.search.results import Result, Status

LOCK_STEP = {"cuda": 1 << 14, "cpu": 1 << 11}
"""Searches that run together, at most."""
COMPARED = {"cuda": 1 << 26, "cpu": 1 << 22}
"""Pairs of children that are compared with each other in a step, at most: those of each search with each other."""
ROOM_TO_BEGIN = 1 << 15
"""Bytes that a search should have, at least, when it begins."""
ROOM_A_LANE, ROOM_ALONE, ROOM_BYTES = 1 << 11, 1 << 24, 1 << 9
"""Nodes for which there is room at first: for each search of many, and for one alone; and at most one for so many bytes."""
FEWEST = 64
"""Fewer searches are not quicker."""
FEW = 64
"""Searches run together if each makes at most so many children in a step; otherwise one after another."""


def astar_on_device(
    puzzle: Problem,
    states: States,
    heuristic: Heuristic,
    options: SearchOptions,
    device: str,
    progress: Callable[[int], None] | None = None,
) -> list[Result]:
    """A* with reopening from every state, uint8[N, n], as tensor operations on a device of torch; results in the same order.

    Heuristics that give anything but whole numbers are refused, and so are puzzles whose states take too many bits. progress:
    called with how many searches ended.
    """
    states = check_request(puzzle, states, heuristic)
    check_options(replace(options, algorithm=Algorithm.ASTAR), 1)
    check_packs(puzzle)
    if heuristic.rounding is Rounding.NONE:
        raise NotAvailable(
            f"A* on a device goes by whole values, and {heuristic.name} gives others; round them up "
            "(undershoot calibrate --rounding integer), or leave out --device"
        )
    results: list[Result | None] = [None] * len(states)
    searches = Searches(puzzle, states, heuristic, options, torch.device(device))
    for done, (instance, result) in enumerate(searches.run(), start=1):
        results[instance] = result
        if progress is not None:
            progress(done)
    return [result for result in results if result is not None]


class Searches:
    """All instances, as many at a time as run together."""

    def __init__(
        self, puzzle: Problem, starts: States, heuristic: Heuristic, options: SearchOptions, device: torch.device
    ) -> None:
        self.puzzle, self.starts, self.heuristic, self.options, self.device = puzzle, starts, heuristic, options, device
        self.values = values_on(puzzle, heuristic, device)
        self.rules = rules_of(options)
        self.kernels = round_kernels(puzzle.table, self.rules, device)
        self.steps = self.kernels.steps
        self.memory = memory_of(options, device)
        self.queue: Iterator[int] = iter(range(len(starts)))
        self.watching = Watching(options.watch)
        self.peak_bytes = 0
        children = options.expand_per_step * self.steps.steps
        self.at_once = 1
        if children <= FEW:
            most = min(COMPARED[device.type] // children**2, self.memory // ROOM_TO_BEGIN, len(starts))
            self.at_once = max(1, min(LOCK_STEP[device.type], most))

    def run(self) -> Iterator[tuple[int, Result]]:
        """Yields the number of an instance and its result, as they end."""
        with torch.no_grad():
            while instances := list(islice(self.queue, self.at_once)):
                group = _Group(self, instances)
                yield from group.run()
                self.peak_bytes = max(self.peak_bytes, group.rounds.peak_bytes)

    def rounds(self, lanes: int) -> Rounds:
        """For so many searches at once."""
        per_step, deep = self.options.expand_per_step, self.rules.deep
        room = self._first_room(lanes)
        nodes = Nodes(self.kernels.packing.words, self.device, many=lanes > 1, room=room)
        open_list: OpenList
        if per_step * self.steps.steps <= FEW:
            open_list = Stacks(lanes, per_step, deep, self.device, room)
        else:
            open_list = Runs(per_step, deep, self.device, room)
        return Rounds(self.kernels, self.values, self.rules, Lanes(lanes, self.device), nodes, open_list, self.memory)

    def _first_room(self, lanes: int) -> int:
        """For nodes; on a device of its own much at once, since to move them, or to record a round anew, takes longer."""
        if self.device.type == "cpu":
            return FIRST_NODES
        return max(FIRST_NODES, min(ROOM_A_LANE * lanes if lanes > 1 else ROOM_ALONE, self.memory // ROOM_BYTES))


class _Group:
    """Searches that share nodes and an index. When one ends, the next one takes its lane, as long as there is room."""

    def __init__(self, searches: Searches, instances: list[int]) -> None:
        self.searches, self.instances = searches, instances
        self.rounds = searches.rounds(len(instances))
        self.replays = replays_of(self.rounds)
        weight = float(searches.options.weight)
        self.reader = Reader(searches.puzzle, searches.heuristic, self.rounds, weight)
        self.instance: I64 = np.full(len(instances), -1, dtype=np.int64)
        """int64[L]: that each lane is for; -1 for none."""
        self.began = np.zeros(len(instances))
        self.is_short = False
        """Whether there was no room for another step."""

    def run(self) -> Iterator[tuple[int, Result]]:
        """Until none is left in the group; from the queue others follow those that ended."""
        running = self._begin_all()
        while running:
            running = self._step()
            ended = int((self.instance >= 0).sum()) - running
            if ended and (ended * 16 >= len(self.instance) or not running or self.is_short):
                yield from self._report()
                running += self._follow() if running and not self.is_short else 0
                if FEWEST <= running * 2 < len(self.instance):
                    self._narrow()
            if self.is_short:
                running = self._make_space()
                yield from self._report()
                self._forget()
            elif running:
                self.searches.watching.look(self._glimpse)

    def _begin_all(self) -> int:
        """Or one, if there is no room for more; the others go back to the queue."""
        try:
            return self._begin(np.arange(len(self.instances)), self.instances)
        except (NoRoomError, torch.cuda.OutOfMemoryError):
            self.instance[:] = -1
            self.searches.queue = chain(self.instances[1:], self.searches.queue)
            return self._begin(np.arange(1), self.instances[:1])

    def _follow(self) -> int:
        """Let the next instances begin in the lanes that are free, as far as there is room. Returns how many."""
        free = np.flatnonzero(self.instance < 0)
        instances = list(islice(self.searches.queue, len(free)))
        if instances:
            try:
                self._begin(free[: len(instances)], instances)
            except (NoRoomError, torch.cuda.OutOfMemoryError):
                self.instance[free] = -1
                self.searches.queue = chain(instances, self.searches.queue)
                return 0
        return len(instances)

    def _narrow(self) -> None:
        """Leave out the lanes in which nothing runs."""
        kept = (self.rounds.lanes.status == RUNNING).nonzero()[:, 0]
        lanes = kept.cpu().numpy()
        self.instance, self.began = self.instance[lanes], self.began[lanes]
        self.rounds.narrow(kept)

    def _make_space(self) -> int:
        """Where no search left anything to forget, those end that hold most. Returns how many go on."""
        lanes = self.rounds.lanes
        runs = lanes.status == RUNNING
        held = torch.where(runs, lanes.evaluated, 0)
        if int(held.sum()) * 4 > self.rounds.nodes.stored * 3:
            lanes.stop(held * 2 >= held.max(), OUT_OF_MEMORY)
        return int((lanes.status == RUNNING).sum())

    def _forget(self) -> None:
        """What the searches held that have ended."""
        self.is_short = False
        if (self.instance >= 0).any():
            self.rounds.forget_others()

    def _begin(self, lanes: I64, instances: list[int]) -> int:
        self.instance[lanes], self.began[lanes] = instances, time.perf_counter()
        device = self.searches.device
        where, keys = torch.tensor(lanes, device=device), torch.tensor(instances, device=device)
        states = torch.tensor(self.searches.starts[instances], device=device).long()
        try:
            self.rounds.begin(where, keys, states)
        except WrongValueError as wrong:
            self._refuse(wrong)
        return len(instances)

    def _step(self) -> int:
        """One round. Returns how many searches run."""
        lanes, limit = self.rounds.lanes, self.searches.options.max_seconds
        if limit is not None:
            is_late = (self.instance >= 0) & (time.perf_counter() - self.began > limit)
            if is_late.any():
                lanes.stop(torch.tensor(is_late, device=lanes.device), OUT_OF_TIME)
        try:
            return self.rounds.step() if self.replays is None else self.replays.run()
        except (NoRoomError, torch.cuda.OutOfMemoryError) as short:
            if isinstance(short, NoRoomError) and not self.rounds.has_taken:
                self.is_short = True
                return int((lanes.status == RUNNING).sum())
            lanes.stop(torch.ones_like(lanes.status, dtype=torch.bool), OUT_OF_MEMORY)
            return 0
        except TooDearError:
            raise UndershootError(f"costs above {MOST_COST:,} are not searched on a device; leave out --device") from None
        except WrongValueError as wrong:
            self._refuse(wrong)
        return 0

    def _refuse(self, wrong: WrongValueError) -> None:
        """Say of a value what is said of it on the processor."""
        heuristic, value = self.searches.heuristic, wrong.value
        if MOST_VALUE < value < float("inf"):
            raise UndershootError(
                f"the heuristic {heuristic.name} gives {value:g}; values above {MOST_VALUE:,} are not searched with on a "
                "device; leave out --device"
            )
        guarantee = heuristic.guarantee
        claim = f"that it {guarantee}" if guarantee.standing is Standing.PROVEN and value < 0 else "whole values"
        claim = "whole values from 0" if claim == "whole values" and value < 0 else claim
        reason = f", though it claims {claim}" if np.isfinite(value) else ""
        state = self.searches.puzzle.format(wrong.state.to(torch.uint8).cpu().numpy()[None])
        raise UndershootError(f"the heuristic {heuristic.name} gives {value}{reason}, for {state}")

    def _report(self) -> Iterator[tuple[int, Result]]:
        """The results of searches that have ended."""
        status = self.rounds.lanes.status
        where = ((status > RUNNING) & (torch.tensor(self.instance, device=status.device) >= 0)).nonzero()[:, 0]
        lanes = where.cpu().numpy()
        instances = self.instance[lanes]
        results = self._concluded(where, lanes)
        self.instance[lanes] = -1
        status[where] = IDLE
        yield from zip(instances.tolist(), results, strict=True)

    def _concluded(self, where: Tensor, lanes: I64) -> list[Result]:
        searches = self.searches
        starts = searches.starts[self.instance[lanes]]
        return conclude(searches.puzzle, searches.heuristic, starts, self._endings(where, lanes))

    def _endings(self, where: Tensor, lanes: I64, under_way: Status | None = None) -> list[Ending]:
        return self.reader.endings(where, (time.perf_counter() - self.began[lanes]).tolist(), under_way)

    def _glimpse(self) -> Glimpse:
        """Of the first search that is under way."""
        searches = self.searches
        where = (self.rounds.lanes.status == RUNNING).nonzero()[:1, 0]
        lanes = where.cpu().numpy()
        (ending,) = self._endings(where, lanes, Status.TIME)
        start = searches.starts[self.instance[lanes]]
        return Glimpse(ending.expanded, whole_bound(searches.puzzle, searches.heuristic, start, ending), ending.seconds)


def memory_of(options: SearchOptions, device: torch.device) -> int:
    """Bytes that searches may take: as asked for, or half of what is free; of a device of its own, most of it."""
    free = available_memory() if device.type == "cpu" else torch.cuda.mem_get_info(device)[0]
    usual = free // 2 if device.type == "cpu" else free * 7 // 8
    return usual if options.max_memory is None else min(options.max_memory, free)
