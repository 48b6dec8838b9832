"""Ctrl-C: one line and exit code 130, wherever it comes."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any


class Interrupted(BaseException):
    """Ctrl-C was pressed. The message says it, and how to go on; no Exception, so that nothing tries to mend it."""

    def __init__(self, message: str = "interrupted") -> None:
        super().__init__(message)


@contextmanager
def noticing_ctrl_c() -> Iterator[threading.Event]:
    """Set when Ctrl-C is pressed, even if the interruption is then swallowed or comes out as another error."""
    pressed = threading.Event()

    def handle(number: int, frame: Any) -> None:
        pressed.set()
        raise KeyboardInterrupt

    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield pressed  # whoever started us wants it ignored, or answers it
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def ended_by_ctrl_c(command: Callable[..., None]) -> Callable[..., None]:
    """A command that ends with Interrupted: typer would end the program by itself, with nothing said."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt:
            raise Interrupted from None

    return run
