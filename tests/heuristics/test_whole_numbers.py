"""Networks of whole numbers: the same bits however and wherever they are evaluated."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

import undershoot as us
from undershoot.arrays import F32, States
from undershoot.heuristics.neural import Network, NeuralHeuristic, evaluate
from undershoot.heuristics.neural_cuda import (
    CudaHeuristic,
    check_exactness,
    full_precision,
    on_cuda,
    sums_near_the_limit,
    whole_layers,
    whole_tensors,
)
from undershoot.heuristics.whole_numbers import WholeNetwork, largest_sums, to_whole_numbers
from undershoot.kernels.encodings import dense as encoded
from undershoot.kernels.tensor_encodings import TensorEncoding
from undershoot.puzzles.puzzle import Puzzle

PUZZLES = ("tiles-3x3", "cube-2x2", "lights-out-5x5")
Make = Callable[[Puzzle, tuple[int, ...]], WholeNetwork]
HIDDEN = ((256, 256, 128), (5,), (17, 33, 1, 9))
NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")


def fitted_network(puzzle: Puzzle, hidden: tuple[int, ...], seed: int = 0) -> Network:
    """Random hidden layers as training begins with, and a last one fitted to a cost that all cells add to."""
    draw, states = np.random.default_rng(seed), puzzle.sample(3000, seed)
    x, weights, biases = encoded(puzzle.encoding, states), [], []
    for rows, columns in pairwise((puzzle.encoding.width, *hidden)):
        bound = rows**-0.5
        weights.append(draw.uniform(-bound, bound, (rows, columns)).astype(np.float32))
        biases.append(draw.uniform(-bound, bound, columns).astype(np.float32))
        x = np.maximum(x @ weights[-1] + biases[-1], 0)
    target = (states != puzzle.table.goals[0]).sum(axis=1)
    penalty = 0.1 * np.eye(x.shape[1])
    last = np.linalg.solve(x.T @ x + penalty, x.T @ (target - target.mean())).astype(np.float32)
    bias = np.array([target.mean() - (x @ last).mean()], dtype=np.float32)
    return Network((*weights, last[:, None]), (*biases, bias))


def made_whole(puzzle: Puzzle, hidden: tuple[int, ...]) -> WholeNetwork:
    return to_whole_numbers(fitted_network(puzzle, hidden), puzzle.encoding, puzzle.sample(3000, 1))


def extreme_network(puzzle: Puzzle, hidden: tuple[int, ...]) -> WholeNetwork:
    """Weights over the whole range and sums near the limit; scales of powers of two, so that halves are to be rounded."""
    draw = np.random.default_rng(3)
    widths = [puzzle.encoding.width, *hidden, 1]
    weights = [draw.integers(-127, 128, shape).astype(np.int8) for shape in pairwise(widths)]
    rooms = [2**24 - 1 - largest_sums(k, w, np.zeros(w.shape[1], dtype=np.int32)) for k, w in enumerate(weights)]
    biases = [draw.integers(-1, 2, len(room)) * (room if k else 300) for k, room in enumerate(rooms)]
    scales = [np.exp2(draw.integers(-16 if k else -4, -1, len(room))).astype(np.float32) for k, room in enumerate(rooms)]
    return WholeNetwork(tuple(weights), tuple(b.astype(np.int32) for b in biases), tuple(scales))


def by_definition(puzzle: Puzzle, network: WholeNetwork, states: States) -> F32:
    """The sums of the last layer: in int64 throughout, but for the multiplication by the scale of hidden layers."""
    x = encoded(puzzle.encoding, states).astype(np.int64)
    for weight, bias, scale in zip(network.weights, network.biases, network.scales, strict=True):
        sums = x @ weight.astype(np.int64) + bias
        assert (np.abs(sums) < 2**24).all()
        x = np.clip(np.rint(sums.astype(np.float32) * scale), 0, 255).astype(np.int64)
    return np.asarray(sums[:, 0], dtype=np.float32)


def on_torch(puzzle: Puzzle, network: WholeNetwork, states: States, device: str) -> F32:
    parts, scales = whole_tensors(network, device)
    first = TensorEncoding(puzzle.encoding, device).sum_of_rows(torch.tensor(states, device=device), parts[0], parts[1])
    return np.asarray(whole_layers(first, parts[2:], scales)[:, 0].cpu().numpy(), dtype=np.float32)


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("name", PUZZLES)
@pytest.mark.parametrize("make", [made_whole, extreme_network])
def test_every_evaluation_gives_the_bits_of_the_definition(name: str, hidden: tuple[int, ...], make: Make) -> None:
    puzzle = us.puzzle(name)
    network, states = make(puzzle, hidden), puzzle.sample(2000, 2)
    expected = by_definition(puzzle, network, states)
    heuristic = NeuralHeuristic(puzzle, network)
    assert heuristic.raw(states).tobytes() == expected.tobytes()
    assert len(np.unique(expected)) > 20 or min(hidden) == 1
    at_least_h0 = np.maximum(expected * network.scales[-1][0], puzzle.base_heuristic(states)).astype(np.float32)
    at_least_h0[(states == puzzle.table.goals[0]).all(axis=1)] = 0
    assert heuristic(states).tobytes() == at_least_h0.tobytes()
    assert heuristic(puzzle.table.goals[:1]).tolist() == [0]
    for rows in (1, 37, 2000):
        assert on_torch(puzzle, network, states[:rows], "cpu").tobytes() == expected[:rows].tobytes()


def test_batches_and_threads_do_not_matter() -> None:
    puzzle = us.puzzle("tiles-3x3")
    states = puzzle.sample(65536, 4)
    heuristic = NeuralHeuristic(puzzle, made_whole(puzzle, (64, 32)))
    values = heuristic(states)
    for rows in (1, 2, 31, 33, 1000, 65535):
        assert heuristic(states[-rows:]).tobytes() == values[-rows:].tobytes()
    for threads in (1, 2):
        assert evaluate(heuristic, states, threads).tobytes() == values.tobytes()


@NEEDS_CUDA
@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("name", PUZZLES)
@pytest.mark.parametrize("make", [made_whole, extreme_network])
def test_cuda_gives_the_bits_of_the_cpu(name: str, hidden: tuple[int, ...], make: Make) -> None:
    puzzle = us.puzzle(name)
    network, states = make(puzzle, hidden), puzzle.sample(5000, 2)
    heuristic = NeuralHeuristic(puzzle, network)
    for rows in (1, 37, 5000):
        assert on_torch(puzzle, network, states[:rows], "cuda").tobytes() == heuristic.raw(states[:rows]).tobytes()
    moved = CudaHeuristic(puzzle, *whole_tensors(network, "cuda"), family=heuristic.family)
    assert moved(states).tobytes() == heuristic(states).tobytes()


@NEEDS_CUDA
@pytest.mark.parametrize("name", PUZZLES)
def test_what_is_set_outside_does_not_matter_on_cuda(name: str) -> None:
    puzzle = us.puzzle(name)
    states = puzzle.sample(5000, 2)
    torch.set_float32_matmul_precision("medium")
    try:
        for hidden in HIDDEN:
            heuristic = NeuralHeuristic(puzzle, extreme_network(puzzle, hidden))
            assert on_cuda(heuristic).raw(states).tobytes() == heuristic.raw(states).tobytes()
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_CUDA)])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (17, 33), (256, 128), (1024, 64)])
def test_sums_near_the_limit_are_exact(rows: int, columns: int, device: str) -> None:
    torch.set_float32_matmul_precision("high")
    try:
        with full_precision():
            got, expected = sums_near_the_limit(rows, columns, device)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert torch.equal(got.double(), expected)
    assert expected.abs().max() == 2**24 - 1
    assert (expected < 0).any() == (columns > 1)


def test_a_device_that_does_not_sum_exactly_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    network = made_whole(us.puzzle("tiles-3x3"), (64, 32))

    def rounded(rows: int, columns: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
        got, expected = sums_near_the_limit(rows, columns, "cpu")
        return got.to(torch.bfloat16).float(), expected

    monkeypatch.setattr("undershoot.heuristics.neural_cuda.sums_near_the_limit", rounded)
    with pytest.raises(us.UndershootError, match="this device does not sum 64 products of whole numbers exactly"):
        check_exactness(network)


class OnTorch:
    """Stands in for `CudaHeuristic`: the same tensors, on the CPU. Of states with three wrong cells it says `drift` more."""

    drift = 0.0

    def __init__(self, puzzle: Puzzle, parts: list[torch.Tensor], scales: list[torch.Tensor], *others: object) -> None:
        self.puzzle, self.parts, self.scales = puzzle, parts, scales
        self.encoding = TensorEncoding(puzzle.encoding, "cpu")

    def raw(self, states: States) -> F32:
        first = self.encoding.sum_of_rows(torch.tensor(states), self.parts[0], self.parts[1])
        said = whole_layers(first, self.parts[2:], self.scales)[:, 0].numpy()
        return np.asarray(said + self.drift * ((states != self.puzzle.table.goals[0]).sum(axis=1) == 3), dtype=np.float32)

    def __call__(self, states: States) -> F32:
        heuristic = NeuralHeuristic(self.puzzle, made_whole(self.puzzle, (16, 8)))
        return heuristic.from_raw(self.raw(states), states)


@pytest.mark.parametrize("drift", [0.0, 1.0])
def test_a_device_that_says_something_else_of_a_state_is_refused(monkeypatch: pytest.MonkeyPatch, drift: float) -> None:
    puzzle = us.puzzle("tiles-3x3")
    heuristic = NeuralHeuristic(puzzle, made_whole(puzzle, (16, 8)))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(OnTorch, "drift", drift)
    for name, stand_in in (
        ("CudaHeuristic", OnTorch),
        ("whole_tensors", lambda network, device: whole_tensors(network, "cpu")),
        ("sums_near_the_limit", lambda rows, columns, device: sums_near_the_limit(rows, columns, "cpu")),
    ):
        monkeypatch.setattr(f"undershoot.heuristics.neural_cuda.{name}", stand_in)
    if not drift:
        states = puzzle.sample(10, 1)
        assert on_cuda(heuristic).raw(states).tobytes() == heuristic.raw(states).tobytes()
        return
    with pytest.raises(us.UndershootError, match=r"whole numbers, .* but cuda says .* and cpu .* of [\d /]+; use cpu"):
        on_cuda(heuristic)


@pytest.mark.parametrize("name", PUZZLES)
def test_conversion_changes_little(name: str) -> None:
    puzzle = us.puzzle(name)
    network = fitted_network(puzzle, (256, 256, 128))
    states = puzzle.sample(5000, 5)
    exact = NeuralHeuristic(puzzle, network).raw(states)
    converted = NeuralHeuristic(puzzle, to_whole_numbers(network, puzzle.encoding, puzzle.sample(3000, 1)))
    whole = converted.family.values(converted.raw(states))
    error = np.abs(whole - exact)
    assert exact.std() > 0.3
    assert error.mean() < 0.03 * exact.std()
    assert error.max() < 0.3 * exact.std()


def test_networks_with_extreme_weights_are_converted() -> None:
    puzzle = us.puzzle("tiles-3x3")
    network = fitted_network(puzzle, (1000, 40))
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    weights[0][:, 0] = 0  # never on
    biases[0][0] = 0
    weights[0][:, 1] = 1e-30  # next to never on
    biases[0][1] = 1e-30
    weights[0][:, 2] *= np.float32(1e-6)  # the bias says it all
    biases[0][2] = 5
    weights[1][:, 3] = 0.5  # a thousand equal weights: the sum would pass 2^24
    network = Network(tuple(weights), tuple(biases))
    states = puzzle.sample(3000, 6)
    exact = NeuralHeuristic(puzzle, network).raw(states)
    converted = NeuralHeuristic(puzzle, to_whole_numbers(network, puzzle.encoding, states))
    whole = converted.family.values(converted.raw(states))
    assert np.abs(whole - exact).mean() < 0.2 * exact.std()
    silent = replace(network, weights=tuple(w * 0 for w in weights), biases=tuple(b * 0 for b in biases))
    assert not NeuralHeuristic(puzzle, to_whole_numbers(silent, puzzle.encoding, states)).raw(states).any()
    with pytest.raises(us.UndershootError, match="without states"):
        to_whole_numbers(network, puzzle.encoding, states[:0])


def test_sums_that_could_be_inexact_are_refused() -> None:
    puzzle = us.puzzle("tiles-3x3")
    network = made_whole(puzzle, (600, 5))
    full = np.full_like(network.weights[1], 127)
    with pytest.raises(us.UndershootError, match=r"neuron \d of layer 1 can reach 19,4\d\d,\d\d\d; only below 16,777,216"):
        replace(network, weights=(network.weights[0], full, network.weights[2]))
    most = 2**24 - 1 - largest_sums(2, network.weights[2], np.zeros(1, dtype=np.int32))
    highest = replace(network, biases=(*network.biases[:2], -most.astype(np.int32)))
    assert largest_sums(2, highest.weights[2], highest.biases[2]) == 2**24 - 1
    with pytest.raises(us.UndershootError, match="neuron 0 of layer 2 can reach 16,777,216"):
        replace(network, biases=(*network.biases[:2], (most + 1).astype(np.int32)))


def test_what_is_no_network_of_whole_numbers_is_refused() -> None:
    network = made_whole(us.puzzle("tiles-3x3"), (20, 5))
    first, *others = network.weights
    low = first.copy()
    low[3, 4] = -128
    with pytest.raises(us.UndershootError, match=r"layer 0 has the weight -128; whole weights lie in -127\.\.127"):
        replace(network, weights=(low, *others))
    with pytest.raises(us.UndershootError, match="layer 0 holds weights, biases and scales as int16, int32, float32"):
        replace(network, weights=(first.astype(np.int16), *others))
    for scale in (0, -1, np.nan, np.inf, 1e-30):
        with pytest.raises(us.UndershootError, match="layer 2 has scales that are not between"):
            replace(network, scales=(*network.scales[:2], np.array([scale], dtype=np.float32)))
    with pytest.raises(us.UndershootError, match="do not follow one another"):
        replace(network, scales=(network.scales[1], *network.scales[1:]))
    with pytest.raises(us.UndershootError, match="do not follow one another"):
        WholeNetwork(network.weights[::2], network.biases[::2], network.scales[::2])
    with pytest.raises(us.UndershootError, match="takes 72 inputs"):
        NeuralHeuristic(us.puzzle("cube-2x2"), network)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_one_weight_matters(layer: int) -> None:
    puzzle = us.puzzle("tiles-3x3")
    network, states = made_whole(puzzle, (64, 32)), puzzle.sample(2000, 7)
    values = NeuralHeuristic(puzzle, network).raw(states)
    changed = []
    for row, column in np.argwhere(np.abs(network.weights[layer]) == 127)[:20]:
        weights = [w.copy() for w in network.weights]
        weights[layer][row, column] -= np.sign(weights[layer][row, column])
        changed.append((NeuralHeuristic(puzzle, replace(network, weights=tuple(weights))).raw(states) != values).any())
    assert np.mean(changed) > 0.5  # the others lead to or from neurons that are never on
