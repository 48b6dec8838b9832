from itertools import product

import numpy as np
import pytest

import undershoot as us
from reference import cube_in_space as space
from undershoot.errors import MalformedState, UnsolvableState
from undershoot.puzzles.cube_geometry import CubeGeometry
from undershoot.puzzles.groups import PermutationGroup

TURNS = [face + amount for face in "URFDLB" for amount in ("", "2", "'")]
SOLVED_2 = "UUUURRRRFFFFDDDDLLLLBBBB"
SOLVED_3 = "".join(face * 9 for face in "URFDLB")


def test_group_orders_are_those_of_the_cubes() -> None:
    from sympy.combinatorics import Permutation
    from sympy.combinatorics import PermutationGroup as SympyGroup

    for side, order in ((2, 88_179_840), (3, 43_252_003_274_489_856_000)):
        turns = np.array([CubeGeometry(side).turn(face, 1) for face in "URFDLB"])
        assert SympyGroup([Permutation(turn.tolist()) for turn in turns]).order() == order
        assert PermutationGroup(turns).order == order


@pytest.mark.parametrize("first", TURNS)
def test_two_turn_scrambles_of_the_2x2_match_rotations_in_space(first: str) -> None:
    cube = us.puzzle("cube-2x2")
    for second in TURNS:
        expected = space.facelets(space.held_by_corner(space.play(space.solved(2), f"{first} {second}", 2)), 2)
        assert cube.format(cube.parse(f"{first} {second}")) == expected


def test_long_scrambles_of_the_3x3_match_rotations_in_space() -> None:
    cube, random = us.puzzle("cube-3x3"), np.random.default_rng(7)
    for _ in range(10):
        moves = " ".join(random.choice(TURNS, size=20))
        assert cube.format(cube.parse(moves)) == space.facelets(space.play(space.solved(3), moves, 3), 3)


@pytest.mark.parametrize(("name", "side"), [("cube-2x2", 2), ("cube-3x3", 3)])
def test_all_24_ways_to_hold_a_cube_parse_to_the_same_state(name: str, side: int) -> None:
    cube = us.puzzle(name)
    mixed = space.play(space.solved(side), "R U2 F' L D B2 R' U", side)
    strings = {space.facelets(hold, side) for hold in space.all_holds(mixed, side)}
    assert len(strings) == 24
    assert len({cube.parse(string).tobytes() for string in strings}) == 1


def test_a_d_turn_is_a_u_turn_held_differently_but_moves_the_frame() -> None:
    cube = us.puzzle("cube-2x2")
    assert (cube.parse("D") == cube.parse("U")).all()
    assert (cube.parse("D R") != cube.parse("U R")).any()


def test_a_published_facelet_string_is_solved_by_its_published_solution() -> None:
    # The example that two-phase solvers print: it fails with any other order of facelets or direction of turns.
    cube = us.puzzle("cube-3x3")
    state = cube.parse("DRLUUBFBRBLURRLRUBLRDDFDLFUFUFFDBRDUBRUFLLFDDBFLUBLRBD")
    for move in ["D2", "R'", "D'", "F2", "B", "D", "R2", "D2", "R'", "F2", "D'", "F2", "U'", "B2", "L2", "U2", "D", "R2", "U"]:
        state = us.apply(cube.table, state, np.array([cube.table.action_names.index(move)]))
    assert us.is_goal(cube.table, state).all()


def test_facelets_may_be_written_with_spaces() -> None:
    for name in ("cube-2x2", "cube-3x3"):
        cube = us.puzzle(name)
        state = cube.parse("R U2 F' L D")
        assert (cube.parse(" ".join(cube.format(state))) == state).all()


def test_scrambles_may_be_written_in_the_usual_ways() -> None:
    cube = us.puzzle("cube-3x3")
    plain = cube.parse("R U2 F' L2 B3")
    for text in ("RU2F'L2B'", "R U2' F’ L2 B'", "(R U2) (F' L2) B'", "x x' R U2 F' L2 B'"):
        assert (cube.parse(text) == plain).all()
    assert (cube.parse("x R") != cube.parse("R x")).any() or (cube.parse("x U") != cube.parse("U x")).any()


