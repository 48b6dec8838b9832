"""Checking a heuristic on every state and every move, and the certificate that says so."""

import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from undershoot.arrays import F32, I64, States
from undershoot.bundles import CERTIFIED, Bundle
from undershoot.errors import UndershootError
from undershoot.guarantees import NO_GUARANTEE, Guarantee, Heuristic, Standing
from undershoot.heuristics.calibrated import FLOAT_MARGIN, CalibratedHeuristic
from undershoot.heuristics.neural import NeuralHeuristic
from undershoot.heuristics.survey import Survey, compare_moves
from undershoot.oracles.distance_table import DistanceTable

CHUNK = 1 << 14
SHOWN = 5
Progress = Callable[[int, str], None]


@dataclass(frozen=True, eq=False)
class Findings:
    """What a check of every state found."""

    states: int
    """How many the space, or the ball, has."""
    checked: int
    violations: int
    """States with h above the true cost."""
    marginal: int
    """States on which a float network would be, where its sums come out higher by half the margin for arithmetic."""
    supremum: float
    """The largest h - h* over states that are not goals."""
    mean_h: float
    mean_true: float
    edges: int
    """Moves between states that were checked."""
    inconsistent_edges: int
    """Moves with h(s) above cost + h(s')."""
    radius: int | None
    """None for the whole space."""
    examples: States
    """The first states with violations, at most 5."""
    example_values: F32
    example_costs: I64

    @property
    def figures(self) -> dict[str, Any]:
        """What stands in a certificate and in --json."""
        kept = [field.name for field in dataclasses.fields(self) if not field.name.startswith("example")]
        return {name: getattr(self, name) for name in kept}


