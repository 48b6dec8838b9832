"""Methods by name: the file of each makes its CALIBRATOR. Nothing heavy is loaded until one is asked for."""

import difflib
from importlib import import_module
from typing import TYPE_CHECKING

from undershoot.errors import UndershootError
from undershoot.heuristics import wording

if TYPE_CHECKING:
    from undershoot.arrays import AnyArray
    from undershoot.calibration.calibrator import Calibrator, Wanted
    from undershoot.heuristics.calibrated import Calibration
    from undershoot.heuristics.neural import LearnedHeuristic

ELSEWHERE = {"max": "maximum"}
METHODS = {name: ELSEWHERE.get(name, name.replace("-", "_")) for name in wording.METHODS}
"""The module of each."""


def calibrator(method: str) -> "Calibrator":
    """The method of this name."""
    if method not in METHODS:
        close = difflib.get_close_matches(method, METHODS, n=1)
        hint = f' Did you mean "{close[0]}"?' if close else ""
        raise UndershootError(f'no method "{method}" (--method).{hint} There are {", ".join(METHODS)}.')
    made: Calibrator = import_module(f"undershoot.calibration.{METHODS[method]}").CALIBRATOR
    return made


def calibrate(network: "LearnedHeuristic", method: str, wanted: "Wanted", scores: "AnyArray | None" = None) -> "Calibration":
    """Fit a margin by this method. scores: those of `scores_of_space`, if they are known already."""
    return calibrator(method)(network, wanted, scores)
