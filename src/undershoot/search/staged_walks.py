"""Two stages, compiled: depth-first through the first, and at each of its ends depth-first through the second.

A walk is held as rows, one for each depth, so that it can stop anywhere and go on later.
"""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U8, Bools, Number
from undershoot.kernels.compiler import compiled_loop, inner
from undershoot.kernels.plan import Plan
from undershoot.kernels.steps import play_step
from undershoot.search.coordinates import Coordinates, cost_of, numbers_after, read_numbers
from undershoot.search.depth_first import TreeMoves

SEARCHING, FOUND, EXHAUSTED = 0, 1, 2
MOST_DEPTH = 120


class Rows(NamedTuple):
    """The path of one stage."""

    numbers: I32
    """int32[D + 2, K]: of the views."""
    costs: I64
    """int64[D + 2]: g."""
    arrivals: I64
    """int64[D + 2]: rows of `TreeMoves.follow`."""
    visited: I64
    """int64[D + 2]: how many children were looked at."""
    steps: I64
    """int64[D + 2]: the one that leads to the row below."""


class Walk(NamedTuple):
    """Through both stages, from one labelled state."""

    labels: U8
    """uint8[3, n]: of the start, and two to work in."""
    first: Rows
    second: Rows
    progress: I64
    """int64[5]: depth, steps of the second stage, status, nodes whose children were made, and how many these are."""


class Two(NamedTuple):
    """Both stages of a puzzle."""

    plan: Plan
    """For labels, of which every cell may hold any."""
    moves: TreeMoves
    first: Coordinates
    second: Coordinates
    is_fewer: Bools
    """bool[A]: the actions of the second stage."""


DEPTH, LENGTH, STATUS, EXPANDED, MADE = range(5)


def make_walk(two: Two, labels: U8) -> Walk:
    """At the start."""

    def rows(at: Coordinates) -> Rows:
        numbers = np.zeros((MOST_DEPTH + 2, at.colour_of.shape[0]), dtype=np.int32)
        return Rows(numbers, *np.zeros((4, MOST_DEPTH + 2), dtype=np.int64))

    return Walk(np.array([labels] * 3, dtype=np.uint8), rows(two.first), rows(two.second), np.zeros(5, dtype=np.int64))


@compiled_loop
def plant(walk: Walk, two: Two) -> Number:
    """Begin at the start. Returns what the first stage costs, at least; -1 if it is not seen by the views."""
    walk.progress[DEPTH], walk.progress[STATUS] = 0, SEARCHING
    rows = walk.first
    rows.costs[0], rows.visited[0] = 0, 0
    rows.arrivals[0] = two.moves.plan.legal.shape[0] * two.moves.plan.legal.shape[1]
    if not read_numbers(two.first, walk.labels, 0, rows.numbers, 0):
        return np.int64(-1)
    return cost_of(two.first, rows.numbers, 0)


@compiled_loop
def walk_on(walk: Walk, two: Two, bound: Number, most_cost: Number, most: Number, most_in_second: Number) -> None:
    """Go on through the first stage, whose ends cost exactly `bound`, until a solution of at most `most_cost` is found, all is
    searched, or `most` nodes were expanded. most_in_second: of the nodes that one end may have in the second stage."""
    rows, plan, progress = walk.first, two.moves.plan, walk.progress
    width, stop, depth = plan.legal.shape[1], progress[EXPANDED] + most, progress[DEPTH]
    progress[STATUS] = SEARCHING
    while progress[EXPANDED] < stop:
        at = rows.arrivals[depth] * (width + 1)
        progress[EXPANDED] += rows.visited[depth] == 0
        if rows.visited[depth] == 0 and rows.costs[depth] == bound:
            rows.visited[depth] = two.moves.follow[at]
            if _finish(walk, two, depth, most_cost, most_in_second):
                progress[STATUS] = FOUND
                break
        if rows.visited[depth] == two.moves.follow[at] or depth == MOST_DEPTH:
            if depth == 0:
                progress[STATUS] = EXHAUSTED
                break
            depth -= 1
            continue
        step = np.int64(two.moves.follow[at + 1 + rows.visited[depth]])
        rows.visited[depth] += 1
        progress[MADE] += 1
        cost = rows.costs[depth] + np.int64(plan.cost[0, step])
        # An end that a move of the second stage leads to is the end of a shorter first stage, too.
        if cost > bound or (cost == bound and two.is_fewer[step]):
            continue
        _descend(rows, two, two.first, depth, step, cost)
        if cost + cost_of(two.first, rows.numbers, depth + 1) <= bound:
            depth += 1
    progress[DEPTH] = depth


@inner
def _descend(rows: Rows, two: Two, views: Coordinates, depth: Number, step: Number, cost: Number) -> None:
    """Write the row below `depth`."""
    numbers_after(views, step, rows.numbers, depth, depth + 1)
    rows.steps[depth] = step
    rows.costs[depth + 1], rows.visited[depth + 1], rows.arrivals[depth + 1] = cost, 0, step


@inner
def _finish(walk: Walk, two: Two, depth: Number, most_cost: Number, most: Number) -> Number:
    """The second stage, from the end of the first at this depth, with growing bounds; whether it found the goal."""
    rows, labels = walk.second, walk.labels
    for i in range(labels.shape[1]):
        labels[1, i] = labels[0, i]
    for k in range(depth):
        play_step(two.plan, 0, walk.first.steps[k], labels, 1, 2)
        for i in range(labels.shape[1]):
            labels[1, i] = labels[2, i]
    if not read_numbers(two.second, labels, 1, rows.numbers, 0):
        return False
    rows.costs[0], rows.arrivals[0] = walk.first.costs[depth], walk.first.arrivals[depth]
    bound, stop = rows.costs[0] + cost_of(two.second, rows.numbers, 0), walk.progress[EXPANDED] + most
    while bound <= most_cost and walk.progress[EXPANDED] < stop:
        if _search_second(walk, two, bound, stop):
            return True
        bound += 1
    return False


@inner
def _search_second(walk: Walk, two: Two, bound: Number, stop: Number) -> Number:
    """One iteration of IDA* by the fewer moves."""
    rows, plan, progress = walk.second, two.moves.plan, walk.progress
    width, depth = plan.legal.shape[1], np.int64(0)
    rows.visited[0] = 0
    while progress[EXPANDED] < stop:
        progress[EXPANDED] += rows.visited[depth] == 0
        if rows.costs[depth] <= bound and cost_of(two.second, rows.numbers, depth) == 0 and _is_home(two, rows, depth):
            progress[LENGTH] = depth
            return True
        at = rows.arrivals[depth] * (width + 1)
        if rows.visited[depth] == two.moves.follow[at] or depth == MOST_DEPTH:
            if depth == 0:
                return False
            depth -= 1
            continue
        step = np.int64(two.moves.follow[at + 1 + rows.visited[depth]])
        rows.visited[depth] += 1
        if not two.is_fewer[step]:
            continue
        progress[MADE] += 1
        cost = rows.costs[depth] + np.int64(plan.cost[0, step])
        _descend(rows, two, two.second, depth, step, cost)
        if cost + cost_of(two.second, rows.numbers, depth + 1) <= bound:
            depth += 1
    return False


@inner
def _is_home(two: Two, rows: Rows, depth: Number) -> Number:
    """Whether all views see the goal."""
    home = True
    for k in range(rows.numbers.shape[1]):
        home &= rows.numbers[depth, k] == 0
    return home
