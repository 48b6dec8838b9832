"""What the network should say: the paper's admissible Bellman operator."""

import torch
from torch import Tensor

from undershoot.training.recipe import Recipe


def bellman_targets(
    recipe: Recipe,
    values: Tensor,
    usable: Tensor,
    cost: Tensor,
    goal_children: Tensor,
    is_goal: Tensor,
    base: Tensor,
) -> Tensor:
    """float32[B]: max(h0(s), min over a of [cost(s, a) + V(s')] - discount), 0 for goals.

    values: float32[B, A], V of the children, which counts as 0 where goal_children, bool[B, A]; usable: bool[B, A], which
    actions there are; cost: [B, A]; is_goal: bool[B]; base: float32[B], h0. With levels, at most the last of them.
    """
    through = cost + torch.where(goal_children, 0.0, values)
    targets = torch.where(usable, through, torch.inf).amin(dim=1) - recipe.target_discount
    if recipe.floor_by_base:
        targets = torch.maximum(targets, base)
    if recipe.levels:
        targets = targets.clamp_max(recipe.levels)
    return torch.where(is_goal, 0.0, targets)
