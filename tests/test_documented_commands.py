"""Commands, outputs and Python in the documentation work."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from commands import undershoot

ROOT = Path(__file__).parent.parent
TOO_LONG = ('cube-3x3 "R U', "7-8")
"""In commands that make pattern tables for more than half a minute; smaller ones are tried in their place."""


def documented_commands() -> list[str]:
    """In their order; those of an earlier page are not run again."""
    commands: list[str] = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        blocks = "".join(re.findall(r"```sh\n(.*?)```", path.read_text(), re.DOTALL))
        found = [line.split("#")[0].strip() for line in blocks.splitlines() if line.startswith("undershoot ")]
        before = set(commands)
        commands += [c for c in found if c not in before and not any(part in c for part in TOO_LONG)]
    return commands


def test_there_are_documented_commands() -> None:
    assert len(documented_commands()) >= 5


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a clone, in which commands may leave things for those after them."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / "examples").symlink_to(ROOT / "examples")
    return folder


@pytest.mark.parametrize("command", documented_commands())
def test_documented_commands_work(command: str, clone: Path) -> None:
    undershoot(*shlex.split(command)[1:], folder=clone)


def test_the_output_in_the_readme_is_real() -> None:
    shown = re.findall(r"```\n\$ (undershoot .*?)\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(shown) >= 2
    for command, output in shown:
        done = undershoot(*shlex.split(command)[1:]).stdout
        lines = [
            [re.sub(r"\d+\.\d+ s\b", "S", line).rstrip() for line in text.strip("\n").splitlines()] for text in (done, output)
        ]
        assert lines[0] == lines[1]


def test_documented_puzzle_files_are_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/add-a-puzzle.md").read_text(), re.DOTALL)
    assert len(blocks) == 3
    assert blocks[0] == (ROOT / "examples" / "discs.toml").read_text()
    for block in blocks:
        (tmp_path / "puzzle.toml").write_text(block)
        undershoot("puzzles", "--check", str(tmp_path / "puzzle.toml"))
        assert json.loads(undershoot("oracle", str(tmp_path / "puzzle.toml"), "--json").stdout)["states"] > 1


@pytest.mark.parametrize(
    "path", ["README.md", "docs/index.md", "docs/add-a-puzzle.md", "docs/search.md", "docs/training.md", "docs/two-bounds.md"]
)
def test_documented_python_works(path: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == re.findall(r"print\(.*\)  # (.*)", block)
