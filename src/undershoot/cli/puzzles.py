"""undershoot puzzles"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from undershoot.cli.terminal import AsJson, Seed, count, plain, print_json, show_table, stdout
from undershoot.errors import NotAvailable, UndershootError

if TYPE_CHECKING:
    from undershoot.puzzles.puzzle import Puzzle


def puzzles(
    name: Annotated[str | None, typer.Argument(help="Show this puzzle: a name, or the path of a puzzle file.")] = None,
    check: Annotated[Path | None, typer.Option(metavar="FILE", help="Validate a puzzle file.")] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """List the puzzles, show one, or check a puzzle file."""
    from undershoot.puzzles import catalogue

    if check is not None and name is not None:
        raise UndershootError(f"both a name ({name}) and --check {check} are given; choose one")
    if check is not None or name is not None:
        puzzle = catalogue.from_file(check) if check is not None else catalogue.puzzle(name or "")
        if check is not None:
            _check_sets(puzzle)
        if as_json:
            print_json(_describe(puzzle))
        else:
            _show_puzzle(puzzle, seed)
            if check is not None:
                stdout().print(f"{check} is a valid puzzle file.", style="green", soft_wrap=True)
        return
    examples = [example for family in catalogue.FAMILIES for example in family.examples]
    if as_json:
        print_json({"puzzles": [_describe(catalogue.puzzle(example)) for example in examples], "aliases": catalogue.ALIASES})
        return
    families = [[family.form, family.sizes] for family in catalogue.FAMILIES]
    families += [["FILE.toml", "any permutation puzzle of your own; `undershoot puzzles --check FILE` validates it"]]
    found = [catalogue.puzzle(example) for example in examples]
    sizes = [[puzzle.name, str(puzzle.table.actions), count(puzzle.space.size)] for puzzle in found]
    console = stdout()
    show_table(("puzzles", "sizes"), [[plain(cell) for cell in row] for row in families], left=(0, 1), prose=(1,), padding=2)
    console.print()
    show_table(("for example", "moves", "states"), sizes, padding=2)
    console.print()
    console.print("Also: " + ", ".join(f"{alias} = {name}" for alias, name in catalogue.ALIASES.items()))


def _check_sets(puzzle: "Puzzle") -> None:
    """Refuse a file whose sets of patterns name no pieces of it, or cannot be added."""
    from undershoot.pattern_tables.sets import pattern_set

    for name, _ in puzzle.pattern_sets:
        pattern_set(puzzle, name)


def _describe(puzzle: "Puzzle") -> dict[str, Any]:
    table = puzzle.table
    return {
        "name": puzzle.name,
        "summary": puzzle.summary,
        "fingerprint": table.fingerprint,
        "cells": table.cells,
        "values": table.values,
        "actions": list(table.action_names),
        "costs": table.cost.tolist(),
        "goals": [puzzle.format(goal[None]) for goal in table.goals],
        "states": puzzle.space.size,
        "states_exact": puzzle.space.size_is_exact,
        "reversible": table.is_reversible,
        "symmetries": len(table.symmetries),
        "cost_parity": puzzle.has_cost_parity,
        "solvability": puzzle.space.defects is not None,
        "uniform_sampling": puzzle.space.sample is not None,
        "base_heuristic": puzzle.base_heuristic.name,
        "network_inputs": puzzle.encoding.width,
    }


def _show_puzzle(puzzle: "Puzzle", seed: int) -> None:
    import numpy as np
    from rich.columns import Columns
    from rich.console import Group
    from rich.table import Column, Table

    from undershoot.kernels.scrambles import ScrambleRule, scramble

    about = _describe(puzzle)
    console = stdout()
    summary = f'what its file says: "{puzzle.summary}"' if puzzle.definition else puzzle.summary
    console.print(f"{puzzle.name}: {summary}\n", style="bold")
    goal = puzzle.table.goals[:1]
    try:
        mixed = puzzle.sample(1, seed)
    except NotAvailable:
        try:
            mixed = scramble(puzzle.table, np.array([20]), seed, ScrambleRule.PLAIN).states
        except UndershootError:  # a walk may come to a dead end
            mixed = goal
    console.print(Columns([Group("goal", puzzle.draw(goal)), Group("mixed", puzzle.draw(mixed))], padding=(0, 6)))
    console.print()
    facts = Table.grid(Column(), Column(overflow="fold"), padding=(0, 2))
    size = ("" if about["states_exact"] else "at most ") + count(about["states"])
    for label, value in (
        ("states", size),
        ("cells, values", f"{about['cells']}, {about['values']}"),
        ("moves", _moves_line(about)),
        ("moves can be undone", "yes" if about["reversible"] else "no"),
        ("symmetries", str(about["symmetries"] or "none given")),
        ("parity of solutions", "fixed by the state" if about["cost_parity"] else "not fixed"),
        ("solvability", "known" if about["solvability"] else "only by the oracle"),
        ("uniform random states", "yes" if about["uniform_sampling"] else "not available"),
        ("base heuristic", about["base_heuristic"]),
        ("network inputs", str(about["network_inputs"])),
        ("written as", puzzle.notation.help),
        ("goal, mixed", f"{puzzle.format(goal)}\n{puzzle.format(mixed)}"),
        ("fingerprint", about["fingerprint"][:16]),
    ):
        facts.add_row(plain(label, "dim"), value)
    console.print(facts)


def _moves_line(about: dict[str, Any]) -> str:
    names, costs = about["actions"], about["costs"]
    words = [name if cost == 1 else f"{name} (costs {cost})" for name, cost in zip(names, costs, strict=True)]
    return f"{len(words)}: " + " ".join(words if len(words) <= 25 else [*words[:12], "...", words[-1]])
