"""Checking a heuristic on every state and every move, and the certificate that says so."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from undershoot import trust
from undershoot.arrays import F32, I64, States
from undershoot.bundles.bundle import CERTIFIED, Bundle
from undershoot.errors import MalformedState, UndershootError
from undershoot.guarantees import NO_GUARANTEE, Guarantee, Heuristic, Standing
from undershoot.heuristics import wording
from undershoot.heuristics.calibrated import FLOAT_MARGIN, CalibratedHeuristic
from undershoot.heuristics.neural import LearnedHeuristic
from undershoot.heuristics.survey import Survey
from undershoot.oracles.distance_table import DistanceTable
from undershoot.oracles.verification import Moves, WrongTable, in_chunks, verify
from undershoot.trust import Passed

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
    edges: int | None
    """Moves between states that were checked; None if no moves were looked at."""
    inconsistent_edges: int | None
    """Moves with h(s) above cost + h(s')."""
    radius: int | None
    """None for the whole space."""
    examples: States
    """The first states with violations, at most 5."""
    example_values: F32
    example_costs: I64
    fingerprint: str = ""
    """Of the moves whose states were checked."""
    nearest: int | None = None
    """The least true cost of a state that speaks against a certificate; None if there is none."""
    stopped: int = 0
    """Of a sample: how many states are compared with a proven lower bound, since the search for their true cost was stopped."""

    @property
    def compared_with(self) -> str:
        """What stands for the true cost, in words."""
        return f"true cost, or lower bound of it ({self.stopped:,} proofs were stopped)" if self.stopped else "true cost"

    @property
    def figures(self) -> dict[str, Any]:
        """What stands in a certificate and in --json."""
        others = ("example", "fingerprint", "nearest", "stopped")
        kept = [field.name for field in dataclasses.fields(self) if not field.name.startswith(others)]
        return {name: getattr(self, name) for name in kept}


def check_every_state(
    heuristic: LearnedHeuristic | CalibratedHeuristic,
    distances: DistanceTable,
    threads: int = 1,
    progress: Progress | None = None,
) -> Findings:
    """Every state of the table, then every move between two of them; a chunk at a time.

    The moves also establish that the table holds the true costs, and all of them, whoever made it; otherwise WrongTable. A
    float network must not overestimate either where its sums come out higher by half the margin for arithmetic.
    """
    if heuristic.fingerprint != distances.table.fingerprint:
        raise UndershootError(f"{heuristic.name} is for another puzzle than these distances")
    values = np.empty(distances.states, dtype=np.float32)
    highest = values if _is_exact(heuristic) else np.empty(distances.states, dtype=np.float32)

    def evaluate(start: int, stop: int) -> None:
        states = distances.states_of_rows(start, stop)
        try:
            if isinstance(heuristic, CalibratedHeuristic) and highest is not values:
                raw = heuristic.network.raw(states)
                values[start:stop] = heuristic.from_raw(raw, states)
                highest[start:stop] = heuristic.from_raw(raw + np.float32(FLOAT_MARGIN / 2), states)
            else:
                values[start:stop] = heuristic(states)
                highest[start:stop] = values[start:stop]
        except MalformedState as error:
            raise WrongTable(f"the table of distances holds what is no state: {error}") from error

    for done in in_chunks(distances.states, threads, evaluate):
        _report(progress, done, "every state")
    _check_finite(heuristic, distances, values)
    _check_finite(heuristic, distances, highest)
    done = distances.states
    moves = verify(
        distances, heuristic.puzzle.space, values, threads, lambda more: _report(progress, done + more, "every move")
    )
    return findings(values, highest, distances, moves)


def _check_finite(heuristic: LearnedHeuristic | CalibratedHeuristic, distances: DistanceTable, values: F32) -> None:
    """Values of all states: refuse the first that is no number."""
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        state = heuristic.puzzle.format(distances.states_of_rows(row, row + 1))
        raise UndershootError(
            f"the heuristic {heuristic.name} gives {values[row]}, for {state}: the network gives values that are not finite; "
            "its weights are too large"
        )


def findings(values: F32, highest: F32, distances: DistanceTable, moves: Moves | None) -> Findings:
    """From the values of all states, float32[N], and what they might be in other arithmetic."""
    true_cost = distances.true_costs()
    above, maybe = np.flatnonzero(~(values <= true_cost)), np.flatnonzero(~(highest <= true_cost))
    shown_rows = above if len(above) else maybe
    against = np.concatenate([above[:1], maybe[:1]])  # rows are ordered by cost
    over = Survey.of(values, distances)
    first = shown_rows[:SHOWN]
    return Findings(
        states=distances.states,
        checked=distances.states,
        violations=len(above),
        marginal=len(maybe) - len(above),
        supremum=over.supremum,
        mean_h=over.mean_h,
        mean_true=over.mean_true,
        edges=None if moves is None else moves.edges,
        inconsistent_edges=None if moves is None else moves.inconsistent,
        radius=distances.radius,
        examples=distances.states_of(first),
        example_values=values[first] if len(above) else highest[first],
        example_costs=true_cost[first].astype(np.int64),
        fingerprint=distances.table.fingerprint,
        nearest=int(true_cost[against.min()]) if len(against) else None,
    )


def _is_exact(heuristic: LearnedHeuristic | CalibratedHeuristic) -> bool:
    return (heuristic.network if isinstance(heuristic, CalibratedHeuristic) else heuristic).is_exact


def check_sample(heuristic: Heuristic, states: States, true_cost: I64, space: int, stopped: int = 0) -> Findings:
    """Only some states, drawn uniformly, and no moves. stopped: of how many `true_cost` is only a proven lower bound."""
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
        None,
        None,
        None,
        states[above[:SHOWN]],
        values[above[:SHOWN]],
        true_cost[above[:SHOWN]],
        nearest=int(true_cost[above].min()) if len(above) else None,
        stopped=stopped,
    )


