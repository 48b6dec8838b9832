"""Train: a small training, seen as it goes, that can be stopped and gone on with."""

import asyncio
import math
import re
import tomllib
from dataclasses import asdict
from typing import Any

from nicegui import ui

from undershoot.errors import UndershootError
from undershoot.files import read_text
from undershoot.puzzles.definitions import definition_of
from undershoot.studio.elements import EMIT_CHOSEN, Choice, Field, box, button, enable, escaped, figure, markup, said, text
from undershoot.studio.jobs import Job, Stage
from undershoot.studio.pages.layout import Saying, page, puzzle_options
from undershoot.studio.studio import RUNS, Studio

LEAD = "A run keeps its recipe, metrics and checkpoints in the folder of runs; when it ends, its bundle is in all lists."
FIRST_RECIPE = "paper"
MOST_STEPS = 1_000_000
MOST_LAYERS, WIDEST = 16, 8192
"""Of a recipe, whose own sentence speaks of the command line."""
DECADES = 5
"""Of losses that are shown: one that is nearly 0, as on scrambles of one move, would press all others together."""
POWER = "(value) => value >= 0.01 && value < 1000 ? String(value) : value.toExponential(0)"


def train_page(studio: Studio) -> None:
    """All runs, and a form for a new one."""
    with page("train", "Train", LEAD):
        Training(studio)


