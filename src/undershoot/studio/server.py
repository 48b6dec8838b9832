"""The server: which page is where, and what happens at its beginning and end."""

import logging
import sys

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, RedirectResponse
from nicegui import Client, app, ui
from starlette.middleware.trustedhost import TrustedHostMiddleware

from undershoot.studio.boards import BROWSER
from undershoot.studio.folders import Folders
from undershoot.studio.guarding import Guard
from undershoot.studio.jobs import Limits
from undershoot.studio.pages.help import help_page, refusal_page
from undershoot.studio.pages.layout import beginning
from undershoot.studio.pages.margins import margins_page
from undershoot.studio.pages.play import play_page
from undershoot.studio.pages.race import race_page
from undershoot.studio.pages.reports import report_file, reports_page
from undershoot.studio.pages.train import train_page
from undershoot.studio.pages.watch import watch_page
from undershoot.studio.studio import Studio

LOOPBACK = ("127.0.0.1", "localhost", "::1")
FIRST = beginning("tiles-3x3")
READING = 30.0
"""Seconds that reading a puzzle file may take."""
HEAD = '<link rel="stylesheet" href="/browser/style.css"><link rel="icon" href="data:,">'


def serve(folders: Folders, limits: Limits, host: str, port: int, open_browser: bool) -> None:
    """Serve until somebody ends it."""
    studio = Studio(folders, limits)
    logging.getLogger("uvicorn.error").addFilter(_GoneVisitors())
    _add_routes(studio)
    app.on_startup(studio.open)
    app.on_shutdown(studio.close)
    app.on_startup(lambda: _say_where(host, port))
    if host in LOOPBACK:
        # A page from elsewhere that got its name to point here is not answered.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"])
    app.add_middleware(Guard)
    ui.run(
        host=host,
        port=port,
        title="undershoot studio",
        show=FIRST if open_browser else False,
        reload=False,
        tailwind=False,
        dark=None,
        show_welcome_message=False,
        binding_refresh_interval=None,
        reconnect_timeout=10.0,
    )


class _GoneVisitors(logging.Filter):
    """A visitor who leaves before a page is sent is no fault that anybody should read about."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is written."""
        error = record.exc_info[1] if record.exc_info else None
        return not (isinstance(error, RuntimeError) and str(error) == "No response returned.")


def _say_where(host: str, port: int) -> None:
    shown = f"[{host}]" if ":" in host else host
    print(f"undershoot: the studio is at http://{shown}:{port}{FIRST}; Ctrl-C ends it", file=sys.stderr, flush=True)


def _add_routes(studio: Studio) -> None:
    app.add_static_files("/browser", BROWSER)
    ui.add_head_html(HEAD, shared=True)

    for old, new in {"/": FIRST, "/play": FIRST, "/race": "/race/tiles-3x3"}.items():
        _redirect(old, new)

    @ui.page("/play/{name}", response_timeout=READING)
    async def play(name: str, state: str = "", moves: int = 0, seed: int = 0) -> None:
        await play_page(studio, name, state, moves, seed)

    @ui.page("/race/{name}", response_timeout=READING)
    async def race(name: str, state: str = "") -> None:
        await race_page(studio, name, state)

    @ui.page("/watch")
    async def watch(puzzle: str = "", state: str = "", example: str = "") -> None:
        await watch_page(studio, puzzle, state, example)

    @ui.page("/margins")
    async def margins(bundle: str = "") -> None:
        await margins_page(studio, bundle)

    @ui.page("/train")
    def train() -> None:
        train_page(studio)

    @ui.page("/reports")
    def reports(name: str = "") -> None:
        reports_page(studio, name)

    @app.get("/report/{name}/{path:path}")
    def report(name: str, path: str) -> Response:
        return report_file(studio, name, path)

    @ui.page("/help")
    def help_() -> None:
        help_page()

    @app.exception_handler(404)
    async def nowhere(request: Request, error: Exception) -> Response:
        words = f"there is no page {request.url.path[:60]!a} here; the links above lead to all there are"
        return _refusal(request, 404, "there is nothing here", "Not found", words)

    @app.exception_handler(RequestValidationError)
    async def misread(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        came = f"{first['loc'][-1]} is {str(first['input'])[:20]!a} in the address"
        words = f"{came}; allowed are whole numbers, as in {FIRST}"
        return _refusal(request, 422, words, "Not understood", words)


def _refusal(request: Request, code: int, plain: str, title: str, words: str) -> Response:
    """For programs in plain text, for people on a page."""
    if "text/html" not in request.headers.get("accept", ""):
        return PlainTextResponse(plain, status_code=code)
    with Client(ui.page(""), request=request) as client:
        refusal_page(title, words)
    return client.build_response(request, code)


def _redirect(old: str, new: str) -> None:
    @app.get(old)
    def there() -> RedirectResponse:
        return RedirectResponse(new)
