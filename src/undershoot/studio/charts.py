"""Components that draw in the browser: the map of a search, and margins."""

from typing import Any

from nicegui import ui

from undershoot.studio.boards import BROWSER


class SearchMap(ui.element, component=BROWSER / "map.js"):
    """A recorded search by g and h, which steps a board along."""

    def __init__(self, recording: dict[str, Any], board: ui.element) -> None:
        super().__init__()
        self._props["recording"] = recording
        self._props["board"] = f"c{board.id}"

    def look(self) -> None:
        """At the state that was missed."""
        self.run_method("look")

    def show(self, recording: dict[str, Any]) -> None:
        """Another search."""
        self._props["recording"] = recording
        self.update()


class MarginChart(ui.element, component=BROWSER / "margins.js"):
    """The distribution of h - h*, and a margin to drag."""

    def __init__(self, found: dict[str, Any]) -> None:
        super().__init__()
        self._props["found"] = found
        self._props["marks"] = []

    def show(self, found: dict[str, Any]) -> None:
        """More of what was found."""
        self._props["found"] = found
        self.update()

    def show_marks(self, rows: list[dict[str, Any]]) -> None:
        """Calibrators, as marks on the axis of margins."""
        self._props["marks"] = rows
        self.update()
