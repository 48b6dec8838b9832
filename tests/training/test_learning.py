"""Targets, losses and the loop against the paper's equations, and against what they should lead to."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

import undershoot as us
from reference import naive
from subjects import ALL
from undershoot.arrays import F32, States
from undershoot.heuristics.neural import NeuralHeuristic
from undershoot.heuristics.neural_cuda import CudaHeuristic
from undershoot.heuristics.survey import survey
from undershoot.kernels.encodings import dense as encoded
from undershoot.kernels.plan import forward_plan
from undershoot.kernels.scrambles import ScrambleRule, scrambles_up_to
from undershoot.kernels.tensors import TensorScrambles
from undershoot.oracles.breadth_first import explore
from undershoot.oracles.distance_table import DistanceTable
from undershoot.puzzles.puzzle import Puzzle
from undershoot.training.learner import CpuLearner, CudaLearner, block_steps
from undershoot.training.loop import solve_rate, train
from undershoot.training.losses import mean_loss
from undershoot.training.networks import Parameters, forward
from undershoot.training.recipe import Curriculum, Loss, Recipe
from undershoot.training.recipes import recipe
from undershoot.training.targets import bellman_targets

NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
PAPER = ("lights-out-3x3", "lights-out-5x5", "tiles-3x3", "cube-2x2", "cube-3x3", "pancake-8", "topspin-8-4", "cube-2x2-qtm")


def mixed_states(puzzle: Puzzle, count: int = 60) -> States:
    """Goals, their neighbours and others."""
    deepest = 9 if not puzzle.table.presses_commute else min(9, int(puzzle.table.forward.legal.sum()))
    far = scrambles_up_to(puzzle.table, count, deepest, 1).states
    near = scrambles_up_to(puzzle.table, 10, 1, 2).states
    return np.concatenate([puzzle.table.goals[:1], near, far, far[:5]])


def float64_network(puzzle: Puzzle, parameters: Parameters) -> Callable[[States], np.ndarray]:
    arrays = [part.detach().cpu().numpy().astype(np.float64) for part in parameters.parts]

    def value(states: States) -> np.ndarray:
        x = encoded(puzzle.encoding, states).astype(np.float64)
        for k, (weight, bias) in enumerate(zip(arrays[0::2], arrays[1::2], strict=True)):
            x = (np.maximum(x, 0) if k else x) @ weight + bias
        return np.asarray(x[:, 0])

    return value


def naive_targets(puzzle: Puzzle, plan: Recipe, value: Callable[[States], np.ndarray], states: States) -> list[float]:
    """From the equations, a state at a time, with successors by the rules of the puzzle."""
    goals = {tuple(goal) for goal in puzzle.table.goals.tolist()}
    costs = dict(zip(puzzle.table.action_names, puzzle.table.cost.tolist(), strict=True))
    found = []
    for row in states:
        state = tuple(row.tolist())
        if state in goals:
            found.append(0.0)
            continue
        through = []
        for action, child in naive.successors(puzzle.name, state).items():
            v = 0.0 if child in goals else float(value(np.array([child], dtype=np.uint8))[0])
            through.append(costs[action] + v)
        target = min(through) - plan.target_discount
        if plan.floor_by_base:
            target = max(target, float(puzzle.base_heuristic(row[None])[0]))
        found.append(target)
    return found


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_CUDA)])
@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("kind", ["paper", "mse"])
def test_targets_are_those_of_the_paper(name: str, kind: str, device: str) -> None:
    puzzle = us.puzzle(name)
    plan = replace(recipe(puzzle, kind), device=device)  # type: ignore[arg-type]
    learner = CpuLearner(puzzle, plan) if device == "cpu" else CudaLearner(puzzle, plan)
    learner.target.initialise(3)
    states = mixed_states(puzzle)
    expected = naive_targets(puzzle, plan, float64_network(puzzle, learner.target), states)
    if isinstance(learner, CpuLearner):
        got = learner.bootstrapped(states)
    else:
        got = learner.bootstrapped(torch.from_numpy(states).to("cuda")).cpu().numpy()
    np.testing.assert_allclose(got, expected, atol=2e-5)


@pytest.mark.parametrize("name", ["lights-out-3x3", "tiles-3x3", "pancake-7", "cube-2x2-qtm"])
def test_with_the_true_costs_as_values_the_targets_are_the_true_costs(name: str) -> None:
    puzzle, distances = explored(name)
    plan = recipe(puzzle, "mse")
    rows = np.random.default_rng(0).integers(distances.states, size=min(distances.states, 20_000))
    states = distances.states_of_rows(0, distances.states)[rows]
    children, legal = us.successors(puzzle.table, states)
    values = np.zeros(legal.shape, dtype=np.float32)
    values[legal] = distances.distance(children[legal])
    goal_children = np.zeros_like(legal)
    goal_children[legal] = us.is_goal(puzzle.table, children[legal])
    arrays = (
        values,
        legal,
        forward_plan(puzzle.table).cost[puzzle.table.contexts_of(states)],
        goal_children,
        us.is_goal(puzzle.table, states),
    )
    values_, legal_, cost, goal_children_, is_goal = (torch.from_numpy(array) for array in arrays)
    targets = bellman_targets(plan, values_, legal_, cost, goal_children_, is_goal, torch.zeros(len(states)))
    np.testing.assert_array_equal(targets.numpy(), distances.distance(states))


def test_the_loss_and_its_gradient_are_those_of_the_paper() -> None:
    values = torch.tensor([[1.0], [2.0], [5.0], [-1.0], [3.0]], requires_grad=True)
    targets = torch.tensor([2.0, 2.0, 3.5, 0.0, 2.5])
    for kind, penalty in ((Loss.ASYMMETRIC, 100.0), (Loss.MSE, 1.0)):
        loss = mean_loss(values, targets, Recipe("tiles-3x3", loss=kind).penalty(0))
        (gradient,) = torch.autograd.grad(loss, values)
        expected, slopes = 0.0, []
        for h, y in zip(values[:, 0].tolist(), targets.tolist(), strict=True):
            factor = penalty if h > y else 1.0
            expected += factor * (h - y) ** 2 / 5
            slopes.append(2 * factor * (h - y) / 5)
        assert float(loss.detach()) == pytest.approx(expected)
        assert gradient[:, 0].tolist() == pytest.approx(slopes)


@pytest.mark.parametrize("name", ALL)
def test_the_first_layer_gives_what_the_dense_layer_gives(name: str) -> None:
    puzzle = us.puzzle(name)
    states = mixed_states(puzzle, 30)
    sparse, dense = Parameters((puzzle.encoding.width, 24, 8, 1), "cpu"), Parameters((puzzle.encoding.width, 24, 8, 1), "cpu")
    for parameters in (sparse, dense):
        parameters.initialise(5)
        parameters.gradient.zero_()
    torch.autograd.backward((forward(puzzle.encoding, sparse.parts, states) ** 2).sum())
    x = torch.from_numpy(encoded(puzzle.encoding, states))
    for k, (weight, bias) in enumerate(zip(dense.parts[0::2], dense.parts[1::2], strict=True)):
        x = (torch.relu(x) if k else x) @ weight + bias
    torch.autograd.backward((x[:, 0] ** 2).sum())
    np.testing.assert_allclose(sparse.gradient, dense.gradient, atol=2e-4)
    assert sparse.gradient.abs().sum() > 0


HIDDEN = (96, 96, 64)
"""Large enough for spaces of some hundred states."""


@cache
def explored(name: str) -> tuple[Puzzle, DistanceTable]:
    return us.puzzle(name), explore(us.puzzle(name))


@cache
def mse_after(name: str, steps: int) -> NeuralHeuristic:
    puzzle = us.puzzle(name)
    return NeuralHeuristic(puzzle, train(puzzle, replace(recipe(puzzle, "mse"), hidden=HIDDEN, steps=steps)).network)


@pytest.mark.parametrize(("name", "farthest", "steps"), [("tiles-2x3", 6, 3000), ("lights-out-3x3", 9, 5000)])
def test_it_learns(name: str, farthest: int, steps: int) -> None:
    puzzle, distances = explored(name)
    near = distances.within(farthest)
    true_cost = np.repeat(np.arange(len(near.histogram)), near.histogram)

    def error(values: F32) -> float:
        return float(np.abs(values - true_cost).mean())

    states = near.states_of_rows(0, near.states)
    untrained = Parameters((puzzle.encoding.width, *HIDDEN, 1), "cpu")
    untrained.initialise(0)
    assert error(NeuralHeuristic(puzzle, untrained.network()).raw(states)) > 2
    assert error(mse_after(name, steps).raw(states)) < 0.5


def test_the_papers_recipe_stays_lower_than_plain_squared_error() -> None:
    puzzle, distances = explored("lights-out-3x3")
    paper = train(puzzle, replace(recipe(puzzle), hidden=HIDDEN, steps=2000))
    low = survey(NeuralHeuristic(puzzle, paper.network), distances)
    high = survey(mse_after("lights-out-3x3", 5000), distances)
    assert low.mean_h < low.mean_true - 1 < high.mean_h
    assert low.admissible_share > high.admissible_share


def test_the_curriculum_levels_up_only_at_its_threshold_and_stops_at_its_last_depth() -> None:
    puzzle = us.puzzle("lights-out-3x3")
    curriculum = Curriculum(max_depth=3, interval=50, states=10)
    seen: list[int] = []
    plan = replace(recipe(puzzle), steps=300, curriculum=curriculum)
    train(puzzle, plan, report=lambda position: seen.append(position.depth))
    assert seen == [2, 3, 3, 3, 3, 3]
    stuck = replace(plan, curriculum=replace(curriculum, budgets=((1, 1),), final_budget=1))
    seen.clear()
    train(puzzle, stuck, report=lambda position: seen.append(position.depth))
    assert seen == [1] * 6


def test_budgets_are_the_papers() -> None:
    budget = Curriculum(max_depth=14).budget
    assert [budget(d) for d in (1, 4, 5, 7, 8, 10, 11, 13, 14)] == [1200, 1200, 2500, 2500, 4000, 4000, 6000, 6000, 10_000]
    assert Curriculum(max_depth=6).budget(6) == 10_000


def test_solve_rate_counts_what_is_solved_within_the_budget() -> None:
    puzzle = us.puzzle("tiles-3x3")
    plan = replace(recipe(puzzle), curriculum=Curriculum(max_depth=9, budgets=((1, 40),), final_budget=40))
    rate = solve_rate(puzzle, plan, us.heuristic(puzzle, "zero"), 5, 500)
    assert 0 < rate < 1
    assert solve_rate(puzzle, plan, us.heuristic(puzzle, "table"), 5, 500) == 1


def test_the_same_seed_gives_the_same_weights_and_another_seed_others() -> None:
    puzzle = us.puzzle("tiles-2x3")
    plan = replace(recipe(puzzle), steps=600)
    one, two, three = (train(puzzle, replace(plan, seed=seed)).network for seed in (1, 1, 2))
    for a, b, c in zip(one.weights, two.weights, three.weights, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes() != np.asarray(c).tobytes()


def test_blocks_end_with_target_copies_and_evaluations_and_fit_into_memory() -> None:
    cube = us.puzzle("cube-2x2")
    assert block_steps(cube, recipe(cube)) == 50
    assert block_steps(cube, replace(recipe(cube), batch=16_384)) == 5
    assert block_steps(cube, replace(recipe(cube), batch=1 << 20)) == 1
    assert block_steps(cube, replace(recipe(cube), target_interval=30, curriculum=Curriculum(interval=20))) == 10


@pytest.mark.parametrize("rule", ScrambleRule)
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_CUDA)])
def test_scrambles_by_torch_are_those_of_the_cpu(name: str, rule: ScrambleRule, device: str) -> None:
    table = us.puzzle(name).table
    depth = 7 if not table.presses_commute else min(7, int(table.forward.legal.sum()))
    make = TensorScrambles(table, depth, rule, device)
    states, cost = make(100, torch.tensor(depth, device=device), torch.tensor(9, device=device))
    expected = scrambles_up_to(table, 100, depth, 9, rule)
    np.testing.assert_array_equal(states.cpu().numpy(), expected.states)
    np.testing.assert_array_equal(cost.cpu().numpy(), expected.cost_walked)


def test_scramble_depths_are_uniform() -> None:
    walked = scrambles_up_to(us.puzzle("cube-2x2").table, 50_000, 10, 4).depth_walked
    counts = np.bincount(walked, minlength=11)
    assert counts[0] == 0
    assert np.abs(counts[1:] - 5000).max() < 5 * 5000**0.5


@NEEDS_CUDA
@pytest.mark.parametrize("name", PAPER)
def test_training_on_cuda_follows_training_on_the_cpu(name: str) -> None:
    puzzle = us.puzzle(name)
    plan = replace(recipe(puzzle), steps=100)
    losses = []
    for device in ("cpu", "cuda"):
        learner = (CpuLearner if device == "cpu" else CudaLearner)(puzzle, replace(plan, device=device))
        learner.parameters.initialise(1)
        learner.target.initialise(2)
        learner.prepare()
        assert learner.optimizer.state.get(learner.parameters.flat, {}).get("step", torch.zeros(())) == 0
        losses.append(learner.learn(150, 6, 50).cpu().numpy())
    np.testing.assert_allclose(losses[1][:10], losses[0][:10], rtol=2e-2)


@pytest.mark.parametrize("name", ["paper", "mse", "operator", "loss"])
def test_named_recipes_are_the_switches_of_the_ablation(name: str) -> None:
    plan = recipe(us.puzzle("tiles-3x3"), name)
    discounted = name in ("paper", "operator")
    assert (plan.target_discount > 0, plan.floor_by_base) == (discounted, discounted)
    assert (plan.loss is Loss.ASYMMETRIC) == (name in ("paper", "loss"))
    assert (plan.hidden, plan.batch, plan.steps, plan.learning_rate) == ((256, 256, 128), 128, 20_000, 1e-3)


@NEEDS_CUDA
@pytest.mark.parametrize("name", PAPER)
def test_the_heuristic_on_cuda_is_that_of_the_cpu_and_does_not_depend_on_batches_or_threads(name: str) -> None:
    puzzle = us.puzzle(name)
    parameters = Parameters((puzzle.encoding.width, 256, 256, 128, 1), "cuda")
    parameters.initialise(1)
    heuristic = CudaHeuristic(puzzle, parameters.parts)
    states = np.concatenate([mixed_states(puzzle)] * 40)
    values = heuristic(states)
    np.testing.assert_allclose(values, NeuralHeuristic(puzzle, parameters.network())(states), atol=2e-5)
    for size in (1, 7, 1000):
        rows = slice(30, 30 + size)
        assert heuristic(states[rows]).tobytes() == values[rows].tobytes()
    with ThreadPoolExecutor(4) as pool:
        for again in pool.map(heuristic, [states] * 8):
            assert again.tobytes() == values.tobytes()
