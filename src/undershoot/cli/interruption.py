"""Ctrl-C: one line and exit code 130, wherever it comes."""

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

AGAIN_AFTER = 1.0
"""Seconds after which an interruption that ended nothing is made once more."""


class Interrupted(BaseException):
    """Ctrl-C was pressed. The message says it, and how to go on; no Exception, so that nothing tries to mend it."""

    def __init__(self, message: str = "interrupted") -> None:
        super().__init__(message)


@contextmanager
def insisting_on_ctrl_c() -> Iterator[threading.Event]:
    """Set when Ctrl-C is pressed, even if the interruption then comes out as another error.

    Where libraries swallow it, as the compiler does when it is freeing memory, it is made again until it ends what is within.
    """
    pressed, is_over, lock = threading.Event(), threading.Event(), threading.Lock()

    def handle(number: int, frame: Any) -> None:
        if is_over.is_set():
            return
        if not pressed.is_set():
            pressed.set()
            threading.Thread(target=insist, daemon=True).start()
        raise KeyboardInterrupt

    def insist() -> None:
        while not is_over.wait(AGAIN_AFTER):
            with lock:
                if not is_over.is_set() and signal.getsignal(signal.SIGINT) is handle:  # not where a command answers itself
                    _interrupt_main_thread()

    def say(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            said_by(unraisable)

    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield pressed  # whoever started us wants it ignored, or answers it
        return
    said_by, sys.unraisablehook = sys.unraisablehook, say
    signal.signal(signal.SIGINT, handle)
    try:
        yield pressed
    finally:
        with lock:
            is_over.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = said_by


def _interrupt_main_thread() -> None:
    """By a signal, which wakes it also where it waits or sleeps; on Windows when it is back in Python."""
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def ended_by_ctrl_c(command: Callable[..., None]) -> Callable[..., None]:
    """A command that ends with Interrupted: typer would end the program by itself, with nothing said."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            raise Interrupted from None

    return run
