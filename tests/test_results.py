"""The results that are told come from the records that are kept."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from undershoot.bundles.bundle import SHIPPED
from undershoot.bundles.pattern_reading import is_pattern_bundle, read_pattern_bundle
from undershoot.bundles.reading import read_bundle

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
TITLES = {
    "lights-out-3x3": "Lights Out 3x3",
    "lights-out-5x5": "Lights Out 5x5",
    "tiles-3x3": "8-puzzle",
    "cube-2x2": "2x2 cube",
}
ON_PATTERNS = [path.name for path in SHIPPED.iterdir() if is_pattern_bundle(path)]
BUNDLES = sorted({path.name for path in SHIPPED.iterdir() if not path.name.endswith("-paper")} - {*ON_PATTERNS})
SHOWN = ("h0", "MSE network", "paper, raw", "paper, exhaustive", "learned, certified", "perfect table")


def rows_of(key: str) -> list[dict[str, str]]:
    """A table of the report."""
    report: dict[str, Any] = json.loads((RESULTS / "tables.json").read_text())
    (table,) = (table for table in report["tables"] if table["key"] == key)
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def test_the_result_table_of_the_readme_is_that_of_the_report() -> None:
    readme = (ROOT / "README.md").read_text()
    spaces = {(row["puzzle"], row["heuristic"]): row for row in rows_of("spaces")}
    for puzzle, title in TITLES.items():
        searched = {row["heuristic"]: row["expanded, all"] for row in rows_of(f"table1-{puzzle}-uniform")}
        over = [spaces[puzzle, name] for name in SHOWN]
        lines = (
            (f"{title}, {over[0]['states']} states", "mean h", [row["mean h"] for row in over]),
            ("", "states above h\\*", [row["overestimates"] for row in over]),
            ("", "expanded", [searched[name] for name in SHOWN]),
        )
        for first, what, cells in lines:
            assert f"| {first} | {what} | {' | '.join(cells)} |" in readme


def test_the_report_in_the_docs_is_complete_and_its_records_are_there() -> None:
    report = json.loads((RESULTS / "tables.json").read_text())
    assert report["profile"] == "paper"
    assert "not done" not in report["about"]["work"]
    assert all(v["verdict"] in ("holds", "does not hold", "cannot be compared") for v in report["verdicts"])
    for picture in ("landscape.png", "expansions.png", "by_depth.png", "sketch.png"):
        assert picture in (RESULTS / "report.md").read_text()
        assert (RESULTS / picture).exists()


def test_what_is_said_to_be_proven_of_each_search_is_true() -> None:
    columns = ("optimality", "cost", "true_cost", "lower_bound")
    table = pyarrow.parquet.read_table(RESULTS / "records" / "searches.parquet", columns=list(columns))
    said, cost, true, bound = (table[name].to_numpy() for name in columns)
    proven = said == "proven"
    for path in ("README.md", "docs/reproduce.md"):
        assert f"{len(said):,} searches" in (ROOT / path).read_text()
    assert proven.mean() > 0.5
    assert (cost[proven] == true[proven]).all()
    assert (bound <= true + 1e-6).all()


def test_what_never_overestimates_does_not() -> None:
    certified = ("paper, exhaustive", "paper, exceptions", "learned, certified", "label-free, certified", "small, certified")
    rows = [row for row in rows_of("spaces") if row["heuristic"] in certified]
    assert len(rows) == 16
    assert all(row["overestimates"] == "0" for row in rows)


@pytest.mark.parametrize("name", BUNDLES)
def test_the_table_of_bundles_is_that_of_their_certificates(name: str) -> None:
    starts = tuple(f"| {name} | `{recipe}`" for recipe in ("exact", "label-free"))
    (line,) = (line for line in (ROOT / "docs" / "results.md").read_text().splitlines() if line.startswith(starts))
    found = json.loads((SHIPPED / name / "certificate.json").read_text())
    size = read_bundle(name).learned_bytes
    moves = f"{found['inconsistent_edges']:,} of {found['edges']:,}"
    assert f"| {found['mean_h']:.4f} | {found['mean_true']:.4f} | {moves} | {size:,} |" in line


@pytest.mark.parametrize("name", ON_PATTERNS)
def test_what_is_told_of_networks_on_patterns_is_in_their_certificates(name: str) -> None:
    told, bundle = (ROOT / "docs" / "patterns.md").read_text(), read_pattern_bundle(name)
    assert f"{bundle.learned_bytes:,} bytes" in told
    for row in json.loads((SHIPPED / name / "certificate.json").read_text())["checks"]:
        assert f"| {row['arrangements']:,} | {row['mean_h']:.3f} | {row['mean_cost']:.3f} |" in told
