"""How far the network is from its targets."""

import torch
from torch import Tensor
from torch.nn import functional

from undershoot.training.recipe import Loss


def mean_loss(values: Tensor, targets: Tensor, penalty: Tensor | float) -> Tensor:
    """The mean over the batch; overestimates count `penalty` times.

    One number, float32[B, 1]: the squared error. Levels, float32[B, K]: level k is the log odds that the cost is at least k,
    given that it is at least k - 1; the logarithmic loss of the levels up to the one above the target, where the last one is
    an overestimate if it is above 0.
    """
    if values.shape[1] == 1:
        error = values[:, 0] - targets
        squared = error * error
        return torch.where(error > 0, penalty * squared, squared).mean()
    level = torch.arange(1, values.shape[1] + 1, device=values.device)
    reached, next_one = level <= targets[:, None], level == targets[:, None] + 1
    # softplus(x) = log(1 + e^x)
    short = torch.where(reached, functional.softplus(-values), 0.0)
    over = torch.where(next_one, functional.softplus(values), 0.0)
    return (short + penalty * over).sum(dim=1).mean()


def loss_of_levels(kind: Loss, values: Tensor, targets: Tensor, penalty: Tensor | float) -> Tensor:
    """The mean over the batch. values: float32[B, K]; targets: int64[B], 0..K, or -1 for what has none and does not count."""
    if kind is not Loss.CROSS_ENTROPY:
        return mean_loss(values, targets.float(), penalty)
    # A distribution over 0..K of which a level is the log of the ratio of neighbours, log P(k) / P(k - 1). It is read where it
    # first stops rising, which is at most where it is largest: so level by level, as thresholds want it, and with no function
    # of the sums behind the last layer.
    chances = functional.log_softmax(functional.pad(values.cumsum(dim=1), (1, 0)), dim=1)
    truth = targets.clamp(0, values.shape[1])[:, None]
    cost = torch.arange(values.shape[1] + 1, device=values.device)
    at_most = torch.where(cost <= truth, chances, -torch.inf).logsumexp(dim=1)
    loss = -chances.gather(1, truth)[:, 0] - (penalty - 1) * at_most
    return torch.where(targets >= 0, loss, 0.0).mean()
