"""Two bounds that meet: a guided search for solutions, IDA* and A* for the bound, at once, sharing what they know."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np

from undershoot.arrays import States
from undershoot.errors import Contradiction, UndershootError
from undershoot.guarantees import Heuristic
from undershoot.heuristics.analytic import base
from undershoot.kernels.cpu import play_path
from undershoot.kernels.guides import guide_of
from undershoot.kernels.plan import forward_plan
from undershoot.oracles.size import available_memory
from undershoot.puzzles.problem import Problem
from undershoot.search.astar import Batch
from undershoot.search.beam import Beam
from undershoot.search.conclusions import Ending, check_request, conclude
from undershoot.search.graph_proving import GraphProver
from undershoot.search.guiding import ON_CORES, ON_DEVICE, ON_ONE_CORE, Guided
from undershoot.search.ida import cut_off, loop_guide, starts_of
from undershoot.search.known import NO_COST, Known, Snapshot, Turns
from undershoot.search.options import CPU, Algorithm, SearchOptions, check_options
from undershoot.search.proving import Prover
from undershoot.search.results import Moved, Result, Status
from undershoot.search.shares import Who
from undershoot.search.staged import Staged
from undershoot.search.stages import stages_of
from undershoot.search.threads import spread

SECONDS_BETWEEN_LOOKS = 0.05
BOTH = SearchOptions(algorithm=Algorithm.BOTH)


def improve(
    puzzle: Problem,
    states: States,
    heuristic: Heuristic,
    guide: Heuristic | None = None,
    options: SearchOptions = BOTH,
    threads: int = 1,
) -> Iterator[Result]:
    """Search from one state, uint8[1, n] or uint8[n], for solutions and for a proof at once; yields results that only get
    better, whenever one of the bounds has moved. The last one says how the search ended.

    heuristic: for the bound; where it is not proven on every state, the puzzle's own stands in for it. guide: for solutions,
    any heuristic; the same one if not given. threads: for the proof; the search for solutions shares the first of them.
    Limits count from the first result on. Who asks for no more results ends it.

    Examples:
        >>> tiles = us.puzzle("tiles-3x3")
        >>> state = tiles.parse("8 6 7 / 2 5 4 / 3 0 1")
        >>> results = list(us.improve(tiles, state, us.heuristic(tiles, "base")))
        >>> bounds = [result.lower_bound for result in results]
        >>> bounds == sorted(bounds), results[-1].cost, str(results[-1].optimality)
        (True, 31, 'optimal, proven')
    """
    if isinstance(states, np.ndarray) and states.ndim == 1:
        states = states[None]
    states = check_request(puzzle, states, heuristic)
    if len(states) != 1:
        raise UndershootError(f"improve takes one state, {len(states)} came; solve_many takes several")
    options = replace(options, algorithm=Algorithm.BOTH)
    if options.device != CPU:
        from undershoot.search.device.choosing import place

        options = place(options, heuristic, threads)
    check_options(options, threads)
    yield from Meeting(puzzle, states, heuristic, check_guide(puzzle, heuristic, guide), options, threads).results()


def meet_many(
    puzzle: Problem,
    states: States,
    heuristic: Heuristic,
    guide: Heuristic | None,
    options: SearchOptions,
    threads: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Batch:
    """The last result of `improve` for every state, uint8[N, n]. threads: over the instances, or if there is one, for it."""
    states = check_request(puzzle, states, heuristic)
    check_options(replace(options, algorithm=Algorithm.BOTH), threads)
    used, ended = check_guide(puzzle, heuristic, guide), dict[int, Result]()
    own_threads, lock, stopped = threads if len(states) == 1 else 1, threading.Lock(), threading.Event()
    if len(states):
        Meeting(puzzle, states[:1], heuristic, used, options, own_threads, threads).compile()
    began = time.perf_counter()

    def meet(number: int) -> None:
        if stopped.is_set():
            return
        state = states[number : number + 1]
        *_, result = Meeting(puzzle, state, heuristic, used, options, own_threads, threads, stopped).results()
        with lock:
            ended[number] = result
            if progress is not None:
                progress(len(ended))

    if len(states) > 1 and threads > 1:
        spread(meet, range(len(states)), threads, stopped)
    else:
        for number in range(len(states)):
            meet(number)
    return Batch([ended[number] for number in range(len(states))], time.perf_counter() - began, 0, states[:0])


def check_guide(puzzle: Problem, heuristic: Heuristic, guide: Heuristic | None) -> Heuristic:
    """The guide, or the heuristic if none was given."""
    if guide is None:
        return heuristic
    if not hasattr(guide, "fingerprint") or guide.fingerprint != puzzle.table.fingerprint:
        name = getattr(guide, "name", type(guide).__name__)
        raise UndershootError(f"the guide {name} (--guide) belongs to another puzzle than {puzzle.name}; take one for it")
    return guide


def prover_of(puzzle: Problem, heuristic: Heuristic) -> Heuristic:
    """What the proof goes by: the heuristic if it never overestimates and has a guide for loops, otherwise the puzzle's own."""
    return heuristic if heuristic.guarantee.is_proven and guide_of(heuristic) is not None else base(puzzle)


