"""Tensor functions that a compiler makes one kernel of, where that pays."""

import os
import types
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from undershoot import trust

CACHE_DIR = "TORCHINDUCTOR_CACHE_DIR"
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
                return self.compiled(*map(_plain, arguments))
            except torch.cuda.OutOfMemoryError:
                raise
            except RuntimeError:  # no compiler for the device here: slower, but the same
                self.compiled = None
        return self.function(*arguments)


def _plain(argument: Any) -> Any:
    """A part of a tensor as a tensor of its own: a compiler makes a kernel for each way in which parts lie in memory."""
    is_part = isinstance(argument, torch.Tensor) and (argument.storage_offset() or not argument.is_contiguous())
    return argument.clone(memory_format=torch.contiguous_format) if is_part else argument


def compiled(function: Callable[..., Any], dynamic: bool) -> Callable[..., Any]:
    """The function, compiled when it is first called."""

    _keep_to_ourselves()

    def call(*arguments: Any) -> Any:
        return function(*arguments)

    # torch remembers what it compiled by the code object, and only a few of each: every function needs one of its own.
    own = types.FunctionType(call.__code__.replace(), call.__globals__, call.__name__, None, call.__closure__)
    result: Callable[..., Any] = torch.compile(own, dynamic=dynamic, fullgraph=True)
    return result


@cache
def _keep_to_ourselves() -> None:
    """torch keeps what it compiled in a folder for temporary files, whose name others can foresee, and runs what it finds
    there: so it gets a folder of the user's own, unless they have chosen one, and where there is none nothing is kept."""
    if CACHE_DIR in os.environ:
        return
    try:
        os.environ[CACHE_DIR] = str(trust.private_folder("torch"))
    except trust.Untrusted:
        import torch._inductor.config

        torch._inductor.config.force_disable_caches = True
