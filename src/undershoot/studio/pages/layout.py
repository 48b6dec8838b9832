"""What all pages share: the head with its links, dark and light, and how a sentence about what went wrong is shown."""

from collections.abc import Iterator
from contextlib import contextmanager

from nicegui import ui

from undershoot.puzzles.catalogue import FAMILIES
from undershoot.studio.elements import box, markup, said, text
from undershoot.studio.games import address
from undershoot.studio.studio import Studio

PAGES = {
    "play": "Play",
    "race": "Race",
    "watch": "Watch",
    "margins": "Margins",
    "train": "Train",
    "reports": "Reports",
    "help": "Help",
}
OF_A_PUZZLE = ("play", "race", "watch")
FIRST_MOVES, FIRST_SEED = 14, 2
"""Of the scramble that a visitor sees first: not far from the goal, and not the goal, of which every estimate says 0."""
OVERESTIMATING = "offset"
"""The example of a search that one estimate above the true cost leads past the optimum."""
MORE = ("lights-out-4x4", "tiles-2x3", "tiles-3x4", "pancake-6")
LOGO = (
    '<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" fill="var(--accent)"/>'
    '<path d="M6 9h20" stroke="var(--accent-ink)" stroke-width="2.6" stroke-linecap="round" stroke-dasharray="1.5 4"/>'
    '<path d="M6 24c5 0 6-9 10-9s5 6 10 0" fill="none" stroke="var(--accent-ink)" stroke-width="2.6" stroke-linecap="round"/>'
    "</svg>"
)
DARK = """() => {
  Quasar.Dark.toggle();
  document.cookie = `dark=${Quasar.Dark.isActive ? 1 : 0};path=/;max-age=31536000;samesite=strict`;
}"""


class Links:
    """The links of the head, which take over what one looks at: pages about a puzzle show the same state."""

    def __init__(self, here: str) -> None:
        self.elements: dict[str, ui.element] = {}
        for name, words in PAGES.items():
            link = text(words, "is-here" if name == here else "", "a")
            link.props["href"] = f"/{name}"
            if name == here:
                link.props["aria-current"] = "page"
            self.elements[name] = link

    def lead_to(self, puzzle: str, state: str | None) -> None:
        """To pages about this puzzle, in this state."""
        for name in OF_A_PUZZLE:
            self.elements[name].props["href"] = address(name, puzzle, state)


def beginning(puzzle: str) -> str:
    """The address of a puzzle with a small scramble."""
    return f"{address('play', puzzle)}?moves={FIRST_MOVES}&seed={FIRST_SEED}"


@contextmanager
def page(here: str, title: str, lead: str = "", puzzle: str = "") -> Iterator[Links]:
    """The frame of a page. here: which one; title: if none, the puzzle; puzzle: whose links lead to pages about it."""
    ui.page_title(f"{title or puzzle} · undershoot studio")
    chosen = ui.context.client.request.cookies.get("dark")
    ui.dark_mode(None if chosen is None else chosen == "1")
    with box("us-header", "header"), box("us-header-inner"):
        with ui.element("a").classes("us-brand").props('href="/"'):
            markup(LOGO)
            text("undershoot studio", tag="span")
        with box("us-nav", "nav"):
            links = Links(here)
            if puzzle:
                links.lead_to(puzzle, None)
        toggle = text("◐", "us-round", "button").props(
            'type=button data-do=dark title="Dark or light" aria-label="Dark or light"'
        )
        toggle.on("click", js_handler=DARK)
    with box("us-page", "main"):
        if title:
            with box("us-title"):
                text(title, tag="h1")
                if lead:
                    text(lead)
        yield links


def puzzle_options(studio: Studio, name: str = "") -> dict[str, str]:
    """Names of puzzles to choose from: the catalogue's examples, files, and the one at hand."""
    listed = [example for family in FAMILIES for example in family.examples]
    names = [*listed, *MORE, *studio.folders.puzzle_files()]
    if name and name not in names:
        names.insert(0, name)
    return {each: each for each in names}


class Saying:
    """A place for one statement at a time."""

    def __init__(self) -> None:
        self.element = markup("").classes("us-hidden")

    def say(self, words: str, kind: str = "is-wrong") -> None:
        """Say this; nothing hides it."""
        self.element.set_content(said(words, kind) if words else "")
        if words:
            self.element.classes(remove="us-hidden")
        else:
            self.element.classes("us-hidden")
