"""Heuristics inside compiled loops: one small interface that searches are compiled against.

A *guide* is a NamedTuple of read-only arrays and numbers. Beside a state it keeps a row of whole numbers, from which its value
follows; a search that goes on by one step has that row brought up to date rather than made again, where that is cheaper.

    kept_size(guide)                                                     how many numbers it keeps beside a state
    make_kept(guide, states, row, kept, at)                              kept[at] for states[row]
    update_kept(guide, plan, context, step, states, row, kept, at, to)   kept[to] for one step after states[row], from kept[at]
    value_of(guide, states, row, kept, at)                               float32: the value of states[row], given kept[at]
    value_after(guide, plan, context, step, states, row, kept, at, enough)    float32: the value one step after states[row]

states: uint8[R, n or more]; kept: int32[A, kept_size or more]. `context` is that of states[row], from which `step` leads on;
the state that it leads to is not there yet. In `value_after` the rows row + 1 and at + 1 are free to work in. Its value may be
a lower bound of the right one, as soon as that is above `enough`: what is cut off by then needs no more. It need not be
implemented: by default the state is made, and asked about.

    values_after(guide, plan, context, steps, first, count, states, row, kept, at, room, values)

writes `value_after` of steps[first:first + count] to values[0], with room - the step's cost as `enough`: for guides that ask
the memory for all children before they wait for one. Where it is not implemented, `looks_ahead` is False, and searches do not
call it. values: int64[3, S], the rest to work in.

A kind of guide implements these for its own NamedTuple type by `implements`; numba compiles a loop anew for each type of
guide, so a value costs no call. Functions found by type, not passed as arguments, are what machine code on disk can be kept of.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numba import extending, types

from undershoot.arrays import F32, I32, I64, U16, Number, States
from undershoot.kernels.compiler import INLINED, compiled
from undershoot.kernels.plan import Plan
from undershoot.kernels.steps import play_step

LARGE = 2.0**30
Function = TypeVar("Function", bound=Callable[..., Any])
Kind = TypeVar("Kind")

_implementations: dict[tuple[str, type], Callable[..., Any]] = {}
_overload: Any = extending.overload
_named_tuple: Any = types.BaseNamedTuple


def implements(interface: Callable[..., Any], kind: type) -> Callable[[Function], Function]:
    """The decorated function is what `interface` does for guides of this kind; same parameters, by name."""

    def register(function: Function) -> Function:
        _implementations[interface.__name__, kind] = function
        return function

    return register


def _implementation(name: str, guide: Any) -> Callable[..., Any] | None:
    """What the compiler takes for a guide of this type; None if there is nothing."""
    return _implementations.get((name, guide.instance_class)) if isinstance(guide, _named_tuple) else None


def kept_size(guide: Any) -> Number:
    """How many whole numbers the guide keeps beside a state."""
    return _implementations["kept_size", type(guide)](guide)  # from Python; compiled code has what `_kept_size` says


def make_kept(guide: Any, states: States, row: Number, kept: I32, at: Number) -> None:
    """Write what the guide keeps beside states[row] to kept[at]."""
    raise NotImplementedError


def update_kept(
    guide: Any, plan: Plan, context: Number, step: Number, states: States, row: Number, kept: I32, at: Number, to: Number
) -> None:
    """Write what the guide keeps one step after states[row], beside which it keeps kept[at], to kept[to]."""
    raise NotImplementedError


def value_of(guide: Any, states: States, row: Number, kept: I32, at: Number) -> Number:
    """float32: the guide's value for states[row], beside which it keeps kept[at]."""
    raise NotImplementedError


def value_after(
    guide: Any, plan: Plan, context: Number, step: Number, states: States, row: Number, kept: I32, at: Number, enough: Number
) -> Number:
    """float32: the guide's value one step after states[row]; above `enough` any number between that and the value will do."""
    raise NotImplementedError


def values_after(
    guide: Any,
    plan: Plan,
    context: Number,
    steps: U16,
    first: Number,
    count: Number,
    states: States,
    row: Number,
    kept: I32,
    at: Number,
    room: Number,
    values: I64,
) -> None:
    """Write `value_after` of several steps, rounded up, to values[0]."""
    raise NotImplementedError


def _kept_size(guide: Any) -> Any:
    return _implementation("kept_size", guide)


def _make_kept(guide: Any, states: Any, row: Any, kept: Any, at: Any) -> Any:
    return _implementation("make_kept", guide)


def _update_kept(guide: Any, plan: Any, context: Any, step: Any, states: Any, row: Any, kept: Any, at: Any, to: Any) -> Any:
    return _implementation("update_kept", guide)


