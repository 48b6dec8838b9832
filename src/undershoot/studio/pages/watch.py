"""Watch the search: its expansions one by one over a map of g against h."""

from functools import partial
from typing import Any

from nicegui import ui

from undershoot.errors import UndershootError
from undershoot.studio.boards import StillBoard
from undershoot.studio.charts import SearchMap
from undershoot.studio.elements import Choice, Field, badge, box, button, enable, escaped, figure, markup, said, text
from undershoot.studio.games import Game, usual_depth
from undershoot.studio.jobs import Job, Stage
from undershoot.studio.pages.layout import Saying, page
from undershoot.studio.studio import Studio

LEAD = (
    "A* takes the open node with the least f = g + h. If h never overestimates, the goal comes out at its least cost. "
    "Step through it, and see what one estimate that is too high does."
)
SMALL = ("lights-out-3x3", "tiles-2x3", "tiles-3x3", "pancake-6", "pancake-8", "topspin-7-3", "topspin-8-4", "cube-2x2")
LEGEND = (
    '<div class="us-legend"><span><i class="is-done"></i>expanded</span><span><i class="is-waiting"></i>still open</span>'
    '<span><i class="is-later"></i>later</span>'
    '<span><i style="background:var(--over)"></i>h above the true cost</span>'
    '<span><i style="background:var(--proven)"></i>line: f = the least cost there is</span></div>'
)
EXAMPLES = {
    "squared": (
        "Squared error misses the optimum",
        "A network that was trained to be near the true cost is too high half of the time. The same network, moved down and "
        "checked on every state, is not.",
    ),
    "offset": (
        "The paper's offset fails",
        "Its offset is fitted to scrambles, whose depth is at least the true cost. So it is at most the one that is needed: "
        "states are still too high, and the optimum is missed.",
    ),
}


def watch_page(studio: Studio, puzzle: str, state: str) -> None:
    """Of a small puzzle."""
    with page("watch", "Watch the search", LEAD):
        Watching(studio, puzzle or "lights-out-3x3", state)


