"""The rungs: a module imports only from lower rungs and its own folder."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from undershoot.kernels.compiler import WITHOUT_LOOPS

PACKAGE = Path(__file__).parent.parent / "src" / "undershoot"
RUNGS = {
    **{"verifier": 0, "pattern_verifier": 0, "arrays": 0, "errors": 0},
    **{"files": 0.1, "trust": 0.2, "guarantees": 0.5, "puzzles": 1, "kernels": 2, "oracles": 3, "pattern_tables": 3.5},
    **{"heuristics": 4, "search": 5, "bundles": 6, "training": 7, "calibration": 7, "certification": 7},
    **{"experiments": 8, "workflows": 8.5, "studio": 9, "cli": 9.5, "__main__": 10},
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def imported_parts(path: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        parts |= {name.split(".")[1] for name in names if name.startswith("undershoot.")}
    return parts


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_import_only_from_lower_rungs(path: Path) -> None:
    part = path.relative_to(PACKAGE).with_suffix("").parts[0]
    if part == "__init__":
        return  # it names everything, and loads it when asked
    for other in imported_parts(path) - {part}:
        assert RUNGS[other] < RUNGS[part], f"{part} (rung {RUNGS[part]}) imports {other} (rung {RUNGS[other]})"


def test_every_part_has_a_rung() -> None:
    parts = {path.relative_to(PACKAGE).with_suffix("").parts[0] for path in MODULES}
    assert parts - {"__init__"} == set(RUNGS)


@pytest.mark.parametrize(
    "statement", ["import undershoot", "import undershoot.cli", "import undershoot as u; u.puzzle('cube-2x2')"]
)
def test_heavy_libraries_are_loaded_only_when_needed(statement: str) -> None:
    code = f"import sys; {statement}; print([m for m in ('torch', 'numba', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_no_drawer_for_odds_and_ends() -> None:
    assert not [path for path in MODULES if {"utils", "common", "helpers", "misc"} & set(path.with_suffix("").parts)]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_can_be_read_in_one_go(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 80, f"{node.name} has more than 80 lines"


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.relative_to(PACKAGE).parts[0] in WITHOUT_LOOPS], ids=lambda path: path.name
)
def test_nothing_is_compiled_where_changes_are_not_noticed(path: Path) -> None:
    """Machine code is kept as long as no source changes, but for those of these parts, which the others may not import."""
    imported = {node.module for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)}
    assert not imported & {"undershoot.kernels.compiler", "numba"}


def test_the_server_of_the_studio_computes_nothing_itself() -> None:
    code = "import sys; import undershoot.studio.server; print([m for m in ('torch', 'numba', 'scipy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


WITHOUT_PRESENTATION = ("kernels", "oracles", "heuristics", "search", "training")


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if path.relative_to(PACKAGE).parts[0] in WITHOUT_PRESENTATION],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_what_computes_needs_no_notation_and_no_picture(path: Path) -> None:
    modules = {node.module for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)}
    assert not modules & {f"undershoot.puzzles.{part}" for part in ("puzzle", "notation", "pictures")}
