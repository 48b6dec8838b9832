"""Networks on patterns as compiled loops take them: first layers by pairs of codes, later layers one after another."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from undershoot.arrays import F32, I8, I32, I64, U8, Number, frozen
from undershoot.heuristics.families import BEYOND
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.kernels.compiler import called, compiled, inner
from undershoot.kernels.vectors import LANES, activate_sums, add_rows, hidden_layer, last_layer


class PackedNetworks(NamedTuple):
    """N networks of equal depth, each of which sees pairs of at most k pieces; layers are as wide as the widest."""

    sizes: I64
    """int64[N]: how many pieces a network follows."""
    share: I32
    """int32[N, k, M]: h0's shares."""
    step: I64
    """int64[N]: what a level stands for."""
    pair: I64
    """int64[N, k * k]: the first row of each pair of pieces, pair by pair, the second piece varying faster."""
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


class Desk(NamedTuple):
    """Where one thread works."""

    wanted: I64
    """int64[k * k]: the rows of an arrangement."""
    sums: I32
    """int32[k + 1, H]: of the first layer; of the first pieces alone, where arrangements come in order."""
    before: F32
    after: F32
    outputs: F32


def pack(networks: Sequence[PatternNetwork]) -> PackedNetworks:
    """Of networks that see pairs, and have as many layers as each other."""
    count, most = len(networks), max(len(network.pattern.followed) for network in networks)
    codes = max(network.residuals.share.shape[1] for network in networks)
    depth = len(networks[0].network.weights)
    widths = [max(_padded(network.network.widths[layer]) for network in networks) for layer in range(1, depth + 1)]
    share = np.zeros((count, most, codes), dtype=np.int32)
    pair = np.zeros((count, most * most), dtype=np.int64)
    rows: list[I8] = []
    for n, network in enumerate(networks):
        own = network.residuals.share
        share[n, : own.shape[0], : own.shape[1]] = own
        pair[n], made = _rows_of(network, most, codes, widths[0], sum(map(len, rows)))
        rows.append(made)
    later, scales = zip(*(_later_layers(network, widths) for network in networks), strict=True)
    return PackedNetworks(
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
    )


def desk(packed: PackedNetworks) -> Desk:
    """For one thread."""
    widest, most = int(packed.widths.max()), packed.share.shape[1]
    return Desk(
        np.zeros(most * most, dtype=np.int64),
        np.zeros((most + 1, packed.widths[0]), dtype=np.int32),
        np.zeros(widest, dtype=np.float32),
        np.zeros(widest, dtype=np.float32),
        np.zeros(packed.widths[-1], dtype=np.float32),
    )


def _padded(width: int) -> int:
    return -(-width // LANES) * LANES


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


@called
def finish_layers(packed: PackedNetworks, desk: Desk, network: Number, row: Number) -> None:
    """From desk.sums[row] to desk.outputs."""
    before, after, widths, last = desk.before, desk.after, packed.widths, packed.widths.shape[0] - 1
    position, neuron = np.int64(network) * packed.later.shape[1], np.int64(network) * packed.scales.shape[1]
    activate_sums(desk.sums, np.int64(row) * widths[0], widths[0], packed.scales, neuron, before)
    neuron += widths[0]
    for layer in range(1, last):
        inputs, width = widths[layer - 1], widths[layer]
        hidden_layer(packed.later, position, inputs, width, before, packed.scales, neuron, after)
        before, after = after, before
        position += (inputs + 1) * width
        neuron += width
    last_layer(packed.later, position, widths[last - 1], widths[last], before, packed.scales, 0, desk.outputs)


@inner
def passed_levels(packed: PackedNetworks, desk: Desk, network: Number) -> Number:
    """How many of desk.outputs, from the first on, lie above their thresholds."""
    passed = np.int64(0)
    while passed < packed.thresholds.shape[1] and desk.outputs[passed] > packed.thresholds[network, passed]:
        passed += 1
    return passed


@compiled
def sums_in_order(packed: PackedNetworks, desk: Desk, codes: U8, out: I32) -> None:
    """Write the whole sums of arrangements to out, int32[B, levels]. codes: uint8[B, k], of the only network; of an arrangement
    that begins as the one before it does, only what differs is added up anew."""
    pieces, width, most = codes.shape[1], packed.widths[0], packed.share.shape[2]
    for i in range(width):
        desk.sums[1, i] = packed.bias[0, i]
    for b in range(codes.shape[0]):
        same = 0
        while b > 0 and same < pieces and codes[b, same] == codes[b - 1, same]:
            same += 1
        for piece in range(max(1, same), pieces):
            for other in range(piece):
                # Pairs are counted with the second piece varying faster.
                token = other * pieces - other * (other + 1) // 2 + piece - other - 1
                row = np.int64(codes[b, other]) * most + np.int64(codes[b, piece])
                desk.wanted[other] = packed.pair[0, token] + row
            add_rows(desk.sums, piece * width, packed.rows, width, desk.wanted, piece, desk.sums[piece + 1])
        finish_layers(packed, desk, 0, pieces)
        for level in range(out.shape[1]):
            out[b, level] = np.int32(desk.outputs[level])
