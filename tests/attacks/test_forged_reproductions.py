"""Folders of `reproduce` from elsewhere: what they claim to have measured is told as theirs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from undershoot.experiments import protocol, report, tables
from undershoot.experiments.items import Files, Item
from undershoot.experiments.protocol import PROFILES, Profile
from undershoot.experiments.report import make_report
from undershoot.experiments.store import Store, is_own
from undershoot.experiments.work import do

PUZZLE = "tiles-2x3"
TINY = replace(PROFILES["quick"], name="tiny", per_depth=1, published=3)
ESCAPE = "\x1b[2J"


def searches(count: int) -> list[Item]:
    population = {"name": "published", "depths": [3], "per_depth": 3, "seed": 0}
    spec = {"puzzle": PUZZLE, "heuristic": "base", "seed": None, "population": population, "weight": 1.0, "ties": "deep"}
    return [Item("search", {**spec, "budget": 100 + number, "start": 0, "stop": 3}) for number in range(count)]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that another installation has made: two pieces of searches, and a training."""
    for module in (protocol, report, tables):
        monkeypatch.setattr(module, "PUZZLES", (PUZZLE,))
    with monkeypatch.context() as patch:
        patch.setenv("UNDERSHOOT_STATE_DIR", str(tmp_path / "state of another"))
        store = Store(tmp_path / "made", TINY.to_dict())
        store.begin({"command": f"evil {ESCAPE}\n\n## Proven `it` never overestimates", "machine": "m" * 5000})
        for item in searches(2):
            store.write(item, forged(do("search", item.spec, {})))
        store.write(Item("train", {"puzzle": PUZZLE}), {"seconds.txt": b"inf"})
    return tmp_path / "made"


def forged(files: Files) -> Files:
    return {**files, "seconds.txt": b"-1e300"}


def reported(folder: Path, items: list[Item], profile: Profile = TINY) -> str:
    make_report(Store(folder, profile.to_dict()), profile, items)
    return (folder / "report" / "report.md").read_text()


@pytest.mark.filterwarnings("ignore:.*was not made by this installation")
def test_how_much_was_not_made_here_is_said(made: Path) -> None:
    items = [*searches(3), Item("train", {"puzzle": PUZZLE})]
    text = reported(made, items)
    assert "not made by this installation: 2 told as they stand, which it cannot vouch for, and 1 left out, since they" in text
    assert "3 of 4 pieces, 0 s of one core" in text
    own = Store(made, TINY.to_dict())
    own.write(items[0], do("search", items[0].spec, {}))
    assert "not made by this installation: 1 told" in reported(made, items)
    assert "cannot vouch" not in reported_alone(made, items[0])


def reported_alone(folder: Path, item: Item) -> str:
    return reported(folder, [item]).split("run 1")[0]


def test_what_others_say_of_a_run_is_quoted_in_one_line(made: Path) -> None:
    text = reported(made, searches(2))
    assert "\x1b" not in text
    (line,) = (line for line in text.splitlines() if "evil" in line)
    assert line.startswith(
        "- run 1: `not of this installation, but as the folder says: command evil \\x1b[2J\\n\\n## Proven 'it'"
    )
    assert line.endswith("...`")
    assert len(line) < 1200
    page = (made / "report" / "index.html").read_text() + (made / "report" / "tables.json").read_text()
    assert "\x1b" not in page


def test_a_run_of_ones_own_is_told_as_such_and_only_as_it_was(made: Path) -> None:
    store = Store(made, TINY.to_dict())
    store.begin({"command": "undershoot reproduce", "cores": 2})
    store.write(searches(1)[0], do("search", searches(1)[0].spec, {}))
    others, own = store.runs()
    assert is_own(own)
    assert not is_own(others)
    text = reported(made, searches(2))
    assert "- run 2: `command undershoot reproduce, cores 2`" in text
    for forged_run in ({**own, "cores": 999}, {**own, "signature": 5}, {**own, "signature": "zz"}, {"cores": 2}):
        (made / "runs.json").write_text(json.dumps([forged_run]))
        assert "- run 1: `not of this installation" in reported(made, searches(2))


def test_the_terminal_says_it_too(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from undershoot.cli.reproduce import _show

    _show(make_report(Store(made, TINY.to_dict()), TINY, searches(2)), 1.0, made)
    assert "not made by this installation: 2 told as they stand" in " ".join(capsys.readouterr().out.split())
