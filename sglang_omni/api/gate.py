"""The outermost layer: a request id, and an envelope for the unforeseen."""

import uuid

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sglang_omni.api.body import ClientGone
from sglang_omni.api.errors import error_response, public_error


class Gate:
    """ASGI layer around everything. Every response leaves with an `X-Request-Id`; a WebSocket has
    its id in `scope["state"]`, too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection; the lifespan of the application passes straight through."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request_id = uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        sender = _Sender(send, request_id)
        try:
            await self._app(scope, receive, sender)
        except ClientGone:
            return
        except Exception as error:
            known = public_error(error)
            if scope["type"] == "http" and not sender.started:
                await error_response(known)(scope, receive, sender)


class _Sender:
    """Adds the request id, and knows whether the response has begun."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] in _STARTS:
            self.started = True
            MutableHeaders(scope=message)["X-Request-Id"] = self._request_id
        await self._send(message)


_STARTS = ("http.response.start", "websocket.accept", "websocket.http.response.start")
