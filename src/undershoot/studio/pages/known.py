"""What is known here: each heuristic's value for the state at hand, the true cost, and each guarantee as it prints."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import ui

from undershoot.errors import UndershootError
from undershoot.studio.elements import badge, box, button, enable, escaped, markup, said, show, text
from undershoot.studio.figures import shown
from undershoot.studio.games import Game
from undershoot.studio.jobs import Job, Stage
from undershoot.studio.pages.layout import OVERESTIMATING
from undershoot.studio.studio import Studio

WHY = (
    "<i>h</i> estimates what it still costs to solve the puzzle from here. A* follows these estimates, and is sure to find the "
    "cheapest solution only if none of them is above the true cost: one that is too high can hide the cheapest way. "
    f'<a href="/watch?example={OVERESTIMATING}">See one estimate that is too high miss the optimum</a>.'
)


class KnownCard:
    """Asks whenever the state has changed, and shows the last answer."""

    def __init__(self, studio: Studio, game: Game) -> None:
        self.studio, self.game = studio, game
        self.answer: dict[str, Any] = {}
        self.answered = b""
        """The state that the answer is about."""
        self.proven: dict[bytes, int] = {}
        """States, and their costs as searches have proven them."""
        self.listeners: list[Callable[[], None]] = []
        self.client = ui.context.client
        self._asking: asyncio.Task[None] | None = None
        self._is_outdated = False
        with box("us-card").props("data-card=known"):
            with box("us-row"):
                text("What is known here", "us-grow", "h2")
                self.true = markup("")
            markup(WHY, "us-soft").props("data-say=why")
            self.rows = markup('<div class="us-progress is-busy"><i></i></div>', "us-known")
            self.offers = box("us-row")
            self.making = markup("").props("data-say=make")
            self.end = button("Stop", self._stop, "is-stop us-hidden", "stop-making")

    def ask(self) -> None:
        """The state has changed; answers to earlier states are not waited for twice."""
        self._is_outdated = True
        self.rows.classes("is-old")
        self.true.set_content(badge("none", "…"))
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        while self._is_outdated and not self.client.is_deleted:
            self._is_outdated, state = False, self.game.state
            try:
                arguments = {
                    "puzzle": self.game.definition,
                    "state": state[0].tolist(),
                    "bundles": await asyncio.to_thread(self.studio.bundle_paths),
                }
                self.answer = await self.studio.ask("known", arguments)
            except UndershootError as error:
                if not self.client.is_deleted and not self._is_outdated:
                    self.true.set_content("")
                    self.rows.classes(remove="is-old").set_content(f'<div class="us-said is-wrong">{escaped(error)}</div>')
                continue
            self.answered = state.tobytes()
            if not self.client.is_deleted:
                self._show()

    @property
    def heuristics(self) -> list[str]:
        """Names of those at hand."""
        return [row["name"] for row in self.answer.get("rows", []) if "error" not in row]

    def prove(self, costs: dict[bytes, int]) -> None:
        """A search has proven what these states cost."""
        self.proven |= costs
        self._show()

    def _show(self) -> None:
        if self.answered != self.game.state.tobytes():
            return  # an answer about this state is on its way
        true_cost = self.answer.get("true_cost")
        if true_cost is None:
            true_cost = self.proven.get(self.answered)
        rows = self.answer.get("rows", [])
        top = max([1.0, *(row["h"] for row in rows if row.get("h") is not None), float(true_cost or 0)]) * 1.06
        self.rows.classes(remove="is-old").set_content("".join(self._row(row, true_cost, top) for row in rows))
        known = "not known here" if true_cost is None else f"true cost {true_cost}"
        known = "cannot be solved from here" if self.answer.get("is_dead_end") else known
        self.true.set_content(badge("true" if true_cost is not None else "none", known))
        self._show_offers()
        for listener in self.listeners:
            listener()

    def _row(self, row: dict[str, Any], true_cost: int | None, top: float) -> str:
        name = f'<div class="name" title="{escaped(row["about"])}">{escaped(row["name"])}</div>'
        if "error" in row:
            return (
                f'<div class="us-known-row">{name}<div></div><div></div><div class="said">{escaped(row["error"])}</div></div>'
            )
        h = row["h"]  # None for "there is no solution"
        # The task has decided it, unless only a search has found out the true cost since.
        is_new = self.answer.get("true_cost") is None and true_cost is not None
        over = h is None or h > true_cost if is_new and true_cost is not None else row["over"]
        mark = "" if true_cost is None else f'<u style="left: {100 * true_cost / top:.1f}%" title="true cost {true_cost}"></u>'
        bar = f'<div class="us-bar"><i style="width: {100 if h is None else 100 * h / top:.1f}%"></i>{mark}</div>'
        flag = badge("over", "overestimates here") if over else ""
        words = f'<span>{escaped(row["sentence"])}</span><span class="about">{escaped(row["about"])}</span>'
        said = f'<div class="said">{flag}{badge(row["standing"], row["label"])}{words}</div>'
        classes = "us-known-row is-over" if over else "us-known-row"
        value = f'<div class="us-h">{"no solution" if h is None else shown(h, true_cost)}</div>'
        return f'<div class="{classes}" data-heuristic="{escaped(row["name"])}">{name}{bar}{value}{said}</div>'

    def _show_offers(self) -> None:
        job = self.studio.making(self.game.puzzle)
        if job is not None and self._made not in (job.tell, *job.others):  # another page asked for it
            job.others.append(self._made)
            self._made(job)
        self.offers.clear()
        with self.offers:
            for offer in self.answer.get("offers", []):
                made = button(offer["text"], partial(self._make, offer["name"]), "is-offer", name=f"make-{offer['name']}")
                enable(made, job is None)
        show(self.end, job is not None)

    def _make(self, name: str) -> None:
        try:
            self.studio.make(self.game.puzzle, name, self._made)
        except UndershootError as error:
            self.making.set_content(f'<div class="us-said is-wrong">{escaped(error)}</div>')
        self._show_offers()

    def _stop(self) -> None:
        job = self.studio.making(self.game.puzzle)
        if job is not None:
            self.studio.jobs.stop(job)

    def _made(self, job: Job) -> None:
        if self.client.is_deleted:
            return
        if job.is_over:
            self._show_offers()
        if job.stage is Stage.DONE:
            self.making.set_content("")
            self.ask()
        elif job.stage is Stage.STOPPED:
            self.making.set_content(said("Stopped; nothing of it is kept.", "is-open"))
        elif job.stage is Stage.FAILED:
            self.making.set_content(f'<div class="us-said is-wrong">{escaped(job.error)}</div>')
        else:
            done, of = job.event.get("done", 0), job.event.get("of", 0)
            busy = "" if of else " is-busy"
            share = 100 * done / of if of else 0
            words = escaped(job.event.get("text", "at work"))
            self.making.set_content(
                f'<div class="us-small">{words}</div><div class="us-progress{busy}"><i style="width:{share:.0f}%"></i></div>'
            )
