"""Recipe: every number of a training run. The defaults are the paper's."""

import dataclasses
import json
import math
import sys
import tomllib
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from undershoot.errors import UndershootError, what_came
from undershoot.files import read_text
from undershoot.kernels.scrambles import ScrambleRule
from undershoot.puzzles.problem import check_puzzle

WARM_UP = 200
"""Steps over which the learning rate of a cosine rises."""
MOST_DEPTH = 1000
"""Of a curriculum."""


class Loss(StrEnum):
    """How far the network is from its target."""

    ASYMMETRIC = "asymmetric"
    """Squared, and overestimates count `overestimate_penalty` times."""
    MSE = "mse"
    """Squared."""
    CROSS_ENTROPY = "cross-entropy"
    """On patterns, for comparison: a distribution over all numbers of steps, with a penalty on what lies above the true one."""


class Targets(StrEnum):
    """What the network should say of a scramble."""

    SUCCESSORS = "successors"
    """One step more than the least that the target network says of its successors."""
    WALKS = "walks"
    """What its walk cost, which is at least what it costs, and mostly more. No network is asked."""


class Schedule(StrEnum):
    """How the learning rate changes during training."""

    CONSTANT = "constant"
    COSINE = "cosine"
    """Up over the first steps, then down to almost 0 along half a wave."""


@dataclass(frozen=True)
class Curriculum:
    """Scrambles grow longer as A* with the network learns to solve them."""

    first_depth: int = 1
    max_depth: int = 20
    threshold: float = 0.9
    """The share of states that must be solved for the next depth."""
    states: int = 50
    interval: int = 500
    """Steps between evaluations."""
    budgets: tuple[tuple[int, int], ...] = ((1, 1200), (5, 2500), (8, 4000), (11, 6000))
    """(from this depth on, so many expansions)."""
    final_budget: int = 10_000
    """At the last depth, whatever it is."""

    def __post_init__(self) -> None:
        _range("curriculum.first_depth", self.first_depth, 1, MOST_DEPTH)
        _range("curriculum.max_depth", self.max_depth, self.first_depth, MOST_DEPTH)
        _range("curriculum.threshold", self.threshold, 0, 1)
        _range("curriculum.states", self.states, 1, 1_000_000)
        _range("curriculum.interval", self.interval, 1, 10**9)
        _range("curriculum.final_budget", self.final_budget, 1, 10**12)
        depths = [depth for depth, _ in self.budgets]
        if depths != sorted(set(depths)) or depths[:1] != [1] or any(budget < 1 for _, budget in self.budgets):
            raise UndershootError(
                f"curriculum.budgets are {self.budgets}; they must be pairs [depth, expansions], from depth 1 on, rising"
            )

    def budget(self, depth: int) -> int:
        """Expansions that A* may make on each state of this depth."""
        if depth >= self.max_depth:
            return self.final_budget
        return max((since, budget) for since, budget in self.budgets if since <= depth)[1]


