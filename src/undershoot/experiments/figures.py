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
    bottom.step([r["step"] for r in losses], [r["depth"] for r in losses], color=GREY, where="post")
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

    figure = Figure(figsize=(8, 3 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, 1, sharex=True)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    return figure, axes


def _save(figure: Any, path: Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    with written_atomically(path) as file:
        file.write(buffer.getvalue())
