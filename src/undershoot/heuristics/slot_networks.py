"""Networks on patterns inside compiled loops, for any puzzle with pieces: a step may move many of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U8, U16, Number, States, frozen
from undershoot.heuristics.asked_networks import NONE, ONE, UNKNOWN, AskedNetworks, asked_networks, bits_of, levels_of
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.heuristics.slot_looks import Lifts, lift, lifts_of
from undershoot.kernels.compiler import inner
from undershoot.kernels.guides import implements, kept_size, make_kept, update_kept, value_after, value_of
from undershoot.kernels.plan import Plan
from undershoot.pattern_tables.looks import Look
from undershoot.puzzles.pieces import Pieces


class SlotNetworks(NamedTuple):
    """Keeps the slot of every piece. The value is the largest of several sums of looks."""

    after: U8
    """uint8[C * A, n]: where an action from a context sends a slot."""
    actions: Number
    lifts: Lifts
    ends: I64
    """int64[L]: where the pieces of each look end in what follows."""
    network: U8
    """uint8[L]."""
    is_last: U8
    """uint8[L]: whether a sum ends with this look."""
    pieces: U16
    """uint16[K]: which piece is asked for."""
    number: U8
    """uint8[K]: as which one of its network."""
    code: U8
    """uint8[K, n]: the code that stands for its slot."""
    asked: AskedNetworks


def slot_networks(
    pieces: Pieces, sums: Sequence[Sequence[Look[PatternNetwork]]], networks: Sequence[PatternNetwork]
) -> SlotNetworks:
    """For one thread. networks: all that are looked through; they see pairs, and have as many layers as each other."""
    looks = [look for group in sums for look in group]
    bits = max(bits_of(network.residuals.share.shape[1]) for network in networks)
    asked, number, code, ends = [], [], [], []
    for look in looks:
        how = look.table.pattern.folded
        for i, (piece, slots) in enumerate(zip(look.asked.tolist(), look.slots, strict=True)):
            asked.append(piece)
            number.append(i)
            code.append(pieces.place[slots].astype(np.int64) * how.all_turns[i] + pieces.turn[slots])
        ends.append(len(asked))
    last = [place == len(group) - 1 for group in sums for place in range(len(group))]
    by_id = {id(network): n for n, network in enumerate(networks)}
    contexts, actions, cells = pieces.after.shape
    return SlotNetworks(
        frozen(pieces.after.reshape(contexts * actions, cells)),
        actions,
        lifts_of(pieces),
        frozen(np.array(ends, dtype=np.int64)),
        frozen(np.array([by_id[id(look.table)] for look in looks], dtype=np.uint8)),
        frozen(np.array(last, dtype=np.uint8)),
        frozen(np.array(asked, dtype=np.uint16)),
        frozen(np.array(number, dtype=np.uint8)),
        frozen(np.array(code).astype(np.uint8)),
        asked_networks(networks, bits),
    )


@implements(kept_size, SlotNetworks)
def _slots_kept(guide: SlotNetworks) -> Number:
    return guide.lifts.count


@implements(make_kept, SlotNetworks)
def _make(guide: SlotNetworks, states: States, row: Number, kept: I32, at: Number) -> None:
    lift(guide.lifts, states, row, kept, at)


@implements(update_kept, SlotNetworks)
def _slots_after(
    guide: SlotNetworks,
    plan: Plan,
    context: Number,
    step: Number,
    states: States,
    row: Number,
    kept: I32,
    at: Number,
    to: Number,
) -> None:
    move = np.uint64(context) * np.uint64(guide.actions) + np.uint64(step)
    for p in range(guide.lifts.count):
        kept[to, p] = guide.after[move, np.uint64(kept[at, p])]


@implements(value_of, SlotNetworks)
def _largest_sum(guide: SlotNetworks, states: States, row: Number, kept: I32, at: Number) -> Number:
    if kept[at, 0] == UNKNOWN:
        return np.float32(np.nan)
    return np.float32(_largest(guide, kept, at, np.int64(2**30)))


@implements(value_after, SlotNetworks)
def _largest_sum_after(
    guide: SlotNetworks,
    plan: Plan,
    context: Number,
    step: Number,
    states: States,
    row: Number,
    kept: I32,
    at: Number,
    enough: Number,
) -> Number:
    update_kept(guide, plan, context, step, states, row, kept, at, at + 1)
    return _largest(guide, kept, at + 1, np.int64(enough))


@inner
def _largest(guide: SlotNetworks, kept: I32, at: Number, enough: Number) -> Number:
    """The largest sum; one that is more than `enough` ends it."""
    largest, total, begin = np.int64(0), np.int64(0), NONE
    for look in range(guide.ends.shape[0]):
        end, network, code = np.uint64(guide.ends[look]), np.uint64(guide.network[look]), NONE
        k = begin
        while k < end:
            own = np.uint64(guide.code[k, np.uint64(kept[at, guide.pieces[k]])])
            total += np.int64(guide.asked.packed.share[network, guide.number[k], own])
            code |= own << (np.uint64(guide.number[k]) * np.uint64(guide.asked.bits))
            k += ONE
        begin = end
        if total <= enough:
            total += guide.asked.packed.step[network] * levels_of(guide.asked, network, code)
        if guide.is_last[look]:
            largest, total = max(largest, total), np.int64(0)
        if max(largest, total) > enough:
            return max(largest, total)
    return largest
