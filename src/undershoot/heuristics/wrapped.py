"""A function that somebody brings, as a heuristic: calibrated, checked, compared and searched with like the others."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, NoReturn

import numpy as np

from undershoot.arrays import F32, States, frozen
from undershoot.errors import UndershootError, what_came
from undershoot.guarantees import Guarantee, Rounding, Standing, one_line
from undershoot.heuristics.families import Family
from undershoot.kernels.cpu import is_goal
from undershoot.kernels.scrambles import deepest, scrambles_up_to
from undershoot.kernels.streams import Purpose, stream
from undershoot.puzzles.problem import Problem, check_puzzle

NO_DIGEST = "a function has no checksum by which others could know it again; check it in each process that uses it"
ONE_NUMBER = Family(0)
ASKED_AGAIN, SMALL_BATCH, DEEPEST = 200, 7, 30
"""States of which a function is asked twice, the second time in batches of so many; scrambles of at most this depth."""
NUMBERS = "biuf"
"""Kinds of arrays that hold real numbers."""


@dataclass(frozen=True, eq=False)
class WrappedHeuristic:
    """max(0, function), 0 for goals. Nothing is known about overestimates until it is calibrated or checked.

    It is taken for a network with one output (see `LearnedHeuristic`), so whatever moves networks down moves functions down.
    """

    puzzle: Problem
    function: Callable[[States], Any]
    """Called with a copy of some states, uint8[B, n], that cannot be written to; by one thread at a time."""
    name: str
    guarantee: Guarantee
    rounding: Rounding = Rounding.NONE
    family: Family = ONE_NUMBER
    is_exact: bool = False
    """Sums of floats may come out differently in other batches, so margins leave room for that."""
    lock: Any = field(default_factory=RLock, repr=False)

    @property
    def fingerprint(self) -> str:
        """Of its puzzle."""
        return self.puzzle.table.fingerprint

    def __repr__(self) -> str:
        return one_line(self)

    def __call__(self, states: States) -> F32:
        """float32[B]."""
        values = np.maximum(self.raw(states), np.float32(0))
        values[is_goal(self.puzzle.table, states)] = 0
        return values

    def raw(self, states: States) -> F32:
        """float32[B]: what the function says, also for goals; refused if that is not one finite number a state."""
        self.puzzle.table.check_states(states)
        if not len(states):
            return np.zeros(0, dtype=np.float32)
        try:
            with self.lock:
                answer = np.asarray(self.function(frozen(states)))
        except Exception as error:
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise UndershootError(f"the function of the heuristic {self.name} failed: {' '.join(reason.split())}") from error
        if answer.dtype.kind not in NUMBERS or answer.shape != (len(states),):
            raise UndershootError(
                f"the function of the heuristic {self.name} gave {answer.dtype}{list(answer.shape)} for {len(states):,} "
                f"states; a number for each is needed, in an array [{len(states)}]"
            )
        with np.errstate(over="ignore"):
            values = answer.astype(np.float32)  # a copy: the function may keep its own and write to it
        wrong = ~np.isfinite(values)
        if wrong.any():
            row = int(np.argmax(wrong))
            state = self.puzzle.format(states[row : row + 1])
            raise UndershootError(
                f"the function of the heuristic {self.name} gives {answer[row]}, which is no cost, for {state}"
            )
        return values

    def ask_again(self, seed: int, room: float = 0.0) -> None:
        """Refuse a function that says something else of a state when asked again, in another order and in small batches.

        seed: of the scrambles that it is asked about. room: by how much answers may differ.
        """
        table, states = self.puzzle.table, self.puzzle.table.goals
        with suppress(UndershootError):  # where moves cannot be undone, scrambles may come to an end
            states = scrambles_up_to(table, ASKED_AGAIN, deepest(table, DEEPEST), stream(seed, Purpose.ASKED_AGAIN)).states
        first, parts = self.raw(states), np.array_split(states[::-1], -(-len(states) // SMALL_BATCH))
        again = np.concatenate([self.raw(part) for part in parts])[::-1]
        differs = np.abs(first - again) > room
        if differs.any():
            row = int(np.argmax(differs))
            raise UndershootError(
                f"the function of the heuristic {self.name} says {first[row]:.9g} and then {again[row]:.9g} of the same state, "
                f"so that nothing can be known of it: {self.puzzle.format(states[row : row + 1])}"
            )

    def __reduce__(self) -> NoReturn:
        raise UndershootError(f"the heuristic {self.name} cannot be saved or sent elsewhere: {NO_DIGEST}")


def wrap(puzzle: Problem, function: Callable[[States], Any], name: str | None = None) -> WrappedHeuristic:
    """A heuristic of a function: for states, uint8[B, n], it gives B numbers, in an array or whatever numpy takes for one.

    name: what it is called; that of the function if not given. Values below 0 count as 0, and goals as 0. Equal states must
    have equal values: `us.check` and `us.calibrate` ask some states twice, but cannot prove that of a function. What they find
    is known of the heuristic that they return, in this process alone.

    Examples:
        >>> tiles = us.puzzle("tiles-2x3")
        >>> mine = us.wrap(tiles, lambda states: ((states != tiles.table.goals) & (states != 0)).sum(axis=1), name="misplaced")
        >>> us.check(mine).findings.violations
        0
    """
    check_puzzle(puzzle, "us.wrap")
    if not callable(function):
        raise UndershootError(f"us.wrap takes a function of states second; {what_came(function)} came")
    name = getattr(function, "__name__", type(function).__name__) if name is None else name
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise UndershootError(f"the name of a heuristic is one line of text; {what_came(name)} came")
    # That it was checked says nothing if it then says something else.
    same = f"the function {name} says the same of equal states, whenever and in whatever batch it is asked"
    same += ", whatever it was asked before"
    return WrappedHeuristic(puzzle, function, name, Guarantee(Standing.NONE, provided=same))
