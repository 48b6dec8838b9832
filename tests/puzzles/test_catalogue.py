import json

import pytest

import undershoot as us
from undershoot.errors import PuzzleFileError, UnknownPuzzle
from undershoot.puzzles import catalogue


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


def cycles(source: list[int]) -> str:
    """A permutation as a puzzle file writes it; source: where each cell takes its content from."""
    to, seen, text = {j: i for i, j in enumerate(source)}, set[int](), ""
    for first in range(len(source)):
        cycle, cell = list[int](), first
        while cell not in seen and to[cell] != cell:
            seen.add(cell)
            cycle.append(cell + 1)
            cell = to[cell]
        text += f"({' '.join(map(str, cycle))})" if cycle else ""
    return text


@pytest.mark.parametrize("symbols", ["012345", "021345"])
def test_a_file_with_the_name_and_the_moves_of_a_known_puzzle_writes_states_as_that_one_does(symbols: str) -> None:
    table = us.puzzle("tiles-2x3").table
    lines = ['name = "tiles-2x3"', f'goal = "{" ".join(symbols[value] for value in table.goals[0])}"', 'cursor = "0"']
    lines += [f"symbols = {json.dumps(list(symbols))}", "[moves]"]
    for a, name in enumerate(table.action_names):
        steps = ", ".join(f'{c + 1} = "{cycles(table.source[c, a].tolist())}"' for c in range(6) if table.legal[c, a])
        lines.append(f"{name} = {{ at = {{ {steps} }} }}")
    text = "\n".join(lines)
    if symbols == "012345":
        assert catalogue.from_text(text, "mine").table.fingerprint == table.fingerprint
        return
    with pytest.raises(PuzzleFileError, match='its name is "tiles-2x3", which is another puzzle'):
        catalogue.from_text(text, "mine")
