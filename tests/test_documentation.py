"""What the documentation says can be done, can be; what it points to is there; nothing public is left out."""

import ast
import doctest
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

import undershoot as us
from undershoot.experiments.executors import Workers
from undershoot.experiments.protocol import PROFILES
from undershoot.workflows import reproduction

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINKED = [ROOT / "README.md", ROOT / "CHANGELOG.md", *PAGES]
FENCED = re.compile(r"^(```+)[^\n]*\n.*?^\1\s*$", re.DOTALL | re.MULTILINE)


def docstring_of(name: str) -> str:
    """Of a public name; that of a constant is the text below it."""
    thing = getattr(us, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        return thing.__doc__ or ""
    statements = ast.parse(inspect.getsource(import_module(us._HOMES[name]))).body
    for statement, below in pairwise(statements):
        is_it = isinstance(statement, ast.Assign) and [ast.unparse(target) for target in statement.targets] == [name]
        if is_it and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            return str(below.value.value)
    return ""


def examples_of(name: str) -> list[doctest.DocTest]:
    """Of a public name, and of what a class holds."""
    thing = getattr(us, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        return [found for found in doctest.DocTestFinder().find(thing, name, globs={"us": us}) if found.examples]
    return [doctest.DocTestParser().get_doctest(docstring_of(name), {"us": us}, name, None, None)]


@contextmanager
def in_this_process(count: int) -> Iterator[Workers]:
    with ThreadPoolExecutor(1) as pool:
        yield Workers(pool, 1)


@pytest.fixture
def small_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """`reproduce` does the same, but less of it."""
    small = replace(PROFILES["quick"], steps=50, per_depth=2, published=5, uniform=5, calibration_states=100)
    monkeypatch.setitem(PROFILES, "quick", small)
    monkeypatch.setattr(reproduction, "processes", in_this_process)


@pytest.mark.parametrize("name", us.__all__)
@pytest.mark.usefixtures("small_work")
def test_every_public_name_has_an_example_that_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Examples:\n" in docstring_of(name)
    monkeypatch.chdir(tmp_path)
    for example in examples_of(name):
        said: list[str] = []
        assert not doctest.DocTestRunner().run(example, out=said.append).failed, "".join(said)


def test_every_public_name_is_in_the_reference() -> None:
    shown = re.findall(r"^::: undershoot\.(\w+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert sorted(shown) == us.__all__


def test_every_page_is_in_the_navigation() -> None:
    nav = re.search(r"^nav:\n((?:[ ]+.*\n)+)", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert nav
    shown = re.findall(r": (\S+\.md)$", nav[1], re.MULTILINE)
    assert sorted(shown) == sorted(page.relative_to(DOCS).as_posix() for page in PAGES)


def test_the_site_loads_nothing_from_elsewhere() -> None:
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "  font: false\n" in settings
    assert "//" not in settings
    assert not re.search(r"url\(|@import", (DOCS / "site.css").read_text())


def headings(path: Path) -> set[str]:
    """The anchors of a page, as its headings give them; a second one of the same name gets a number."""
    seen: Counter[str] = Counter()
    anchors = set()
    text = FENCED.sub("", path.read_text())
    for title in re.findall(r"^#{1,6} +(.+?) *$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return anchors | set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE))


def dead_links(path: Path) -> list[str]:
    """Links of a page to files or headings that are not there; those to other sites are not followed."""
    text = re.sub(r"`[^`\n]*`", "", FENCED.sub("", path.read_text()))
    dead = []
    for link in re.findall(r"\]\(\s*<?([^)\s>]+)[^)]*\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        if not target.exists() or (anchor and anchor not in headings(target)):
            dead.append(link)
    return dead


@pytest.mark.parametrize("path", LINKED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_link_is_dead(path: Path) -> None:
    assert not dead_links(path)


def test_dead_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# Title\n\n## A *b*, `c`: d\n\n## Title\n\n```\n# not a heading\n```\n")
    good = "[a](other.md) [b](other.md#a-b-c-d) [c](#here) [d](other.md#title-1) ![e](page.md) [f](https://example.org/x)\n"
    page.write_text(f"# Here\n\n{good}\n```\n[g](nowhere.md)\n```\n`[h](nowhere.md)`\n")
    assert not dead_links(page)
    bad = ["gone.md", "other.md#not-a-heading", "#there", "gone.png", "other.md#title-2"]
    page.write_text(f"# Here\n\n{good}" + " ".join(f"[x]({link})" for link in bad))
    assert dead_links(page) == bad


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_of_the_site_point_to_nothing_outside_it(path: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", FENCED.sub("", path.read_text()))
    for link in re.findall(r"\]\(\s*<?([^)#\s>]+)", text):
        assert re.match(r"[a-z]+:", link) or (path.parent / link).resolve().is_relative_to(DOCS)
