"""Runs on disk: killed, resumed, damaged, refused."""

import errno
import importlib
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

import commands
import undershoot as us
from undershoot.bundles.reading import read_bundle
from undershoot.training import checkpoints
from undershoot.training.loop import train
from undershoot.training.recipe import Curriculum, Recipe, Schedule, read_recipe, recipe_from
from undershoot.training.recipes import recipe
from undershoot.training.runs import Run, read_metrics

TILES = us.puzzle("tiles-2x3")
SMALL = ["--set=hidden=[32,16]", "--set=curriculum.interval=100", "--set=curriculum.max_depth=4", "--set=curriculum.states=10"]


def small(steps: int = 600) -> Recipe:
    curriculum = Curriculum(max_depth=4, interval=100, states=10)
    return replace(recipe(us.puzzle("tiles-2x3")), hidden=(32, 16), steps=steps, curriculum=curriculum)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "undershoot", "train", "tiles-2x3", *SMALL, *arguments]


def undershoot(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    return commands.undershoot("train", "tiles-2x3", *SMALL, *arguments, code=code)


def test_a_run_killed_again_and_again_ends_where_the_undisturbed_run_ends(tmp_path: Path) -> None:
    steps = "--steps=5000"
    undershoot(steps, "--out", str(tmp_path / "whole"))
    broken, draw = tmp_path / "broken", random.Random(3)
    kills = 0
    while kills < 3:
        resume = ["--resume"] if (broken / "recipe.toml").exists() else []
        process = subprocess.Popen(command(steps, "--out", str(broken), *resume), stderr=subprocess.DEVNULL)
        before = newest(broken)
        while newest(broken) == before and process.poll() is None:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.15))
        assert process.poll() is None, "it ended before it could be killed; more steps are needed"
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
    undershoot(steps, "--out", str(broken), "--resume")
    for part in ("bundle/model.safetensors", "checkpoints/step-000005000.safetensors"):
        ours, theirs = ((tmp_path / name / part) for name in ("whole", "broken"))
        if part.startswith("bundle"):
            assert ours.read_bytes() == theirs.read_bytes()
        assert theirs.exists()
    whole, resumed = (read_metrics(tmp_path / name) for name in ("whole", "broken"))
    drop = {"seconds", "evaluation_seconds"}
    assert [{k: v for k, v in row.items() if k not in drop} for row in whole] == [
        {k: v for k, v in row.items() if k not in drop} for row in resumed
    ]


def newest(folder: Path) -> str:
    return max((path.name for path in (folder / "checkpoints").glob("step-*.safetensors")), default="")


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    process = subprocess.Popen(command("--steps=200000", "--out", str(tmp_path / "run")), stderr=subprocess.PIPE, text=True)
    while not newest(tmp_path / "run"):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped at step" in error
    assert "--resume" in error
    assert "Traceback" not in error
    words = shlex.split(error[error.index("go on with: ") + len("go on with: ") :])
    assert words[:2] == ["undershoot", "train"]
    shorter = [word.replace("200000", "400") for word in words[1:]]
    commands.undershoot(*shorter)


