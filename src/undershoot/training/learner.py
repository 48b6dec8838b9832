"""The inner part of Algorithm 1: scramble, compute targets, step.

The target network stands still between two copies, so the states and targets of many steps are made at once.
"""

import math
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from undershoot.arrays import F32, I64, AnyArray, States
from undershoot.errors import SpaceTooLarge
from undershoot.guarantees import Heuristic
from undershoot.heuristics.analytic import base
from undershoot.heuristics.neural import NeuralHeuristic, evaluate
from undershoot.heuristics.neural_cuda import CudaHeuristic, later_layers, leading
from undershoot.kernels.cpu import is_goal, successors
from undershoot.kernels.distinct import distinct
from undershoot.kernels.encodings import read
from undershoot.kernels.plan import forward_plan
from undershoot.kernels.scrambles import derived_seed, random_rows, scrambles_up_to
from undershoot.kernels.tensor_encodings import TensorBase, TensorEncoding
from undershoot.kernels.tensors import TensorMoves, TensorScrambles, signed
from undershoot.kernels.tensors import random_rows as random_rows_on_device
from undershoot.oracles.cache import oracle
from undershoot.oracles.distance_table import DistanceTable
from undershoot.puzzles.problem import Problem
from undershoot.training.losses import mean_loss
from undershoot.training.networks import Flat, Parameters, forward
from undershoot.training.recipe import Recipe, Targets
from undershoot.training.targets import bellman_targets

MAX_ROWS = 1 << 20
"""Children that are evaluated at once, at most."""
CHUNK = 1 << 16
"""Rows for which a device makes the inputs of a network at once."""


class Learner(Protocol):
    """A network in training on some device."""

    parameters: Parameters
    target: Parameters
    optimizer: torch.optim.AdamW

    def learn(self, step: int, depth: int, steps: int) -> Tensor:
        """Lines 3 to 9, so many times, from this step on; float32[steps], the losses.

        What is drawn depends on the seed and the number of the block alone.
        """

    def prepare(self) -> None:
        """Compile or record everything, so that it is not counted as training."""

    def heuristic(self) -> Heuristic:
        """The network as it is now."""


def make_learner(puzzle: Problem, recipe: Recipe, threads: int) -> Learner:
    """For the recipe's device; on the CPU the target network is evaluated by so many threads."""
    if recipe.device == "cuda":
        return CudaLearner(puzzle, recipe)
    return CpuLearner(puzzle, recipe, threads)


def initialise(learner: Learner, puzzle: Problem, recipe: Recipe) -> None:
    """Line 1: random weights, and the target network a copy."""
    active = None if recipe.encoding == "cells" else puzzle.encoded(recipe.encoding).active
    learner.parameters.initialise(recipe.seed, recipe.initial_scale, active)
    renew_target(learner)


def renew_target(learner: Learner) -> None:
    """Lines 10 to 12."""
    with torch.no_grad():
        learner.target.flat.copy_(learner.parameters.flat)


