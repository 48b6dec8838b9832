"""Beam search on a device: only the states of a layer that the guide likes best are kept. Then again, with four times as many.

It is `search.beam` as operations of torch: it finds solutions, and proves nothing. What a guide says that is wrong, or no
number, makes solutions dearer or later, never a statement false.
"""

import time
from collections.abc import Generator, Iterator

import numpy as np
import torch
from torch import Tensor

from undershoot.guarantees import Heuristic
from undershoot.heuristics.analytic import base
from undershoot.heuristics.device_values import Outside, Values, values_on
from undershoot.kernels.tensors import signed
from undershoot.search.device import choosing
from undershoot.search.device.beam_layers import (
    MOST_HELD,
    Best,
    Children,
    Growing,
    Layer,
    Marks,
    growing,
    hashes_of,
    numbers_of,
    sort_keys,
)
from undershoot.search.device.packing import MOST_WORDS, words_of
from undershoot.search.device.solving import no_room, patterns_there
from undershoot.search.known import NO_COST, Known

FIRST_WIDTH = {"cuda": 1 << 12, "cpu": 1 << 6}
MOST_WIDTH, GROWTH = 1 << 22, 4
MOST_ROWS = (1 << 31) - 1
MOST_LAYERS = 20_000
CHILDREN_AT_ONCE = {"cuda": 1 << 21, "cpu": 1 << 14}
FIRST_ROWS, LEAST_ROWS, SECONDS_A_SLICE = 1 << 12, 64, 0.02
"""How many states are expanded at first before others have their turn; and how long that should take."""
MARKS_A_STATE, LEAST_MARKS = 16, 1 << 16
"""Marks of what was met in a layer, and as many of what was kept in a run, for each state of the beam."""
SPREAD = 0x9E3779B97F4A7C15


def packs(known: Known) -> bool:
    """Whether states of the puzzle fit into words of a device."""
    return words_of(known.puzzle.table) <= MOST_WORDS


def beam_on_device(known: Known, guide: Heuristic, proven: Heuristic, memory: int) -> "DeviceBeam":
    """On the device of the options. memory: bytes, of which it takes no more; on a CUDA device half of what is free there, if
    the options do not limit it."""
    name, device = known.options.device, choosing.torch_device(known.options.device)
    try:
        guide, proven = (patterns_there(one, name) if choosing.has_tables(one) else one for one in (guide, proven))
        if device.type == "cuda":
            half = free_on(device) // 2
            memory = half if known.options.max_memory is None else min(half, memory)
        return DeviceBeam(known, guide, proven, device, memory)
    except torch.cuda.OutOfMemoryError as error:
        raise no_room(name) from error


def free_on(device: torch.device) -> int:
    """Bytes of a CUDA device, with those that torch holds and does not use."""
    free, _ = torch.cuda.mem_get_info(device)
    return int(free) + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