def check_every_state(
    heuristic: NeuralHeuristic | CalibratedHeuristic,
    distances: DistanceTable,
    threads: int = 1,
    progress: Progress | None = None,
) -> Findings:
    """Every state of the table, then every move between two of them; a chunk at a time.

    A float network must not overestimate either where its sums come out higher by half the margin for arithmetic.
    """
    values = np.empty(distances.states, dtype=np.float32)
    highest = values if _is_exact(heuristic) else np.empty(distances.states, dtype=np.float32)
    true_cost = np.repeat(np.arange(len(distances.histogram), dtype=np.int32), distances.histogram)

    def evaluate(start: int, stop: int) -> None:
        states = distances.states_of_rows(start, stop)
        if isinstance(heuristic, CalibratedHeuristic) and highest is not values:
            raw = heuristic.network.raw(states)
            values[start:stop] = heuristic.from_raw(raw, states)
            highest[start:stop] = heuristic.from_raw(raw + np.float32(FLOAT_MARGIN / 2), states)
        else:
            values[start:stop] = heuristic(states)
            highest[start:stop] = values[start:stop]

    for done in _in_chunks(distances.states, threads, evaluate):
        _report(progress, done, "every state")
    above = np.flatnonzero(values > true_cost)
    shown_rows = above if len(above) else np.flatnonzero(highest > true_cost)
    edges = np.zeros((-(-distances.states // CHUNK), 2), dtype=np.int64)
    distances.look_up(distances.states_of_rows(0, 1))  # builds the index once, before threads share it

    def compare(start: int, stop: int) -> None:
        edges[start // CHUNK] = compare_moves(values, distances, np.arange(start, stop))

    for done in _in_chunks(distances.states, threads, compare):
        _report(progress, distances.states + done, "every move")
    over = Survey.of(values, distances)
    first = shown_rows[:SHOWN]
    shown = [distances.states_of_rows(int(row), int(row) + 1) for row in first]
    return Findings(
        states=distances.states,
        checked=distances.states,
        violations=len(above),
        marginal=int((highest > true_cost).sum()) - len(above),
        supremum=over.supremum,
        mean_h=over.mean_h,
        mean_true=over.mean_true,
        edges=int(edges[:, 0].sum()),
        inconsistent_edges=int(edges[:, 1].sum()),
        radius=distances.radius,
        examples=np.concatenate([distances.states_of_rows(0, 0), *shown]),
        example_values=values[first] if len(above) else highest[first],
        example_costs=true_cost[first].astype(np.int64),
    )


def _is_exact(heuristic: NeuralHeuristic | CalibratedHeuristic) -> bool:
    return (heuristic.network if isinstance(heuristic, CalibratedHeuristic) else heuristic).is_exact


def check_sample(heuristic: Heuristic, states: States, true_cost: I64, space: int) -> Findings:
    """Only some states, drawn uniformly, and no moves."""
    values = heuristic(states)
    above = np.flatnonzero(values > true_cost)
    excess = np.where(true_cost == 0, -np.inf, values - true_cost)
    return Findings(
        space,
        len(states),
        len(above),
        0,
        float(excess.max()) if (true_cost > 0).any() else 0.0,
        float(values.mean(dtype=np.float64)),
        float(true_cost.mean()),
        0,
        0,
        None,
        states[above[:SHOWN]],
        values[above[:SHOWN]],
        true_cost[above[:SHOWN]],
    )


def sampled_guarantee(findings: Findings, confidence: float) -> Guarantee:
    """The exact binomial (Clopper-Pearson) bound on the share of violations among uniform states."""
    n, k = findings.checked, findings.violations
    rate = 1.0 if k == n else float(stats.beta.ppf(confidence, k + 1, n - k))
    return Guarantee(Standing.SAMPLED, population="uniform states", violation_rate=rate, confidence=confidence, labels=n)


def check_ball(bundle: Bundle, radius: int, before: dict[str, Any] | None = None) -> None:
    """Refuse a certificate for a ball where more, or something else, is known: it would take the place of that.

    before: the certificate that the bundle has.
    """
    if before is not None and (before["radius"] is None or before["radius"] > radius):
        where = "all states" if before["radius"] is None else f"all states within {before['radius']} of the goal"
        raise UndershootError(f"{bundle.name} has a certificate for {where}; one for a ball of {radius} would say less")
    known = NO_GUARANTEE if bundle.calibration is None else bundle.calibration.guarantee
    if known.standing is Standing.SAMPLED:
        raise UndershootError(
            f"{bundle.name} is calibrated by a sample: it {known}. A certificate for a ball says nothing beyond the ball, and "
            f"would take the place of that; leave --ball out, or calibrate for the ball: --method exhaustive --ball {radius}"
        )
    if known.standing is Standing.PROVEN and (known.within is None or known.within > radius):
        raise UndershootError(
            f"{bundle.name} {known}, by its calibration; a certificate for a ball of {radius} would say less. Leave --ball out"
        )


def certificate(bundle: Bundle, findings: Findings) -> dict[str, Any]:
    """For a calibrated bundle without violations."""
    calibration = bundle.calibration
    if calibration is None or findings.violations or findings.marginal or findings.checked < findings.states:
        raise UndershootError(f"{bundle.name} cannot be certified: it is not calibrated, not fully checked, or overestimates")
    if findings.radius is not None:
        check_ball(bundle, findings.radius)
    if calibration.group_margins and not bundle.raw.is_exact:
        # Across the edge of a group h may jump up, however small the step.
        raise UndershootError(f"{bundle.name} has a margin for each group, which needs exact values; use --whole-numbers")
    return {
        "format": CERTIFIED,
        "puzzle": bundle.puzzle.name,
        "fingerprint": bundle.puzzle.table.fingerprint,
        "weights": bundle.weights_digest,
        "calibration": bundle.calibration_digest,
        "inputs": bundle.raw.encoding.digest,
        "arithmetic": bundle.arithmetic,
        "arithmetic_margin": calibration.arithmetic_margin,
        **findings.figures,
    }


def _in_chunks(count: int, threads: int, work: Callable[[int, int], None]) -> Iterator[int]:
    """Do the work for rows 0..count, a chunk at a time on each thread; yields how many are done."""
    pieces = [(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
    with ThreadPoolExecutor(threads) as pool:
        for (_, stop), _ in zip(pieces, pool.map(lambda piece: work(*piece), pieces), strict=True):
            yield stop


def _report(progress: Progress | None, done: int, note: str) -> None:
    if progress is not None:
        progress(done, note)
