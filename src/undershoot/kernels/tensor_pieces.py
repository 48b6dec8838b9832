"""Pieces in slots as tensors: what a step does to all pieces of a batch of states, on any device.

A piece is a *code*, place * turns + turn, among the slots of its kind. A batch is uint8[P, B], a row for each piece, so that
neighbouring threads of a device read neighbouring states.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from undershoot.arrays import I64, U8, AnyArray, States
from undershoot.puzzles.pieces import Pieces


class TensorPieces:
    """The steps of a puzzle, by the codes of its pieces."""

    def __init__(self, pieces: Pieces, device: torch.device | str) -> None:
        steps, cursor = pieces.table.forward, pieces.cursor
        self.pieces, self.device, self.cursor = pieces, torch.device(device), cursor
        self.kinds: tuple[int, ...] = tuple(pieces.kind_of.tolist())
        contexts: I64 = np.zeros(1, dtype=np.int64)
        if cursor is not None:
            contexts = pieces.kinds[self.kinds[cursor]].slots[:, 0].astype(np.int64)
        self.contexts = contexts
        """The context for each code of the cursor; one if there is none."""
        self.legal = steps.legal[contexts]
        self.steps = int(self.legal.shape[1])
        self.step = torch.arange(self.steps, dtype=torch.int32, device=device)[:, None]
        price = np.where(self.legal, steps.cost[contexts], 0)
        self.price = torch.tensor(price.ravel(), dtype=torch.int32, device=device)
        """int32[C * S]: what a step costs, by the row of `rows`."""
        self.slot_of: dict[int, AnyArray] = {kind: pieces.kinds[kind].slots.ravel() for kind in set(self.kinds)}
        self.codes = {kind: len(slots) for kind, slots in self.slot_of.items()}
        self.code_after = {kind: self._code_after(kind) for kind in self.codes}
        self.after = {kind: torch.tensor(after.ravel(), device=device) for kind, after in self.code_after.items()}
        """uint8[C * S * codes] by kind: the code after a step; the same where it is not legal."""
        self.goals = torch.tensor(self.lift(pieces.table.goals), device=device)
        """uint8[P, G]."""

    def code_of(self, slots: AnyArray) -> U8:
        """uint8: the codes of slots."""
        turns = np.array([kind.turns for kind in self.pieces.kinds])[np.maximum(self.pieces.kind_of_slot[slots], 0)]
        return np.asarray(self.pieces.place[slots] * turns + self.pieces.turn[slots], dtype=np.uint8)

    def _code_after(self, kind: int) -> U8:
        """uint8[C, S, codes]."""
        slots, steps = self.slot_of[kind], self.pieces.table.forward
        after = np.tile(np.arange(len(slots), dtype=np.uint8), (*self.legal.shape, 1))
        for c, s in np.argwhere(self.legal):
            after[c, s] = self.code_of(np.argsort(steps.source[self.contexts[c], s])[slots])
        return after

    def lift(self, states: States) -> U8:
        """uint8[P, B] on the host: the codes of the pieces of states."""
        return np.ascontiguousarray(self.code_of(self.pieces.slots_of(states)).T)

    def rows(self, codes: Tensor, step: Tensor) -> Tensor:
        """int32: where in `price` and `after` a step from these states is found."""
        return step if self.cursor is None else codes[self.cursor].int() * self.steps + step

    def moved(self, codes: Tensor, rows: Tensor) -> Tensor:
        """uint8[P, B]: after the steps that `rows` tells."""
        parts = [self.after[kind][rows * self.codes[kind] + codes[piece].int()] for piece, kind in enumerate(self.kinds)]
        return torch.stack(parts)

    def is_goal(self, codes: Tensor) -> Tensor:
        """bool[B]."""
        reached = torch.zeros(codes.shape[1], dtype=torch.bool, device=codes.device)
        for goal in self.goals.T:
            reached |= (codes == goal[:, None]).all(0)
        return reached


class TensorInverse:
    """The inverse of states: where the moves lead that undo, the last one first, those that led there."""

    def __init__(self, moves: TensorPieces) -> None:
        pieces = moves.pieces
        homes: Sequence[Sequence[int]] = pieces.cells
        self.moves = moves
        whose = {cell: (p, t) for p, home in enumerate(homes) for t, cell in enumerate(home)}
        stands_at, becomes = [], []
        for p, kind in enumerate(moves.kinds):
            slots = moves.slot_of[kind]
            # A piece whose sticker j is on the cell where sticker i of another piece belongs: in the inverse that other
            # piece's sticker i is on the cell where sticker j of this one belongs.
            others = np.zeros(len(slots), dtype=np.int64)
            codes = np.zeros(len(slots), dtype=np.uint8)
            for code, slot in enumerate(slots.tolist()):
                cells = [cell for cell in pieces.stickers[slot].tolist() if cell >= 0]
                other = whose[cells[0]][0]
                first = cells.index(homes[other][0])
                others[code], codes[code] = other, moves.code_of(np.array([homes[p][first]]))[0]
            stands_at.append(torch.tensor(others, device=moves.device))
            becomes.append(torch.tensor(codes, device=moves.device))
        self.stands_at, self.becomes = stands_at, becomes

    def __call__(self, codes: Tensor) -> Tensor:
        """uint8[P, B]."""
        rows = [self.stands_at[p][codes[p].int()] for p in range(len(codes))]
        values = [self.becomes[p][codes[p].int()] for p in range(len(codes))]
        return torch.zeros_like(codes).scatter_(0, torch.stack(rows), torch.stack(values))
