"""Nothing outside the folders is read or written, whatever name comes."""

import os
from pathlib import Path

import pytest

import undershoot as us
from studio.conftest import Server
from undershoot.studio.folders import LARGEST_PUZZLE, Folders

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


def test_a_good_puzzle_file_is_kept_and_bad_ones_get_their_sentence(folders: Folders) -> None:
    assert folders.add_puzzle(PUZZLE) == "mine.toml"
    assert folders.puzzle("mine.toml").name == "mine"
    with pytest.raises(us.UndershootError, match="already"):
        folders.add_puzzle(PUZZLE)
    for text, reason in (
        (PUZZLE.replace("mine", "../mine"), "no line such as"),
        (PUZZLE.replace("mine", "other").replace("(1 2 3)", "(1 2 9)"), 'names the cell "9"'),
        (PUZZLE.replace("mine", "tiles-3x3"), "which is another puzzle"),
        (PUZZLE.replace("mine", "broken") + "[", "is not a TOML file"),
        ("#" * (LARGEST_PUZZLE + 1), "more than"),
    ):
        with pytest.raises(us.UndershootError, match=reason) as refused:
            folders.add_puzzle(text)
        assert str(folders.puzzles) not in str(refused.value)
    assert os.listdir(folders.puzzles) == ["mine.toml"]


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
