"""undershoot: heuristics that stay below the true cost, and say how surely.

Everything below is loaded when it is first used, so that `import undershoot` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "puzzle": "undershoot.puzzles.catalogue",
    "Puzzle": "undershoot.puzzles.puzzle",
    "MoveTable": "undershoot.puzzles.moves",
    "successors": "undershoot.kernels.cpu",
    "apply": "undershoot.kernels.cpu",
    "is_goal": "undershoot.kernels.cpu",
    "scramble": "undershoot.kernels.scrambles",
    "ScrambleRule": "undershoot.kernels.scrambles",
    "oracle": "undershoot.oracles.cache",
    "DistanceTable": "undershoot.oracles.distance_table",
    "UNKNOWN": "undershoot.oracles.distance_table",
    "heuristic": "undershoot.bundles.loading",
    "load": "undershoot.bundles.loading",
    "patterns": "undershoot.bundles.loading",
    "wrap": "undershoot.heuristics.wrapped",
    "solve": "undershoot.search.solving",
    "solve_many": "undershoot.search.solving",
    "improve": "undershoot.search.both",
    "SearchOptions": "undershoot.search.options",
    "Ties": "undershoot.search.options",
    "Algorithm": "undershoot.search.options",
    "Result": "undershoot.search.results",
    "Status": "undershoot.search.results",
    "NeuralHeuristic": "undershoot.heuristics.neural",
    "Recipe": "undershoot.training.recipe",
    "recipe": "undershoot.training.recipes",
    "train": "undershoot.training.loop",
    "train_patterns": "undershoot.training.pattern_runs",
    "Wanted": "undershoot.calibration.calibrator",
    "calibrate": "undershoot.workflows.calibration",
    "compare_methods": "undershoot.workflows.methods",
    "calibrate_patterns": "undershoot.workflows.pattern_bundles",
    "certify_patterns": "undershoot.workflows.pattern_bundles",
    "check_patterns": "undershoot.workflows.pattern_bundles",
    "certify": "undershoot.workflows.certification",
    "check": "undershoot.workflows.certification",
    "compare": "undershoot.experiments.comparison",
    "Instances": "undershoot.experiments.instances",
    "reproduce": "undershoot.workflows.reproduction",
    "UndershootError": "undershoot.errors",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605

if TYPE_CHECKING:
    from undershoot.bundles.loading import heuristic as heuristic
    from undershoot.bundles.loading import load as load
    from undershoot.bundles.loading import patterns as patterns
    from undershoot.calibration.calibrator import Wanted as Wanted
    from undershoot.errors import UndershootError as UndershootError
    from undershoot.experiments.comparison import compare as compare
    from undershoot.experiments.instances import Instances as Instances
    from undershoot.heuristics.neural import NeuralHeuristic as NeuralHeuristic
    from undershoot.heuristics.wrapped import wrap as wrap
    from undershoot.kernels.cpu import apply as apply
    from undershoot.kernels.cpu import is_goal as is_goal
    from undershoot.kernels.cpu import successors as successors
    from undershoot.kernels.scrambles import ScrambleRule as ScrambleRule
    from undershoot.kernels.scrambles import scramble as scramble
    from undershoot.oracles.cache import oracle as oracle
    from undershoot.oracles.distance_table import UNKNOWN as UNKNOWN
    from undershoot.oracles.distance_table import DistanceTable as DistanceTable
    from undershoot.puzzles.catalogue import puzzle as puzzle
    from undershoot.puzzles.moves import MoveTable as MoveTable
    from undershoot.puzzles.puzzle import Puzzle as Puzzle
    from undershoot.search.both import improve as improve
    from undershoot.search.options import Algorithm as Algorithm
    from undershoot.search.options import SearchOptions as SearchOptions
    from undershoot.search.options import Ties as Ties
    from undershoot.search.results import Result as Result
    from undershoot.search.results import Status as Status
    from undershoot.search.solving import solve as solve
    from undershoot.search.solving import solve_many as solve_many
    from undershoot.training.loop import train as train
    from undershoot.training.pattern_runs import train_patterns as train_patterns
    from undershoot.training.recipe import Recipe as Recipe
    from undershoot.training.recipes import recipe as recipe
    from undershoot.workflows.calibration import calibrate as calibrate
    from undershoot.workflows.certification import certify as certify
    from undershoot.workflows.certification import check as check
    from undershoot.workflows.methods import compare_methods as compare_methods
    from undershoot.workflows.pattern_bundles import calibrate_patterns as calibrate_patterns
    from undershoot.workflows.pattern_bundles import certify_patterns as certify_patterns
    from undershoot.workflows.pattern_bundles import check_patterns as check_patterns
    from undershoot.workflows.reproduction import reproduce as reproduce


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'undershoot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
