"""MoveTable: a puzzle as data.

Action `a` in context `c` maps a state to

    new[i] = (old[source[c, a, i]] + shift[c, a, i]) mod modulus[i]

where the context is the cell that holds the cursor value (the blank of a sliding puzzle), or 0 without a cursor.
Kernels, oracle, search and training all read these arrays; nothing about a puzzle's moves is defined twice.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from undershoot.arrays import I32, I64, U8, U16, AnyArray, Bools, States, freeze_arrays, frozen
from undershoot.errors import MalformedState, MoveTableError

MAX_CELLS, MAX_ACTIONS = 255, 65_535
"""Searches keep the number of an action in 16 bits."""


class Symmetry(NamedTuple):
    """image[i] = values[state[cells[i]]]; playing `a` before it is playing `actions[a]` after it."""

    cells: U8
    """uint8[n], a permutation."""
    values: U8
    """uint8[m], a permutation of the values."""
    actions: I32
    """int32[A], for each action one of the same cost; of several with one effect it is the first."""

    def image(self, states: States) -> States:
        """The states seen through this symmetry: uint8[B, n], at the same cost from the goal."""
        return self.values[states[:, self.cells]]


class Steps(NamedTuple):
    """Single steps from a context, played forwards (from a state) or backwards (towards it)."""

    source: U8
    """uint8[C, S, n]."""
    shift: U8
    """uint8[C, S, n]."""
    legal: Bools
    """bool[C, S]; of several actions with one effect only the cheapest is legal here."""
    cost: I32
    """int32[C, S]."""
    action: I32
    """int32[C, S], the action that the step plays, or undoes."""
    landing: I32
    """int32[C, S], the context afterwards."""


@dataclass(frozen=True, eq=False)
class MoveTable:
    """The moves and goals of a puzzle; refused with a sentence if they are malformed.

    n cells, A actions, C contexts (n with a cursor, otherwise 1), G goals.

    Examples:
        >>> table = us.puzzle("tiles-3x3").table
        >>> table.cells, table.contexts, table.action_names
        (9, 9, ('U', 'D', 'L', 'R'))
        >>> print(table.goals)
        [[1 2 3 4 5 6 7 8 0]]
    """

    source: U8
    """uint8[C, A, n], a permutation of the cells for each legal (c, a)."""
    shift: U8
    """uint8[C, A, n], added to the value; all zero where there is a cursor."""
    modulus: U16
    """uint16[n], how many values each cell can have; equal along each permutation."""
    legal: Bools
    """bool[C, A]."""
    cost: I32
    """int32[A], positive."""
    action_names: tuple[str, ...]
    goals: States
    """uint8[G, n]."""
    cursor: int | None = None
    """The value whose cell is the context; it occurs exactly once."""
    symmetries: tuple[Symmetry, ...] = ()
    """Each is verified, and its actions are found."""

    def __post_init__(self) -> None:
        _check_shapes(self)
        _check_moves(self)
        _check_goals(self)
        object.__setattr__(self, "symmetries", tuple(_symmetry(self, one.cells, one.values) for one in self.symmetries))
        freeze_arrays(self)

    def __repr__(self) -> str:
        return f"<MoveTable of {self.cells} cells, {self.actions} actions: {self.fingerprint[:16]}>"

    def with_symmetries(self, mappings: Iterable[tuple[AnyArray, AnyArray]]) -> "MoveTable":
        """The same table with these symmetries, each given by cells and values as in `Symmetry`; each is verified."""
        none = np.zeros(0, dtype=np.int32)
        return replace(self, symmetries=tuple(Symmetry(cells, values, none) for cells, values in mappings))

    @property
    def cells(self) -> int:
        """n, the length of a state."""
        return int(self.source.shape[2])

    @property
    def actions(self) -> int:
        """A, how many actions there are."""
        return int(self.source.shape[1])

    @property
    def contexts(self) -> int:
        """C, n with a cursor and otherwise 1."""
        return int(self.source.shape[0])

    @property
    def values(self) -> int:
        """One more than the largest value of any cell."""
        return int(self.modulus.max())

    @property
    def is_permutation_puzzle(self) -> bool:
        """Whether actions only move values, the same way in every state."""
        return self.cursor is None and not self.shift.any()

    @property
    def has_distinct_values(self) -> bool:
        """Whether actions only move values, and no value occurs twice."""
        return not self.shift.any() and all(len(set(goal.tolist())) == self.cells for goal in self.goals)

    def contexts_of(self, states: States) -> I64:
        """int64[B]: the cell of the cursor in each state, 0 where there is no cursor."""
        if self.cursor is None:
            return np.zeros(len(states), dtype=np.int64)
        return np.asarray(np.argmax(states == self.cursor, axis=1), dtype=np.int64)

    def check_states(self, states: States) -> None:
        """Refuse what is not uint8[B, n] with values that the cells can hold; compiled code does not look."""
        is_array = isinstance(states, np.ndarray) and not isinstance(states, np.ma.MaskedArray)
        kind = f"{states.dtype}{list(states.shape)}" if is_array else type(states).__name__
        if not is_array or kind != f"uint8[{len(states)}, {self.cells}]":
            raise MalformedState(f"states must be an array uint8[B, {self.cells}]; {kind} came")
        states = np.asarray(states)  # a matrix is something else
        wrong = (states >= self.modulus).any(axis=1)
        if self.cursor is not None:
            wrong |= (states == self.cursor).sum(axis=1) != 1
        if wrong.any():
            row = int(np.argmax(wrong))
            raise MalformedState(f"state {row} is none of this puzzle: {states[row].tolist()}")

    def holds_right_values(self, states: States) -> Bools:
        """bool[B]: whether each value occurs as often as in a goal; always where moves change values."""
        if self.shift.any():
            return np.ones(len(states), dtype=np.bool_)
        ordered, goals = np.sort(states, axis=1), np.sort(self.goals, axis=1)
        return np.asarray((ordered[:, None] == goals).all(axis=2).any(axis=1))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that defines the puzzle: equal exactly for the same moves, names and goals."""
        digest = hashlib.sha256(b"undershoot move table 1\n")
        for array, kind in (
            (self.source, "u1"),
            (self.shift, "u1"),
            (self.modulus, "<u2"),
            (self.legal, "u1"),
            (self.cost, "<i4"),
            (self.goals, "u1"),
        ):
            digest.update(repr(array.shape).encode() + np.ascontiguousarray(array, dtype=kind).tobytes())
        digest.update(repr((self.cursor, self.action_names)).encode())
        return digest.hexdigest()

    @cached_property
    def alike(self) -> I32:
        """int32[A], for each action the cheapest action with the same effect (itself, where there is no other)."""
        cheapest: dict[bytes, int] = {}
        for a in sorted(range(self.actions), key=lambda a: (int(self.cost[a]), a)):
            cheapest.setdefault(self._effect(a), a)
        return frozen(np.array([cheapest[self._effect(a)] for a in range(self.actions)], dtype=np.int32))

    def _effect(self, a: int) -> bytes:
        return _effect_bytes(self.legal[:, a], self.source[:, a], self.shift[:, a])

    @cached_property
    def landing(self) -> I32:
        """int32[C, A], the context after a legal action; 0 for illegal ones."""
        result = np.zeros((self.contexts, self.actions), dtype=np.int32)
        if self.cursor is not None:
            for c, a in np.argwhere(self.legal):
                result[c, a] = int(np.flatnonzero(self.source[c, a] == c)[0])
        return frozen(result)

    @cached_property
    def forward(self) -> Steps:
        """Steps indexed by action, over distinct effects."""
        chosen = self.alike == np.arange(self.actions)
        every = np.broadcast_to
        return Steps(
            self.source,
            self.shift,
            frozen(self.legal & chosen),
            frozen(every(self.cost, self.legal.shape)),
            frozen(every(np.arange(self.actions, dtype=np.int32), self.legal.shape)),
            self.landing,
        )

    @cached_property
    def backward(self) -> Steps:
        """Steps from a state to those that reach it by one action; right also where moves cannot be undone."""
        by_context: list[list[tuple[int, int]]] = [[] for _ in range(self.contexts)]
        for c, a in np.argwhere(self.forward.legal):
            by_context[self.landing[c, a]].append((int(c), int(a)))
        width = max(map(len, by_context))
        steps = Steps(
            np.zeros((self.contexts, width, self.cells), np.uint8),
            np.zeros((self.contexts, width, self.cells), np.uint8),
            np.zeros((self.contexts, width), np.bool_),
            np.zeros((self.contexts, width), np.int32),
            np.zeros((self.contexts, width), np.int32),
            np.zeros((self.contexts, width), np.int32),
        )
        for here, arrivals in enumerate(by_context):
            for k, (c, a) in enumerate(arrivals):
                origin = self.source[c, a]
                steps.source[here, k, origin] = np.arange(self.cells)
                steps.shift[here, k, origin] = (self.modulus - self.shift[c, a]) % self.modulus
                steps.legal[here, k] = True
                steps.cost[here, k] = self.cost[a]
                steps.action[here, k] = a
                steps.landing[here, k] = c
        return Steps._make(map(frozen, steps))

    @cached_property
    def inverse(self) -> I32:
        """int32[C, A], the action that undoes `a` played in context `c`; -1 where there is none."""
        actions = {(c, self._step_bytes(c, a)): a for c, a in reversed(np.argwhere(self.legal).tolist())}
        result = np.full((self.contexts, self.actions), -1, dtype=np.int32)
        for c, a in np.argwhere(self.legal):
            source = np.argsort(self.source[c, a]).astype(np.uint8)
            shift = ((self.modulus - self.shift[c, a][source]) % self.modulus).astype(np.uint8)
            result[c, a] = actions.get((int(self.landing[c, a]), source.tobytes() + shift.tobytes()), -1)
        return frozen(result)

    def _step_bytes(self, c: int, a: int) -> bytes:
        return bytes(self.source[c, a].tobytes() + self.shift[c, a].tobytes())

    @property
    def is_reversible(self) -> bool:
        """Whether every legal action can be undone by one action."""
        return bool((self.inverse[self.legal] >= 0).all())

    @cached_property
    def presses_commute(self) -> bool:
        """Whether every action undoes itself and their order never matters, as in Lights Out."""
        if self.cursor is not None or (self.source != np.arange(self.cells)).any():
            return False
        return bool((2 * self.shift.astype(int) % self.modulus == 0).all())


