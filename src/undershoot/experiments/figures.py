"""Figures, drawn from records and metrics alone."""

import io
from pathlib import Path
from typing import Any

from undershoot.files import written_atomically

BLUE, ORANGE, GREY = "#2f6db5", "#d9792b", "#8a8a8a"


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
    with written_atomically(path) as file:
        file.write(buffer.getvalue())


def landscape(title: str, curves: dict[str, list[tuple[int, float, float]]], path: Path) -> None:
    """Mean of h by true cost, as PNG; curves: for each heuristic, (true cost, mean, standard deviation)."""
    figure, (axis,) = _figure(1)
    costs = [cost for points in curves.values() for cost, _, _ in points]
    axis.plot([0, max(costs)], [0, max(costs)], "--", color=GREY, label="true cost")
    for (name, points), colour in zip(curves.items(), (BLUE, ORANGE, "#3a9a5b", "#9a3a8b"), strict=False):
        x, mean, spread = zip(*points, strict=True)
        axis.plot(x, mean, "o-", color=colour, markersize=3, label=name)
        low, high = ([m + sign * s for m, s in zip(mean, spread, strict=True)] for sign in (-1, 1))
        axis.fill_between(x, low, high, color=colour, alpha=0.12, linewidth=0)
    axis.set_xlabel("true cost")
    axis.set_ylabel("h, mean and standard deviation")
    axis.set_title(title, loc="left")
    axis.legend(frameon=False)
    _save(figure, path)
