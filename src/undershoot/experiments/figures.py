"""Figures, drawn from records and metrics alone."""

import io
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

from undershoot.files import written_atomically

Given = ParamSpec("Given")
SETTINGS = "matplotlibrc"
BLUE, ORANGE, GREY = "#2f6db5", "#d9792b", "#8a8a8a"


def plainly(draw: Callable[Given, None]) -> Callable[Given, None]:
    """The decorated function draws with matplotlib's own settings: a file of others, in the present folder, may ask for
    anything."""

    @wraps(draw)
    def drawn(*arguments: Given.args, **named: Given.kwargs) -> None:
        matplotlib = _matplotlib()
        with matplotlib.rc_context():
            matplotlib.rcdefaults()
            draw(*arguments, **named)

    return drawn


def _matplotlib() -> Any:
    """matplotlib, which looks for settings in the present folder when it is imported, and fails if they are no text: it is told
    that there are none. Those of the user's own, in their home folder, it reads."""
    paths: Any = os.path
    exists = paths.exists
    paths.exists = lambda path: path != SETTINGS and exists(path)
    try:
        import matplotlib
    finally:
        paths.exists = exists
    return matplotlib


@plainly
def training_curve(title: str, metrics: list[dict[str, Any]], path: Path) -> None:
    """Loss, solve rate and curriculum depth by step, as PNG."""
    figure, (top, bottom) = _figure(2)
    losses = [row for row in metrics if "loss" in row]
    rates = [row for row in metrics if "solve_rate" in row]
    top.plot([r["step"] for r in losses], [r["loss"] for r in losses], color=BLUE, linewidth=0.8)
    top.set_yscale("log")
    top.set_ylabel("loss")
    top.set_title(title, loc="left")
    bottom.step([r["step"] for r in losses], [r["depth"] for r in losses], color=GREY, where="pre")
    bottom.set_ylabel("scramble depth", color=GREY)
    bottom.set_ylim(bottom=0)
    bottom.set_xlabel("step")
    other = bottom.twinx()
    other.plot([r["step"] for r in rates], [100 * r["solve_rate"] for r in rates], "o-", color=ORANGE, markersize=3)
    other.set_ylabel("solved at that depth, %", color=ORANGE)
    other.set_ylim(0, 105)
    other.spines["top"].set_visible(False)
    _save(figure, path)


@plainly
def bounds_over_time(curves: dict[str, list[list[tuple[float, int | None, int]]]], path: Path) -> None:
    """For each title the histories of some instances, seconds, cost and lower bound, as PNG: two steps that approach."""
    figure, axes = _figure(len(curves))
    for axis, (title, histories) in zip(axes, curves.items(), strict=True):
        for history in histories:
            costs = [(max(seconds, 0.01), cost) for seconds, cost, _ in history if cost is not None]
            bounds = [(max(seconds, 0.01), bound) for seconds, _, bound in history]
            for points, colour in ((costs, ORANGE), (bounds, BLUE)):
                if points:
                    axis.step(*zip(*points, strict=True), where="post", color=colour, linewidth=1.2, alpha=0.8)
        axis.set_xscale("log")
        axis.set_ylabel("cost")
        axis.set_title(title, loc="left")
    axes[-1].set_xlabel("seconds")
    _save(figure, path)


def _figure(rows: int) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3 * rows if rows > 1 else 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    return figure, axes


def _save(figure: Any, path: Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    with written_atomically(path, follow_links=False) as file:
        file.write(buffer.getvalue())


COLOURS = {
    "h0": "#8a8a8a",
    "MSE network": "#d9792b",
    "paper, raw": "#2f6db5",
    "paper, its offset": "#7fb2e5",
    "paper, exhaustive": "#9a3a8b",
    "paper, exceptions": "#c98bc0",
    "learned, certified": "#1b7f5c",
    "perfect table": "#111111",
}
"""Distinct also for the colour-blind, and in their lightness."""
OTHER_COLOURS = (BLUE, ORANGE, GREY, "#9a3a8b")
"""For other names, in turn."""
MARKS = dict(zip(COLOURS, "osd^v<*x", strict=True))
Curve = list[tuple[float, float, float]]
"""(x, mean, spread)."""


@plainly
def landscapes(panels: dict[str, dict[str, Curve]], path: Path) -> None:
    """h by true cost, a panel for each puzzle: mean and standard deviation."""
    figure, axes = _grid(len(panels))
    for axis, (title, curves) in zip(axes, panels.items(), strict=False):
        highest = max(x for points in curves.values() for x, _, _ in points)
        for number, (name, points) in enumerate(curves.items()):
            x, mean, spread = (list(values) for values in zip(*points, strict=True))
            colour = COLOURS.get(name, OTHER_COLOURS[number % len(OTHER_COLOURS)])
            axis.plot(x, mean, MARKS.get(name, "o") + "-", markersize=3.5, linewidth=1.2, color=colour, label=name)
            low, high = ([m + sign * s for m, s in zip(mean, spread, strict=True)] for sign in (-1, 1))
            axis.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)
        axis.plot([0, highest], [0, highest], "--", color="#111111", linewidth=1, zorder=5, label="true cost")
        axis.set_title(title, loc="left", fontsize=10)
        axis.set_xlabel("true cost (moves)")
        axis.set_ylabel("h (moves)")
    _shared_legend(figure, axes)
    _save(figure, path)


