"""Packing, applying and scrambling."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import undershoot as us
from subjects import ALL
from undershoot.arrays import States
from undershoot.errors import IllegalMove
from undershoot.kernels.cpu import pack, unpack
from undershoot.kernels.encodings import dense as encoded
from undershoot.kernels.plan import packing_of
from undershoot.kernels.tensors import TensorMoves

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def mixed_states(puzzle: us.Puzzle, count: int, seed: int) -> States:
    return us.scramble(puzzle.table, np.arange(count) % 30, seed, us.ScrambleRule.PLAIN).states


@pytest.mark.parametrize("name", ALL)
def test_keys_are_exact_and_the_same_on_tensors(name: str) -> None:
    puzzle = us.puzzle(name)
    states = np.concatenate([mixed_states(puzzle, 200, 1), puzzle.sample(200, 1)])
    keys = pack(puzzle.table, states)
    assert (unpack(puzzle.table, keys) == states).all()
    assert len(np.unique(keys, axis=0)) == len(np.unique(states, axis=0))
    for device in DEVICES:
        packed = TensorMoves(puzzle.table, device).pack(torch.from_numpy(states).to(device))
        assert (packed.cpu().numpy().view(np.uint64) == keys).all()
    # Against whole numbers of any size.
    packing = packing_of(puzzle.table)
    for state, key in zip(states[:20], keys[:20], strict=True):
        for word in range(keys.shape[1]):
            digits = [int(v) * int(w) for v, w, k in zip(state, packing.weight, packing.word, strict=True) if k == word]
            assert sum(digits) == int(key[word]) < 2**64


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ALL)
def test_successors_apply_and_is_goal_agree_between_kernels(name: str, device: str) -> None:
    puzzle = us.puzzle(name)
    moves = TensorMoves(puzzle.table, device)
    states = np.concatenate([mixed_states(puzzle, 100, 2), puzzle.table.goals])
    tensors = torch.from_numpy(states).to(device)
    children, legal = us.successors(puzzle.table, states)
    children_there, legal_there = moves.successors(tensors)
    assert (legal_there.cpu().numpy() == legal).all()
    assert (children_there.cpu().numpy()[legal] == children[legal]).all()
    for a in np.flatnonzero(legal.any(axis=0)):
        able = states[legal[:, a]]
        actions = np.full(len(able), a)
        moved = us.apply(puzzle.table, able, actions)
        assert (moved == children[legal[:, a], a]).all()
        there = moves.apply(torch.from_numpy(able).to(device), torch.from_numpy(actions).to(device))
        assert (there.cpu().numpy() == moved).all()
    goals = us.is_goal(puzzle.table, states)
    assert (goals == [any((state == goal).all() for goal in puzzle.table.goals) for state in states]).all()
    assert (moves.is_goal(tensors).cpu().numpy() == goals).all()
    assert goals.any()


def test_illegal_actions_are_named() -> None:
    table = us.puzzle("tiles-3x3").table
    with pytest.raises(IllegalMove, match="action U is not legal in state 1"):
        us.apply(table, np.repeat(table.goals, 2, axis=0), np.array([1, 0]))
    with pytest.raises(IllegalMove, match="action U is not legal in state 0"):
        TensorMoves(table).apply(torch.from_numpy(table.goals), torch.tensor([0]))
    with pytest.raises(IllegalMove, match="from 0 to 3"):
        us.apply(table, table.goals, np.array([4]))
    with pytest.raises(IllegalMove, match="from 0 to 3"):
        us.apply(table, table.goals, np.array([1.9]))


def test_pack_refuses_states_that_would_share_a_key() -> None:
    table = us.puzzle("lights-out-3x3").table
    with pytest.raises(us.UndershootError, match="state 0 is none of this puzzle"):
        pack(table, np.array([[2, 0, 0, 0, 0, 0, 0, 0, 0]], dtype=np.uint8))
    blanks = us.puzzle("tiles-3x3").table
    with pytest.raises(us.UndershootError, match="state 0 is none of this puzzle"):
        pack(blanks, np.zeros((1, 9), dtype=np.uint8))


def test_scrambles_are_seeded_and_each_row_stands_for_itself() -> None:
    table = us.puzzle("cube-3x3").table
    depths = np.arange(200) % 25
    one = us.scramble(table, depths, 5)
    assert (one.states == us.scramble(table, depths, 5).states).all()
    assert (one.states[:50] == us.scramble(table, depths[:50], 5).states).all()
    assert (one.states != us.scramble(table, depths, 6).states).any(axis=1).sum() > 150
    assert (one.depth_walked == depths).all()


@pytest.mark.parametrize("name", ["tiles-3x3", "cube-2x2", "cube-2x2-qtm", "lights-out-5x5", "pancake-8"])
def test_the_cost_walked_is_an_upper_bound_of_the_right_parity(name: str) -> None:
    puzzle = us.puzzle(name)
    table = us.oracle(puzzle)
    walked = us.scramble(puzzle.table, np.arange(2000) % 16, 7)
    true_cost = table.distance(walked.states)
    assert (true_cost >= 0).all()
    assert (true_cost <= walked.cost_walked).all()
    if puzzle.has_cost_parity:
        assert (true_cost % 2 == walked.cost_walked % 2).all()
        assert (puzzle.cost_parity(walked.states) == true_cost % 2).all()


def test_the_cost_walked_bounds_the_cost_however_long_and_dear_the_walk(tmp_path: Path) -> None:
    (tmp_path / "dear.toml").write_text(
        'name = "dear"\ngoal = "a b c d"\n[moves]\nm = { cycles = "(1 2 3 4)", cost = 65535 }\n'
        'n = { cycles = "(1 2)", cost = 60000 }\n'
    )
    depths = np.array([1, 30_000, 40_001, 65_539, 131_073])
    walked = us.scramble(us.puzzle(tmp_path / "dear.toml").table, depths, 1)
    assert (walked.cost_walked >= 60_000 * depths).all()
    assert (walked.cost_walked <= 65_535 * depths).all()
    assert walked.cost_walked.max() > 2**32


def test_two_proper_steps_never_come_back_nor_to_one_step() -> None:
    for name in ("tiles-3x3", "cube-2x2", "cube-3x3", "pancake-8", "lights-out-5x5"):
        puzzle = us.puzzle(name)
        within = us.oracle(puzzle, radius=2)
        proper = us.scramble(puzzle.table, np.full(3000, 2), 3)
        assert set(within.distance(proper.states).tolist()) == {2}, name
    plain = us.scramble(puzzle.table, np.full(3000, 2), 3, us.ScrambleRule.PLAIN)
    assert 0 in within.distance(plain.states)


def test_lights_out_scrambles_press_distinct_cells() -> None:
    puzzle = us.puzzle("lights-out-3x3")
    walked = us.scramble(puzzle.table, np.full(500, 9), 1)
    assert len(np.unique(walked.states, axis=0)) == 1, "all nine cells pressed in some order"
    with pytest.raises(us.UndershootError, match="10 distinct presses is impossible; this puzzle has 9"):
        us.scramble(puzzle.table, np.array([10]), 1)
    assert len(us.scramble(puzzle.table, np.array([10]), 1, us.ScrambleRule.PLAIN).states) == 1


def test_first_steps_are_equally_likely() -> None:
    for name in ("cube-2x2", "lights-out-5x5", "tiles-4x4"):
        table = us.puzzle(name).table
        _, counts = np.unique(us.scramble(table, np.ones(90_000, dtype=int), 2).states, axis=0, return_counts=True)
        expected = 90_000 / len(counts)
        assert (abs(counts - expected) < 5 * np.sqrt(expected)).all(), name
    # All ordered pairs of presses of different cells are equally likely too: 36 states on the 3x3.
    _, counts = np.unique(
        us.scramble(us.puzzle("lights-out-3x3").table, np.full(36_000, 2), 2).states, axis=0, return_counts=True
    )
    assert len(counts) == 36
    assert (abs(counts - 1000) < 5 * np.sqrt(1000)).all()


@given(depth=st.integers(-5, -1))
def test_negative_depths_are_refused(depth: int) -> None:
    with pytest.raises(us.UndershootError, match=r"depths must lie in 0\.\."):
        us.scramble(us.puzzle("tiles-3x3").table, np.array([depth]), 0)


@pytest.mark.parametrize("depths", [[1.7], ["3"], None, [[1]], 5, [2**40]])
def test_depths_that_are_not_whole_numbers_are_refused(depths: object) -> None:
    with pytest.raises(us.UndershootError, match="scramble depths must"):
        us.scramble(us.puzzle("tiles-3x3").table, depths, 0)  # type: ignore[arg-type]


def test_the_rule_may_be_given_by_name_and_unknown_ones_are_refused() -> None:
    table = us.puzzle("tiles-2x4").table
    by_name = us.scramble(table, np.full(500, 2), 0, "proper")  # type: ignore[arg-type]
    assert (by_name.states == us.scramble(table, np.full(500, 2), 0).states).all()
    assert not us.is_goal(table, by_name.states).any()
    with pytest.raises(us.UndershootError, match='the scramble rule is "foo"; allowed are proper and plain'):
        us.scramble(table, np.full(500, 2), 0, "foo")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ALL)
def test_empty_batches_are_answered_with_empty_arrays(name: str) -> None:
    puzzle = us.puzzle(name)
    none = puzzle.table.goals[:0]
    assert us.successors(puzzle.table, none)[0].shape == (0, puzzle.table.actions, puzzle.table.cells)
    assert us.is_goal(puzzle.table, none).shape == (0,)
    assert puzzle.base_heuristic(none).shape == (0,)
    assert encoded(puzzle.encoding, none).shape == (0, puzzle.encoding.width)
    assert us.scramble(puzzle.table, np.zeros(0, dtype=int), 0).states.shape == (0, puzzle.table.cells)
    if puzzle.space.defects is not None:
        assert puzzle.is_solvable(none).shape == (0,)
