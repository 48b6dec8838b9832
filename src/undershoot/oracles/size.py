"""How large a space is, and whether it fits into memory, before anything is enumerated."""

import os
from decimal import Decimal
from operator import index
from pathlib import Path

import numpy as np

from undershoot.arrays import AnyArray
from undershoot.errors import SpaceTooLarge, UndershootError
from undershoot.oracles.neighbour_keys import table_bytes
from undershoot.oracles.state_index import MAX_DISTANCE, MAX_LOAD, MAX_ROWS
from undershoot.puzzles.moves import MoveTable, Steps
from undershoot.puzzles.pairs import Pair, classify_pairs
from undershoot.puzzles.problem import Problem


def available_memory() -> int:
    """Bytes that this process can still take: free memory, or what its container allows."""
    try:
        meminfo = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(meminfo["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        try:
            free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        except (AttributeError, ValueError, OSError):
            free = 4 << 30
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        # Pages of files that were read count as used, but are given up when memory runs short.
        statistics = dict(line.split() for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines())
        return min(free, limit - used + int(statistics["inactive_file"]))
    except (OSError, ValueError, KeyError):
        return free


def state_bytes(words: int) -> int:
    """Memory that a state takes at the peak of the search, at most."""
    stored = 8 * words + 2 + 1  # key, distance, arrival
    index = 2 * 8 / MAX_LOAD
    queue = 2 * 4
    return int(1.5 * stored + index + queue)


def checked_radius(radius: int | None) -> int | None:
    """The radius of a ball, or None for the whole space; anything else is refused."""
    if radius is None:
        return None
    try:
        whole = index(radius)
    except TypeError:
        whole = -1
    if not 0 <= whole <= MAX_DISTANCE:
        raise UndershootError(
            f"the radius (--radius, --ball) is {radius}; allowed are whole numbers from 0 to {MAX_DISTANCE:,}"
        )
    return whole


def check_size(puzzle: Problem, radius: int | None, words: int, memory: int) -> int:
    """At most so many states lie within `radius` of the goal; SpaceTooLarge if they would not fit."""
    most = puzzle.space.size
    if radius is not None:
        most = min(most, walks_within(puzzle.table, puzzle.table.backward, radius, most))
    need = most * state_bytes(words) + table_bytes(puzzle.table, puzzle.table.backward, words)
    if need <= memory and most <= MAX_ROWS:
        return most
    exactly = "" if radius is None and puzzle.space.size_is_exact else "up to "
    where = "" if radius is None else f" within {radius} of the goal"
    advice = "a ball around the goal may fit (--radius R)" if radius is None else "choose a smaller radius (--radius, --ball)"
    raise SpaceTooLarge(
        f"{puzzle.name} has {exactly}{count_text(most)} states{where}; enumerating them would take about {bytes_text(need)} "
        f"of memory, and {bytes_text(memory)} are free: {advice}."
    )


def walks_within(table: MoveTable, steps: Steps, radius: int, enough: int) -> int:
    """How many walks of cost at most `radius` leave the goals and hold new pairs of steps only.

    No more states can be there: the shortest of the cheapest walks to a state, with its steps sorted where they can be
    exchanged, is one of these.
    """
    contexts, width = steps.legal.shape
    new = classify_pairs(table, steps) == Pair.NEW
    goals = [0 if table.cursor is None else int(np.flatnonzero(goal == table.cursor)[0]) for goal in table.goals]
    # arriving[cost][c, x]: walks of that cost whose last step was x, taken from context c. Python's whole numbers do
    # not overflow.
    longest = int(steps.cost.max())
    arriving: dict[int, AnyArray] = {}

    def add(cost: int, c: int, x: int, walks: int) -> None:
        arriving.setdefault(cost, np.zeros((contexts, width), dtype=object))[c, x] += walks

    for c in goals:
        for x in np.flatnonzero(steps.legal[c]):
            add(int(steps.cost[c, x]), c, int(x), 1)
    total = len(goals)
    for cost in range(1, radius + 1):
        here = arriving.pop(cost, None)
        if here is None:
            if not arriving and cost > longest:
                break
            continue
        total += here.sum()
        if total >= enough:
            break
        for c, x in np.argwhere(here > 0):
            then = int(steps.landing[c, x])
            for y in np.flatnonzero(steps.legal[then] & new[c, x]):
                add(cost + int(steps.cost[then, y]), then, int(y), here[c, x])
    return int(total)


def count_text(number: int) -> str:
    """With thousands marked, or rounded if very large."""
    return f"{number:,}" if number < 10**15 else f"{Decimal(number):.2e}"


def bytes_text(number: int) -> str:
    """For people, with a unit."""
    for power, unit in enumerate(("bytes", "kB", "MB", "GB", "TB", "PB")):
        if number < 1000 ** (power + 1):
            return f"{number / 1000**power:.3g} {unit}"
    return f"{Decimal(number):.2e} bytes"
