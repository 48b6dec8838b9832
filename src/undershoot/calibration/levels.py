"""A margin for each level of a network with levels, over the whole space."""

import numpy as np

from undershoot.arrays import I64, AnyArray
from undershoot.errors import UndershootError
from undershoot.heuristics.neural import LearnedHeuristic, evaluate
from undershoot.oracles.distance_table import DistanceTable

CHUNK = 1 << 16


def level_margins(
    network: LearnedHeuristic, distances: DistanceTable, share: float, threads: int
) -> tuple[tuple[float, ...], I64]:
    """t_k = max of level k over the states of cost k - 1 that pass all levels before it; the first level is passed by all.

    A state of cost c then fails at level c + 1 at the latest, so its value is at most c. With a share above 0, t_k is the
    least that leaves at most this share of the states of cost k - 1 above it, and these are listed: their rows are returned.
    Margins are in units of cost.
    """
    if not 0 <= share < 1:
        raise UndershootError(f"the share of listed states (--listed) is {share}; allowed are numbers from 0 to below 1")
    margins = np.full(network.family.levels, -np.inf, dtype=np.float32)
    ends = np.cumsum(distances.histogram)
    listed = []
    # States come in the order of their costs, so the margins that decide who passes are known before they are needed.
    for cost in range(1, min(len(ends), len(margins))):
        begin, end = int(ends[cost - 1]), int(ends[cost])
        values = np.full(end - begin, -np.inf, dtype=np.float32)
        for start in range(begin, end, CHUNK * threads):
            stop = min(start + CHUNK * threads, end)
            raw = evaluate(network.raw, distances.states_of_rows(start, stop), threads)
            if not np.isfinite(raw).all():
                raise UndershootError("the network gives values that are not finite; its weights are too large")
            passed = (raw[:, :cost] > margins[:cost]).all(axis=1)
            values[start - begin : stop - begin] = np.where(passed, raw[:, cost], -np.inf)
        most = int(share * (end - begin))
        margins[cost] = -np.partition(-values, most)[most] if len(values) else -np.inf
        listed.append(begin + np.flatnonzero(values > margins[cost]))
    # What whole sums stand for is exact in float64: 24 bits times 24 bits.
    in_costs = margins.astype(np.float64) * (np.array(network.family.scales) if network.family.scales else 1.0)
    if distances.radius is not None:  # what no state was seen to reach is as hard to pass as the hardest that some did
        seen = in_costs[1 : len(ends)]
        in_costs[len(ends) :] = seen[np.isfinite(seen)].max(initial=0.0)
    rows: AnyArray = np.concatenate(listed) if listed else np.zeros(0, dtype=np.int64)
    return tuple(in_costs.tolist()), rows.astype(np.int64)
