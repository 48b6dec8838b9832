"""All commands, as one program."""

import typer

from undershoot.cli.calibrate import calibrate
from undershoot.cli.certify import certify, check
from undershoot.cli.interruption import ended_by_ctrl_c
from undershoot.cli.oracle import oracle
from undershoot.cli.puzzles import puzzles
from undershoot.cli.reproduce import reproduce
from undershoot.cli.search import bench, solve
from undershoot.cli.train import train

app = typer.Typer(
    help="Heuristics that stay below the true cost, and say how surely.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (puzzles, oracle, train, calibrate, certify, check, solve, bench, reproduce):
    app.command()(ended_by_ctrl_c(command))
