"""The move tables applied to many states at once: by numba on the CPU, by torch on any device."""

import os
from pathlib import Path
from typing import Any

from undershoot.errors import UndershootError

SETTINGS = Path(".numba_config.yaml")
"""What numba reads in the working folder, whoever wrote it."""

if SETTINGS.exists():
    raise UndershootError(
        f"there are settings for numba in {SETTINGS.absolute()}, which could have it write to any file: move that file away, "
        "or work in another folder; settings in the environment (NUMBA_...) count"
    )

paths: Any = os.path
exists = paths.exists
paths.exists = lambda path: path != SETTINGS.name and exists(path)  # whoever writes it while numba is imported is not heard
try:
    import numba
finally:
    paths.exists = exists

_settings: Any = numba.config
_settings._config_fname = os.devnull  # it would look for such a file again whenever it compiles
if _settings.DISABLE_JIT:
    raise UndershootError("numba is told not to compile, and nothing here works without: unset NUMBA_DISABLE_JIT")
