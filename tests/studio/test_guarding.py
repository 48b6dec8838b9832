"""Pages of elsewhere cannot use the studio, and its pages use nothing of elsewhere."""

import http.client
from collections.abc import Mapping

import pytest

from studio.conftest import Server, Visits
from undershoot.studio.guarding import POLICY

PLACES = ("/help", "/browser/style.css", "/no-such-page", "/_nicegui_ws/socket.io/?EIO=4&transport=polling")


def ask(server: Server, path: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", path, headers=dict(headers))
    answer = connection.getresponse()
    answer.read()
    return answer


@pytest.mark.parametrize("path", PLACES)
def test_every_answer_has_the_policy_and_strangers_get_none(path: str, server: Server) -> None:
    host = f"127.0.0.1:{server.port}"
    assert ask(server, path, {}).getheader("Content-Security-Policy") == POLICY
    assert ask(server, path, {"Origin": f"http://{host}"}).status == ask(server, path, {}).status
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{server.port + 1}", "http://[", ""):
        assert ask(server, path, {"Origin": origin}).status == 403, origin
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    upgrade |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": "http://evil.example"}
    assert ask(server, "/_nicegui_ws/socket.io/?EIO=4&transport=websocket", upgrade).status == 403


def test_reports_keep_a_policy_of_their_own(server: Server) -> None:
    report = server.runs / "with-a-policy" / "report"
    report.mkdir(parents=True)
    (report / "index.html").write_text("told")
    policy = ask(server, "/report/with-a-policy/index.html", {}).getheader("Content-Security-Policy") or ""
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "frame-ancestors 'self'" in policy


def test_a_browser_loads_nothing_of_elsewhere_even_if_a_page_asks(server: Server, visits: Visits) -> None:
    with visits.page(f"{server.address}/help") as page:
        before = len(visits.complaints)
        page.evaluate("document.body.append(Object.assign(new Image(), { src: 'http://evil.example/x.png' }))")
        page.wait_for_timeout(300)
        assert "img-src" in "".join(visits.complaints[before:])
        del visits.complaints[before:], visits.requests[-1:]