class Compiled(Protocol):
    """Something that searches in compiled loops."""

    def compile(self) -> None:
        """Before the clock starts."""


class Part(Compiled, Protocol):
    """Something that finds solutions."""

    def slices(self) -> Iterator[None]:
        """Search, a short while for each item."""


class Proof(Protocol):
    """Something that raises the lower bound."""

    def compile(self) -> None:
        """Before the clock starts."""

    def prove(self) -> None:
        """Until both bounds meet, or a limit strikes."""


class Meeting:
    """All searches of one instance."""

    def __init__(
        self,
        puzzle: Problem,
        start: States,
        heuristic: Heuristic,
        guide: Heuristic,
        options: SearchOptions,
        threads: int = 1,
        beside: int = 1,
        stopped: threading.Event | None = None,
    ) -> None:
        """beside: how many share the memory. stopped: set by others to end it."""
        self.puzzle, self.start, self.heuristic = puzzle, start, heuristic
        self.prover_heuristic = prover_of(puzzle, heuristic)
        (begin,) = starts_of(puzzle, start, self.prover_heuristic, None)
        self.known = Known(puzzle, start, begin.lower, options, stopped, tuple(Who))
        self.known.raise_bound(max(begin.lower, self._value_of_start()))
        self.known.offer(np.zeros(0, dtype=np.int32))  # it may be solved
        turns = Turns()
        # What A* would have if it searched alone; a third for each of those that need memory.
        free = available_memory()
        memory = (free // 2 if options.max_memory is None else min(options.max_memory, free)) // beside
        self.graph = GraphProver(self.known, self.prover_heuristic, -(-memory // 3), turns)
        stages = stages_of(puzzle)
        on_cores: list[Part] = [] if stages is None else [Staged(self.known, stages)]
        on_device: list[Part] = []
        turns_there = Turns()
        if options.device == CPU:
            loop, cut = loop_guide(self.prover_heuristic), cut_off(puzzle, self.prover_heuristic)
            self.prover: Proof = Prover(self.known, begin, self.prover_heuristic, loop, threads, cut, turns)
            on_cores.append(Beam(self.known, guide, self.prover_heuristic, memory // 3))
        else:
            from undershoot.search.device.proving import prover_on_device

            self.prover = prover_on_device(self.known, heuristic, options.device, turns_there)
            beam, works_there = self._beam_there(guide, memory // 3)
            (on_device if works_there else on_cores).append(beam)
        self.parts, here = [*on_cores, *on_device], ON_CORES if threads > 1 else ON_ONE_CORE
        self.guided = [
            Guided(self.known, [part.slices() for part in parts], *whose)
            for parts, whose in ((on_cores, (turns, here)), (on_device, (turns_there, ON_DEVICE)))
            if parts
        ]
        self.finding, self.lock = len(self.guided), threading.Lock()
        self.raised: list[BaseException] = []
        self.history: list[Moved] = []

    def _beam_there(self, guide: Heuristic, memory: int) -> tuple[Part, bool]:
        """Beside a proof on a device, and whether most of its work is there, too. A guide that the device does not know is
        asked on the cores, where one that is in the loop is asked much faster by a beam that is there itself."""
        from undershoot.search.device.beam import beam_on_device, packs

        if packs(self.known):
            beam = beam_on_device(self.known, guide, self.prover_heuristic, memory)
            if not beam.asks_the_host or guide_of(guide) is None:
                return beam, not beam.asks_the_host
        return Beam(self.known, guide, self.prover_heuristic, memory), False

    def _value_of_start(self) -> int:
        """What is known of the start before any search."""
        if not self.heuristic.guarantee.is_proven:
            return 0
        value = float(self.heuristic(self.start)[0])
        return int(np.ceil(value)) if np.isfinite(value) else 0

    def compile(self) -> None:
        """All of them, or fetch from the cache what is compiled."""
        searches: list[Compiled] = [self.prover, self.graph, *self.parts]
        for search in searches:
            search.compile()

    def results(self) -> Iterator[Result]:
        """Better and better ones; see `improve`."""
        self.compile()
        self.known.begin()
        threads = [threading.Thread(target=self._until_raised, args=(work,), daemon=True) for work in self._works()]
        try:
            for thread in threads:
                thread.start()
            yield from self._moves(threads)
        finally:
            self.known.end(Status.TIME)
            for thread in threads:
                thread.join()

    def _works(self) -> list[Callable[[], None]]:
        return [*(partial(self._find, guided) for guided in self.guided), self.prover.prove, self.graph.prove]

    def _find(self, guided: Guided) -> None:
        guided.search()
        with self.lock:
            self.finding -= 1
            if not self.finding:
                self.known.leave(Who.GUIDED)

    def _until_raised(self, work: Callable[[], None]) -> None:
        """What one of them raises ends both."""
        try:
            work()
        except BaseException as error:
            self.raised.append(error)
            self.known.end(Status.TIME)

    def _moves(self, threads: list[threading.Thread]) -> Iterator[Result]:
        """A result whenever a bound has moved, and one at the end, with what either search found to its last moment."""
        last: Snapshot | None = None
        while last is None or last.status is None:
            last = self.known.next_after(last, SECONDS_BETWEEN_LOOKS)
            if last.status is not None:
                for thread in threads:
                    thread.join()
                last = self.known.next_after(None, SECONDS_BETWEEN_LOOKS)
            if self.raised:
                raise self.raised[0]
            yield self._result(last)

    def _result(self, now: Snapshot) -> Result:
        is_solved = now.cost < NO_COST
        cost = now.cost if is_solved else None
        self.history.append(Moved(now.seconds, cost, now.lower))
        known = self.heuristic if self.heuristic.guarantee.is_proven else self.prover_heuristic
        if now.cost < now.lower:
            raise Contradiction(
                f"a solution of cost {now.cost} was found where {known.name}, which claims that it {known.guarantee}, "
                f"implies at least {now.lower}: {self.puzzle.format(self.start)}"
            )
        states = np.repeat(self.start, len(now.actions) + 1, axis=0)
        play_path(forward_plan(self.puzzle.table), now.actions, states)
        path = states[:-1]
        ending = Ending(
            status=now.status or Status.SEARCHING,
            cost=cost,
            actions=now.actions,
            path=path,
            path_values=np.asarray(known(path) if len(path) else np.zeros(0), dtype=np.float32),
            start_value=float(known(self.start)[0]),
            open_bound=float(now.lower),
            expanded_below=None,
            reopened=0,
            seconds=now.seconds,
            weight=1.0,
            goes_by_f=False,
            algorithm=Algorithm.BOTH,
            **now.counts,
        )
        (result,) = conclude(self.puzzle, known, self.start, [ending])
        return replace(result, history=tuple(self.history))
