"""numba's compiler, with its results kept in the cache folder."""

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import config

import undershoot
from undershoot.files import cache_folder
from undershoot.kernels.machine_code import MachineCode

Function = TypeVar("Function", bound=Callable[..., Any])

INNER: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
"""Settings of the compiler: no references are counted."""
INLINED: dict[str, Any] = {**INNER, "forceinline": True}
WITHOUT_LOOPS = ("bundles", "calibration", "cli", "experiments", "studio", "training", "workflows")
"""Parts of the package in which nothing is compiled, and which nothing that is compiled may import: these may change without
everything being compiled anew."""
_njit: Any = numba.njit


@cache
def _state_of_sources() -> str:
    """A digest of all our sources, and of what compiles them.

    A function's machine code holds that of the functions it calls, wherever these stand: it is of use only as long as nothing
    has changed.
    """
    digest = hashlib.sha256(f"{sys.implementation.cache_tag} {numba.__version__} {np.__version__}\n".encode())
    root = Path(undershoot.__file__).parent
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.split("/")[0] in WITHOUT_LOOPS:
            continue
        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


@cache
def compiled_folder() -> str:
    """The folder for the machine code of this state of our sources."""
    return str(cache_folder() / "compiled" / _state_of_sources()[:16])


def compiled(function: Function) -> Function:
    """Compile on first use, or take the machine code of an earlier process. Releases the GIL.

    Division by zero is not looked for, as in numpy. What runs millions of times should take rows and numbers rather
    than slices of arrays: numba counts references to these, which costs more than the work. For functions of this package:
    when those of others change is not noticed.
    """
    return _kept(function, _njit(nogil=True, error_model="numpy")(function))


def compiled_loop(function: Function) -> Function:
    """Likewise, for a function that makes no arrays and calls `inner` ones: no references are counted."""
    return _kept(function, _njit(nogil=True, **INNER)(function))


def inner(function: Function) -> Function:
    """For a function that only compiled ones call, which makes no arrays. It becomes a part of those that call it.

    A loop can so be written as many small functions that share a dozen of arrays: to pass these, and to count references to
    them, would cost ten times the work. Nor is there a way in from Python, which takes half of the time to compile.
    """
    return cast(Function, _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **INLINED)(function))


def pasted(function: Function) -> Function:
    """Like `inner`, for a function with a single caller: it is not compiled by itself at all."""
    return cast(Function, _njit(inline="always", **INNER)(function))


def called(function: Function) -> Function:
    """Like `inner`, but rather called than made a part of its callers: for long functions that take few arrays."""
    return cast(Function, _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **INNER)(function))


def _kept(function: Function, made: Any) -> Function:
    settings: Any = config
    folder = settings.CACHE_DIR or compiled_folder()  # what the user has set with NUMBA_CACHE_DIR goes first
    made._cache = MachineCode(function, Path(folder), _state_of_sources())
    return cast(Function, made)
