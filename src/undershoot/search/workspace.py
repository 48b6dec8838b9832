"""How searches lie in memory: the records of which nodes, hash indices and open lists are made, and the arrays of them.

A *lane* is the place of one search at a time. It has one region of each of four arrays (see `memory`): for its nodes, its hash
index, and of its open list the heads and the entries. A record of SEARCH says where they are and how far the search has come.
"""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U8, U64, Number, Records
from undershoot.kernels.plan import Plan
from undershoot.search.memory import make_pools, reserved

NODES, INDEX, HEADS, ENTRIES = np.arange(4)
"""Numbers of the pools; see `memory`. Of numpy's, since for each of Python's numba compiles a function anew."""
HUGE_PAGES_FROM = 1 << 28
"""Bytes of a limit from where on pages of 2 MiB, which are faster, waste little of it."""
MOST_NODES, MOST_ENTRIES = 2**31 - 1, 2**32 - 1
"""Numbers of nodes have 31 bits, those of entries of an open list, and the serial numbers of a heap, 32."""
MAX_COST = 1 << 24  # up to here float32 holds every whole number

IDLE, RUNNING, SOLVED, UNSOLVABLE, OVER_BUDGET, OUT_OF_MEMORY, OUT_OF_TIME, NEEDS_HEAP, TOO_DEAR, WRONG_VALUE = range(10)

REGIONS = (
    *("nodes_at", "nodes_size", "index_at", "index_size"),
    *("heads_at", "heads_size", "span", "entries_at", "entries_size"),
)
"""Where the regions are. Of the heads, `span` is one more than the largest f and the largest g that they have room for."""
HOW_FAR = (
    "status",
    "stored",  # nodes
    "entries_used",  # of the open list, from the first on
    "entry_to_reuse",  # 1 + the first of those that are free again; 0 for none
    "least_f",  # no bucket below holds a node
    "pushes",  # to the heap so far
    "waiting",  # nodes that wait to be pushed
    "first_row",  # of the values for those that are new
    *("expanded", "generated", "evaluated", "reopened"),
    "goal",  # the node of the best solution, -1 for none
    "incumbent",  # its cost, -1 for none
    "refused",  # a node whose value cannot be, -1 for none
)
SEARCH = np.dtype([(name, np.int64) for name in (*REGIONS, *HOW_FAR)])

SLOT = np.dtype([("number", np.uint32), ("tag", np.uint32)])
"""Of a hash index: 1 + a node's number, 0 if the slot is empty; 32 bits of the hash, which spare most looks at other nodes."""
BUCKET = np.dtype([("head", np.uint32), ("tail", np.uint32)])
"""The list of open nodes with one f and one g: 1 + the entries that it begins and, if the oldest comes first, ends with."""
ENTRY = np.dtype([("node", np.uint32), ("next", np.uint32)])
"""Of a bucket: a node, and 1 + the entry that follows; 0 for none."""
LAYER = np.dtype([("held", np.uint32), ("g", np.uint32)])
"""All buckets with one f: how many entries they hold, and the g to look at first."""
HEAP_ENTRY = np.dtype([("f", np.float64), ("tie", np.uint64), ("node", np.uint64)])
"""Of a heap."""


def node_type(state_words: int) -> np.dtype[np.void]:
    """A node, in one cache line for states of up to 40 cells."""
    return np.dtype(
        [
            ("state", np.uint64, (state_words,)),  # a byte a cell
            ("parent", np.int32),  # -1 for none
            ("g", np.int32),
            ("h", np.float32),
            ("kept", np.int32),  # by the guide, if that keeps one number; see `guides`
            ("action", np.uint16),  # that led here
            ("context", np.uint8),
            ("flags", np.uint8),
            ("undo", np.int32),  # the action that leads back to the parent, -1 for none
        ]
    )


def relative_type(state_words: int) -> np.dtype[np.void]:
    """A node that is being expanded, or one of its children before it is known whether it is new."""
    return np.dtype([("state", np.uint64, (state_words,)), ("hash", np.uint64), ("step", np.int64)])


class Moves(NamedTuple):
    """What a search needs of the puzzle."""

    plan: Plan
    undo: I32
    """int32[C, S]: the step that takes a step back, -1 for none."""
    goals: U64
    """uint64[G, SW], as in nodes."""
    cells: Number


class Rules(NamedTuple):
    """What stays the same for all searches of a workspace."""

    in_loop: Number
    """Whether a guide gives the values; otherwise they come from outside."""
    buckets: Number
    """Whether f is whole, so that the open list is a table of buckets; otherwise a heap."""
    deep: Number
    weight: Number
    per_step: Number
    most_expanded: Number
    least_value: Number
    """Of the heuristic; minus infinity if negative ones are allowed."""
    goals_are_0: Number
    """Whether the heuristic claims so."""
    most_nodes: Number = MOST_NODES
    most_entries: Number = MOST_ENTRIES


class Workspace(NamedTuple):
    """Arrays for M searches at once, in as many lanes. Where two names have one array's memory, the first says so."""

    node_words: U64
    """The memory of `nodes`."""
    nodes: Records
    """`node_type`."""
    index_words: U64
    """The memory of `index`."""
    index: Records
    """SLOT."""
    heads: U64
    """For each search: expansions by f; then, of the open list, a LAYER for each f; then a BUCKET for each f and g. The memory
    of `layers` and `buckets`."""
    layers: Records
    buckets: Records
    entry_words: U64
    """The memory of `entries`, and of `heap` instead if f is not whole."""
    entries: Records
    heap: Records
    pools: Records
    searches: Records
    """SEARCH[M]."""
    waiting: I64
    """int64[M, P]: nodes that wait to be pushed, -1 for those that do no longer."""
    needs_value: U8
    """uint8[M, P]: whether they need a value first."""
    family: Records
    """`relative_type`[1 + S]: the node that is being expanded, then its children. The memory of `family_cells`."""
    family_cells: U8
    """uint8[1 + S, 8 SW or more]: their states, cell by cell."""
    kept: I32
    """int32[1 + S, K]: what the guide keeps beside these states."""


def make_workspace(
    searches: int, per_step: int, steps: int, state_words: int, kept: int, buckets: bool, memory: int
) -> Workspace:
    """For so many searches at once, each with up to `per_step` times `steps` new nodes a round, in so many bytes."""
    total, huge = memory // 8, memory >= HUGE_PAGES_FROM
    units = [node_type(state_words).itemsize // 8, 1, 1, 1 if buckets else HEAP_ENTRY.itemsize // 8]
    nodes, index, heads, entries = (
        reserved(words // unit * unit, huge) for words, unit in zip([total] + [total // 2] * 3, units, strict=True)
    )
    family = np.zeros(1 + steps, dtype=relative_type(state_words))
    children = per_step * steps + 1
    return Workspace(
        node_words=nodes,
        nodes=nodes.view(node_type(state_words)),
        index_words=index,
        index=index.view(SLOT),
        heads=heads,
        layers=heads.view(LAYER),
        buckets=heads.view(BUCKET),
        entry_words=entries,
        entries=entries.view(ENTRY),
        heap=entries[: len(entries) // 3 * 3].view(HEAP_ENTRY),
        pools=make_pools([len(nodes), len(index), len(heads), len(entries)], units, total),
        searches=np.zeros(searches, dtype=SEARCH),
        waiting=np.zeros((searches, children), dtype=np.int64),
        needs_value=np.zeros((searches, children), dtype=np.uint8),
        family=family,
        family_cells=family.view(np.uint8).reshape(1 + steps, family.itemsize),
        kept=np.zeros((1 + steps, max(1, kept)), dtype=np.int32),
    )
