"""The puzzles that every contract test runs over."""

from pathlib import Path

PYRAMINX = str(Path(__file__).parent.parent / "examples" / "pyraminx.toml")

NAMED = (
    "lights-out-1x2",
    "lights-out-3x3",
    "lights-out-2x4",
    "lights-out-5x5",
    "lights-out-8x8",
    "tiles-2x2",
    "tiles-2x3",
    "tiles-3x3",
    "tiles-3x3-blank-first",
    "tiles-4x4-blank-first",
    "tiles-6x6",
    "cube-2x2",
    "cube-2x2-qtm",
    "cube-3x3",
    "cube-3x3-qtm",
    "pancake-2",
    "pancake-8",
    "pancake-20",
    "topspin-8-4",
    "topspin-9-3",
    "topspin-10-4",
)
ALL = (*NAMED, PYRAMINX)
