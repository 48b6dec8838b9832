"""Help: what this is about, read in two minutes."""

from undershoot.studio.boards import BROWSER
from undershoot.studio.elements import box, markup
from undershoot.studio.pages.layout import page


def help_page() -> None:
    """The page."""
    with page("help", "Help", "Two minutes."), box("us-card"):
        markup((BROWSER / "help.html").read_text(encoding="utf-8"), "us-prose")
