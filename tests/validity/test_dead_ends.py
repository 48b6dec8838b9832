"""Statements about solutions on puzzles where a move may lead to where no goal is reached any more."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import undershoot as us
from undershoot.arrays import AnyArray
from undershoot.calibration.evidence import Evidence
from undershoot.calibration.trajectory import path_scores, trajectory
from undershoot.guarantees import LabelKind
from undershoot.oracles.breadth_first import explore
from undershoot.oracles.distance_table import UNKNOWN, DistanceTable
from undershoot.puzzles.puzzle import Puzzle

RESAMPLES = 500


def puzzle_with_dead_ends(folder: Path, seed: int) -> Puzzle:
    """Four cells, a cursor, and moves that go where they like and cost what they like."""
    random = np.random.default_rng(seed)
    lines = [f'name = "maze-{seed}"', 'goal = "1 2 3 _"', 'cursor = "_"', "", "[moves]"]
    for move in range(int(random.integers(2, 5))):
        swaps = [(int(cell), int(random.choice([c for c in (1, 2, 3, 4) if c != cell]))) for cell in (1, 2, 3, 4)]
        at = ", ".join(f'{cell} = "({cell} {other})"' for cell, other in swaps if random.random() < 0.6)
        if at:
            lines.append(f"M{move} = {{ cost = {int(random.integers(1, 5))}, at = {{ {at} }} }}")
    path = folder / f"maze-{seed}.toml"
    path.write_text("\n".join(lines) + "\n")
    return us.puzzle(path)


def mazes(folder: Path, count: int) -> Iterator[tuple[Puzzle, DistanceTable]]:
    """Those that have dead ends, and some states that have none."""
    found = 0
    for seed in range(2000):
        try:
            puzzle = puzzle_with_dead_ends(folder, seed)
        except us.UndershootError:
            continue
        distances = explore(puzzle)
        if distances.states < 4:
            continue
        children, legal = us.successors(puzzle.table, distances.states_of_rows(0, distances.states))
        if (distances.distance(children[legal]) == UNKNOWN).any():
            yield puzzle, distances
            found += 1
            if found == count:
                return
    raise AssertionError(f"only {found} mazes have dead ends")


def by_definition(puzzle: Puzzle, distances: DistanceTable, scores: AnyArray) -> list[float]:
    """The least over all optimal paths of the largest score along them, by walking them all."""
    table = puzzle.table

    @cache
    def best(row: int) -> float:
        state = distances.states_of_rows(row, row + 1)
        cost = int(distances.distance(state)[0])
        if cost == 0:
            return -np.inf
        children, legal = us.successors(table, state)
        onward = []
        for action in np.flatnonzero(legal[0]):
            landed, left = (int(found[0]) for found in distances.look_up(children[:, action]))
            if landed != UNKNOWN and left + int(table.cost[action]) == cost:
                onward.append(best(landed))
        return max(float(scores[row]), min(onward))

    return [best(row) for row in range(distances.states)]


def test_scores_of_paths_take_no_dead_end_for_a_way(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    misread = 0
    for puzzle, distances in mazes(tmp_path, 40):
        scores = random.normal(size=distances.states)
        assert path_scores(distances, scores).tolist() == by_definition(puzzle, distances, scores)
        children, legal = us.successors(puzzle.table, distances.states_of_rows(0, distances.states))
        reached = np.where(legal, distances.distance(children.reshape(-1, 4)).reshape(legal.shape), 0)
        looks_optimal = (reached == UNKNOWN) & (reached + puzzle.table.cost == distances.true_costs()[:, None])
        misread += int((legal & looks_optimal).sum())
    assert misread > 0  # there were dead ends that -1, read as a distance, makes look like a way


def test_trajectory_holds_its_rate_where_there_are_dead_ends(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    alpha, n = 0.1, 99
    for _, distances in mazes(tmp_path, 5):
        scores = random.normal(size=distances.states)
        best = path_scores(distances, scores)[len(distances.table.goals) :]
        rates = []
        for _ in range(RESAMPLES):
            rows = random.integers(len(best), size=n)
            evidence = Evidence("uniform states", best[rows], LabelKind.EXACT, np.zeros(n, dtype=np.int64))
            rates.append(float((best > trajectory(evidence, alpha, None)[0]).mean()))
        assert np.mean(rates) <= alpha + 4 * np.std(rates) / RESAMPLES**0.5


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_fit_and_test_sets_do_not_coincide(seed: int) -> None:
    from undershoot.calibration.populations import LabelSource, Population, draw
    from undershoot.kernels.streams import Purpose, stream

    puzzle = us.puzzle("tiles-3x3")
    drawn = {purpose: puzzle.sample(200, stream(seed, purpose)) for purpose in Purpose}
    drawn_with_the_seed_itself = puzzle.sample(200, seed)
    fitted = draw(puzzle, Population.UNIFORM, LabelSource.EXACT, 200, seed).states
    expanded = draw(puzzle, Population.EXPANDED, LabelSource.EXACT, 200, seed).states
    others = [drawn[purpose] for purpose in Purpose if purpose is not Purpose.FIT_UNIFORM]
    for other in (*others, drawn_with_the_seed_itself, expanded):
        shared = {state.tobytes() for state in fitted} & {state.tobytes() for state in other}
        assert len(shared) <= 3  # 200 times 200 pairs, and 181,440 states
    assert (
        fitted.tobytes() == drawn[Purpose.FIT_UNIFORM][(drawn[Purpose.FIT_UNIFORM] != puzzle.table.goals).any(axis=1)].tobytes()
    )
