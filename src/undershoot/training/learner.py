"""The inner part of Algorithm 1: scramble, compute targets, step.

The target network stands still between two copies, so the states and targets of many steps are made at once.
"""

import math
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from undershoot.arrays import F32, States
from undershoot.guarantees import Heuristic
from undershoot.heuristics.analytic import base
from undershoot.heuristics.neural import NeuralHeuristic, evaluate
from undershoot.heuristics.neural_cuda import CudaHeuristic, TensorBase, TensorEncoding, later_layers
from undershoot.kernels.cpu import is_goal, successors
from undershoot.kernels.distinct import distinct
from undershoot.kernels.plan import forward_plan
from undershoot.kernels.scrambles import derived_seed, scrambles_up_to
from undershoot.kernels.tensors import TensorMoves, TensorScrambles, signed
from undershoot.puzzles.puzzle import Puzzle
from undershoot.training.losses import mean_loss
from undershoot.training.networks import Parameters, forward
from undershoot.training.recipe import Recipe
from undershoot.training.targets import bellman_targets

MAX_ROWS = 1 << 20
"""Children that are evaluated at once, at most."""


class Learner(Protocol):
    """A network in training on some device."""

    parameters: Parameters
    target: Parameters
    optimizer: torch.optim.AdamW

    def learn(self, block: int, depth: int, steps: int) -> Tensor:
        """Lines 3 to 9, so many times; float32[steps], the losses. What is drawn depends on the seed and `block` alone."""

    def prepare(self) -> None:
        """Compile or record everything, so that it is not counted as training."""

    def heuristic(self) -> Heuristic:
        """The network as it is now."""


def make_learner(puzzle: Puzzle, recipe: Recipe, threads: int) -> Learner:
    """For the recipe's device; on the CPU the target network is evaluated by so many threads."""
    if recipe.device == "cuda":
        return CudaLearner(puzzle, recipe)
    return CpuLearner(puzzle, recipe, threads)


