"""The board of a puzzle as an element of a page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from nicegui import ui

from undershoot.puzzles.puzzle import Puzzle
from undershoot.studio.drawing import specification
from undershoot.studio.games import MOST_MOVES, Game

BROWSER = Path(__file__).parent / "browser"


class Board(ui.element, component=BROWSER / "board.js"):
    """Shows a game, and says what is done on it. States are sent once; the browser animates."""

    def __init__(self, game: Game, act: Callable[[str], None], go: Callable[[int], None]) -> None:
        super().__init__()
        self._props["spec"] = specification(game.puzzle)
        self._props["first"] = game.frames()
        self._props["from"] = game.at
        self.on("act", lambda event: act(str(event.args)))
        self._props["most"] = MOST_MOVES
        self.on("at", lambda event: go(place_of(event.args)))

    def push(self, game: Game, start: int) -> None:
        """Show the move that was just played from this place of the history."""
        self.run_method("push", game.frame(game.at), start)

    def replace(self, game: Game, play: bool = False) -> None:
        """Show another history, and play it to its end if that is wanted."""
        self.run_method("set", game.frames(), game.at, play)

    def show_address(self, address: str) -> None:
        """In the browser's line, without loading anything."""
        self.run_method("address", address)


def place_of(sent: Any) -> int:
    """A place of a history; -1, which is none, for whatever else a browser sends."""
    return sent if isinstance(sent, int) and not isinstance(sent, bool) else -1


class StillBoard(ui.element, component=BROWSER / "board.js"):
    """Shows single states, without anything to do on them."""

    def __init__(self, puzzle: Puzzle, state: list[int]) -> None:
        super().__init__()
        spec = specification(puzzle)
        self._props["spec"] = {**spec, "moves": []}
        self._props["first"] = [{"state": state}]
        self._props["plain"] = True

    def show(self, state: list[int]) -> None:
        """Another state."""
        self.run_method("show", state)
