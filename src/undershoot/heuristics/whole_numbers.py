"""Networks of whole numbers, whose values are the same, bit for bit, on any device.

Sums of whole numbers below 2^24 are exact in float32, in any order. What follows a sum of a hidden layer is one multiplication
and one rounding, which IEEE arithmetic defines to the last bit. The sums of the last layer are the answer; a sum of 1 stands
for its scale, and margins are whole thresholds on whole sums (see `families`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from undershoot.arrays import F32, I8, I32, I64, States, freeze_arrays
from undershoot.errors import UndershootError
from undershoot.kernels.encodings import dense
from undershoot.kernels.networks import HIGHEST_ACTIVATION
from undershoot.puzzles.encoding import Encoding

if TYPE_CHECKING:
    from undershoot.heuristics.neural import Network

HIGHEST_WEIGHT = 127
SUM_LIMIT = 2**24
"""float32 holds every whole number up to here."""
LOWEST_SCALE, HIGHEST_SCALE = 2.0**-64, 2.0**64
"""Within these, no product overflows or loses bits by being subnormal, which devices treat differently."""


@dataclass(frozen=True, eq=False)
class WholeNetwork:
    """A multilayer perceptron with whole weights, biases and activations, and one output or several levels.

    sums = inputs @ weights + biases; a hidden activation is sum * scale, rounded to the nearest whole number, halves to
    even, and clamped to 0..255; the outputs are the sums, each of 1 standing for its scale. Inputs are 0 or 1. No sum can reach
    2^24.
    """

    weights: tuple[I8, ...]
    """int8[in, out] each, -127..127."""
    biases: tuple[I32, ...]
    """int32[out] each."""
    scales: tuple[F32, ...]
    """float32[out] each, 2^-64..2^64."""

    def __post_init__(self) -> None:
        widths = [w.shape[1] for w in self.weights]
        fits = len(self.weights) == len(self.biases) == len(self.scales) >= 2
        fits = fits and all(b.shape == s.shape == (n,) for b, s, n in zip(self.biases, self.scales, widths, strict=True))
        if not fits or any(w.shape[0] != width for w, width in zip(self.weights[1:], widths, strict=False)):
            shapes = ", ".join(f"{w.shape}" for w in self.weights)
            raise UndershootError(f"these layers do not follow one another: {shapes}")
        layers = zip(self.weights, self.biases, self.scales, strict=True)
        for number, (weight, bias, scale) in enumerate(layers):
            _check_layer(number, weight, bias, scale)
        freeze_arrays(self)

    @property
    def widths(self) -> tuple[int, ...]:
        """From the input to the output."""
        return (*(w.shape[0] for w in self.weights), self.weights[-1].shape[1])


def _check_layer(number: int, weight: I8, bias: I32, scale: F32) -> None:
    kinds = ", ".join(str(array.dtype) for array in (weight, bias, scale))
    if kinds != "int8, int32, float32":
        raise UndershootError(
            f"layer {number} holds weights, biases and scales as {kinds}; a network of whole numbers has int8, int32, float32"
        )
    if (weight < -HIGHEST_WEIGHT).any():
        raise UndershootError(
            f"layer {number} has the weight {weight.min()}; whole weights lie in -{HIGHEST_WEIGHT}..{HIGHEST_WEIGHT}"
        )
    if not ((scale >= LOWEST_SCALE) & (scale <= HIGHEST_SCALE)).all():
        raise UndershootError(f"layer {number} has scales that are not between 2^-64 and 2^64; convert the network again")
    largest = largest_sums(number, weight, bias)
    if (largest >= SUM_LIMIT).any():
        neuron = int(largest.argmax())
        raise UndershootError(
            f"the sum of neuron {neuron} of layer {number} can reach {largest[neuron]:,}; only below {SUM_LIMIT:,} are sums "
            "exact. Convert the network again, or make its layers narrower"
        )


def largest_sums(number: int, weight: I8, bias: I32) -> I64:
    """int64[out]: what no sum of layer `number`, nor any part of one, can exceed, either side of 0."""
    highest = HIGHEST_ACTIVATION if number else 1
    total: I64 = np.abs(weight.astype(np.int64)).sum(axis=0)
    return highest * total + np.abs(bias.astype(np.int64))


def to_whole_numbers(network: "Network", encoding: Encoding, states: States) -> WholeNetwork:
    """A network of whole numbers that says almost what `network` says.

    states: uint8[B, n], B > 0, of the kind it will be asked about, some thousands; they set the range of the activations,
    and biases are such that the sums over them are right on average.
    """
    if len(states) == 0:
        raise UndershootError("a network cannot be made whole without states; give some thousands")
    exact = whole = dense(encoding, states).astype(np.float64)
    unit, highest = 1.0, 1  # an input of 1 stands for `unit`
    weights, biases, scales = [], [], []
    for number, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        exact = exact @ weight.astype(np.float64) + bias
        fine = weight.astype(np.float64) * unit
        # A weight of 1 stands for `step`; that is coarser where the sum would come near its limit, at half of which
        # there is room for what rounding and the mended bias add.
        reach = highest * np.abs(fine).sum(axis=0) + np.abs(bias)
        step = np.maximum(np.abs(fine).max(axis=0) / HIGHEST_WEIGHT, reach / (SUM_LIMIT / 2))
        step[step == 0] = 1.0
        weights.append(np.rint(fine / step).astype(np.int8))
        sums = whole @ weights[-1].astype(np.float64)
        # Rounding all the weights of a neuron shifts its sums; over the given states the bias takes that back.
        biases.append(np.rint((exact / step - sums).mean(axis=0)).astype(np.int32))
        sums += biases[-1]
        is_last = number == len(network.weights) - 1
        if not is_last:
            exact = np.maximum(exact, 0)
            # One unit for the whole layer: a neuron that goes higher than it was seen to go is then rarely cut off.
            unit, highest = float(exact.max()) / HIGHEST_ACTIVATION or 1.0, HIGHEST_ACTIVATION
        # Scales beyond the limits belong to neurons that are as good as always 0, or at once at 255.
        scale = np.clip(step if is_last else step / unit, LOWEST_SCALE, HIGHEST_SCALE).astype(np.float32)
        scales.append(scale)
        whole = np.clip(np.rint(sums * scale), 0, HIGHEST_ACTIVATION)
    return WholeNetwork(tuple(weights), tuple(biases), tuple(scales))
