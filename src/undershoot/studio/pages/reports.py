"""Reports: those of `undershoot reproduce` that lie in the folder of runs."""

from urllib.parse import quote

from fastapi import Response
from fastapi.responses import FileResponse, PlainTextResponse
from nicegui import ui

from undershoot.errors import UndershootError
from undershoot.studio.elements import Choice, box, text
from undershoot.studio.pages.layout import page
from undershoot.studio.studio import Studio

LEAD = "The paper's tables and figures, made anew: what each run of undershoot reproduce found."
POLICY = (
    "default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; font-src 'self'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'self'; sandbox"
)
"""A report shows text, styles and pictures of its own folder; nothing in it runs, and nothing comes from elsewhere."""


def reports_page(studio: Studio, name: str) -> None:
    """A list of reports, and one of them."""
    with page("reports", "Reports", LEAD):
        names = studio.folders.reports()
        if not names:
            with box("us-card"):
                text("There is no report yet.", tag="h2")
                text("Make one, in a few minutes, in the folder that this studio looks at:", "us-soft")
                with box("us-prose"):
                    text(f"undershoot reproduce --profile quick --out {studio.folders.runs / 'reproduce-quick'}", tag="pre")
            return
        chosen = name if name in names else names[0]
        Choice(
            "", {each: each for each in names}, chosen, lambda other: ui.navigate.to(f"/reports?name={quote(other)}"), pick=True
        )
        frame = ui.element("iframe").classes("us-report").props("title=Report")
        frame.props["sandbox"] = ""
        frame.props["src"] = f"/report/{quote(chosen, safe='')}/index.html"


def report_file(studio: Studio, name: str, path: str) -> Response:
    """A file of a report, if it is one."""
    try:
        found = studio.folders.report_file(name, path)
    except UndershootError as error:
        return PlainTextResponse(str(error), status_code=404)
    return FileResponse(found, headers={"Content-Security-Policy": POLICY})
