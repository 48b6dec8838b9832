"""Multilayer perceptrons on the CPU, compiled.

Sums run in one fixed order without fused or reordered operations, so a state has the same value, bit for bit, in any
batch, on any thread and on any machine with IEEE arithmetic.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from undershoot.arrays import F32, I8, I32, I64, U16, Number, States, frozen
from undershoot.kernels.compiler import called, compiled, inner

LANES = 16
"""Widths of hidden layers are padded to multiples of this with units that are always 0."""
BLOCK = 32
HIGHEST_ACTIVATION = 255
"""Of a network of whole numbers. Its activations fit in 8 bits."""


class Perceptron(NamedTuple):
    """ReLU between layers; or a network of whole numbers, see `WholeNetwork`."""

    features: I32
    """int32[T, M, K]: the inputs that each token switches on; -1 for none. See `Encoding`."""
    flat: F32
    """Weights [in, out], row by row, and then the bias, layer after layer."""
    sizes: I64
    """int64[L + 1], widths from the input to the output, hidden ones padded."""
    scales: F32
    """Of every hidden neuron of a network of whole numbers, layer after layer, padded likewise; otherwise empty."""


def perceptron(
    features: I32, weights: Sequence[F32 | I8], biases: Sequence[F32 | I32], scales: Sequence[F32] = ()
) -> Perceptron:
    """weights[l]: [in, out]; biases[l], scales[l]: [out], scales of hidden layers only. Without scales, of float32."""
    sizes = [weights[0].shape[0]] + [-(-w.shape[1] // LANES) * LANES for w in weights[:-1]] + [weights[-1].shape[1]]
    parts = []
    for weight, bias, rows, columns in zip(weights, biases, sizes[:-1], sizes[1:], strict=True):
        padded = np.zeros((rows + 1, columns), dtype=np.float32)
        padded[: weight.shape[0], : weight.shape[1]] = weight
        padded[rows, : len(bias)] = bias
        parts.append(padded.ravel())
    flat_scales = np.zeros(sum(sizes[1:-1]) if scales else 0, dtype=np.float32)
    for at, scale in zip(np.cumsum([0, *sizes[1:-2]]), scales, strict=False):
        flat_scales[at : at + len(scale)] = scale
    flat, widths = np.concatenate(parts), np.array(sizes, dtype=np.int64)
    return Perceptron(frozen(np.ascontiguousarray(features)), frozen(flat), frozen(widths), frozen(flat_scales))


@compiled
def outputs(network: Perceptron, tokens: States | U16) -> F32:
    """float32[B, out]; of a network of whole numbers, the sums.

    A layer at a time over a block of states, while its weights are at hand.
    """
    flat, sizes, scales = network.flat, network.sizes, network.scales
    count, layers = tokens.shape[0], sizes.shape[0] - 1
    result = np.empty((count, sizes[layers]), dtype=np.float32)
    widest = sizes[1:].max()
    before, after = np.zeros((BLOCK, widest), dtype=np.float32), np.zeros((BLOCK, widest), dtype=np.float32)
    active = np.zeros(widest, dtype=np.int64)
    _check_tokens(network.features, tokens)
    for start in range(0, count, BLOCK):
        rows = min(BLOCK, count - start)
        for r in range(rows):
            _first(network.features, flat, sizes[0], sizes[1], tokens[start + r], before[r])
            activate(scales, 0, sizes[1], before[r])
        at, neuron = (sizes[0] + 1) * sizes[1], sizes[1]
        for layer in range(1, layers - 1):
            inputs, width = sizes[layer], sizes[layer + 1]
            for r in range(rows):
                dense_layer(flat, at, inputs, width, before[r], active, after[r])
                activate(scales, neuron, width, after[r])
            before, after = after, before
            at += (inputs + 1) * width
            neuron += width
        for r in range(rows):
            dense_layer(flat, at, sizes[layers - 1], sizes[layers], before[r], active, result[start + r])
    return result


@compiled
def _check_tokens(features: I32, tokens: States | U16) -> None:
    for b in range(tokens.shape[0]):
        for i in range(tokens.shape[1]):
            if tokens[b, i] >= features.shape[1]:
                raise ValueError("a value is out of range")


@compiled
def first_layer(features: I32, weight: F32, bias: F32, tokens: States | U16) -> F32:
    """float32[B, out]: what the dense layer gives for the encoded states, as a sum of rows of weight, float32[in, out]."""
    out = np.empty((tokens.shape[0], weight.shape[1]), dtype=np.float32)
    for b in range(tokens.shape[0]):
        for j in range(weight.shape[1]):
            out[b, j] = bias[j]
        for i in range(tokens.shape[1]):
            for k in range(features.shape[2]):
                feature = features[i, tokens[b, i], k]
                if feature >= 0:
                    for j in range(weight.shape[1]):
                        out[b, j] += weight[feature, j]
    return out


@compiled
def first_layer_gradient(features: I32, inputs: Number, gradient: F32, tokens: States | U16) -> F32:
    """float32[inputs, out]: of the weight, where `gradient`, float32[B, out], is that of the layer's output."""
    result = np.zeros((inputs, gradient.shape[1]), dtype=np.float32)
    for b in range(tokens.shape[0]):
        for i in range(tokens.shape[1]):
            for k in range(features.shape[2]):
                feature = features[i, tokens[b, i], k]
                if feature >= 0:
                    for j in range(gradient.shape[1]):
                        result[feature, j] += gradient[b, j]
    return result


