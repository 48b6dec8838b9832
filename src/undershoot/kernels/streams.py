"""Seeds: every purpose draws from a stream of its own, so that what is fitted to is never what is tested on."""

from enum import IntEnum

from undershoot.kernels.scrambles import derived_seed

OURS = 0x63616C6962
"""Sets all draws here apart from those of training with the same seed."""


class Purpose(IntEnum):
    """What states are drawn for. A number never changes its meaning: the same seed then draws the same states."""

    FIT_WALKS = 1
    FIT_EXPANDED = 2
    FIT_DEPTHS = 3
    CONVERSION = 4
    """States that set the range of a network of whole numbers."""
    FIT_UNIFORM = 5
    FIT_STARTS = 6
    """Of searches whose expanded states are drawn."""
    TEST = 7
    """Fresh states, on which a calibration is tried."""
    COMPARISON = 8
    CHECK = 9
    """The sample of `check --sample` and `certify --sample`."""
    INSTANCES = 10
    """What `solve` and `bench` search from."""
    ASKED_AGAIN = 11
    """What a function is asked twice about."""


def stream(seed: int, purpose: Purpose) -> int:
    """The seed of a purpose."""
    return derived_seed(seed, OURS, purpose)
