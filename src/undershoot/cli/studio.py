"""undershoot studio"""

import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from undershoot.cli.posing import parse_bytes
from undershoot.errors import UndershootError, cannot

INSTALL = "the studio needs more packages: pip install 'undershoot[studio]', or in a clone: make studio"


def studio(
    host: Annotated[
        str, typer.Option(help="The address to listen on; others than 127.0.0.1 let other machines in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 8642,
    no_open: Annotated[bool, typer.Option("--no-open", help="Open no browser.")] = False,
    runs: Annotated[Path, typer.Option(metavar="DIR", help="Runs with their bundles and reports.")] = Path("runs"),
    puzzles: Annotated[Path, typer.Option(metavar="DIR", help="Puzzle files.")] = Path("puzzles"),
    jobs: Annotated[int | None, typer.Option(min=1, max=64, help="Tasks at once; as many as cores, up to 4.")] = None,
    queue: Annotated[int, typer.Option(min=0, max=1000, help="Tasks that may wait.")] = 8,
    max_seconds: Annotated[float, typer.Option(min=1, help="Of a task.")] = 3600.0,
    max_memory: Annotated[str, typer.Option(metavar="SIZE", help="Of a task, such as 500M or 4G.")] = "4G",
) -> None:
    """See it in a browser: play, solve, watch searches, move margins, train."""
    from undershoot.studio.folders import Folders
    from undershoot.studio.jobs import Limits, usual_tasks

    try:
        import nicegui  # noqa: F401
    except ImportError as error:
        raise UndershootError(INSTALL) from error
    from undershoot.studio.server import LOOPBACK, serve

    memory = parse_bytes(max_memory)
    if memory < 2**28:
        raise UndershootError(f'--max-memory is "{max_memory}"; a task needs at least 256M')
    _check_address(host, port)
    if host not in LOOPBACK:
        print(
            f"undershoot: listening on {host}: whoever reaches this machine can use its processors and memory, write puzzle "
            f"files and runs, and read what is in {runs} and {puzzles}. There is no password.",
            file=sys.stderr,
        )
    limits = Limits(seconds=max_seconds, memory=memory, at_once=jobs or usual_tasks(), waiting=queue)
    serve(Folders(runs, puzzles), limits, host, port, not no_open)


def _check_address(host: str, port: int) -> None:
    """Say in a sentence that it cannot be listened on, before anything starts."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except socket.gaierror as error:
        raise UndershootError(f'--host is "{host[:60]}", which is no address of this machine') from error
    except OSError as error:
        raise cannot(f"listen on {host}, port {port}", error, "choose another --port") from error
