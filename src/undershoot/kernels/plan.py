"""What kernels need of a move table: for every step only the cells that it changes."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, U8, U16, U64, Bools, frozen
from undershoot.puzzles.moves import MoveTable, Steps


class Plan(NamedTuple):
    """Steps by context, as lists of changed cells; rows beyond `changes` are padding."""

    cursor: int
    """The cursor value, -1 for none."""
    modulus: U16
    legal: Bools
    """bool[C, S]."""
    cost: I32
    """int32[C, S]."""
    landing: I32
    """int32[C, S]."""
    changes: I32
    """int32[C, S], how many cells change."""
    cell: U8
    """uint8[C, S, K], the cells that change."""
    origin: U8
    """uint8[C, S, K], where their new values come from."""
    shift: U8
    """uint8[C, S, K], what is added to them."""
    slides: bool
    """Whether every step only exchanges the cursor with what stands where it lands."""


class Packing(NamedTuple):
    """Mixed radix: key[word[i]] = sum of state[i] * weight[i]. Every state has its own key."""

    word: I32
    """int32[n]."""
    weight: U64
    """uint64[n]."""
    modulus: U16
    """uint16[n]."""


def plan(table: MoveTable, steps: Steps) -> Plan:
    """The changed cells of every legal step."""
    cells = steps.source.shape[2]
    changed = ((steps.source != np.arange(cells)) | (steps.shift > 0)) & steps.legal[:, :, None]
    changes = changed.sum(axis=2).astype(np.int32)
    most = max(1, int(changes.max()))
    # A stable sort of "not changed" puts the changed cells first, in order.
    cell = np.argsort(~changed, axis=2, kind="stable")[:, :, :most].astype(np.uint8)
    return Plan(
        -1 if table.cursor is None else table.cursor,
        table.modulus,
        steps.legal,
        steps.cost,
        steps.landing,
        frozen(changes),
        frozen(cell),
        frozen(np.take_along_axis(steps.source, cell.astype(np.int64), axis=2)),
        frozen(np.take_along_axis(steps.shift, cell.astype(np.int64), axis=2)),
        _slides(table, steps, changes),
    )


def _slides(table: MoveTable, steps: Steps, changes: I32) -> bool:
    """Whether every step exchanges two cells, of which the cursor's is one: two others may be exchanged, too."""
    if table.cursor is None:
        return False
    goes = steps.landing != np.arange(table.contexts)[:, None]
    return bool(((changes == 2) & goes)[steps.legal].all())


@lru_cache(maxsize=64)
def forward_plan(table: MoveTable) -> Plan:
    """Steps indexed by action, over distinct effects."""
    return plan(table, table.forward)


@lru_cache(maxsize=64)
def backward_plan(table: MoveTable) -> Plan:
    """Steps to the states that reach this one by an action."""
    return plan(table, table.backward)


@lru_cache(maxsize=64)
def packing_of(table: MoveTable) -> Packing:
    """As many cells to a 64-bit word as fit."""
    word, weight = [], []
    product, words = 1, 0
    for modulus in table.modulus.tolist():
        if product * modulus > 2**64:
            product, words = 1, words + 1
        word.append(words)
        weight.append(product)
        product *= modulus
    # A cell with one value weighs nothing; its weight may be 2**64, which no word holds.
    weight = [w % 2**64 for w in weight]
    return Packing(frozen(np.array(word, dtype=np.int32)), frozen(np.array(weight, dtype=np.uint64)), table.modulus)
