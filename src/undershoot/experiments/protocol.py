"""The paper's protocol as data: what is trained, calibrated and searched in each profile."""

import hashlib
from dataclasses import asdict, dataclass, replace
from typing import Any

from undershoot.bundles.bundle import CERTIFICATE, SHIPPED
from undershoot.bundles.names import LEARNED
from undershoot.experiments.items import Item
from undershoot.puzzles.catalogue import puzzle as by_name
from undershoot.training.recipes import recipe as recipe_of

PUZZLES = ("lights-out-3x3", "lights-out-5x5", "tiles-3x3", "cube-2x2")
DEPTHS = {"lights-out-3x3": tuple(range(1, 10))}
"""Of scrambles; elsewhere 1..10. Lights Out 3x3 has nine cells to press."""
PUBLISHED_DEPTH = {"lights-out-3x3": 8}
"""The paper's Table 1 is for scrambles of one depth; elsewhere 10."""
ABLATION, WEIGHTED, SKETCH, BALL = "tiles-3x3", "cube-2x2", "cube-2x2", "cube-3x3"
ALWAYS = ("scramble", "exhaustive", "exceptions")
"""Calibrations of every network of the paper's recipe."""
OTHERS = ("max", "conformal", "grouped", "trajectory")
BATCHES = (1, 128, 65_536)
SEARCHES_TIMED = 20
"""One at a time."""
PARTS = ("table1", "ablation", "weighted", "calibrators", "ball", "sketch", "latency", "report")
"""What `--only` takes; `report` computes nothing."""


@dataclass(frozen=True)
class Profile:
    """How much of everything."""

    name: str
    seeds: tuple[int, ...]
    """Of trainings."""
    steps: int
    per_depth: int
    """Scrambles of each depth in the test set."""
    published: int
    """Scrambles of the published depth."""
    uniform: int
    """Uniformly random states."""
    calibration_states: int
    budget: int
    """Expansions that a search may make."""
    slice: int
    """Searches in one item."""
    ball_radius: int
    """Of the 3x3 cube."""
    ball_steps: int
    shipped: tuple[str, ...]
    """Which of the bundles that come with the package are compared."""
    calibrators: tuple[str, ...]
    """Puzzles on which all methods of calibration are compared, with the first seed."""
    instance_seed: int = 2_024

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


PROFILES = {
    "quick": Profile(
        "quick",
        seeds=(0,),
        steps=2_000,
        per_depth=20,
        published=200,
        uniform=50,
        calibration_states=2_000,
        budget=1_000,
        slice=1_000,
        ball_radius=4,
        ball_steps=600,
        shipped=("learned",),
        calibrators=("tiles-3x3",),
    ),
    "paper": Profile(
        "paper",
        seeds=(0, 1, 2, 3, 4),
        steps=20_000,
        per_depth=1_000,
        published=1_000,
        uniform=1_000,
        calibration_states=10_000,
        budget=1_000,
        slice=1_000,
        ball_radius=6,
        ball_steps=20_000,
        shipped=("learned", "label-free", "small"),
        calibrators=PUZZLES,
    ),
}


def items(profile: Profile, parts: tuple[str, ...] = PARTS) -> dict[str, list[Item]]:
    """The items of each part, in the order of the records; those of several parts are the same items."""
    builders = {
        "table1": _table1,
        "ablation": _ablation,
        "weighted": _weighted,
        "calibrators": _calibrators,
        "ball": _ball,
        "sketch": _sketch,
        "latency": _latency,
    }
    return {part: builders[part](profile) for part in parts if part in builders}


def populations(profile: Profile, puzzle: str) -> dict[str, dict[str, Any]]:
    """The instance sets of a puzzle by name."""
    seed = profile.instance_seed
    depths = DEPTHS.get(puzzle, tuple(range(1, 11)))
    published = PUBLISHED_DEPTH.get(puzzle, 10)
    return {
        "published": {"name": "published", "depths": [published], "per_depth": profile.published, "seed": seed},
        "all depths": {"name": "all depths", "depths": list(depths), "per_depth": profile.per_depth, "seed": seed + 1},
        "uniform": {"name": "uniform", "uniform": profile.uniform, "seed": seed + 2},
    }


def fixed_heuristics(profile: Profile, puzzle: str) -> list[str]:
    """Those that are not trained here."""
    shipped = [name for name in profile.shipped if (SHIPPED / f"{puzzle}{LEARNED[name]}").exists()]
    return ["base", *shipped, "table"]


def _version(puzzle: str, name: str) -> dict[str, str]:
    """Which bundle of the package a name stands for, so that another one is other work."""
    if name not in LEARNED:
        return {}
    certificate = (SHIPPED / f"{puzzle}{LEARNED[name]}" / CERTIFICATE).read_bytes()
    return {"certificate": hashlib.sha256(certificate).hexdigest()}


def training(profile: Profile, puzzle: str, recipe: str, seed: int) -> Item:
    """A network; all settings of its recipe are part of what it is."""
    steps = profile.ball_steps if puzzle == BALL else profile.steps
    settings = replace(recipe_of(by_name(puzzle), recipe), steps=steps, seed=seed).to_dict()
    return Item("train", {"puzzle": puzzle, "recipe": recipe, "steps": steps, "seed": seed, "settings": settings})


