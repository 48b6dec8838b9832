"""Elements of a page, without a browser."""

from nicegui import Client, ui

from undershoot.studio.elements import button


def test_the_name_of_a_button_is_one_word_whatever_a_run_is_called() -> None:
    with Client(ui.page("")):
        for name in ("a disabled", "x hidden", "b+c"):
            made = button("Show", lambda: None, name=f"show-{name}")
            assert dict(made.props) == {"type": "button", "data-do": f"show-{name}"}
