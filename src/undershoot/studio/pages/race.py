"""Race: several heuristics on one instance, each in a process of its own, side by side in expansions and seconds."""

import asyncio
from functools import partial
from typing import Any

from nicegui import ui

from undershoot.errors import UndershootError
from undershoot.studio.boards import StillBoard
from undershoot.studio.elements import EMIT_CHECKED, Choice, Field, badge, box, button, enable, escaped, markup, text
from undershoot.studio.games import Game, address
from undershoot.studio.jobs import Job, Stage
from undershoot.studio.pages.instances import Instance
from undershoot.studio.pages.layout import Links, Saying, page, puzzle_options
from undershoot.studio.pages.solve import ALGORITHMS, submit_search
from undershoot.studio.studio import Studio

LEAD = "The same instance for each heuristic. A stronger one expands less; whether that is quicker, the clock says."
MOST_RUNNERS = 6
USUAL_DEPTH = 20
USUAL = ("learned", "patterns", "linear-conflict", "paper", "table", "base")
"""Runners that are chosen at first, if they are at hand: three that differ."""


async def race_page(studio: Studio, name: str, state: str) -> None:
    """The page of a puzzle, at this state if one is given."""
    with page("race", "Race", LEAD, name) as links:
        try:
            game, wrong = Game(await asyncio.to_thread(studio.folders.puzzle, name), name), ""
        except UndershootError as error:
            Saying().say(str(error))
            button("To the 8-puzzle", lambda: ui.navigate.to(address("race", "tiles-3x3")))
            return
        try:
            if state:
                await asyncio.to_thread(game.read, state)
            else:
                await asyncio.to_thread(game.begin_near, USUAL_DEPTH, 1)
        except UndershootError as error:
            wrong = str(error)
        Race(studio, game, links, wrong)


