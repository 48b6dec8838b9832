"""Searching on a device: by IDA* with tables of patterns, by A*, or by both bounds, whose proof is then found there."""

import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

import torch

from undershoot.arrays import States
from undershoot.errors import GaveOut, UndershootError
from undershoot.guarantees import Heuristic
from undershoot.heuristics.device_patterns import DevicePatterns, on_device
from undershoot.heuristics.patterns import PatternHeuristic
from undershoot.puzzles.problem import Problem
from undershoot.search.astar import Batch
from undershoot.search.device.best_first import astar_on_device
from undershoot.search.device.choosing import has_tables, torch_device
from undershoot.search.device.depth_first import deepen_on_device
from undershoot.search.options import Algorithm, SearchOptions
from undershoot.search.results import Result

_copies: WeakKeyDictionary[PatternHeuristic, DevicePatterns] = WeakKeyDictionary()
"""What was copied to a device, as long as the tables that it was copied from are held."""


def search_on_device(
    puzzle: Problem,
    states: States,
    heuristic: Heuristic,
    options: SearchOptions,
    algorithm: Algorithm,
    progress: Callable[[int], None] | None = None,
) -> Batch:
    """A* or IDA* from every state, uint8[N, n], on the CUDA device that `options` name; results in the same order."""
    search = _deepen if algorithm is Algorithm.IDA else _astar
    if algorithm is Algorithm.IDA or has_tables(heuristic):
        heuristic = patterns_there(heuristic, options.device)
    began = time.perf_counter()
    try:
        results = search(puzzle, states, heuristic, options, progress)
    except torch.cuda.OutOfMemoryError as error:
        raise no_room(options.device) from error
    return Batch(results, time.perf_counter() - began, 0, states[:0])


def patterns_there(heuristic: Heuristic, device: str) -> DevicePatterns:
    """The tables on the device, copied there if they are not, once; other heuristics are refused."""
    if isinstance(heuristic, DevicePatterns):
        return heuristic
    if not isinstance(heuristic, PatternHeuristic):
        raise UndershootError(
            f"IDA* on a device goes by tables of patterns, and {heuristic.name} is none; take patterns (--heuristic patterns), "
            "or search on the cores (--device cpu)"
        )
    where = torch_device(device)
    known = _copies.get(heuristic)
    if known is None or known.device != where:
        try:
            known = on_device(heuristic, where)
        except torch.cuda.OutOfMemoryError as error:
            raise no_room(device) from error
        _copies[heuristic] = known
    return known


def no_room(device: str) -> GaveOut:
    """That there is no memory to begin with."""
    return GaveOut(
        f"the memory of the device {device} ran out before the search began: its tables are too large, or others hold it; "
        "take smaller patterns, or search on the cores (--device cpu)"
    )


def _deepen(
    puzzle: Problem, states: States, heuristic: Heuristic, options: SearchOptions, progress: Callable[[int], None] | None
) -> list[Result]:
    assert isinstance(heuristic, DevicePatterns)
    return deepen_on_device(puzzle, states, heuristic, options, progress)


def _astar(
    puzzle: Problem, states: States, heuristic: Heuristic, options: SearchOptions, progress: Callable[[int], None] | None
) -> list[Result]:
    return astar_on_device(puzzle, states, heuristic, options, str(torch_device(options.device)), progress)
