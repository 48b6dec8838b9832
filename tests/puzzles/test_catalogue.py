import pytest

import undershoot as us
from undershoot.errors import UnknownPuzzle


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("tile-3x3", 'Did you mean "tiles-3x3"'),
        ("cube2x2", 'Did you mean "cube-2x2"'),
        ("16-puzzle", "15-puzzle"),
        ("nonsense", "`undershoot puzzles` lists them"),
        ("lights-out-9x9", "R and C from 1 to 8"),
        ("lights-out-0x3", "R and C from 1 to 8"),
        ("tiles-1x9", "R and C from 2 to 6"),
        ("tiles-999999999999x3", "R and C from 2 to 6"),
        ("cube-4x4", "N 2 or 3"),
        ("cube-2x3", "N 2 or 3"),
        ("cube-23x23", "N 2 or 3"),
        ("TILES-3x3", 'Did you mean "tiles-3x3"'),
        ("pancake-1", "N from 2 to 64"),
        ("topspin-8-8", "K from 2 to N - 1"),
        ("topspin-8-1", "K from 2 to N - 1"),
    ],
)
def test_unknown_names_and_sizes_are_refused_with_what_is_allowed(name: str, part: str) -> None:
    with pytest.raises(UnknownPuzzle, match=part):
        us.puzzle(name)


@pytest.mark.parametrize(("alias", "name"), [("8-puzzle", "tiles-3x3"), ("15-puzzle", "tiles-4x4"), ("24-puzzle", "tiles-5x5")])
def test_aliases_are_the_puzzles_people_know(alias: str, name: str) -> None:
    assert us.puzzle(alias).name == name
