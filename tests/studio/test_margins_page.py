"""The page of margins in a browser, beside what `test_pages` sees of it."""

import shutil

from attacks.forging import forge
from studio.conftest import Server, Visits
from undershoot.bundles.bundle import SHIPPED


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


def test_damaged_certificates_and_bundles_that_are_not_there_get_their_sentence(server: Server, visits: Visits) -> None:
    shutil.copytree(SHIPPED / "lights-out-3x3-paper", server.runs / "torn" / "bundle")
    (server.runs / "torn" / "bundle" / "certificate.json").write_text("{")
    with visits.page(f"{server.address}/margins?bundle=torn") as page:
        page.wait_for_selector(".us-said.is-wrong")
        assert "certificate.json" in page.inner_text(".us-said.is-wrong")
        assert "damaged" in page.inner_text(".us-said.is-wrong")
        assert "fault of the program" not in page.inner_text(".us-said.is-wrong")
        page.goto(f"{server.address}/margins?bundle={'n' * 300}")
        page.wait_for_selector(".us-said.is-wrong")
        shown = page.input_value("select")
        assert page.inner_text(".us-said.is-wrong") == f"there is no bundle '{'n' * 60}' here; this is {shown}"
        page.click("[data-do=fit]:enabled")
        page.click("[data-do=stop]:enabled")
        page.wait_for_selector(".us-said.is-open")
        assert page.inner_text(".us-said.is-open").startswith("Stopped; ")


def test_a_card_is_text_whoever_wrote_it(server: Server, visits: Visits) -> None:
    card = (
        "# mine\n![pic](http://evil.example/x.png)<style>body{display:none}</style><form action=http://evil.example></form>"
        '<div style="position:fixed;top:0" class="us-badge is-proven" id="drawn">proven</div>'
    )
    shutil.copytree(SHIPPED / "lights-out-3x3-paper", server.runs / "evil" / "bundle")
    (server.runs / "evil" / "bundle" / "README.md").write_text(card)
    forge(server.runs / "evil" / "bundle")
    with visits.page(f"{server.address}/margins?bundle=evil") as page:
        page.wait_for_selector("[data-say=card] pre")
        assert page.inner_text("[data-say=card] pre") == card
        assert page.inner_text("[data-say=card] h3").startswith("Its card: the words of whoever made it")
        assert page.locator("#drawn, form, [data-say=card] img").count() == 0
        assert not [url for url in visits.requests if "evil.example" in url]