class Watching:
    """One visitor who watches."""

    def __init__(self, studio: Studio, name: str, state: str) -> None:
        self.studio, self.name, self.state = studio, name, state
        self.job: Job | None = None
        self.game: Game | None = None
        self.recordings: list[dict[str, Any]] = []
        with box("us-row").style("align-items: stretch"):
            for key, (title, words) in EXAMPLES.items():
                with (
                    ui.element("button")
                    .classes("us-example")
                    .props(f"type=button data-example={key}")
                    .on("click", lambda key=key: self.example(key))
                ):
                    text(title, tag="b")
                    text(words, tag="span")
        with box("us-card"):
            with box("us-row").style("align-items: flex-end"):
                self.puzzle = Choice(
                    "Puzzle", {each: each for each in dict.fromkeys((name, *SMALL))}, name, self._open, "is-wide"
                )
                self.depth = Field("Moves", "6", "number", "is-number", min=0, max=500)
                self.seed = Field("Seed", "1", "number", "is-number", min=0)
                self.heuristic = Choice("Heuristic", {"base": "base"}, "base", classes="is-wide")
                button("Search", self.search, "is-main", "search")
                self.end = button("Stop", self._leave, "is-stop", "stop")
            self.saying = Saying()
            self.progress = markup("")
        self.place = box("us-stack")
        enable(self.end, False)
        ui.context.client.on_delete(self._leave)
        ui.timer(0.05, self._load, once=True)

    async def _load(self) -> None:
        try:
            game = Game(self.studio.folders.puzzle(self.puzzle.value), self.puzzle.value)
            if self.depth.value.isdigit() and (most := usual_depth(game.puzzle, int(self.depth.value))) < int(self.depth.value):
                self.depth.set(str(most))
            arguments = {
                "puzzle": game.definition,
                "state": game.state[0].tolist(),
                "bundles": self.studio.bundle_paths(),
            }
            answer = await self.studio.ask("known", arguments)
        except UndershootError as error:
            self.saying.say(str(error))
            return
        names = [row["name"] for row in answer["rows"] if "error" not in row]
        self.heuristic.offer({each: each for each in names}, "base")

    async def _open(self, name: str) -> None:
        self.state = ""
        await self._load()

    def _leave(self) -> None:
        if self.job is not None:
            self.studio.jobs.stop(self.job)

    def search(self) -> None:
        """With one heuristic, from a scramble or the state of the address."""
        try:
            game = Game(self.studio.folders.puzzle(self.puzzle.value), self.puzzle.value)
            if self.state:
                game.read(self.state)
            else:
                game.scramble(self.depth.whole("the number of moves", 0, 500), self.seed.whole("the seed", 0, 2**62))
            heuristic = self.heuristic.value
            self._submit(
                "watch",
                {
                    "puzzle": game.definition,
                    "state": game.state[0].tolist(),
                    "heuristics": {heuristic: self.studio.heuristic_reference(heuristic)},
                },
                game,
            )
        except UndershootError as error:
            self.saying.say(str(error))

    def example(self, key: str) -> None:
        """Made now: trained, calibrated, and a state found that shows it."""
        try:
            self._submit("example", {"example": key}, None)
        except UndershootError as error:
            self.saying.say(str(error))

    def _submit(self, task: str, arguments: dict[str, Any], game: Game | None) -> None:
        """game: what is searched; None for an example, which brings its puzzle."""
        self._leave()
        self.saying.say("")
        self.game = game
        self.job = self.studio.jobs.submit(task, task, arguments, self._told, 300)

    def _told(self, job: Job) -> None:
        if job is not self.job:
            return
        enable(self.end, not job.is_over)
        if job.stage is Stage.DONE and job.result is not None:
            self.progress.set_content("")
            self._show(job.result)
        elif job.stage is Stage.FAILED:
            self.progress.set_content("")
            self.saying.say(job.error)
        elif job.stage is Stage.STOPPED:
            self.progress.set_content("")
            self.saying.say("Stopped.", "is-open")
        else:
            words = escaped(job.event.get("text", "in the queue" if job.stage is Stage.WAITING else "starting"))
            self.progress.set_content(f'<div class="us-small">{words} …</div><div class="us-progress is-busy"><i></i></div>')

    def _show(self, result: dict[str, Any]) -> None:
        self.recordings = result["recordings"]
        puzzle = self.game.puzzle if self.game is not None else self.studio.folders.puzzle(result["puzzle"])
        self.tabs: dict[int, ui.element] = {}
        self.place.clear()
        with self.place:
            if "text" in result:
                markup(said(result["text"], "is-open"))
            with box("us-columns"):
                with box("us-card"):
                    if len(self.recordings) > 1:
                        with box("us-row"):
                            for number, recording in enumerate(self.recordings):
                                choose = partial(self._choose, number)
                                self.tabs[number] = button(recording["name"], choose, name=f"recording-{number}")
                    self.heading = markup("")
                    map_place = box("")
                    markup(LEGEND)
                with box("us-card"):
                    text("The state that is expanded", tag="h2")
                    board = StillBoard(puzzle, self.recordings[0]["states"][0])
                    self.facts = markup("", "us-figures")
                    self.verdict = markup("")
            with map_place:
                self.map = SearchMap(self.recordings[0], board)
        name = result.get("puzzle", self.puzzle.value)
        if name != self.puzzle.value:  # an example brings its own
            self.puzzle.offer({**self.puzzle.options, name: name}, name)
            self.state = ""
            with self.place:
                ui.timer(0.05, self._load, once=True)
        self._choose(0)

    def _choose(self, number: int) -> None:
        recording = self.recordings[number]
        for other, tab in self.tabs.items():
            tab.classes("is-chosen") if other == number else tab.classes(remove="is-chosen")
        self.map.show(recording)
        self.heading.set_content(
            f'<div class="us-row"><b>{escaped(recording["name"])}</b>{badge(recording["standing"], recording["label"])}</div>'
            f'<div class="us-small">{escaped(recording["sentence"])}</div>'
        )
        over = sum(t is not None and h > t for h, t in zip(recording["h"], recording["true"], strict=True))
        waiting = sum(node["true"] is not None and node["h"] > node["true"] for node in recording["waiting"])
        cost, optimum = recording["cost"], recording["optimum"]
        missed = cost is not None and optimum is not None and cost > optimum
        self.facts.set_content(
            figure("expanded", f"{len(recording['g']):,}{'+' if recording['is_cut'] else ''}")
            + figure(
                "cost found",
                "none yet" if cost is None else str(cost),
                "is-over" if missed else "is-good" if optimum == cost else "",
            )
            + figure("least cost", "not known" if optimum is None else str(optimum))
            + figure("of them too high", f"{over:,}", "is-over" if over else "")
            + figure("open and too high", f"{waiting:,}", "is-over" if waiting else "")
        )
        if missed:
            words, kind = f"The optimum is missed: {cost} instead of {optimum}.", "is-wrong"
        elif cost is not None and cost == optimum:
            words, kind = f"The optimum is found: {cost}.", "is-proven"
        else:
            words, kind = ("The search is longer than what is drawn." if recording["is_cut"] else ""), "is-open"
        self.verdict.set_content(said(words, kind) if words else "")
