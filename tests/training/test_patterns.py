"""Training on patterns: by tables, by moves alone, with another loss; stopped and resumed; refused."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import commands
import undershoot as us
from undershoot.bundles.pattern_reading import read_pattern_bundle
from undershoot.files import contents_digest
from undershoot.heuristics.every_arrangement import check_every_arrangement
from undershoot.heuristics.pattern_networks import PatternNetwork
from undershoot.pattern_tables.looks import distinct_patterns
from undershoot.pattern_tables.making import make_entries
from undershoot.pattern_tables.pattern import Pattern
from undershoot.pattern_tables.residuals import residuals_of
from undershoot.pattern_tables.sets import pattern_set
from undershoot.pattern_tables.tables import PatternTable, make_table
from undershoot.pattern_tables.tensors import TensorRanking
from undershoot.training.label_free_patterns import LabelFreeLearner, residuals_by_moves
from undershoot.training.loop import train
from undershoot.training.losses import loss_of_levels
from undershoot.training.pattern_runs import TrainedPatterns, finish, train_patterns
from undershoot.training.recipe import Loss, Recipe, Schedule
from undershoot.training.recipes import recipe
from undershoot.training.runs import Run, read_metrics

SMALL = ["hidden=[24,16]", "batch=128", "curriculum.interval=100"]
TWO = "1 2 3 / 4 5 6"


def small(puzzle: str, patterns: str, name: str, *settings: str) -> Recipe:
    return recipe(us.puzzle(puzzle), name, patterns).with_settings([*SMALL, *settings])


@cache
def the_pattern(puzzle: str, patterns: str) -> tuple[Pattern, PatternTable]:
    pattern = pattern_set(us.puzzle(puzzle), patterns).patterns[0]
    return pattern, make_table(pattern, device="cpu")


def weights(networks: list[PatternNetwork]) -> list[bytes]:
    return [
        array.tobytes()
        for network in networks
        for layer in (network.network.weights, network.network.biases)
        for array in layer
    ]


PATTERNS = [("tiles-3x3", "1 2 3"), ("tiles-2x3", "1 4"), ("cube-2x2", "3"), ("topspin-6-3", "3")]


@pytest.mark.parametrize(("puzzle", "patterns"), PATTERNS)
def test_backups_from_true_costs_are_the_true_costs(puzzle: str, patterns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a guide that is right, both networks are shown what the table says, for every place of the cursor."""
    pattern, table = the_pattern(puzzle, patterns)
    entries = torch.from_numpy(make_entries(pattern, 1, lambda done, of: None).astype(np.float32))
    base = us.puzzle(puzzle).base_heuristic
    learner = LabelFreeLearner(pattern, residuals_by_moves(pattern, base, 40), small(puzzle, patterns, "label-free"))

    def true_values(codes: list[torch.Tensor], wanted: torch.Tensor) -> torch.Tensor:
        numbers = learner.steps.ranking.numbers_of([code.expand(wanted.shape) for code in codes])
        return torch.where(wanted, entries[numbers.clamp(0, len(entries) - 1)], 0.0)

    monkeypatch.setattr(learner, "_values", true_values)
    numbers = torch.arange(len(entries))
    codes = learner.steps.ranking.codes_of(numbers)
    costs = learner.costs(codes)
    here = costs.gather(0, codes[-1].long()[None])[0] if pattern.has_cursor else costs[0]
    known = entries < 255
    assert (here[known] == entries[known]).all()
    followed = torch.stack(codes[: len(pattern.followed)], dim=1).long()
    ranking = TensorRanking(pattern.folded)
    folded = torch.from_numpy(table.unpacked().astype(np.float32))[ranking.numbers_of(list(followed.int().unbind(1)))]
    assert (costs.amin(dim=0)[folded < 255] == folded[folded < 255]).all()


@pytest.mark.parametrize(("puzzle", "patterns"), PATTERNS)
def test_moves_say_of_h0s_share_what_the_table_says(puzzle: str, patterns: str) -> None:
    pattern, table = the_pattern(puzzle, patterns)
    base = us.puzzle(puzzle).base_heuristic
    by_table, by_moves = residuals_of(table, base), residuals_by_moves(pattern, base, 9)
    assert (by_table.share == by_moves.share).all()
    assert by_table.step % by_moves.step == 0
    assert by_table.step == by_moves.step or not by_table.share.any()


