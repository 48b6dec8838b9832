"""Methods by name."""

import difflib
from dataclasses import dataclass, replace

import numpy as np

from undershoot.arrays import AnyArray
from undershoot.calibration.conformal import conformal
from undershoot.calibration.evidence import MOST_GROUPS, Evidence, score
from undershoot.calibration.exceptions import exceptions
from undershoot.calibration.exhaustive import exhaustive
from undershoot.calibration.grouped import grouped
from undershoot.calibration.levels import level_margins
from undershoot.calibration.maximum import maximum
from undershoot.calibration.populations import LabelSource, Population, Sample, draw, whole_space
from undershoot.calibration.scramble import scramble
from undershoot.calibration.trajectory import path_scores, trajectory
from undershoot.errors import UndershootError
from undershoot.guarantees import PROVEN, Guarantee, LabelKind, Labels, Rounding, Standing
from undershoot.heuristics.calibrated import FLOAT_MARGIN, Calibration
from undershoot.heuristics.neural import NeuralHeuristic, evaluate
from undershoot.oracles.cache import oracle
from undershoot.oracles.distance_table import DistanceTable

METHODS = {
    "scramble": "the paper's offset over scrambles; says nothing about overestimates",
    "max": "no overestimate in a sample",
    "conformal": "a wanted rate of overestimates",
    "grouped": "a wanted rate in every group of states by what the network says",
    "trajectory": "a wanted rate of solutions that may not be optimal",
    "exhaustive": "no overestimate on any state",
    "exceptions": "no overestimate on any state; the worst are listed",
}
_DRAWN = frozenset({"n", "population", "labels", "depths", "confidence"})
READS = {
    "scramble": frozenset({"n", "depths"}),
    "max": _DRAWN,
    "conformal": _DRAWN | {"alpha"},
    "grouped": _DRAWN | {"alpha"},
    "trajectory": _DRAWN | {"alpha"},
    "exhaustive": frozenset({"ball", "population", "depths"}),
    "exceptions": frozenset({"listed", "population", "depths"}),
}
"""The fields of `Wanted` that each method goes by, besides those that all do. (Where no states are drawn to fit to, the
population is that of the fresh states on which the result is tested.)"""
CHUNK = 1 << 16


@dataclass(frozen=True)
class Wanted:
    """What a calibration should reach, and from what."""

    alpha: float = 0.05
    confidence: float | None = 0.95
    """None: on average over draws (`conformal` and `trajectory`)."""
    n: int = 10_000
    """Labels to fit to."""
    population: Population = Population.UNIFORM
    labels: LabelSource | None = None
    """None: the kind that the method is made for."""
    depths: tuple[int, ...] = tuple(range(1, 11))
    rounding: Rounding = Rounding.INTEGER
    listed: float = 0.01
    """`exceptions`: the share of all states that may be listed."""
    ball: int | None = None
    """`exhaustive`: only states within this cost of the goal."""
    seed: int = 0
    threads: int = 1


def check_method(method: str) -> None:
    """Refuse what is no method."""
    if method not in METHODS:
        close = difflib.get_close_matches(method, METHODS, n=1)
        hint = f' Did you mean "{close[0]}"?' if close else ""
        raise UndershootError(f'no method "{method}".{hint} There are {", ".join(METHODS)}.')


def calibrate(network: NeuralHeuristic, method: str, wanted: Wanted, scores: AnyArray | None = None) -> Calibration:
    """Fit a margin by this method. scores: those of `scores_of_space`, if they are known already."""
    check_method(method)
    if wanted.ball is not None and method != "exhaustive":
        raise UndershootError(f"a ball is for `exhaustive`; `{method}` was asked for")
    if wanted.labels is not None and method in ("scramble", "exhaustive", "exceptions"):
        raise UndershootError(f"`{method}` has labels of its own; leave --labels out")
    eta = 0.0 if network.is_exact else FLOAT_MARGIN
    if method == "scramble":
        # The paper rounds nothing and adds no margin for arithmetic.
        sample = draw(network.puzzle, Population.SCRAMBLES, LabelSource.SCRAMBLE, wanted.n, wanted.seed, wanted.depths)
        raw = evaluate(network.raw, sample.states, wanted.threads)
        margin, guarantee = scramble(_evidence(network, sample, raw))
        return Calibration(
            method,
            guarantee,
            margin,
            arithmetic_margin=0.0,
            rounding=wanted.rounding,
            labels=len(raw),
            population=sample.population,
        )
    if method in ("exhaustive", "exceptions"):
        return replace(_over_the_space(network, method, wanted, scores), arithmetic_margin=eta, rounding=wanted.rounding)
    margin = 0.0
    margins: tuple[float, ...] = ()
    if method == "trajectory":
        evidence = instances(network, wanted, scores)
        margin, guarantee = trajectory(evidence, wanted.alpha, wanted.confidence)
    elif method == "conformal":
        evidence = states(network, wanted)
        margin, guarantee = conformal(evidence, wanted.alpha, wanted.confidence)
    elif wanted.confidence is None:
        raise UndershootError(
            f"`{method}` has no form that holds on average over draws (confidence 0); "
            "give a confidence between 0 and 1, or use `conformal`"
        )
    else:
        evidence = states(network, wanted)
        if method == "grouped":
            margins, guarantee = grouped(evidence, wanted.alpha, wanted.confidence)
        else:
            margin, guarantee = maximum(evidence, wanted.confidence)
    return Calibration(
        method,
        guarantee,
        margin,
        margins,
        arithmetic_margin=eta,
        rounding=wanted.rounding,
        labels=len(evidence.scores),
        population=evidence.population,
    )


