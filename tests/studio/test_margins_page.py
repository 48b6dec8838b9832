"""The page of margins in a browser, beside what `test_pages` sees of it."""

from studio.conftest import Server, Visits


def test_networks_on_patterns_offer_no_margins_by_states(server: Server, visits: Visits) -> None:
    with visits.page(f"{server.address}/margins?bundle=tiles-4x4") as page:
        page.wait_for_selector(".us-said.is-open", timeout=120_000)
        assert page.inner_text(".us-said.is-open").startswith("These are networks on patterns")
        assert page.is_disabled("[data-do=draw-margins]")
        assert page.is_disabled("[data-do=fit]")


def test_calibrators_that_were_fitted_first_are_marked_when_the_chart_comes(server: Server, visits: Visits) -> None:
    with visits.page(f"{server.address}/margins?bundle=lights-out-3x3-paper") as page:
        page.click("[data-do=fit]")
        page.wait_for_selector("[data-do=stop]:enabled")
        page.wait_for_selector("[data-method=exceptions]", timeout=120_000)
        page.click("[data-do=draw-margins]")
        page.wait_for_selector(".us-margins .marker", state="attached", timeout=120_000)
        page.wait_for_selector("[data-do=stop][disabled]", timeout=120_000)