class Training:
    """One visitor; runs belong to the studio and go on without visitors."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self._last: tuple[str, int, int, Stage | None, bool] | None = None
        self._listed: dict[str, Stage] = {}
        """Where each run was when the list of runs was made."""
        self.shown = next((name for name, job in studio.trainings.items() if not job.is_over), next(iter(studio.trainings), ""))
        with box("us-columns"):
            with box("us-stack"):
                self._form()
                with box("us-card"):
                    text("Runs", tag="h2")
                    self.runs = box("us-stack").style("gap: .4rem")
                    self.runs.on("click", self._chosen, js_handler=EMIT_CHOSEN)
            with box("us-card"):
                self.heading = text("No run is shown", tag="h2")
                with box("us-row"):
                    self.stop_button = button("Stop", self.stop, "is-stop", "stop")
                    self.go_button = button("Go on", self.go_on, name="go-on")
                    self.stage = text("", "us-soft", "span")
                self.progress = markup("")
                self.figures = markup("", "us-figures")
                self.chart = ui.echart(_options([])).style("height: 20rem; width: 100%")
                self.saying = markup("").props("data-say=train")
        self._list_runs()
        self._refresh()
        ui.timer(0.5, self._refresh)
        ui.timer(0.05, self._load, once=True)

    async def _load(self) -> None:
        """What recipes there are, which the library knows."""
        try:
            found = await self.studio.ask("recipes", {})
        except UndershootError as error:
            self.wrong.say(str(error))
            return
        self.recipe.offer({name: f"{name} – {about}" for name, about in found["recipes"].items()})

    def _form(self) -> None:
        with box("us-card"):
            text("A new run", tag="h2")
            with box("us-row").style("align-items: flex-end"):
                self.puzzle = Choice("Puzzle", puzzle_options(self.studio), "lights-out-3x3", classes="is-wide")
                self.recipe = Choice("Recipe", {FIRST_RECIPE: FIRST_RECIPE}, FIRST_RECIPE, classes="is-wide")
            with box("us-row").style("align-items: flex-end"):
                self.name = Field("Name of the run", "first", classes="is-wide", data_do="run-name")
                self.steps = Field("Steps", "2000", "number", "is-number", min=1, max=MOST_STEPS, data_do="steps")
                self.hidden = Field("Hidden layers", "64 64", classes="is-number", data_do="hidden")
                self.seed = Field("Seed", "0", "number", "is-number", min=0)
                button("Train", self.start, "is-main", "train")
            self.wrong = Saying()

    def _stages(self) -> dict[str, Stage]:
        return {name: job.stage for name, job in self.studio.trainings.items()}

    def _list_runs(self) -> None:
        self._listed = self._stages()
        self.runs.clear()
        with self.runs:
            names = list(dict.fromkeys([*self.studio.trainings, *self.studio.folders.trainings()]))
            if not names:
                text("None yet.", "us-soft")
            for name in names:
                with box("us-row"):
                    text(name, "us-grow", "b")
                    job = self.studio.trainings.get(name)
                    has_bundle = name in self.studio.folders.bundles()
                    words = (
                        job.stage.value
                        if job is not None and not job.is_over
                        else "has a bundle"
                        if has_bundle
                        else "not finished"
                    )
                    text(words, "us-small", "span")
                    button("Show", None, name=f"show-{name}").props["data-choose"] = name

    async def _chosen(self, event: Any) -> None:
        await self._show(str(event.args))

    async def _show(self, name: str) -> None:
        self.shown = name
        self.wrong.say("")
        if name not in self.studio.trainings:
            try:
                found = await self.studio.ask("curve", {"folder": str(self.studio.folders.training_folder(name).resolve())})
                self.studio.metrics[name] = found["rows"]
            except UndershootError as error:
                self.wrong.say(str(error))
        self._refresh()

    def _new_name(self) -> str:
        name = self.name.value.strip()
        if (self.studio.folders.run_folder(name) / "recipe.toml").exists():
            raise UndershootError(f"there is a run {name!a} already; choose another name, or show it and go on with it")
        return name

    def _widths(self) -> list[str]:
        """Of the hidden layers; none for those of the recipe."""
        given = self.hidden.value.replace(",", " ").split()
        are_widths = all(re.fullmatch(r"[1-9][0-9]{0,3}", each) and int(each) <= WIDEST for each in given)
        if len(given) > MOST_LAYERS or not are_widths:
            raise UndershootError(
                f"the hidden layers are {self.hidden.value[:20]!a}; allowed are whole numbers from 1 to {WIDEST:,} with spaces "
                f"between them, at most {MOST_LAYERS}, such as 64 64, or nothing, for those of the recipe"
            )
        return given

    def start(self) -> None:
        """A run with what the form says."""
        try:
            name = self._new_name()
            widths = self._widths()
            settings = [
                f"steps={self.steps.whole('the number of steps', 1, MOST_STEPS)}",
                f"seed={self.seed.whole('the seed', 0, 2**31)}",
                *([f"hidden=[{', '.join(widths)}]"] if widths else []),
            ]
            self._submit(name, self.puzzle.value, self.recipe.value, settings)
        except UndershootError as error:
            self.wrong.say(str(error))

    async def go_on(self) -> None:
        """With the run that is shown, from its last checkpoint."""
        folders, name = self.studio.folders, self.shown
        try:
            recipe = tomllib.loads(read_text(folders.training_folder(name) / "recipe.toml", "the recipe"))
            puzzle = await asyncio.to_thread(folders.puzzle_called, str(recipe["puzzle"]))
            before = self.studio.trainings.get(name)
            known = {} if before is None else before.arguments
            self._submit(name, puzzle, known.get("recipe", ""), known.get("settings", []))
        except (UndershootError, OSError, ValueError, KeyError) as error:
            self.wrong.say(f"the run cannot go on: {error}")

    def _submit(self, name: str, puzzle: str, recipe: str, settings: list[str]) -> None:
        current, folders = self.studio.trainings.get(name), self.studio.folders
        if current is not None and not current.is_over:
            raise UndershootError(f"the run {name!a} is under way")
        arguments = {
            "puzzle": asdict(definition_of(folders.puzzle(puzzle))),
            "puzzle_name": str(folders.puzzles / puzzle) if puzzle.endswith(".toml") else puzzle,
            "folder": str(folders.training_folder(name).resolve()),
            "recipe": recipe,
            "recipe_file": str(folders.run_folder(name) / "recipe.toml"),
            "settings": settings,
        }
        rows = self.studio.metrics.setdefault(name, [])

        def collect(event: dict[str, Any]) -> None:
            if "steps" in event:
                rows[:] = [row for row in rows if row["steps"] < event["steps"]]
                rows.append(event)
                if len(rows) > 2000:
                    del rows[1::2]

        job = self.studio.jobs.submit(f"training {name}", "train", arguments, lambda job: None, on_event=collect, keeps=True)
        self.studio.trainings[name] = job
        self.shown = name
        self.wrong.say("")
        self._list_runs()

    def stop(self) -> None:
        """After the block at hand, with a checkpoint."""
        job = self.studio.trainings.get(self.shown)
        if job is not None:
            self.studio.jobs.ask_to_stop(job)

    def _refresh(self) -> None:
        if self._stages() != self._listed:  # of any run, shown or not
            self._list_runs()
        job, rows = self.studio.trainings.get(self.shown), self.studio.metrics.get(self.shown, [])
        is_ending = job is not None and job.is_asked_to_stop
        state = (self.shown, len(rows), rows[-1]["steps"] if rows else 0, None if job is None else job.stage, is_ending)
        if state == self._last:
            return
        self._last = state
        is_over = job is None or job.is_over
        self.heading.say(self.shown or "No run is shown")
        enable(self.stop_button, not is_over and not is_ending)
        enable(self.go_button, is_over and self.shown in self.studio.folders.trainings() and not self._has_ended(job))
        self._show_metrics(rows)
        self.saying.set_content("")
        self.stage.say("")
        if job is not None:
            self._say_stage(job)

    def _has_ended(self, job: Job | None) -> bool:
        is_finished = job is not None and job.result is not None and bool(job.result["is_finished"])
        return is_finished or self.shown in self.studio.folders.bundles()

    def _say_stage(self, job: Job) -> None:
        if job.stage is Stage.FAILED:
            self.saying.set_content(said(job.error, "is-wrong"))
        elif job.stage is Stage.DONE and job.result is not None:
            if job.result["is_finished"]:
                known = "Nothing is known about overestimates until it is calibrated."
                words = f"Finished. The bundle {RUNS}{self.shown} is in all lists. {known}"
                self.saying.set_content(said(words))
            else:
                self.saying.set_content(
                    said(f"Stopped at step {job.result['steps']:,} of {job.result['of']:,}, with a checkpoint.", "is-open")
                )
        elif job.stage is Stage.STOPPED:
            self.saying.set_content(said("Stopped before it began.", "is-open"))
        running = "stopping, with a checkpoint …" if job.is_asked_to_stop else job.event.get("text", "training …")
        words = {"waiting": "in the queue …", "running": running}.get(job.stage, "")
        self.stage.say(words)

    def _show_metrics(self, rows: list[dict[str, Any]]) -> None:
        self.chart.options.update(_options(rows))
        self.chart.update()
        if not rows:
            self.figures.set_content("")
            self.progress.set_content("")
            return
        last = rows[-1]
        rate = "–" if last["solve_rate"] is None else f"{math.floor(100 * last['solve_rate'] + 1e-9)}%"
        self.figures.set_content(
            figure("steps", f"{last['steps']:,}")
            + figure("loss", "–" if last["loss"] is None else f"{last['loss']:.4g}")
            + figure("scramble depth", f"{last['depth']}")
            + figure("solved there", rate)
            + figure("seconds", f"{last['seconds']:.1f}")
        )
        share = 100 * last["steps"] / max(1, last["of"])
        self.progress.set_content(
            f'<div class="us-progress" title="{escaped(last["of"])} steps"><i style="width:{share:.1f}%"></i></div>'
        )


def _powers(losses: list[float]) -> dict[str, float]:
    """The powers of ten that hold the losses, from the greatest down."""
    highest = math.ceil(math.log10(max(losses, default=1.0)))
    lowest = max(highest - DECADES, math.floor(math.log10(min(losses, default=0.1))))
    return {"min": 10.0 ** min(lowest, highest - 1), "max": 10.0**highest}


def _options(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Loss on a logarithmic axis, depth and the share of solved evaluations on the other."""
    soft, line = "#8a979c", "rgba(128,145,150,.22)"
    axis: dict[str, Any] = {"axisLabel": {"color": soft, "hideOverlap": True}}
    axis |= {"nameTextStyle": {"color": soft}, "splitLine": {"lineStyle": {"color": line}}}
    losses = [row["loss"] for row in rows if row["loss"]]
    evaluated = [[row["steps"], round(100 * row["solve_rate"], 1)] for row in rows if row["solve_rate"] is not None]
    common = {"type": "line", "showSymbol": False}
    return {
        "animation": False,
        "grid": {"left": 8, "right": 8, "top": 74, "bottom": 26, "containLabel": True},
        "legend": {"top": 4, "textStyle": {"color": soft}},
        "tooltip": {"trigger": "axis"},
        "xAxis": {"type": "value", "name": "steps", "nameLocation": "middle", "nameGap": 28, "splitNumber": 4, **axis},
        "yAxis": [
            {"type": "log", "name": "loss", **_powers(losses), **axis, "axisLabel": {"color": soft, ":formatter": POWER}},
            {"type": "value", "name": "depth, %", "min": 0, **{**axis, "splitLine": {"show": False}}},
        ],
        "series": [
            {
                **common,
                "name": "loss",
                "data": [[row["steps"], row["loss"]] for row in rows if row["loss"]],
                "lineStyle": {"width": 1.6},
                "color": "#0b9a93",
            },
            {
                **common,
                "name": "scramble depth",
                "yAxisIndex": 1,
                "step": "end",
                "data": [[row["steps"], row["depth"]] for row in rows],
                "color": "#c98a1b",
            },
            {
                **common,
                "name": "solved, %",
                "yAxisIndex": 1,
                "data": evaluated,
                "lineStyle": {"type": "dashed"},
                "color": "#7a8a90",
            },
        ],
    }
