"""The command line: parse, call, print. Results go to stdout, everything else to stderr."""

import logging
import os
import sys
import warnings
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

from undershoot.cli.interruption import Interrupted, insisting_on_ctrl_c
from undershoot.errors import UndershootError, cannot, machine_gave_out, shown

GAVE_OUT, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""Exit codes. Commands themselves exit with 1, too: for what they were asked and is not so, or was not found."""
NO_MEMORY = "there is not enough memory for this; ask for a smaller batch or network, fewer states, or smaller patterns"
OF_TORCH = ("out of memory", "can't allocate memory")
"""What it says then, as a RuntimeError."""


def main() -> None:
    """Run a command; whatever ends it early is one message on stderr, and an exit code."""
    error: BaseException | None = None
    code = 0
    with insisting_on_ctrl_c() as pressed:
        try:
            code = _run()
        except BaseException as raised:
            error = raised
    if pressed.is_set() and (isinstance(error, Exception) or (error is None and code)):  # what became of the interruption
        error = Interrupted()
    sys.exit(code if error is None else _explain(error))


def _run() -> int:
    """The command, and its exit code."""
    logging.basicConfig(format="undershoot: %(message)s", stream=sys.stderr)
    logging.getLogger("undershoot").setLevel(logging.INFO)
    warnings.showwarning = lambda message, *_: print(f"undershoot: warning: {shown(str(message))}", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without block characters shows question marks
    from undershoot.cli.commands import UsageProblem, app  # here, where an interruption is answered

    try:
        code = app(standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except UsageProblem as error:
        return _explain_usage(error)
    finally:
        sys.stdout.flush()  # at the end of the process nobody would say that the disk is full
    return code if isinstance(code, int) else 0


def _explain_usage(error: Any) -> int:
    """What is wrong with what was typed, in a sentence where typer would draw a box; help for who typed nothing."""
    if not str(error):
        error.show()
        return BAD_INPUT
    context = getattr(error, "ctx", None)
    command = "undershoot" if context is None else context.command_path
    message = error.format_message().rstrip(".")
    return _say(f"{message[:1].lower()}{message[1:]}; `{command} --help` says what is allowed", BAD_INPUT)


def _explain(error: BaseException) -> int:
    """Say what ended the command; the exit code. What is the fault of neither user nor machine is raised again."""
    match error:
        case Interrupted() | KeyboardInterrupt():
            # Python ends by a signal if the interruption left code made from text, as in dataclasses; running some forgets it.
            exec("")
            return _say(str(error) or "interrupted", INTERRUPTED)
        case UndershootError():
            return _say(str(error), GAVE_OUT if machine_gave_out(error) else BAD_INPUT)
        case BrokenPipeError():  # whoever read has seen enough
            _forget_stdout()
            return GAVE_OUT
        case OSError():
            if error.filename is None:
                _forget_stdout()
            return _explain(cannot("go on" if error.filename is None else f"use {error.filename}", error))
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(text in str(error) for text in OF_TORCH)):
        return _say(NO_MEMORY, GAVE_OUT)
    raise error


def _say(message: str, code: int) -> int:
    print(f"undershoot: {shown(message)}", file=sys.stderr)
    return code


def _forget_stdout() -> None:
    """What is still to be written there would be refused again at the end of the process."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
