"""Text to states and back: scrambles as words of moves, states as rows of values."""

import re
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from undershoot.arrays import U8, States
from undershoot.errors import IllegalMove, MalformedState
from undershoot.puzzles.moves import MoveTable


class Notation(Protocol):
    """How the people of a puzzle write it."""

    help: str
    """One line that says what `parse` takes."""
    symbols: tuple[str, ...]
    """What people write for each value."""

    def parse(self, text: str) -> U8:
        """uint8[n], from a state or from a scramble played on the (first) goal."""

    def format(self, state: U8) -> str:
        """The state in a form that `parse` takes."""


def play(table: MoveTable, state: U8, actions: Sequence[int]) -> U8:
    """The state after the actions, one by one; IllegalMove if one is not allowed."""
    for step, a in enumerate(actions):
        c = 0 if table.cursor is None else int(np.flatnonzero(state == table.cursor)[0])
        if not table.legal[c, a]:
            allowed = " ".join(name for b, name in enumerate(table.action_names) if table.legal[c, b])
            raise IllegalMove(f"move {step + 1}, {table.action_names[a]}, is not possible there; possible are: {allowed}")
        moved = state[table.source[c, a]].astype(np.uint16) + table.shift[c, a]
        state = (moved % table.modulus).astype(np.uint8)
    return state


def check_values(table: MoveTable, state: U8, symbols: Sequence[str]) -> None:
    """Refuse a state whose cells hold values that no sequence of moves can produce, by counting them."""
    if table.shift.any():
        return
    have, goals = np.bincount(state, minlength=table.values), []
    for goal in table.goals:
        need = np.bincount(goal, minlength=table.values)
        if (have == need).all():
            return
        goals.append(need)
    value = int(np.flatnonzero(have != goals[0])[0])
    raise MalformedState(
        f'"{symbols[value]}" occurs {have[value]} times; it must occur {goals[0][value]} times'.replace(" 1 times", " once")
    )


class Words:
    """States as symbols in rows, scrambles as names of actions; both separated by spaces."""

    def __init__(self, table: MoveTable, symbols: Sequence[str], row: int, help: str, joined: bool = False) -> None:
        """`symbols[v]` stands for value v, `row` of them make a row; `joined` writes rows without spaces."""
        self.table, self.symbols, self.row, self.help, self.joined = table, tuple(symbols), row, help, joined
        self._actions = {name: a for a, name in enumerate(table.action_names)}
        self._values = {symbol: value for value, symbol in enumerate(symbols)}

    def parse(self, text: str) -> U8:
        """A state, or a scramble; "/", "|" and "," may separate rows. What could be either is a state."""
        words = re.sub(r"[/|,;\[\]]", " ", text).split()
        if not words:
            raise MalformedState(f"the text is empty; expected: {self.help}")
        if all(word in self._actions for word in words) and not self._is_state(words):
            return play(self.table, self.table.goals[0], [self._actions[word] for word in words])
        n, joined = self.table.cells, "".join(words)
        if all(len(symbol) == 1 for symbol in self.symbols) and set(joined) & set(self.symbols) and not self._has_move(words):
            words = list(joined)
        for word in words:
            if word not in self._values and word not in self._actions:
                raise MalformedState(f'"{word}" is neither a move nor a value of this puzzle; expected: {self.help}')
        if not all(word in self._values for word in words):
            raise MalformedState(f"moves and values are mixed; expected: {self.help}")
        if len(words) != n:
            raise MalformedState(f"{len(words)} values came; a state has {n}. Expected: {self.help}")
        state = np.array([self._values[word] for word in words], dtype=np.uint8)
        if (state >= self.table.modulus).any():
            cell = int(np.argmax(state >= self.table.modulus))
            raise MalformedState(f'cell {cell + 1} cannot hold "{words[cell]}"; expected: {self.help}')
        check_values(self.table, state, self.symbols)
        return state

    def _has_move(self, words: list[str]) -> bool:
        return any(word in self._actions for word in words)

    def _is_state(self, words: list[str]) -> bool:
        if len(words) != self.table.cells or not all(word in self._values for word in words):
            return False
        state = np.array([[self._values[word] for word in words]], dtype=np.uint8)
        return bool(self.table.holds_right_values(state)[0])

    def format(self, state: U8) -> str:
        """Rows separated by " / ", or by a space where symbols are joined."""
        words = [self.symbols[value] for value in state]
        rows = [words[i : i + self.row] for i in range(0, len(words), self.row)]
        if self.joined:
            return " ".join("".join(row) for row in rows)
        return " / ".join(" ".join(row) for row in rows)


def one_state(states: States) -> U8:
    """uint8[n] from a batch of one (or from the bare row)."""
    if states.ndim == 2 and len(states) == 1:
        return np.asarray(states[0])
    if states.ndim == 1:
        return states
    raise MalformedState(f"one state is needed, uint8[1, n]; an array of shape {states.shape} came")
