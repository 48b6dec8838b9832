"""The server: which page is where, and what happens at its beginning and end."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi.responses import RedirectResponse
from nicegui import app, ui
from starlette.middleware.trustedhost import TrustedHostMiddleware

from undershoot.studio.boards import BROWSER
from undershoot.studio.folders import Folders
from undershoot.studio.jobs import Limits
from undershoot.studio.pages.play import play_page
from undershoot.studio.studio import Studio

LOOPBACK = ("127.0.0.1", "localhost", "::1")
FIRST = "/play/cube-2x2"
HEAD = '<link rel="stylesheet" href="/browser/style.css"><link rel="icon" href="data:,">'


def serve(folders: Folders, limits: Limits, host: str, port: int, open_browser: bool) -> None:
    """Serve until somebody ends it."""
    studio = Studio(folders, limits)
    _add_routes(studio)
    app.on_startup(studio.open)
    app.on_shutdown(studio.close)
    app.on_startup(lambda: _say_where(host, port))
    if host in LOOPBACK:
        # A page from elsewhere that got its name to point here is not answered.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"])
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


def _say_where(host: str, port: int) -> None:
    shown = f"[{host}]" if ":" in host else host
    print(f"undershoot: the studio is at http://{shown}:{port}{FIRST}; Ctrl-C ends it", file=sys.stderr, flush=True)


def _add_routes(studio: Studio) -> None:
    app.add_static_files("/browser", BROWSER)
    ui.add_head_html(HEAD, shared=True)

    @app.get("/")
    def start() -> RedirectResponse:
        return RedirectResponse(FIRST)

    @app.get("/play")
    def play_any() -> RedirectResponse:
        return RedirectResponse(FIRST)

    @ui.page("/play/{name}")
    def play(name: str, state: str = "") -> None:
        play_page(studio, name, state)
