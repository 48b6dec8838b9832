"""The nodes of a search: distinct states that it has seen, each with the cheapest way to it so far."""

import sys

import numpy as np

from undershoot.arrays import Number, Record
from undershoot.kernels.compiler import inner
from undershoot.search.memory import enlarge
from undershoot.search.workspace import NODES, Rules, Workspace

OPEN, CLOSED, WAITING = 1, 2, 4
"""Flags of a node: in the open list; expanded; about to be pushed."""
FIRST_NODES = 128
NO_NODE = np.int64(-1)
_LAST_BYTE = 0 if sys.byteorder == "little" else 56


@inner
def place_in_word(cell: Number) -> Number:
    """By how many bits the value of a cell is shifted in its word."""
    return np.uint64(((cell & 7) * 8) ^ _LAST_BYTE)


@inner
def value_in_state(node: Record, cell: Number) -> Number:
    """The value of a cell of a node's state."""
    return np.uint8((node.state[cell >> 3] >> place_in_word(cell)) & np.uint64(255))


@inner
def same_state(one: Record, other: Record) -> Number:
    """Whether two records hold the same state."""
    same = True
    for w in range(one.state.shape[0]):
        same &= one.state[w] == other.state[w]
    return same


@inner
def copy_state(source: Record, target: Record) -> None:
    """From one record to another."""
    for w in range(source.state.shape[0]):
        target.state[w] = source.state[w]


@inner
def f_of(node: Record, rules: Rules) -> Number:
    """float64: g + weight * h."""
    return node.g + rules.weight * np.float64(node.h)


@inner
def is_wrong(value: Number, rules: Rules) -> Number:
    """Whether a value of the heuristic is not finite, below what it may be, or not whole though it should be."""
    return not (rules.least_value <= value < np.inf and value > -np.inf) or (rules.buckets and value != np.floor(value))


@inner
def make_room_for_nodes(ws: Workspace, search: Record, more: Number) -> Number:
    """Room for so many nodes more; False if there is none."""
    need = search.stored + more
    if need > search.nodes_size:
        place, size = enlarge(ws.node_words, ws.pools, NODES, search.nodes_at, search.nodes_size, need)
        if place < 0:
            return False
        search.nodes_at, search.nodes_size = place, size
    return True
