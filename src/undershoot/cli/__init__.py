"""The command line: parse, call, print. Results go to stdout, everything else to stderr."""

import logging
import os
import sys
import warnings
from io import TextIOWrapper

import typer

from undershoot.cli.calibrate import calibrate
from undershoot.cli.certify import certify, check
from undershoot.cli.oracle import oracle
from undershoot.cli.puzzles import puzzles
from undershoot.cli.reproduce import reproduce
from undershoot.cli.search import bench, solve
from undershoot.cli.train import train
from undershoot.errors import UndershootError

app = typer.Typer(
    help="Heuristics that stay below the true cost, and say how surely.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (puzzles, oracle, train, calibrate, certify, check, solve, bench, reproduce):
    app.command()(command)


def main() -> None:
    """Run a command; bad input ends with one message on stderr and exit code 2."""
    logging.basicConfig(format="undershoot: %(message)s", stream=sys.stderr)
    logging.getLogger("undershoot").setLevel(logging.INFO)
    warnings.showwarning = lambda message, *_: print(f"undershoot: warning: {message}", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without block characters shows question marks
    try:
        app()
    except UndershootError as error:
        print(f"undershoot: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read has seen enough
        sys.exit(1)
    except OSError as error:
        print(f"undershoot: {error}", file=sys.stderr)
        sys.exit(1)
    except MemoryError:
        print(
            "undershoot: there is not enough memory for this; ask for a smaller batch or network, or fewer states",
            file=sys.stderr,
        )
        sys.exit(1)
    except KeyboardInterrupt:
        print("undershoot: interrupted", file=sys.stderr)
        sys.exit(130)
