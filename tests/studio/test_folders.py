"""Nothing outside the folders is read or written, whatever name comes."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest

import undershoot as us
from studio.conftest import Server
from undershoot.bundles.bundle import SHIPPED
from undershoot.puzzles.definitions import definition_of
from undershoot.studio.folders import LARGEST_PUZZLE, MOST_ACTIONS, Folders
from undershoot.studio.jobs import Limits
from undershoot.studio.studio import Studio
from undershoot.studio.tasks import TASKS

PUZZLE = 'name = "mine"\ngoal = "A B C"\n[moves]\nX = "(1 2 3)"\n'
BAD_NAMES = [
    "..",
    "../secret.toml",
    "/etc/passwd",
    "a/../../secret",
    "..\\secret",
    ".hidden",
    "",
    "a\0b",
    "x" * 200,
    "~root",
    "%2e%2e",
]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    made = Folders(tmp_path / "runs", tmp_path / "puzzles")
    made.runs.mkdir()
    made.puzzles.mkdir()
    (tmp_path / "secret.toml").write_text(PUZZLE)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "config.json").write_text("{}")
    return made


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_lead_elsewhere_are_refused(name: str, folders: Folders) -> None:
    for ask in (
        folders.bundle,
        folders.run_folder,
        lambda n: folders.report_file(n, "index.html"),
        lambda n: folders.puzzle(n + ".toml"),
    ):
        with pytest.raises(us.UndershootError):
            ask(name)


def test_a_long_name_is_not_cut_to_the_path_of_a_file(
    folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for count in range(1, 100):
        name = f".{'/' * count}secret.toml"
        assert Path(name).is_file()
        with pytest.raises(us.UndershootError, match="no puzzle"):
            folders.puzzle(f"{name}x")


def test_links_that_lead_elsewhere_are_refused_and_not_listed(folders: Folders, tmp_path: Path) -> None:
    (folders.runs / "linked").symlink_to(tmp_path / "secret")
    (folders.puzzles / "linked.toml").symlink_to(tmp_path / "secret.toml")
    inner = folders.runs / "inner"
    inner.mkdir()
    (inner / "config.json").write_text("{}")
    (inner / "README.md").symlink_to(tmp_path / "secret.toml")
    report = folders.runs / "told" / "report"
    report.mkdir(parents=True)
    (report / "index.html").write_text("told")
    (report / "secret.txt").symlink_to(tmp_path / "secret.toml")
    for ask, name in ((folders.bundle, "linked"), (folders.puzzle, "linked.toml"), (folders.bundle, "inner")):
        with pytest.raises(us.UndershootError, match="leads out"):
            ask(name)
    with pytest.raises(us.UndershootError, match="leads out"):
        folders.report_file("told", "secret.txt")
    assert folders.report_file("told", "index.html").read_text() == "told"
    assert folders.bundles() == ["inner"]  # listed, but refused when it is asked for
    assert folders.puzzle_files() == []


def test_names_that_came_are_not_echoed_whole_and_the_sentences_are_of_this_place(folders: Folders) -> None:
    for name in ("x" * 5000, "x" * 5000 + ".toml", "tiles-3x4000", "nothing-here"):
        with pytest.raises(us.UndershootError) as refused:
            folders.puzzle(name)
        assert len(str(refused.value)) < 250
        assert "path" not in str(refused.value)
        assert "--" not in str(refused.value)
    with pytest.raises(us.UndershootError, match=r"at most 100 letters, digits, spaces and \. _ \+ -"):
        folders.run_folder("a" * 120)


def test_a_good_puzzle_file_is_kept_and_bad_ones_get_their_sentence(folders: Folders) -> None:
    assert folders.add_puzzle(PUZZLE) == "mine.toml"
    assert folders.puzzle("mine.toml").name == "mine"
    with pytest.raises(us.UndershootError, match="already"):
        folders.add_puzzle(PUZZLE)
    for text, reason in (
        (PUZZLE.replace("mine", "../mine"), "it may hold small letters, digits and hyphens"),
        (PUZZLE.replace("mine", "other").replace("(1 2 3)", "(1 2 9)"), 'names the cell "9"'),
        (PUZZLE.replace("mine", "tiles-3x3"), "which is another puzzle"),
        (PUZZLE.replace("mine", "broken") + "[", "is not a TOML file"),
        ("#" * (LARGEST_PUZZLE + 1), "more than"),
    ):
        with pytest.raises(us.UndershootError, match=reason) as refused:
            folders.add_puzzle(text)
        assert str(folders.puzzles) not in str(refused.value)
    assert os.listdir(folders.puzzles) == ["mine.toml"]


def test_a_puzzle_is_kept_by_its_own_name_however_that_is_written(folders: Folders) -> None:
    told = f'summary = """\nname = "told"\n"""\n{PUZZLE}'
    assert folders.add_puzzle(told.replace('"mine"', "'real'")) == "real.toml"
    assert folders.puzzle("real.toml").name == "real"


def test_a_puzzle_of_more_moves_than_a_page_shows_is_refused_before_they_are_made(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(count: int, cycle: str) -> str:
        moves = "\n".join(f'X{number}x = "{cycle}"' for number in range(count))
        return f'name = "many"\ngoal = "A B C D"\npowers = true\n[moves]\n{moves}\n'

    for many in (written(MOST_ACTIONS + 1, "(1 2)"), written(MOST_ACTIONS // 3 + 1, "(1 2 3 4)")):
        (folders.puzzles / "brought.toml").write_text(many)
        for ask in (partial(folders.add_puzzle, many), partial(folders.puzzle, "brought.toml")):
            with pytest.raises(us.UndershootError, match=r"has 25[78] moves; a page shows at most 256: take some out"):
                ask()
    assert folders.add_puzzle(written(MOST_ACTIONS, "(1 2)")) == "many.toml"
    monkeypatch.setattr("undershoot.puzzles.catalogue.from_text", None)
    with pytest.raises(us.UndershootError, match="has 9,000 moves"):
        folders.add_puzzle(written(9000, "(1 2)"))


def test_no_run_is_trained_in_through_a_link(folders: Folders, tmp_path: Path) -> None:
    for name, inner in (("one", "checkpoints"), ("two", "recipe.toml"), ("three", "bundle"), ("four", "metrics.jsonl")):
        assert folders.training_folder(name) == folders.runs / name  # not there yet
        (folders.runs / name).mkdir()
        (folders.runs / name / "plain").write_text("plain")
        assert folders.training_folder(name) == folders.runs / name
        (folders.runs / name / inner).symlink_to(tmp_path / "secret")
        with pytest.raises(us.UndershootError, match="leads out of the folder"):
            folders.training_folder(name)
    (folders.runs / "five").mkdir()
    (folders.runs / "five" / "checkpoints").symlink_to(folders.runs / "one")
    with pytest.raises(us.UndershootError, match="leads out of the folder five"):
        folders.training_folder("five")


def test_a_puzzle_is_found_by_its_name_whatever_its_file_is_called(folders: Folders) -> None:
    (folders.puzzles / "other file.toml").write_text(PUZZLE)
    (folders.puzzles / "broken.toml").write_text("[")
    assert folders.puzzle_called("mine") == "other file.toml"
    (folders.puzzles / "a.toml").write_text(PUZZLE)
    (folders.puzzles / "mine.toml").write_text(PUZZLE)
    assert folders.puzzle_called("mine") == "mine.toml"
    assert folders.puzzle_called("tiles-3x3") == "tiles-3x3"


def test_of_two_who_keep_a_puzzle_of_one_name_at_once_one_is_told_to_choose_another(folders: Folders) -> None:
    def keep(cycle: str) -> str:
        try:
            folders.add_puzzle(PUZZLE.replace("(1 2 3)", cycle))
        except us.UndershootError as error:
            return str(error)
        return cycle

    cycles = ("(1 2 3)", "(1 3 2)", "(1 2)", "(2 3)")
    with ThreadPoolExecutor(4) as pool:
        for _ in range(30):
            told = list(pool.map(keep, cycles))
            assert sum(said == "there is a puzzle mine.toml already; choose another name" for said in told) == 3
            kept = next(said for said in told if said in cycles)
            assert kept in (folders.puzzles / "mine.toml").read_text()
            assert os.listdir(folders.puzzles) == ["mine.toml"]
            (folders.puzzles / "mine.toml").unlink()


def test_runs_hide_nothing_that_comes_with_the_package(folders: Folders) -> None:
    for name in ("learned", "lights-out-3x3", "a+b"):
        shutil.copytree(SHIPPED / "lights-out-3x3-paper", folders.runs / name / "bundle")
    studio = Studio(folders, Limits())
    assert set(studio.bundle_paths()) == {"runs/learned", "runs/lights-out-3x3", "runs/a+b"}
    assert studio.heuristic_reference("learned") == "learned"
    assert studio.heuristic_reference("runs/learned") == str((folders.runs / "learned" / "bundle").resolve())
    assert studio.bundle_reference("lights-out-3x3") == str(SHIPPED / "lights-out-3x3")
    for name in ("runs/none", "runs/../x", "runs", "/etc"):
        for ask in (studio.heuristic_reference, studio.bundle_reference):
            if name != "runs" or ask == studio.bundle_reference:
                with pytest.raises(us.UndershootError, match="take one of the list"):
                    ask(name)
    lights_out = us.puzzle("lights-out-3x3")
    arguments = {"puzzle": asdict(definition_of(lights_out)), "state": [0] * 9, "bundles": studio.bundle_paths()}
    rows = {row["name"]: row for row in TASKS["known"](arguments, lambda event: None, lambda: False)["rows"]}
    assert rows["learned"]["about"] == "the network that comes with the package"
    assert rows["learned"]["h"] == us.heuristic(lights_out, "learned")(lights_out.table.goals[:1])[0]
    assert rows["runs/learned"]["about"] == "a bundle of yours"


def test_the_server_answers_no_path_that_leads_elsewhere(server: Server) -> None:
    (server.runs.parent / "secret.txt").write_text("hidden words")
    told = server.runs / "told" / "report"
    told.mkdir(parents=True, exist_ok=True)
    (told / "index.html").write_text("told")
    (told / "link.txt").symlink_to(server.runs.parent / "secret.txt")
    assert server.get("/report/told/index.html") == (200, "told")
    for path in (
        "/report/told/link.txt",
        "/report/told/../../../secret.txt",
        "/report/told/..%2f..%2f..%2fsecret.txt",
        "/report/..%2f..%2fsecret.txt/index.html",
        "/report/told/%2fetc%2fpasswd",
        "/browser/../server.py",
        "/browser/..%2fserver.py",
        "/browser/%2fetc%2fpasswd",
    ):
        code, text = server.get(path)
        assert code in (400, 404, 422), path
        assert "hidden words" not in text
        assert "root:" not in text
        assert "import" not in text
    for path in ("/play/..%2f..%2fsecret.toml", "/play/%2fetc%2fpasswd.toml", "/play/nothing-here", "/race/..%2fx.toml"):
        code, text = server.get(path)
        assert code in (200, 404)
        assert "hidden words" not in text


def test_names_of_other_hosts_are_not_answered(server: Server) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", "/help", headers={"Host": "evil.example"})
    assert connection.getresponse().status == 400