def _value_of(guide: Any, states: Any, row: Any, kept: Any, at: Any) -> Any:
    return _implementation("value_of", guide)


def _value_after(guide: Any, plan: Any, context: Any, step: Any, states: Any, row: Any, kept: Any, at: Any, enough: Any) -> Any:
    return _implementation("value_after", guide) or _value_of_child


def _values_after(guide: Any, *others: Any) -> Any:
    return _implementation("values_after", guide) or _nothing_after


def whole(value: Number) -> Number:
    """int64: the least whole number that is not below a value; what is whole stays as it is. -1 for what is no number, or a
    larger one than any search takes."""
    raise NotImplementedError


def _whole(value: Any) -> Any:
    if isinstance(value, types.Integer):
        return _whole_already
    return _rounded_up


def _whole_already(value: Number) -> Number:
    return np.int64(value)


def _rounded_up(value: Number) -> Number:
    return np.int64(np.ceil(value)) if -LARGE < value < LARGE else np.int64(-1)


_overload(whole, strict=False, jit_options=INLINED)(_whole)


def _value_of_child(
    guide: Any, plan: Plan, context: Number, step: Number, states: States, row: Number, kept: I32, at: Number, enough: Number
) -> Number:
    play_step(plan, context, step, states, row, row + 1)
    update_kept(guide, plan, context, step, states, row, kept, at, at + 1)
    return value_of(guide, states, row + 1, kept, at + 1)


def looks_ahead(guide: Any) -> Number:
    """Whether the guide has `values_after`."""
    raise NotImplementedError


def _looks_ahead(guide: Any) -> Any:
    return _yes if _implementation("values_after", guide) else _no


def _yes(guide: Any) -> Number:
    return True


def _no(guide: Any) -> Number:
    return False


def _nothing_after(guide: Any, *others: Any) -> None:
    pass


_overload(kept_size, strict=False, jit_options=INLINED)(_kept_size)
_overload(make_kept, strict=False, jit_options=INLINED)(_make_kept)
_overload(update_kept, strict=False, jit_options=INLINED)(_update_kept)
_overload(value_of, strict=False, jit_options=INLINED)(_value_of)
_overload(value_after, strict=False, jit_options=INLINED)(_value_after)
_overload(values_after, strict=False, jit_options=INLINED)(_values_after)
_overload(looks_ahead, strict=False, jit_options=INLINED)(_looks_ahead)


def keeps_nothing(kind: type[Kind]) -> type[Kind]:
    """For a kind of guide whose value is made anew for each state: only `value_of` is left to be implemented."""
    implements(kept_size, kind)(_no_size)
    implements(make_kept, kind)(_make_nothing)
    implements(update_kept, kind)(_update_nothing)
    return kind


def _no_size(guide: Any) -> Number:
    return 0


def _make_nothing(guide: Any, states: States, row: Number, kept: I32, at: Number) -> None:
    pass


def _update_nothing(
    guide: Any, plan: Plan, context: Number, step: Number, states: States, row: Number, kept: I32, at: Number, to: Number
) -> None:
    pass


@keeps_nothing
class Elsewhere(NamedTuple):
    """No guide: values come from outside the loop."""

    nothing: int = 0


@implements(value_of, Elsewhere)
def _no_value(guide: Elsewhere, states: States, row: Number, kept: I32, at: Number) -> Number:
    return np.float32(np.nan)


class InLoop(Protocol):
    """A heuristic that has a guide of the same values, bit for bit, beside its call for batches."""

    def guide(self) -> Any:
        """A guide for one thread; None if there is none."""


def guide_of(heuristic: object) -> Any:
    """The guide of a heuristic, for one thread; None if it has only a call for batches."""
    make = getattr(heuristic, "guide", None)
    return None if make is None else make()


@compiled
def values_of(guide: Any, states: States) -> tuple[F32, I32]:
    """float32[B], what the guide says of each state, asked as a search asks it; int32[B], the first number that it keeps."""
    kept = np.zeros((1, max(1, kept_size(guide))), dtype=np.int32)
    one = np.zeros((1, states.shape[1]), dtype=np.uint8)
    values, kept_first = np.empty(states.shape[0], dtype=np.float32), np.empty(states.shape[0], dtype=np.int32)
    for b in range(states.shape[0]):
        for i in range(states.shape[1]):
            one[0, i] = states[b, i]
        make_kept(guide, one, 0, kept, 0)
        values[b], kept_first[b] = value_of(guide, one, 0, kept, 0), kept[0, 0]
    return values, kept_first
