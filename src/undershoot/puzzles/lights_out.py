"""Lights Out: pressing a cell switches it and its neighbours; all lights must go out."""

import numpy as np

from undershoot.arrays import I64, U8, AnyArray, States, frozen
from undershoot.puzzles.base_heuristics import BaseHeuristic
from undershoot.puzzles.encoding import Encoding
from undershoot.puzzles.moves import MoveTable
from undershoot.puzzles.notation import Words
from undershoot.puzzles.parity import CostParity, of_bits
from undershoot.puzzles.pictures import Picture, grid
from undershoot.puzzles.puzzle import Puzzle

MAX_SIDE = 8


def lights_out(rows: int, columns: int) -> Puzzle:
    """lights-out-RxC; presses are named like the cells of a spreadsheet, A1 top left, B1 right of it."""
    n = rows * columns
    presses = press_matrix(rows, columns)
    solver = ImageSpace(presses)
    table = MoveTable(
        source=np.tile(np.arange(n, dtype=np.uint8), (1, n, 1)),
        shift=presses[None],
        modulus=np.full(n, 2, dtype=np.uint16),
        legal=np.ones((1, n), dtype=np.bool_),
        cost=np.ones(n, dtype=np.int32),
        action_names=tuple(f"{chr(ord('A') + c)}{r + 1}" for r in range(rows) for c in range(columns)),
        goals=np.zeros((1, n), dtype=np.uint8),
    ).with_symmetries((cells, np.arange(2)) for cells in board_symmetries(rows, columns))
    example = " ".join("010"[:columns].ljust(columns, "0") for _ in range(rows))
    return Puzzle(
        name=f"lights-out-{rows}x{columns}",
        summary=f"Lights Out on {rows} x {columns} cells: a press switches the cell and its neighbours",
        table=table,
        space=solver,
        notation=Words(table, "01", columns, f'rows of 0 and 1 such as "{example}", or presses such as "A1"', joined=True),
        picture=Picture(grid(rows, columns), ("   ", " * "), ("on grey23", "bold black on yellow1")),
        encoding=_neighbour_bits(rows, columns),
        base_heuristic=BaseHeuristic("lit / 5", np.tile(np.array([0, 1], dtype=np.int32), (n, 1)), divisor=5),
        parity=solver.press_parity,
        pressed=solver.solution,
    )


def press_matrix(rows: int, columns: int) -> U8:
    """uint8[n, n], symmetric: row a holds 1 on the cells that pressing a switches."""
    r, c = np.divmod(np.arange(rows * columns), columns)
    distance = abs(r[:, None] - r) + abs(c[:, None] - c)
    return (distance <= 1).astype(np.uint8)


def board_symmetries(rows: int, columns: int) -> list[U8]:
    """Cell permutations of the 8 symmetries of a square, or the 4 of a rectangle."""
    board = np.arange(rows * columns, dtype=np.uint8).reshape(rows, columns)
    images = [board[::v, ::h] for v in (1, -1) for h in (1, -1)]
    if rows == columns:
        images += [image.T for image in images]
    return list({image.tobytes(): image.ravel() for image in images}.values())


def _neighbour_bits(rows: int, columns: int) -> Encoding:
    """Five inputs a cell: its own light and those above, below, left and right of it, 0 past the edge."""
    features = np.full((rows * columns, 2, 5), -1, dtype=np.int32)
    for r in range(rows):
        for c in range(columns):
            # The light of (r, c) is seen from (r, c) itself as input 0, from the cell below as "above", and so on.
            for k, (dr, dc) in enumerate(((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1))):
                if 0 <= r + dr < rows and 0 <= c + dc < columns:
                    features[r * columns + c, 1, k] = ((r + dr) * columns + c + dc) * 5 + k
    return Encoding(rows * columns * 5, features)


class ImageSpace:
    """The lights that presses can make: the image of a matrix A over the field of two elements."""

    size_is_exact = True
    reasons = ("no set of presses makes exactly these lights",)

    def __init__(self, presses: U8) -> None:
        self.presses = frozen(presses)
        n = len(presses)
        # Eliminate on (A | I): each reduced row records which rows of A were added to make it.
        reduced = np.concatenate([presses, np.eye(n, dtype=np.uint8)], axis=1)
        self.rank = eliminate(reduced, n)
        # Rows whose left half vanished are the kernel of A (A is symmetric); lights must be orthogonal to it.
        self.kernel = frozen(reduced[self.rank :, n:])
        """uint8[nullity, n], a basis of the presses that change nothing."""
        self._half_solution = frozen(_solve(presses, np.ones(n, dtype=np.uint8)))
        # A reduced row with its first 1 in column c says: press c if the lights in its right half are odd in number.
        self.solution = np.zeros((n, n), dtype=np.uint8)
        """uint8[n, n]: times lights that can be solved, mod 2, presses that solve them."""
        for row in reduced[: self.rank]:
            self.solution[int(np.argmax(row[:n]))] = row[n:]
        self.solution = frozen(self.solution)

    @property
    def size(self) -> int:
        """2 to the rank."""
        return int(1 << self.rank)

    def defects(self, states: States) -> I64:
        """1 where some silent set of presses meets the lights an odd number of times."""
        return np.asarray(_mod2(states, self.kernel.T).any(axis=1), dtype=np.int64)

    def sample(self, random: np.random.Generator, count: int) -> States:
        """Press every cell or not, each with probability one half."""
        return _mod2(random.integers(0, 2, size=(count, len(self.presses)), dtype=np.uint8), self.presses)

    @property
    def press_parity(self) -> CostParity:
        """How many presses solve the state, mod 2: w.s with A w = 1, for then w.(A x) = sum x (A is symmetric)."""
        return of_bits(np.outer(self._half_solution, np.arange(2)).astype(np.uint8))


def _mod2(left: AnyArray, right: AnyArray) -> U8:
    # float32 sums of at most 64 ones are exact, and BLAS multiplies them fast.
    return np.asarray((left.astype(np.float32) @ right.astype(np.float32)) % 2, dtype=np.uint8)


def eliminate(matrix: U8, columns: int) -> int:
    """Gauss-Jordan over GF(2) in place on the first `columns` columns; returns the rank."""
    rank = 0
    for column in range(columns):
        rows = rank + np.flatnonzero(matrix[rank:, column])
        if len(rows):
            matrix[[rank, rows[0]]] = matrix[[rows[0], rank]]
            others = np.flatnonzero(matrix[:, column])
            matrix[others[others != rank]] ^= matrix[rank]
            rank += 1
    return rank


def _solve(matrix: U8, right: U8) -> U8:
    """One x with matrix x = right over GF(2); a solution must exist."""
    n = len(matrix)
    reduced = np.concatenate([matrix, right[:, None]], axis=1)
    rank = eliminate(reduced, n)
    x = np.zeros(n, dtype=np.uint8)
    x[[int(np.argmax(row[:n])) for row in reduced[:rank]]] = reduced[:rank, n]
    return x
