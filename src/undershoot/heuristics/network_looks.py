"""Networks on patterns inside compiled loops, for sliding tiles: one step moves one piece."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, U8, Number, States, frozen
from undershoot.heuristics.asked_networks import UNKNOWN, AskedNetworks, asked_networks, levels_of
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.heuristics.sliding_looks import ALL_PLACES, NO_LOOK, ONE
from undershoot.kernels.compiler import inner
from undershoot.kernels.guides import implements, kept_size, make_kept, update_kept, value_after, value_of
from undershoot.kernels.plan import Plan, forward_plan
from undershoot.pattern_tables.looks import Look
from undershoot.puzzles.pieces import Pieces


class NetworkLooks(NamedTuple):
    """Keeps, for each look, the places of its pieces as one number, the sum of their shares of h0, and the levels that it
    passes; for each sum its value; and for each step and sum the levels that change, once they are known."""

    steps: Number
    """How many there are, legal or not."""
    bits: Number
    """How many a place takes."""
    place: U8
    """uint8[G, n]: the place of a cell as each sum sees it."""
    look: U8
    """uint8[G, m]: which look follows the piece with this value; 255 for none."""
    number: U8
    """uint8[G, m]: as which of its pieces."""
    group: U8
    """uint8[L]: to which sum a look belongs."""
    network: U8
    """uint8[L]."""
    asked: AskedNetworks
    goal_values: U8


def network_looks(
    pieces: Pieces, sums: Sequence[Sequence[Look[PatternNetwork]]], networks: Sequence[PatternNetwork]
) -> NetworkLooks:
    """For one thread, where `can_slide`. networks: all that are looked through; they see pairs, and have as many layers."""
    table, bits = pieces.table, (len(pieces.kinds[0].slots) - 1).bit_length()
    place = np.zeros((len(sums), table.cells), dtype=np.uint8)
    which = np.full((len(sums), table.values), NO_LOOK, dtype=np.uint8)
    index = np.zeros((len(sums), table.values), dtype=np.uint8)
    group_of: list[int] = []
    network_of: list[int] = []
    for g, group in enumerate(sums):
        for look in group:
            place[g] = pieces.place[look.slots[0]]
            for i, piece in enumerate(look.asked.tolist()):
                value = table.goals[0, pieces.cells[piece][0]]
                which[g, value], index[g, value] = len(group_of), i
            group_of.append(g)
            network_of.append([id(network) for network in networks].index(id(look.table)))
    return NetworkLooks(
        forward_plan(table).legal.shape[1],
        bits,
        frozen(place),
        frozen(which),
        frozen(index),
        frozen(np.array(group_of, dtype=np.uint8)),
        frozen(np.array(network_of, dtype=np.uint8)),
        asked_networks(networks, bits),
        frozen(np.unique(table.goals[0])),
    )


@implements(kept_size, NetworkLooks)
def _size(guide: NetworkLooks) -> Number:
    return 3 * guide.group.shape[0] + (1 + guide.steps) * guide.place.shape[0]


@implements(make_kept, NetworkLooks)
def _make(guide: NetworkLooks, states: States, row: Number, kept: I32, at: Number) -> None:
    looks, groups, found = guide.group.shape[0], guide.place.shape[0], 0
    for k in range(3 * looks + groups):
        kept[at, k] = 0
    for value in guide.goal_values:
        for i in range(guide.place.shape[1]):
            if states[row, i] == value:
                found += 1
                for g in range(groups):
                    look = np.uint64(guide.look[g, value])
                    if look < NO_LOOK:
                        place, number = np.int64(guide.place[g, i]), np.int64(guide.number[g, value])
                        kept[at, look] += place << (number * guide.bits)
                        kept[at, np.uint64(looks) + look] += guide.asked.packed.share[guide.network[look], number, place]
                break
    for k in range(looks):
        if found == guide.goal_values.shape[0]:
            levels = levels_of(guide.asked, guide.network[k], np.uint64(kept[at, k]) & ALL_PLACES)
            kept[at, 2 * looks + k] = levels
            kept[at, 3 * looks + guide.group[k]] += kept[at, looks + k] + guide.asked.packed.step[guide.network[k]] * levels
    if found < guide.goal_values.shape[0]:
        kept[at, 3 * looks] = UNKNOWN
    _forget_steps(guide, kept, at)


@inner
def _levels_at(guide: NetworkLooks, g: Number, step: Number) -> Number:
    """Where the levels that a step changes in a sum are kept."""
    groups = np.uint64(guide.place.shape[0])
    return np.uint64(3) * np.uint64(guide.group.shape[0]) + (ONE + np.uint64(step)) * groups + np.uint64(g)


@inner
def _forget_steps(guide: NetworkLooks, kept: I32, at: Number) -> None:
    first = _levels_at(guide, 0, 0)
    for k in range(guide.steps * guide.place.shape[0]):
        kept[at, first + np.uint64(k)] = UNKNOWN


@inner
def _code_after(
    guide: NetworkLooks, g: Number, look: Number, value: Number, left: Number, come: Number, kept: I32, at: Number
) -> Number:
    """The places of a look after the piece with this value has come from one place to another."""
    by = (come - left) << (np.uint64(guide.number[g, value]) * np.uint64(guide.bits))
    return (np.uint64(kept[at, look]) + by) & ALL_PLACES


@inner
def _share_after(guide: NetworkLooks, g: Number, look: Number, value: Number, left: Number, come: Number) -> Number:
    """By how much the sum of the shares of a look grows."""
    network, number = np.uint64(guide.network[look]), np.uint64(guide.number[g, value])
    return np.int64(guide.asked.packed.share[network, number, come]) - np.int64(guide.asked.packed.share[network, number, left])


@implements(update_kept, NetworkLooks)
def _update(
    guide: NetworkLooks,
    plan: Plan,
    context: Number,
    step: Number,
    states: States,
    row: Number,
    kept: I32,
    at: Number,
    to: Number,
) -> None:
    looks, groups = np.uint64(guide.group.shape[0]), guide.place.shape[0]
    landing = np.uint64(plan.landing[context, step])
    value = np.uint64(states[row, landing])
    for k in range(3 * guide.group.shape[0] + groups):
        kept[to, k] = kept[at, k]
    _forget_steps(guide, kept, to)
    for g in range(groups):
        look = np.uint64(guide.look[g, value])
        if look == NO_LOOK:
            continue
        come, left = np.uint64(guide.place[g, context]), np.uint64(guide.place[g, landing])
        code = _code_after(guide, g, look, value, left, come, kept, at)
        levels = np.int64(kept[at, _levels_at(guide, g, step)])
        if levels == UNKNOWN:
            levels = levels_of(guide.asked, guide.network[look], code)
        more, before = _share_after(guide, g, look, value, left, come), np.int64(kept[at, looks + looks + look])
        kept[to, look], kept[to, looks + looks + look] = np.int64(code), levels
        kept[to, looks + look] += more
        level = guide.asked.packed.step[guide.network[look]]
        kept[to, looks + looks + looks + np.uint64(g)] += more + level * (levels - before)


@implements(value_of, NetworkLooks)
def _largest_sum(guide: NetworkLooks, states: States, row: Number, kept: I32, at: Number) -> Number:
    looks, largest = guide.group.shape[0], np.int64(0)
    if kept[at, 3 * looks] == UNKNOWN:
        return np.float32(np.nan)
    for g in range(guide.place.shape[0]):
        largest = max(largest, np.int64(kept[at, 3 * looks + g]))
    return np.float32(largest)


@implements(value_after, NetworkLooks)
def _largest_sum_after(
    guide: NetworkLooks,
    plan: Plan,
    context: Number,
    step: Number,
    states: States,
    row: Number,
    kept: I32,
    at: Number,
    enough: Number,
) -> Number:
    """Where h0's shares and the levels of other looks are too much already, no network is asked."""
    looks, largest = np.uint64(guide.group.shape[0]), np.int64(0)
    landing = np.uint64(plan.landing[context, step])
    value = np.uint64(states[row, landing])
    for g in range(guide.place.shape[0]):
        look, total = np.uint64(guide.look[g, value]), np.int64(kept[at, looks + looks + looks + np.uint64(g)])
        if look != NO_LOOK:
            come, left = np.uint64(guide.place[g, context]), np.uint64(guide.place[g, landing])
            level = guide.asked.packed.step[guide.network[look]]
            total += _share_after(guide, g, look, value, left, come) - level * np.int64(kept[at, looks + looks + look])
            if total <= enough:
                levels = levels_of(guide.asked, guide.network[look], _code_after(guide, g, look, value, left, come, kept, at))
                kept[at, _levels_at(guide, g, step)] = levels
                total += level * levels
        if total > enough:
            return total
        largest = max(largest, total)
    return largest
