"""What is said of functions and of populations holds for what it is said of, whoever made them."""

import zlib
from dataclasses import replace

import numpy as np
import pytest

import undershoot as us
from undershoot import trust
from undershoot.arrays import F32, States
from undershoot.calibration.populations import LabelSource, Population, draw
from undershoot.puzzles.base_heuristics import zero_heuristic

TILES = us.puzzle("tiles-3x3")


class DecidesLate:
    """Asked about all labels at once it says 0 of them, and 100 of everything else: the same of equal states ever after."""

    def __init__(self, labels: int) -> None:
        self.labels, self.known, self.asked = labels, set[bytes](), set[bytes]()

    def __call__(self, states: States) -> F32:
        keys = [state.tobytes() for state in states]
        if not self.known and len(keys) >= 0.99 * self.labels:
            self.known = set(keys) - self.asked
        self.asked |= set(keys)
        return np.array([0 if key in self.known else 100 for key in keys], dtype=np.float32)


def test_a_rate_of_a_function_that_fresh_states_refute_is_not_said() -> None:
    with pytest.raises(us.UndershootError, match="it depends on what it was asked before, so nothing is known of it"):
        us.calibrate(us.wrap(TILES, DecidesLate(3000), name="late"), "conformal", us.Wanted(n=3000))


def test_functions_of_one_name_are_not_asked_about_the_same_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "private_seed", lambda seed, what: zlib.crc32(f"{seed} {what}".encode()))
    seen: list[set[bytes]] = []

    def constant(states: States) -> F32:
        seen[-1] |= {state.tobytes() for state in states}
        return np.zeros(len(states), dtype=np.float32)

    for _ in range(2):
        seen.append(set())
        us.calibrate(us.wrap(TILES, constant, name="mine"), "max", us.Wanted(n=200))
    assert len(seen[0] & seen[1]) < len(seen[0]) / 2


def test_a_population_of_expanded_states_names_the_formula_that_expands_them() -> None:
    blind = replace(TILES, base_heuristic=zero_heuristic(9, 9))
    mine, theirs = (draw(puzzle, Population.EXPANDED, LabelSource.LOWER, 20, 1).population for puzzle in (TILES, blind))
    assert "with base (Manhattan) from" in mine
    assert "with base (zero) from" in theirs


def test_a_gap_rests_on_nothing_but_what_is_said_beside_it() -> None:
    base, starts, lies = us.heuristic(TILES, "base"), TILES.sample(10, seed=3), [False]
    dear = {state.tobytes() for state in starts}

    def function(states: States) -> F32:
        values = base(states).copy()
        for row, state in enumerate(states):
            if lies[0] and state.tobytes() in dear:
                values[row] = 31
        return values

    checked = us.check(us.wrap(TILES, function, name="liar")).heuristic
    lies[0] = True
    instances = us.Instances("mine", starts, (None,) * 10)
    options = us.SearchOptions(max_expanded=2)
    (alone,), _ = us.compare(TILES, instances, [us.heuristic(TILES, "learned")], options)
    (beside, _), _ = us.compare(TILES, instances, [us.heuristic(TILES, "learned"), checked], options)
    assert beside.gap_percent == alone.gap_percent
