"""h_t and scores: the one thing that calibrators rest on."""

from fractions import Fraction

import numpy as np
import pytest

from undershoot.arrays import F32
from undershoot.heuristics.families import BEYOND, Family

RANDOM = np.random.default_rng(0)


def whole_sums(rows: int, levels: int) -> tuple[Family, F32]:
    """Whole sums over a wide range, with scales that no cost is a multiple of."""
    width = levels or 1
    scales = tuple(np.exp2(RANDOM.uniform(-19, -17, width)).astype(np.float32).tolist())
    raw = RANDOM.integers(-(2**23), 2**24, (rows, levels) if levels else rows).astype(np.float32)
    return Family(levels, scales), raw


@pytest.mark.parametrize("levels", [0, 2, 7])
def test_h_is_at_most_the_label_exactly_if_t_is_at_least_the_score(levels: int) -> None:
    family = Family(levels)
    raw = (3 * RANDOM.standard_normal((400, levels) if levels else 400)).astype(np.float32)
    costs = RANDOM.integers(0, 9, 400)
    found = family.scores(raw, costs)
    for t in (-2.0, 0.0, 0.7):
        assert ((family.lowered(raw, family.margins(t)) <= costs) == (t >= found - 1e-6)).all()
    finite = np.isfinite(found)
    at = found[finite].astype(np.float32)
    column = at if levels == 0 else at[:, None]
    above = raw[finite]
    assert (family.lowered(above, column) <= costs[finite] + 1e-5).all()
    assert (family.lowered(above, column - np.float32(1e-3)) > costs[finite]).all()
    assert (found[costs >= levels] == -np.inf).all() or levels == 0


@pytest.mark.parametrize("levels", [0, 2, 7])
def test_on_whole_sums_that_is_exact(levels: int) -> None:
    family, raw = whole_sums(300, levels)
    costs = RANDOM.integers(0, 9, 300)
    found = family.scores(raw, costs)
    for row, (score, cost) in enumerate(zip(found.tolist(), costs.tolist(), strict=True)):
        if np.isfinite(score):
            one = raw[row : row + 1]
            assert family.lowered(one, family.margins(score))[0] <= cost
            # The next smaller margin that makes a difference lets it overestimate.
            step = min(family.scales)
            assert family.lowered(one, family.margins(score - step))[0] > cost
        else:
            assert cost >= levels > 0


def test_what_whole_sums_stand_for_is_never_rounded() -> None:
    family, raw = whole_sums(2000, 0)
    t = float(family.scores(raw, np.full(2000, 3)).max())
    margins = family.margins(t)
    assert margins[0] == np.floor(margins[0])
    exact = [(Fraction(float(s)) - Fraction(float(margins[0]))) * Fraction(family.scales[0]) for s in raw]
    assert [Fraction(float(h)) for h in family.lowered(raw, margins)] == exact
    assert max(exact) <= 3 < max(exact) + Fraction(family.scales[0])


@pytest.mark.parametrize("levels", [0, 3])
def test_infinite_margins_are_thresholds_that_no_sum_reaches(levels: int) -> None:
    family, raw = whole_sums(500, levels)
    assert set(family.margins(np.inf).tolist()) == {BEYOND}
    assert set(family.margins(-np.inf).tolist()) == {-BEYOND}
    assert (family.lowered(raw, family.margins(np.inf)) <= 0).all()
    assert (family.lowered(raw, family.margins(-np.inf)) > 0).all()
    assert np.isinf(family.scores(raw, np.zeros(500)).max()) == 0


def test_levels_count_from_the_first_to_the_last_before_one_fails() -> None:
    family = Family(3)
    raw = np.array([[1, 1, 1], [1, -1, 1], [-1, 1, 1], [1, 1, 0]], dtype=np.float32)
    assert family.values(raw).tolist() == [3, 1, 0, 2]
    assert family.lowered(raw, np.array([0, -2, 0], dtype=np.float32)).tolist() == [3, 3, 0, 2]
    assert family.groups(raw, 3).tolist() == [2, 1, 0, 2]
    assert family.scores(raw, np.array([0, 1, 2, 3])).tolist() == [1, -1, -1, -np.inf]
