"""One contract for all puzzles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import undershoot as us
from reference import naive
from subjects import ALL, NAMED
from undershoot.arrays import AnyArray, States
from undershoot.errors import MalformedState
from undershoot.kernels.encodings import dense as encoded
from undershoot.puzzles.pairs import classify_pairs

SEEDS = st.integers(0, 2**32 - 1)


def some_states(name: str, count: int, seed: int) -> States:
    puzzle = us.puzzle(name)
    depths = np.random.default_rng(seed).integers(0, 40, size=count)
    walked = us.scramble(puzzle.table, depths, seed, us.ScrambleRule.PLAIN).states
    return np.concatenate([puzzle.sample(count, seed), walked, puzzle.table.goals])


@pytest.mark.parametrize("name", NAMED)
@given(seed=SEEDS)
def test_both_kernels_and_the_plain_rules_agree(name: str, seed: int) -> None:
    import torch

    from undershoot.kernels.tensors import TensorMoves

    puzzle = us.puzzle(name)
    states = some_states(name, 2, seed)
    children, legal = us.successors(puzzle.table, states)
    on_tensors, legal_on_tensors = TensorMoves(puzzle.table).successors(torch.from_numpy(states))
    assert (legal_on_tensors.numpy() == legal).all()
    assert (on_tensors.numpy()[legal] == children[legal]).all()
    for b, state in enumerate(states):
        expected = naive.successors(name, tuple(state.tolist()))
        effects = set()
        for a, action in enumerate(puzzle.table.action_names):
            if legal[b, a]:
                assert tuple(children[b, a].tolist()) == expected[action]
                effects.add(expected[action])
        assert effects == set(expected.values())


@pytest.mark.parametrize("name", ALL)
@given(seed=SEEDS)
def test_every_legal_move_can_be_undone(name: str, seed: int) -> None:
    table = us.puzzle(name).table
    assert table.is_reversible
    states = some_states(name, 3, seed)
    for a in range(table.actions):
        context = np.argmax(states == table.cursor, axis=1) if table.cursor is not None else np.zeros(len(states), dtype=int)
        able = table.legal[context, a]
        moved = us.apply(table, states[able], np.full(able.sum(), a))
        undone = us.apply(table, moved, table.inverse[context[able], a])
        assert (undone == states[able]).all()
        assert table.cost[table.inverse[context[able], a]].tolist() == [table.cost[a]] * int(able.sum())


@pytest.mark.parametrize("name", ALL)
@given(seed=SEEDS)
def test_parse_reads_what_format_writes(name: str, seed: int) -> None:
    puzzle = us.puzzle(name)
    for state in some_states(name, 2, seed):
        assert (puzzle.parse(puzzle.format(state[None])) == state).all()


@pytest.mark.parametrize("name", NAMED)
def test_walks_stay_among_solvable_states(name: str) -> None:
    assert us.puzzle(name).is_solvable(some_states(name, 300, 1)).all()


@pytest.mark.parametrize("name", ALL)
def test_symmetries_commute_with_moves(name: str) -> None:
    table = us.puzzle(name).table
    states = some_states(name, 20, 2)
    children, legal = us.successors(table, states)
    for symmetry in table.symmetries:
        images, image_legal = us.successors(table, symmetry.image(states))
        for a in np.flatnonzero(legal.any(axis=0)):
            b = table.alike[symmetry.actions[a]]
            assert (legal[:, a] == image_legal[:, b]).all()
            assert (symmetry.image(children[:, a])[legal[:, a]] == images[:, b][legal[:, a]]).all()


WITH_PARITY = [name for name in ALL if us.puzzle(name).has_cost_parity]


def test_the_puzzles_with_a_parity_are_those_that_should_have_one() -> None:
    kinds = ("lights-out", "tiles", "cube-2x2-qtm", "cube-3x3-qtm", "topspin-9-3", "pancake-2")
    assert [name for name in ALL if name.startswith(kinds) and name != "pancake-20"] == WITH_PARITY


@pytest.mark.parametrize("name", WITH_PARITY)
def test_parity_changes_by_the_cost_along_every_edge(name: str) -> None:
    puzzle = us.puzzle(name)
    states = some_states(name, 500, 3)
    children, legal = us.successors(puzzle.table, states)
    parity = puzzle.cost_parity(states)
    for a in range(puzzle.table.actions):
        changed = puzzle.cost_parity(children[:, a]) ^ parity
        assert (changed[legal[:, a]] == puzzle.table.cost[a] % 2).all()
    assert (puzzle.cost_parity(puzzle.table.goals) == 0).all()


@pytest.mark.parametrize("name", ALL)
def test_base_heuristic_is_consistent_and_zero_at_the_goal(name: str) -> None:
    puzzle = us.puzzle(name)
    assert (puzzle.base_heuristic(puzzle.table.goals) == 0).all()
    states = some_states(name, 500, 4)
    here = puzzle.base_heuristic(states)
    assert here.dtype == np.float32
    children, legal = us.successors(puzzle.table, states)
    for a in range(puzzle.table.actions):
        assert (here <= puzzle.table.cost[a] + puzzle.base_heuristic(children[:, a]))[legal[:, a]].all()


@pytest.mark.parametrize("name", ALL)
def test_dense_inputs_are_the_features_switched_on(name: str) -> None:
    puzzle = us.puzzle(name)
    states = some_states(name, 5, 5)
    dense = encoded(puzzle.encoding, states)
    for state, row in zip(states, dense, strict=True):
        active = {int(f) for i, v in enumerate(state) for f in puzzle.encoding.features[i, v] if f >= 0}
        assert set(np.flatnonzero(row).tolist()) == active
    assert set(np.unique(dense)) <= {0.0, 1.0}
    assert len(np.unique(dense, axis=0)) == len(np.unique(states, axis=0))


@pytest.mark.parametrize("name", ALL)
def test_pictures_show_every_value_where_it_is(name: str) -> None:
    puzzle = us.puzzle(name)
    state = some_states(name, 1, 6)[0]
    lines = puzzle.draw(state[None]).plain.split("\n")
    width = len(puzzle.picture.labels[0])
    for cell, (row, column) in enumerate(puzzle.picture.places):
        start = column * (width + puzzle.picture.gap)
        assert lines[row][start : start + width] == puzzle.picture.labels[state[cell]]


@pytest.mark.parametrize("name", ALL)
def test_states_of_another_shape_or_with_impossible_values_are_refused(name: str) -> None:
    puzzle = us.puzzle(name)
    wrong: tuple[AnyArray, ...] = (
        puzzle.table.goals[0],
        puzzle.table.goals.astype(np.int64),
        puzzle.table.goals[:, :-1],
        np.full_like(puzzle.table.goals, 255),
    )
    for bad in wrong:
        with pytest.raises(MalformedState):
            us.successors(puzzle.table, bad)
        with pytest.raises(MalformedState):
            puzzle.is_solvable(bad)


@pytest.mark.parametrize("name", [name for name in ALL if not us.puzzle(name).table.shift.any()])
def test_states_that_hold_the_wrong_values_are_not_solvable(name: str) -> None:
    puzzle = us.puzzle(name)
    state = puzzle.table.goals.copy()
    moving = np.flatnonzero((puzzle.table.source != np.arange(puzzle.table.cells)).any(axis=(0, 1)))
    values = [v for v in state[0, moving] if v != puzzle.table.cursor]
    cell = next(i for i in moving if state[0, i] not in (values[0], puzzle.table.cursor))
    state[0, cell] = values[0]
    if puzzle.space.defects is not None:
        assert not puzzle.is_solvable(state).any()
    with pytest.raises(MalformedState, match="does not hold the values"):
        puzzle.check_solvable(state)


def test_known_counts_and_symmetries() -> None:
    sizes = {
        name: us.puzzle(name).space.size for name in ("lights-out-3x3", "lights-out-5x5", "tiles-3x3", "cube-2x2", "cube-3x3")
    }
    assert list(sizes.values()) == [512, 8_388_608, 181_440, 3_674_160, 43_252_003_274_489_856_000]
    symmetries = {"cube-2x2": 6, "cube-3x3": 48, "lights-out-3x3": 8, "lights-out-2x4": 4, "tiles-3x3": 2, "topspin-8-4": 16}
    assert {name: len(us.puzzle(name).table.symmetries) for name in symmetries} == symmetries
    widths = {"lights-out-3x3": 45, "lights-out-5x5": 125, "tiles-3x3": 72, "cube-2x2": 144}
    assert {name: us.puzzle(name).encoding.width for name in widths} == widths


def test_fingerprints_tell_puzzles_apart() -> None:
    assert len({us.puzzle(name).table.fingerprint for name in ALL}) == len(ALL)
    assert us.puzzle("8-puzzle").table.fingerprint == us.puzzle("tiles-3x3").table.fingerprint


def test_pairs_of_steps_are_classified_as_people_would() -> None:
    def kind(name: str, first: str, second: str, context: int = 0) -> str:
        table = us.puzzle(name).table
        names = table.action_names
        code = classify_pairs(table, table.forward)[context, names.index(first), names.index(second)]
        return ("new", "undone", "one step", "exchanged")[code]

    assert kind("cube-3x3", "U", "U'") == "undone"
    assert kind("cube-3x3", "U", "U2") == "one step"
    assert kind("cube-3x3", "U", "R") == "new"
    assert (kind("cube-3x3", "U", "D"), kind("cube-3x3", "D", "U")) == ("new", "exchanged")
    assert (kind("lights-out-3x3", "A1", "C3"), kind("lights-out-3x3", "C3", "A1")) == ("new", "exchanged")
    assert kind("lights-out-3x3", "B2", "B2") == "undone"
    assert (kind("tiles-3x3", "L", "R", 3), kind("tiles-3x3", "L", "L", 3)) == ("undone", "new")
