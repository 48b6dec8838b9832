"""undershoot patterns"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from undershoot.cli.posing import making_patterns, parse_bytes
from undershoot.cli.terminal import AsJson, PuzzleName, print_json, show_histogram, stdout
from undershoot.errors import UndershootError

if TYPE_CHECKING:
    from undershoot.heuristics.patterns import PatternHeuristic
    from undershoot.puzzles.puzzle import Puzzle


def patterns(
    puzzle: PuzzleName,
    name: Annotated[
        str | None, typer.Argument(metavar="[SET]", help='Such as 6-6-3, corners+7+7, or pieces: "1 2 5 / 3 4 7".')
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="auto|cpu|cuda", help="Where to make tables; auto takes cuda for large ones that fit there."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Make tables that are in the cache again.")] = False,
    max_memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The default set is one whose tables take no more, such as 500M.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The sets of patterns of a puzzle; or one of them: made and verified if it is not there yet, with what it costs."""
    from undershoot.bundles.loading import patterns as pattern_heuristic
    from undershoot.pattern_tables.tables import AUTO
    from undershoot.puzzles.catalogue import puzzle as by_name

    chosen = by_name(puzzle)
    if name is None:
        if device is not None or again:
            option = "--again" if again else "--device"
            raise UndershootError(f"{option} was given, but nothing reads it without a SET; leave it out")
        _list(chosen, puzzle, None if max_memory is None else parse_bytes(max_memory), as_json)
        return
    if max_memory is not None:
        raise UndershootError("--max-memory chooses a default set, but a SET was given; leave one of them out")
    with making_patterns(chosen) as show:
        made = pattern_heuristic(chosen, name, progress=show, device=device or AUTO, again=again)
    if as_json:
        print_json(_document(chosen, made))
    else:
        _show(chosen, made)


def _list(puzzle: "Puzzle", given: str, max_memory: int | None, as_json: bool) -> None:
    from rich.table import Table

    from undershoot.pattern_tables.cache import cached_seconds
    from undershoot.pattern_tables.looks import representatives
    from undershoot.pattern_tables.sets import names_of_sets, pattern_set, piece_names
    from undershoot.pattern_tables.tables import expected_seconds

    rows, drawn = [], Table("set", "patterns", "entries", "seconds", "in the cache", box=None, title_justify="left")
    drawn.title = f"{puzzle.name}: sets of patterns, the default first"
    for name in names_of_sets(puzzle, max_memory):
        known = pattern_set(puzzle, name)
        names = piece_names(puzzle, known.pieces)
        texts = [" ".join(names[piece] for piece in pattern.followed) for pattern in known.patterns]
        shown = representatives(known.patterns)
        entries = [int(pattern.folded.size) for pattern in known.patterns]
        took = [cached_seconds(pattern, puzzle.name) for pattern in shown]
        about = [round(expected_seconds(pattern), 1) for pattern in known.patterns]
        cached = [seconds is not None for seconds in took]
        by = [texts[known.patterns.index(pattern)] for pattern in shown]
        columns = {"set": name, "patterns": texts, "table_of": by, "entries": entries}
        rows.append({**columns, "cached": cached, "seconds": took, "expected_seconds": about})
        for k, text in enumerate(texts):
            if by[k] != text:
                drawn.add_row("" if k else name, text, f"as {by[k]}", "", "")
                continue
            guess = f"about {about[k]:.0f}" if about[k] >= 1 else "under 1"
            seconds = guess if took[k] is None else f"{took[k]:.1f}"
            drawn.add_row("" if k else name, text, f"{entries[k]:,}", seconds, "yes" if cached[k] else "no")
    if as_json:
        print_json({"puzzle": puzzle.name, "sets": rows})
        return
    drawn.columns[2].justify = drawn.columns[3].justify = "right"
    console = stdout()
    console.print(drawn)
    console.print(
        "An entry takes a byte, or half of one where costs are small. Patterns that a symmetry maps onto each other share a "
        "table. Seconds to make and verify it: as it was here, compiling included, or on two cores without."
    )
    console.print(f"undershoot patterns {given} SET makes one; solve --heuristic patterns:SET searches with it")


def _document(puzzle: "Puzzle", made: "PatternHeuristic") -> dict[str, Any]:
    from undershoot.pattern_tables.sets import piece_names

    names = piece_names(puzzle, made.pieces)

    def name_of(pieces: Any) -> str:
        return " ".join(names[piece] for piece in sorted(pieces))

    tables = [
        {
            "name": name_of(table.pattern.followed),
            "pieces": [names[piece] for piece in table.pattern.followed],
            "states": int(table.histogram.sum()),
            "bytes": len(table.entries),
            "mean": table.mean,
            "largest": table.largest,
            "histogram": table.histogram.tolist(),
            "seconds": table.seconds,
            "verified": True,
        }
        for table in made.tables
    ]
    return {
        "puzzle": puzzle.name,
        "set": made.set_name,
        "patterns": tables,
        "additive": [[name_of(look.asked.tolist()) for look in group] for group in made.sums],
        "bytes": sum(len(table.entries) for table in made.tables),
        "guarantee": str(made.guarantee),
    }


def _show(puzzle: "Puzzle", made: "PatternHeuristic") -> None:
    from rich.table import Table

    console, document = stdout(), _document(puzzle, made)
    drawn = Table("pieces", "states", "mean", "largest", "seconds", box=None, title_justify="left")
    drawn.title = f"{puzzle.name}: {made.name}"
    for column in drawn.columns[1:]:
        column.justify = "right"
    for table in document["patterns"]:
        row = (f"{table['states']:,}", f"{table['mean']:.3f}", str(table["largest"]), f"{table['seconds']:.1f}")
        drawn.add_row(table["name"], *row)
    console.print(drawn)
    for table in document["patterns"]:
        show_histogram(console, f"\n{table['name']}", table["histogram"])
    sums = [" + ".join(f"[{name}]" for name in group) for group in document["additive"]]
    console.print("\nThe value of a state: " + (sums[0] if len(sums) == 1 else "the largest of " + ", ".join(sums)) + ".")
    console.print(f"{document['bytes']:,} bytes; verified: every entry follows from the others. It {made.guarantee}.")
