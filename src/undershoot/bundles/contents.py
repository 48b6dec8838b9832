"""What a bundle says of its puzzle, as arrays: enough for another program to enumerate the space and evaluate the network.

    table.source, table.shift, table.modulus, table.legal, table.cost, table.goals, table.cursor    see `MoveTable`
    h0.cell_cost, h0.pair_cost, h0.divisor                                                          see `BaseHeuristic`
    parity.bits, parity.places, parity.factors, parity.numbers, parity.constant                     see `CostParity`
    0.features, or 0.inputs (where the inputs are numbered in the order of the ones in it), 0.width;
    0.image_cells, 0.image_values, 0.keys, 0.cells, 0.factors, 0.values, 0.size, 0.pairs            see `Encoding`, `Reading`

Numbers stand in arrays of one element; a cursor of -1 is none. The 0 is the number of the network.
"""

from dataclasses import fields

import numpy as np

from undershoot.arrays import AnyArray, digest_of
from undershoot.puzzles.encoding import Encoding
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.puzzle import Puzzle

Tensors = dict[str, AnyArray]


def puzzle_arrays(puzzle: Puzzle, encodings: list[Encoding]) -> Tensors:
    """By name, as listed above; an encoding for each network."""
    tensors = {**_of_table(puzzle.table), **base_arrays(puzzle), **parity_arrays(puzzle)}
    for number, encoding in enumerate(encodings):
        tensors |= {f"{number}.{name}": array for name, array in _of_encoding(encoding).items()}
    return {name: np.ascontiguousarray(array) for name, array in tensors.items()}


def _of_table(table: MoveTable) -> Tensors:
    named = {name: getattr(table, name) for name in ("source", "shift", "modulus", "cost", "goals")}
    named |= {"legal": table.legal.astype(np.uint8), "cursor": _number(-1 if table.cursor is None else table.cursor)}
    return {f"table.{name}": array for name, array in named.items()}


def base_arrays(puzzle: Puzzle) -> Tensors:
    """h0, as it enters the value of every heuristic."""
    formula = puzzle.base_heuristic
    tensors: Tensors = {"h0.cell_cost": formula.cell_cost, "h0.divisor": _number(formula.divisor)}
    return tensors if formula.pair_cost is None else {**tensors, "h0.pair_cost": formula.pair_cost}


def parity_arrays(puzzle: Puzzle) -> Tensors:
    """The parity of solutions, as it enters values that are rounded to it; nothing where there is none."""
    rule = puzzle.parity_rule
    if rule is None:
        return {}
    named = {part.name: np.atleast_1d(getattr(rule, part.name)) for part in fields(rule)}
    return {f"parity.{name}": array.astype(np.int32) if name == "constant" else array for name, array in named.items()}


def _of_encoding(encoding: Encoding) -> Tensors:
    on = encoding.features >= 0
    tensors: Tensors = {"width": _number(encoding.width)}
    in_order = np.array_equal(encoding.features[on], np.arange(encoding.width))
    tensors |= {"inputs": on.astype(np.uint8)} if in_order else {"features": encoding.features}
    if encoding.reading is not None:
        for part in fields(encoding.reading):
            value = getattr(encoding.reading, part.name)
            tensors[part.name] = value if isinstance(value, np.ndarray) else _number(int(value))
    return tensors


def _number(value: int) -> AnyArray:
    return np.array([value], dtype=np.int32)


def digest_of_tensors(tensors: Tensors) -> str:
    """A checksum of their names and contents."""
    return digest_of([part for name in sorted(tensors) for part in (np.frombuffer(name.encode(), np.uint8), tensors[name])])
