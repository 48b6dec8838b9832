"""Margins of a whole-number network on a pattern: the least thresholds with which no arrangement is overestimated.

Level by level: what a level must not let through are the arrangements that cost exactly one step less and passed all levels
before; its threshold is the largest sum among them. Some of these may be listed instead, with what they cost: so many that one
listed arrangement lets at least `worth` others through.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from undershoot.arrays import I64, U8
from undershoot.heuristics.families import BEYOND
from undershoot.heuristics.neural_cuda import full_precision, whole_layers, whole_tensors
from undershoot.heuristics.whole_numbers import WholeNetwork
from undershoot.kernels.tensor_encodings import TensorEncoding
from undershoot.pattern_tables.labelled import AT_ONCE, PatternStates
from undershoot.puzzles.encoding import Encoding

MOST_LISTED = 1 << 21


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What was fitted, and what comes of it."""

    thresholds: tuple[int, ...]
    """A level is passed by sums above its own."""
    listed: I64
    """int64[E], rising: numbers of arrangements that are looked up."""
    listed_values: U8
    """uint8[E]: what they cost."""
    mean: float
    """Of the values of all arrangements that have a solution."""


class Sums:
    """The whole sums of all arrangements of a pattern, a level at a time."""

    def __init__(self, states: PatternStates, encoding: Encoding, network: WholeNetwork) -> None:
        self.states, self.levels = states, network.widths[-1]
        inputs = TensorEncoding(encoding, states.device)
        parts, scales = whole_tensors(network, states.device)
        count = states.count
        self.labels = torch.empty(count, dtype=torch.int8, device=states.device)
        self.columns = [torch.empty(count, dtype=torch.int32, device=states.device) for _ in range(self.levels)]
        with torch.no_grad(), full_precision():
            for first in range(0, count, AT_ONCE[states.device]):
                numbers = torch.arange(first, min(count, first + AT_ONCE[states.device]), device=states.device)
                codes, labels = states(numbers)
                raw = whole_layers(inputs.sum_of_rows(codes, parts[0], parts[1]), parts[2:], scales).int()
                self.labels[first : first + len(numbers)] = labels.to(torch.int8)
                for level in range(self.levels):
                    self.columns[level][first : first + len(numbers)] = raw[:, level]

    def fit(self, worth: float | None = None) -> Thresholds:
        """worth: of a listed arrangement; None to list none."""
        labels, states = self.labels, self.states
        passed = torch.ones(states.count, dtype=torch.bool, device=states.device)
        listed = torch.zeros_like(passed)
        steps = torch.zeros(states.count, dtype=torch.int8, device=states.device)
        thresholds = []
        for level, sums in enumerate(self.columns):
            wrong, right = passed & (labels == level), passed & (labels > level)
            threshold = _threshold(sums[wrong], sums[right], worth)
            thresholds.append(threshold)
            above = sums > threshold
            listed |= wrong & above
            passed &= above & ~listed
            steps += passed
        has_solution = labels >= 0
        steps = torch.where(listed, labels, steps)
        if bool((steps[has_solution] > labels[has_solution]).any()):
            raise AssertionError("thresholds were fitted that overestimate: report this")
        numbers = torch.nonzero(listed)[:, 0]
        mean = (steps[has_solution].long() - labels[has_solution].long()).double().mean() * states.step
        costs = states.entries[has_solution].double().mean()
        return Thresholds(tuple(thresholds), numbers.cpu().numpy(), states.entries[numbers].cpu().numpy(), float(costs + mean))


def _threshold(wrong: Tensor, right: Tensor, worth: float | None) -> int:
    """For one level, from the sums of those that must not pass, unless they are listed, and of those that should."""
    if not len(wrong):
        return -BEYOND
    if worth is None or not len(right):
        return int(wrong.max())
    most = min(len(wrong), MOST_LISTED)
    candidates = wrong.topk(most).values  # as threshold, each lists those before it
    ordered = right.sort().values
    passing = len(ordered) - torch.searchsorted(ordered, candidates, right=True)
    listed = torch.searchsorted(-candidates, -candidates)  # how many are strictly above
    return int(candidates[int((passing - worth * listed).argmax())])
