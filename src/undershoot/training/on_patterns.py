"""Training on a pattern: arrangements drawn uniformly, with what the verified table says of them.

All of it is torch, on the processor or on CUDA, where many steps are recorded as one graph and replayed.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from undershoot.heuristics.neural import Network
from undershoot.heuristics.neural_cuda import later_layers, leading
from undershoot.kernels.scrambles import derived_seed
from undershoot.kernels.tensor_encodings import TensorEncoding
from undershoot.kernels.tensors import random_rows, signed
from undershoot.pattern_tables.labelled import AT_ONCE, PatternStates
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.residuals import Residuals, encoding_of
from undershoot.pattern_tables.tables import PatternTable
from undershoot.pattern_tables.tensors import TensorRanking
from undershoot.puzzles.encoding import Encoding
from undershoot.training.learner import make_optimizer
from undershoot.training.losses import loss_of_levels
from undershoot.training.networks import Networks, Parameters
from undershoot.training.recipe import Recipe

BLOCK = 20
"""Steps between two changes of the learning rate and the penalty, at most."""
MINED = 1 << 20
"""So many arrangements are kept of which the network says most too much."""
SOUGHT = {"cuda": 1 << 40, "cpu": 1 << 24}
"""Among so many arrangements, at most, hard ones are sought: all that there are, unless that would take a processor hours."""
ASKED = 1 << 14
"""Arrangements that a network in training is asked about to see how it goes."""


def block_of(recipe: Recipe) -> int:
    """Steps that are made at once: the target network is renewed, and figures are taken, between two of them."""
    together = math.gcd(recipe.target_interval, recipe.curriculum.interval)
    return next(k for k in range(min(BLOCK, together), 0, -1) if together % k == 0)


@contextmanager
def one_thread() -> Iterator[None]:
    """For torch on the processor: with layers as small as these, several wait for each other longer than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Lesson(NamedTuple):
    """What one of the networks is shown in a block."""

    codes: Tensor
    """int64[R, k]: arrangements."""
    labels: Tensor
    """int64[R]: steps above h0's share; -1 where there is no solution."""
    penalty: Tensor | float
    """Of overestimates."""


