"""Help: what this is about, read in two minutes; and what a visitor reads where there is no page."""

from undershoot.studio.boards import BROWSER
from undershoot.studio.elements import box, markup
from undershoot.studio.pages.layout import Saying, page


def help_page() -> None:
    """The page."""
    with page("help", "Help", "Two minutes."), box("us-card"):
        markup((BROWSER / "help.html").read_text(encoding="utf-8"), "us-prose")


def refusal_page(title: str, words: str) -> None:
    """Of an address that leads nowhere, or that nobody can read."""
    with page("", title):
        Saying().say(words)
