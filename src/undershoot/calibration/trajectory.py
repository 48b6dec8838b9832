"""A margin for whole solutions."""

import numpy as np

from undershoot.arrays import AnyArray
from undershoot.calibration.calibrator import DRAWN, Calibrator, Fitted, Wanted
from undershoot.calibration.evidence import Evidence, order_statistic, score, scores_of_space
from undershoot.calibration.populations import LabelSource, draw, draw_states, is_enumerable, whole_space
from undershoot.calibration.proofs import is_proven, path_of, prove
from undershoot.errors import UndershootError
from undershoot.guarantees import Guarantee, LabelKind, Labels, Standing, Subject
from undershoot.heuristics.neural import LearnedHeuristic, evaluate
from undershoot.kernels.cpu import is_goal, successors
from undershoot.kernels.plan import forward_plan
from undershoot.oracles.distance_table import UNKNOWN, DistanceTable

CHUNK = 1 << 15


def trajectory(evidence: Evidence, alpha: float, confidence: float | None) -> tuple[float, Guarantee]:
    """t = an order statistic of the scores of instances: the largest score along the optimal path where that is least.

    If h_t does not overestimate on one optimal path, A* with reopening returns an optimum: until then, some node of that path
    is open with f <= C*.
    """
    if evidence.kind is not LabelKind.EXACT:
        raise UndershootError(
            f"`trajectory` needs the exact costs of whole optimal paths, but these labels are {evidence.kind} bounds; "
            "use --labels exact, or `conformal`, which speaks of states"
        )
    scores = evidence.sound_scores("trajectory")
    margin = order_statistic("trajectory", scores, alpha, confidence)
    if margin == np.inf:
        stopped = int((scores == np.inf).sum())
        raise UndershootError(
            f"`trajectory` found no proof for {stopped:,} of {len(scores):,} instances, which count as missed: more than a "
            f"rate of {alpha} (--alpha) allows; use instances nearer to the goal (--population scrambles --depths 1..D)"
        )
    return margin, Guarantee(
        Standing.SAMPLED,
        population=evidence.population,
        violation_rate=alpha,
        confidence=confidence,
        labels=len(scores),
        subject=Subject.SOLUTIONS,
    )


def path_scores(distances: DistanceTable, scores: AnyArray) -> AnyArray:
    """float64[N] for every state of a table: max(score, least of its optimal successors), minus infinity for goals.

    scores: float64[N], in the order of the table, which is by distance, so that successors come before.
    """
    table, plan = distances.table, forward_plan(distances.table)
    best = np.full(distances.states, -np.inf)
    ends = np.cumsum(distances.histogram)
    for cost in range(1, len(ends)):
        for start in range(int(ends[cost - 1]), int(ends[cost]), CHUNK):
            stop = min(start + CHUNK, int(ends[cost]))
            states = distances.states_of_rows(start, stop)
            children, legal = successors(table, states)
            least = np.full(legal.shape, np.inf)
            rows, reached = distances.look_up(children[legal])
            # From a dead end, which the table does not hold, no path leads on.
            is_optimal = (rows != UNKNOWN) & (reached + plan.cost[table.contexts_of(states)][legal] == cost)
            least[legal] = np.where(is_optimal, best[rows], np.inf)
            best[start:stop] = np.maximum(scores[start:stop], least.min(axis=1))
    return best


def of_instances(network: LearnedHeuristic, wanted: Wanted, scores: AnyArray | None = None) -> Evidence:
    """Scores of instances drawn from the wanted population: of the optimal path that is best for the network, or where the
    space is too large, of the one that a search has proven to be optimal."""
    if not is_enumerable(network.puzzle):
        return of_proven_paths(network, wanted)
    distances = whole_space(network.puzzle, "`trajectory`")
    best = path_scores(distances, scores_of_space(network, distances, wanted.threads) if scores is None else scores)
    sample = draw(network.puzzle, wanted.population, LabelSource.EXACT, wanted.n, wanted.seed, wanted.depths)
    rows, _ = distances.look_up(sample.states)
    return Evidence(sample.population, best[rows], LabelKind.EXACT, np.zeros(len(rows), dtype=np.int64))


def of_proven_paths(network: LearnedHeuristic, wanted: Wanted) -> Evidence:
    """Scores of instances: the largest along the path that IDA* found and proved; infinite where it was stopped.

    The best path scores no more than this one. So a margin fitted here is at least the one fitted to best paths, and its rate
    holds, whichever paths the searches happen to find and wherever they are stopped.
    """
    puzzle = network.puzzle
    population, states, _ = draw_states(puzzle, wanted.population, wanted.n, wanted.seed, wanted.depths)
    states = states[~is_goal(puzzle.table, states)]
    results = prove(puzzle, states, wanted.threads)
    proven = [k for k, result in enumerate(results) if is_proven(result)]
    best = np.full(len(states), np.inf)
    if proven:
        paths = [path_of(puzzle, states[k : k + 1], results[k]) for k in proven]
        raw = evaluate(network.raw, np.concatenate([path for path, _ in paths]), wanted.threads)
        to_go = Labels(LabelKind.EXACT, np.concatenate([costs for _, costs in paths]))
        begins = np.cumsum([0, *(len(path) for path, _ in paths[:-1])])
        best[proven] = np.maximum.reduceat(score(network.family, raw, to_go), begins)
    return Evidence(population, best, LabelKind.EXACT, np.zeros(len(states), dtype=np.int64))


def fit(network: LearnedHeuristic, wanted: Wanted, scores: AnyArray | None) -> Fitted:
    """From instances drawn for it."""
    evidence = of_instances(network, wanted, scores)
    margin, guarantee = trajectory(evidence, wanted.alpha, wanted.confidence)
    return Fitted(guarantee, margin, labels=len(evidence.scores), population=evidence.population)


CALIBRATOR = Calibrator(
    "trajectory",
    "a wanted rate of solutions that may not be optimal",
    DRAWN | {"alpha"},
    frozenset({LabelSource.EXACT}),
    fit,
    holds_on_average=True,
)