@pytest.mark.parametrize(
    ("name", "text", "error", "part"),
    [
        ("cube-2x2", SOLVED_2.replace("D", "R", 1), MalformedState, '"R" occurs 5 times'),
        ("cube-2x2", SOLVED_2[:-1], MalformedState, "23 facelets came"),
        ("cube-2x2", "R Q", MalformedState, '"Q" is not a move'),
        ("cube-2x2", "", MalformedState, "empty"),
        ("cube-3x3", "R U4", MalformedState, '"U4" is not a move'),
        ("cube-3x3", SOLVED_3[:-9] + "D" * 9, MalformedState, '"D" occurs 18 times'),
    ],
)
def test_malformed_cubes_are_refused_with_the_reason(name: str, text: str, error: type[Exception], part: str) -> None:
    with pytest.raises(error, match=part):
        us.puzzle(name).parse(text)


def swapped(text: str, *exchanges: tuple[int, int]) -> str:
    letters = list(text)
    for i, j in exchanges:
        letters[i], letters[j] = letters[j], letters[i]
    return "".join(letters)


def test_impossible_cubes_are_refused_with_the_reason() -> None:
    small, large = CubeGeometry(2), CubeGeometry(3)
    a, b, c = small.corners[0].tolist()
    with pytest.raises(UnsolvableState, match="a corner is twisted"):
        us.puzzle("cube-2x2").parse(swapped(SOLVED_2, (a, b), (b, c)))
    with pytest.raises(UnsolvableState, match="its corner URF has colours that no corner"):
        us.puzzle("cube-2x2").parse(swapped(SOLVED_2, (a, b)))
    a, b, c = large.corners[0].tolist()
    with pytest.raises(UnsolvableState, match="a corner is twisted"):
        us.puzzle("cube-3x3").parse(swapped(SOLVED_3, (a, b), (b, c)))
    a, b = large.edges[0].tolist()
    with pytest.raises(UnsolvableState, match="an edge is flipped"):
        us.puzzle("cube-3x3").parse(swapped(SOLVED_3, (a, b)))
    with pytest.raises(UnsolvableState, match="odd parity"):
        us.puzzle("cube-3x3").parse(swapped(SOLVED_3, *zip(large.edges[0].tolist(), large.edges[1].tolist(), strict=True)))
    with pytest.raises(UnsolvableState, match="no way to hold a cube"):
        us.puzzle("cube-3x3").parse(swapped(SOLVED_3, (4, 13)))
    # The 2x2 has no parity to break: any two corners may be exchanged.
    exchanged = swapped(SOLVED_2, *zip(small.corners[0].tolist(), small.corners[3].tolist(), strict=True))
    assert us.puzzle("cube-2x2").is_solvable(us.puzzle("cube-2x2").parse(exchanged)).all()


def test_uniform_2x2_states_have_the_distances_of_the_whole_space() -> None:
    cube = us.puzzle("cube-2x2")
    table = us.oracle(cube)
    seen = np.bincount(table.distance(cube.sample(20_000, 11)), minlength=12)
    expected = 20_000 * table.histogram / table.states
    bins = expected > 5
    statistic = ((seen - expected) ** 2 / expected)[bins].sum()
    assert statistic < 30, "chi-square with about 6 degrees of freedom"


def test_uniform_3x3_states_spread_over_all_pieces_and_places() -> None:
    cube = us.puzzle("cube-3x3")
    states = cube.sample(6000, 12)
    assert cube.is_solvable(states).all()
    # Each sticker of a corner or edge is a U sticker one time in six.
    moving = [i for i in range(54) if i % 9 != 4]
    share = (states[:, moving] == 0).mean(axis=0)
    assert (abs(share - 1 / 6) < 5 * np.sqrt(1 / 6 * 5 / 6 / 6000)).all()


def test_the_six_faces_turn_clockwise_seen_from_outside() -> None:
    cube = us.puzzle("cube-3x3")
    after = {face: cube.format(cube.parse(face)) for face in "URFDLB"}
    # R carries the front to the top, U the right to the front, F the top to the right.
    assert after["R"][8] == "F"
    assert after["U"][18] == "R"
    assert after["F"][9] == "U"
    assert all(len({*text[9 * i : 9 * i + 9]}) == 1 for face, text in after.items() for i in ("URFDLB".index(face),))


def test_names_of_moves_are_singmasters() -> None:
    assert us.puzzle("cube-3x3").table.action_names == tuple(TURNS)
    assert us.puzzle("cube-2x2").table.action_names == tuple(TURNS[:9])
    costs = dict(zip(TURNS, us.puzzle("cube-3x3-qtm").table.cost.tolist(), strict=True))
    assert all(cost == (2 if "2" in name else 1) for name, cost in costs.items())


def test_moves_of_one_face_compose() -> None:
    cube = us.puzzle("cube-3x3")
    for face, power in product("URFDLB", (2, 3)):
        assert (cube.parse(" ".join([face] * power)) == cube.parse(face + ("2", "'")[power - 2])).all()
