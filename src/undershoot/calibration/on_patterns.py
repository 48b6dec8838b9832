"""Margins of a whole-number network on a pattern: the least thresholds with which no arrangement is overestimated.

Level by level: what a level must not let through are the arrangements that cost exactly so many steps and passed all levels
before; its threshold is the largest sum among them. Some of these may be listed instead, with what they cost: so many that one
listed arrangement lets at least `worth` others through.

Arrangements pass by once. Of those that cost exactly k steps only the ones with the highest sums of level k can matter to its
threshold, so only these are kept.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np

from undershoot.arrays import I32, I64, U8, AnyArray
from undershoot.errors import NotAvailable
from undershoot.heuristics.every_arrangement import Part, Progress, every_part
from undershoot.heuristics.families import BEYOND
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.pattern_tables.pattern import UNREACHED
from undershoot.pattern_tables.residuals import codes_at, sums_of
from undershoot.pattern_tables.tables import PatternTable

MOST_KEPT = 1 << 17
"""Of each level."""
SAMPLED = 1 << 18
"""Arrangements by which it is judged how many a threshold lets through."""
WORTHS = tuple(2.0**power for power in range(14, -1, -1))
"""That are tried to keep to a number of listed arrangements, from few to many."""


def steps_above(part: Part, step: int) -> I64:
    """int64[B]: by how many whole steps arrangements cost more than h0's shares; -1 for what has no solution."""
    above = part.costs.astype(np.int64) - part.shares
    has_solution = part.costs != UNREACHED
    if (above[has_solution] < 0).any():
        raise NotAvailable("h0's share of this pattern is more than some arrangement costs; use another pattern")
    return np.where(has_solution, above // step, -1)


class Candidates:
    """For each level, the arrangements that cost exactly so many steps and have the highest sums of that level."""

    def __init__(self, levels: int) -> None:
        self.levels = levels
        self.kept = [Part(_none(np.int64), np.zeros((0, levels), np.int32), _none(np.int64), _none(np.uint8))] * levels
        self.cutoff = np.full(levels, -BEYOND, dtype=np.int64)
        """int64[levels]: what no sum of one that was not kept exceeds."""

    def add(self, part: Part, step: int) -> None:
        """See them pass."""
        labels = steps_above(part, step)
        rows = np.flatnonzero((labels >= 0) & (labels < self.levels))
        rows = rows[part.sums[rows, labels[rows]] > self.cutoff[labels[rows]]]
        for level in np.unique(labels[rows]).tolist():
            those = rows[labels[rows] == level]
            old = self.kept[level]
            self.kept[level] = Part(
                np.concatenate([old.numbers, part.numbers[those]]),
                np.concatenate([old.sums, part.sums[those]]),
                np.concatenate([old.shares, part.shares[those]]),
                np.concatenate([old.costs, part.costs[those]]),
            )
            if len(self.kept[level].numbers) > 2 * MOST_KEPT:
                self._drop(level)

    def _drop(self, level: int) -> None:
        kept = self.kept[level]
        best = np.argpartition(-kept.sums[:, level], MOST_KEPT)[:MOST_KEPT]
        self.kept[level] = Part(kept.numbers[best], kept.sums[best], kept.shares[best], kept.costs[best])
        self.cutoff[level] = int(self.kept[level].sums[:, level].min())


def _none(kind: type) -> AnyArray:
    return np.zeros(0, dtype=kind)


@dataclass(frozen=True, eq=False)
class Fitting:
    """What thresholds are fitted to."""

    network: PatternNetwork
    candidates: Candidates
    sample: Part
    """Uniform."""
    labels: I64
    """Of the sample."""

    def fit(self, worth: float | None = None) -> PatternNetwork:
        """The network with thresholds, under which none is overestimated. worth: of a listed arrangement; None to list none."""
        each = int(self.network.pattern.folded.size) / len(self.labels)
        passed, thresholds = np.ones(len(self.labels), dtype=bool), list[int]()
        numbers, costs = [_none(np.int64)], [_none(np.uint8)]
        for level, kept in enumerate(self.candidates.kept):
            passes = (kept.sums[:, :level] > np.array(thresholds, dtype=np.int64)).all(axis=1)
            wrong = kept.sums[passes, level].astype(np.int64)
            right = self.sample.sums[passed & (self.labels > level), level]
            worth_each = None if worth is None else worth / each
            threshold = _threshold(wrong, right, worth_each, int(self.candidates.cutoff[level]))
            above = wrong > threshold
            numbers.append(kept.numbers[passes][above])
            costs.append(kept.costs[passes][above])
            passed &= self.sample.sums[:, level] > threshold
            thresholds.append(threshold)
        listed = np.concatenate(numbers)
        order = np.argsort(listed)
        return dataclasses.replace(
            self.network, thresholds=tuple(thresholds), listed=listed[order], listed_costs=np.concatenate(costs)[order]
        )


def _threshold(wrong: I64, right: I32, worth: float | None, cutoff: int) -> int:
    """For one level, from the sums of those that must not pass, unless they are listed, and of those that should."""
    if worth is None or not len(wrong):
        return max(cutoff, int(wrong.max(initial=-BEYOND)))
    options = np.unique(np.append(wrong, cutoff))  # as threshold, each lists those above it
    passing = len(right) - np.searchsorted(np.sort(right), options, side="right")
    listed = len(wrong) - np.searchsorted(np.sort(wrong), options, side="right")
    return int(options[::-1][int((passing - worth * listed)[::-1].argmax())])


def sampled(network: PatternNetwork, entries: U8, seed: int = 0) -> Part:
    """Uniform arrangements, with what they cost. entries: a byte each."""
    numbers = np.sort(np.random.default_rng(seed).integers(0, len(entries), min(SAMPLED, 4 * len(entries))))
    codes = codes_at(network.pattern.folded, numbers)
    sums = network.sums(codes).astype(np.int32)
    return Part(numbers, sums, sums_of(network.residuals.share, codes), entries[numbers])


def fitting(
    network: PatternNetwork,
    table: PatternTable,
    threads: int | None = None,
    progress: Progress | None = None,
    device: str = "cpu",
) -> Fitting:
    """See every arrangement pass, and keep what thresholds depend on."""
    candidates, step = Candidates(network.network.widths[-1]), network.residuals.step
    if device == "cuda":
        from undershoot.heuristics.device_arrangements import parts_on

        for part in parts_on(network, table, device, candidates.cutoff, progress):
            candidates.add(part, step)
    else:
        for part in every_part(network, table, threads, progress):
            candidates.add(part, step)
    sample = sampled(network, table.unpacked())
    return Fitting(network, candidates, sample, steps_above(sample, step))


def fit_within(fittings: list[Fitting], most_listed: int) -> list[PatternNetwork]:
    """Thresholds for all of them, with at most so many arrangements listed in all, where they let most through."""
    best = [fitting.fit() for fitting in fittings]
    for worth in WORTHS if most_listed else ():
        fitted = [fitting.fit(worth) for fitting in fittings]
        if sum(len(network.listed) for network in fitted) > most_listed:
            break
        best = fitted
    return best
