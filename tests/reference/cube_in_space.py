"""A cube as stickers at (position, direction) in space, turned by rotating vectors about an axis."""

from itertools import product

Vector = tuple[int, int, int]
Cube = dict[tuple[Vector, Vector], str]

AXIS: dict[str, Vector] = {
    "U": (0, 1, 0),
    "R": (1, 0, 0),
    "F": (0, 0, 1),
    "D": (0, -1, 0),
    "L": (-1, 0, 0),
    "B": (0, 0, -1),
}
ROTATION_AXIS = {"x": AXIS["R"], "y": AXIS["U"], "z": AXIS["F"]}


def dot(a: Vector, b: Vector) -> int:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def turned(v: Vector, axis: Vector) -> Vector:
    """A quarter turn of v about an axis through the origin, clockwise seen from the tip of the axis."""
    x, y, z = v
    if axis[0]:
        return (x, z, -y) if axis[0] > 0 else (x, -z, y)
    if axis[1]:
        return (-z, y, x) if axis[1] > 0 else (z, y, -x)
    return (y, -x, z) if axis[2] > 0 else (-y, x, z)


def solved(side: int) -> Cube:
    places = range(1 - side, side, 2)
    return {
        (position, axis): face
        for face, axis in AXIS.items()
        for position in product(places, places, places)
        if dot(position, axis) == side - 1
    }


def quarter(cube: Cube, axis: Vector, lowest: int) -> Cube:
    """Turn every piece whose height along the axis is at least `lowest`."""
    return {
        ((turned(position, axis), turned(direction, axis)) if dot(position, axis) >= lowest else (position, direction)): colour
        for (position, direction), colour in cube.items()
    }


def play(cube: Cube, moves: str, side: int) -> Cube:
    for word in moves.split():
        axis = AXIS.get(word[0]) or ROTATION_AXIS[word[0]]
        lowest = side - 1 if word[0] in AXIS else -side
        for _ in range({"": 1, "2": 2, "'": 3}[word[1:]]):
            cube = quarter(cube, axis, lowest)
    return cube


def facelets(cube: Cube, side: int) -> str:
    """U R F D L B, each face as it is seen when the cube is tipped so that it faces us (B is turned to by y2)."""
    up = range(side - 1, -side, -2)
    rows = {
        "U": [(x, side - 1, z) for z in reversed(up) for x in reversed(up)],
        "R": [(side - 1, y, z) for y in up for z in up],
        "F": [(x, y, side - 1) for y in up for x in reversed(up)],
        "D": [(x, 1 - side, z) for z in up for x in reversed(up)],
        "L": [(1 - side, y, z) for y in up for z in reversed(up)],
        "B": [(x, y, 1 - side) for y in up for x in up],
    }
    return "".join(cube[place, AXIS[face]] for face in AXIS for place in rows[face])


def all_holds(cube: Cube, side: int) -> list[Cube]:
    """The same cube held in its 24 ways."""
    tips = ("", "x", "x2", "x'", "z", "z'")
    turns = ("", "y", "y2", "y'")
    return [play(cube, f"{tip} {turn}", side) for tip in tips for turn in turns]


def held_by_corner(cube: Cube) -> Cube:
    """A 2x2 held so that the corner with the colours D, B and L is at the back, left and down, as on the solved one."""
    corner: Vector = (-1, -1, -1)
    for hold in all_holds(cube, 2):
        if all(hold[corner, AXIS[face]] == face for face in "DBL"):
            return hold
    raise AssertionError("no such corner")
