"""What a browser needs to know to draw a puzzle: once for each puzzle, so that later only states are sent."""

import math
import re
from typing import Any

import numpy as np

from undershoot.puzzles.cube_geometry import AMOUNTS, FACES, NORMAL, CubeGeometry
from undershoot.puzzles.puzzle import Puzzle

CUBE_COLOURS = ("#f7f7f2", "#d8343f", "#1f9d57", "#ffd23f", "#f2812b", "#2a62d0")
"""In the order U R F D L B."""
ARROWS = {"U": "ArrowUp", "D": "ArrowDown", "L": "ArrowLeft", "R": "ArrowRight"}
WIDEST = 16
"""Cells in a line, where no picture says how they stand."""
MOST_KEYS = "1234567890abcdefghijklmnoqrstuvwxyz"
"""Letters and digits that moves without a natural key get, one after another; p plays."""


def specification(puzzle: Puzzle) -> dict[str, Any]:
    """`kind` says which drawing it is for; the rest is what that drawing reads."""
    family = "" if puzzle.definition else re.sub(r"-.*", "", puzzle.name)
    if puzzle.name.startswith("lights-out") and family:
        spec = _lights(puzzle)
    elif family == "tiles":
        spec = _tiles(puzzle)
    elif family == "cube":
        spec = _cube(puzzle)
    elif family == "pancake":
        spec = {"kind": "pancakes", "labels": _labels(puzzle), "actions": ["", *puzzle.table.action_names]}
    elif family == "topspin":
        window = int(puzzle.name.rsplit("-", 1)[1])
        spec = {"kind": "ring", "labels": _labels(puzzle), "actions": list(puzzle.table.action_names), "window": window}
    else:
        spec = _cells(puzzle)
    keys = _keys(spec["kind"], puzzle.table.action_names)
    costs = puzzle.table.cost.tolist()
    moves = [{"name": name, "key": keys.get(name, ""), "cost": costs[a]} for a, name in enumerate(puzzle.table.action_names)]
    return {**spec, "moves": [] if spec["kind"] == "lights" else moves}


def _labels(puzzle: Puzzle) -> list[str]:
    return [puzzle.symbol(value) for value in range(puzzle.table.values)]


def _wrapped(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """In lines, if they all stand in one that is too long."""
    if len(places) <= WIDEST or any(row for row, _ in places):
        return places
    columns = math.ceil(math.sqrt(len(places)))
    return [divmod(column, columns) for _, column in places]


def _shape(puzzle: Puzzle) -> tuple[int, int]:
    places = puzzle.picture.places
    return 1 + max(row for row, _ in places), 1 + max(column for _, column in places)


def _lights(puzzle: Puzzle) -> dict[str, Any]:
    rows, columns = _shape(puzzle)
    return {"kind": "lights", "rows": rows, "columns": columns, "actions": list(puzzle.table.action_names)}


def _tiles(puzzle: Puzzle) -> dict[str, Any]:
    rows, columns = _shape(puzzle)
    goal = puzzle.table.goals[0].tolist()
    # Where the tile lies, seen from the blank, and the way that it then goes.
    ways = {columns: "U", -columns: "D", 1: "L", -1: "R"}
    return {
        "kind": "tiles",
        "rows": rows,
        "columns": columns,
        "labels": _labels(puzzle),
        "blank": puzzle.table.cursor,
        "odd": [(goal.index(value) // columns + goal.index(value) % columns) % 2 for value in range(len(goal))],
        "ways": {str(offset): way for offset, way in ways.items()},
    }


def _cube(puzzle: Puzzle) -> dict[str, Any]:
    side = int(puzzle.name[len("cube-")])
    geometry = CubeGeometry(side)
    normals = np.array([NORMAL[FACES[face]] for face in geometry.face_of])
    spots = (geometry.spots - normals).tolist()
    turns = {}
    for name in puzzle.table.action_names:
        amount = AMOUNTS[name[1:]]
        turns[name] = {"normal": NORMAL[name[0]], "angle": {1: 90, 2: 180, 3: -90}[amount]}
    return {
        "kind": "cube",
        "side": side,
        "stickers": [{"spot": spot, "face": FACES[face]} for spot, face in zip(spots, geometry.face_of, strict=True)],
        "colours": list(CUBE_COLOURS),
        "turns": turns,
    }


def _cells(puzzle: Puzzle) -> dict[str, Any]:
    from rich.style import Style

    places = _wrapped(list(puzzle.picture.places))
    rows, columns = 1 + max(row for row, _ in places), 1 + max(column for _, column in places)
    grounds = [Style.parse(style).bgcolor for style in puzzle.picture.styles]
    colours = [(138, 138, 138) if ground is None else tuple(ground.get_truecolor()) for ground in grounds]
    return {
        "kind": "cells",
        "rows": rows,
        "columns": columns,
        "places": [list(place) for place in places],
        "labels": _labels(puzzle),
        "colours": ["#{:02x}{:02x}{:02x}".format(*colour) for colour in colours],
        "inks": [ink_on(*colour) for colour in colours],
    }


def ink_on(red: int, green: int, blue: int) -> str:
    """The colour of letters that are read well on this one."""
    luminance = 0.2126 * (red / 255) ** 2.2 + 0.7152 * (green / 255) ** 2.2 + 0.0722 * (blue / 255) ** 2.2
    return "#151a1c" if luminance > 0.18 else "#ffffff"


def _keys(kind: str, names: tuple[str, ...]) -> dict[str, str]:
    """The key that stands for each move; of a cube small letters turn clockwise, capitals back, and 2 before one twice."""
    if kind == "tiles":
        return dict(ARROWS)
    if kind == "cube":
        keys = {}
        for name in names:
            amount = AMOUNTS[name[1:]]
            letter = name[0].lower()
            keys[name] = {1: letter, 2: f"2{letter}", 3: name[0]}[amount]
        return keys
    if kind == "lights":
        return {}
    if kind == "pancakes":
        return {name: MOST_KEYS[int(name[1:]) - 1] for name in names if int(name[1:]) <= len(MOST_KEYS)}
    return dict(zip(names, MOST_KEYS, strict=False))
