"""The command line, run in this process, which has imported and compiled everything already."""

import os
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from undershoot.cli import main


def undershoot(
    *arguments: str, code: int = 0, folder: Path | None = None, columns: int = 100
) -> subprocess.CompletedProcess[str]:
    """What `undershoot ARGUMENTS` prints in a terminal of so many columns; it must exit with this code."""
    out, error = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(error):
        patch.setenv("COLUMNS", str(columns))
        patch.chdir(folder or os.getcwd())
        patch.setattr(sys, "argv", ["undershoot", *arguments])
        patch.setattr(warnings, "showwarning", warnings.showwarning)  # the command sets its own
        with pytest.raises(SystemExit) as ended:
            main()
    done = subprocess.CompletedProcess(["undershoot", *arguments], int(ended.value.code or 0), out.getvalue(), error.getvalue())
    assert done.returncode == code, done.stdout + done.stderr
    return done