def _symmetry(table: MoveTable, cells: AnyArray, values: AnyArray) -> Symmetry:
    """The symmetry given by its cells and values, with its actions found; refused if it is not one."""
    n, p, r = table.cells, np.asarray(cells, dtype=np.uint8), np.asarray(values, dtype=np.uint8)
    if sorted(p.tolist()) != list(range(n)) or sorted(r.tolist()) != list(range(table.values)):
        raise MoveTableError("a symmetry needs a permutation of the cells and one of the values")
    if (table.modulus[p] != table.modulus).any() or any(sorted(r[:m]) != list(range(m)) for m in set(table.modulus.tolist())):
        raise MoveTableError("this symmetry moves values to cells that cannot hold them")
    if table.cursor is not None and r[table.cursor] != table.cursor:
        raise MoveTableError("a symmetry must keep the cursor value")
    p_inverse = np.argsort(p)
    contexts = p.astype(int) if table.cursor is not None else np.zeros(1, dtype=int)
    known = {(table._effect(a), int(table.cost[a])): a for a in reversed(range(table.actions))}
    actions = np.zeros(table.actions, dtype=np.int32)
    for a in range(table.actions):
        source = p_inverse[table.source[contexts, a][:, p]]
        before = table.shift[contexts, a][:, p].astype(int)
        after = (r[before].astype(int) - r[0]) % table.modulus
        v = np.arange(table.values)[:, None, None]
        fits = v < table.modulus
        moved = r[np.where(fits, (v + before) % table.modulus, 0)].astype(int)
        shifts_agree = (moved == (r[v] + after) % table.modulus) | ~fits
        effect = _effect_bytes(table.legal[contexts, a], source, after)
        partner = known.get((effect, int(table.cost[a])))
        if partner is None or not shifts_agree.all():
            raise MoveTableError(f"this is no symmetry: action {table.action_names[a]} has no image under it; leave it out")
        actions[a] = partner
    found = Symmetry(frozen(p), frozen(r), frozen(actions))
    if {g.tobytes() for g in found.image(table.goals)} != {g.tobytes() for g in table.goals}:
        raise MoveTableError("this is no symmetry: it does not map goals to goals; leave it out")
    return found