def block_steps(puzzle: Problem, recipe: Recipe) -> int:
    """Steps whose states are made at once: they end together with a target copy or an evaluation, and fit into memory."""
    together = math.gcd(recipe.target_interval, recipe.curriculum.interval)
    rows = recipe.batch + (recipe.batch - exact_rows(recipe)) * puzzle.table.forward.legal.shape[1]
    most = max(1, min(together, MAX_ROWS // rows))
    return next(k for k in range(most, 0, -1) if together % k == 0)


def exact_rows(recipe: Recipe) -> int:
    """How many states of a batch come from the oracle."""
    return round(recipe.exact_share * recipe.batch)


def known_states(puzzle: Problem, recipe: Recipe) -> DistanceTable | None:
    """The oracle's states, if the recipe draws from them."""
    if not exact_rows(recipe):
        return None
    try:
        return oracle(puzzle, radius=recipe.exact_radius or None)
    except SpaceTooLarge as error:
        raise SpaceTooLarge(
            f"exact_share is {recipe.exact_share:g}, so true costs are needed. {error} In a recipe that is exact_radius=R."
        ) from error


def make_optimizer(parameters: Flat, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW over the flat buffer."""
    whole = parameters.flat.requires_grad_()
    whole.grad = parameters.gradient
    on_device = recipe.device == "cuda"
    return torch.optim.AdamW(
        [whole],
        lr=torch.tensor(recipe.learning_rate, device="cuda") if on_device else recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        fused=True,
        capturable=on_device,
    )


class CpuLearner:
    """States by compiled kernels, the network by torch."""

    def __init__(self, puzzle: Problem, recipe: Recipe, threads: int = 1) -> None:
        self.puzzle, self.recipe, self.threads, self.block = puzzle, recipe, threads, block_steps(puzzle, recipe)
        self.encoding = puzzle.encoded(recipe.encoding, recipe.canonical)
        widths = (self.encoding.width, *recipe.hidden, recipe.levels or 1)
        self.parameters, self.target = Parameters(widths, "cpu"), Parameters(widths, "cpu")
        self.optimizer = make_optimizer(self.parameters, recipe)
        self.known = known_states(puzzle, recipe)

    def prepare(self) -> None:
        """Compile."""
        states = self.puzzle.table.goals[[0, 0]]
        self.bootstrapped(states)
        tokens = read(self.encoding, states)
        torch.autograd.backward(forward(self.encoding, self.parameters.parts, tokens).sum())

    def heuristic(self) -> Heuristic:
        """The network as it is now."""
        return NeuralHeuristic(self.puzzle, self.parameters.network(), own_encoding=self.encoding)

    def learn(self, step: int, depth: int, steps: int) -> Tensor:
        """See `Learner`."""
        recipe, batch = self.recipe, self.recipe.batch
        states, targets = self.draw(step // self.block, depth, steps)
        tokens = read(self.encoding, states)
        penalty = recipe.penalty(step)
        self.optimizer.param_groups[0]["lr"] = recipe.learning_rate_at(step)
        losses = torch.empty(steps)
        for number in range(steps):
            rows = slice(number * batch, (number + 1) * batch)
            values = forward(self.encoding, self.parameters.parts, tokens[rows])
            loss = mean_loss(values, targets[rows], penalty)
            self.parameters.gradient.zero_()
            torch.autograd.backward(loss)
            self.optimizer.step()
            losses[number] = loss.detach()
        return losses

    def draw(self, block: int, depth: int, steps: int) -> tuple[States, Tensor]:
        """uint8[steps * batch, n] and float32[steps * batch]: states and targets."""
        recipe, seed, known = self.recipe, derived_seed(self.recipe.seed, block), exact_rows(self.recipe)
        made = steps * (recipe.batch - known)
        walked, _, cost = scrambles_up_to(self.puzzle.table, made, depth, seed, recipe.scrambles)
        targets = self.targets(walked, cost) if made else np.zeros(0, dtype=np.float32)
        if self.known is None:
            return walked, torch.from_numpy(targets)
        rows = random_rows(steps * known, self.known.states, seed)
        costs = np.searchsorted(np.cumsum(self.known.histogram), rows, side="right").astype(np.float32)
        states = _side_by_side(steps, self.known.states_of(rows), walked)
        return states, torch.from_numpy(_side_by_side(steps, costs, targets))

    def targets(self, states: States, cost_walked: I64) -> F32:
        """float32[B]: of scrambles."""
        if self.recipe.targets is Targets.WALKS:
            return cost_walked.astype(np.float32)
        return self.bootstrapped(states)

    def bootstrapped(self, states: States) -> F32:
        """float32[B]: targets by the target network."""
        table = self.puzzle.table
        first, which = distinct(states)
        once = states[first]
        children, legal = successors(table, once)
        rows = children[legal]
        heads, copies = distinct(rows)
        network = NeuralHeuristic(self.puzzle, self.target.network(), own_encoding=self.encoding)
        raw = evaluate(network.raw, rows[heads], self.threads)
        values = np.zeros(legal.shape, dtype=np.float32)
        values[legal] = network.family.values(raw)[copies]
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

    def __init__(self, puzzle: Problem, recipe: Recipe) -> None:
        self.puzzle, self.recipe, self.block = puzzle, recipe, block_steps(puzzle, recipe)
        self.inputs = puzzle.encoded(recipe.encoding, recipe.canonical)
        widths = (self.inputs.width, *recipe.hidden, recipe.levels or 1)
        torch.set_float32_matmul_precision("high" if recipe.tf32 else "highest")
        self.parameters, self.target = Parameters(widths, "cuda"), Parameters(widths, "cuda")
        self.optimizer = make_optimizer(self.parameters, recipe)
        self.encoding, self.base = TensorEncoding(self.inputs, "cuda"), TensorBase(puzzle.base_heuristic, "cuda")
        self.moves = TensorMoves(puzzle.table, "cuda")
        self.scrambles = TensorScrambles(puzzle.table, recipe.curriculum.max_depth, recipe.scrambles, "cuda")
        self.cost = torch.tensor(forward_plan(puzzle.table).cost, device="cuda")
        self.depth, self.seed = (
            torch.ones((), dtype=torch.int64, device="cuda"),
            torch.zeros((), dtype=torch.int64, device="cuda"),
        )
        self.penalty = torch.ones((), device="cuda")
        self.losses = torch.zeros(self.block, device="cuda")
        self.known = None
        if (table := known_states(puzzle, recipe)) is not None:
            self.known = torch.from_numpy(table.states_of_rows(0, table.states)).to("cuda")
            self.ends = torch.from_numpy(np.cumsum(table.histogram)).to("cuda")
        self.graph: torch.cuda.CUDAGraph | None = None
        self.guide: CudaHeuristic | None = None

    def prepare(self) -> None:
        """Record a block. The one that is run first, to set up what is set up on first use, is undone."""
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
        self.guide = self.guide or CudaHeuristic(self.puzzle, self.parameters.parts, encoding=self.inputs)
        return self.guide

    def learn(self, step: int, depth: int, steps: int) -> Tensor:
        """See `Learner`."""
        self.depth.fill_(depth)
        self.seed.fill_(signed(derived_seed(self.recipe.seed, step // self.block)))
        self.penalty.fill_(self.recipe.penalty(step))
        self.optimizer.param_groups[0]["lr"].fill_(self.recipe.learning_rate_at(step))
        if self.graph is not None and steps == self.block:
            self.graph.replay()
        else:
            self._learn(steps)
        return self.losses[:steps].clone()

    def _learn(self, steps: int) -> None:
        batch = self.recipe.batch
        with torch.no_grad():
            states, targets = self.draw(steps)
            active = self.encoding.active(states)
        for step in range(steps):
            rows = slice(step * batch, (step + 1) * batch)
            inputs = self.encoding.dense(active[rows])
            weight, bias, *later = self.parameters.parts
            values = later_layers(torch.addmm(bias, inputs, weight), later)
            loss = mean_loss(values, targets[rows], self.penalty)
            self.parameters.gradient.zero_()
            torch.autograd.backward(loss)
            self.optimizer.step()
            self.losses[step] = loss.detach()

    def draw(self, steps: int) -> tuple[Tensor, Tensor]:
        """uint8[steps * batch, n] and float32[steps * batch]: states and targets."""
        known = exact_rows(self.recipe)
        made = steps * (self.recipe.batch - known)
        walked, cost = self.scrambles(made, self.depth, self.seed)
        targets = self.targets(walked, cost) if made else torch.zeros(0, device="cuda")
        if self.known is None:
            return walked, targets
        rows = random_rows_on_device(steps * known, len(self.known), self.seed)
        costs = torch.searchsorted(self.ends, rows, right=True).to(torch.float32)
        cells, rest = walked.shape[1], made // steps
        states = torch.cat([self.known[rows].view(steps, known, cells), walked.view(steps, rest, cells)], dim=1)
        return states.flatten(0, 1), torch.cat([costs.view(steps, known), targets.view(steps, rest)], dim=1).flatten()

    def targets(self, states: Tensor, cost_walked: Tensor) -> Tensor:
        """float32[B]: of scrambles."""
        return cost_walked.float() if self.recipe.targets is Targets.WALKS else self.bootstrapped(states)

    def bootstrapped(self, states: Tensor) -> Tensor:
        """float32[B]: targets by the target network."""
        children, legal = self.moves.successors(states)
        rows = children.flatten(0, 1)
        weight, bias, *later = (part.detach() for part in self.target.parts)
        sums = (self.encoding.sum_of_rows(some, weight, bias) for some in torch.split(rows, CHUNK))
        values = torch.cat([leading(later_layers(some, later)) for some in sums])
        return bellman_targets(
            self.recipe,
            values.view(legal.shape),
            legal,
            self.cost[self.moves.contexts(states)],
            self.moves.is_goal(rows).view(legal.shape),
            self.moves.is_goal(states),
            self.base(states),
        )


def _side_by_side(steps: int, left: AnyArray, right: AnyArray) -> AnyArray:
    """Rows of every step: first its part of `left`, then its part of `right`."""
    pieces = [array.reshape(steps, len(array) // steps, *array.shape[1:]) for array in (left, right)]
    return np.concatenate(pieces, axis=1).reshape(-1, *left.shape[1:])