@dataclass(frozen=True)
class Recipe:
    """A training run.

    Examples:
        >>> recipe = us.Recipe("tiles-2x3", batch=64).with_settings(["curriculum.max_depth=12"])
        >>> recipe.steps, recipe.batch, recipe.curriculum.max_depth
        (20000, 64, 12)
    """

    puzzle: str
    patterns: str = ""
    """The set of patterns that networks are trained on, each on its own; none: one network on whole states."""
    encoding: Literal["cells", "pieces", "pairs", "presses"] = "cells"
    """How the network sees a state; see `Puzzle.encoded`."""
    canonical: bool = False
    """Whether states that are images of one another under symmetries are seen alike."""
    hidden: tuple[int, ...] = (256, 256, 128)
    """Widths of the hidden layers."""
    levels: int = 0
    """Above 0, the network says for every whole cost up to this whether the cost is at least that; 0: it says one number."""
    initial_scale: float = 1.0
    """Weights start uniform within this over the square root of the inputs (of those that are on, in the first layer of an
    encoding other than `cells`)."""
    targets: Targets = Targets.SUCCESSORS
    exact_share: float = 0.0
    """The share of each batch that is drawn from the oracle's states, uniformly, with their true costs; the rest are
    scrambles."""
    exact_radius: int = 0
    """The oracle's states are those within this cost of the goal; 0: all."""
    loss: Loss = Loss.ASYMMETRIC
    overestimate_penalty: float = 100.0
    """Ignored by `mse`."""
    penalty_ramp: tuple[float, float] = (0.0, 0.0)
    """The shares of the steps between which the penalty grows from 1; from [0, 0] on it is always the same."""
    target_discount: float = 0.1
    """Subtracted from every target."""
    floor_by_base: bool = True
    """Whether targets are at least h0."""
    hard_share: float = 0.0
    """On a pattern: the share of each batch that is drawn from the arrangements of which the network says most too much."""
    batch: int = 128
    steps: int = 20_000
    learning_rate: float = 1e-3
    schedule: Schedule = Schedule.CONSTANT
    weight_decay: float = 1e-5
    target_interval: int = 50
    """Steps between copies of the weights to the target network."""
    scrambles: ScrambleRule = ScrambleRule.PROPER
    seed: int = 0
    device: Literal["cpu", "cuda"] = "cpu"
    tf32: bool = False
    """On CUDA, multiply with fewer digits."""
    curriculum: Curriculum = field(default_factory=Curriculum)

    def __post_init__(self) -> None:
        if not self.hidden or len(self.hidden) > 16:
            raise UndershootError(f"hidden has {len(self.hidden)} layers; allowed are 1 to 16")
        for width in self.hidden:
            _range("hidden", width, 1, 8192)
        _range("levels", self.levels, 0, 1000)
        if self.levels == 1:
            raise UndershootError("levels is 1; allowed are 0, for one number, and 2 to 1000")
        _range("initial_scale", self.initial_scale, 1e-3, 1e3)
        _range("exact_share", self.exact_share, 0, 1)
        _range("exact_radius", self.exact_radius, 0, 1000)
        start, end = self.penalty_ramp
        if not 0 <= start <= end <= 1:
            raise UndershootError(f"penalty_ramp is [{start}, {end}]; allowed are two numbers from 0 to 1, the second no less")
        _range("overestimate_penalty", self.overestimate_penalty, 1, 1e6)
        _range("target_discount", self.target_discount, 0, 1e3)
        _range("hard_share", self.hard_share, 0, 0.9)
        _range("batch", self.batch, 1, 1 << 20)
        _range("steps", self.steps, 0, 10**9)
        _range("learning_rate", self.learning_rate, 0, 10)
        _range("weight_decay", self.weight_decay, 0, 10)
        _range("target_interval", self.target_interval, 1, 10**9)
        _range("seed", self.seed, 0, 2**63 - 1)
        if self.exact_radius and not self.exact_share:
            raise UndershootError(f"exact_radius is {self.exact_radius}, but exact_share is 0: no states come from the oracle")
        if self.exact_share and not round(self.exact_share * self.batch):
            raise UndershootError(f"exact_share is {self.exact_share:g}, which is no state in a batch of {self.batch}")
        if self.tf32 and self.device != "cuda":
            raise UndershootError('tf32 is set, but the device is "cpu"; only CUDA has it')

    def penalty(self, step: int) -> float:
        """Of overestimates at a step."""
        if self.loss is Loss.MSE:
            return 1.0
        start, end = self.penalty_ramp
        share = step / max(self.steps, 1)
        grown = float(share >= end) if end == start else min(max((share - start) / (end - start), 0.0), 1.0)
        return float(self.overestimate_penalty**grown)

    @property
    def is_set_by_steps(self) -> bool:
        """Whether what happens at a step depends on how many there will be, so that a longer run is another one."""
        has_ramp = self.penalty_ramp[1] > 0 and self.loss is not Loss.MSE
        return has_ramp or self.schedule is not Schedule.CONSTANT

    def learning_rate_at(self, step: int) -> float:
        """By the schedule."""
        if self.schedule is Schedule.CONSTANT:
            return self.learning_rate
        share = min(step / max(self.steps, 1), 1.0)
        return self.learning_rate * min(1.0, (step + 1) / WARM_UP) * (0.001 + 0.999 * 0.5 * (1 + math.cos(math.pi * share)))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for TOML and JSON."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return plain

    def to_toml(self) -> str:
        """Text that `read_recipe` takes."""
        tables = self.to_dict()
        curriculum = tables.pop("curriculum")
        lines = [f"{key} = {json.dumps(value)}" for key, value in tables.items()]
        return "\n".join(
            [*lines, "", "[curriculum]", *(f"{key} = {json.dumps(value)}" for key, value in curriculum.items()), ""]
        )

    def with_settings(self, settings: list[str]) -> "Recipe":
        """With `key=value` applied, such as `batch=256` or `curriculum.max_depth=12`."""
        data = self.to_dict()
        for setting in settings:
            key, sign, text = setting.partition("=")
            if not sign:
                raise UndershootError(f'"{setting}" is no setting; write key=value, such as batch=256')
            try:
                document = tomllib.loads(f"value = {text}")
                if len(document) > 1:
                    raise UndershootError(f"{setting!r} is more than one setting; give each its own --set")
                value = document["value"]
            except tomllib.TOMLDecodeError:
                value = text.strip()  # a word without its quotes
            except (ValueError, RecursionError) as error:
                raise UndershootError(f"--set: the value of {key.strip()} is too long or too deep: {error}") from error
            *tables, name = key.strip().split(".")
            place = data
            for table in tables:
                if not isinstance(place.get(table), dict):
                    raise UndershootError(f'there is no table "{table}" in a recipe, only curriculum')
                place = place[table]
            place[name] = value
        return recipe_from(data, "--set")