def space(profile: Profile, trained: Item) -> Item:
    """A network on every state, as it is and calibrated."""
    puzzle, recipe, seed = (trained.spec[key] for key in ("puzzle", "recipe", "seed"))
    methods: tuple[str, ...] = ALWAYS if recipe == "paper" else ()
    spec: dict[str, Any] = {"puzzle": puzzle, "recipe": recipe, "seed": seed, "calibration_states": profile.calibration_states}
    spec["depths"] = list(DEPTHS.get(puzzle, range(1, 11)))
    if puzzle == BALL:
        spec |= {"radius": profile.ball_radius, "depths": list(range(1, profile.ball_radius + 1))}
        methods = ("scramble", "exhaustive")
    elif recipe == "paper" and seed == profile.seeds[0] and puzzle in profile.calibrators:
        methods = (*ALWAYS, *OTHERS)
    return Item("space", {**spec, "methods": list(methods)}, {"training": trained})


def searches(
    profile: Profile,
    puzzle: str,
    population: dict[str, Any],
    heuristic: str,
    source: Item | None = None,
    ties: str = "shallow",
    weight: float = 1.0,
) -> list[Item]:
    """The slices of an instance set; source: the training or the space that the heuristic comes from."""
    count = population["uniform"] if "uniform" in population else len(population["depths"]) * population["per_depth"]
    spec: dict[str, Any] = {
        "puzzle": puzzle,
        "heuristic": heuristic,
        **(_version(puzzle, heuristic) if source is None else {}),
        "seed": None if source is None else source.spec["seed"],
        "population": population,
        "weight": weight,
        "ties": ties,
        "budget": profile.budget,
    }
    if puzzle == BALL:
        spec["radius"] = profile.ball_radius
    if source is not None and source.kind == "space":
        spec["variant"] = heuristic
    needs = {} if source is None else {"training" if source.kind == "train" else "space": source}
    slices = [(start, min(start + profile.slice, count)) for start in range(0, count, profile.slice)]
    return [Item("search", {**spec, "start": start, "stop": stop}, needs) for start, stop in slices]


def _table1(profile: Profile) -> list[Item]:
    found: list[Item] = []
    for puzzle in PUZZLES:
        fixed = fixed_heuristics(profile, puzzle)
        guides: list[tuple[str, Item | None]] = [(name, None) for name in fixed]
        found += [Item("space", {"puzzle": puzzle, "heuristic": name, **_version(puzzle, name)}) for name in fixed]
        for seed in profile.seeds:
            plain, biased = (training(profile, puzzle, recipe, seed) for recipe in ("mse", "paper"))
            over = space(profile, biased)
            found += [plain, biased, space(profile, plain), over]
            guides += [("mse", plain), ("raw", biased), *((method, over) for method in ALWAYS)]
        for population in populations(profile, puzzle).values():
            ties = "shallow" if population["name"] == "published" else "deep"
            for name, source in guides:
                found += searches(profile, puzzle, population, name, source, ties)
    return found


def _ablation(profile: Profile) -> list[Item]:
    """The paper's targets alone; the other rows are those of Table 1."""
    found: list[Item] = []
    posed = populations(profile, ABLATION)
    for seed in profile.seeds:
        trained = training(profile, ABLATION, "operator", seed)
        found += [trained, space(profile, trained)]
        found += searches(profile, ABLATION, posed["published"], "operator", trained)
        found += searches(profile, ABLATION, posed["all depths"], "operator", trained, "deep")
    return found


def _weighted(profile: Profile) -> list[Item]:
    """Weighted A* with the network that overestimates."""
    population = populations(profile, WEIGHTED)["published"]
    found: list[Item] = []
    for seed in profile.seeds:
        trained = training(profile, WEIGHTED, "mse", seed)
        found += searches(profile, WEIGHTED, population, "mse", trained, weight=1.5)
    return found


def _calibrators(profile: Profile) -> list[Item]:
    """All methods on one network, on uniformly random states."""
    found: list[Item] = []
    for puzzle in profile.calibrators:
        over = space(profile, training(profile, puzzle, "paper", profile.seeds[0]))
        population = populations(profile, puzzle)["uniform"]
        for method in OTHERS:
            found += searches(profile, puzzle, population, method, over, ties="deep")
    return found


def _ball(profile: Profile) -> list[Item]:
    """The 3x3 cube near the goal, where a ball gives the true costs."""
    radius = profile.ball_radius
    population = {
        "name": "all depths",
        "depths": list(range(1, radius + 1)),
        "per_depth": profile.per_depth,
        "seed": profile.instance_seed,
    }
    found: list[Item] = []
    for seed in profile.seeds:
        trained = training(profile, BALL, "paper", seed)
        over = space(profile, trained)
        found += [trained, over, *searches(profile, BALL, population, "raw", trained, ties="deep")]
        found += [*searches(profile, BALL, population, "exhaustive", over, ties="deep")]
    return [*found, *searches(profile, BALL, population, "zero", ties="deep")]


def _sketch(profile: Profile) -> list[Item]:
    """Heuristics along one optimal solution."""
    seed = profile.seeds[0]
    plain, biased = (training(profile, SKETCH, recipe, seed) for recipe in ("mse", "paper"))
    needs = {"mse": plain, "training": biased, "space": space(profile, biased)}
    return [Item("path", {"puzzle": SKETCH, "seed": seed, **_version(SKETCH, "learned")}, needs)]


def _latency(profile: Profile) -> list[Item]:
    found = []
    for puzzle in PUZZLES:
        depth = PUBLISHED_DEPTH.get(puzzle, 10)
        population = {"name": "timed", "depths": [depth], "per_depth": SEARCHES_TIMED, "seed": profile.instance_seed}
        spec = {"puzzle": puzzle, "batches": list(BATCHES), "population": population, "budget": profile.budget}
        found.append(Item("timing", spec, {"training": training(profile, puzzle, "paper", profile.seeds[0])}))
    return found
