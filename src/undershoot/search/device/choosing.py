"""Where a search runs: on the cores, or on a CUDA device; and what cannot be done there."""

import warnings
from dataclasses import replace

import torch

from undershoot.errors import UndershootError
from undershoot.guarantees import Heuristic
from undershoot.heuristics.device_patterns import DevicePatterns
from undershoot.heuristics.patterns import PatternHeuristic
from undershoot.search.options import AUTO, CPU, Algorithm, SearchOptions, check_options, unread

CUDA = "cuda"


def place(options: SearchOptions, heuristic: Heuristic, threads: int = 1) -> SearchOptions:
    """The options with the name of the device that they come to: cpu for the cores, or a CUDA device that is there.

    auto takes a CUDA device for tables of patterns, unless there are options that only the cores have. Where there is no CUDA
    device at all the cores search, which is said.
    """
    device = settled(options.device)
    if device == AUTO:
        device = CUDA if has_tables(heuristic) and takes_patterns(options, threads) else CPU
    placed = replace(options, device=device)
    check_options(placed, threads)
    return placed


def settled(device: str) -> str:
    """The same, or cpu where there is no CUDA device; a number that none of them has is refused."""
    if device == CPU:
        return CPU
    count = cuda_devices()
    if ":" in device and int(device.partition(":")[2]) >= count:
        found = f"finds {count} here, counted from 0" if count else "finds no CUDA device here"
        raise UndershootError(f"the device (--device) is {device}, but torch {found}; use another, or --device cpu")
    if count:
        return device
    if device != AUTO:
        warnings.warn("torch finds no CUDA device here; the cores search instead", stacklevel=4)
    return CPU


def takes_patterns(options: SearchOptions, threads: int = 1) -> bool:
    """Whether `auto` takes a device for tables of patterns: nothing was asked for that only the cores have."""
    return options.algorithm in (Algorithm.AUTO, Algorithm.IDA) and not unread(options) and threads == 1


def has_tables(heuristic: Heuristic) -> bool:
    """Whether it is made of tables that a device can hold."""
    return isinstance(heuristic, (PatternHeuristic, DevicePatterns))


def tables_go_to(options: SearchOptions, threads: int = 1) -> str:
    """Where tables of patterns that are not there yet should be made, before there is a heuristic: cpu or a CUDA device."""
    device = settled(options.device)
    if device == AUTO:
        return CUDA if takes_patterns(options, threads) else CPU
    return device


def cuda_devices() -> int:
    """How many CUDA devices there are."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def torch_device(device: str) -> torch.device:
    """The device of this name, a CUDA device that is there."""
    return torch.device(device)
