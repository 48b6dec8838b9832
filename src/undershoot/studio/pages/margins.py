"""Margins: how far a network is off on every state, what a margin does about it, and a bundle's card and certificate."""

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from nicegui import ui

from undershoot.errors import UndershootError
from undershoot.studio.charts import MarginChart
from undershoot.studio.elements import Choice, badge, box, button, enable, escaped, figure, markup, said, text
from undershoot.studio.jobs import Job, Stage
from undershoot.studio.pages.layout import Saying, page
from undershoot.studio.studio import RUNS, Studio

LEAD = "A margin moves a network down. How far it must go to stay below the true cost everywhere, only every state can say."
FIRST = "tiles-3x3-paper"


async def margins_page(studio: Studio, bundle: str) -> None:
    """Of a bundle."""
    names = list(await asyncio.to_thread(studio.bundles))
    with page("margins", "Margins", LEAD):
        Margins(studio, names, bundle or FIRST)


class Margins:
    """One visitor at one bundle."""

    def __init__(self, studio: Studio, names: list[str], bundle: str) -> None:
        self.studio = studio
        self.jobs: list[Job] = []
        self.widths = ""  # until the bundle has been read
        if bundle not in names and RUNS + bundle in names:
            bundle = RUNS + bundle
        with box("us-row").style("align-items: flex-end"):
            self.bundle = Choice("Bundle", {name: name for name in names}, bundle, self._open, "is-wide")
            self.draw_button = button("Draw", self.draw, "is-main", "draw-margins")
            self.end = button("Stop", self.stop, "is-stop", "stop")
        self.saying = Saying()
        self.progress = markup("")
        with box("us-columns"):
            with box("us-stack"):
                self.chart_card = box("us-card")
                with self.chart_card:
                    text("h − h* on every state", tag="h2")
                    self.chart_place = box("")
                    with self.chart_place:
                        text("Draw it: the network is evaluated on every state, for one margin after another.", "us-soft")
                with box("us-card"):
                    with box("us-row"):
                        text("The seven calibrators", "us-grow", "h2")
                        self.compare = button("Fit all of them", self.fit, name="fit")
                    text(
                        "Each fits its own margin, to other labels and with another claim; what is true of it is counted.",
                        "us-soft",
                    )
                    text(
                        "With a margin, h is rounded up to whole numbers, as costs are; so its mean at margin 0 may be above "
                        "that of none, which is the network as it is.",
                        "us-small",
                    )
                    self.methods = markup("", "us-scroll")
            with box("us-stack"), box("us-card"):
                with box("us-row"):
                    text("The bundle", "us-grow", "h2")
                    self.check_button = button("Check it now", self.check, name="check")
                self.standing = markup('<div class="us-progress is-busy"><i></i></div>')
                self.checked = markup("").props("data-say=check")
                self.certificate = markup("")
                self.card = box("us-prose").props("data-say=card")
        self.chart: MarginChart | None = None
        self.fitted: list[dict[str, Any]] = []
        enable(self.end, False)
        ui.context.client.on_delete(self.stop)
        ui.timer(0.05, self._load, once=True)
        if bundle not in names:
            self.saying.say(f"there is no bundle {bundle[:60]!a} here; this is {self.bundle.value}")

    def _reference(self) -> dict[str, str]:
        return {"bundle": self.studio.bundle_reference(self.bundle.value)}

    async def _open(self, name: str) -> None:
        ui.navigate.to(f"/margins?bundle={quote(name, safe='')}")

    def stop(self) -> None:
        """Everything that this page is waiting for."""
        for job in self.jobs:
            self.studio.jobs.stop(job)

    async def _load(self) -> None:
        try:
            about = await self.studio.ask("bundle", self._reference())
        except UndershootError as error:
            self.saying.say(str(error))
            self.standing.set_content("")
            enable(self.check_button, False)
            return
        self.widths = f"Widths {', '.join(' – '.join(map(str, widths)) for widths in about['widths'])}."
        self._say_standing(about)
        if not about["has_margins"]:
            for each in (self.draw_button, self.compare):
                enable(each, False)
            self.saying.say(
                "These are networks on patterns: a margin of theirs is fitted to arrangements, not to states.", "is-open"
            )
        issued = about["certificate"]
        enable(self.check_button, issued is not None)
        if issued is None:
            self.certificate.set_content('<p class="us-soft">It has no certificate.</p>')
        else:
            self.certificate.set_content(f'<details class="us-more"><summary>Certificate</summary>{_table(issued)}</details>')
        with self.card:
            text("Its card: the words of whoever made it, not checked here", tag="h3")
            text(about["card"] or "Nothing.", "us-card-text", "pre").props("tabindex=0")

    def _say_standing(self, known: dict[str, Any]) -> None:
        words = f"{known['sentence']} {self.widths}"
        self.standing.set_content(f'{badge(known["standing"], known["label"])} <span class="us-soft">{escaped(words)}</span>')

    def _submit(self, task: str, tell: Callable[[Job], None], asked: ui.element) -> None:
        """asked: the button, which is not to be pressed again before it is over."""
        self.saying.say("")

        def told(job: Job) -> None:
            if job.is_over:
                enable(asked, True)
            tell(job)

        try:
            self.jobs.append(self.studio.jobs.submit(task, task, self._reference(), told))
        except UndershootError as error:
            self.saying.say(str(error))
            return
        enable(asked, False)
        enable(self.end, True)

    def _busy(self, job: Job) -> bool:
        """Show how far it is; whether it is over."""
        if job.stage is Stage.FAILED:
            self.saying.say(job.error)
        if job.stage is Stage.STOPPED:
            self.saying.say("Stopped; what is shown is what was counted until then.", "is-open")
        if job.is_over:
            self.progress.set_content("")
            enable(self.end, not all(each.is_over for each in self.jobs))
            return False
        done, of = job.event.get("done") or 0, job.event.get("of")
        share = "" if not of else f' style="width:{100 * done / of:.0f}%"'
        words = escaped(job.event.get("text", "in the queue" if job.stage is Stage.WAITING else "starting"))
        self.progress.set_content(
            f'<div class="us-small">{words} …</div><div class="us-progress{"" if of else " is-busy"}"><i{share}></i></div>'
        )
        return True

    def draw(self) -> None:
        """The distribution, for every margin."""
        self._submit("margins", self._drawn, self.draw_button)

    def _drawn(self, job: Job) -> None:
        self._busy(job)
        found = job.result or job.event.get("found")
        if found is not None and self.chart is not None:
            self.chart.show(found)
        elif found is not None:
            self.chart_place.clear()
            with self.chart_place:
                self.chart = MarginChart(found)
            self._mark()

    def _mark(self) -> None:
        if self.chart is not None:
            self.chart.show_marks([row for row in self.fitted if row.get("margins")])

    def fit(self) -> None:
        """All calibrators."""
        self._submit("calibrators", self._fitted, self.compare)

    def _fitted(self, job: Job) -> None:
        self._busy(job)
        rows = (job.result or job.event).get("rows", [])
        if len(rows) != len(self.fitted):
            self.fitted = rows
            self._mark()
            self.methods.set_content(_methods(rows))

    def check(self) -> None:
        """Every state and every move."""
        self._submit("check", self._checked, self.check_button)

    def _checked(self, job: Job) -> None:
        if self._busy(job) or job.result is None:
            return
        found = job.result
        if found["is_proven"]:
            self._say_standing(found)
        words = f"{found['checked']:,} of {found['states']:,} {found['what']} checked, "
        words += f"{found['violations']:,} above their true cost. "
        words += found["sentence"] if found["is_proven"] else "It does not pass: " + "; ".join(found["differing"])
        self.checked.set_content(
            said(words, "is-proven" if found["passed"] else "is-wrong")
            + '<div class="us-figures" style="margin-top:.8rem">'
            + figure("mean h", f"{found['mean_h']:.4f}")
            + figure("mean true cost", f"{found['mean_true']:.4f}")
            + ("" if found["edges"] is None else figure("moves checked", f"{found['edges']:,}"))
            + ("" if found["edges"] is None else figure("of them inconsistent", f"{found['inconsistent_edges']:,}"))
            + "</div>"
        )


