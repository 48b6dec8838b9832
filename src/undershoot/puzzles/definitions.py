"""Puzzles for other processes: all that makes one, so that both mean the same one, whatever has become of its file."""

from dataclasses import dataclass

from undershoot.errors import UndershootError
from undershoot.puzzles import catalogue
from undershoot.puzzles.problem import Problem
from undershoot.puzzles.puzzle import Puzzle


@dataclass(frozen=True)
class Definition:
    """A puzzle, which another process makes anew."""

    name: str
    text: str
    """Of its file; empty for one of the catalogue."""
    fingerprint: str


def definition_of(puzzle: Problem) -> Definition:
    """What the puzzle can be made of."""
    if not isinstance(puzzle, Puzzle):
        raise UndershootError(
            f"{puzzle.name} is a problem of one's own and cannot be sent to other machines; leave --scheduler out"
        )
    return Definition(puzzle.name, puzzle.definition, puzzle.table.fingerprint)


def made_of(definition: Definition) -> Puzzle:
    """The same puzzle; refused if this installation makes another one of it."""
    name, text = definition.name, definition.text
    puzzle = catalogue.from_text(text, name) if text else catalogue.puzzle(name)
    if puzzle.table.fingerprint != definition.fingerprint:
        raise UndershootError(f"a worker knows another puzzle by the name {name}; install the same version everywhere")
    return puzzle