def block_steps(puzzle: Puzzle, recipe: Recipe) -> int:
    """Steps whose states are made at once: they end together with a target copy or an evaluation, and fit into memory."""
    together = math.gcd(recipe.target_interval, recipe.curriculum.interval)
    rows = recipe.batch * puzzle.table.forward.legal.shape[1]
    most = max(1, min(together, MAX_ROWS // rows))
    return next(k for k in range(most, 0, -1) if together % k == 0)


def make_optimizer(parameters: Parameters, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW over the flat buffer."""
    whole = parameters.flat.requires_grad_()
    whole.grad = parameters.gradient
    return torch.optim.AdamW(
        [whole],
        lr=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        fused=True,
        capturable=recipe.device == "cuda",
    )


class CpuLearner:
    """States by compiled kernels, the network by torch."""

    def __init__(self, puzzle: Puzzle, recipe: Recipe, threads: int = 1) -> None:
        widths = (puzzle.encoding.width, *recipe.hidden, 1)
        self.puzzle, self.recipe, self.threads = puzzle, recipe, threads
        self.parameters, self.target = Parameters(widths, "cpu"), Parameters(widths, "cpu")
        self.optimizer = make_optimizer(self.parameters, recipe)

    def prepare(self) -> None:
        """Compile."""
        states = self.puzzle.table.goals[[0, 0]]
        self.targets(states)
        torch.autograd.backward(forward(self.puzzle.encoding, self.parameters.parts, states).sum())

    def heuristic(self) -> Heuristic:
        """The network as it is now."""
        return NeuralHeuristic(self.puzzle, self.parameters.network())

    def learn(self, block: int, depth: int, steps: int) -> Tensor:
        """See `Learner`."""
        recipe = self.recipe
        seed = derived_seed(recipe.seed, block)
        states = scrambles_up_to(self.puzzle.table, steps * recipe.batch, depth, seed, recipe.scrambles).states
        targets = torch.from_numpy(self.targets(states))
        losses = torch.empty(steps)
        for step in range(steps):
            rows = slice(step * recipe.batch, (step + 1) * recipe.batch)
            loss = mean_loss(recipe, forward(self.puzzle.encoding, self.parameters.parts, states[rows]), targets[rows])
            self.parameters.gradient.zero_()
            torch.autograd.backward(loss)
            self.optimizer.step()
            losses[step] = loss.detach()
        return losses

    def targets(self, states: States) -> F32:
        """float32[B], by the target network."""
        table = self.puzzle.table
        first, which = distinct(states)
        once = states[first]
        children, legal = successors(table, once)
        rows = children[legal]
        heads, copies = distinct(rows)
        network = NeuralHeuristic(self.puzzle, self.target.network())
        values = np.zeros(legal.shape, dtype=np.float32)
        values[legal] = evaluate(network.raw, rows[heads], self.threads)[copies]
        goals = np.zeros(legal.shape, dtype=np.bool_)
        goals[legal] = is_goal(table, rows)
        plan = forward_plan(table)
        result: F32 = bellman_targets(
            self.recipe,
            torch.from_numpy(values),
            torch.from_numpy(legal),
            torch.from_numpy(plan.cost[table.contexts_of(once)]),
            torch.from_numpy(goals),
            torch.from_numpy(is_goal(table, once)),
            torch.from_numpy(base(self.puzzle)(once)),
        ).numpy()
        return result[which]


class CudaLearner:
    """Everything on the device, recorded once as a graph that is then replayed; nothing comes back but losses."""

    def __init__(self, puzzle: Puzzle, recipe: Recipe) -> None:
        widths = (puzzle.encoding.width, *recipe.hidden, 1)
        self.puzzle, self.recipe, self.block = puzzle, recipe, block_steps(puzzle, recipe)
        torch.set_float32_matmul_precision("high" if recipe.tf32 else "highest")
        self.parameters, self.target = Parameters(widths, "cuda"), Parameters(widths, "cuda")
        self.optimizer = make_optimizer(self.parameters, recipe)
        self.encoding, self.base = TensorEncoding(puzzle.encoding, "cuda"), TensorBase(puzzle.base_heuristic, "cuda")
        self.moves = TensorMoves(puzzle.table, "cuda")
        self.scrambles = TensorScrambles(puzzle.table, recipe.curriculum.max_depth, recipe.scrambles, "cuda")
        self.cost = torch.tensor(forward_plan(puzzle.table).cost, device="cuda")
        self.depth, self.seed = (
            torch.ones((), dtype=torch.int64, device="cuda"),
            torch.zeros((), dtype=torch.int64, device="cuda"),
        )
        self.losses = torch.zeros(self.block, device="cuda")
        self.graph: torch.cuda.CUDAGraph | None = None
        self.guide: CudaHeuristic | None = None

    def prepare(self) -> None:
        """Record a block; the one that is run first, to set up what is set up on first use, is undone."""
        changed = [self.parameters.flat, self.target.flat]
        before = [tensor.detach().clone() for tensor in changed]
        moments = {key: value.clone() for key, value in self.optimizer.state.get(changed[0], {}).items()}
        self.depth.fill_(1)
        stream: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._learn(self.block)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._learn(self.block)
        self.graph = graph
        with torch.no_grad():
            for tensor, old in zip(changed, before, strict=True):
                tensor.copy_(old)
            for key, value in self.optimizer.state[changed[0]].items():
                value.copy_(moments[key]) if moments else value.zero_()
        torch.cuda.synchronize()

    def heuristic(self) -> Heuristic:
        """The network as it is now."""
        self.guide = self.guide or CudaHeuristic(self.puzzle, self.parameters.parts)
        return self.guide

    def learn(self, block: int, depth: int, steps: int) -> Tensor:
        """See `Learner`."""
        self.depth.fill_(depth)
        self.seed.fill_(signed(derived_seed(self.recipe.seed, block)))
        if self.graph is not None and steps == self.block:
            self.graph.replay()
        else:
            self._learn(steps)
        return self.losses[:steps].clone()

    def _learn(self, steps: int) -> None:
        recipe = self.recipe
        with torch.no_grad():
            states = self.scrambles(steps * recipe.batch, self.depth, self.seed)
            targets = self.targets(states)
            inputs = self.encoding.dense(states)
        for step in range(steps):
            rows = slice(step * recipe.batch, (step + 1) * recipe.batch)
            parts = self.parameters.parts
            values = later_layers(torch.addmm(parts[1], inputs[rows], parts[0]), parts[2:])
            loss = mean_loss(recipe, values, targets[rows])
            self.parameters.gradient.zero_()
            torch.autograd.backward(loss)
            self.optimizer.step()
            self.losses[step] = loss.detach()

    def targets(self, states: Tensor) -> Tensor:
        """float32[B], by the target network."""
        children, legal = self.moves.successors(states)
        rows = children.flatten(0, 1)
        parts = [part.detach() for part in self.target.parts]
        values = later_layers(torch.addmm(parts[1], self.encoding.dense(rows), parts[0]), parts[2:])
        return bellman_targets(
            self.recipe,
            values.view(legal.shape),
            legal,
            self.cost[self.moves.contexts(states)],
            self.moves.is_goal(rows).view(legal.shape),
            self.moves.is_goal(states),
            self.base(states),
        )
