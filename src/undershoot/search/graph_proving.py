"""A* as a prover beside searches that share what they know: where many ways lead to a state it needs far fewer expansions than
IDA*, as long as there is memory."""

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np

from undershoot.errors import TooDear
from undershoot.guarantees import Heuristic
from undershoot.search.glimpses import Glimpse
from undershoot.search.known import Known, Turns
from undershoot.search.options import SearchOptions
from undershoot.search.results import Result, Status
from undershoot.search.running import ROOM_TO_BEGIN, Draws, Searches, guide_in_loop
from undershoot.search.shares import Who

FOR_COMPILING = 1 << 20
"""Bytes."""
_type_of: Any = numba.typeof
_compiled: set[tuple[str, str]] = set()
"""Guides, by their types, and puzzles for which it is done."""


class GraphProver:
    """Begins when the proof takes long; tells its bounds, and its solution, to `known`, whose limits it has a share of."""

    def __init__(self, known: Known, heuristic: Heuristic, memory: int, turns: Turns) -> None:
        """heuristic: never overestimates, and has a guide for loops. memory: in bytes. turns: see `Prover`."""
        self.known, self.heuristic, self.turns = known, heuristic, turns
        self.memory = max(memory, ROOM_TO_BEGIN)

    def compile(self) -> None:
        """If there is a limit, which must not be charged for it; otherwise it need not be done before it is needed."""
        options = self.known.options
        if options.max_expanded is not None or options.max_seconds is not None:
            self._compile()

    def _compile(self) -> None:
        key = str(_type_of(guide_in_loop(self.heuristic))), self.known.puzzle.table.fingerprint
        if key not in _compiled:
            _Turns(self, FOR_COMPILING).compile()
            _compiled.add(key)

    def prove(self) -> None:
        """Search until it is over, or memory gives out."""
        self.known.wait_until_long()
        if self.known.is_over:
            return
        self._compile()
        try:
            for _, result in _Turns(self, self.memory).run():
                self._tell(result)
        except TooDear:  # the others may go on
            pass
        self.known.leave(Who.GRAPH)

    def _tell(self, result: Result) -> None:
        if result.cost is not None:
            names = self.known.puzzle.table.action_names
            self.known.offer(np.array([names.index(name) for name in result.actions], dtype=np.int32))
        if result.status is Status.UNSOLVABLE:
            self.known.end(Status.UNSOLVABLE)
        self.known.raise_bound(result.lower_bound)


class _Turns(Searches):
    """The one search, a turn at a time."""

    def __init__(self, prover: GraphProver, memory: int, buckets: bool | None = None) -> None:
        self.prover, self.known = prover, prover.known
        heuristic, start = prover.heuristic, self.known.start
        options = SearchOptions(watch=self._tell_bound)
        guide = guide_in_loop(heuristic)
        draws = Draws(start, None)
        super().__init__(self.known.puzzle, start, heuristic, options, 1, memory, iter([0]), draws, guide, buckets)

    def _tell_bound(self, seen: Glimpse) -> None:
        self.known.raise_bound(seen.lower_bound)

    def _advance_in_loop(self) -> int:
        self.known.wait_for_expansions(Who.GRAPH)
        with self.prover.turns.taken(Who.GRAPH):
            if self.known.is_over:
                self.is_stopped = True
                return 0
            before = {name: int(self.workspace.searches[name][0]) for name in ("expanded", "generated", "evaluated")}
            self.quantum = reserved = self.known.reserve(self.quantum, Who.GRAPH)
            rows = super()._advance_in_loop()
        done = {name: int(self.workspace.searches[name][0]) - number for name, number in before.items()}
        done["expanded"] -= reserved
        self.known.count(Who.GRAPH, stored=int(self.workspace.searches["stored"][0]), **done)
        return rows

    def _again_with_heap(self, lane: int) -> Iterator[tuple[int, Result]]:
        del lane
        yield from _Turns(self.prover, self.memory, buckets=False).run()
