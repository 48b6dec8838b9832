"""Counting bits, by the processor's own instruction."""

from typing import Any

from numba import extending
from numba.core import types


def _ones(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


ones: Any = extending.intrinsic(_ones)
"""ones(word): how many bits of a uint64 are 1."""
