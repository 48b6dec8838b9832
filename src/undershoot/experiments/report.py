"""Tables, figures and verdicts as a report for people, from records alone."""

import base64
import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from undershoot.errors import UndershootError, cannot, shown
from undershoot.experiments import figures, tables
from undershoot.experiments.items import Item
from undershoot.experiments.measures import Columns, expanded, share, solved
from undershoot.experiments.protocol import PUZZLES, Profile
from undershoot.experiments.store import NETWORKS, Store, is_own
from undershoot.experiments.tables import NAMES, Table
from undershoot.experiments.verdicts import PAPERS_STEPS, Verdict, verdicts
from undershoot.files import written_atomically

KINDS = {"train": "trainings", "space": "spaces", "search": "searches", "path": "path", "timing": "timings"}
"""Of items, and what their records are called."""
LONGEST_RUN = 1000
"""Characters of what others say of a run."""
DRAWN = ("base", "mse", "raw", "scramble", "exhaustive", "exceptions", "learned", "table")
"""Heuristics in the figures."""
OVER = "; mean, and standard deviation over trainings"


@dataclass(frozen=True)
class Figure:
    """A picture and what it shows."""

    path: Path
    caption: str


@dataclass(frozen=True)
class Report:
    """Everything that a reader sees."""

    profile: Profile
    about: dict[str, Any]
    """The machine, versions, seeds, commands."""
    tables: list[Table]
    figures: list[Figure]
    verdicts: list[Verdict]


def make_report(store: Store, profile: Profile, items: list[Item]) -> Report:
    """Build it from the records in the store, and write report.md, index.html and the figures."""
    try:
        return _made_report(store, profile, items)
    except OSError as error:
        where = f"write the report to {store.folder}" + ("" if error.filename is None else f" ({error.filename})")
        raise cannot(where, error, "what was computed is kept, --only report goes on") from error


def _made_report(store: Store, profile: Profile, items: list[Item]) -> Report:
    records = {kind: store.records([item for item in items if item.kind == kind]) for kind in KINDS}
    by_kind = {kind: Columns.from_table(table) for kind, table in records.items()}
    searches, spaces = by_kind["search"], by_kind["space"]
    found = [
        *tables.table_one(searches, spaces),
        *tables.ablation(searches, spaces),
        *tables.by_depth(searches),
        *tables.weighted(searches),
        *tables.whole_spaces(spaces),
        *tables.calibrators(searches, spaces),
        *tables.ball(searches, spaces),
        *tables.trainings(by_kind["train"]),
        *tables.latency(by_kind["timing"]),
    ]
    if not found:
        raise UndershootError(f"{store.folder} holds no records yet; make some first: leave `--only report` out")
    claims = verdicts(searches, spaces, by_kind["timing"], by_kind["train"], profile.steps)
    for kind, name in KINDS.items():
        store.write_table(name, records[kind])
    folder = store.folder / "report"
    drawn = [*_draw_path(folder, by_kind["path"]), *_draw(folder, searches, spaces)]
    report = Report(profile, _about(store, profile, items), found, drawn, claims)
    for name, text in (("report.md", _markdown(report)), ("index.html", _page(report)), ("tables.json", _json(report))):
        with written_atomically(folder / name, follow_links=False) as file:
            file.write(text.encode())
    return report


def _about(store: Store, profile: Profile, items: list[Item]) -> dict[str, Any]:
    seconds = store.seconds(items)
    missing = (
        f"; {len(items) - len(seconds):,} are not done, and what needs them is left out" if len(seconds) < len(items) else ""
    )
    return {
        "profile": ", ".join(f"{key} {value}" for key, value in profile.to_dict().items()),
        "work": f"{len(seconds):,} of {len(items):,} pieces, {sum(seconds):,.0f} s of one core{missing}"
        + _made_by_others(store),
        **{f"run {number}": _in_words(run) for number, run in enumerate(store.runs(), 1)},
    }


def _made_by_others(store: Store) -> str:
    """What of it rests on what others say."""
    kinds = list(store.foreign.values())
    told, left_out = (sum((kind in NETWORKS) is is_left_out for kind in kinds) for is_left_out in (False, True))
    parts = [f"{told:,} told as they stand, which it cannot vouch for"] if told else []
    parts += [f"{left_out:,} left out, since they hold networks"] if left_out else []
    return f"; not made by this installation: {', and '.join(parts)}" if parts else ""


