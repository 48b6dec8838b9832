"""Networks inside compiled loops, uncalibrated and calibrated. One state at a time, with the values that batches have."""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import F32, I32, AnyArray, Number, States
from undershoot.heuristics.families import Family
from undershoot.kernels.compiler import called, inner
from undershoot.kernels.encodings import Reader, read_one, reader
from undershoot.kernels.guides import implements, keeps_nothing, value_of
from undershoot.kernels.networks import Perceptron, Workbench, workbench, write_outputs
from undershoot.kernels.rounding import RoundUp, rounded_up
from undershoot.kernels.sums import Sums, shared_out, sum_of, sums
from undershoot.oracles.state_index import Costs, cost_of
from undershoot.puzzles.encoding import Encoding
from undershoot.puzzles.problem import Problem


@keeps_nothing
class Uncalibrated(NamedTuple):
    """`NeuralHeuristic`, for compiled code."""

    network: Perceptron
    bench: Workbench
    reader: Reader
    levels: Number
    """As in `Family`."""
    is_exact: Number
    """Whether outputs are whole sums."""
    scale: Number
    """float64: what a whole sum of 1 stands for, if there is one output."""
    no_margins: AnyArray
    """float64[1, levels] of zeros."""
    base: Sums
    goals: States


@keeps_nothing
class Calibrated(NamedTuple):
    """`CalibratedHeuristic`, for compiled code."""

    learned: Uncalibrated
    margins: AnyArray
    """float64[G, K], as `Family.lowered` takes them, a row for each group; K is 1, or the number of levels."""
    rounding: RoundUp
    has_exceptions: Number
    exceptions: Costs


def uncalibrated(puzzle: Problem, encoding: Encoding, network: Perceptron, family: Family) -> Uncalibrated:
    """For one thread."""
    return Uncalibrated(
        network,
        workbench(network),
        reader(encoding, puzzle.table.cells),
        family.levels,
        bool(family.scales),
        float(family.scales[0]) if family.scales else 1.0,
        np.zeros((1, max(1, family.levels))),
        sums(puzzle.base_heuristic),
        puzzle.table.goals,
    )


@inner
def _is_goal(goals: States, states: States, row: Number) -> Number:
    for k in range(goals.shape[0]):
        same = True
        for i in range(goals.shape[1]):
            if goals[k, i] != states[row, i]:
                same = False
                break
        if same:
            return True
    return False


@inner
def _ask_network(guide: Uncalibrated, states: States, row: Number) -> None:
    """Its outputs for states[row] go to guide.bench.outputs."""
    read_one(guide.reader, states, row)
    write_outputs(guide.network, guide.bench, guide.reader.tokens)


@inner
def _levels_passed(outputs: F32, levels: Number, margins: AnyArray, group: Number) -> Number:
    """How many levels, from the first on, lie above their margins."""
    passed = np.int64(0)
    while passed < levels and outputs[passed] > margins[group, passed]:
        passed += 1
    return passed


@inner
def _base(guide: Uncalibrated, states: States, row: Number) -> Number:
    return shared_out(guide.base, sum_of(guide.base, states, row))


@implements(value_of, Uncalibrated)
def _value_of_network(guide: Uncalibrated, states: States, row: Number, kept: I32, at: Number) -> Number:
    return _network_value(guide, states, row)


@called
def _network_value(guide: Uncalibrated, states: States, row: Number) -> Number:
    if _is_goal(guide.goals, states, row):
        return np.float32(0)
    _ask_network(guide, states, row)
    outputs = guide.bench.outputs
    said = outputs[0]
    if guide.levels:
        said = np.float32(_levels_passed(outputs, guide.levels, guide.no_margins, 0))
    elif guide.is_exact:
        said *= np.float32(guide.scale)
    least = _base(guide, states, row)
    return least if least > said else said


@implements(value_of, Calibrated)
def _value_of_calibrated(guide: Calibrated, states: States, row: Number, kept: I32, at: Number) -> Number:
    return _calibrated_value(guide, states, row)


@called
def _calibrated_value(guide: Calibrated, states: States, row: Number) -> Number:
    learned, margins = guide.learned, guide.margins
    if _is_goal(learned.goals, states, row):
        return np.float32(0)
    if guide.has_exceptions:
        listed = cost_of(guide.exceptions, states, row, np.int64(-1))
        if listed >= 0:
            return np.float32(listed)
    _ask_network(learned, states, row)
    outputs = learned.bench.outputs
    group = _group(learned, outputs, margins.shape[0]) if margins.shape[0] > 1 else 0
    if learned.levels:
        lowered = np.float64(_levels_passed(outputs, learned.levels, margins, group))
    elif learned.is_exact:
        lowered = (np.float64(outputs[0]) - margins[group, 0]) * learned.scale
    else:
        lowered = np.float64(np.float32(outputs[0] - np.float32(margins[group, 0])))
    least = np.float64(_base(learned, states, row))
    return rounded_up(guide.rounding, least if least > lowered else lowered, states, row)


@inner
def _group(guide: Uncalibrated, outputs: F32, count: Number) -> Number:
    """By what the network says, rounded down."""
    if guide.levels:
        said = np.float64(_levels_passed(outputs, guide.levels, guide.no_margins, 0))
    else:
        said = np.float64(outputs[0]) * guide.scale
    group = np.int64(0)
    if said >= 1:
        group = np.int64(min(np.floor(said), np.float64(count - 1)))
    return group
