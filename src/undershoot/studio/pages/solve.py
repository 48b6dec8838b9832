"""Solve: a search in a process of its own, with both bounds as they move, and a button that stops it."""

from collections.abc import Callable
from typing import Any

from nicegui import ui

from undershoot.arrays import U8
from undershoot.errors import UndershootError
from undershoot.studio.elements import Choice, Field, box, button, enable, escaped, figure, markup, said, show, text
from undershoot.studio.games import Game, costs_on_the_way
from undershoot.studio.jobs import Job, Stage
from undershoot.studio.pages.known import KnownCard
from undershoot.studio.studio import Studio

ALGORITHMS = {"auto": "whichever suits", "astar": "A*", "ida": "IDA*", "both": "both bounds at once"}
WHOLE_SECONDS = 3600
LOADING, SLOWER = 180.0, 1.3
"""What a search may take beyond its own limit before it is ended: seconds to load and to compile, and a clock that lags."""


class SolveCard:
    """One search at a time."""

    def __init__(self, studio: Studio, game: Game, found: Callable[[U8, list[str]], None], known: KnownCard) -> None:
        self.studio, self.game, self.found, self.known = studio, game, found, known
        self.job: Job | None = None
        self.start, self.start_text, self.searched_with = game.states[game.at], "", ""
        self.moves: list[str] = []
        """The best solution so far."""
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
            self.limit = text("", "us-soft").props("data-say=limit")
            self.stage = text("", "us-soft")
            self.about = text("", "us-soft us-about").props("data-say=about")
            self.bounds = markup("")
            self.figures = markup("", "us-figures")
            self.saying = markup("").props("data-say=solve")
            self.replay = button("Play the solution from there", self._replay, "us-hidden", "replay")
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
        return bool((self.start == self.game.state).all())

    def _say_where(self) -> None:
        """Beside another state, what the search says is of the one where it began, and its solution waits to be played."""
        self.about.say("" if self._is_here else f"Of the state where this search began, {self.start_text}:")
        is_over = self.job is not None and self.job.is_over
        show(self.replay, bool(self.moves) and is_over and not self._is_here and self.game.found_from is None)

    def _clear(self) -> None:
        for element in (self.bounds, self.figures, self.saying):
            element.set_content("")
        for words in (self.limit, self.stage, self.about):
            words.say("")
        self.moves = []
        show(self.replay, False)

    def _replay(self) -> None:
        self.found(self.start, self.moves)

    def begin(self) -> None:
        """Search from the state at hand."""
        if self.job is not None and not self.job.is_over:
            return
        self._clear()
        self.start, self.start_text = self.game.states[self.game.at], self.game.text
        self.searched_with = self.heuristic.value
        try:
            asked = self.seconds.whole("the limit of seconds", 1, WHOLE_SECONDS)
            seconds = float(min(asked, self.studio.limits.seconds))
            arguments = {
                "puzzle": self.game.definition,
                "state": self.game.state[0].tolist(),
                "heuristic": self.studio.heuristic_reference(self.heuristic.value),
                "algorithm": self.algorithm.value,
                "max_seconds": seconds,
                "max_expanded": self._most_expanded(),
                "max_memory": self.studio.limits.memory // 2,
            }
            self.job = submit_search(self.studio, f"search of {self.game.puzzle.name}", arguments, self._told, self._event)
        except UndershootError as error:
            self.saying.set_content(said(str(error), "is-wrong"))
            return
        if seconds < asked:
            self.limit.say(f"It ends itself after {seconds:g} seconds, the most that this studio allows (--max-seconds).")
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
            self.moves = list(event["actions"])

    def _told(self, job: Job) -> None:
        if job is not self.job:
            return
        if not job.is_over:
            self._say_where()
            self.stage.say({"waiting": "in the queue", "running": job.event.get("phase", "starting")}[job.stage] + " …")
            self._show(job.event)
            return
        enable(self.go, True)
        enable(self.end, False)
        self.stage.say("")
        if job.stage is Stage.DONE and job.result is not None:
            self._done(job.result)
        else:
            self._ended(job)
        self._say_where()

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

    def _ended(self, job: Job) -> None:
        """By somebody, or by what went wrong: what it found until then stays true."""
        lower, upper = job.event.get("lower"), job.event.get("upper")
        words = "" if lower is None else f"No solution costs less than {lower}, proven."
        if upper is not None:
            words += f" A solution of cost {upper} was found on the way."
        if job.stage is Stage.FAILED:
            statement = said(job.error, "is-wrong") + (said(words, "is-open") if words else "")
        else:
            statement = said(f"Stopped. {words}" if words else "Stopped before anything was found out.", "is-open")
        self.saying.set_content(statement + self._moves_in_words())
        self._play()

    def _moves_in_words(self) -> str:
        moves = escaped(" ".join(self.moves))
        return f'<div class="us-small us-moves-found" data-say=moves>Moves: <code>{moves}</code></div>' if moves else ""

    def _play(self) -> None:
        if self.moves and self._is_here:
            self.found(self.start, self.moves)

    def _done(self, result: dict[str, Any]) -> None:
        self.moves = list(result["actions"])
        kind = "is-proven" if result["optimality"] == "proven" else "is-open"
        over = result["overestimates"]
        more = f" On {over} of the states of this solution the heuristic overestimates." if over else ""
        name = {"astar": "A*", "ida": "IDA*", "both": "both bounds at once"}[result["algorithm"]]
        by = f"{name}; {escaped(self.searched_with)}: {escaped(result['sentence'])}"
        self.saying.set_content(
            said(result["statement"] + more, kind)
            + f'<div class="us-small" style="margin-top:.5rem">{by}</div>'
            + self._moves_in_words()
        )
        self.bounds.set_content(bounds(result["lower_bound"], result["cost"]))
        self.figures.set_content(
            figure("expanded", f"{result['expanded']:,}")
            + figure("generated", f"{result['generated']:,}")
            + figure("evaluated", f"{result['evaluated']:,}")
            + figure("seconds", f"{result['seconds']:.3f}")
        )
        if result["optimality"] == "proven":
            self.known.prove(costs_on_the_way(self.game.puzzle, self.start, self.moves))
        self._play()


def submit_search(
    studio: Studio,
    what: str,
    arguments: dict[str, Any],
    tell: Callable[[Job], None],
    on_event: Callable[[dict[str, Any]], None] | None = None,
) -> Job:
    """Begin a search that ends itself, and says what it found, well before it would be ended."""
    seconds = arguments["max_seconds"]
    return studio.jobs.submit(what, "solve", arguments, tell, seconds, on_event, LOADING + (SLOWER - 1) * seconds)


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
