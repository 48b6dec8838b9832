"""Solve: a search in a process of its own, with both bounds as they move, and a button that stops it."""

from collections.abc import Callable
from typing import Any

from nicegui import ui

from undershoot.errors import UndershootError
from undershoot.studio.elements import Choice, Field, box, button, enable, escaped, figure, markup, said, show, text
from undershoot.studio.games import Game
from undershoot.studio.jobs import Job, Stage
from undershoot.studio.pages.known import KnownCard
from undershoot.studio.studio import Studio

ALGORITHMS = {"auto": "whichever suits", "astar": "A*", "ida": "IDA*", "both": "both bounds at once"}
WHOLE_SECONDS = 3600


class SolveCard:
    """One search at a time."""

    def __init__(self, studio: Studio, game: Game, found: Callable[[list[str]], None], known: KnownCard) -> None:
        self.studio, self.game, self.found, self.known = studio, game, found, known
        self.job: Job | None = None
        self.start, self.start_text, self.searched_with = b"", "", ""
        self.quick: list[str] = []
        with box("us-card").props("data-card=solve"):
            text("Solve", tag="h2")
            with box("us-row").style("align-items: flex-end"):
                self.heuristic = Choice("Heuristic", {"base": "base"}, "base", classes="is-wide")
                self.algorithm = Choice("Algorithm", ALGORITHMS, "auto", classes="is-wide")
            with box("us-row").style("align-items: flex-end"):
                self.seconds = Field("Seconds", "60", "number", "is-number", min=1, max=WHOLE_SECONDS, data_do="seconds")
                self.expansions = Field("Expansions", "", "number", "is-number", min=0, placeholder="any", data_do="expansions")
                self.go = button("Solve", self.begin, "is-main", "solve")
                self.end = button("Stop", self.stop, "is-stop", "stop")
            self.stage = text("", "us-soft")
            self.about = text("", "us-soft us-about").props("data-say=about")
            self.bounds = markup("")
            self.figures = markup("", "us-figures")
            self.saying = markup("").props("data-say=solve")
        enable(self.end, False)
        enable(self.go, False)
        known.listeners.append(self._offer)
        ui.context.client.on_delete(self._leave)

    def _offer(self) -> None:
        names = self.known.heuristics
        if names and list(self.heuristic.options) != names:
            first = not set(self.heuristic.options) & set(names) or len(self.heuristic.options) == 1
            self.heuristic.offer({name: name for name in names}, names[0] if first else None)
        if names and (self.job is None or self.job.is_over):
            enable(self.go, True)

    def moved(self) -> None:
        """The state is another one: what was said of an earlier one goes, unless it is on the way that was found."""
        if self.job is not None and self.job.is_over and self.game.found_from is None:
            self._clear()
        elif self.job is not None:
            self._say_where()

    @property
    def _is_here(self) -> bool:
        return self.start == self.game.state.tobytes()

    def _say_where(self) -> None:
        """Beside another state, what the search says is of the one where it began; bounds stay on the way that it found."""
        self.about.say("" if self._is_here else f"Of the state where this search began, {self.start_text}:")
        show(self.bounds, self._is_here or self.game.found_from is not None)

    def _clear(self) -> None:
        for element in (self.bounds, self.figures, self.saying):
            element.set_content("")
        self.stage.say("")
        self.about.say("")

    def begin(self) -> None:
        """Search from the state at hand."""
        if self.job is not None and not self.job.is_over:
            return
        self._clear()
        self.start, self.start_text, self.quick = self.game.state.tobytes(), self.game.text, []
        self.searched_with = self.heuristic.value
        try:
            seconds = self.seconds.whole("the limit of seconds", 1, WHOLE_SECONDS)
            arguments = {
                "puzzle": self.game.definition,
                "state": self.game.state[0].tolist(),
                "heuristic": self.studio.heuristic_reference(self.heuristic.value),
                "algorithm": self.algorithm.value,
                "max_seconds": float(min(seconds, self.studio.limits.seconds)),
                "max_expanded": self._most_expanded(),
                "max_memory": self.studio.limits.memory // 2,
            }
            self.job = self.studio.jobs.submit(
                f"search of {self.game.puzzle.name}", "solve", arguments, self._told, 180 + 1.3 * seconds, self._event
            )
        except UndershootError as error:
            self.saying.set_content(said(str(error), "is-wrong"))
            return
        enable(self.go, False)
        enable(self.end, True)

    def _most_expanded(self) -> int | None:
        return self.expansions.whole("the limit of expansions", 0, 10**12) if self.expansions.value.strip() else None

    def stop(self) -> None:
        """At once; the bounds that were shown remain true."""
        if self.job is not None:
            self.studio.jobs.stop(self.job)

    def _leave(self) -> None:
        self.stop()

    def _event(self, event: dict[str, Any]) -> None:
        if "actions" in event:
            self.quick = list(event["actions"])

    def _told(self, job: Job) -> None:
        if job is not self.job:
            return
        self._say_where()
        if not job.is_over:
            self.stage.say({"waiting": "in the queue", "running": job.event.get("phase", "starting")}[job.stage] + " …")
            self._show(job.event)
            return
        enable(self.go, True)
        enable(self.end, False)
        self.stage.say("")
        if job.stage is Stage.DONE and job.result is not None:
            self._done(job.result)
        elif job.stage is Stage.FAILED:
            self.saying.set_content(said(job.error, "is-wrong"))
        else:
            self._stopped(job.event)

    def _show(self, event: dict[str, Any]) -> None:
        if "lower" not in event:
            return
        self.bounds.set_content(bounds(event["lower"], event.get("upper")))
        if "expanded" in event:
            seconds = event.get("seconds", 0.0)
            self.figures.set_content(
                figure("expanded", f"{event['expanded']:,}")
                + figure("seconds", f"{seconds:.1f}")
                + figure("expanded a second", f"{event['expanded'] / max(seconds, 1e-3):,.0f}")
            )

    def _stopped(self, event: dict[str, Any]) -> None:
        lower, upper = event.get("lower"), event.get("upper")
        words = (
            "Stopped before anything was found out."
            if lower is None
            else f"Stopped. No solution costs less than {lower}, proven."
        )
        if upper is not None:
            words += f" A solution of cost {upper} was found on the way."
            if self.quick and self._is_here:
                self.found(self.quick)
        self.saying.set_content(said(words, "is-open"))

    def _done(self, result: dict[str, Any]) -> None:
        kind = "is-proven" if result["optimality"] == "proven" else "is-open"
        over = result["overestimates"]
        more = f" On {over} of the states of this solution the heuristic overestimates." if over else ""
        name = {"astar": "A*", "ida": "IDA*", "both": "both bounds at once"}[result["algorithm"]]
        by = f"{name}; {escaped(self.searched_with)}: {result['sentence']}"
        self.saying.set_content(
            said(result["statement"] + more, kind) + f'<div class="us-small" style="margin-top:.5rem">{by}</div>'
        )
        self.bounds.set_content(bounds(result["lower_bound"], result["cost"]))
        self.figures.set_content(
            figure("expanded", f"{result['expanded']:,}")
            + figure("generated", f"{result['generated']:,}")
            + figure("evaluated", f"{result['evaluated']:,}")
            + figure("seconds", f"{result['seconds']:.3f}")
        )
        if result["optimality"] == "proven":
            self.known.prove(self.start, result["cost"])
        if result["cost"] and self._is_here:
            self.found(result["actions"])


def bounds(lower: int, upper: int | None) -> str:
    """Both on one line; they meet where the optimum is."""
    top = max(4, (upper or lower) * (1.15 if upper else 1.7))
    left = 100 * lower / top
    if upper is not None and upper == lower:
        mark = f'<div class="mark" style="left:{left:.1f}%">{lower}<small>optimal</small></div>'
        gap = f'<div class="gap is-met" style="left:0;right:{100 - left:.1f}%"></div>'
        return f'<div class="us-bounds is-met"><div class="line"></div>{gap}{mark}</div>'
    right = 0.0 if upper is None else 100 - 100 * upper / top
    marks = _mark("lower", lower, left, "no solution is cheaper")
    if upper is not None:
        marks += _mark("upper", upper, 100 - right, "best found")
    gap = f'<div class="gap" style="left:{left:.1f}%;right:{right:.1f}%"></div>'
    return f'<div class="us-bounds"><div class="line"></div>{gap}{marks}</div>'


def _mark(which: str, cost: int, at: float, words: str) -> str:
    style = f'style="left:{at:.1f}%" data-bound="{which}"'
    return f'<div class="mark is-{which}" {style}>{cost}<small>{words}</small></div>'
