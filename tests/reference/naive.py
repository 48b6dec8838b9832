"""Successors by the rules of each puzzle on plain tuples, and breadth-first search with a dictionary."""

import re
from collections import deque

from reference import cube_in_space

State = tuple[int, ...]
FACES = "URFDLB"


def lights_out(rows: int, columns: int, state: State) -> dict[str, State]:
    children = {}
    for r in range(rows):
        for c in range(columns):
            lights = list(state)
            for rr, cc in ((r, c), (r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)):
                if 0 <= rr < rows and 0 <= cc < columns:
                    lights[rr * columns + cc] = 1 - lights[rr * columns + cc]
            children["ABCDEFGH"[c] + str(r + 1)] = tuple(lights)
    return children


def tiles(rows: int, columns: int, state: State) -> dict[str, State]:
    blank = state.index(0)
    r, c = blank // columns, blank % columns
    children = {}
    for name, rr, cc in (("U", r + 1, c), ("D", r - 1, c), ("L", r, c + 1), ("R", r, c - 1)):
        if 0 <= rr < rows and 0 <= cc < columns:
            board = list(state)
            board[blank], board[rr * columns + cc] = board[rr * columns + cc], 0
            children[name] = tuple(board)
    return children


def pancake(state: State) -> dict[str, State]:
    return {f"F{k}": state[:k][::-1] + state[k:] for k in range(2, len(state) + 1)}


def topspin(k: int, state: State) -> dict[str, State]:
    children = {}
    for i in range(len(state)):
        rolled = state[i:] + state[:i]
        rolled = rolled[:k][::-1] + rolled[k:]
        children[f"T{i + 1}"] = rolled[len(state) - i :] + rolled[: len(state) - i]
    return children


def cube(side: int, state: State) -> dict[str, State]:
    """By painting the stickers of a cube in space and reading them off again."""
    numbers = cube_in_space.solved(side)
    labels = dict(zip(_reading_order(side), state, strict=True))
    children = {}
    for face in FACES[:3] if side == 2 else FACES:
        for amount in ("", "2", "'"):
            moved = cube_in_space.play({spot: str(labels[spot]) for spot in numbers}, face + amount, side)
            children[face + amount] = tuple(int(moved[spot]) for spot in _reading_order(side))
    return children


def _reading_order(side: int) -> list[tuple[cube_in_space.Vector, cube_in_space.Vector]]:
    spots = list(cube_in_space.solved(side))
    named = {spot: chr(200 + k) for k, spot in enumerate(spots)}
    by_name = {name: spot for spot, name in named.items()}
    return [by_name[name] for name in cube_in_space.facelets(named, side)]


def successors(name: str, state: State) -> dict[str, State]:
    """The children of a state by action name, for a puzzle of the catalogue."""
    family = name.removesuffix("-qtm").removesuffix("-blank-first")
    sizes = [int(number) for number in re.findall(r"\d+", family)]
    if family.startswith("lights-out"):
        return lights_out(sizes[0], sizes[1], state)
    if family.startswith("tiles"):
        return tiles(sizes[0], sizes[1], state)
    if family.startswith("pancake"):
        return pancake(state)
    if family.startswith("topspin"):
        return topspin(sizes[1], state)
    return cube(sizes[0], state)


def distances(name: str, goal: State) -> dict[State, int]:
    """Of all states that the goal reaches; these puzzles can be walked both ways at equal cost."""
    known = {goal: 0}
    waiting = deque([goal])
    while waiting:
        state = waiting.popleft()
        for child in successors(name, state).values():
            if child not in known:
                known[child] = known[state] + 1
                waiting.append(child)
    return known
