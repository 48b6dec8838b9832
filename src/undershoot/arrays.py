"""Names for the array types that appear in signatures; arrays that cannot be written to; checksums of arrays."""

import dataclasses
import hashlib
from collections.abc import Iterable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

States = npt.NDArray[np.uint8]
"""uint8[B, n]: a batch of states, one row a state. One state is a batch of one."""

Keys = npt.NDArray[np.uint64]
"""uint64[B, W]: states packed into whole numbers of W words; equal keys mean equal states."""

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I8 = npt.NDArray[np.int8]
I16 = npt.NDArray[np.int16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F32 = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]
Array = TypeVar("Array", bound=AnyArray)
Number = Any
"""A whole number inside compiled code, where numba knows its type."""
Record = Any
"""One element of an array with named fields, inside compiled code."""
Records = Any
"""An array with named fields, whose elements compiled code takes for records."""


def digest_of(parts: Iterable[object]) -> str:
    """A checksum of arrays and numbers: their types, shapes and values, in this order."""
    total = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        total.update(f"{array.dtype.str} {array.shape}".encode() + array.tobytes())
    return total.hexdigest()


def read_only(array: Array) -> Array:
    """The same memory, which cannot be written to through what is returned, unless by setting its flags: for compiled code,
    which takes arrays of one type, and for what is not kept."""
    view = array.view()
    view.flags.writeable = False
    return view


def owned(array: Any) -> Any:
    """A plain copy of an array, which nobody else writes to; what is none, or masks a part, stays as it is, to be refused."""
    is_plain = isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray)
    return np.array(array, order="C") if is_plain else array


def frozen(array: Array) -> Array:
    """A copy that nobody can write to, whatever flags are set: its memory is that of bytes."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("a masked array came, part of which nothing looks at; give one without a mask")
    return _on(array.tobytes(), array) if array.size else read_only(array.copy())


def sealed(array: Array) -> Array:
    """The same memory, for arrays too large to be copied: like `frozen`, but for who still has the array itself."""
    if not array.size or not array.flags.c_contiguous:
        return read_only(array)
    memory: Any = array.reshape(-1).view(np.uint8).data
    return _on(memory.toreadonly(), array)


def _on(memory: Any, like: Array) -> Array:
    return cast(Array, np.frombuffer(memory, dtype=like.dtype).reshape(like.shape))


def freeze_arrays(holder: Any) -> None:
    """For the end of `__post_init__` of a frozen dataclass: all its arrays, also those in tuples, become frozen copies.

    What many share must not change under anybody's hands: `puzzle.table.goals[:1][:] = ...` would move the goal for all.
    """
    for part in dataclasses.fields(holder):
        value = getattr(holder, part.name)
        if isinstance(value, np.ndarray):
            object.__setattr__(holder, part.name, frozen(value))
        elif type(value) is tuple and value and isinstance(value[0], np.ndarray):
            object.__setattr__(holder, part.name, tuple(map(frozen, value)))
