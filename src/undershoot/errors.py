"""Everything that can be wrong with what a user gives us, or with the machine.

Each message says what came, what is allowed and what to do. The command line prints it and exits with code 2, or with 1 where
the machine gave out.
"""

import errno

GIVES_OUT = {
    errno.ENOSPC: "the disk is full; make room",
    errno.EDQUOT: "your share of the disk is used up; make room",
    errno.EFBIG: "a file may not be that large there; choose another place",
    errno.EIO: "the disk does not answer as it should; use another one",
    errno.ENOMEM: "there is not enough memory; end other programs",
}
"""What the system says when the machine gives out, rather than that it was asked for something wrong; and what to do."""


class UndershootError(Exception):
    """Bad input: the message is meant for the person who gave it.

    Examples:
        >>> try:
        ...     us.puzzle("pancake-1")
        ... except us.UndershootError as error:
        ...     print(error)
        there is no "pancake-1": pancake-N takes N from 2 to 64.
    """


class GaveOut(UndershootError):
    """The disk or the memory of this machine gave out; the input may be good."""


class UnknownPuzzle(UndershootError):
    """No puzzle has this name, or its sizes are out of range."""


class MoveTableError(UndershootError):
    """A move table that does not describe a puzzle."""


class PuzzleFileError(UndershootError):
    """A puzzle file that cannot be read; the message names the file."""


class MalformedState(UndershootError):
    """Text or values that do not describe a state of this puzzle."""


class UnsolvableState(UndershootError):
    """A well-formed state from which no sequence of moves reaches the goal."""


class IllegalMove(UndershootError):
    """An action that is unknown, or not allowed in this state."""


class NotAvailable(UndershootError):
    """This puzzle cannot answer this question."""


class Contradiction(UndershootError):
    """Something that claims to be proven is not: a search found a cheaper way than it allows."""


class SpaceTooLarge(UndershootError):
    """Enumerating these states would need more memory than there is."""


def what_came(value: object) -> str:
    """What came instead of something else, in a few words: a text as it is, anything else by its type."""
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 60 else f'"{value[:60]}..."'
    return "nothing" if value is None else f"an object of type {type(value).__name__}"


def shown(text: str) -> str:
    """Text from anywhere as one line for a terminal: characters that would draw on it, or break the line, are written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class TooDear(UndershootError):
    """Solutions cost more than a search counts to."""


def cannot(do: str, error: OSError, advice: str = "") -> UndershootError:
    """That the system refused to `do` something, with the reason and what to do; GaveOut where the machine gave out."""
    reason = GIVES_OUT.get(error.errno or 0)
    if reason is None:
        return UndershootError(f"cannot {do}: {error.strerror or error}" + (advice and f"; {advice}"))
    return GaveOut(f"cannot {do}: {reason}" + (f"; {advice}" if advice else " and try again"))


def machine_gave_out(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, is that the machine gave out."""
    while error is not None:
        if isinstance(error, (GaveOut, MemoryError)) or (isinstance(error, OSError) and error.errno in GIVES_OUT):
            return True
        error = error.__cause__
    return False
