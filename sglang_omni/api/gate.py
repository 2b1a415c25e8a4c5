"""The outermost layer: a request id, a bounded body, and an envelope for the unforeseen."""

import uuid

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sglang_omni.api.errors import error_response, public_error
from sglang_omni.errors import RequestTooLarge


class ClientGone(Exception):
    """The client went away before its request had arrived."""


class Gate:
    """ASGI layer around the app. Every response leaves with an `X-Request-Id`; a body of more
    than `max_body_bytes` is refused before it is parsed."""

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app, self._max_body_bytes = app, max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection; anything but HTTP passes straight through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        sender = _Sender(send, request_id)
        try:
            body = await _read_body(receive, self._max_body_bytes)
            await self._app(scope, _replay(body, receive), sender)
        except ClientGone:
            return
        except Exception as error:
            known = public_error(error)
            if not sender.started:
                await error_response(known)(scope, receive, sender)


class _Sender:
    """Adds the request id, and knows whether the response has begun."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            MutableHeaders(scope=message)["X-Request-Id"] = self._request_id
        await self._send(message)


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
