"""Beam search: layer by layer, only the states that the guide likes best are kept. Then again, with twice as many.

It finds solutions, and proves nothing. Any heuristic guides it, in the compiled loop or in batches; what a guide says that is
wrong, or no number, makes solutions dearer or later, never a statement false.
"""

import time
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from undershoot.arrays import I32, I64, U64
from undershoot.guarantees import Heuristic
from undershoot.kernels.guides import Elsewhere, guide_of, kept_size
from undershoot.search.beam_layers import (
    FIXED_POINT,
    LARGEST,
    MOST_FOUND,
    Children,
    Layer,
    Room,
    Seen,
    Wanted,
    expand_rows,
    hash_words,
    hashes_of,
    make_layer,
)
from undershoot.search.depth_first import tree_moves
from undershoot.search.known import NO_COST, Known

FIRST_WIDTH, MOST_WIDTH = 64, 1 << 22
MOST_LAYERS = 20_000
SECONDS_A_SLICE, SECONDS_A_BATCH, FIRST_ROWS = 0.002, 0.05, 256
"""How long others wait for their turn, with a guide in the loop and with one that is asked in batches, which are better large;
and how many states are expanded at first before the clock is looked at."""
SEEN_A_STATE = 4
"""Entries of the tables of what was seen, for each state of the beam."""
BATCH = 1 << 16
"""States that a heuristic outside of the loop is asked about at a time."""
LOWER_BITS = np.uint64(0xFFFFFFFF)