def recipe_from(data: dict[str, Any], where: str, defaults: Recipe | None = None) -> Recipe:
    """A recipe from plain values; `where` they come from is named in errors."""
    if defaults is not None:
        usual = defaults.to_dict()
        curriculum = data.get("curriculum", {})
        if isinstance(curriculum, dict):
            data = {**usual, **data, "curriculum": {**usual["curriculum"], **curriculum}}
    try:
        recipe: Recipe = _build(Recipe, data, where)
    except (ValueError, RecursionError) as error:  # of numbers with thousands of digits, and of tables in tables
        raise UndershootError(f"{where}: a value is too long or too deep: {error}") from error
    return recipe


def read_recipe(path: Path, defaults: Recipe | None = None) -> Recipe:
    """From a TOML file; keys that it does not give are those of `defaults`."""
    text = read_text(path, "the recipe")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UndershootError(f"{path} is not a TOML file: {error}") from error
    if "puzzle" not in data:
        name = defaults.puzzle if defaults is not None else "tiles-3x3"
        raise UndershootError(f'{path}: the key "puzzle" is missing; write, before any table, puzzle = "{name}"')
    return recipe_from(data, str(path), defaults)


def _build(kind: Any, data: dict[str, Any], where: str) -> Any:
    hints = get_type_hints(kind)
    unknown = sorted(set(data) - set(hints))
    if unknown:
        raise UndershootError(f'{where}: unknown key "{unknown[0]}"; a {kind.__name__.lower()} has {", ".join(hints)}')
    if kind is Recipe and "puzzle" not in data:
        raise UndershootError(f'{where}: the key "puzzle" is missing')
    try:
        return kind(**{key: _value(key, hints[key], value, where) for key, value in data.items()})
    except UndershootError as error:
        raise error if str(error).startswith(where) else UndershootError(f"{where}: {error}") from None


def _value(key: str, kind: Any, value: Any, where: str) -> Any:
    """The value as this type, or an error that says what is allowed."""
    if kind is Curriculum and isinstance(value, dict):
        return _build(Curriculum, value, where)
    if get_origin(kind) is Literal and value in get_args(kind):
        return value
    if isinstance(kind, type) and issubclass(kind, StrEnum) and value in list(kind):
        return kind(value)
    fixed = get_origin(kind) is tuple and get_args(kind)[-1] is not ...
    if get_origin(kind) is tuple and isinstance(value, (list, tuple)) and not (fixed and len(value) != len(get_args(kind))):
        return tuple(_value(key, get_args(kind)[0 if get_args(kind)[-1] is ... else i], v, where) for i, v in enumerate(value))
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    if kind is float and is_number:
        return float(value)
    if kind in (int, str, bool) and type(value) is kind:
        return value
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        allowed = " or ".join(kind)
    elif get_origin(kind) is Literal:
        allowed = " or ".join(get_args(kind))
    elif fixed:
        allowed = f"a list of {len(get_args(kind))} numbers"
    elif get_origin(kind) is tuple:
        allowed = "a list of whole numbers" if get_args(kind)[0] is int else "a list of pairs of whole numbers"
    else:
        allowed = {int: "a whole number", float: "a number", str: "text", bool: "true or false", Curriculum: "a table"}[kind]
    raise UndershootError(f"{where}: {key} is {value!r}; it must be {allowed}")


def _range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise UndershootError(f"{name} is {value}; allowed are {low} to {high}")


def check_given(puzzle: object, recipe: object, asker: str) -> None:
    """Refuse what is no puzzle, or no recipe, in a sentence."""
    check_puzzle(puzzle, asker)
    if not isinstance(recipe, Recipe):
        raise UndershootError(f"{asker} takes a recipe, such as us.recipe(puzzle); {what_came(recipe)} came")