@plainly
def sketch(title: str, curves: dict[str, list[tuple[float, float]]], path: Path) -> None:
    """h along one optimal solution; curves: (true cost, h) by heuristic. What lies above the true cost is shaded."""
    figure, (axis,) = _figure(1)
    highest = max(x for points in curves.values() for x, _ in points)
    top = 1.05 * max(y for points in curves.values() for _, y in points)
    axis.fill_between([0, highest], [0, highest], [top, top], color="#d9792b", alpha=0.08, linewidth=0, label="overestimates")
    axis.plot([0, highest], [0, highest], "--", color="#111111", linewidth=1, zorder=5, label="true cost")
    for name, points in curves.items():
        x, y = (list(values) for values in zip(*points, strict=True))
        colour = COLOURS.get(name, GREY)
        axis.plot(x, y, MARKS.get(name, "o") + "-", color=colour, markersize=4, linewidth=1.2, label=name)
    axis.invert_xaxis()
    axis.set_ylim(0, top)
    axis.set_xlabel("true cost left (moves): the solution goes from left to right")
    axis.set_ylabel("h (moves)")
    axis.set_title(title, loc="left")
    axis.legend(frameon=False, fontsize=8)
    _save(figure, path)


@plainly
def expansions(panels: dict[str, dict[str, tuple[float, float]]], path: Path) -> None:
    """Expansions by heuristic, a panel for each puzzle: mean and standard deviation over seeds."""
    figure, axes = _grid(len(panels))
    for axis, (title, bars) in zip(axes, panels.items(), strict=False):
        names = list(bars)
        means, spreads = [bars[name][0] for name in names], [bars[name][1] for name in names]
        axis.barh(names, means, xerr=spreads, color=[COLOURS.get(name, GREY) for name in names], error_kw={"linewidth": 1})
        for number, mean in enumerate(means):
            axis.text(mean + spreads[number] + 0.01 * max(means), number, f"{mean:,.1f}", va="center", fontsize=8)
        axis.set_xlim(0, 1.2 * max(means))
        axis.invert_yaxis()
        axis.set_title(title, loc="left", fontsize=10)
        axis.set_xlabel("expanded, mean (unsolved: the budget)")
        axis.grid(visible=False, axis="y")
        axis.set_axisbelow(True)
        axis.tick_params(axis="y", labelsize=8)
    _save(figure, path)


@plainly
def by_depth(title: str, curves: dict[str, Curve], budget: int, path: Path) -> None:
    """Expansions by scramble depth: mean and standard deviation over trainings, on a logarithmic scale."""
    figure, (axis,) = _figure(1)
    for name, points in curves.items():
        x, mean, error = (list(values) for values in zip(*points, strict=True))
        colour = COLOURS.get(name, GREY)
        axis.errorbar(x, mean, error, fmt=MARKS.get(name, "o") + "-", color=colour, markersize=4, linewidth=1.2, label=name)
    axis.axhline(budget, linestyle=":", color=GREY, linewidth=1, label="budget")
    axis.set_yscale("log")
    axis.set_xlabel("scramble depth (moves)")
    axis.set_ylabel("expanded, mean; bars: standard deviation over trainings")
    axis.set_title(title, loc="left")
    axis.legend(frameon=False, fontsize=8)
    _save(figure, path)


@plainly
def against_guarantee(title: str, points: list[tuple[str, str, float, str]], budget: int, path: Path) -> None:
    """Expansions of each calibrator, by what it says; points: (method, standing, mean expanded, percent solved)."""
    figure, (axis,) = _figure(1)
    said = {"none": "nothing is known", "sampled": "a rate, from a sample", "proven": "never overestimates, proven"}
    colours = {"none": "#d9792b", "sampled": "#2f6db5", "proven": "#1b7f5c"}
    place = 0
    for standing, words in said.items():
        chosen = sorted((expanded, method, part) for method, found, expanded, part in points if found == standing)
        rows = list(range(place, place + len(chosen)))
        axis.barh(rows, [expanded for expanded, _, _ in chosen], color=colours[standing], label=words)
        for row, (expanded, method, part) in zip(rows, chosen, strict=True):
            axis.text(expanded, row, f"  {method}: {expanded:,.1f}, {part} % solved", va="center", fontsize=9)
        place += len(chosen) + 1
    end = 1.5 * max(expanded for _, _, expanded, _ in points)
    if budget < end:
        axis.axvline(budget, linestyle=":", color=GREY, linewidth=1, label="budget")
    axis.set_xlim(0, end)
    axis.invert_yaxis()
    axis.set_yticks([])
    axis.grid(visible=False, axis="y")
    axis.set_axisbelow(True)
    axis.set_xlabel("expanded, mean over uniform states (unsolved: the budget)")
    axis.set_title(title, loc="left")
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    _save(figure, path)


def _grid(panels: int) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = -(-panels // 2)
    figure = Figure(figsize=(10, 3.6 * rows) if panels > 1 else (8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, min(2, panels), squeeze=False).ravel()
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    for axis in axes[panels:]:
        axis.set_visible(False)
    return figure, axes


def _shared_legend(figure: Any, axes: Any) -> None:
    shown = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