def _effect_bytes(legal: Bools, source: AnyArray, shift: AnyArray) -> bytes:
    mask = legal[:, None]
    return (
        legal.tobytes()
        + np.where(mask, source, 0).astype(np.uint8).tobytes()
        + np.where(mask, shift, 0).astype(np.uint8).tobytes()
    )


def _check_shapes(table: MoveTable) -> None:
    kinds = {"source": "uint8", "shift": "uint8", "modulus": "uint16", "legal": "bool", "cost": "int32", "goals": "uint8"}
    for name, kind in kinds.items():
        array = getattr(table, name)
        if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray) or array.dtype != kind:
            is_masked = isinstance(array, np.ma.MaskedArray)
            came = "a masked one" if is_masked else getattr(array, "dtype", type(array).__name__)
            raise MoveTableError(f"{name} must be an array of {kind}; {came} came")
    if table.source.ndim != 3:
        raise MoveTableError(f"source has shape {table.source.shape}; it must have one row for each context and action")
    contexts, actions, cells = table.source.shape
    if not 1 <= cells <= MAX_CELLS:
        raise MoveTableError(f"a state has {cells} cells; allowed are 1 to {MAX_CELLS}")
    expected: dict[str, tuple[tuple[int, ...], AnyArray]] = {
        "shift": ((contexts, actions, cells), table.shift),
        "modulus": ((cells,), table.modulus),
        "legal": ((contexts, actions), table.legal),
        "cost": ((actions,), table.cost),
        "action_names": ((actions,), np.empty(len(table.action_names))),
    }
    for name, (shape, array) in expected.items():
        if array.shape != shape:
            raise MoveTableError(f"{name} has shape {array.shape}; beside this source it must have {shape}")
    if contexts != (1 if table.cursor is None else cells):
        raise MoveTableError(f"source has {contexts} contexts; with a cursor there is one a cell, without one exactly 1")
    if not 1 <= actions <= MAX_ACTIONS:
        raise MoveTableError(f"there are {actions:,} moves; a puzzle has 1 to {MAX_ACTIONS:,}")
    if (table.modulus < 1).any() or (table.modulus > 256).any():
        raise MoveTableError("every modulus must lie in 1..256")
    if (table.cost < 1).any():
        name = table.action_names[int(np.argmin(table.cost))]
        raise MoveTableError(f"move {name} costs {table.cost.min()}; costs are whole numbers from 1")
    for name in table.action_names:
        if table.action_names.count(name) > 1:
            raise MoveTableError(f'two moves are called "{name}"; every move needs a name of its own')