def _methods(rows: list[dict[str, Any]]) -> str:
    """A table of calibrators."""
    lines = []
    for row in rows:
        if "error" in row:
            why = f'<td colspan="5" class="left us-small">{escaped(row["error"])}</td>'
            lines.append(f"<tr><td>{escaped(row['method'])}</td>{why}</tr>")
            continue
        margin = ", ".join(f"{each:.3f}" for each in row["margins"][:1]) if len(row["margins"]) < 2 else "several"
        over = "is-over" if row["violations"] else ""
        worse = "is-over" if row["suboptimal"] else ""
        stopped = f"{row['stopped']} stopped at {row['most_expanded']:,}" if row["stopped"] else ""
        claim = f'<div class="us-small">{escaped(row["claim"])}</div>'
        lines.append(
            f'<tr data-method="{row["method"]}"><td><b>{escaped(row["method"])}</b>{claim}</td>'
            f'<td>{margin}</td><td class="{over}">{row["violations"]:,}</td><td>{row["mean_h"]:.3f}</td>'
            f'<td>{row["expanded"]:,.1f}<div class="us-small">{stopped}</div></td>'
            f'<td class="{worse}">{row["suboptimal"]} of {row["solved"]}</td></tr>'
        )
    columns = ("method, and what it claims", "margin", "above h*", "mean h", "expanded", "not optimal")
    head = "".join(f"<th>{column}</th>" for column in columns)
    return f'<table class="us-table"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def _table(document: dict[str, Any]) -> str:
    """A document as two columns."""
    lines = "".join(
        f'<tr><td>{escaped(key)}</td><td class="left mono" style="overflow-wrap:anywhere">{escaped(value)}</td></tr>'
        for key, value in document.items()
    )
    return f'<table class="us-table">{lines}</table>'