def test_walks_come_only_to_arrangements_that_have_a_solution() -> None:
    pattern, _ = the_pattern("tiles-2x3", "1 2 3 4 5")
    entries = make_entries(pattern, 1, lambda done, of: None)
    assert (entries == 255).any()
    base = us.puzzle("tiles-2x3").base_heuristic
    rules = small("tiles-2x3", "1 2 3 4 5", "label-free")
    walked = LabelFreeLearner(pattern, residuals_by_moves(pattern, base, 16), rules).walks(3000).numpy()
    assert (entries[walked] < 255).all()
    assert len(np.unique(walked)) > 200


@pytest.mark.parametrize("name", ["exact", "label-free"])
def test_a_tiny_pattern_is_learned(name: str) -> None:
    steps = {"exact": 300, "label-free": 800}[name]
    rules = small("tiles-3x3", "1 2 3", name, f"steps={steps}", "target_interval=20", "initial_scale=1")
    trained = train_patterns(us.puzzle("tiles-3x3"), rules)
    assert trained.is_finished
    (network,), (_, table) = trained.networks, the_pattern("tiles-3x3", "1 2 3")
    assert network.thresholds == (0,) * len(network.thresholds)
    found = check_every_arrangement(network, table)
    shares = check_every_arrangement(replace(network, thresholds=(2**24,) * len(network.thresholds)), table).mean
    assert found.violations < 0.1 * found.arrangements
    assert found.mean - shares > 0.5 * (found.mean_cost - shares)


@pytest.mark.parametrize("name", ["exact", "label-free"])
def test_cross_entropy_learns_too(name: str) -> None:
    rules = small("tiles-3x3", "1 2 3", name, "steps=400", "loss=cross-entropy", "target_interval=20")
    (network,) = train_patterns(us.puzzle("tiles-3x3"), rules).networks
    found = check_every_arrangement(network, the_pattern("tiles-3x3", "1 2 3")[1])
    assert found.violations < 0.15 * found.arrangements
    assert abs(found.mean - found.mean_cost) < 1


def test_cross_entropy_is_that_of_a_distribution_and_penalises_what_lies_above() -> None:
    values = torch.tensor([[0.3, -1.2, 2.0], [1.0, 0.5, -0.5], [0.1, 0.2, 0.3]], dtype=torch.float64)
    targets = torch.tensor([1, 3, -1])
    expected = []
    for row, truth in zip(values.tolist(), targets.tolist(), strict=True):
        odds = np.exp(np.concatenate([[0], np.cumsum(row)]))
        chances = odds / odds.sum()
        expected.append(0.0 if truth < 0 else -np.log(chances[truth]) - 4 * np.log(chances[: truth + 1].sum()))
    assert float(loss_of_levels(Loss.CROSS_ENTROPY, values, targets, 5.0)) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(
    ("name", "settings"), [("exact", ["hard_share=0.5", "target_interval=40"]), ("label-free", ["steps=160"])]
)
def test_a_resumed_run_ends_where_the_undisturbed_run_ends(tmp_path: Path, name: str, settings: list[str]) -> None:
    puzzle = us.puzzle("tiles-3x3")
    rules = small("tiles-3x3", TWO, name, "steps=200", *settings)
    whole = train_patterns(puzzle, rules)
    for after in (3, 2, 9, 1):  # blocks until it is stopped; twice on the first pattern, twice on the second or at the end
        stopped = stopped_after(after)
        folder = tmp_path / "run"
        found = train_patterns(puzzle, rules, Run(folder, puzzle, rules, resume=folder.exists()), should_stop=stopped)
    assert not found.is_finished
    again = train_patterns(puzzle, rules, Run(folder, puzzle, rules, resume=True))
    assert again.is_finished
    assert weights(again.networks) == weights(whole.networks)
    for number in (1, 2):
        rows = [row["step"] for row in read_metrics(folder / f"pattern-{number}") if "loss" in row]
        assert rows == sorted(set(rows))
        assert rows[-1] == rules.steps
    once_more = train_patterns(puzzle, rules, Run(folder, puzzle, rules, resume=True))
    assert weights(once_more.networks) == weights(whole.networks)


def stopped_after(blocks: int) -> Callable[[], bool]:
    asked = 0

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > blocks

    return should_stop


def test_patterns_that_a_symmetry_maps_onto_each_other_are_trained_once() -> None:
    puzzle = us.puzzle("tiles-3x3")
    chosen = pattern_set(puzzle, "2 3 6 / 4 7 8")
    assert len(chosen.patterns) == 2
    assert distinct_patterns(chosen.patterns) == chosen.patterns[:1]
    trained = train_patterns(puzzle, small("tiles-3x3", "2 3 6 / 4 7 8", "exact", "steps=20"))
    assert [network.pattern.followed for network in trained.networks] == [chosen.patterns[0].followed]


