"""Middleware for a graceful shutdown: reject new requests, and let running ones finish."""

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from sglang_omni.entrypoints.http.middleware.send_error import send_error
from sglang_omni.entrypoints.http.paths import is_monitoring_path
from sglang_omni.protocol.errors import Draining


class InFlight:
    """Counter of the requests and WebSockets in flight. Used by the event loop only."""

    def __init__(self) -> None:
        self.count = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __enter__(self) -> "InFlight":
        self.count += 1
        self._idle.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self.count -= 1
        if not self.count:
            self._idle.set()

    async def wait_idle(self) -> None:
        """Wait until nothing is in flight."""
        await self._idle.wait()


class DrainMiddleware:
    """ASGI middleware that rejects new work once `draining` is set, and counts work in flight.

    Monitoring routes (health, metrics) are always served. A rejected connection is closed, so that
    a proxy sends its next request to another server.
    """

    def __init__(self, app: ASGIApp, draining: asyncio.Event, in_flight: InFlight) -> None:
        self._app, self._draining, self._in_flight = app, draining, in_flight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, or reject it with 503."""
        if scope["type"] == "lifespan" or is_monitoring_path(scope["path"]):
            await self._app(scope, receive, send)
        elif self._draining.is_set():
            error = Draining("the server is shutting down")
            await send_error(error, scope, receive, send, {"Connection": "close"})
        else:
            with self._in_flight:
                await self._app(scope, receive, send)