def test_damaged_and_foreign_checkpoints_are_named_and_the_one_before_is_used(tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-2x3")
    whole = train(puzzle, small())
    run = Run(tmp_path, TILES, small())
    train(puzzle, small(), run)
    first, second, last = sorted(run.checkpoints.iterdir())
    assert [path.name for path in (first, second, last)] == [f"step-{s:09}.safetensors" for s in (400, 500, 600)]
    last.write_bytes(last.read_bytes()[:-10])
    second.write_bytes(second.read_bytes().replace(b"undershoot checkpoint 1", b"undershoot checkpoint 9"))
    with pytest.warns(UserWarning, match="using the one before it") as caught:
        again = train(puzzle, small(), Run(tmp_path, TILES, small(), resume=True))
    messages = [str(warning.message) for warning in caught]
    assert any(str(last) in message and "damaged" in message for message in messages)
    assert any(str(second) in message and "no checkpoint of undershoot" in message for message in messages)
    for a, b in zip(whole.network.weights, again.network.weights, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    for path in list(run.checkpoints.glob("*.safetensors"))[1:]:
        path.unlink()
    (only,) = run.checkpoints.glob("*.safetensors")
    flipped = bytearray(only.read_bytes())
    flipped[-1] ^= 1
    only.write_bytes(bytes(flipped))
    with pytest.warns(UserWarning, match="do not match its checksum"):
        train(puzzle, small(), Run(tmp_path, TILES, small(), resume=True))


def test_what_a_checkpoint_from_elsewhere_says_of_itself_is_not_said_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = small(200)
    ended = train(TILES, plan, Run(tmp_path, TILES, plan)).position
    again = train(TILES, plan, Run(tmp_path, TILES, plan, resume=True)).position
    assert ended.solve_rate is not None
    assert (again.solve_rate, again.solved_depth) == (ended.solve_rate, ended.solved_depth)
    monkeypatch.setenv("UNDERSHOOT_STATE_DIR", str(tmp_path / "state of another"))
    with pytest.warns(UserWarning, match="was not written by this installation"):
        other = train(TILES, plan, Run(tmp_path, TILES, plan, resume=True)).position
    assert (other.step, other.solve_rate, other.solved_depth) == (200, None, None)


def test_a_full_disk_is_reported_and_the_last_checkpoint_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    puzzle = us.puzzle("tiles-2x3")
    run = Run(tmp_path, TILES, small())
    real = vars(checkpoints)["save"]

    def full(tensors: Any, metadata: Any) -> bytes:
        if json.loads(metadata["position"])["step"] > 200:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return bytes(real(tensors, metadata))

    monkeypatch.setattr(checkpoints, "save", full)
    with pytest.raises(OSError, match="No space left"):
        train(puzzle, small(), run)
    monkeypatch.undo()
    assert newest(tmp_path) == "step-000000200.safetensors"
    assert not list(run.checkpoints.glob(".*"))
    resumed = train(puzzle, small(), Run(tmp_path, TILES, small(), resume=True))
    assert resumed.network.weights[0].tobytes() == train(puzzle, small()).network.weights[0].tobytes()


def test_a_longer_run_goes_on_from_a_shorter_one(tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-2x3")
    train(puzzle, small(330), Run(tmp_path, TILES, small(330)))
    longer = train(puzzle, small(600), Run(tmp_path, TILES, small(600), resume=True))
    assert longer.network.weights[1].tobytes() == train(puzzle, small(600)).network.weights[1].tobytes()


def test_a_run_whose_penalty_or_rate_follows_the_steps_is_not_made_longer(tmp_path: Path) -> None:
    puzzle = us.puzzle("tiles-2x3")
    for changed in (replace(small(), penalty_ramp=(0.0, 0.5)), replace(small(), schedule=Schedule.COSINE)):
        short, longer = (replace(changed, steps=steps) for steps in (330, 600))
        folder = tmp_path / changed.schedule
        train(puzzle, short, Run(folder, TILES, short))
        with pytest.raises(us.UndershootError, match="holds a run of 330 steps, which its penalty or learning rate follows"):
            Run(folder, TILES, longer, resume=True)
        (folder / "recipe.toml").unlink()
        (folder / "metrics.jsonl").unlink()
        with pytest.raises(us.UndershootError, match=r"belongs to another run \(with another steps\)"):
            train(puzzle, longer, Run(folder, TILES, longer, resume=True))


def test_folders_of_other_runs_are_refused(tmp_path: Path) -> None:
    Run(tmp_path / "run", TILES, small())
    with pytest.raises(us.UndershootError, match="holds this run already; go on with --resume"):
        Run(tmp_path / "run", TILES, small())
    with pytest.raises(us.UndershootError, match=r"holds another run \(batch: 128\)"):
        Run(tmp_path / "run", TILES, replace(small(), batch=64), resume=True)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(us.UndershootError, match="holds other files and no run"):
        Run(tmp_path / "notes", TILES, small())
    (tmp_path / "file").write_text("")
    with pytest.raises(us.UndershootError, match="is a file"):
        Run(tmp_path / "file", TILES, small())


def test_train_prints_its_figures_for_programs_and_the_bundle_solves(tmp_path: Path) -> None:
    out = tmp_path / "run"
    document = json.loads(undershoot("--steps=500", "--out", str(out), "--json", "--tensorboard").stdout)
    assert {"puzzle", "recipe", "steps", "depth", "seconds", "steps_per_second", "bundle"} <= set(document)
    assert (document["steps"], document["states"]) == (500, 360)
    assert sum(count for _, count, _ in document["mean_h_by_cost"]) == 360
    assert (out / "training.png").read_bytes()[:4] == b"\x89PNG"
    assert list((out / "events").iterdir())
    assert {path.name for path in (out / "bundle").iterdir()} == {
        "config.json",
        "model.safetensors",
        "puzzle.safetensors",
        "README.md",
    }
    for arguments in (["solve", "tiles-2x3", "--heuristic"], ["bench", "tiles-2x3", "--random=5", "--heuristics"]):
        assert json.loads(commands.undershoot(*arguments, str(out), "--json").stdout)["puzzle"] == "tiles-2x3"
    assert read_bundle(out).network.widths == (us.puzzle("tiles-2x3").encoding.width, 32, 16, 1)


def test_train_shows_people_how_h_compares_with_the_true_cost(tmp_path: Path) -> None:
    shown = undershoot("--steps=300", "--out", str(tmp_path / "run")).stdout
    for part in ("h on every state", "mean h", "above the true cost on", "300 steps in", "use it: undershoot solve tiles-2x3"):
        assert part in shown


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--set=batch=0"], "batch is 0; allowed are 1 to 1048576"),
        (["--set=nonsense=1"], 'unknown key "nonsense"'),
        (["--set=batch"], "is no setting; write key=value"),
        (["--set=loss=huber"], "it must be asymmetric or mse"),
        (["--recipe=papre"], 'Did you mean "paper"?'),
        (["--device=cuda"], "torch finds none here"),
        (["--device=tpu"], "it must be cpu or cuda"),
        (["--set=tf32=true"], "only CUDA has it"),
        (["--set=curriculum.first_depth=9"], "curriculum.max_depth is 4; allowed are 9 to 1000"),
        (["--set=curriculum.budgets=[[1,2,3]]"], "budgets is [1, 2, 3]; it must be a list of 2 numbers"),
        (["--set=learning_rate=" + "9" * 400], "it must be a number"),
        (["--set=hidden=32"], "hidden is 32; it must be a list of whole numbers"),
        (["--set=curriculum=3"], "curriculum is 3; it must be a table"),
        (["--set=batch=1\nsteps=3"], "more than one setting; give each its own --set"),
        (["--recipe=missing.toml"], "cannot read the recipe missing.toml"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(tmp_path: Path, arguments: list[str], part: str) -> None:
    import torch

    if "--device=cuda" in arguments and torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    error = undershoot("--out", str(tmp_path / "run"), *arguments, code=2).stderr
    assert part in " ".join(error.split())
    assert len(error.strip().splitlines()) == 1


def test_lights_out_cannot_be_scrambled_deeper_than_it_has_cells() -> None:
    puzzle = us.puzzle("lights-out-3x3")
    plan = recipe(puzzle)
    with pytest.raises(us.UndershootError, match="10 distinct presses is impossible"):
        train(puzzle, replace(plan, curriculum=replace(plan.curriculum, max_depth=10)))
    with pytest.raises(us.UndershootError, match="the recipe is for lights-out-3x3"):
        train(us.puzzle("tiles-3x3"), plan)


def test_recipes_go_to_toml_and_back(tmp_path: Path) -> None:
    plan = small().with_settings(["loss=mse", "curriculum.budgets=[[1, 10], [3, 20]]", "learning_rate=0.01"])
    path = tmp_path / "mine.toml"
    path.write_text(plan.to_toml())
    assert read_recipe(path) == plan
    assert recipe(us.puzzle("tiles-2x3"), str(path)) == plan
    with pytest.raises(us.UndershootError, match="is a recipe for tiles-2x3, not for tiles-3x3"):
        recipe(us.puzzle("tiles-3x3"), str(path))
    path.write_text("batch = [")
    with pytest.raises(us.UndershootError, match="is not a TOML file"):
        read_recipe(path)
    for data, part in (({}, '"puzzle" is missing'), ({"puzzle": "x", "hidden": []}, "hidden has 0 layers")):
        with pytest.raises(us.UndershootError, match=part):
            recipe_from(data, "test")


def test_training_that_goes_astray_says_so() -> None:
    puzzle = us.puzzle("tiles-2x3")
    with pytest.raises(us.UndershootError, match="lower the learning rate: --set learning_rate"):
        train(puzzle, replace(small(2000), learning_rate=10.0, weight_decay=0.0, overestimate_penalty=1e6, hidden=(64,) * 16))


def test_a_refused_recipe_leaves_the_folder_free(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "run"), "--steps=100"]
    undershoot(*out, "--set=puzzle=cube-2x2", code=2)
    assert not (tmp_path / "run").exists()
    undershoot(*out)


def test_a_changed_puzzle_file_does_not_go_on_with_the_old_weights(tmp_path: Path) -> None:
    source = Path(__file__).parent.parent.parent / "examples" / "discs.toml"
    puzzle_path = tmp_path / "discs.toml"
    puzzle_path.write_text(source.read_text())
    arguments = ["train", str(puzzle_path), *SMALL, "--out", str(tmp_path / "run")]
    commands.undershoot(*arguments, "--steps=100")
    changed = source.read_text().replace("(1 2)", "(1 3)", 1)
    assert changed != source.read_text()
    puzzle_path.write_text(changed)
    done = commands.undershoot(*arguments, "--steps=200", "--resume", code=2)
    assert "belongs to another run (with another fingerprint)" in done.stderr


def test_damaged_checkpoints_are_set_aside_and_do_not_push_out_new_ones(tmp_path: Path) -> None:
    run = Run(tmp_path, TILES, small(600))
    train(TILES, small(600), run)
    for path in run.checkpoints.iterdir():
        path.write_bytes(path.read_bytes()[:-10])
    stopped = iter([False] * 5 + [True] * 100)
    with pytest.warns(UserWarning, match="there is no other, so the run begins anew"):
        train(TILES, small(600), Run(tmp_path, TILES, small(600), resume=True), should_stop=lambda: next(stopped))
    assert newest(tmp_path) == "step-000000250.safetensors"
    assert len(list(run.checkpoints.glob("*.damaged"))) == 3


def test_a_comparison_that_fails_does_not_lose_the_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command_line = importlib.import_module("undershoot.cli.train")

    def fail(*_: object) -> None:
        raise us.UndershootError("no room")

    monkeypatch.setattr(command_line, "_against_the_oracle", fail)
    run = Run(tmp_path / "run", TILES, small(100))
    trained = train(TILES, small(100), run)
    command_line._finish(TILES, small(100), run, trained, "x", True, "tiles-2x3")
    assert read_bundle(tmp_path / "run").figures["steps"] == 100


def test_only_one_process_trains_in_a_folder_and_never_backwards(tmp_path: Path) -> None:
    run = Run(tmp_path, TILES, small(200))
    code = f"import sys; sys.argv = {command('--steps=200', '--out', str(tmp_path), '--resume')[2:]!r}"
    started = [sys.executable, "-c", code + "; from undershoot.cli import main; main()"]
    with run.alone():
        done = subprocess.run(started, capture_output=True, text=True, check=False)
    assert (done.returncode, "another process trains in" in done.stderr) == (2, True)
    train(TILES, small(200), run)
    with pytest.raises(us.UndershootError, match="has made 200 steps already; 100 were asked for"):
        Run(tmp_path, TILES, small(100), resume=True)


def test_a_short_recipe_file_gets_the_usual_depth_of_its_puzzle(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('puzzle = "lights-out-3x3"\nbatch = 64\n[curriculum]\nstates = 10\n')
    plan = recipe(us.puzzle("lights-out-3x3"), str(path))
    assert (plan.batch, plan.curriculum.states, plan.curriculum.max_depth) == (64, 10, 9)


@pytest.mark.parametrize(
    "change",
    [{"seconds": float("nan")}, {"evaluation_seconds": float("inf")}, {"depth": 10**30}, {"depth": -5}, {"solve_rate": 2.0}],
)
def test_a_position_that_no_run_comes_to_is_damage(tmp_path: Path, change: dict[str, Any]) -> None:
    puzzle = us.puzzle("tiles-2x3")
    run = Run(tmp_path, TILES, small())
    train(puzzle, small(), run)
    *others, last = sorted(run.checkpoints.iterdir())
    with safe_open(last, framework="numpy") as file:
        metadata, tensors = dict(file.metadata()), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    del metadata["sha256"], metadata["signature"]
    metadata["position"] = json.dumps({**json.loads(metadata["position"]), **change})
    metadata["sha256"] = checkpoints._digest(tensors, metadata)
    last.write_bytes(save(tensors, metadata))
    with pytest.warns(UserWarning, match="it does not say how far the run has come"):
        train(puzzle, small(), Run(tmp_path, TILES, small(), resume=True))
    assert others
