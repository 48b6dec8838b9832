"""numba's compiler, with its results kept in the cache folder."""

import hashlib
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config

import undershoot
from undershoot.files import cache_folder

Function = TypeVar("Function", bound=Callable[..., Any])


log = logging.getLogger("undershoot")


@cache
def compiled_folder() -> str:
    """The folder for the machine code of this version of our sources.

    numba looks only at the file that a function stands in, not at those of the functions it calls; a folder of its own
    for every state of the sources makes sure that no stale machine code is ever used.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    root = Path(undershoot.__file__).parent
    for path in sorted(root.rglob("*.py")):
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    folder = cache_folder() / "compiled" / digest.hexdigest()[:16]
    if not folder.exists():
        log.info("compiling, this once; it takes some seconds")
    return str(folder)


def compiled(function: Function) -> Function:
    """Compile on first use, or take the machine code of an earlier process. Releases the GIL.

    Division by zero is not looked for, as in numpy. What runs millions of times should take rows and numbers rather
    than slices of arrays: numba counts references to these, which costs more than the work.
    """
    settings: Any = config
    chosen = settings.CACHE_DIR
    # numba reads this while it decorates; what the user has set with NUMBA_CACHE_DIR stays.
    settings.CACHE_DIR = chosen or compiled_folder()
    try:
        return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    finally:
        settings.CACHE_DIR = chosen
