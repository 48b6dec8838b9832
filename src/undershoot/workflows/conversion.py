"""A bundle with its network in whole numbers."""

import contextlib
import dataclasses

import numpy as np

from undershoot.bundles.bundle import Bundle
from undershoot.errors import NotAvailable, UndershootError
from undershoot.heuristics.neural import Network
from undershoot.heuristics.whole_numbers import to_whole_numbers
from undershoot.kernels.scrambles import deepest, scrambles_up_to
from undershoot.kernels.streams import Purpose, stream

STATES, DEEPEST = 10_000, 30
OF_TRAINING = ("steps", "seconds", "evaluation_seconds", "steps_per_second")
"""Figures that are as true of a network after it was converted."""


def in_whole_numbers(bundle: Bundle, seed: int = 0) -> Bundle:
    """With the network converted, not calibrated; scrambles and uniform states set the range of its activations."""
    if not isinstance(bundle.network, Network):
        raise UndershootError(f"the network in {bundle.name} is one of whole numbers already; leave --whole-numbers out")
    table, drawn_with = bundle.puzzle.table, stream(seed, Purpose.CONVERSION)
    states = scrambles_up_to(table, STATES, deepest(table, DEEPEST), drawn_with).states
    with contextlib.suppress(NotAvailable):  # then scrambles alone
        states = np.concatenate([states, bundle.puzzle.sample(STATES, drawn_with)])
    network = to_whole_numbers(bundle.network, bundle.raw.encoding, states)
    figures = {name: bundle.figures[name] for name in OF_TRAINING if name in bundle.figures}
    return dataclasses.replace(bundle, network=network, figures=figures, calibration=None, certificate=None)
