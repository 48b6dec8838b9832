"""All commands, as one program."""

from typing import Annotated

import typer

import undershoot
from undershoot.cli.bench import bench
from undershoot.cli.calibrate import calibrate
from undershoot.cli.certify import certify, check
from undershoot.cli.interruption import ended_by_ctrl_c
from undershoot.cli.oracle import oracle
from undershoot.cli.patterns import patterns
from undershoot.cli.puzzles import puzzles
from undershoot.cli.reproduce import reproduce
from undershoot.cli.solve import solve
from undershoot.cli.studio import studio
from undershoot.cli.train import train

UsageProblem: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""What typer raises for what cannot be typed; it names it nowhere, and has it from click or, later, from a copy of that."""
app = typer.Typer(
    help="Heuristics that stay below the true cost, and say how surely.",
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def program(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Heuristics that stay below the true cost, and say how surely."""
    if version:
        print(f"undershoot {undershoot.__version__}")
        raise typer.Exit


for command in (puzzles, oracle, patterns, train, calibrate, certify, check, solve, bench, reproduce, studio):
    app.command()(ended_by_ctrl_c(command))
