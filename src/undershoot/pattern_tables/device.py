"""Pattern tables made and verified with torch, where the entries lie: on a CUDA device, or on the processor in tests.

What `making`, `verification` and `tables.fold` do, for batches of arrangements: every step of a whole batch is one tensor.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import pad

from undershoot.arrays import U8
from undershoot.errors import GaveOut, NotAvailable, SpaceTooLarge
from undershoot.kernels.fused import compiled
from undershoot.oracles.size import available_memory, bytes_text
from undershoot.pattern_tables.pattern import MOST, TOO_DEAR, UNREACHED, Pattern
from undershoot.pattern_tables.regions import cursor_steps
from undershoot.pattern_tables.tensors import NO_COST, TensorSteps
from undershoot.pattern_tables.verification import WrongPatternTable

CHUNK = {"cuda": 1 << 26, "cpu": 1 << 20}
"""Steps that are taken at once, about, and entries that are read at once."""
LEAST_CHUNK = 1 << 20
BYTES = 192
"""Of temporary memory for each of them, at most."""
FUSED_FROM = 10**10
"""Tables with so many steps are worth the 20 seconds that a compiler takes to make one kernel of all operations."""
Progress = Callable[[int, int], None]


class Batches:
    """A function of a batch of numbers; if `fused`, compiled for batches of one size, to which others are filled up."""

    def __init__(self, function: Callable[..., Tensor], width: int, fused: bool) -> None:
        self.function, self.width = function, width
        self.compiled = compiled(function, dynamic=False) if fused else None

    def __call__(self, numbers: Tensor, *others: Tensor) -> Tensor:
        """[S, B] for int64[B] of at most `width` numbers."""
        if self.compiled is not None:
            filled = pad(numbers, (0, self.width - len(numbers)))
            try:
                made: Tensor = self.compiled(filled, *others)
            except torch.cuda.OutOfMemoryError:
                raise
            except RuntimeError:  # no compiler for the device here: slower, but the same
                self.compiled = None
            else:
                return made[:, : len(numbers)]
        return self.function(numbers, *others)


class Work:
    """A pattern on a device, and in what portions it is worked on. chunk: steps at once; fused: None if that is worth it."""

    def __init__(
        self, pattern: Pattern, device: torch.device | str, chunk: int | None = None, fused: bool | None = None
    ) -> None:
        self.pattern, self.device = pattern, torch.device(device)
        self.size = int(pattern.ranking.size)
        self.has_regions = pattern.has_regions
        if self.has_regions:
            cursor_steps(pattern, backward=True)  # says where patterns cannot be added
        self.places = int(pattern.ranking.choices[-1]) if pattern.has_cursor else 1
        self.backward, self.forward = (TensorSteps(pattern, backward, self.device) for backward in (True, False))
        self.chunk = fitting_chunk(pattern, self.device) if chunk is None else chunk
        rows = max(1, self.chunk // (self.forward.count * self.places))
        self.width = rows * self.places
        """Numbers in a batch: all places of the cursor beside some arrangements."""
        if fused is None:
            fused = self.device.type == "cuda" and self.size * self.forward.count >= FUSED_FROM
        self.fused = fused

        self.due = Batches(self.forward.due, self.width, fused)
        self.onwards = Batches(self.forward.reached, self.width, fused)
        self.back = Batches(self.backward.reached, self.width, fused)

    def number(self, value: int) -> Tensor:
        """int16[]."""
        return torch.tensor(value, dtype=torch.int16, device=self.device)

    def least_of_regions(self, reached: Batches, values: Tensor, numbers: Tensor) -> Tensor:
        """[B]: the least over all places that the cursor reaches alone.

        numbers: int64[B], all places beside each arrangement.
        """
        here = torch.arange(len(numbers), device=self.device)
        there = reached(numbers, self.number(0)) - numbers + here
        while True:
            lower = torch.minimum(values, values[there].amin(0))
            if torch.equal(lower, values):
                return values
            values = lower


def make_entries_on(
    pattern: Pattern, device: torch.device | str, progress: Progress | None = None, work: Work | None = None
) -> Tensor:
    """uint8[size] on the device: the entries that `make_entries` makes. progress: called with (arrangements reached, all)."""
    check_memory(pattern, torch.device(device))
    return _Making(work or Work(pattern, device)).run(progress)


class _Making:
    """The array while it is filled, level by level."""

    def __init__(self, work: Work) -> None:
        self.work, self.size = work, work.size
        self.can_pull = len(work.backward.prices) == 1 and not work.has_regions
        self.dearest = max(work.backward.prices)
        self.entries = torch.full((self.size,), UNREACHED, dtype=torch.uint8, device=work.device)
        self.entries[torch.tensor(work.backward.goals, device=work.device)] = 0

    def run(self, progress: Progress | None) -> Tensor:
        """All levels."""
        level, furthest, reached = 0, 0, 0
        while level <= min(furthest, MOST):
            newest = self.spread(level) if self.work.has_regions else self.count(level)
            if newest:
                reached, furthest = reached + newest, level + self.dearest
                if self.can_pull and reached == self.size:
                    break
                if self.can_pull and self.size - reached < 2 * newest and level + self.dearest <= MOST:
                    self.pull(level)
                elif not self.work.has_regions:
                    for numbers in self.found(level):
                        self.push(numbers, level)
                if progress is not None:
                    progress(reached, self.size)
            level += 1
        if progress is not None:
            progress(self.size, self.size)
        return self.entries

    def count(self, level: int) -> int:
        """How many cost just this."""
        parts = [(part == level).sum() for part in torch.split(self.entries, self.work.chunk)]
        return int(torch.stack(parts).sum())

    def found(self, level: int, places: int = 1) -> Iterator[Tensor]:
        """int64[B] each: the numbers that cost just this. places: so many entries are one, and any of them counts."""
        kept, held, width = [], 0, self.work.width // places
        step = max(1, self.work.chunk // places)
        for first in range(0, self.size // places, step):
            part = self.entries[first * places : (first + step) * places] == level
            if places > 1:
                part = part.view(-1, places).any(1)
            numbers = part.nonzero()[:, 0]
            kept.append(numbers + first)
            held += len(numbers)
            if held >= width:
                batches = torch.split(torch.cat(kept), width)
                yield from batches[:-1]
                kept, held = [batches[-1]], len(batches[-1])
        if held:
            yield from torch.split(torch.cat(kept), width)

    def push(self, numbers: Tensor, level: int) -> None:
        """Expand these, which cost `level`."""
        for price in self.work.backward.prices:
            if level + price <= MOST:
                targets = self.work.back(numbers, self.work.number(price))
                # One price at a time: where two steps lead to one entry, both write the same.
                self.entries[targets] = self.entries[targets].clamp(max=level + price)

    def pull(self, level: int) -> None:
        """What is not reached and leads to something of cost `level` costs one step more."""
        cost = level + self.dearest
        for numbers in self.found(UNREACHED):
            due = self.work.due(numbers, self.entries).amin(0)
            self.entries[numbers] = torch.where(due == cost, cost, UNREACHED).to(torch.uint8)

    def spread(self, level: int) -> int:
        """Where one place of the cursor costs `level`, its whole region does; then expand it. Returns how many cost that."""
        work, newest = self.work, 0
        places = torch.arange(work.places, device=work.device)
        for rows in self.found(level, work.places):
            numbers = (rows[:, None] * work.places + places).flatten()
            values = work.least_of_regions(work.back, self.entries[numbers], numbers)
            self.entries[numbers] = values
            numbers = numbers[values == level]
            newest += len(numbers)
            self.push(numbers, level)
        return newest


def verify_entries_on(pattern: Pattern, entries: Tensor, progress: Progress | None = None, work: Work | None = None) -> None:
    """`verify_entries` where the entries lie: WrongPatternTable unless every entry is the true cost of its arrangement."""
    size = int(pattern.ranking.size)
    if entries.shape != (size,) or entries.dtype != torch.uint8:
        raise WrongPatternTable(f"the table has shape {tuple(entries.shape)}; the pattern has {size:,} arrangements")
    work = work or Work(pattern, entries.device)
    for first in range(0, size, work.width):
        numbers = torch.arange(first, min(first + work.width, size), device=work.device)
        due = work.due(numbers, entries).amin(0)
        for goal in work.forward.goals:
            if first <= goal < first + len(numbers):
                due[goal - first] = 0
        if work.has_regions:
            due = work.least_of_regions(work.onwards, due, numbers)
        if _is_wrong(due, entries[first : first + len(numbers)]).any():
            _name_the_first(work, entries, numbers, due)
        if progress is not None:
            progress(min(first + work.width, size), size)


def _is_wrong(due: Tensor, entries: Tensor) -> Tensor:
    """bool[B]: whether an entry is not what is due. What does not fit is wrong, too: 255 means that nothing is due."""
    return torch.where(due == NO_COST, UNREACHED, torch.where(due > MOST, NO_COST, due)) != entries


def _name_the_first(work: Work, entries: Tensor, numbers: Tensor, due: Tensor) -> None:
    """Raise for the first entry that is not what it must be, in the order in which `verify_entries` looks."""
    is_wrong = _is_wrong(due, entries[numbers])
    first = int(is_wrong.nonzero()[0, 0])
    if work.has_regions:  # region by region, beside the first arrangement with a wrong one
        row = slice(first - first % work.places, first - first % work.places + work.places)
        region = work.least_of_regions(work.onwards, torch.arange(work.places, device=work.device), numbers[row])
        order = torch.argsort(region, stable=True)
        first = row.start + int(order[is_wrong[row][order].nonzero()[0, 0]])
    if MOST < due[first] < NO_COST:
        raise NotAvailable(TOO_DEAR)
    wrong = int(numbers[first])
    raise WrongPatternTable(f"entry {wrong:,} of the table is {int(entries[wrong])}, which does not follow from others")


def fold_entries(pattern: Pattern, entries: Tensor) -> Tensor:
    """uint8[size] by `pattern.folded`, on the same device: the least over all places of the cursor."""
    if not pattern.has_cursor:
        return entries
    places, block = int(pattern.ranking.choices[-1]), int(pattern.ranking.block)
    rows = max(1, CHUNK[entries.device.type] // (places * block))
    parts = [part.view(-1, places, block).amin(1).flatten() for part in torch.split(entries, rows * places * block)]
    return torch.cat(parts)


def fold_on(pattern: Pattern, entries: Tensor) -> U8:
    """The same on the host."""
    folded: U8 = fold_entries(pattern, entries).cpu().numpy()
    return folded


def make_folded_on(pattern: Pattern, device: str, making: Progress | None = None, verifying: Progress | None = None) -> U8:
    """Make, verify and fold; only the folded table comes to the host."""
    return fold_on(pattern, made_entries(pattern, device, making, verifying))


def made_entries(pattern: Pattern, device: str, making: Progress | None = None, verifying: Progress | None = None) -> Tensor:
    """uint8[size] on the device: made, and verified."""
    try:
        check_memory(pattern, torch.device(device))
        work = Work(pattern, device)
        entries = make_entries_on(pattern, device, making, work)
        verify_entries_on(pattern, entries, verifying, work)
    except torch.cuda.OutOfMemoryError as error:
        raise GaveOut(
            f"the memory of the device {device} ran out while a pattern table was made, perhaps since other programs took it; "
            "end them, or use --device cpu"
        ) from error
    return entries


def free_memory(device: torch.device) -> int:
    """Bytes that can still be taken on a device."""
    if device.type != "cuda":
        return available_memory()
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + unused


def needed_memory(pattern: Pattern, chunk: int = LEAST_CHUNK) -> int:
    """Bytes that making, verifying and folding take at most: the entries, the folded table twice, and a chunk."""
    size = int(pattern.ranking.size)
    return size + (2 * int(pattern.folded.size) if pattern.has_cursor else 0) + BYTES * min(chunk, 32 * size)


def fitting_chunk(pattern: Pattern, device: torch.device) -> int:
    """As many steps at once as the device has memory for."""
    chunk = CHUNK[device.type]
    while chunk > LEAST_CHUNK and needed_memory(pattern, chunk) > free_memory(device):
        chunk //= 2
    return chunk


def check_memory(pattern: Pattern, device: torch.device) -> None:
    """Refuse what does not fit, before the work begins."""
    need, free = needed_memory(pattern), free_memory(device)
    if need > free:
        raise SpaceTooLarge(
            f"a pattern of {len(pattern.followed)} pieces has {int(pattern.ranking.size):,} arrangements; its table takes "
            f"{bytes_text(need)} on the device {device.type}, where {bytes_text(free)} are free: follow fewer pieces"
            + (", or make it on the cores (--device cpu)" if device.type == "cuda" else "")
        )