class Workbench(NamedTuple):
    """Where one state at a time goes through a network."""

    before: F32
    """float32[widest]: the activations of a layer, and below those of the next."""
    after: F32
    active: I64
    """int64[widest]: the inputs of a layer that are not 0."""
    outputs: F32


def workbench(network: Perceptron) -> Workbench:
    """For one thread."""
    widest = int(network.sizes[1:].max())
    before, after = np.zeros((2, widest), dtype=np.float32)
    return Workbench(before, after, np.zeros(widest, dtype=np.int64), np.zeros(network.sizes[-1], dtype=np.float32))


@called
def write_outputs(network: Perceptron, bench: Workbench, tokens: U16) -> None:
    """To bench.outputs, what `outputs` gives for one state, uint16[T], bit for bit."""
    flat, sizes, scales = network.flat, network.sizes, network.scales
    layers, width = sizes.shape[0] - 1, sizes[1]
    before, after = bench.before, bench.after
    _first(network.features, flat, sizes[0], width, tokens, before)
    activate(scales, 0, width, before)
    at, neuron = (sizes[0] + 1) * width, width
    for layer in range(1, layers - 1):
        inputs, width = sizes[layer], sizes[layer + 1]
        dense_layer(flat, at, inputs, width, before, bench.active, after)
        activate(scales, neuron, width, after)
        before, after = after, before
        at += (inputs + 1) * width
        neuron += width
    dense_layer(flat, at, sizes[layers - 1], sizes[layers], before, bench.active, bench.outputs)


@inner
def _first(features: I32, flat: F32, inputs: Number, width: Number, tokens: U16, out: F32) -> None:
    bias = flat[inputs * width : (inputs + 1) * width]
    for j in range(width):
        out[j] = bias[j]
    for i in range(features.shape[0]):
        for k in range(features.shape[2]):
            feature = np.int64(features[i, tokens[i], k])
            if feature >= 0:
                row = flat[feature * width : (feature + 1) * width]
                for j in range(width):
                    out[j] += row[j]


@called
def dense_layer(flat: F32, at: Number, inputs: Number, width: Number, a: F32, active: I64, out: F32) -> None:
    """Inputs that are 0, most of them, add nothing and are left out; the others come in order, several at a time."""
    bias = flat[at + inputs * width : at + (inputs + 1) * width]
    for j in range(width):
        out[j] = bias[j]
    count = 0
    for k in range(inputs):
        active[count] = k
        count += a[k] != 0
    k = 0
    while k + 4 <= count:
        k0, k1, k2, k3 = active[k], active[k + 1], active[k + 2], active[k + 3]
        a0, a1, a2, a3 = a[k0], a[k1], a[k2], a[k3]
        # As slices, so that the compiler sees that no index is negative, and takes many columns at once.
        w0, w1 = flat[at + k0 * width : at + (k0 + 1) * width], flat[at + k1 * width : at + (k1 + 1) * width]
        w2, w3 = flat[at + k2 * width : at + (k2 + 1) * width], flat[at + k3 * width : at + (k3 + 1) * width]
        for j in range(width):
            out[j] = (((out[j] + a0 * w0[j]) + a1 * w1[j]) + a2 * w2[j]) + a3 * w3[j]
        k += 4
    while k < count:
        last, row = a[active[k]], flat[at + active[k] * width : at + (active[k] + 1) * width]
        for j in range(width):
            out[j] += last * row[j]
        k += 1


@inner
def activate(scales: F32, neuron: Number, width: Number, out: F32) -> None:
    """From sums to activations: ReLU, or for whole numbers the nearest one in 0..255, halves to even."""
    own = scales[neuron : neuron + width]
    if scales.size == 0:
        for j in range(width):
            out[j] = max(out[j], np.float32(0))
        return
    # Between 2^23 and 2^24 the numbers of float32 are the whole ones: adding 2^23 rounds, and unlike rint is vectorised.
    rounder = np.float32(2**23)
    for j in range(width):
        inside = min(max(out[j] * own[j], np.float32(0)), np.float32(HIGHEST_ACTIVATION))
        out[j] = (inside + rounder) - rounder
