"""What networks say of every arrangement of their patterns, a part at a time: on the cores, or on CUDA."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U8, Number, read_only
from undershoot.errors import UndershootError
from undershoot.heuristics.packed_networks import PackedNetworks, desk, pack, sums_in_order
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.kernels.compiler import compiled
from undershoot.pattern_tables.pattern import UNREACHED
from undershoot.pattern_tables.residuals import codes_of, sums_of
from undershoot.pattern_tables.tables import PatternTable

AT_ONCE = 1 << 15
"""Arrangements, on a core."""
Progress = Callable[[int, int], None]


class Part(NamedTuple):
    """Some arrangements with all that is known of them."""

    numbers: I64
    """int64[B], rising."""
    sums: I32
    """int32[B, levels]."""
    shares: I64
    """int64[B]: the sums of h0's shares."""
    costs: U8
    """uint8[B]; 255 for what has no solution."""


@dataclass(frozen=True, eq=False)
class PatternFindings:
    """What a check of every arrangement found."""

    arrangements: int
    """That have a solution."""
    violations: int
    """With a value above what they cost."""
    first: int | None
    """The number of the first of these."""
    mean: float
    """Of the values."""
    mean_cost: float


def check_table(network: PatternNetwork, table: PatternTable) -> None:
    """Refuse a table of something else."""
    mine, other = network.pattern, table.pattern
    if mine.pieces.table.fingerprint != other.pieces.table.fingerprint:
        raise UndershootError("this table is of another puzzle than the network")
    # By cells: the same piece has another number where pieces are listed in another order.
    same = [mine.pieces.cells[p] for p in mine.folded.pieces] == [other.pieces.cells[p] for p in other.folded.pieces]
    if not same or mine.is_additive != other.is_additive:
        raise UndershootError("this table is of another pattern than the network")


def every_part(
    network: PatternNetwork, table: PatternTable, threads: int | None = None, progress: Progress | None = None
) -> Iterator[Part]:
    """All arrangements in order, evaluated on the cores."""
    check_table(network, table)
    entries, how = read_only(table.unpacked()), network.pattern.folded
    packed = pack([network]) if network.sees_pairs else None

    def part(first: int) -> Part:
        count = min(AT_ONCE, len(entries) - first)
        codes = codes_of(how, first, count)
        shares = sums_of(network.residuals.share, codes)
        return Part(np.arange(first, first + count), _sums(network, packed, codes), shares, entries[first : first + count])

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        waiting = 4 * (threads or os.cpu_count() or 1) * AT_ONCE  # so many arrangements, lest memory fills up
        for begin in range(0, len(entries), waiting):
            end = min(len(entries), begin + waiting)
            yield from pool.map(part, range(begin, end, AT_ONCE))
            if progress is not None:
                progress(end, len(entries))


def _sums(network: PatternNetwork, packed: PackedNetworks | None, codes: U8) -> I32:
    if packed is None:
        return network.sums(codes).astype(np.int32)
    out = np.empty((len(codes), len(network.thresholds)), dtype=np.int32)
    sums_in_order(packed, desk(packed), codes, out)
    return out


def check_every_arrangement(
    network: PatternNetwork,
    table: PatternTable,
    threads: int | None = None,
    progress: Progress | None = None,
    device: str = "cpu",
) -> PatternFindings:
    """Compare every value with the table, which was made and verified here, or was checked by who made it.

    A network that is nowhere above the cost of an arrangement is nowhere above that of a state that looks like it.
    """
    check_table(network, table)
    if device == "cuda":
        from undershoot.heuristics.device_arrangements import check_on

        total = check_on(network, table, device, progress)
    else:
        total = np.array([0, 0, -1, 0, 0])
        for part in every_part(network, table, threads, progress):
            found = _compare(network, part)
            total = np.where([True, True, False, True, True], total + found, found if total[2] < 0 else total)
    arrangements, violations, first, values, costs = total.tolist()
    return PatternFindings(arrangements, violations, None if first < 0 else first, values / arrangements, costs / arrangements)


def _compare(network: PatternNetwork, part: Part) -> I64:
    first, last = np.searchsorted(network.listed, [part.numbers[0], part.numbers[-1] + 1])
    levels = levels_passed(part.sums, np.array(network.thresholds, dtype=np.int64))
    levels[network.listed[first:last] - part.numbers[0]] = network.listed_levels[first:last]
    return _totals(part.shares + network.residuals.step * levels, part.costs, int(part.numbers[0]))


@compiled
def levels_passed(sums: I32, thresholds: I64) -> I64:
    """int64[B]: how many sums, from the first on, lie above their thresholds."""
    result = np.zeros(sums.shape[0], dtype=np.int64)
    for b in range(sums.shape[0]):
        while result[b] < thresholds.shape[0] and np.int64(sums[b, result[b]]) > thresholds[result[b]]:
            result[b] += 1
    return result


@compiled
def _totals(values: I64, costs: U8, first: Number) -> I64:
    """int64[5]: how many have a solution, how many of these are overestimated, the number of the first of these or -1; the sums
    of values and of costs."""
    result = np.zeros(5, dtype=np.int64)
    result[2] = -1
    for b in range(values.shape[0]):
        if costs[b] == UNREACHED:
            continue
        result[0] += 1
        if values[b] > np.int64(costs[b]):
            result[1] += 1
            result[2] = first + b if result[2] < 0 else result[2]
        result[3] += values[b]
        result[4] += np.int64(costs[b])
    return result
