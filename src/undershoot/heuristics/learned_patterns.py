"""Sums and maxima of networks on patterns as a heuristic."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from undershoot.arrays import F32, States, read_only
from undershoot.errors import MalformedState, NotAvailable
from undershoot.guarantees import NO_GUARANTEE, Guarantee, Rounding, one_line
from undershoot.heuristics.asked_networks import MOST_NETWORKS, check_askable, with_own_memory
from undershoot.heuristics.network_looks import NetworkLooks, network_looks
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.heuristics.patterns import check_sum, sums_of_looks
from undershoot.heuristics.sliding_looks import can_slide
from undershoot.heuristics.slot_networks import SlotNetworks, slot_networks
from undershoot.kernels.guides import values_of
from undershoot.pattern_tables.looks import Look
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.sets import pattern_set
from undershoot.puzzles.pieces import Pieces
from undershoot.puzzles.problem import Problem


@dataclass(frozen=True, eq=False)
class LearnedPatterns:
    """Searches evaluate it inside their compiled loop."""

    name: str
    puzzle: Problem
    pieces: Pieces
    sums: tuple[tuple[Look[PatternNetwork], ...], ...]
    """What these looks say is added; the largest sum counts."""
    guarantee: Guarantee = NO_GUARANTEE
    set_name: str | None = None
    """The set of patterns that these are the sums of, if it has a name."""
    rounding: Rounding = Rounding.INTEGER

    def __post_init__(self) -> None:
        if any(look.is_inverse for group in self.sums for look in group):
            raise NotAvailable("networks on patterns are not asked about inverses; leave out +inverse")
        for group in self.sums:
            check_sum(self.pieces, group)
        if not all(network.sees_pairs for network in self.networks):
            raise NotAvailable("inside searches networks must see pairs of pieces; train with encoding=pairs, on two or more")
        codes = max(network.residuals.share.shape[1] for network in self.networks)
        check_askable(max(len(network.pattern.followed) for network in self.networks), codes)
        if len(self.networks) > MOST_NETWORKS:
            raise NotAvailable(f"{len(self.networks)} networks are looked through; searches ask at most {MOST_NETWORKS}")
        if len({len(network.network.weights) for network in self.networks}) > 1:
            raise NotAvailable("networks that are added or compared must have as many layers as each other")

    @property
    def fingerprint(self) -> str:
        """Of the move table."""
        return self.pieces.table.fingerprint

    @cached_property
    def networks(self) -> tuple[PatternNetwork, ...]:
        """All of them, each once."""
        every = {id(look.table): look.table for group in self.sums for look in group}
        return tuple(network for network in every.values() if isinstance(network, PatternNetwork))

    @cached_property
    def _shared(self) -> NetworkLooks | SlotNetworks:
        make = network_looks if can_slide(self.pieces, self.sums) else slot_networks
        return make(self.pieces, self.sums, self.networks)

    def guide(self) -> NetworkLooks | SlotNetworks:
        """For searches, each with a memory of its own."""
        return self._shared._replace(asked=with_own_memory(self._shared.asked))

    def __repr__(self) -> str:
        return one_line(self)

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        self.pieces.table.check_states(states)
        values, _ = values_of(self.guide(), read_only(states))
        if np.isnan(values).any():
            row = int(np.argmax(np.isnan(values)))
            raise MalformedState(f"state {row} lacks a piece of this puzzle: {states[row].tolist()}")
        return values


def learned_patterns(
    name: str, puzzle: Problem, set_name: str, networks: Sequence[PatternNetwork], guarantee: Guarantee = NO_GUARANTEE
) -> LearnedPatterns:
    """The heuristic of a set; networks as for `sums_of_networks`."""
    sums = sums_of_networks(puzzle, set_name, networks)
    return LearnedPatterns(name, puzzle, networks[0].pattern.pieces, sums, guarantee, set_name)


def sums_of_networks(
    puzzle: Problem, set_name: str, networks: Sequence[PatternNetwork]
) -> tuple[tuple[Look[PatternNetwork], ...], ...]:
    """The sums of a set. networks: of its patterns in order; of those that a symmetry maps onto each other, of the first."""
    by_pattern = {network.pattern.followed: network for network in networks}

    def provide(pattern: Pattern) -> PatternNetwork:
        return by_pattern[pattern.followed]

    return sums_of_looks(pattern_set(puzzle, set_name), provide)
