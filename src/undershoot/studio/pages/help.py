"""Help: what this is about, read in two minutes; and what a visitor reads where there is no page."""

from undershoot.studio.boards import BROWSER
from undershoot.studio.elements import box, markup
from undershoot.studio.pages.layout import Saying, page


def help_page() -> None:
    """The page."""
    with page("help", "Help", "Two minutes."), box("us-card"):
        markup((BROWSER / "help.html").read_text(encoding="utf-8"), "us-prose")


def nowhere_page(path: str) -> None:
    """Of an address that leads nowhere."""
    with page("", "Not found"):
        Saying().say(f"there is no page {path[:60]!a} here; the links above lead to all there are")
