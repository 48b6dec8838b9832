"""One server and one browser for all tests of the studio; what they need is found, or the tests say why they are skipped."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--metrics-recording-only",
]


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


@dataclass
class Server:
    """A studio that runs."""

    process: "subprocess.Popen[str]"
    port: int
    runs: Path
    puzzles: Path
    seconds_to_start: float
    log: Path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.address + path, timeout=20) as answer:
                return answer.status, answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")


def _outside_pytest() -> dict[str, str]:
    """NiceGUI does other things where it finds that it is tested."""
    return {name: value for name, value in os.environ.items() if "PYTEST" not in name and "NICEGUI" not in name}


@contextlib.contextmanager
def studio_server(folder: Path, *options: str) -> Iterator[Server]:
    runs, puzzles, log = folder / "runs", folder / "puzzles", folder / "log"
    runs.mkdir()
    shutil.copytree(ROOT / "examples", puzzles, ignore=lambda _, names: [name for name in names if not name.endswith(".toml")])
    (folder / ".nicegui").mkdir()
    os.mkfifo(folder / ".nicegui" / "storage-general.json")  # whatever is there in the working folder is not read
    port, began = free_port(), time.monotonic()
    command = [sys.executable, "-m", "undershoot", "studio", "--no-open", "--port", str(port)]
    with log.open("w") as said:
        process = subprocess.Popen(
            [*command, "--runs", str(runs), "--puzzles", str(puzzles), *options],
            stderr=said,
            stdout=said,
            text=True,
            cwd=folder,
            env=_outside_pytest(),
            start_new_session=True,  # a test may signal all that it started, as a terminal does
        )
    try:
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/help", timeout=5).read()
                break
            assert process.poll() is None, log.read_text()
            assert time.monotonic() - began < 60, log.read_text()
            time.sleep(0.05)
        yield Server(process, port, runs, puzzles, time.monotonic() - began, log)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, own_cache: Path, own_state: Path) -> Iterator[Server]:
    with studio_server(tmp_path_factory.mktemp("studio")) as running:
        yield running


@dataclass
class Visits:
    """A browser, all that it asked for, and what its pages complained about."""

    browser: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def page(self, address: str, **how: Any) -> Iterator[Any]:
        """A page in a browser profile of its own."""
        context = self.browser.new_context(**({"viewport": {"width": 1280, "height": 860}} | how))
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", lambda socket: self.requests.append(socket.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._heard)
        try:
            page.goto(address)
            yield page
        finally:
            context.close()

    def _heard(self, said: Any) -> None:
        """What a policy refuses stands on the browser's console; that of reports is there to refuse."""
        if "Content Security Policy" in said.text and "/report/" not in said.location.get("url", ""):
            self.complaints.append(said.text)


@pytest.fixture(scope="session")
def visits() -> Iterator[Visits]:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed (apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api", reason="the package playwright drives the browser")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=QUIET)
        yield Visits(browser)
        browser.close()
