"""Training on a pattern: arrangements drawn uniformly, with what the verified table says of them.

All of it is torch, on the processor or on CUDA, where many steps are recorded as one graph and replayed.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from undershoot.heuristics.neural import Network
from undershoot.heuristics.neural_cuda import later_layers
from undershoot.kernels.scrambles import derived_seed
from undershoot.kernels.tensor_encodings import TensorEncoding
from undershoot.kernels.tensors import random_rows, signed
from undershoot.pattern_tables.labelled import AT_ONCE, PatternStates
from undershoot.pattern_tables.residuals import Residuals, encoding_of
from undershoot.pattern_tables.tables import PatternTable
from undershoot.training.learner import make_optimizer
from undershoot.training.losses import mean_loss
from undershoot.training.networks import Parameters
from undershoot.training.recipe import Recipe

BLOCK = 20
"""Steps between two changes of the learning rate and the penalty."""
MINED_EVERY = 2000
"""Steps after which the arrangements are sought anew of which the network says most too much."""
MINED = 1 << 20
"""So many of them are kept."""


class PatternLearner:
    """A network in training on a pattern."""

    def __init__(self, table: PatternTable, residuals: Residuals, recipe: Recipe) -> None:
        self.recipe = recipe
        self.states = PatternStates(table, residuals, recipe.device)
        self.inputs = encoding_of(table.pattern, pairs=recipe.encoding == "pairs")
        self.encoding = TensorEncoding(self.inputs, recipe.device)
        self.parameters = Parameters((self.inputs.width, *recipe.hidden, max(2, residuals.levels)), recipe.device)
        self.parameters.initialise(recipe.seed, recipe.initial_scale, self.inputs.active)
        self.optimizer = make_optimizer(self.parameters, recipe)
        self.seed = torch.zeros((), dtype=torch.int64, device=recipe.device)
        self.penalty = torch.ones((), device=recipe.device)
        self.losses = torch.zeros(BLOCK, device=recipe.device)
        self.hard = round(recipe.hard_share * recipe.batch)
        self.mined = torch.zeros(MINED, dtype=torch.int64, device=recipe.device)
        self.graph: torch.cuda.CUDAGraph | None = None

    def outputs(self, codes: Tensor) -> Tensor:
        """float32[B, K]."""
        weight, bias, *later = self.parameters.parts
        return later_layers(self.encoding.sum_of_rows(codes, weight, bias), later)

    def train(self, progress: Callable[[int, float], None] | None = None) -> Network:
        """All steps of the recipe. progress: called with the step and the mean loss of the last ones."""
        recipe = self.recipe
        torch.set_float32_matmul_precision("high" if recipe.tf32 else "highest")
        if recipe.device == "cuda":
            self._record()
        for step in range(0, recipe.steps, BLOCK):
            if self.hard and step % MINED_EVERY == 0:
                self._mine(step)
            self.seed.fill_(signed(derived_seed(recipe.seed, step)))
            self.penalty.fill_(recipe.penalty(step))
            rate = recipe.learning_rate_at(step)
            group = self.optimizer.param_groups[0]
            group["lr"] = group["lr"].fill_(rate) if isinstance(group["lr"], Tensor) else rate
            if self.graph is None:
                self._learn()
            else:
                self.graph.replay()
            if progress is not None and step % (50 * BLOCK) == 0:
                progress(step, float(self.losses.mean()))
        return self.parameters.network()

    def _learn(self) -> None:
        """One block."""
        batch = self.recipe.batch
        with torch.no_grad():
            numbers = random_rows(BLOCK * batch, self.states.count, self.seed).view(BLOCK, batch)
            if self.hard:
                again = random_rows(BLOCK * self.hard, MINED, self.seed + 1).view(BLOCK, self.hard)
                numbers = torch.cat([numbers[:, self.hard :], self.mined[again]], dim=1)
            codes, labels = self.states(numbers.flatten())
        for step in range(BLOCK):
            rows = slice(step * batch, (step + 1) * batch)
            loss = mean_loss(self.outputs(codes[rows]), labels[rows].float(), self.penalty)
            self.parameters.gradient.zero_()
            torch.autograd.backward(loss)
            self.optimizer.step()
            self.losses[step] = loss.detach()

    def _record(self) -> None:
        """Record a block; what ran to set up is undone."""
        flat = self.parameters.flat
        before = flat.detach().clone()
        stream: torch.cuda.Stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._learn()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._learn()
        with torch.no_grad():
            flat.copy_(before)
            for value in self.optimizer.state[flat].values():
                value.zero_()
        torch.cuda.synchronize()

    @torch.no_grad()
    def _mine(self, step: int) -> None:
        """Keep the arrangements whose level above their label comes out highest, compared within each label."""
        scores, labels = self.scores()
        kept = []
        levels = self.parameters.widths[-1]
        for label in range(levels):
            those = torch.nonzero(labels == label)[:, 0]
            if len(those):
                best = scores[those].topk(min(len(those), MINED // levels)).indices
                kept.append(those[best])
        found = torch.cat(kept)
        self.mined.copy_(found[torch.arange(MINED, device=found.device) % len(found)])

    @torch.no_grad()
    def scores(self) -> tuple[Tensor, Tensor]:
        """(float32[N], int8[N]): for every arrangement, what the level just above its label says; and the label."""
        count, levels = self.states.count, self.parameters.widths[-1]
        scores = torch.empty(count, device=self.recipe.device)
        labels = torch.empty(count, dtype=torch.int8, device=self.recipe.device)
        for first in range(0, count, AT_ONCE[self.recipe.device]):
            numbers = torch.arange(first, min(count, first + AT_ONCE[self.recipe.device]), device=self.recipe.device)
            codes, label = self.states(numbers)
            raw = functional.pad(self.outputs(codes), (0, 1), value=-1e9)
            scores[first : first + len(numbers)] = raw.gather(1, label.clamp(0, levels)[:, None])[:, 0]
            labels[first : first + len(numbers)] = label.to(torch.int8)
        return scores, labels