def states(network: NeuralHeuristic, wanted: Wanted) -> Evidence:
    """Scores of states drawn from the wanted population."""
    source = wanted.labels or LabelSource.EXACT
    sample = draw(network.puzzle, wanted.population, source, wanted.n, wanted.seed, wanted.depths)
    return _evidence(network, sample, evaluate(network.raw, sample.states, wanted.threads))


def _evidence(network: NeuralHeuristic, sample: Sample, raw: AnyArray) -> Evidence:
    groups = network.family.groups(raw, MOST_GROUPS + 1)
    return Evidence(sample.population, score(network.family, raw, sample.labels), sample.labels.kind, groups)


def instances(network: NeuralHeuristic, wanted: Wanted, scores: AnyArray | None = None) -> Evidence:
    """Scores of instances drawn from the wanted population: of the optimal path that is best for the network."""
    if wanted.labels not in (None, LabelSource.EXACT):
        bounds = "upper" if wanted.labels is LabelSource.SCRAMBLE else "lower"
        raise UndershootError(f"`trajectory` needs the exact costs of whole paths, not {bounds} bounds; use --labels exact")
    distances = whole_space(network.puzzle, "`trajectory`")
    best = path_scores(distances, scores_of_space(network, distances, wanted.threads) if scores is None else scores)
    sample = draw(network.puzzle, wanted.population, LabelSource.EXACT, wanted.n, wanted.seed, wanted.depths)
    rows, _ = distances.look_up(sample.states)
    return Evidence(sample.population, best[rows], LabelKind.EXACT, np.zeros(len(rows), dtype=np.int64))


def scores_of_space(network: NeuralHeuristic, distances: DistanceTable, threads: int) -> AnyArray:
    """float64[N] for every state of a table, in its order."""
    result = np.empty(distances.states)
    true_cost = distances.true_costs(np.float32)
    for start in range(0, distances.states, CHUNK * threads):
        stop = min(start + CHUNK * threads, distances.states)
        raw = evaluate(network.raw, distances.states_of_rows(start, stop), threads)
        result[start:stop] = score(network.family, raw, Labels(LabelKind.EXACT, true_cost[start:stop]))
    return result


def _over_the_space(network: NeuralHeuristic, method: str, wanted: Wanted, scores: AnyArray | None) -> Calibration:
    ball = wanted.ball
    distances = whole_space(network.puzzle, f"`{method}`") if ball is None else oracle(network.puzzle, radius=ball)
    goals = int(distances.histogram[0])
    margins: tuple[float, ...]
    margin, margins, guarantee = 0.0, (), PROVEN if ball is None else Guarantee(Standing.PROVEN, within=ball)
    rows = np.zeros(0, dtype=np.int64)
    if network.family.levels:
        share = wanted.listed if method == "exceptions" else 0.0
        margins, rows = level_margins(network, distances, share, wanted.threads)
    else:
        known = (scores_of_space(network, distances, wanted.threads) if scores is None else scores)[goals:]
        if method == "exhaustive":
            margin = exhaustive(known)
        else:
            margin, listed = exceptions(known, wanted.listed)
            rows = goals + np.flatnonzero(listed)
    return Calibration(
        method,
        guarantee,
        margin,
        level_margins=margins,
        exceptions=distances.keys[rows],
        exception_costs=np.searchsorted(np.cumsum(distances.histogram), rows, side="right").astype(np.uint16),
        labels=distances.states - goals,
        population="all states" if ball is None else f"all states within {ball} of the goal",
    )
