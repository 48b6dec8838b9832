"""h_t and scores: the one thing that calibrators rest on."""

import numpy as np
import pytest

from undershoot.heuristics.families import groups_of, lowered, scores

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("levels", [0, 2, 7])
def test_h_is_at_most_the_label_exactly_if_t_is_at_least_the_score(levels: int) -> None:
    raw = (3 * RANDOM.standard_normal((400, levels) if levels else 400)).astype(np.float32)
    costs = RANDOM.integers(0, 9, 400)
    found = scores(raw, costs)
    for t in (-2.0, 0.0, 0.7):
        margin = np.array([t], dtype=np.float32)
        assert ((lowered(raw, margin) <= costs) == (t >= found - 1e-6)).all()
    finite = np.isfinite(found)
    at = found[finite].astype(np.float32)
    column = at if levels == 0 else at[:, None]
    above = raw[finite]
    assert (lowered(above, column) <= costs[finite] + 1e-5).all()
    assert (lowered(above, column - np.float32(1e-3)) > costs[finite]).all()
    assert (found[costs >= levels] == -np.inf).all() or levels == 0


def test_levels_count_from_the_first_to_the_last_before_one_fails() -> None:
    raw = np.array([[1, 1, 1], [1, -1, 1], [-1, 1, 1], [1, 1, 0]], dtype=np.float32)
    none = np.zeros(1, dtype=np.float32)
    assert lowered(raw, none).tolist() == [3, 1, 0, 2]
    assert lowered(raw, np.array([0, -2, 0], dtype=np.float32)).tolist() == [3, 3, 0, 2]
    assert groups_of(raw, 3).tolist() == [2, 1, 0, 2]
    assert scores(raw, np.array([0, 1, 2, 3])).tolist() == [1, -1, -1, -np.inf]
