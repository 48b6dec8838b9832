"""Plain elements of a page, in the studio's own style."""

import html
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from nicegui import ui

Handler = Callable[[], Awaitable[None] | None]
EMIT_VALUE = "(event) => emit(event.target.value)"
EMIT_PICKED = """(event) => {
  if (event.target.matches(":focus-visible")) sessionStorage.setItem("picked", "1");
  emit(event.target.value);
}"""
TAKE_FOCUS = """
  const take = (tries) => {
    const element = getHtmlElement(%d);
    element?.focus();
    if (tries && document.activeElement !== element) setTimeout(take, 50, tries - 1);  // it may not be there yet
  };
  if (sessionStorage.getItem("picked")) take(20);
  sessionStorage.removeItem("picked");
"""
"""Who chooses by the keyboard goes on choosing on the page that this opens."""
EMIT_CHOSEN = """(event) => {
  const chosen = event.target.closest("[data-choose]");
  if (chosen) emit(chosen.dataset.choose);
}"""
"""For a box whose buttons come and go: a click on one that has gone meanwhile is heard, too."""
EMIT_FILE = "async (event) => emit((await event.target.files[0].text()).slice(0, 300000))"
EMIT_CHECKED = "(event) => emit(event.target.checked)"


def box(classes: str, tag: str = "div") -> ui.element:
    """An element that holds others."""
    return ui.element(tag).classes(classes)


def text(words: str, classes: str = "", tag: str = "p") -> "Text":
    """Words, shown as they are."""
    return Text(words, tag).classes(classes)


class Text(ui.element):
    """An element that holds words alone."""

    def __init__(self, words: str, tag: str) -> None:
        super().__init__(tag)
        self._text = words

    def say(self, words: str) -> None:
        """Other words."""
        if self._text != words:
            self._text = words
            self.update()


def markup(content: str, classes: str = "") -> ui.html:
    """Markup that we wrote; what comes from elsewhere goes through `escaped` first."""
    return ui.html(content, sanitize=False).classes(classes)


def escaped(words: object) -> str:
    """For use in markup."""
    return html.escape(str(words))


def button(words: str, handler: Handler | None, classes: str = "", name: str = "") -> ui.element:
    """A button with words on it. handler: None where the box that it is in is asked. name: for tests."""
    made = Text(words, "button").classes(f"us-button {classes}").props("type=button")
    if name:
        made.props["data-do"] = name
    if handler is not None:
        made.on("click", handler)
    return made


def enable(element: ui.element, is_enabled: bool) -> None:
    """Let it be used, or not."""
    if is_enabled:
        element.props(remove="disabled")
    else:
        element.props("disabled")


def show(element: ui.element, is_shown: bool) -> None:
    """Or hide it."""
    element.classes(remove="us-hidden") if is_shown else element.classes("us-hidden")


class Field:
    """An input with a label; `value` is what stands in it."""

    def __init__(self, label: str, value: str, kind: str = "text", classes: str = "", **attributes: Any) -> None:
        self.value = value
        with ui.element("label").classes(f"us-field {classes}"):
            text(label, tag="span")
            self.element = ui.element("textarea" if kind == "textarea" else "input")
        self.element.props["value"] = value
        if kind != "textarea":
            self.element.props["type"] = kind
        for name, given in attributes.items():
            self.element.props[name.replace("_", "-")] = given
        self.element.on("input", self._changed, js_handler=EMIT_VALUE)

    def _changed(self, event: Any) -> None:
        self.value = str(event.args)
        # Without being sent back: whoever types is ahead of us.
        self.element._props["value"] = self.value

    def set(self, value: str) -> None:
        """Another value."""
        self.value = value
        self.element.props["value"] = value
        self.element.update()

    def whole(self, name: str, low: int, high: int) -> int:
        """The value as a whole number; a sentence if it is none."""
        from undershoot.errors import UndershootError

        try:
            number = int(self.value)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise UndershootError(f"{name} is {self.value[:20]!a}; allowed are whole numbers from {low:,} to {high:,}")
        return number


class Choice:
    """One of several, in a native list, which every keyboard and reader knows."""

    def __init__(
        self,
        label: str,
        options: Mapping[str, str],
        value: str,
        handler: Callable[[str], Awaitable[None] | None] | None = None,
        classes: str = "",
        pick: bool = False,
    ) -> None:
        self.value, self.handler = value, handler
        with ui.element("label").classes(f"us-field {classes}") if label else ui.element("span"):
            if label:
                text(label, tag="span")
            self.element = ui.element("select")
        if pick:
            self.element.classes("us-pick")
            ui.run_javascript(TAKE_FOCUS % self.element.id)
        self.options: dict[str, str] = {}
        self.offer(options, value)
        self.element.on("change", self._changed, js_handler=EMIT_PICKED if pick else EMIT_VALUE)

    def offer(self, options: Mapping[str, str], value: str | None = None) -> None:
        """Other options; the value stays if it is still among them."""
        wanted = self.value if value is None else value
        self.options = dict(options)
        self.value = wanted if wanted in options else next(iter(options), "")
        self.element.clear()
        with self.element:
            for key, words in options.items():
                option = Text(words, "option")
                option.props["value"] = key
                option.props["selected"] = key == self.value
        self.element.props["value"] = self.value
        self.element.update()

    async def _changed(self, event: Any) -> None:
        if str(event.args) not in self.options:
            self.element.update()  # with what stands there: a browser may send anything
            return
        self.value = str(event.args)
        self.element._props["value"] = self.value
        if self.handler is not None:
            result = self.handler(self.value)
            if result is not None:
                await result


def badge(standing: str, words: str) -> str:
    """What is known, as a word in its colour."""
    sign = {"proven": "✓", "sampled": "≈", "over": "▲", "true": "="}.get(standing, "?")
    return f'<span class="us-badge is-{standing}">{sign} {escaped(words)}</span>'


def figure(name: str, value: str, classes: str = "") -> str:
    """A number and what it is."""
    return f'<div class="us-figure {classes}"><b>{escaped(value)}</b><span>{escaped(name)}</span></div>'


def said(words: str, kind: str = "") -> str:
    """A statement in a box of its colour: is-proven, is-open or is-wrong."""
    return f'<div class="us-said {kind}" role="status">{escaped(words)}</div>'
