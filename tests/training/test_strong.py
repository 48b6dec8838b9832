"""What goes past the paper: levels, true costs as targets, penalties that grow."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import undershoot as us
from undershoot.calibration.calibrator import Wanted
from undershoot.calibration.catalogue import calibrate
from undershoot.heuristics.calibrated import CalibratedHeuristic
from undershoot.heuristics.combined import best_rounding
from undershoot.heuristics.neural import NeuralHeuristic
from undershoot.heuristics.survey import survey
from undershoot.heuristics.whole_numbers import to_whole_numbers
from undershoot.kernels.scrambles import derived_seed, scrambles_up_to
from undershoot.kernels.tensors import signed
from undershoot.puzzles.puzzle import Puzzle
from undershoot.training import learner as learners
from undershoot.training.learner import CpuLearner, CudaLearner, exact_rows, initialise
from undershoot.training.loop import train
from undershoot.training.losses import mean_loss
from undershoot.training.recipe import Curriculum, Recipe, Schedule, Targets
from undershoot.training.recipes import recipe
from undershoot.training.runs import Run

NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def small(puzzle: Puzzle, kind: str = "exact", **changes: object) -> Recipe:
    plan = replace(recipe(puzzle, kind), hidden=(32, 16), batch=256, steps=1500)
    return replace(plan, curriculum=replace(plan.curriculum, interval=300), **changes)  # type: ignore[arg-type]


def certified_mean(puzzle: Puzzle, plan: Recipe) -> tuple[float, float]:
    """The mean of h over all states, in whole numbers after `exhaustive`, and that of the true cost."""
    encoding = puzzle.encoded(plan.encoding, plan.canonical)
    whole = to_whole_numbers(train(puzzle, plan).network, encoding, puzzle.sample(5000, 0))
    network = NeuralHeuristic(puzzle, whole, own_encoding=encoding)
    rounding = best_rounding(puzzle)
    found = survey(CalibratedHeuristic(network, calibrate(network, "exhaustive", Wanted(rounding=rounding))), us.oracle(puzzle))
    assert found.overestimates == 0
    return found.mean_h, found.mean_true


def test_the_loss_of_levels_is_its_definition() -> None:
    values = torch.tensor([[2.0, -1.0, 0.5], [0.3, 0.2, 0.1], [1.0, 1.0, 1.0]])
    targets = torch.tensor([1.0, 0.0, 3.0])

    def below(x: float) -> float:
        """-log of the probability that the level is not reached."""
        return -math.log(1 - 1 / (1 + math.exp(-x)))

    def reached(x: float) -> float:
        return -math.log(1 / (1 + math.exp(-x)))

    expected = (reached(2.0) + 7 * below(-1.0)) + 7 * below(0.3) + 3 * reached(1.0)
    assert float(mean_loss(values, targets, 7.0)) == pytest.approx(expected / 3, rel=1e-5)


def test_the_penalty_and_the_learning_rate_follow_the_recipe() -> None:
    plan = Recipe("tiles-3x3", steps=1000, overestimate_penalty=100.0, penalty_ramp=(0.2, 0.6))
    assert [round(plan.penalty(step), 6) for step in (0, 200, 400, 600, 999)] == [1, 1, 10, 100, 100]
    assert Recipe("tiles-3x3").penalty(0) == 100
    assert replace(plan, schedule=Schedule.CONSTANT).learning_rate_at(500) == plan.learning_rate
    wave = replace(plan, steps=10_000, schedule=Schedule.COSINE)
    rates = [wave.learning_rate_at(step) / wave.learning_rate for step in (0, 199, 5000, 10_000)]
    assert rates == pytest.approx([1 / 200, 1, 0.5005, 0.001], rel=1e-2)


@pytest.mark.parametrize("radius", [0, 6])
def test_states_of_the_oracle_come_with_their_true_costs(radius: int) -> None:
    puzzle = us.puzzle("tiles-3x3")
    plan = replace(small(puzzle), exact_share=0.25, exact_radius=radius)
    learner = CpuLearner(puzzle, plan)
    initialise(learner, puzzle, plan)
    states, targets = learner.draw(3, 10, 4)
    assert states.shape == (4 * 256, 9)
    assert exact_rows(plan) == 64
    known = np.arange(4 * 256) % 256 < 64
    true = us.oracle(puzzle).distance(states)
    assert (targets.numpy()[known] == true[known]).all()
    assert (true[known].max() <= 6) == (radius == 6)
    assert (learner.bootstrapped(states[~known]) == targets.numpy()[~known]).all()


@NEEDS_CUDA
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_cuda_draws_what_the_cpu_draws(share: float) -> None:
    puzzle = us.puzzle("tiles-3x3")
    plan = small(puzzle, exact_share=share)
    here, there = CpuLearner(puzzle, plan), CudaLearner(puzzle, replace(plan, device="cuda"))
    for learner in (here, there):
        initialise(learner, puzzle, plan)
    there.depth.fill_(10)
    there.seed.fill_(signed(derived_seed(plan.seed, 3)))
    states, targets = here.draw(3, 10, 5)
    theirs, their_targets = there.draw(5)
    assert (theirs.cpu().numpy() == states).all()
    assert (their_targets.cpu() == targets).float().mean() > 0.999  # a level at 0 may fall to either side


def test_without_labels_no_oracle_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("tiles-2x3")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the oracle was asked")

    plan = small(puzzle, "label-free", steps=100)
    monkeypatch.setattr(learners, "oracle", refuse)
    assert train(puzzle, plan).is_finished
    with pytest.raises(AssertionError, match="the oracle was asked"):
        train(puzzle, replace(plan, exact_share=0.5))
    with pytest.raises(us.UndershootError, match=r"hard_share is 0\.25; only on a pattern"):
        train(puzzle, replace(plan, hard_share=0.25))


def test_targets_of_walks_are_what_the_walks_cost() -> None:
    puzzle = us.puzzle("cube-2x2")
    plan = small(puzzle, "guide", targets=Targets.WALKS, steps=600)
    learner = CpuLearner(puzzle, plan)
    initialise(learner, puzzle, plan)
    states, targets = learner.draw(0, 6, 2)
    walked = scrambles_up_to(puzzle.table, len(states), 6, derived_seed(plan.seed, 0), plan.scrambles)
    np.testing.assert_array_equal(states, walked.states)
    np.testing.assert_array_equal(targets.numpy(), walked.cost_walked)
    values = NeuralHeuristic(puzzle, train(puzzle, plan).network, own_encoding=puzzle.encoded(plan.encoding, plan.canonical))
    some = scrambles_up_to(puzzle.table, 1000, 8, 1).states
    assert np.corrcoef(values(some), us.oracle(puzzle).distance(some))[0, 1] > 0.8


def test_a_guide_is_small_enough_and_trained_where_nothing_can_be_enumerated() -> None:
    for name in ("tiles-4x4", "tiles-5x5", "cube-3x3", "lights-out-8x8"):
        puzzle = us.puzzle(name)
        plan = recipe(puzzle, "guide")
        assert puzzle.encoded(plan.encoding, plan.canonical).width * plan.hidden[0] <= 5_000_000
        assert plan.penalty(plan.steps) == 1
    fifteen = us.puzzle("tiles-4x4")
    plan = replace(recipe(fifteen, "guide"), batch=64, steps=20, hidden=(16,))
    assert plan.curriculum.max_depth == 256
    assert train(fifteen, plan).is_finished


def test_true_costs_make_a_perfect_heuristic() -> None:
    puzzle = us.puzzle("lights-out-3x3")
    mean, true = certified_mean(puzzle, small(puzzle))
    assert mean == true


@pytest.mark.parametrize("kind", ["exact", "label-free"])
def test_certified_means_are_far_above_the_base(kind: str) -> None:
    puzzle = us.puzzle("tiles-2x3")
    mean, true = certified_mean(puzzle, small(puzzle, kind))
    low = survey(us.heuristic(puzzle, "base"), us.oracle(puzzle)).mean_h
    assert mean > (low + true) / 2 if kind == "exact" else mean > low + 1


def test_a_strong_run_that_stops_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-2x3")
    plan = replace(small(puzzle, "label-free"), curriculum=Curriculum(first_depth=12, max_depth=12, interval=100))
    whole = train(puzzle, plan).network
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return calls % 5 == 0

    for _ in range(60):
        run = Run(tmp_path / "run", puzzle, plan, resume=True)
        if (ended := train(puzzle, plan, run, should_stop=stop)).is_finished:
            break
    assert ended.is_finished
    assert calls > 20
    for a, b in zip((*whole.weights, *whole.biases), (*ended.network.weights, *ended.network.biases), strict=True):
        assert a.tobytes() == b.tobytes()


def test_recipes_that_make_no_sense_are_refused() -> None:
    puzzle = us.puzzle("tiles-2x3")
    for changes, message in (
        ({"levels": 1}, "allowed are 0, for one number"),
        ({"levels": 3}, "there are states at cost 21"),
        ({"target_discount": 0.1}, "levels are whole costs"),
        ({"encoding": "presses"}, "no encoding `presses`"),
        ({"encoding": "cells"}, "takes states as they are"),
        ({"penalty_ramp": (0.5, 0.2)}, "the second no less"),
        ({"exact_share": 1.5}, "exact_share is 1.5"),
    ):
        with pytest.raises(us.UndershootError, match=message):
            train(puzzle, replace(small(puzzle), **changes))
