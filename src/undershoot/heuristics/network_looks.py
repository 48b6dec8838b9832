"""Networks on patterns inside compiled loops, for sliding tiles: one step moves one piece.

A search meets the same arrangement of a few pieces again and again, while the others move. So what a network says is kept in a
small memory, by the arrangement; only what is not found there goes through the network.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from undershoot.arrays import F32, I8, I32, I64, U8, U64, Number, States, frozen
from undershoot.heuristics.families import BEYOND
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.heuristics.sliding_looks import ALL_PLACES, NO_LOOK, NONE, ONE, PLACE_BITS
from undershoot.kernels.compiler import called, inner
from undershoot.kernels.guides import implements, kept_size, make_kept, update_kept, value_after, value_of
from undershoot.kernels.plan import Plan, forward_plan
from undershoot.kernels.vectors import LANES, activate_sums, add_rows, hidden_layer, last_layer
from undershoot.pattern_tables.looks import Look
from undershoot.puzzles.pieces import Pieces

UNKNOWN = -1
REMEMBERED_BITS = 16
"""2^16 arrangements are remembered, each by the last one that came to its place."""
SPREAD = np.uint64(0x9E3779B97F4A7C15)
LEVEL_BITS = np.uint64(8)


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
    sizes: I64
    """int64[N]: how many pieces a network follows."""
    share: I32
    """int32[N, k, M]: h0's shares."""
    step: I64
    """int64[N]: what a level stands for."""
    pair: I64
    """int64[N, k * k]: the first row of each pair of pieces, pair by pair."""
    rows: I8
    """int8[R, H]: the first layers, a row for each pair of codes, the first piece's varying slower."""
    bias: I32
    """int32[N, H]."""
    later: F32
    """float32[N, ...]: weights [in, out] and then the bias, layer after layer."""
    widths: I64
    """int64[layers + 1], from H on."""
    scales: F32
    """float32[N, ...], of hidden neurons."""
    thresholds: F32
    """float32[N, K]."""
    goal_values: U8
    remembered: U64
    """uint64[2^16]: an arrangement and its network, and the levels that were passed."""
    wanted: I64
    """int64[k * k]: the rows of an arrangement, and below where it goes through a network."""
    sums: I32
    before: F32
    after: F32
    outputs: F32


def with_own_memory(guide: NetworkLooks) -> NetworkLooks:
    """The same for another thread, with nothing remembered."""
    own = ("remembered", "wanted", "sums", "before", "after", "outputs")
    return guide._replace(**{name: np.zeros_like(getattr(guide, name)) for name in own})


