"""Which states to search from."""

import re
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from undershoot.arrays import States
from undershoot.errors import UndershootError, cannot
from undershoot.heuristics import wording
from undershoot.kernels.scrambles import ScrambleRule, scramble
from undershoot.kernels.streams import Purpose, stream
from undershoot.puzzles.problem import MOST_STATES
from undershoot.puzzles.puzzle import Puzzle

LONGEST_LINE = 100_000
"""Characters; a state has at most 255 cells."""


@dataclass(frozen=True, eq=False)
class Instances:
    """Start states and where they come from.

    Examples:
        >>> tiles = us.puzzle("tiles-2x3")
        >>> one = us.Instances("by hand", tiles.parse("1 2 3 / 0 4 5"), optimal_cost=(2,))
        >>> one.population, one.states.shape
        ('by hand', (1, 6))
    """

    population: str
    states: States
    """uint8[N, n]."""
    optimal_cost: tuple[int | None, ...]
    """Where it is known beforehand."""


def uniform_instances(puzzle: Puzzle, count: int, seed: int, purpose: Purpose | None = None) -> Instances:
    """Solvable states, each equally likely. purpose: whose stream of this seed; None for the seed itself."""
    if count < 1:
        raise UndershootError(f"{count} random states were asked for (--random); at least 1 is needed")
    return Instances(f"uniform states, seed {seed}", puzzle.sample(count, _seed(seed, purpose)), (None,) * count)


def _seed(seed: int, purpose: Purpose | None) -> int:
    return seed if purpose is None else stream(seed, purpose)


def scrambled_instances(
    puzzle: Puzzle, depths: list[int], per_depth: int, seed: int, purpose: Purpose | None = None
) -> Instances:
    """Proper scrambles, `per_depth` of each depth. purpose: as above."""
    if not depths or min(depths) < 0 or per_depth < 1:
        raise UndershootError(
            f"scrambles have depths from 0 (--scramble-depth, --scrambles) and at least one of each (--per-depth); "
            f"{depths} and {per_depth} came"
        )
    if len(depths) * per_depth > MOST_STATES:
        raise UndershootError(f"{len(depths) * per_depth:,} scrambles were asked for; allowed are at most {MOST_STATES:,}")
    walked = scramble(puzzle.table, np.repeat(depths, per_depth), _seed(seed, purpose), ScrambleRule.PROPER)
    name = f"{wording.scrambles(tuple(depths))}, {per_depth} each, seed {seed}"
    return Instances(name, walked.states, (None,) * len(walked.states))


def parse_depths(text: str) -> list[int]:
    """ "1..10", "5" or "2,4,8"."""
    depths: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:\.\.(\d{1,6}))?\s*", part)
        if not match:
            raise UndershootError(f'"{text}" are no depths; write 10, or 1..10, or 2,4,8')
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise UndershootError(f'"{part.strip()}" runs backwards; write the smaller depth first')
        depths += range(first, last + 1)
    return depths


def read_instances(puzzle: Puzzle, path: Path) -> Instances:
    """One state a line, `#` for comments, and where known the optimal cost in front: `57: 14 13 15 7 ...`.

    path: `-` is standard input.
    """
    states, costs = [], []
    for number, line in _lines(path):
        content = line.split("#")[0].strip()
        if not content:
            continue
        known = re.match(r"([0-9]{1,9})\s*:\s*", content)
        try:
            states.append(puzzle.parse(content[known.end() :] if known else content)[0])
        except UndershootError as error:
            raise UndershootError(f"{path}, line {number}: {shortened(str(error))}") from error
        costs.append(int(known[1]) if known else None)
    if not states:
        raise UndershootError(f"{path} holds no instances; write one state a line")
    named = "standard input" if str(path) == "-" else f"file {path.name}"
    return Instances(named, np.array(states, dtype=np.uint8), tuple(costs))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers; one that has no end in sight is refused."""
    try:
        with nullcontext(sys.stdin) if str(path) == "-" else path.open(encoding="utf-8") as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise UndershootError(
                        f"{path}, line {number} is longer than {LONGEST_LINE:,} characters; write one state a line"
                    )
                yield number, line
    except OSError as error:
        raise cannot(f"read the instances {path}", error) from error
    except UnicodeDecodeError as error:
        raise UndershootError(f"cannot read the instances {path}, which are no text: {error}") from error


def shortened(text: str, most: int = 300) -> str:
    """Without its middle, if it is long."""
    return text if len(text) <= most else f"{text[: most // 2]} [...] {text[-most // 2 :]}"