def sampled_guarantee(found: Findings, confidence: float) -> Guarantee:
    """The exact binomial (Clopper-Pearson) bound on the share of violations among uniform states."""
    n, k = found.checked, found.violations
    rate = 1.0 if k == n else float(stats.beta.ppf(confidence, k + 1, n - k))
    return Guarantee(Standing.SAMPLED, population=wording.UNIFORM, violation_rate=rate, confidence=confidence, labels=n)


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


def _document(bundle: Bundle, found: Findings) -> dict[str, Any]:
    """The certificate that belongs to what was found; refused where there can be none."""
    calibration = bundle.calibration
    if calibration is None or found.violations or found.marginal or found.checked < found.states:
        raise UndershootError(f"{bundle.name} cannot be certified: it is not calibrated, not fully checked, or overestimates")
    if found.fingerprint != bundle.puzzle.table.fingerprint:
        raise UndershootError(f"{bundle.name} cannot be certified: what was checked are states of another puzzle")
    if calibration.group_margins and not bundle.raw.is_exact:
        # Across the edge of a group h may jump up, however small the step.
        raise UndershootError(f"{bundle.name} has a margin for each group, which needs exact values; use --whole-numbers")
    return {"format": CERTIFIED, "puzzle": bundle.puzzle.name, **bundle.subject, **found.figures}


def certificate(bundle: Bundle, found: Findings) -> dict[str, Any]:
    """For a calibrated bundle without violations; that this installation issued it is recorded."""
    document = _document(bundle, found)
    if found.radius is not None:
        check_ball(bundle, found.radius)
    trust.record(Passed.CERTIFICATE, dataclasses.replace(bundle, certificate=document).certificate_digest)
    return document


def confirm(bundle: Bundle, found: Findings) -> list[str]:
    """In what the certificate of a bundle differs from what was found; if in nothing, that it passed is recorded.

    Whole numbers leave no room for differences; sums of floats leave as much as margins allow for.
    """
    stated = bundle.certificate
    if stated is None:
        raise UndershootError(f"{bundle.name} has no certificate; make one: undershoot certify {bundle.name}")
    if found.violations or found.marginal:
        return [f"violations is {found.violations + found.marginal}, the certificate says 0"]
    room = 0.0 if bundle.raw.is_exact else FLOAT_MARGIN
    expected = _document(bundle, found)
    if stated["edges"] is None and stated["inconsistent_edges"] is None:  # moves were not looked at, and it says so
        expected |= {"edges": None, "inconsistent_edges": None}
    differing = [f"there is {name!a:.40}, which no certificate has" for name in sorted(set(stated) - set(expected))]
    for name, value in expected.items():
        is_near = isinstance(value, float) and abs(value - float(stated[name])) <= room
        if not is_near and (type(value), value) != (type(stated[name]), stated[name]):
            differing.append(f"{name} is {value}, the certificate says {stated[name]!a:.80}")
    if not differing:
        trust.record(Passed.CERTIFICATE, bundle.certificate_digest)
    return differing


def _report(progress: Progress | None, done: int, note: str) -> None:
    if progress is not None:
        progress(done, note)
