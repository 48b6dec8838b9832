"""How far the network is from its targets."""

import torch
from torch import Tensor

from undershoot.training.recipe import Loss, Recipe


def mean_loss(recipe: Recipe, values: Tensor, targets: Tensor) -> Tensor:
    """The mean over the batch of the squared error, overestimates counting more if the recipe says so."""
    error = values - targets
    squared = error * error
    if recipe.loss is Loss.ASYMMETRIC:
        squared = torch.where(error > 0, recipe.overestimate_penalty * squared, squared)
    return squared.mean()
