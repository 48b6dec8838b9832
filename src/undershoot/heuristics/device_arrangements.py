"""What a network says of every arrangement of its pattern, on a device, bit for bit as on the cores."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from undershoot.arrays import I64
from undershoot.heuristics.every_arrangement import Part, Progress, check_table
from undershoot.heuristics.neural_cuda import full_precision, whole_layers, whole_tensors
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.kernels.tensor_encodings import TensorEncoding
from undershoot.pattern_tables.pattern import UNREACHED
from undershoot.pattern_tables.tables import PatternTable
from undershoot.pattern_tables.tensors import TensorRanking

AT_ONCE = {"cuda": 1 << 20, "cpu": 1 << 14}
"""Arrangements."""


def _every_part(
    network: PatternNetwork, table: PatternTable, device: str, progress: Progress | None
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """(int64[B] numbers, int32[B, levels] sums, int64[B] shares, int64[B] costs), in order."""
    check_table(network, table)
    entries = torch.tensor(table.unpacked(), device=device)
    ranking, inputs = TensorRanking(table.pattern.folded), TensorEncoding(network.encoding, device)
    share = torch.tensor(network.residuals.share.astype(np.int64), device=device)
    pieces = torch.arange(len(network.residuals.share), device=device)
    parts, scales = whole_tensors(network.network, device)
    with torch.no_grad(), full_precision():
        for first in range(0, len(entries), AT_ONCE[device]):
            end = min(len(entries), first + AT_ONCE[device])
            numbers = torch.arange(first, end, device=device)
            codes = torch.stack(ranking.codes_of(numbers), dim=1).long()
            sums = whole_layers(inputs.sum_of_rows(codes, parts[0], parts[1]), parts[2:], scales).int()
            yield numbers, sums, share[pieces, codes].sum(dim=1), entries[first:end].long()
            if progress is not None:
                progress(end, len(entries))


def parts_on(
    network: PatternNetwork, table: PatternTable, device: str, cutoff: I64, progress: Progress | None = None
) -> Iterator[Part]:
    """Those arrangements whose sum of the level that they must not pass lies above `cutoff`, which rises on the way."""
    levels, step = network.network.widths[-1], network.residuals.step
    for numbers, sums, shares, costs in _every_part(network, table, device, progress):
        labels = torch.where(costs == UNREACHED, levels, (costs - shares).div(step, rounding_mode="floor"))
        inside = labels.clamp(0, levels - 1)
        own = sums.gather(1, inside[:, None])[:, 0]
        least = torch.tensor(cutoff, device=device)[inside]
        rows = torch.nonzero((labels < levels) & ((own > least) | (labels < 0)))[:, 0]
        chosen = (numbers[rows], sums[rows], shares[rows], costs[rows].to(torch.uint8))
        yield Part(*(tensor.cpu().numpy() for tensor in chosen))


def check_on(network: PatternNetwork, table: PatternTable, device: str, progress: Progress | None = None) -> I64:
    """int64[5]: how many have a solution, how many of these are overestimated, the number of the first of these or -1; the sums
    of values and of costs."""
    thresholds = torch.tensor(network.thresholds, device=device)
    listed, levels = torch.tensor(network.listed, device=device), torch.tensor(network.listed_levels, device=device)
    total = np.array([0, 0, -1, 0, 0])
    for numbers, sums, shares, costs in _every_part(network, table, device, progress):
        passed = (sums > thresholds).long().cumprod(dim=1).sum(dim=1)
        if len(listed):
            at = torch.searchsorted(listed, numbers).clamp(max=len(listed) - 1)
            passed = torch.where(listed[at] == numbers, levels[at], passed)
        values, has_solution = shares + network.residuals.step * passed, costs != UNREACHED
        above = (values > costs) & has_solution
        count = int(above.sum())
        if count and total[2] < 0:
            total[2] = int(numbers[above][0])
        found = [int(has_solution.sum()), count, 0, int(values[has_solution].sum()), int(costs[has_solution].sum())]
        total += np.array(found)
    return total
