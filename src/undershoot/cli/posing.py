"""What `solve` and `bench` share: which states to search from, and how."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from undershoot.cli.terminal import progress
from undershoot.errors import UndershootError

if TYPE_CHECKING:
    from undershoot.bundles.loading import Progress
    from undershoot.experiments.instances import Instances
    from undershoot.guarantees import Heuristic
    from undershoot.puzzles.puzzle import Puzzle
    from undershoot.search.options import SearchOptions

InstanceFile = Annotated[
    Path | None, typer.Option("--instances", metavar="FILE", help="One state a line; - for standard input.")
]
NAMES = "learned, label-free, small, paper, patterns, patterns:SET, base, zero, table, gf2, linear-conflict"
"""Of heuristics; their catalogues would take long to load for those who ask for help."""
Random = Annotated[int | None, typer.Option(metavar="N", help="N uniformly random states.")]
Weight = Annotated[float, typer.Option(help="f = g + weight * h; 1 is plain A*.")]
TieRule = Annotated[str, typer.Option("--ties", metavar="deep|shallow", help="Which node of equal f comes first.")]
PerStep = Annotated[int, typer.Option(help="Nodes taken before their children are evaluated together; 1 is classic A*.")]
MaxExpanded = Annotated[int | None, typer.Option(help="Stop an instance after so many expansions.")]
MaxSeconds = Annotated[float | None, typer.Option(help="Stop an instance after so many seconds.")]
MaxMemory = Annotated[str | None, typer.Option(metavar="SIZE", help="All instances together, such as 500M or 4G.")]
AlgorithmName = Annotated[
    str,
    typer.Option(
        "--algorithm",
        metavar="astar|ida|both|auto",
        help="both: a guided search and a proof at once. auto takes A* where all states fit into memory, else both.",
    ),
]
GuideName = Annotated[
    str | None, typer.Option("--guide", help="both: the heuristic that guides to solutions; that of the proof if not given.")
]
Threads = Annotated[int, typer.Option(help="Spread the instances over so many.")]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="cpu|cuda|auto",
        help="Where to search. cuda: patterns by IDA*, others by A*. auto takes it for patterns where there is one.",
    ),
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Let the workers of a Dask scheduler search, tcp://HOST:PORT.")
]


def heuristic_for(
    puzzle: "Puzzle", name: str, max_memory: int | None = None, made: set[str] | None = None, device: str = "cpu"
) -> "Heuristic":
    """The heuristic of this name. Pattern tables that are not in the cache are made, which is said, with a bar.

    max_memory: bytes that those of a default set may take. made: the pieces of tables that are made are added to it. device:
    where patterns are to be searched.
    """
    from undershoot.bundles.loading import heuristic

    with making_patterns(puzzle, made) as show:
        return heuristic(puzzle, name, show, max_memory, device)


@contextmanager
def making_patterns(puzzle: "Puzzle", made: set[str] | None = None) -> Iterator["Progress"]:
    """What shows how far tables are while they are made."""
    said: set[str] = set() if made is None else made
    with progress(f"patterns of {puzzle.name}") as report:

        def show(pieces: str, doing: str, done: int, of: int) -> None:
            if doing == "making" and pieces not in said:
                said.add(pieces)
                print(f"undershoot: making the pattern {pieces} of {puzzle.name}: {of:,} states, once", file=sys.stderr)
            report(done, f"{doing} {pieces}", of)

        yield show


MOST_MEMORY = 2**60


def options(
    weight: float,
    ties: str,
    per_step: int,
    max_expanded: int | None,
    max_seconds: float | None,
    max_memory: str | None,
    algorithm: str = "astar",
    device: str = "cpu",
) -> "SearchOptions":
    """How to search, where, and when to stop."""
    from undershoot.search.options import Algorithm, SearchOptions, Ties

    if ties not in list(Ties):
        raise UndershootError(f'--ties is "{ties}"; allowed are {" and ".join(Ties)}')
    memory = None if max_memory is None else parse_bytes(max_memory)
    if algorithm not in list(Algorithm):
        raise UndershootError(f'--algorithm is "{algorithm}"; allowed are {", ".join(Algorithm)}')
    return SearchOptions(weight, Ties(ties), per_step, max_expanded, max_seconds, memory, Algorithm(algorithm), device=device)


def on_machine(how: "SearchOptions", threads: int, scheduler: str | None) -> tuple["SearchOptions", str]:
    """The options with a device that is there, and where tables of patterns go; before anything large is made."""
    from dataclasses import replace

    from undershoot.search.options import CPU, check_options

    if how.device == CPU:
        check_options(how, threads)
        return how, CPU
    if scheduler is not None:
        raise UndershootError(
            "--device is for this machine; leave it out with --scheduler, whose workers search on their cores"
        )
    from undershoot.search.device.choosing import settled, tables_go_to

    how = replace(how, device=settled(how.device))
    check_options(how, threads)
    return how, tables_go_to(how, threads)


def parse_bytes(text: str) -> int:
    """500M, 4G, 1.5GiB or a number of bytes."""
    from undershoot.experiments.instances import shortened

    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(i?[bB])?\s*", text)
    if not match:
        raise UndershootError(f'"{text}" is no amount of memory; write 500M, 4G or a number of bytes')
    amount = float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " ")
    if amount > MOST_MEMORY:
        raise UndershootError(f'"{shortened(text)}" is more memory than there is anywhere; write 500M, 4G or a number of bytes')
    return int(amount)


def given_options(context: typer.Context) -> set[str]:
    """The names of the parameters that the user wrote."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def refuse_unread(context: typer.Context, readers: dict[str, tuple[str, ...]]) -> None:
    """Refuse options that would not be read. readers: for an option, those of which at least one must be given, too."""
    given = given_options(context)
    for name, needed in readers.items():
        if name in given and not given.intersection(needed):
            wanted = " or ".join(f"--{other.replace('_', '-')}" for other in needed)
            raise UndershootError(f"--{name.replace('_', '-')} was given, but nothing reads it without {wanted}; leave it out")


def exclusive(context: typer.Context, *names: str) -> None:
    """Refuse more than one of these."""
    both = [name for name in names if name in given_options(context)]
    if len(both) > 1:
        shown = " and ".join("a state" if name == "state" else f"--{name.replace('_', '-')}" for name in both)
        raise UndershootError(f"{shown} exclude one another; give one of them")


def random_or_listed(puzzle: "Puzzle", count: int, file: Path | None, seed: int) -> "Instances":
    """Those of the file, or so many uniformly random states."""
    from undershoot.experiments.instances import read_instances, uniform_instances
    from undershoot.kernels.streams import Purpose

    if file is not None:
        return read_instances(puzzle, file)
    return uniform_instances(puzzle, count, seed, Purpose.INSTANCES)
