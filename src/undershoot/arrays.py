"""Names for the array types that appear in signatures, and checksums of arrays."""

import hashlib
from collections.abc import Iterable
from typing import Any

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
Number = Any
"""A whole number inside compiled code, where numba knows its type."""


def digest_of(parts: Iterable[object]) -> str:
    """A checksum of arrays and numbers: their types, shapes and values, in this order."""
    total = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        total.update(f"{array.dtype.str} {array.shape}".encode() + array.tobytes())
    return total.hexdigest()
