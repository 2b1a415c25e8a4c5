"""The outermost layer: a request id, a trace, and an envelope for the unforeseen."""

import uuid
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sglang_omni.entrypoints.http.errors import error_response, public_error
from sglang_omni.entrypoints.http.paths import is_watched
from sglang_omni.entrypoints.http.request_body.reader import ClientGone
from sglang_omni.observability.refusals import parse_client_address
from sglang_omni.observability.trace import Trace, use_trace
from sglang_omni.observability.trace_recorder import TraceRecorder

UNMATCHED = "unmatched"


class RequestContextMiddleware:
    """ASGI layer around everything. Every response leaves with an `X-Request-Id`; a WebSocket has
    its id in `scope["state"]`, too. Each is traced, from here to its last byte."""

    def __init__(self, app: ASGIApp, observer: TraceRecorder) -> None:
        self._app, self._observer = app, observer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection; the lifespan of the application passes straight through."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request_id = uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        trace = self._observer.begin(request_id)
        trace.parent = Headers(scope=scope).get("traceparent")
        trace.client = parse_client_address(scope.get("client"))
        with use_trace(trace):
            try:
                await self._serve(scope, receive, _Sender(send, trace))
            finally:
                self._observer.end(trace, _route(scope), quiet=is_watched(scope["path"]))

    async def _serve(self, scope: Scope, receive: Receive, sender: "_Sender") -> None:
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

    def __init__(self, send: Send, trace: Trace) -> None:
        self._send = send
        self._trace = trace
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] in _STARTS:
            self.started = True
            self._trace.status = message.get("status", 101)
            MutableHeaders(scope=message)["X-Request-Id"] = self._trace.id
        try:
            await self._send(message)
        except OSError as error:
            # So ASGI tells that the client left. Sessions under way await it, handshakes do not.
            if message["type"] in _HANDSHAKE_ANSWERS:
                raise ClientGone from error
            raise


_HANDSHAKE_ANSWERS = (
    "websocket.accept",
    "websocket.http.response.start",
    "websocket.http.response.body",
)
_STARTS = ("http.response.start", "websocket.accept", "websocket.http.response.start")


def _route(scope: Scope) -> str:
    """The route as it was declared: what was asked for may be anything."""
    route: Any = scope.get("route")
    path = getattr(route, "path", UNMATCHED)
    return f"{scope.get('method', 'WS')} {path}"
