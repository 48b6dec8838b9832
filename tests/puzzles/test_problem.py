"""Exploring, searching and learning without a notation and a picture."""

from dataclasses import replace

import numpy as np

import undershoot as us
from undershoot.heuristics.analytic import base
from undershoot.oracles.breadth_first import explore
from undershoot.puzzles.problem import bare_problem
from undershoot.search.solving import solve_many
from undershoot.training.loop import train


def test_a_table_of_moves_alone_is_explored_searched_and_learned() -> None:
    bare = bare_problem("bare", us.puzzle("tiles-2x3").table)
    distances = explore(bare)
    states = distances.states_of(np.arange(0, distances.states, 9))
    costs = distances.distance(states).tolist()
    assert [result.cost for result in solve_many(bare, states, base(bare))] == costs
    recipe = replace(us.recipe(us.puzzle("tiles-2x3"), "paper"), puzzle="bare", steps=20)
    assert train(bare, recipe).is_finished
    assert bare.format(states[:1]) == " ".join(map(str, states[0]))
