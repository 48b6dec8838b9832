"""The studio: seconds to the first board, how fast a click is answered while a search runs, and the server's memory.

Run it with python benchmarks/studio.py [--seconds 30] [--solves 200].
"""

import argparse
import contextlib
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import sync_playwright

FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking"]
HARD = "0 12 9 13 / 15 11 10 14 / 3 7 2 5 / 4 8 6 1"
CLICK = """async () => {
  const tile = document.querySelector(".us-tile.can-move"), before = tile.style.transform, began = performance.now();
  tile.click();
  while (tile.style.transform === before && performance.now() - began < 5000) await new Promise((go) => setTimeout(go, 1));
  return performance.now() - began;
}"""


def first_board(port: int, folder: Path) -> tuple["subprocess.Popen[bytes]", float]:
    """Start the server; seconds until it sends a page with a board."""
    command = [sys.executable, "-m", "undershoot", "studio", "--no-open", "--port", str(port), "--runs", str(folder)]
    began = time.perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while True:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/play/cube-2x2").read()
            return process, time.perf_counter() - began
        time.sleep(0.02)


def clicks(page: Any, address: str, seconds: float) -> list[float]:
    """Milliseconds from a click to the moved tile, while a search runs."""
    page.goto(f"{address}/play/tiles-4x4?state={HARD}")
    page.wait_for_selector("[data-card=known] [data-heuristic=base]", timeout=120_000)
    page.select_option("[data-card=solve] label:first-child select", "base")
    page.fill("[data-do=seconds]", str(int(seconds) + 30))
    page.click("[data-do=solve]:enabled")
    page.wait_for_selector("[data-bound=lower]", timeout=180_000)
    times, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        times.append(page.evaluate(CLICK))
        time.sleep(0.12)
    assert page.is_enabled("[data-do=stop]"), "the search ended too early"
    page.click("[data-do=stop]")
    return times


def solves(page: Any, address: str, count: int) -> None:
    """So many searches, one after another."""
    page.goto(f"{address}/play/lights-out-3x3")
    page.wait_for_selector("[data-card=known] [data-heuristic=learned]", timeout=120_000)
    for seed in range(count):
        page.fill("[data-do=seed]", str(seed + 1))
        page.click("[data-do=draw]")
        page.wait_for_timeout(30)
        page.click("[data-do=solve]:enabled")
        page.wait_for_selector("[data-say=solve] .is-proven", timeout=120_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--solves", type=int, default=200)
    wanted = parser.parse_args()
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port = int(trial.getsockname()[1])
    address, folder = f"http://127.0.0.1:{port}", Path(tempfile.mkdtemp())
    process, seconds = first_board(port, folder)
    server = psutil.Process(process.pid)
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=shutil.which("chromium") or "", args=FLAGS)
            page = browser.new_page()
            began = time.perf_counter()
            page.goto(f"{address}/play/cube-2x2")
            page.wait_for_selector(".us-sticker")
            print(f"first board: sent after {seconds:.2f} s, drawn {time.perf_counter() - began:.2f} s after it was asked for")
            times = sorted(clicks(page, address, wanted.seconds))
            late = times[int(0.95 * len(times))]
            print(f"{len(times)} clicks during a search: median {statistics.median(times):.0f} ms, 95th {late:.0f} ms")
            solves(page, address, wanted.solves)
            workers = sum(child.memory_info().rss for child in server.children(recursive=True))
            own = server.memory_info().rss
            print(f"after {wanted.solves} solves: server {own / 1e6:.0f} MB, its processes {workers / 1e6:.0f} MB")
            browser.close()
        children = server.children(recursive=True)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        shutil.rmtree(folder, ignore_errors=True)
    _, alive = psutil.wait_procs(children, timeout=5)
    print(f"processes left behind: {len(alive)}; cores {os.cpu_count()}")


if __name__ == "__main__":
    main()