def _in_words(run: dict[str, Any]) -> str:
    """A run in one line of text, and whose words these are."""
    text = shown(", ".join(f"{key} {value}" for key, value in run.items() if key != "signature"))
    if is_own(run):
        return text
    cut = text if len(text) <= LONGEST_RUN else f"{text[:LONGEST_RUN]}..."
    return f"not of this installation, but as the folder says: {cut}"


def _draw_path(folder: Path, records: Columns) -> list[Figure]:
    curves = {
        NAMES[part.text("heuristic")[0]]: list(zip(part.of("true_cost").tolist(), part.of("h").tolist(), strict=True))
        for part in records.split("heuristic")
    }
    if not curves:
        return []
    puzzle = records.text("puzzle")[0]
    figures.sketch(f"{puzzle}: what heuristics say along an optimal solution", curves, folder / "sketch.png")
    caption = f"Along an optimal solution of a farthest state of {puzzle}. Where h is above the true cost, A* may go wrong."
    return [Figure(folder / "sketch.png", caption)]


def _draw(folder: Path, searches: Columns, spaces: Columns) -> list[Figure]:
    drawn = []
    panels = {}
    for puzzle in PUZZLES:
        curves = {}
        for name in ("base", "mse", "raw", "scramble", "learned"):
            over = tables.space_of(spaces.where(puzzle=puzzle), name)
            if len(over):
                mean, spread = over.text("mean_by_cost")[0], over.text("spread_by_cost")[0]
                curves[NAMES[name]] = [(float(c), m, s) for c, (m, s) in enumerate(zip(mean, spread, strict=True))]
        if curves:
            panels[puzzle] = curves
    if panels:
        figures.landscapes(panels, folder / "landscape.png")
        caption = (
            "h by true cost over every state: mean and standard deviation, first seed. Above the dashed line it overestimates."
        )
        drawn.append(Figure(folder / "landscape.png", caption))
    bars: dict[str, dict[str, tuple[float, float]]] = {}
    for puzzle in PUZZLES:
        chosen = searches.where(puzzle=puzzle, population="published", weight=1.0)
        for name in DRAWN:
            means = [expanded(part) for part in chosen.where(heuristic=name).split("seed")]
            if means:
                bars.setdefault(puzzle, {})[NAMES[name]] = _mean_and_deviation(means)
    if bars:
        figures.expansions(bars, folder / "expansions.png")
        drawn.append(Figure(folder / "expansions.png", f"Expansions by heuristic at the published depth, ties shallow{OVER}."))
    cube = searches.where(puzzle="cube-2x2", population="all depths", weight=1.0)
    curves_by_depth = {}
    for name in DRAWN:
        chosen = cube.where(heuristic=name)
        points = []
        for part in chosen.split("depth_walked"):
            means = [expanded(seed) for seed in part.split("seed")]
            points.append((float(part.of("depth_walked")[0]), *_mean_and_deviation(means)))
        if points:
            curves_by_depth[NAMES[name]] = sorted(points)
    if curves_by_depth:
        budget = int(cube.of("budget")[0])
        figures.by_depth("2x2 cube: expansions by scramble depth", curves_by_depth, budget, folder / "by_depth.png")
        drawn.append(Figure(folder / "by_depth.png", f"Expansions by scramble depth on the 2x2 cube, ties deep{OVER}."))
    return [*drawn, *_draw_guarantees(folder, searches, spaces)]