class Beam:
    """Runs of growing width from one start."""

    def __init__(self, known: Known, guide: Heuristic, proven: Heuristic, memory: int) -> None:
        """proven: what never overestimates, by which states are left out that no better solution passes. memory: in bytes."""
        self.known, self.heuristic, self.proven, self.memory = known, guide, proven, memory
        self.table = known.puzzle.table
        self.moves = tree_moves(self.table)
        in_loop = guide_of(guide)
        self.is_in_loop = in_loop is not None
        self.guide: Any = in_loop if self.is_in_loop else Elsewhere()
        self.slice_seconds = SECONDS_A_SLICE if self.is_in_loop else SECONDS_A_BATCH
        self.words = hash_words(self.table)
        self.goal_hashes = hashes_of(self.table, self.table.goals)
        self.steps = int(self.moves.plan.legal.sum(axis=1).max())
        cells = self.table.cells
        self.room = Room(
            np.zeros((2, cells), dtype=np.uint8),
            np.zeros((2, max(1, int(kept_size(self.guide)))), dtype=np.int32),
            np.zeros((3, self.moves.plan.legal.shape[1]), dtype=np.int64),
            np.zeros(MOST_FOUND, dtype=np.int64),
        )
        self.rows = FIRST_ROWS
        self.width, self.most_width = FIRST_WIDTH, MOST_WIDTH
        self.was_cut = True
        """Whether a run had to leave out what a wider one would keep."""

    @property
    def bytes_a_state(self) -> int:
        """Of a beam, without what is noted of its earlier layers."""
        child = 8 + 4 + 2 + 8 + 8  # the last for choosing among them
        return 2 * (self.table.cells + 24) + self.steps * child + 2 * 8 * SEEN_A_STATE

    def compile(self) -> None:
        """Compile everything, or fetch it from the cache, so that no limit is charged for it."""
        layer, room = self._room_for(1), self._room_for_children(1)
        seen = Seen(np.zeros(1, dtype=np.uint64), np.zeros(1, dtype=np.uint64))
        wanted = Wanted(0, False, np.uint64(0), self.goal_hashes)
        expand_rows(layer, 0, 0, self.moves, self.guide, self.words, seen, wanted, self.room, room, 0)
        make_layer(layer, room, np.zeros(0, dtype=np.int64), self.moves, seen, self.room, layer)

    def slices(self) -> Iterator[None]:
        """Search; control comes back after each slice. It ends when a wider beam would not fit into memory, or would keep
        nothing that this one did not."""
        run = 0
        while self.was_cut and self.width * self.bytes_a_state < self.memory and self.width <= self.most_width:
            run, self.was_cut = run + 1, False
            yield from self._run(run)
            self.width *= 2

    def _run(self, run: int) -> Iterator[None]:
        """One run, until a layer is empty: all that could lead to a better solution was left out, or was searched."""
        size = 1 << (SEEN_A_STATE * self.width - 1).bit_length()
        seen = Seen(np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.uint64))
        layers, children = [self._room_for(self.width), self._room_for(self.width)], self._room_for_children(self.width)
        count, noted = self._plant(layers[0]), 0
        history: list[tuple[I32, Any]] = []
        for number in range(MOST_LAYERS):
            here, below = layers[number & 1], layers[1 - number & 1]
            salt = np.uint64((0x9E3779B97F4A7C15 * (run * MOST_LAYERS + number + 1)) % 2**64)
            made = yield from self._expand(here, count, seen, salt, children, history)
            chosen = self._chosen(children, made)
            make_layer(here, children, chosen, self.moves, seen, self.room, below)
            history.append((children.parents[chosen], children.steps[chosen]))
            noted += 6 * len(chosen)
            count = self._prune(below, len(chosen), history)
            self.known.count(stored=2 * count + made)
            if not count or self.known.is_over:
                return
            if noted + self.width * self.bytes_a_state > self.memory:
                self.was_cut = False  # a wider one would not come as far
                return

    def _room_for_children(self, width: int) -> Children:
        rows = width * self.steps
        return Children(
            np.zeros(rows, dtype=np.uint64),
            np.zeros(rows, dtype=np.int32),
            np.zeros(rows, dtype=np.uint16),
            np.zeros(rows, dtype=np.uint64),
        )

    def _plant(self, layer: Layer) -> int:
        """The start, as a layer of one."""
        start = self.known.start
        contexts, width = self.moves.plan.legal.shape
        layer.states[0], layer.hashes[0] = start[0], hashes_of(self.table, start)[0]
        layer.arrivals[0] = contexts * width + int(self.table.contexts_of(start)[0])
        return 1

    def _expand(
        self, layer: Layer, count: int, seen: Seen, salt: np.uint64, children: Children, history: list[tuple[I32, Any]]
    ) -> Generator[None, None, int]:
        """Expand a layer in slices; returns how many children there are."""
        is_proven = self.is_in_loop and self.heuristic.guarantee.is_proven
        made, row = 0, 0
        while row < count and not self.known.is_over:
            rows = self.known.reserve(min(self.rows, count - row))
            wanted = Wanted(self.known.most_useful_cost, is_proven, salt, self.goal_hashes)
            began, before = time.perf_counter(), made
            made, found = expand_rows(
                layer, row, row + rows, self.moves, self.guide, self.words, seen, wanted, self.room, children, made
            )
            row += rows
            for child in self.room.found[:found].tolist():
                self._offer(history, int(children.parents[child]), int(children.steps[child]))
            if not self.is_in_loop:
                self._evaluate(layer, children, before, made, salt)
            self.known.count(generated=made - before, evaluated=made - before)
            self.rows = max(1, min(int(rows * self.slice_seconds / max(1e-6, time.perf_counter() - began)), 4 * rows))
            yield
        return made

    def _evaluate(self, layer: Layer, children: Children, first: int, last: int, salt: np.uint64) -> None:
        """Ask the heuristic about the states of new children, and write what they are sorted by."""
        for start in range(first, last, BATCH):
            rows = np.arange(start, min(start + BATCH, last))
            room = self._room_for(len(rows))
            make_layer(layer, children, rows, self.moves, Seen(room.hashes[:1], room.hashes[:1]), self.room, room)
            values = np.asarray(self.heuristic(room.states), dtype=np.float64)
            f = room.costs + np.where(values > 0, values, np.where(np.isnan(values), np.inf, 0.0))
            upper = np.where(f <= LARGEST, np.minimum(f, LARGEST) * FIXED_POINT, 0xFFFFFFFF).astype(np.uint64)
            children.keys[rows] = (upper << np.uint64(32)) | (children.keys[rows] & LOWER_BITS)

    def _room_for(self, rows: int) -> Layer:
        cells = self.table.cells
        return Layer(
            np.zeros((rows, cells), dtype=np.uint8),
            np.zeros(rows, dtype=np.uint64),
            np.zeros(rows, dtype=np.int64),
            np.zeros(rows, dtype=np.int64),
        )

    def _chosen(self, children: Children, made: int) -> I64:
        """int64[at most the width]: the best children."""
        keys: U64 = children.keys[:made]
        if made <= self.width:
            return np.arange(made)
        self.was_cut = True
        return np.sort(np.argpartition(keys, self.width - 1)[: self.width])

    def _prune(self, layer: Layer, count: int, history: list[tuple[I32, Any]]) -> int:
        """Leave out what no better solution passes, where the guide does not say that. Returns how many are left."""
        if self.known.cost == NO_COST or (self.is_in_loop and self.heuristic.guarantee.is_proven):
            return count
        bounds = layer.costs[:count] + np.ceil(self.proven(layer.states[:count])).astype(np.int64)
        kept = np.flatnonzero(bounds <= self.known.most_useful_cost)
        for part in layer:
            part[: len(kept)] = part[kept]
        parents, steps = history[-1]
        history[-1] = (parents[kept], steps[kept])
        return len(kept)

    def _offer(self, history: list[tuple[I32, Any]], row: int, step: int) -> None:
        """The way to a child, from the start."""
        path = [step]
        for parents, steps in reversed(history):
            path.append(int(steps[row]))
            row = int(parents[row])
        self.known.offer(np.array(path[::-1], dtype=np.int32))