def test_a_bundle_is_written_once_and_never_over_another(tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-3x3")
    rules = replace(small("tiles-3x3", TWO, "exact", "steps=40", "penalty_ramp=[0, 0]"), schedule=Schedule.CONSTANT)

    def trained(rules: Recipe, resume: bool) -> tuple[TrainedPatterns, bool, Path | None]:
        run = Run(tmp_path / "run", puzzle, rules, resume)
        done = train_patterns(puzzle, rules, run)
        return done, *finish(run, done, "undershoot train")

    bundle = tmp_path / "run" / "bundle"
    assert trained(rules, resume=False)[1:] == (True, None)
    first = contents_digest(bundle)
    assert trained(rules, resume=True)[1:] == (False, None)
    with pytest.raises(us.UndershootError, match="has made 40 steps already"):
        trained(replace(rules, steps=30), resume=True)
    assert contents_digest(bundle) == first  # what is refused takes nothing away
    for steps in (49, 80):  # the first ends within a block, so that no checkpoint is later than those of before
        done, *written = trained(replace(rules, steps=steps), resume=True)
        assert written == [True, tmp_path / "run" / f"bundle-before-{steps}"]
        assert read_pattern_bundle(bundle).recipe["steps"] == steps
        fresh = train_patterns(puzzle, replace(rules, steps=steps)).networks
        for one, other in zip(done.networks, fresh, strict=True):
            assert all((a == b).all() for a, b in zip(one.network.weights, other.network.weights, strict=True))
    assert contents_digest(tmp_path / "run" / "bundle-before-49") == first
    (bundle / "model.safetensors").write_bytes(b"junk")
    assert trained(replace(rules, steps=80), resume=True)[1:] == (True, tmp_path / "run" / "bundle-before-80-2")


def test_from_the_command_line(tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    arguments = ["train", "tiles-2x3", "--patterns", "1 2 / 3 4 5", "--steps", "40", "--out", folder]
    arguments += [f"--set={setting}" for setting in SMALL]
    assert "above the table" in commands.undershoot(*arguments).stdout
    assert "--resume" in commands.undershoot(*arguments, code=2).stderr
    assert '"left_alone"' in commands.undershoot(*arguments, "--resume", "--json").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lights-out-3x3", "--patterns", "3-3"], "has no pieces"),
        (["tiles-3x3", "--patterns", "corner"], "no set of patterns"),
        (["tiles-3x3", "--patterns", " "], "names no set"),
        (["tiles-3x3", "--patterns", "4-4", "--recipe", "paper"], "on patterns there are exact and label-free"),
        (["tiles-3x3", "--patterns", "4-4", "--set", "exact_share=0.5"], "exact_share is 0.5"),
        (["tiles-3x3", "--patterns", "4-4", "--set", "loss=mse"], "loss is mse"),
        (["tiles-3x3", "--patterns", "4-4", "--recipe", "label-free", "--set", "levels=0"], "levels is 0"),
        (["tiles-3x3", "--patterns", "4-4", "--tensorboard"], "leave it out"),
        (["tiles-3x3", "--patterns", "4-4", "--set", "patterns=3-5"], "named by --patterns"),
        (["tiles-3x3", "--set", "patterns=3-5"], "named by --patterns"),
        (["tiles-3x3", "--patterns", "4-4", "--set", "encoding=pieces"], "use pairs"),
        (["tiles-3x3", "--patterns", "1 / 2 3"], "one piece only"),
        (["tiles-3x3", "--patterns", "4-4", "--set", "levels=300"], "at most 255"),
        (["cube-2x2", "--patterns", "3+3+inverse"], "leave out +inverse"),
        (["tiles-3x3", "--set", "loss=cross-entropy"], "is for networks on patterns"),
        (["tiles-5x5", "--patterns", "10-10-4", "--recipe", "label-free"], "follows 10 pieces; of this puzzle searches ask"),
        (["tiles-4x4", "--patterns", "3-3-9"], "are free: follow fewer pieces"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], words: str, tmp_path: Path) -> None:
    found = commands.undershoot("train", *arguments, "--out", str(tmp_path / "run"), code=2)
    assert words in found.stderr
    assert found.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_device_that_is_not_there_is_refused(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    found = commands.undershoot("train", "tiles-3x3", "--patterns", "4-4", "--device", "cuda", "--out", out, code=2)
    assert "torch finds none here" in found.stderr


def test_a_recipe_for_patterns_is_refused_where_whole_states_are_trained_on() -> None:
    puzzle = us.puzzle("tiles-3x3")
    with pytest.raises(us.UndershootError, match="train_patterns"):
        train(puzzle, recipe(puzzle, "exact", "4-4"))
