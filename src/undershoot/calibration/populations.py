"""Which states are drawn, and what is known about their costs."""

from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from undershoot.arrays import States
from undershoot.calibration.proofs import prove
from undershoot.errors import NotAvailable, SpaceTooLarge, UndershootError
from undershoot.guarantees import LabelKind, Labels
from undershoot.heuristics import wording
from undershoot.heuristics.analytic import base
from undershoot.kernels.cpu import is_goal, unpack
from undershoot.kernels.scrambles import Scrambles, deepest, scramble
from undershoot.kernels.streams import Purpose, stream
from undershoot.oracles.cache import oracle
from undershoot.oracles.distance_table import UNKNOWN, DistanceTable
from undershoot.puzzles.problem import Problem
from undershoot.search.astar import astar_batch
from undershoot.search.options import SearchOptions
from undershoot.search.results import labels as labels_of_searches

MOST_LABELS = 100_000_000
USUAL_DEPTH = 10
SEARCH_BUDGET = 2_000
"""Expansions of the searches that give lower bounds, and of those whose states are drawn."""


class Population(StrEnum):
    """What states are drawn from."""

    UNIFORM = "uniform"
    """All states that can be solved, each equally likely."""
    SCRAMBLES = "scrambles"
    """Proper scrambles, each depth equally likely."""
    EXPANDED = "expanded"
    """One state of each of many searches, each equally likely among those that were expanded."""


class LabelSource(StrEnum):
    """Where labels come from."""

    EXACT = "exact"
    """The oracle, or where there is none searches that prove what a state costs."""
    SCRAMBLE = "scramble"
    """What a scramble costs: at least the true cost."""
    LOWER = "lower"
    """Searches that are stopped: at most the true cost."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Independent draws from a population, goals left out, with labels."""

    population: str
    states: States
    labels: Labels


def draw(
    puzzle: Problem,
    population: Population,
    source: LabelSource,
    count: int,
    seed: int,
    depths: tuple[int, ...] | None = None,
    threads: int = 1,
) -> Sample:
    """`count` states, before goals are left out.

    depths: of scrambles; None for 1 to 10, as far as the puzzle has them. threads: for searches. Where true costs come from
    searches and some are stopped, all labels are lower bounds.
    """
    name, states, walked = draw_states(puzzle, population, count, seed, depths)
    if source is LabelSource.SCRAMBLE:
        if walked is None:
            raise UndershootError(f"scramble labels come with scrambles, not with {name}; use --population scrambles")
        labels = Labels(LabelKind.UPPER, walked.cost_walked.astype(np.float32))
    elif source is LabelSource.EXACT:
        labels = _true_costs(puzzle, states, None if walked is None else int(walked.cost_walked.max(initial=0)), threads)
    else:
        labels = lower(puzzle, states)
    kept = ~is_goal(puzzle.table, states)
    return Sample(name, states[kept], Labels(labels.kind, labels.costs[kept]))


def draw_states(
    puzzle: Problem,
    population: Population,
    count: int,
    seed: int,
    depths: tuple[int, ...] | None = None,
) -> tuple[str, States, Scrambles | None]:
    """What the population is called, `count` states, and how they were scrambled if they were; see `draw`."""
    if depths is None:
        depths = tuple(range(1, 1 + deepest(puzzle.table, USUAL_DEPTH)))
    if not 1 <= count <= MOST_LABELS:
        raise UndershootError(f"{count:,} labels were asked for (--n); allowed are 1 to {MOST_LABELS:,}")
    if population is Population.SCRAMBLES and (not depths or min(depths) < 1):
        raise UndershootError(
            f"scrambles of depth {min(depths, default=0)} are goals, which have no labels; begin --depths with 1"
        )
    walked = None
    if population is Population.SCRAMBLES:
        drawn = np.random.default_rng(stream(seed, Purpose.FIT_DEPTHS)).choice(np.array(depths), size=count)
        walked = scramble(puzzle.table, drawn, stream(seed, Purpose.FIT_WALKS))
        states, name = walked.states, wording.scrambles(depths)
    elif population is Population.EXPANDED:
        states, name = _expanded(puzzle, count, seed)
    else:
        states, name = uniform(puzzle, count, stream(seed, Purpose.FIT_UNIFORM)), wording.UNIFORM
    return name, states, walked


def uniform(puzzle: Problem, count: int, seed: int) -> States:
    """uint8[count, n]: solvable states, each equally likely; from the oracle where the puzzle itself cannot draw them."""
    try:
        return puzzle.sample(count, seed)
    except NotAvailable as unable:
        try:
            distances = oracle(puzzle)
        except SpaceTooLarge:
            raise unable from None
        rows = np.random.default_rng(seed).integers(distances.states, size=count)
        return unpack(puzzle.table, distances.keys[rows])


def exact(distances: DistanceTable, states: States) -> Labels:
    """True costs from the oracle."""
    cost = distances.distance(states)
    if (cost == UNKNOWN).any():
        raise NotAvailable(f"{(cost == UNKNOWN).sum():,} of {len(cost):,} states lie outside the distances that are known")
    return Labels(LabelKind.EXACT, cost.astype(np.float32))


def lower(puzzle: Problem, states: States, budget: int = SEARCH_BUDGET) -> Labels:
    """Lower bounds by searches with the base heuristic that are stopped; EXACT if all of them ended."""
    found = astar_batch(puzzle, states, base(puzzle), SearchOptions(max_expanded=budget))
    return labels_of_searches(found.results)


def whole_space(puzzle: Problem, purpose: str) -> DistanceTable:
    """The oracle of the whole space; where it is too large, the error says what is possible instead."""
    try:
        return oracle(puzzle)
    except SpaceTooLarge as error:
        raise NotAvailable(
            f"{purpose} needs the true cost of every state, and {puzzle.name} has too many. Possible here: `max`, `conformal` "
            f"and `grouped` with --labels lower, or within a ball: `exhaustive` with --ball R, and certify --ball R."
        ) from error


def is_enumerable(puzzle: Problem) -> bool:
    """Whether all its states fit into memory."""
    try:
        oracle(puzzle)
    except SpaceTooLarge:
        return False
    return True


def _true_costs(puzzle: Problem, states: States, farthest: int | None, threads: int) -> Labels:
    """From the oracle, of the whole space or as far as scrambles came; where both are too large, from proofs."""
    for radius in (None, farthest):
        with suppress(SpaceTooLarge):
            return exact(oracle(puzzle, radius=radius), states)
        if farthest is None:
            break
    return labels_of_searches(prove(puzzle, states, threads))


def _expanded(puzzle: Problem, count: int, seed: int) -> tuple[States, str]:
    starts = uniform(puzzle, count, stream(seed, Purpose.FIT_STARTS))
    options = SearchOptions(max_expanded=SEARCH_BUDGET)
    batch = astar_batch(puzzle, starts, base(puzzle), options, draw_expanded=stream(seed, Purpose.FIT_EXPANDED))
    return batch.expanded_states, wording.expanded(puzzle.base_heuristic.name, SEARCH_BUDGET)
