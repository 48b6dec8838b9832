"""Puzzle files with what few puzzles have: other costs, several goals, one-way moves, dead ends, pieces of two kinds."""

from pathlib import Path

import undershoot as us
from undershoot.puzzles.puzzle import Puzzle


def slide(name: str, by: int, cells: list[int], cost: int) -> str:
    """A move of the blank on a board of nine cells."""
    listed = ", ".join(f'{cell} = "({cell} {cell + by})"' for cell in cells)
    return f"{name} = {{ at = {{ {listed} }}, cost = {cost} }}\n"


def slides(down: int = 1) -> str:
    """Sliding tiles; moves up and down may cost more."""
    return (
        slide("U", 3, [1, 2, 3, 4, 5, 6], down)
        + slide("D", -3, [4, 5, 6, 7, 8, 9], down)
        + slide("L", 1, [1, 2, 4, 5, 7, 8], 1)
        + slide("R", -1, [2, 3, 5, 6, 8, 9], 1)
    )


FILES = {
    "swaps": f'goal = "1 2 3 4 5 6 7 8 0"\ncursor = "0"\n[moves]\n{slides()}S = {{ at = {{ 9 = "(1 2)" }} }}\n'
    'T = { at = { 9 = "(2 3)" } }\n',
    "prices": f'goal = "1 2 3 4 5 6 7 8 0"\ncursor = "0"\n[moves]\n{slides(3)}',
    "goals": f'goals = ["1 2 3 4 5 6 7 8 0", "8 7 6 5 4 3 2 0 1"]\ncursor = "0"\n[moves]\n{slides()}',
    "costs": 'goals = ["a b c d e f", "b a d c e f"]\n[moves]\nx = { cycles = "(1 2 3 4)", cost = 7 }\n'
    'y = { cycles = "(5 6)", cost = 2 }\nz = { cycles = "(1 2 3)(5 6)", cost = 2 }\n',
    "unreachable": 'goal = "a b c d e f"\n[moves]\nx = { cycles = "(1 2 3)", cost = 2 }\n'
    'y = { cycles = "(4 5 6)(1 2 3)", cost = 2 }\n',
    "dead ends": 'goal = "a b c d e"\ncursor = "c"\n[moves]\n'
    'm0 = { at = { 1 = "(1 3 2)(4 5)", 2 = "(1 2)" }, cost = 7 }\n'
    'm1 = { at = { 2 = "(2 3)", 3 = "(4 5)", 1 = "(1 2)(4 5)" }, cost = 8 }\n',
    "two kinds": 'goal = "a b c d"\ncursor = "b"\n[moves]\nm2 = { at = { 1 = "(1 2)(3 4)", 2 = "(3 4)" }, cost = 9 }\n'
    'm3 = { at = { 2 = "(1 2)(3 4)", 1 = "(1 2)(3 4)" }, cost = 1 }\n',
    "dear": 'goal = "a b c d"\n[moves]\nM = { cycles = "(1 2 3 4)", cost = 200 }\nN = { cycles = "(1 2)", cost = 3 }\n',
    "far": 'goal = "a b c d e f g h i j"\n[moves]\nM = { cycles = "(1 2 3 4 5 6 7 8 9 10)", cost = 40 }\n',
}


def odd_puzzle(folder: Path, name: str) -> Puzzle:
    """One of `FILES`, written to a folder and read again."""
    path = folder / f"{name}.toml"
    path.write_text(f'name = "odd"\n{FILES[name]}')
    return us.puzzle(path)
