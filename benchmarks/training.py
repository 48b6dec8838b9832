"""Speed of training, and of search with the network, beside a plain loop timed in the same run.

    python benchmarks/training.py [--processes 2] [--json]     on the CPU
    python benchmarks/training.py --device cuda [--json]       the 2x2 cube on a GPU

Steps a second with the paper's batch of 128 and network, at the last depth of the curriculum, without evaluations, best of
six blocks of 50 steps. The plain loop makes every state and its children one at a time in Python and asks the target
network about the children of one state at a time. With --processes the same is run by so many processes at once, a thread
each, and their speeds are added.
"""

import argparse
import json
import multiprocessing
import random
import time
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch

import undershoot as us
from undershoot.arrays import States
from undershoot.heuristics.neural import NeuralHeuristic
from undershoot.search.astar import astar_batch
from undershoot.training.learner import block_steps, make_learner
from undershoot.training.loop import train
from undershoot.training.recipes import recipe

PUZZLES = ("lights-out-3x3", "lights-out-5x5", "tiles-3x3", "cube-2x2")
STEPS = 50


def steps_per_second(name: str, threads: int) -> float:
    """Of one process."""
    torch.set_num_threads(1)  # as `train` does
    puzzle = us.puzzle(name)
    plan = recipe(puzzle)
    learner = make_learner(puzzle, plan, threads)
    learner.parameters.initialise(0)
    learner.target.flat.data.copy_(learner.parameters.flat)
    learner.prepare()
    best = 0.0
    for block in range(6):
        began = time.perf_counter()
        learner.learn(block, plan.curriculum.max_depth, STEPS)
        best = max(best, STEPS / (time.perf_counter() - began))
    return best


def together(name: str, processes: int) -> float:
    """Of several processes with a thread each."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return sum(pool.starmap(steps_per_second, [(name, 1)] * processes, chunksize=1))


def plain_steps_per_second(name: str, steps: int = 2) -> float:
    """The reference: one state at a time."""
    puzzle = us.puzzle(name)
    table, plan = puzzle.table, recipe(puzzle)
    widths = [puzzle.encoding.width, *plan.hidden, 1]
    layers: list[torch.nn.Module] = []
    for a, b in pairwise(widths):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    network, target = torch.nn.Sequential(*layers[:-1]), torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.AdamW(network.parameters(), lr=plan.learning_rate, weight_decay=plan.weight_decay)
    goal, draw = table.goals[0].tolist(), random.Random(0)
    source, shift, modulus = table.source.tolist(), table.shift.tolist(), table.modulus.tolist()
    actions = [a for a in range(table.actions) if table.alike[a] == a]
    inputs = puzzle.encoding.features.tolist()

    def moved(state: list[int], c: int, a: int) -> list[int]:
        return [(state[source[c][a][i]] + shift[c][a][i]) % modulus[i] for i in range(len(state))]

    def children(state: list[int]) -> list[list[int]]:
        c = state.index(table.cursor) if table.cursor is not None else 0
        return [moved(state, c, a) for a in actions if table.legal[c, a]]

    def encoded(states: list[list[int]]) -> torch.Tensor:
        rows = torch.zeros(len(states), widths[0])
        for row, state in zip(rows, states, strict=True):
            for i, value in enumerate(state):
                for feature in inputs[i][value]:
                    if feature >= 0:
                        row[feature] = 1
        return rows

    began = time.perf_counter()
    for _ in range(steps):
        states, targets = [], []
        for _ in range(plan.batch):
            state = goal
            for _ in range(draw.randint(1, plan.curriculum.max_depth)):
                state = draw.choice(children(state))
            states.append(state)
            with torch.no_grad():
                values = target(encoded(children(state)))[:, 0].tolist()
            best = min(1 + (0 if child == goal else value) for child, value in zip(children(state), values, strict=True))
            base = float(puzzle.base_heuristic(_as_states(state))[0])
            targets.append(0.0 if state == goal else max(base, best - plan.target_discount))
        error = network(encoded(states))[:, 0] - torch.tensor(targets)
        loss = torch.where(error > 0, plan.overestimate_penalty * error**2, error**2).mean()
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    return steps / (time.perf_counter() - began)


def _as_states(state: list[int]) -> States:
    import numpy as np

    return np.array([state], dtype=np.uint8)


def search_speeds() -> dict[str, float]:
    """Expansions a second with a freshly trained network of the paper's size."""
    torch.set_num_threads(2)
    speeds = {}
    for name, budget in (("tiles-3x3", 1000), ("cube-2x2", 500)):
        puzzle = us.puzzle(name)
        trained = train(puzzle, replace(recipe(puzzle), steps=2000))
        heuristic = NeuralHeuristic(puzzle, trained.network)
        states, options = puzzle.sample(2000, seed=0), us.SearchOptions(max_expanded=budget)
        for label, count, at_once, threads in (("lock-step of 1000", 2000, 1000, 2), ("one at a time", 20, 1, 1)):
            best = 0.0
            for _ in range(3):
                batch = astar_batch(puzzle, states[:count], heuristic, options, at_once, threads)
                best = max(best, sum(result.expanded for result in batch.results) / batch.seconds)
            speeds[f"{name}, {label}"] = best
    return speeds


def on_cuda() -> dict[str, Any]:
    """The paper's recipe on the 2x2 cube, and a large batch."""
    puzzle = us.puzzle("cube-2x2")
    plan = replace(recipe(puzzle), device="cuda")
    trained = train(puzzle, plan)
    position = trained.position
    large = replace(plan, batch=16_384, steps=2_000)
    learner = make_learner(puzzle, large, 1)
    learner.parameters.initialise(0)
    learner.prepare()
    torch.cuda.synchronize()
    block, began = block_steps(puzzle, large), time.perf_counter()
    for number in range(large.steps // block):
        learner.learn(number, plan.curriculum.max_depth, block)
    torch.cuda.synchronize()
    return {
        "steps": position.step,
        "depth": position.depth,
        "training_seconds": position.seconds,
        "evaluation_seconds": position.evaluation_seconds,
        "states_per_second_at_batch_16384": large.batch * large.steps / (time.perf_counter() - began),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.device == "cuda":
        print(json.dumps(on_cuda(), indent=2))
        return
    results: dict[str, Any] = {}
    for name in PUZZLES:
        many = arguments.processes > 1
        speed = together(name, arguments.processes) if many else steps_per_second(name, 2)
        plain = plain_steps_per_second(name)
        results[name] = {"steps_per_second": speed, "plain": plain, "times": speed / plain}
    if arguments.processes == 1:
        results["expansions_per_second"] = search_speeds()
    if arguments.json:
        print(json.dumps(results, indent=2))
        return
    for name in PUZZLES:
        row = results[name]
        print(f"{name:16}{row['steps_per_second']:8.0f} steps/s  {row['times']:8.0f} times the plain loop ({row['plain']:.2f})")
    for name, speed in results.get("expansions_per_second", {}).items():
        print(f"{name:36}{speed:10,.0f} expansions/s with the network")


if __name__ == "__main__":
    main()
