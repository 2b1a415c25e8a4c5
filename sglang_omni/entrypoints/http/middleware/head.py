"""HEAD on every GET route: the same status and headers, without the body."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadMiddleware:
    """ASGI middleware that serves HEAD as GET and drops the body.

    It is the outermost, so that nothing behind it has to know HEAD: not the routes, which declare
    GET alone, not the access rules, not the metrics, which count it as the GET that it is.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection; anything but HEAD passes straight through."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        # A copy: the web server still has to know that no body follows the headers.
        await self._app({**scope, "method": "GET"}, receive, send_head)
