"""The body of a request, read whole and within its limit before anything parses it."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sglang_omni.api.errors import error_response
from sglang_omni.api.unicode import check_json_body
from sglang_omni.errors import InvalidRequest, RequestTooLarge


class ClientGone(Exception):
    """The client went away before its request had arrived."""


class BodyLimit:
    """ASGI layer that refuses a body of more than `max_body_bytes`, and JSON with text that is no
    Unicode.

    Raises `RequestTooLarge`, and `ClientGone` for a client that did not stay to send it.
    """

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app, self._max_body_bytes = app, max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, then serve; anything but HTTP passes straight through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = await _read_body(receive, self._max_body_bytes)
        try:
            check_json_body(scope, body)
        except InvalidRequest as error:
            await error_response(error)(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)


async def _read_body(receive: Receive, limit: int) -> bytes:
    """The whole body. Raises `RequestTooLarge` as soon as it has grown too large."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise RequestTooLarge(f"the body is larger than {limit} bytes")
        more = message.get("more_body", False)
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give the body once, then whatever comes after it (that is, the disconnect)."""
    unread = [body]

    async def replay() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return replay