def _mean_and_deviation(values: list[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _draw_guarantees(folder: Path, searches: Columns, spaces: Columns) -> list[Figure]:
    drawn = []
    for puzzle, seed in tables.compared(spaces):
        points = []
        uniform = searches.where(puzzle=puzzle, population="uniform", seed=seed, weight=1.0)
        for part in spaces.where(puzzle=puzzle, heuristic="paper", seed=seed).split("variant"):
            name, standing = part.text("variant")[0], part.text("standing")[0]
            found = uniform.where(heuristic=name)
            if len(found):
                points.append((name, standing, expanded(found), share(solved(found), 0)))
        if points:
            path = folder / f"guarantees-{puzzle}.png"
            title, budget = f"{puzzle}: what is known, and what it costs", int(uniform.of("budget")[0])
            figures.against_guarantee(title, points, budget, path)
            drawn.append(Figure(path, f"{puzzle}: every calibrator on one network, by what it says about overestimates."))
    return drawn


def _json(report: Report) -> str:
    found = [{"key": t.key, "title": t.title, "columns": t.columns, "rows": t.rows, "notes": t.notes} for t in report.tables]
    claims = [vars(verdict) for verdict in report.verdicts]
    return json.dumps({"profile": report.profile.name, "about": report.about, "tables": found, "verdicts": claims}, indent=2)


def _markdown(report: Report) -> str:
    lines = [f"# The paper's experiments, measured: profile {report.profile.name}", ""]
    lines += ["## What the paper claims", "", _how_far(report), "", "| claim | verdict | why |", "|---|---|---|"]
    lines += [f"| {v.claim} | **{v.verdict}** | {v.reason} |" for v in report.verdicts]
    first, rest = _in_order(report.tables)
    for table in first:
        lines += _markdown_table(table)
    for figure in report.figures:
        lines += ["", f"![{figure.caption}]({figure.path.name})", "", figure.caption]
    for table in rest:
        lines += _markdown_table(table)
    lines += ["", "## How it was made", "", *(f"- {key}: {_quoted(value)}" for key, value in report.about.items())]
    return "\n".join(lines) + "\n"


def _markdown_table(table: Table) -> list[str]:
    head = f"| {' | '.join(table.columns)} |"
    rows = [f"| {' | '.join(map(_cell, row))} |" for row in table.rows]
    return [
        "",
        f"## {shown(table.title)}",
        "",
        head,
        "|---" + "|---:" * (len(table.columns) - 1) + "|",
        *rows,
        "",
        *map(shown, table.notes),
    ]


def _quoted(text: str) -> str:
    """In Markdown, as it is: what a folder from elsewhere says must not become headings, links or rows."""
    return "`" + shown(text).replace("`", "'") + "`"


def _cell(text: str) -> str:
    return shown(text).replace("|", r"\|")


def _in_order(found: list[Table]) -> tuple[list[Table], list[Table]]:
    """Those of the published setting, which come before the figures, and the rest."""
    first = [table for table in found if table.key.endswith("-published")]
    return first, [table for table in found if table not in first]


def _how_far(report: Report) -> str:
    """How much of the paper's protocol stands behind the verdicts."""
    steps, seeds = report.profile.steps, len(report.profile.seeds)
    text = f"Trainings of each kind: {seeds}, of {steps:,} steps; the paper has 5, of {PAPERS_STEPS:,}."
    if steps >= PAPERS_STEPS:
        return text
    return f"{text} This is a short run: the full one may say otherwise, either way (--profile paper)."


STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; margin: 0 auto; max-width: 72rem; padding: 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; white-space: nowrap; }
.claims td { white-space: normal; } th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child, .claims td, .claims th { text-align: left; } th { border-bottom: 2px solid #888; }
td:first-child { position: sticky; left: 0; background: #fff; } img { max-width: 100%; height: auto; }
figcaption, .note, dl { color: #555; font-size: .85rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; }
dd { margin: 0; overflow-wrap: anywhere; } .holds { color: #1b7f5c; } .fails { color: #a3360b; } figure { margin: 1.5rem 0; }
"""


def _page(report: Report) -> str:
    """One file that needs no other."""
    say = html.escape
    claims = "".join(
        f'<tr><td>{say(v.claim)}</td><td class="{_class(v.verdict)}"><b>{say(v.verdict)}</b></td><td>{say(v.reason)}</td></tr>'
        for v in report.verdicts
    )
    pictures = "".join(
        f'<figure><img alt="{say(f.caption)}" src="data:image/png;base64,{base64.b64encode(f.path.read_bytes()).decode()}">'
        f"<figcaption>{say(f.caption)}</figcaption></figure>"
        for f in report.figures
    )
    first, rest = ("".join(map(_html_table, some)) for some in _in_order(report.tables))
    about = "".join(f"<dt>{say(str(key))}</dt><dd>{say(str(value))}</dd>" for key, value in report.about.items())
    title = f"The paper's experiments, measured: profile {report.profile.name}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{say(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>'
        f'<h1>{say(title)}</h1><h2>What the paper claims</h2><p class="note">{say(_how_far(report))}</p>'
        f'<div class="wide"><table class="claims"><thead><tr><th>claim</th>'
        f"<th>verdict</th><th>why</th></tr></thead><tbody>{claims}</tbody></table></div>{first}{pictures}{rest}"
        f"<h2>How it was made</h2><dl>{about}</dl></body></html>\n"
    )


def _html_table(table: Table) -> str:
    say = html.escape
    head = "".join(f"<th>{say(column)}</th>" for column in table.columns)
    body = "".join("<tr>" + "".join(f"<td>{say(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    notes = "".join(f'<p class="note">{say(note)}</p>' for note in table.notes)
    return (
        f'<h2 id="{table.key}">{say(table.title)}</h2><div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{notes}"
    )


def _class(verdict: str) -> str:
    return "holds" if verdict.startswith("holds") else "fails" if verdict == "does not hold" else ""
