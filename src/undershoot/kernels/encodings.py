"""States read as tokens, compiled. See `Reading`."""

from typing import NamedTuple

import numpy as np

from undershoot.arrays import F32, I32, I64, U8, U16, AnyArray, Number, States, frozen, read_only
from undershoot.kernels.compiler import called, compiled
from undershoot.puzzles.encoding import Encoding


def read(encoding: Encoding, states: States) -> States | U16:
    """[B, T]: the tokens of states; a ValueError if values are out of range."""
    how, states = encoding.reading, read_only(states)
    if how is None:
        return states
    tokens: U16 = _read(
        how.image_cells, how.image_values, how.keys, how.cells, how.factors, how.values, how.size, how.pairs, how.tokens, states
    )
    return read_only(tokens)


def dense(encoding: Encoding, states: States) -> F32:
    """float32[B, width] of zeros and ones, the inputs of a network."""
    tokens = read(encoding, states)
    active: AnyArray = encoding.features[np.arange(tokens.shape[1]), tokens]
    active = active.reshape(len(states), active.shape[1] * active.shape[2])
    inputs = np.zeros((len(states), encoding.width + 1), dtype=np.float32)
    # Input number -1 is the spare last column, cut off below.
    np.put_along_axis(inputs, active.astype(np.int64) % (encoding.width + 1), 1.0, axis=1)
    return inputs[:, : encoding.width]


@compiled
def _read(
    image_cells: U8,
    image_values: U8,
    keys: I64,
    cells: I32,
    factors: I32,
    values: U16,
    size: Number,
    pairs: Number,
    tokens: Number,
    states: States,
) -> U16:
    count, n = states.shape
    result = np.empty((count, tokens), dtype=np.uint16)
    pieces = np.empty(cells.shape[0], dtype=np.uint16)
    seen = np.empty(n, dtype=np.uint8)
    for b in range(count):
        for i in range(n):
            seen[i] = states[b, i]
        if keys.shape[0]:
            _choose_image(image_cells, image_values, keys, states[b], seen)
        for p in range(cells.shape[0]):
            code = np.int64(0)
            for j in range(cells.shape[1]):
                code += factors[p, j] * np.int64(seen[cells[p, j]])
            if code >= values.shape[1]:
                raise ValueError("a value is out of range")
            pieces[p] = values[p, code]
        if not pairs:
            for p in range(tokens):
                result[b, p] = pieces[p]
            continue
        t = 0
        for p in range(cells.shape[0]):
            for q in range(p + 1, cells.shape[0]):
                result[b, t] = pieces[p] * size + pieces[q]
                t += 1
    return result


@compiled
def _choose_image(image_cells: U8, image_values: U8, keys: I64, state: U8, seen: U8) -> None:
    best, least = 0, np.int64(0)
    for i in range(state.shape[0]):
        if state[i] >= keys.shape[2]:
            raise ValueError("a value is out of range")
    for s in range(keys.shape[0]):
        key = np.int64(0)
        for i in range(state.shape[0]):
            key += keys[s, i, state[i]]
        if s == 0 or key < least:
            best, least = s, key
    for i in range(state.shape[0]):
        seen[i] = image_values[best, state[image_cells[best, i]]]


class Reader(NamedTuple):
    """A `Reading` for compiled code, and where one state at a time is read."""

    image_cells: U8
    image_values: U8
    keys: I64
    cells: I32
    factors: I32
    values: U16
    size: Number
    pairs: Number
    seen: U8
    """uint8[n]: the image that was chosen."""
    pieces: U16
    tokens: U16


def reader(encoding: Encoding, cells: int) -> Reader:
    """For one thread. Without a reading, the values of all cells are the tokens."""
    how = encoding.reading
    seen = np.zeros(cells, dtype=np.uint8)
    if how is not None:
        pieces, tokens = np.zeros(len(how.cells), dtype=np.uint16), np.zeros(how.tokens, dtype=np.uint16)
        return Reader(
            how.image_cells,
            how.image_values,
            how.keys,
            how.cells,
            how.factors,
            how.values,
            how.size,
            how.pairs,
            seen,
            pieces,
            tokens,
        )
    values = encoding.features.shape[1]
    return Reader(
        frozen(np.zeros((0, cells), dtype=np.uint8)),
        frozen(np.zeros((0, values), dtype=np.uint8)),
        frozen(np.zeros((0, cells, values), dtype=np.int64)),
        frozen(np.arange(cells, dtype=np.int32)[:, None]),
        frozen(np.ones((cells, 1), dtype=np.int32)),
        frozen(np.tile(np.arange(values, dtype=np.uint16), (cells, 1))),
        values,
        False,
        seen,
        np.zeros(cells, dtype=np.uint16),
        np.zeros(cells, dtype=np.uint16),
    )


@called
def read_one(how: Reader, states: States, row: Number) -> None:
    """Write the tokens of states[row] to how.tokens. Values are trusted."""
    n, count = how.seen.shape[0], how.cells.shape[0]
    best, least = 0, np.int64(0)
    for s in range(how.keys.shape[0]):
        key = np.int64(0)
        for i in range(n):
            key += how.keys[s, i, states[row, i]]
        if s == 0 or key < least:
            best, least = s, key
    for i in range(n):
        how.seen[i] = states[row, i]
        if how.keys.shape[0]:
            how.seen[i] = how.image_values[best, states[row, how.image_cells[best, i]]]
    for p in range(count):
        code = np.int64(0)
        for j in range(how.cells.shape[1]):
            code += how.factors[p, j] * np.int64(how.seen[how.cells[p, j]])
        how.pieces[p] = how.values[p, code]
    if not how.pairs:
        for p in range(count):
            how.tokens[p] = how.pieces[p]
        return
    token = 0
    for p in range(count):
        for q in range(p + 1, count):
            how.tokens[token] = how.pieces[p] * how.size + how.pieces[q]
            token += 1
