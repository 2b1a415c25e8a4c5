"""Middleware for the rate limits of each key. Requests count before their bodies are read."""

import math

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sglang_omni.admission.rate_limit.bucket import RateStatus
from sglang_omni.admission.rate_limit.limiter import RateLimiter
from sglang_omni.entrypoints.http.middleware.send_error import send_error
from sglang_omni.entrypoints.http.paths import is_monitoring_path
from sglang_omni.protocol.errors import RateLimited

# Requests that only read do not use an engine.
UNCOUNTED_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
LIMIT_HEADERS = tuple(
    f"x-ratelimit-{field}-{kind}"
    for kind in ("requests", "tokens")
    for field in ("limit", "remaining", "reset")
)
_RESPONSE_STARTS = frozenset(
    {"http.response.start", "websocket.accept", "websocket.http.response.start"}
)


class RateLimitMiddleware:
    """ASGI middleware that enforces each key's limits and reports what remains in headers.

    It runs after `AuthMiddleware` and before the body is read. A WebSocket handshake counts as a
    request.
    """

    def __init__(self, app: ASGIApp, limiter: RateLimiter) -> None:
        self._app, self._limiter = app, limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, or reject it with 429."""
        if not is_rate_limited(scope):
            await self._app(scope, receive, send)
            return
        key: str | None = scope["state"]["tenant"]

        async def send_with_limits(message: Message) -> None:
            if message["type"] in _RESPONSE_STARTS:
                MutableHeaders(scope=message).update(build_limit_headers(self._limiter.status(key)))
            await send(message)

        is_session = scope["type"] == "websocket"
        begin = self._limiter.begin_session if is_session else self._limiter.begin_request
        try:
            end = begin(key)
        except RateLimited as error:
            await send_error(error, scope, receive, send_with_limits)
            return
        self._limiter.bind_to_task(key)
        try:
            await self._app(scope, receive, send_with_limits)
        finally:
            end()


def is_rate_limited(scope: Scope) -> bool:
    """Return whether rate limits apply to a connection: whether it may use an engine."""
    if scope["type"] == "websocket":
        return True
    if scope["type"] != "http" or scope["method"] in UNCOUNTED_METHODS:
        return False
    return not is_monitoring_path(scope["path"])


def build_limit_headers(statuses: dict[str, RateStatus]) -> dict[str, str]:
    """Return OpenAI's rate limit headers for `statuses`, by kind of limit."""
    headers: dict[str, str] = {}
    for kind, status in statuses.items():
        headers[f"x-ratelimit-limit-{kind}"] = str(status.limit)
        headers[f"x-ratelimit-remaining-{kind}"] = str(status.remaining)
        headers[f"x-ratelimit-reset-{kind}"] = format_duration(status.reset_s)
    return headers


def format_duration(seconds: float) -> str:
    """Format a duration like OpenAI's headers: `17ms`, `1s`, `8.64s`, `6m0s`, `1h0m0s`."""
    milliseconds = math.ceil(1000 * seconds)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    total_minutes, remaining_ms = divmod(milliseconds, 60_000)
    hours, minutes = divmod(total_minutes, 60)
    text = f"{remaining_ms / 1000:g}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
