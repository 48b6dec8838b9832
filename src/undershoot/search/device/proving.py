"""IDA* on a device as the prover of two searches that share what they know: see `search.proving`."""

import torch
from torch import Tensor

from undershoot.arrays import States
from undershoot.errors import TooDear
from undershoot.guarantees import Heuristic
from undershoot.heuristics.device_patterns import DevicePatterns
from undershoot.search.device.depth_first import Instance, Rounds, check_goals, instances_of
from undershoot.search.device.expanding import expander_of
from undershoot.search.device.solving import no_room, patterns_there
from undershoot.search.ida import SECONDS_A_SLICE
from undershoot.search.known import Known, Turns
from undershoot.search.options import SearchOptions
from undershoot.search.results import Status
from undershoot.search.shares import Who


def prover_on_device(known: Known, heuristic: Heuristic, device: str, turns: Turns) -> "DeviceProver":
    """With the tables of a heuristic, which are copied to the device if they are not there. turns: on the device."""
    return DeviceProver(known, patterns_there(heuristic, device), device, turns)


class DeviceProver:
    """Raises the lower bound with each iteration, and offers what it finds. Limits are those of `known`."""

    def __init__(self, known: Known, heuristic: DevicePatterns, device: str, turns: Turns) -> None:
        self.known, self.heuristic, self.device, self.turns = known, heuristic, device, turns

    def compile(self) -> None:
        """Compile everything, so that no limit is charged for it."""
        check_goals(self.known.puzzle, self.heuristic)
        try:
            expander_of(self.heuristic)
        except torch.cuda.OutOfMemoryError as error:
            raise no_room(self.device) from error

    def prove(self) -> None:
        """Search until both bounds meet, a limit strikes, or it turns out that there is no solution."""
        states: States = self.known.start
        (instance,) = instances_of(self.known.puzzle, states, self.heuristic, [self.known.lower])
        try:
            if not instance.is_over:
                _Proving(self.known, self.heuristic, instance, self.turns).run()
        except TooDear:  # the others may go on
            self.known.leave(Who.TREE)
            return
        finally:
            self.turns.release(Who.TREE)
        if instance.actions is not None:
            self.known.offer(instance.actions)
        if instance.status is Status.UNSOLVABLE or instance.status is Status.MEMORY:
            self.known.end(instance.status)


class _Proving(Rounds):
    """The iterations of one instance, which others watch."""

    def __init__(self, known: Known, heuristic: DevicePatterns, instance: Instance, turns: Turns) -> None:
        super().__init__(known.puzzle, expander_of(heuristic), [instance], SearchOptions(), None)
        self.known, self.turns, self.reserved = known, turns, 0

    def _step(self, going: list[int], least: Tensor) -> None:
        if not self.known.shares.has(Who.TREE):
            self.turns.release(Who.TREE)
            self.known.wait_for_expansions(Who.TREE)
        with self.turns.taken(Who.TREE, keep=SECONDS_A_SLICE):
            super()._step(going, least)

    def _reserve(self) -> int:
        self.reserved = 0 if self.known.is_over else self.known.reserve(self.frontier.chunk, Who.TREE)
        return self.reserved

    def _count(self, going: list[int], instance: Tensor, generated: Tensor) -> None:
        made = self.instances[0].generated
        super()._count(going, instance, generated)
        made = self.instances[0].generated - made
        self.known.count(Who.TREE, expanded=len(instance) - self.reserved, generated=made, evaluated=made, stored=self.stored)

    def _stop_for_time(self, going: list[int]) -> bool:
        if self.instances[0].lower > self.known.lower:
            self.known.raise_bound(self.instances[0].lower)
        if self.known.is_over:
            self._stop(going, self.known.status or Status.TIME)
        return self._is_vain() or super()._stop_for_time(going)

    def _is_vain(self) -> bool:
        """Whether another search has proven more than this iteration can."""
        return self.known.lower > self.instances[0].bound

    def _raise_bound(self, k: int, least: int) -> None:
        if self._is_vain():  # it may not have ended, and then nothing follows from what it cut off
            self.instances[k].begin_from(self.known.lower)
        else:
            super()._raise_bound(k, least)
