"""Middleware that serves HEAD on every GET route: same status and headers, no body."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadMiddleware:
    """ASGI middleware that serves HEAD as GET and drops the body.

    It is the outermost middleware, so that nothing else handles HEAD: routes declare only GET, and
    access rules and metrics see a GET.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection. Anything but HEAD passes through."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        # Copy the scope: the web server must still see HEAD, so that it sends no body.
        await self._app({**scope, "method": "GET"}, receive, send_head)
