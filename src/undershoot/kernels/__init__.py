"""The move tables applied to many states at once: by numba on the CPU, by torch on any device."""

from pathlib import Path
from typing import Any

from undershoot.errors import UndershootError

SETTINGS = Path(".numba_config.yaml")
"""What numba reads in the working folder, whoever wrote it."""

try:
    import numba
except Exception as error:  # what is wrong with that file comes as any error
    if not SETTINGS.is_file():
        raise
    raise UndershootError(
        f"numba cannot start with the settings in {SETTINGS.absolute()} ({type(error).__name__}); move that file away, or "
        "work in another folder"
    ) from error
_settings: Any = numba.config
if _settings.DISABLE_JIT:
    raise UndershootError(
        "numba is told not to compile, and nothing here works without: unset NUMBA_DISABLE_JIT, and take disable_jit out of "
        f"{SETTINGS.absolute()} if that is there"
    )
