"""Tensor functions that a compiler makes one kernel of, where that pays."""

import types
from collections.abc import Callable
from typing import Any

import torch

SMALL = 64
"""Batches of fewer columns are not worth a kernel of their own: a compiler would make one for a single column, too."""


class Fused:
    """A function of tensors whose first argument ends with the size of the batch; on CUDA compiled for batches of any size."""

    def __init__(self, function: Callable[..., Any], device: torch.device) -> None:
        self.function = function
        self.compiled = compiled(function, dynamic=True) if device.type == "cuda" else None

    def __call__(self, *arguments: Any) -> Any:
        """What the function returns."""
        if self.compiled is not None and arguments[0].shape[-1] >= SMALL:
            try:
                return self.compiled(*arguments)
            except torch.cuda.OutOfMemoryError:
                raise
            except RuntimeError:  # no compiler for the device here: slower, but the same
                self.compiled = None
        return self.function(*arguments)


def compiled(function: Callable[..., Any], dynamic: bool) -> Callable[..., Any]:
    """The function, compiled when it is first called."""

    def call(*arguments: Any) -> Any:
        return function(*arguments)

    # torch remembers what it compiled by the code object, and only a few of each: every function needs one of its own.
    own = types.FunctionType(call.__code__.replace(), call.__globals__, call.__name__, None, call.__closure__)
    result: Callable[..., Any] = torch.compile(own, dynamic=dynamic, fullgraph=True)
    return result
