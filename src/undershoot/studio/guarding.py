"""What every answer tells the browser to refuse, and whose requests are answered at all."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = "; ".join(
    (
        "default-src 'self'",
        # NiceGUI begins each page with a script in it, and evaluates the handlers that the server sends.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "form-action 'none'",
        "base-uri 'self'",
        "frame-ancestors 'self'",
    )
)
"""Nothing is loaded from elsewhere or sent there, and no page of elsewhere holds one of these."""


class Guard:
    """Around the whole studio: refuses requests that pages of elsewhere make, and adds the policy to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)

        async def guarded(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", POLICY)
                headers.setdefault("X-Content-Type-Options", "nosniff")
            await send(message)

        if is_from_elsewhere(Headers(scope=scope)):
            refusal = PlainTextResponse("pages of other addresses are not answered here", status_code=403)
            return await refusal(scope, receive, guarded)
        return await self.app(scope, receive, guarded)


def is_from_elsewhere(headers: Headers) -> bool:
    """Whether a browser says that the page that asks has another address than the one that it asks."""
    origins = headers.getlist("origin")
    try:
        return any(urlsplit(origin).netloc.lower() != headers.get("host", "").lower() for origin in origins)
    except ValueError:
        return True
