"""Watch the search: its expansions one by one over a map of g against h."""

import asyncio
from functools import partial
from typing import Any

import numpy as np
from nicegui import ui

from undershoot.errors import UndershootError
from undershoot.studio.boards import StillBoard
from undershoot.studio.charts import SearchMap
from undershoot.studio.elements import Choice, Field, badge, box, button, enable, escaped, figure, markup, said, show, text
from undershoot.studio.games import MOST_MOVES, Game, usual_depth
from undershoot.studio.jobs import Job, Stage
from undershoot.studio.pages.instances import MOST_SEED
from undershoot.studio.pages.layout import Links, Saying, page
from undershoot.studio.studio import Studio

LEAD = (
    "A* takes the open node with the least f = g + h. If h never overestimates, the goal comes out at its least cost. "
    "Step through it, and see what one estimate that is too high does."
)
UNKNOWN = "Play offers to make a table of them, where that is possible"
SMALL = ("lights-out-3x3", "tiles-2x3", "tiles-3x3", "pancake-6", "pancake-8", "topspin-7-3", "topspin-8-4", "cube-2x2")
LEGEND = (
    '<div class="us-legend"><span><i class="is-done"></i>expanded</span><span><i class="is-waiting"></i>still open</span>'
    '<span><i class="is-later"></i>later</span>'
    '<span><i class="is-over"></i>h above the true cost</span>'
    '<span><i class="is-line is-optimum"></i>f = the least cost there is</span>'
    '<span><i class="is-line"></i>f = the cost that was found, where that is more</span></div>'
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


async def watch_page(studio: Studio, puzzle: str, state: str, example: str) -> None:
    """Of a small puzzle, in this state if one is given; or an example, which begins at once."""
    with page("watch", "Watch the search", LEAD) as links:
        watching = Watching(studio, links, puzzle or "lights-out-3x3", state)
    if example in EXAMPLES:
        await ui.context.client.connected()
        watching.example(example)


class Watching:
    """One visitor who watches."""

    def __init__(self, studio: Studio, links: Links, name: str, state: str) -> None:
        self.studio, self.links = studio, links
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
                self.depth = Field("Moves", "6", "number", "is-number", min=0, max=MOST_MOVES, data_do="depth")
                self.seed = Field("Seed", "1", "number", "is-number", min=0, data_do="seed")
                self.state = Field(
                    "State or scramble, in place of these", state, classes="is-wide", data_do="text", spellcheck="false"
                )
                for field in (self.depth, self.seed):  # whoever asks for a scramble wants that one
                    field.element.on("input", lambda: self.state.set(""))
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
            game = await self._new_game()
            if self.depth.value.isdigit() and (most := usual_depth(game.puzzle, int(self.depth.value))) < int(self.depth.value):
                self.depth.set(str(most))
            arguments = {
                "puzzle": game.definition,
                "state": game.state[0].tolist(),
                "bundles": await asyncio.to_thread(self.studio.bundle_paths),
            }
            answer = await self.studio.ask("known", arguments)
        except UndershootError as error:
            self.saying.say(str(error))
            return
        names = [row["name"] for row in answer["rows"] if "error" not in row]
        self.heuristic.offer({each: each for each in names}, "base" if self.heuristic.value not in names else None)

    async def _new_game(self) -> Game:
        name = self.puzzle.value
        return Game(await asyncio.to_thread(self.studio.folders.puzzle, name), name)

    async def _open(self, name: str) -> None:
        self.state.set("")
        await self._load()

    def _leave(self) -> None:
        if self.job is not None:
            self.studio.jobs.stop(self.job)

    async def search(self) -> None:
        """With one heuristic, from the state that is written there, or else from a scramble."""
        try:
            game = await self._new_game()
            if self.state.value.strip():
                await asyncio.to_thread(game.read, self.state.value)
            else:
                depth = self.depth.whole("the number of moves", 0, MOST_MOVES)
                await asyncio.to_thread(game.scramble, depth, self.seed.whole("the seed", 0, MOST_SEED))
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
        name = result["puzzle"] if self.game is None else self.game.name  # by now another one may be chosen
        puzzle = self.studio.folders.puzzle(name) if self.game is None else self.game.puzzle
        start = puzzle.format(np.array(self.recordings[0]["states"][:1], dtype=np.uint8))
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
                    text("The state at hand", tag="h2")
                    board = StillBoard(puzzle, self.recordings[0]["states"][0])
                    with box("us-state"):
                        text("Searched from", tag="span")
                        text(start, tag="code").props("tabindex=0 data-say=state")
                    self.facts = markup("", "us-figures")
                    self.verdict = markup("")
                    self.why = markup("").props("data-say=missed")
                    self.look = button("Show this state", self._look, "us-hidden", "look")
            with map_place:
                self.map = SearchMap(self.recordings[0], board)
        if self.game is None and name != self.puzzle.value:  # an example brings its own
            self.puzzle.offer({**self.puzzle.options, name: name}, name)
            self.state.set("")
            with self.place:
                ui.timer(0.05, self._load, once=True)
        self.links.lead_to(name, start)
        self._choose(0)

    def _look(self) -> None:
        self.map.look()

    def _choose(self, number: int) -> None:
        recording = self.recordings[number]
        for other, tab in self.tabs.items():
            tab.classes("is-chosen") if other == number else tab.classes(remove="is-chosen")
        self.map.show(recording)
        self.heading.set_content(
            f'<div class="us-row"><b>{escaped(recording["name"])}</b>{badge(recording["standing"], recording["label"])}</div>'
            f'<div class="us-small">{escaped(recording["sentence"])}</div>'
        )
        is_known, waiting = recording["is_known"], recording["waiting"]
        cost, optimum = recording["cost"], recording["optimum"]
        missed = cost is not None and optimum is not None and cost > optimum
        self.facts.set_content(
            figure("expanded", f"{len(recording['g']):,}{'+' if recording['is_cut'] else ''}")
            + figure(
                "cost found",
                "none yet" if cost is None else str(cost),
                "is-over" if missed else "is-good" if optimum == cost and cost is not None else "",
            )
            + figure("least cost", "not known" if optimum is None else str(optimum))
            + _too_high("of them too high", recording["over"], is_known)
            + _too_high("open and too high", waiting["over"], is_known)
        )
        if missed:
            words, kind = f"The optimum is missed: {cost} instead of {optimum}.", "is-wrong"
        elif cost is not None and cost == optimum:
            words, kind = f"The optimum is found: {cost}.", "is-proven"
        elif not is_known:
            words, kind = f"The true costs of this puzzle are not at hand; {UNKNOWN}.", "is-open"
        else:
            words, kind = ("The search is longer than what is drawn." if recording["is_cut"] else ""), "is-open"
        self.verdict.set_content(said(words, kind) if words else "")
        hidden = recording["hidden"]
        sentence = hidden["text"] if hidden is not None else recording.get("instead", "")
        self.why.set_content(said(sentence, "is-wrong" if hidden is not None else "is-proven") if sentence else "")
        show(self.look, hidden is not None)


def _too_high(name: str, over: list[bool], is_known: bool) -> str:
    """How many estimates are too high, if that can be said."""
    count = sum(over)
    return figure(name, f"{count:,}" if is_known else "not known", "is-over" if count else "")