class Race:
    """One instance and its runners."""

    def __init__(self, studio: Studio, game: Game, links: Links, wrong: str) -> None:
        self.studio, self.game = studio, game
        self.chosen: dict[str, bool] = {}
        self.jobs: dict[str, Job] = {}
        with box("us-columns"):
            with box("us-stack"), box("us-card"):
                with box("us-row"):
                    Choice("", puzzle_options(studio, game.name), game.name, self._open, pick=True).element.props[
                        "aria-label"
                    ] = "Puzzle"
                self.board = StillBoard(game.puzzle, game.state[0].tolist())
                self.instance = Instance(game, "race", links, USUAL_DEPTH, self._begun)
                self.saying = self.instance.saying
                self.saying.say(wrong)
            with box("us-stack"):
                with box("us-card"):
                    text("Runners", tag="h2")
                    self.runners = box("us-checks")
                    with self.runners:
                        text("Looking for heuristics …", "us-soft")
                    with box("us-row").style("align-items: flex-end"):
                        self.algorithm = Choice("Algorithm", ALGORITHMS, "auto", classes="is-wide")
                        self.seconds = Field("Seconds each", "30", "number", "is-number", min=1, max=600)
                        self.go = button("Start", self.start, "is-main", "start")
                        self.end = button("Stop", self.stop, "is-stop", "stop")
                self.card = box("us-card us-hidden")
                with self.card:
                    text("The race", tag="h2")
                    self.lanes = markup("")
        enable(self.end, False)
        enable(self.go, False)  # until there are runners
        ui.context.client.on_delete(self.stop)
        ui.timer(0.05, self._load, once=True)

    async def _load(self) -> None:
        try:
            bundles = await asyncio.to_thread(self.studio.bundle_paths)
            answer = await self.studio.ask("known", self._arguments() | {"bundles": bundles})
        except UndershootError as error:
            self.runners.clear()
            self.saying.say(str(error))
            return
        self.runners.clear()
        names = [row["name"] for row in answer["rows"] if "error" not in row]
        usual = [name for name in USUAL if name in names][:3] or names[:3]
        self.chosen = {name: name in usual for name in names}
        with self.runners:
            for name, is_chosen in self.chosen.items():
                with ui.element("label").classes("us-check"):
                    tick = (
                        ui.element("input")
                        .props("type=checkbox" + (" checked" if is_chosen else ""))
                        .props(f'data-runner="{escaped(name)}"')
                    )
                    tick.on("change", partial(self._choose, name), js_handler=EMIT_CHECKED)
                    text(name, tag="span")
        enable(self.go, True)

    def _choose(self, name: str, event: Any) -> None:
        self.chosen[name] = bool(event.args)

    def _arguments(self) -> dict[str, Any]:
        return {"puzzle": self.game.definition, "state": self.game.state[0].tolist()}

    def _open(self, name: str) -> None:
        ui.navigate.to(address("race", name))

    def _begun(self) -> None:
        """Another instance: a race from another state is none from this one."""
        self.instance.show()
        self.stop()
        self.jobs = {}
        self._told(None)
        self.card.classes("us-hidden")
        self.board.show(self.game.state[0].tolist())
        self.board.run_method("address", self.instance.address)

    def start(self) -> None:
        """All runners that are chosen, unless a race is under way: what is clicked twice begins once."""
        if any(not job.is_over for job in self.jobs.values()):
            return
        names = [name for name, is_chosen in self.chosen.items() if is_chosen]
        if not 2 <= len(names) <= MOST_RUNNERS:
            self.saying.say(f"{len(names)} runners are chosen; choose 2 to {MOST_RUNNERS}")
            return
        self.saying.say("")
        self.jobs = {}
        try:
            seconds = self.seconds.whole("the limit of seconds", 1, 600)
            for name in names:
                arguments = self._arguments() | {
                    "heuristic": self.studio.heuristic_reference(name),
                    "algorithm": self.algorithm.value,
                    "max_seconds": float(min(seconds, self.studio.limits.seconds)),
                    "max_memory": self.studio.limits.memory // 2,
                }
                self.jobs[name] = submit_search(self.studio, f"race of {name}", arguments, self._told)
        except UndershootError as error:
            self.saying.say(str(error))
        enable(self.go, False)
        enable(self.end, True)
        self.card.classes(remove="us-hidden")
        self._told(None)

    def stop(self) -> None:
        """All of them."""
        for job in self.jobs.values():
            self.studio.jobs.stop(job)

    def _told(self, job: Job | None) -> None:
        figures = {name: _figures(each) for name, each in self.jobs.items()}
        most = max([1, *(expanded for expanded, _ in figures.values())])
        longest = max([1e-3, *(seconds for _, seconds in figures.values())])
        self.lanes.set_content("".join(_lane(name, each, *figures[name], most, longest) for name, each in self.jobs.items()))
        if all(each.is_over for each in self.jobs.values()):
            enable(self.go, True)
            enable(self.end, False)


def _figures(job: Job) -> tuple[int, float]:
    """Expansions and seconds so far."""
    last = job.result or job.event
    return int(last.get("expanded", 0)), float(last.get("seconds", 0.0))


def _lane(name: str, job: Job, expanded: int, seconds: float, most: int, longest: float) -> str:
    bars = "".join(
        f'<div class="bar"><div class="us-bar"><i style="width:{100 * share:.1f}%"></i></div>'
        f"<span><b>{value}</b> {unit}</span></div>"
        for share, value, unit in (
            (expanded / most, f"{expanded:,}", "expanded"),
            (seconds / longest, f"{seconds:.3f}", "seconds"),
        )
    )
    mark, words = (
        "",
        {Stage.WAITING: "in the queue", Stage.RUNNING: job.event.get("phase", "starting")}.get(job.stage, "stopped"),
    )
    if job.stage is Stage.DONE and job.result is not None:
        mark, words = (
            badge("proven" if job.result["optimality"] == "proven" else "none", job.result["optimality"]),
            job.result["statement"],
        )
    elif job.stage is Stage.FAILED:
        words = job.error
    lower = job.event.get("lower")
    if job.stage is Stage.RUNNING and lower is not None:
        words += f"; no solution costs less than {lower}"
    return (
        f'<div class="us-lane" data-lane="{escaped(name)}" data-stage="{job.stage}"><div><b>{escaped(name)}</b></div>'
        f'<div class="bars">{bars}</div><div class="said">{mark} {escaped(words)}</div></div>'
    )