class DeviceBeam:
    """Runs of growing width from one start."""

    def __init__(
        self, known: Known, guide: Heuristic, proven: Heuristic, device: torch.device, memory: int, seed: int = 0
    ) -> None:
        """proven: what never overestimates, by which states are left out that no better solution passes; the puzzle's own if
        the device does not know it. memory: in bytes. seed: of the order of children that the guide likes alike."""
        self.known, self.device, self.memory, self.seed = known, device, memory, seed
        self.table = known.puzzle.table
        self.growing: Growing = growing(self.table, device)
        self.steps = self.growing.steps.steps
        self.values: Values = values_on(known.puzzle, guide, device, exactly=False)
        self.bound: Values | None = None
        """What every solution through a state costs at least from there; None if the guide says that."""
        if proven is not guide:
            bound = values_on(known.puzzle, proven, device)
            self.bound = values_on(known.puzzle, base(known.puzzle), device) if isinstance(bound, Outside) else bound
        self.width = FIRST_WIDTH[device.type]
        """Of the run that is under way, or the next one."""
        self.was_cut = True
        """Whether a run had to leave out what a wider one would keep."""
        self.at_once = min(CHILDREN_AT_ONCE[device.type], memory // (4 * self._bytes_while_made()))
        self.rows = max(1, min(FIRST_ROWS, self.most_rows))

    @property
    def asks_the_host(self) -> bool:
        """Whether the guide is evaluated on the cores."""
        return isinstance(self.values, Outside)

    @property
    def most_rows(self) -> int:
        """States that are expanded at once, at most."""
        return max(1, int(self.at_once // self.steps))

    def _bytes_while_made(self) -> int:
        """Of a child, with what it is made of."""
        steps = self.growing.steps
        return 8 * (6 * int(steps.changes) + 3 * self.table.cells + 4 * steps.packing.words + 16)

    def marks(self, width: int) -> int:
        """How many there are of a layer, and of a run."""
        return 1 << (max(MARKS_A_STATE * width, LEAST_MARKS) - 1).bit_length()

    def bytes_of(self, width: int) -> int:
        """Of a beam, without what is noted of its earlier layers."""
        state = 8 * self.growing.packing.words + 12
        held = 2 * (MOST_HELD * width + self.at_once)  # once more when they are put together
        return state * (2 * width + held) + 32 * self.marks(width) + self.at_once * self._bytes_while_made()

    def compile(self) -> None:
        """Compile everything, so that no limit is charged for it."""
        try:
            start = self.planted()
            self.growing.compile(start)
            if not self.asks_the_host:
                self.values(self.growing.packing.unpack(start.words))
        except torch.cuda.OutOfMemoryError:
            self.was_cut = False

    def planted(self) -> Layer:
        """The start, as a layer of one."""
        state = torch.tensor(self.known.start, device=self.device).long()
        costs = torch.zeros(1, dtype=torch.int32, device=self.device)
        return Layer(self.growing.packing.pack(state), self.growing.steps.begin(state), costs)

    def slices(self) -> Iterator[None]:
        """Search; control comes back after each slice. It ends when a wider beam would not fit into memory, or would keep
        nothing that this one did not."""
        run = 0
        while self.was_cut and self._fits() and not self.known.is_over:
            run, self.was_cut = run + 1, False
            try:
                yield from _Run(self, run).slices()
            except torch.cuda.OutOfMemoryError:
                return  # others hold what it needs
            self.width *= GROWTH

    def _fits(self) -> bool:
        is_counted = self.width <= MOST_WIDTH and self.width * self.steps <= MOST_ROWS
        return is_counted and self.bytes_of(self.width) <= self.memory

    def keep_pace(self, rows: int, seconds: float) -> None:
        """So many were expanded in this time; how many shall be, next time."""
        if seconds > 2 * SECONDS_A_SLICE:
            self.rows = max(min(LEAST_ROWS, self.most_rows), rows // 2)
        elif rows >= self.rows and seconds < SECONDS_A_SLICE / 2:
            self.rows = min(2 * rows, self.most_rows)


class _Run:
    """One run, of one width."""

    def __init__(self, beam: DeviceBeam, number: int) -> None:
        self.beam, self.known, self.growing = beam, beam.known, beam.growing
        self.number, self.salt = number, 0
        self.here, self.kept = (Marks(beam.marks(beam.width), beam.device) for _ in range(2))
        self.best = Best(beam.width)
        self.trail: list[Tensor] = []
        """int32[B] for each layer after the first: see `Children.rows`."""
        self.noted = 0

    def slices(self) -> Iterator[None]:
        """Until a layer is empty: all that could lead to a better solution was left out, or was searched."""
        layer, beam = self.beam.planted(), self.beam
        room = beam.memory - beam.bytes_of(beam.width)
        for number in range(MOST_LAYERS):
            self.salt = signed(SPREAD * ((beam.seed << 32) + self.number * MOST_LAYERS + number + 1) % 2**64)
            self.best = Best(beam.width)
            yield from self._expand(layer)
            if self.known.is_over:
                return
            best = self.best.taken()
            beam.was_cut |= self.best.was_cut
            if best is None or not len(best.rows):
                return
            is_new = self.kept.claim(hashes_of(best.words))  # some were taken for new ones in two slices
            best = best.chosen(numbers_of(is_new))
            layer = self.growing.next_layer(layer, best)
            self.trail.append(best.rows)
            self.noted += 4 * len(best.rows)
            if self.noted > room:
                beam.was_cut = False  # a wider one would not come as far
                return

    def _expand(self, layer: Layer) -> Generator[None, None, None]:
        """All states of a layer, some at a time."""
        row, size = 0, len(layer.costs)
        while row < size and not self.known.is_over:
            rows = self.known.reserve(min(self.beam.rows, size - row))
            if rows:
                began = time.perf_counter()
                self._expand_rows(layer, row, row + rows)
                self.known.count(stored=size + self.best.held)
                self.beam.keep_pace(rows, time.perf_counter() - began)
            row += rows
            yield

    def _expand_rows(self, layer: Layer, first: int, last: int) -> None:
        """Note the children of these states that may be of use."""
        made = self.growing.children(layer.part(first, last))
        self._offer(made.is_goal, made.costs, first)
        numbers = numbers_of(made.counts)
        generated = len(numbers)
        hashes = made.hashes[numbers]
        is_new = self.kept.lack(hashes) & self.here.claim(hashes ^ self.salt)
        words, hashes, costs, rows = self._within_bound(made.words, made.hashes, made.costs, numbers[numbers_of(is_new)])
        if len(rows):
            states = self.growing.packing.unpack(words)
            values = self.beam.values(states)
            children = Children(words, (rows + first * self.beam.steps).int(), sort_keys(costs, values, hashes, self.salt))
            if self.beam.bound is None:
                children = children.chosen(numbers_of(self._is_useful(costs, values)))
            self.best.add(children)
        self.known.count(generated=generated, evaluated=len(rows))

    def _within_bound(
        self, words: Tensor, hashes: Tensor, costs: Tensor, numbers: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Words, hashes, costs and numbers of the children, int64[N], that a better solution may pass, as far as is known
        before the guide is asked."""
        words, hashes, costs = words[:, numbers], hashes[numbers], costs[numbers]
        if self.beam.bound is None or self.known.cost == NO_COST or not len(numbers):
            return words, hashes, costs, numbers
        useful = numbers_of(self._is_useful(costs, self.beam.bound(self.growing.packing.unpack(words))))
        return words[:, useful], hashes[useful], costs[useful], numbers[useful]

    def _is_useful(self, costs: Tensor, bounds: Tensor) -> Tensor:
        """bool[N]: whether a better solution may pass a state. bounds: at most what it still costs."""
        return costs.double() + bounds.double().clamp_min(0.0) <= self.known.most_useful_cost

    def _offer(self, is_goal: Tensor, costs: Tensor, first: int) -> None:
        """The cheapest way to a goal, if there is one among these children."""
        found = numbers_of(is_goal)
        if len(found):
            child = int(found[costs[found].argmin()]) + first * self.beam.steps
            self.known.offer(np.array(self._path(child), dtype=np.int32))

    def _path(self, row: int) -> list[int]:
        """The steps from the start to a child of the last layer."""
        path = []
        for rows in reversed(self.trail):
            path.append(row % self.beam.steps)
            row = int(rows[row // self.beam.steps])
        return [*path, row % self.beam.steps][::-1]
