"""Everything that can be wrong with what a user gives us.

Each message says what came, what is allowed and what to do. The command line prints it and exits with code 2.
"""


class UndershootError(Exception):
    """Bad input: the message is meant for the person who gave it."""


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
