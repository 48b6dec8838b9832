"""The hash index of a search: which node has a given state. States are compared word for word, never by hash alone.

The upper half of a hash says where to look first, and the look goes on slot by slot; the lower half is the tag.
"""

import numpy as np

from undershoot.arrays import Number, Record
from undershoot.kernels.compiler import inner
from undershoot.kernels.hashing import finished, mixed
from undershoot.kernels.prefetch import prefetch
from undershoot.search.memory import enlarge
from undershoot.search.nodes import NO_NODE, same_state
from undershoot.search.workspace import INDEX, Workspace

FIRST_SLOTS = 256
MAX_LOAD = 0.7
AHEAD = 8
HALF = np.uint64(32)


@inner
def hash_of(record: Record) -> Number:
    """64 mixed bits of the state of a node."""
    bits: Number = np.uint64(0)
    for w in range(record.state.shape[0]):
        bits = mixed(bits, record.state[w])
    return finished(bits)


@inner
def _first_slot(search: Record, bits: Number) -> Number:
    return np.int64(bits >> HALF) & (search.index_size - 1)


@inner
def ask_for_slot(ws: Workspace, search: Record, bits: Number) -> None:
    """Fetch where the look for this hash will begin."""
    prefetch(ws.index, search.index_at + _first_slot(search, bits))


@inner
def look_up(ws: Workspace, search: Record, child: Record) -> tuple[Number, Number]:
    """The node with the child's state, and its slot; or NO_NODE and the empty slot where it belongs."""
    slot, tag = _first_slot(search, child.hash), np.uint32(child.hash)
    while True:
        occupant = ws.index[search.index_at + slot]
        if occupant.number == 0:
            return np.int64(NO_NODE), slot
        if occupant.tag == tag:
            candidate = np.int64(occupant.number) - 1
            if same_state(ws.nodes[search.nodes_at + candidate], child):
                return candidate, slot
        slot = (slot + 1) & (search.index_size - 1)


@inner
def occupy(ws: Workspace, search: Record, slot: Number, number: Number, bits: Number) -> None:
    """Let an empty slot lead to a node."""
    occupant = ws.index[search.index_at + slot]
    occupant.number, occupant.tag = np.uint32(number + 1), np.uint32(bits)


@inner
def index_all_nodes(ws: Workspace, search: Record) -> None:
    """Empty the index and put all nodes into it."""
    for slot in range(search.index_size):
        ws.index_words[search.index_at + slot] = 0
    for number in range(search.stored):
        if number + AHEAD < search.stored:
            ask_for_slot(ws, search, hash_of(ws.nodes[search.nodes_at + number + AHEAD]))
        bits = hash_of(ws.nodes[search.nodes_at + number])
        slot = _first_slot(search, bits)
        while ws.index[search.index_at + slot].number:
            slot = (slot + 1) & (search.index_size - 1)
        occupy(ws, search, slot, number, bits)


@inner
def make_room_in_index(ws: Workspace, search: Record, more: Number) -> Number:
    """Slots enough for so many nodes more; False if there is no room."""
    while search.stored + more > MAX_LOAD * search.index_size:
        wider = 2 * search.index_size
        place, _ = enlarge(ws.index_words, ws.pools, INDEX, search.index_at, search.index_size, wider)
        if place < 0:
            return False
        search.index_at, search.index_size = place, wider
        index_all_nodes(ws, search)
    return True
