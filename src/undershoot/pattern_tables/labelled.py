"""Arrangements of a pattern on a device, each with the number of steps that it costs above h0's share."""

import numpy as np
import torch
from torch import Tensor

from undershoot.pattern_tables.pattern import UNREACHED
from undershoot.pattern_tables.residuals import Residuals
from undershoot.pattern_tables.tables import PatternTable
from undershoot.pattern_tables.tensors import TensorRanking

AT_ONCE = {"cuda": 1 << 20, "cpu": 1 << 14}
"""Arrangements."""


class PatternStates:
    """The arrangements of a pattern on a device: codes, labels in steps above h0's share."""

    def __init__(self, table: PatternTable, residuals: Residuals, device: str) -> None:
        self.ranking, self.device = TensorRanking(table.pattern.folded), device
        self.entries = torch.tensor(table.unpacked(), device=device)
        self.share = torch.tensor(residuals.share.astype(np.int64), device=device)
        self.step = residuals.step
        self.pieces = torch.arange(len(residuals.share), device=device)
        self.count = len(self.entries)
        self.has_gaps = bool((self.entries == UNREACHED).any())

    def __call__(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """(int64[B, k] codes, int64[B] labels), -1 where there is no solution. numbers: int64[B]."""
        codes = torch.stack(self.ranking.codes_of(numbers), dim=1).long()
        entries = self.entries[numbers].long()
        labels = (entries - self.share[self.pieces, codes].sum(dim=1)) // self.step
        return codes, torch.where(entries == UNREACHED, -1, labels) if self.has_gaps else labels
