"""The limits of each key over HTTP: requests counted before their bodies are read."""

import math

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sglang_omni.admission.rate_limit.bucket import RateStatus
from sglang_omni.admission.rate_limit.limiter import RateLimiter
from sglang_omni.entrypoints.http.middleware.send_error import send_error
from sglang_omni.entrypoints.http.paths import is_watched
from sglang_omni.protocol.errors import RateLimited

# What only looks costs no engine anything.
UNCOUNTED_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
LIMIT_HEADERS = tuple(
    f"x-ratelimit-{field}-{kind}"
    for kind in ("requests", "tokens")
    for field in ("limit", "remaining", "reset")
)
_STARTS = frozenset({"http.response.start", "websocket.accept", "websocket.http.response.start"})


class RateLimitMiddleware:
    """ASGI middleware that holds each key to its limits, and tells it in headers what is left.

    It stands behind the check of keys and in front of whatever reads bodies. A WebSocket's
    handshake counts as a request.
    """

    def __init__(self, app: ASGIApp, limiter: RateLimiter) -> None:
        self._app, self._limiter = app, limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, or refuse it with 429."""
        if not is_counted(scope):
            await self._app(scope, receive, send)
            return
        key: str | None = scope["state"]["tenant"]

        async def send_with_limits(message: Message) -> None:
            if message["type"] in _STARTS:
                MutableHeaders(scope=message).update(limit_headers(self._limiter.status(key)))
            await send(message)

        is_session = scope["type"] == "websocket"
        begin = self._limiter.begin_session if is_session else self._limiter.begin_request
        try:
            end = begin(key)
        except RateLimited as error:
            await send_error(error, scope, receive, send_with_limits)
            return
        self._limiter.tell_task(key)
        try:
            await self._app(scope, receive, send_with_limits)
        finally:
            end()


def is_counted(scope: Scope) -> bool:
    """Return whether limits hold for a connection: for whatever may cost work."""
    if scope["type"] == "websocket":
        return True
    if scope["type"] != "http" or scope["method"] in UNCOUNTED_METHODS:
        return False
    return not is_watched(scope["path"])


def limit_headers(statuses: dict[str, RateStatus]) -> dict[str, str]:
    """Return OpenAI's headers for what is left."""
    headers: dict[str, str] = {}
    for kind, status in statuses.items():
        headers[f"x-ratelimit-limit-{kind}"] = str(status.limit)
        headers[f"x-ratelimit-remaining-{kind}"] = str(status.remaining)
        headers[f"x-ratelimit-reset-{kind}"] = duration_text(status.reset_s)
    return headers


def duration_text(seconds: float) -> str:
    """Return a duration as OpenAI's headers have it: `17ms`, `1s`, `8.64s`, `6m0s`, `1h0m0s`."""
    milliseconds = math.ceil(1000 * seconds)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes_left = divmod(minutes, 60)
    text = f"{rest / 1000:g}s"
    if hours:
        return f"{hours}h{minutes_left}m{text}"
    return f"{minutes}m{text}" if minutes else text