def _check_moves(table: MoveTable) -> None:
    identity = np.arange(table.cells)
    if table.cursor is not None and table.shift.any():
        raise MoveTableError("a table with a cursor may only move values, not change them (shift must be 0)")
    for a, name in enumerate(table.action_names):
        contexts = np.flatnonzero(table.legal[:, a])
        source = table.source[contexts, a]
        if (np.sort(source, axis=1) != identity).any():
            raise MoveTableError(f"move {name} is not a permutation: some cell is filled twice or from nowhere")
        if (table.modulus[source] != table.modulus).any():
            raise MoveTableError(f"move {name} carries values between cells of different modulus")
        if (table.shift[contexts, a] >= table.modulus).any():
            raise MoveTableError(f"move {name} adds more than the modulus of a cell")
        if not (source != identity).any() and not table.shift[contexts, a].any():
            raise MoveTableError(f"move {name} does nothing; leave it out")


def _check_goals(table: MoveTable) -> None:
    goals = table.goals
    if goals.ndim != 2 or goals.shape[1] != table.cells or not len(goals):
        raise MoveTableError(f"goals have shape {goals.shape}; needed is at least one row of {table.cells} values")
    if (goals >= table.modulus).any():
        raise MoveTableError("a goal holds a value that its cell cannot have")
    if table.cursor is not None and ((goals == table.cursor).sum(axis=1) != 1).any():
        raise MoveTableError(f"the cursor value {table.cursor} must occur exactly once in every goal")
    if len({goal.tobytes() for goal in goals}) < len(goals):
        raise MoveTableError("two goals are the same state")
