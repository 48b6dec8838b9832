"""What people see: tables in narrow terminals, names in the help, and options in the messages."""

import re
from pathlib import Path

import pytest

from commands import undershoot
from undershoot.bundles.names import LEARNED
from undershoot.cli.posing import NAMES
from undershoot.cli.terminal import show_table, stdout
from undershoot.heuristics.catalogue import HEURISTICS

SIX = "learned,small,base,zero,table,linear-conflict"
NUMBER = re.compile(r"[+-]?\d[\d,.]*\d|\d")
WIDE = 300


def numbers(text: str) -> set[str]:
    """But for times, and what follows from them."""
    lines = [line for line in text.splitlines() if not re.search(r"second|explored|cache|\d s\b|steps in|memory", line)]
    return {number.rstrip(",.") for line in lines for number in NUMBER.findall(line)}


@pytest.mark.parametrize("columns", [60, 80, 100])
@pytest.mark.parametrize(
    "arguments",
    [
        ("puzzles",),
        ("puzzles", "cube-3x3"),
        ("oracle", "tiles-3x3"),
        ("bench", "tiles-3x3", "--random", "10", "--heuristics", SIX, "--max-expanded", "50000"),
        ("calibrate", "lights-out-3x3-paper", "--compare", "--n", "500"),
        ("certify", "tiles-3x3", "--sample", "100"),
        ("solve", "tiles-3x3", "--random", "3"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_narrow_terminal_cuts_no_digits(arguments: tuple[str, ...], columns: int) -> None:
    narrow, wide = undershoot(*arguments, columns=columns).stdout, undershoot(*arguments, columns=WIDE).stdout
    assert "…" not in narrow
    assert numbers(wide) <= numbers(narrow)
    paths = ("from the cache", "heuristic:")
    assert all(len(line) <= columns for line in narrow.splitlines() if not line.startswith(paths))


def test_columns_that_do_not_fit_follow_below(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    cells = [["first", "1,234,567", "2,345,678", "3,456,789"], ["second", "1", "2", "some words that are many"]]
    show_table(["", "a/long/path/of/a/bundle", "b", "c"], cells, "Title", prose=(3,))
    shown = capsys.readouterr().out
    assert [shown.count(number) for number in ("1,234,567", "2,345,678", "3,456,789")] == [1, 1, 1]
    assert shown.count("first") == 2  # beside each part
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 30


@pytest.mark.parametrize(("command", "option"), [("solve", "--heuristic"), ("bench", "--heuristics")])
def test_the_help_lists_every_heuristic(command: str, option: str) -> None:
    assert NAMES.split(", ") == [*LEARNED, "patterns", "patterns:SET", *HEURISTICS]
    shown = undershoot(command, "--help", columns=WIDE).stdout
    assert option in shown
    assert NAMES in re.sub(r"[│\s]+", " ", shown)


def test_without_a_command_there_is_the_list_of_commands() -> None:
    done = undershoot(code=2)
    for command in ("puzzles", "oracle", "train", "calibrate", "certify", "check", "solve", "bench", "reproduce"):
        assert command in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("solve", "cube-3x3", "--scramble-depth", "-1"), "--scramble-depth"),
        (("solve", "lights-out-3x3", "--scramble-depth", "10"), "--scramble-depth"),
        (("solve", "tiles-3x3", "--scramble-depth", "1000000000"), "--scramble-depth"),
        (("bench", "tiles-3x3", "--scrambles", "3", "--per-depth", "0"), "--per-depth"),
        (("solve", "tiles-3x3", "--random", "0"), "--random"),
        (("solve", "tiles-3x3", "--threads", "0"), "--threads"),
        (("solve", "tiles-3x3", "--weight", "0"), "--weight"),
        (("solve", "tiles-3x3", "--expand-per-step", "0"), "--expand-per-step"),
        (("solve", "tiles-3x3", "--max-expanded", "-1"), "--max-expanded"),
        (("solve", "tiles-3x3", "--max-seconds", "-1"), "--max-seconds"),
        (("solve", "tiles-3x3", "--max-memory", "10"), "--max-memory"),
        (("oracle", "cube-3x3"), "--radius"),
        (("oracle", "cube-3x3", "--radius", "12"), "--radius"),
        (("oracle", "tiles-3x3", "--radius", "-1"), "--radius"),
        (("train", "lights-out-3x3", "--set", "curriculum.max_depth=20"), "curriculum.max_depth"),
        (("train", "tiles-3x3", "--set", "levels=1"), "levels"),
        (("calibrate", "lights-out-3x3", "--method", "conformal", "--alpha", "2"), "--alpha"),
        (("calibrate", "lights-out-3x3", "--method", "conformal", "--confidence", "2"), "--confidence"),
        (("calibrate", "lights-out-3x3", "--method", "max", "--confidence", "2"), "--confidence"),
        (("calibrate", "lights-out-3x3", "--method", "max", "--n", "0"), "--n"),
        (("calibrate", "lights-out-3x3", "--method", "conformal", "--n", "5"), "--n"),
        (("calibrate", "lights-out-3x3", "--method", "exceptions", "--listed", "3"), "--listed"),
        (("calibrate", "lights-out-3x3", "--ball", "-1"), "--ball"),
        (("calibrate", "lights-out-3x3", "--method", "best"), "--method"),
        (("reproduce", "--seeds", "0"), "--seeds"),
        (("reproduce", "--only", "nothing"), "--only"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_messages_name_the_option_to_use(arguments: tuple[str, ...], option: str, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "new")) if arguments[0] in ("calibrate", "train", "reproduce") else ()
    message = undershoot(*arguments, *out, code=2, folder=tmp_path).stderr
    assert option in message
    assert message.startswith("undershoot: ")
    assert message.count("\n") == 1
    assert "[Errno" not in message


def test_who_reads_a_pipe_gets_sentences_in_one_line_unless_a_width_is_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    stdout().print("word " * 60)
    monkeypatch.setenv("COLUMNS", "40")
    stdout().print("word " * 60)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "word " * 60
    assert max(map(len, shown[1:])) <= 40