class LevelLearner(ABC):
    """Networks in training whose levels say how many steps an arrangement costs above h0's share. The first is what is wanted.

    A `Trainee`: checkpoints hold the networks, the target networks and the optimizer. What is drawn follows from the seed and
    the step, and what else there is from the target networks.
    """

    def __init__(self, pattern: Pattern, residuals: Residuals, recipe: Recipe, encodings: Sequence[Encoding]) -> None:
        self.pattern, self.residuals, self.recipe, self.block = pattern, residuals, recipe, block_of(recipe)
        self.inputs, device = encodings[0], recipe.device
        self.encodings = [TensorEncoding(encoding, device) for encoding in encodings]
        widths = [(encoding.width, *recipe.hidden, max(2, residuals.levels)) for encoding in encodings]
        self.parameters, self.target = Networks(widths, device), Networks(widths, device)
        for parameters, encoding in zip(self.parameters.each, encodings, strict=True):
            parameters.initialise(recipe.seed, recipe.initial_scale, encoding.active)
        self.optimizer = make_optimizer(self.parameters, recipe)
        self.seed = torch.zeros((), dtype=torch.int64, device=device)
        self.penalty = torch.ones((), device=device)
        self.losses = torch.zeros(self.block, device=device)
        self.share = torch.tensor(residuals.share, device=device, dtype=torch.int64)
        self.pieces = torch.arange(len(residuals.share), device=device)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.renew_target()

    @abstractmethod
    def lessons(self, steps: int) -> list[Lesson]:
        """For each network, `steps * batch` arrangements."""

    @abstractmethod
    def labels_of(self, numbers: Tensor) -> Tensor | None:
        """int64[B]: what arrangements cost, in steps above h0's share; None where that is not known. numbers: int64[B]."""

    @abstractmethod
    def before_block(self) -> None:
        """What is done between blocks, which no graph records."""

    def renew_target(self) -> None:
        """The target networks become copies of the networks."""
        with torch.no_grad():
            self.target.flat.copy_(self.parameters.flat)

    def outputs(self, parameters: Parameters, encoding: TensorEncoding, codes: Tensor) -> Tensor:
        """float32[B, K]."""
        weight, bias, *later = parameters.parts
        return later_layers(encoding.sum_of_rows(codes, weight, bias), later)

    def network(self) -> Network:
        """The first one, as it is now."""
        return self.parameters.each[0].network()

    def train(self, progress: Callable[[int, float], None] | None = None) -> Network:
        """All steps of the recipe, without a folder. progress: called with the step and the mean loss of the last ones."""
        with one_thread():
            self.prepare()
            for step in range(0, self.recipe.steps, self.block):
                losses = self.learn(step, min(self.block, self.recipe.steps - step))
                if (step + self.block) % self.recipe.target_interval == 0:
                    self.renew_target()
                if progress is not None and step % (50 * self.block) == 0:
                    progress(step, float(losses.mean()))
        return self.network()

    def learn(self, step: int, steps: int) -> Tensor:
        """From this step on, at most a block of them; float32[steps], the losses."""
        self.before_block()
        self.seed.fill_(signed(derived_seed(self.recipe.seed, step // self.block)))
        self.penalty.fill_(self.recipe.penalty(step))
        rate = self.recipe.learning_rate_at(step)
        group = self.optimizer.param_groups[0]
        group["lr"] = group["lr"].fill_(rate) if isinstance(group["lr"], Tensor) else rate
        if self.graph is not None and steps == self.block:
            self.graph.replay()
        else:
            self._learn(steps)
        return self.losses[:steps].clone()

    def _learn(self, steps: int) -> None:
        batch = self.recipe.batch
        with torch.no_grad():
            lessons = self.lessons(steps)
        for step in range(steps):
            rows = slice(step * batch, (step + 1) * batch)
            loss = torch.zeros((), device=self.recipe.device)
            for parameters, encoding, lesson in zip(self.parameters.each, self.encodings, lessons, strict=True):
                values = self.outputs(parameters, encoding, lesson.codes[rows])
                loss = loss + loss_of_levels(self.recipe.loss, values, lesson.labels[rows], lesson.penalty)
            self.parameters.gradient.zero_()
            torch.autograd.backward(loss)
            self.optimizer.step()
            self.losses[step] = loss.detach()

    def prepare(self) -> None:
        """On CUDA, record a block; what ran to set up is undone. After a checkpoint was taken up, if one is."""
        torch.set_float32_matmul_precision("high" if self.recipe.tf32 else "highest")
        if self.recipe.device != "cuda":
            return
        self.before_block()
        flat = self.parameters.flat
        before = flat.detach().clone()
        moments = {key: value.clone() for key, value in self.optimizer.state.get(flat, {}).items()}
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
            flat.copy_(before)
            for key, value in self.optimizer.state[flat].items():
                value.copy_(moments[key]) if moments else value.zero_()
        torch.cuda.synchronize()

    @torch.no_grad()
    def figures(self) -> dict[str, float]:
        """How it goes, over arrangements drawn uniformly: `mean` of what the network says, and, where costs are known, the
        share of them that it puts `above` what they cost."""
        ranking, device = TensorRanking(self.pattern.folded), self.recipe.device
        numbers = random_rows(ASKED, ranking.size, torch.zeros((), dtype=torch.int64, device=device))
        labels, steps, sums = self.labels_of(numbers), [], []
        for some in torch.split(numbers, AT_ONCE[device]):
            codes = torch.stack(ranking.codes_of(some), dim=1).long()
            steps.append(leading(self.outputs(self.parameters.each[0], self.encodings[0], codes)))
            sums.append(self.share[self.pieces, codes].sum(dim=1))
        said, base = torch.cat(steps), torch.cat(sums)
        counted = torch.ones_like(said, dtype=torch.bool) if labels is None else labels >= 0
        found = {"mean": float((base + self.residuals.step * said)[counted].double().mean())}
        return found if labels is None else {**found, "above": float((said > labels)[counted].double().mean())}


class PatternLearner(LevelLearner):
    """A network in training on a pattern whose table is known.

    Of every batch, a share is drawn from the arrangements of which the network says most too much; these are sought anew, among
    all, whenever the target network is renewed, and are those of the target network.
    """

    def __init__(self, table: PatternTable, residuals: Residuals, recipe: Recipe) -> None:
        self.is_stale = True
        super().__init__(table.pattern, residuals, recipe, [encoding_of(table.pattern, pairs=recipe.encoding == "pairs")])
        self.states = PatternStates(table, residuals, recipe.device)
        self.hard = round(recipe.hard_share * recipe.batch)
        self.mined = torch.zeros(MINED if self.hard else 1, dtype=torch.int64, device=recipe.device)

    def renew_target(self) -> None:
        """And what is hard."""
        super().renew_target()
        self.is_stale = True

    def before_block(self) -> None:
        """Seek hard arrangements, if those at hand are of an earlier target network."""
        if self.hard and self.is_stale:
            self._mine()
        self.is_stale = False

    def labels_of(self, numbers: Tensor) -> Tensor:
        """By the table."""
        return self.states(numbers)[1]

    def lessons(self, steps: int) -> list[Lesson]:
        """Drawn uniformly, and from the hard ones."""
        batch = self.recipe.batch
        numbers = random_rows(steps * batch, self.states.count, self.seed).view(steps, batch)
        if self.hard:
            again = random_rows(steps * self.hard, MINED, self.seed + 1).view(steps, self.hard)
            numbers = torch.cat([numbers[:, self.hard :], self.mined[again]], dim=1)
        return [Lesson(*self.states(numbers.flatten()), self.penalty)]

    @torch.no_grad()
    def _mine(self) -> None:
        """Keep the arrangements whose level above their label comes out highest, compared within each label."""
        numbers = self._candidates()
        scores, labels = self.scores(numbers)
        kept = []
        levels = self.target.each[0].widths[-1]
        for label in range(levels):
            those = torch.nonzero(labels == label)[:, 0]
            if len(those):
                best = scores[those].topk(min(len(those), MINED // levels)).indices
                kept.append(those[best])
        found = numbers[torch.cat(kept)]
        self.mined.copy_(found[torch.arange(MINED, device=found.device) % len(found)])

    def _candidates(self) -> Tensor:
        """int64[N]: the arrangements among which hard ones are sought; the same ones each time."""
        count, most, device = self.states.count, SOUGHT[self.recipe.device], self.recipe.device
        if count <= most:
            return torch.arange(count, device=device)
        seed = torch.tensor(signed(derived_seed(self.recipe.seed, 0)), device=device)
        return random_rows(most, count, seed)

    @torch.no_grad()
    def scores(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """(float32[N], int16[N]): for each of these arrangements, what the level just above its label says; and the label."""
        (target,), (encoding,), device = self.target.each, self.encodings, self.recipe.device
        levels = target.widths[-1]
        scores = torch.empty(len(numbers), device=device)
        labels = torch.empty(len(numbers), dtype=torch.int16, device=device)
        for first in range(0, len(numbers), AT_ONCE[device]):
            some = slice(first, first + AT_ONCE[device])
            codes, label = self.states(numbers[some])
            raw = functional.pad(self.outputs(target, encoding, codes), (0, 1), value=-1e9)
            scores[some] = raw.gather(1, label.clamp(0, levels)[:, None])[:, 0]
            labels[some] = label.to(torch.int16)
        return scores, labels
