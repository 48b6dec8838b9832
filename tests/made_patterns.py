"""Bundles of networks on patterns, trained for a moment and made right."""

from functools import cache
from pathlib import Path

import undershoot as us
from undershoot.bundles.pattern_bundle import write_pattern_bundle
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.puzzles.puzzle import Puzzle
from undershoot.training.pattern_runs import train_patterns
from undershoot.training.recipe import Recipe
from undershoot.training.recipes import recipe
from undershoot.workflows.pattern_bundles import calibrate_patterns, certify_patterns

SMALL = ["hidden=[16,8]", "batch=128", "curriculum.interval=100", "steps=80"]


def trained(puzzle: Puzzle, patterns: str) -> tuple[str, list[PatternNetwork], Recipe]:
    """The name of the set, its networks, and how they were trained."""
    rules = recipe(puzzle, "exact", patterns).with_settings(SMALL)
    done = train_patterns(puzzle, rules)
    return done.patterns.name, done.networks, rules


@cache
def of_catalogue(name: str, patterns: str) -> tuple[str, list[PatternNetwork], Recipe]:
    """The same, once for each puzzle of the catalogue."""
    return trained(us.puzzle(name), patterns)


def written(folder: Path, puzzle: Puzzle, patterns: str, listed: float = 0.0, certified: bool = True) -> Path:
    """Calibrated, with a share of arrangements listed, and certified by who runs this."""
    name, networks, rules = trained(puzzle, patterns) if puzzle.definition else of_catalogue(puzzle.name, patterns)
    write_pattern_bundle(folder, puzzle, name, networks, rules, "undershoot train")
    calibrate_patterns(folder, "exceptions" if listed else "exhaustive", listed or None)
    if certified:
        assert certify_patterns(folder).certificate is not None
    return folder
