"""Middleware that gives each request an id and a trace, and handles unexpected errors."""

import re
import uuid
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sglang_omni.entrypoints.http.errors import build_error_response, to_public_error
from sglang_omni.entrypoints.http.paths import is_monitoring_path
from sglang_omni.entrypoints.http.request_body.ignored_fields import (
    IGNORED_FIELDS_HEADER,
    format_ignored_fields,
    get_ignored_fields,
)
from sglang_omni.entrypoints.http.request_body.reader import ClientDisconnected
from sglang_omni.observability.refusals import parse_client_address
from sglang_omni.observability.trace import Trace, use_trace
from sglang_omni.observability.trace_recorder import TraceRecorder

UNMATCHED_ROUTE = "unmatched"
REQUEST_ID_HEADER = "X-Request-Id"
_GIVEN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
"""What a caller's id may be: it stands in logs, headers and paths."""


def parse_given_id(header: str | None) -> str | None:
    """Return the id that a caller gave its request; None for one that is no plain word."""
    return header if header and _GIVEN_ID.fullmatch(header) else None


class RequestContextMiddleware:
    """ASGI middleware around all others but `HeadMiddleware`.

    It traces each request up to the last byte of its response. Every response has an `X-Request-Id`
    header: the caller's own if it sent one, else the `request_id` in `scope["state"]`, which is
    never another request's. Fields of the request that had no effect are
    listed in `X-Ignored-Fields`.
    """

    def __init__(self, app: ASGIApp, recorder: TraceRecorder) -> None:
        self._app, self._recorder = app, recorder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection. Lifespan events of the application pass through."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request_id = uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        headers = Headers(scope=scope)
        trace = self._recorder.begin(request_id, parse_given_id(headers.get(REQUEST_ID_HEADER)))
        trace.parent = headers.get("traceparent")
        trace.client = parse_client_address(scope.get("client"))
        with use_trace(trace):
            try:
                await self._serve(scope, receive, _Sender(send, trace, scope))
            finally:
                self._recorder.end(
                    trace, _get_route(scope), quiet=is_monitoring_path(scope["path"])
                )

    async def _serve(self, scope: Scope, receive: Receive, sender: "_Sender") -> None:
        try:
            await self._app(scope, receive, sender)
        except ClientDisconnected:
            return
        except Exception as error:
            public_error = to_public_error(error)
            if scope["type"] == "http" and not sender.has_started:
                await build_error_response(public_error)(scope, receive, sender)


class _Sender:
    """ASGI send function that adds headers and notes whether the response has started.

    The headers are the request's id and, if there are any, its fields without effect.
    """

    def __init__(self, send: Send, trace: Trace, scope: Scope) -> None:
        self._send, self._scope = send, scope
        self._trace = trace
        self.has_started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] in _RESPONSE_STARTS:
            self.has_started = True
            self._trace.status = message.get("status", 101)
            headers = MutableHeaders(scope=message)
            headers[REQUEST_ID_HEADER] = self._trace.shown_id
            if ignored := get_ignored_fields(self._scope):
                headers[IGNORED_FIELDS_HEADER] = format_ignored_fields(ignored)
        try:
            await self._send(message)
        except OSError as error:
            # ASGI signals a disconnect this way. Running sessions handle it, handshakes do not.
            if message["type"] in _HANDSHAKE_RESPONSES:
                raise ClientDisconnected from error
            raise


_HANDSHAKE_RESPONSES = (
    "websocket.accept",
    "websocket.http.response.start",
    "websocket.http.response.body",
)
_RESPONSE_STARTS = ("http.response.start", "websocket.accept", "websocket.http.response.start")


def _get_route(scope: Scope) -> str:
    """Return the method and the declared path; the requested path could have any value."""
    route: Any = scope.get("route")
    path = getattr(route, "path", UNMATCHED_ROUTE)
    return f"{scope.get('method', 'WS')} {path}"
