"""How far the network is from its targets."""

import torch
from torch import Tensor
from torch.nn import functional


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