def _padded(width: int) -> int:
    return -(-width // LANES) * LANES


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
    count, most = len(networks), max(len(network.pattern.followed) for network in networks)
    codes = max(network.residuals.share.shape[1] for network in networks)
    depth = len(networks[0].network.weights)
    hidden = [max(_padded(network.network.widths[layer]) for network in networks) for layer in range(1, depth)]
    widths = [*hidden, max(_padded(network.network.widths[-1]) for network in networks)]
    share = np.zeros((count, most, codes), dtype=np.int32)
    pair = np.zeros((count, most * most), dtype=np.int64)
    rows: list[I8] = []
    for n, network in enumerate(networks):
        own = network.residuals.share
        share[n, : own.shape[0], : own.shape[1]] = own
        pair[n], made = _rows_of(network, most, codes, widths[0], sum(map(len, rows)))
        rows.append(made)
    later, scales = zip(*(_later_layers(network, widths) for network in networks), strict=True)
    widest = max(widths)
    return NetworkLooks(
        forward_plan(table).legal.shape[1],
        bits,
        frozen(place),
        frozen(which),
        frozen(index),
        frozen(np.array(group_of, dtype=np.uint8)),
        frozen(np.array(network_of, dtype=np.uint8)),
        frozen(np.array([len(network.pattern.followed) for network in networks], dtype=np.int64)),
        frozen(share),
        frozen(np.array([network.residuals.step for network in networks], dtype=np.int64)),
        frozen(pair),
        frozen(np.concatenate(rows)),
        frozen(np.stack([_filled(network.network.biases[0], widths[0]) for network in networks])),
        frozen(np.stack(later)),
        frozen(np.array(widths, dtype=np.int64)),
        frozen(np.stack(scales)),
        frozen(np.stack([_thresholds(network, widths[-1]) for network in networks])),
        frozen(np.unique(table.goals[0])),
        np.zeros(1 << REMEMBERED_BITS, dtype=np.uint64),
        np.zeros(most * most, dtype=np.int64),
        np.zeros(widths[0], dtype=np.int32),
        np.zeros(widest, dtype=np.float32),
        np.zeros(widest, dtype=np.float32),
        np.zeros(widths[-1], dtype=np.float32),
    )


def _rows_of(network: PatternNetwork, most: int, codes: int, width: int, first: int) -> tuple[I64, I8]:
    """Where the rows of each pair begin, int64[most * most], and the rows, int8[R, width], by the codes of the earlier and the
    later piece; 0 for codes that no two pieces have at once."""
    encoding, size = network.encoding, network.residuals.share.shape[1]
    weight, count = network.network.weights[0], encoding.features.shape[0]
    rows = np.zeros((count, codes, codes, width), dtype=np.int8)
    for token in range(count):
        for value, feature in enumerate(encoding.features[token, :, 0].tolist()):
            if feature >= 0:
                rows[token, value // size, value % size, : weight.shape[1]] = weight[feature]
    pair = np.zeros(most * most, dtype=np.int64)
    pair[:count] = first + np.arange(count) * codes * codes
    return pair, rows.reshape(-1, width)


def _filled(array: I32, width: int) -> I32:
    return np.concatenate([array, np.zeros(width - len(array), dtype=array.dtype)])


def _later_layers(network: PatternNetwork, widths: Sequence[int]) -> tuple[F32, F32]:
    whole, parts = network.network, []
    for layer in range(1, len(whole.weights)):
        padded = np.zeros((widths[layer - 1] + 1, widths[layer]), dtype=np.float32)
        weight, bias = whole.weights[layer], whole.biases[layer]
        padded[: weight.shape[0], : weight.shape[1]] = weight
        padded[-1, : len(bias)] = bias
        parts.append(padded.ravel())
    scales = np.zeros(sum(widths[:-1]), dtype=np.float32)
    for at, scale in zip(np.cumsum([0, *widths[:-2]]), whole.scales[:-1], strict=True):
        scales[at : at + len(scale)] = scale
    return np.concatenate(parts), scales


def _thresholds(network: PatternNetwork, levels: int) -> F32:
    result = np.full(levels, BEYOND, dtype=np.float32)
    result[: len(network.thresholds)] = network.thresholds
    return result


@implements(kept_size, NetworkLooks)
def _size(guide: NetworkLooks) -> Number:
    return 3 * guide.group.shape[0] + (1 + guide.steps) * guide.place.shape[0]


@inner
def _levels(guide: NetworkLooks, look: Number, code: Number) -> Number:
    """How many levels a look passes, remembered or found out."""
    network = np.uint64(guide.network[look])
    key = ((network << np.uint64(PLACE_BITS)) | code) + ONE
    slot = (key * SPREAD) >> np.uint64(64 - REMEMBERED_BITS)
    known = guide.remembered[slot]
    if known >> LEVEL_BITS == key:
        return np.int64(known & np.uint64(255))
    levels = _ask_network(guide, network, code)
    guide.remembered[slot] = (key << LEVEL_BITS) | np.uint64(levels)
    return levels


@called
def _ask_network(guide: NetworkLooks, network: Number, code: Number) -> Number:
    """How many levels a network says of these places."""
    count, token, bits = np.uint64(guide.sizes[network]), NONE, np.uint64(guide.bits)
    mask, codes = (ONE << bits) - ONE, np.uint64(guide.share.shape[2])
    for first in range(count):
        row = ((code >> (np.uint64(first) * bits)) & mask) * codes
        for second in range(np.uint64(first) + ONE, count):
            inside = row + ((code >> (np.uint64(second) * bits)) & mask)
            guide.wanted[token] = guide.pair[network, token] + np.int64(inside)
            token += ONE
    before, after, widths, last = guide.before, guide.after, guide.widths, guide.widths.shape[0] - 1
    position, neuron = np.int64(network) * guide.later.shape[1], np.int64(network) * guide.scales.shape[1]
    add_rows(guide.bias, np.int64(network) * widths[0], guide.rows, widths[0], guide.wanted, token, guide.sums)
    activate_sums(guide.sums, 0, widths[0], guide.scales, neuron, before)
    neuron += widths[0]
    for layer in range(1, last):
        inputs, width = widths[layer - 1], widths[layer]
        hidden_layer(guide.later, position, inputs, width, before, guide.scales, neuron, after)
        before, after = after, before
        position += (inputs + 1) * width
        neuron += width
    last_layer(guide.later, position, widths[last - 1], widths[last], before, guide.scales, 0, guide.outputs)
    passed = np.int64(0)
    while passed < guide.thresholds.shape[1] and guide.outputs[passed] > guide.thresholds[network, passed]:
        passed += 1
    return passed


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
                        kept[at, np.uint64(looks) + look] += guide.share[guide.network[look], number, place]
                break
    for k in range(looks):
        if found == guide.goal_values.shape[0]:
            levels = _levels(guide, np.uint64(k), np.uint64(kept[at, k]) & ALL_PLACES)
            kept[at, 2 * looks + k] = levels
            kept[at, 3 * looks + guide.group[k]] += kept[at, looks + k] + guide.step[guide.network[k]] * levels
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
    return np.int64(guide.share[network, number, come]) - np.int64(guide.share[network, number, left])


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
            levels = _levels(guide, look, code)
        more, before = _share_after(guide, g, look, value, left, come), np.int64(kept[at, looks + looks + look])
        kept[to, look], kept[to, looks + looks + look] = np.int64(code), levels
        kept[to, looks + look] += more
        kept[to, looks + looks + looks + np.uint64(g)] += more + guide.step[guide.network[look]] * (levels - before)


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
            level = guide.step[guide.network[look]]
            total += _share_after(guide, g, look, value, left, come) - level * np.int64(kept[at, looks + looks + look])
            if total <= enough:
                levels = _levels(guide, look, _code_after(guide, g, look, value, left, come, kept, at))
                kept[at, _levels_at(guide, g, step)] = levels
                total += level * levels
        if total > enough:
            return total
        largest = max(largest, total)
    return largest
