"""Sums and maxima of networks on patterns as a heuristic."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from undershoot.arrays import F32, States, read_only
from undershoot.errors import MalformedState, NotAvailable
from undershoot.guarantees import NO_GUARANTEE, Guarantee, Rounding
from undershoot.heuristics.network_looks import network_looks
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.heuristics.patterns import check_sum
from undershoot.kernels.guides import values_of
from undershoot.kernels.plan import forward_plan
from undershoot.pattern_tables.looks import Look
from undershoot.puzzles.pieces import Pieces


@dataclass(frozen=True, eq=False)
class LearnedPatterns:
    """Of puzzles whose steps move one piece. Searches evaluate it inside their compiled loop."""

    name: str
    pieces: Pieces
    sums: tuple[tuple[Look[PatternNetwork], ...], ...]
    """What these looks say is added; the largest sum counts."""
    guarantee: Guarantee = NO_GUARANTEE
    rounding: Rounding = Rounding.INTEGER

    def __post_init__(self) -> None:
        if not forward_plan(self.pieces.table).slides:
            raise NotAvailable("networks on patterns are for puzzles whose moves slide one piece; use the tables")
        for group in self.sums:
            check_sum(self.pieces, group)

    @property
    def fingerprint(self) -> str:
        """Of the move table."""
        return self.pieces.table.fingerprint

    @cached_property
    def networks(self) -> tuple[PatternNetwork, ...]:
        """All of them, each once."""
        every = {id(look.table): look.table for group in self.sums for look in group}
        return tuple(network for network in every.values() if isinstance(network, PatternNetwork))

    def guide(self) -> Any:
        """For searches."""
        return network_looks(self.pieces, self.sums, self.networks)

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        self.pieces.table.check_states(states)
        values, _ = values_of(self.guide(), read_only(states))
        if np.isnan(values).any():
            row = int(np.argmax(np.isnan(values)))
            raise MalformedState(f"state {row} lacks a piece of this puzzle: {states[row].tolist()}")
        return values
