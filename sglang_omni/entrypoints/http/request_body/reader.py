"""Middleware that reads the whole body of a request, within its limits, before it is parsed."""

import asyncio
import math
import time
from contextlib import suppress
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sglang_omni.entrypoints.http.errors import build_error_response
from sglang_omni.entrypoints.http.paths import is_monitoring_path
from sglang_omni.entrypoints.http.request_body.budget import BodyBudget, HeldBody
from sglang_omni.entrypoints.http.request_body.json_unicode import check_small_body
from sglang_omni.entrypoints.http.request_body.rate import BodyRate
from sglang_omni.entrypoints.http.request_metadata import TIMEOUT_HEADER, parse_timeout
from sglang_omni.protocol.errors import (
    DeadlineExceeded,
    InvalidRequest,
    RequestTimeout,
    RequestTooLarge,
)

# A body of at most this size is parsed on the event loop: a few milliseconds, even in the worst
# case (all brackets).
MAX_SMALL_BODY_BYTES = 64 << 10
# A larger body is kept in the request's state under this name, for the route to parse.
LARGE_BODY_KEY = "large_body"
FORM_TYPE = "multipart/form-data"


def get_offload_size(frame: str) -> int:
    """Return the size of a frame, or 0 if parsing it costs less than a switch of threads."""
    return len(frame) if len(frame) > MAX_SMALL_BODY_BYTES else 0


class ClientDisconnected(Exception):
    """The client disconnected before its request had arrived."""


@dataclass(frozen=True)
class BodyRules:
    """Limits on how bodies arrive.

    Attributes:
        min_rate: Bytes per second that a body must average over every `window_s` seconds.
        window_s: Length of that window in seconds.
        max_held_bytes: Total bytes of all bodies that are held at once.
        max_total_rate: Bytes per second that are read of all large bodies together.
        request_timeout_s: Seconds from the first byte of a request to its last; None for no limit.
    """

    min_rate: int = 1024
    window_s: float = 20.0
    max_held_bytes: int = 512 << 20
    max_total_rate: int = 128 << 20
    request_timeout_s: float | None = None


class BodyLimitMiddleware:
    """ASGI middleware that reads a body of at most `max_body_bytes` within `rules`.

    While the server drains, bodies of requests that will be rejected are not read.

    Raises:
        RequestTooLarge: The body has more than `max_body_bytes`.
        RequestTimeout: The body arrives too slowly.
        DeadlineExceeded: The body has not arrived by the deadline of the request.
        BodyCapacityReached: All bodies together exceed `rules.max_held_bytes`.
        ClientDisconnected: The client disconnected before the body was complete.
    """

    def __init__(
        self, app: ASGIApp, max_body_bytes: int, rules: BodyRules, draining: asyncio.Event
    ) -> None:
        self._app, self._max_body_bytes, self._rules = app, max_body_bytes, rules
        self._budget, self._draining = BodyBudget(rules.max_held_bytes), draining
        self._rate = BodyRate(rules.max_total_rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, then call the application. Connections other than HTTP pass through."""
        if scope["type"] != "http" or self._will_be_rejected(scope):
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})["request_timeout"] = self._rules.request_timeout_s
        with self._budget.hold(is_form=_is_form(scope)) as held_body:
            await self._read(scope, receive, held_body)
            if held_body.size_bytes > MAX_SMALL_BODY_BYTES:
                scope["state"][LARGE_BODY_KEY] = held_body
                await self._app(scope, _replay_in_slices(held_body, receive), send)
                return
            body = held_body.read(0, MAX_SMALL_BODY_BYTES)
            try:
                check_small_body(scope, body)
            except InvalidRequest as error:
                await build_error_response(error)(scope, receive, send)
                return
            await self._app(scope, _replay_once(body, receive), send)

    def _will_be_rejected(self, scope: Scope) -> bool:
        return self._draining.is_set() and not is_monitoring_path(scope["path"])

    async def _read(self, scope: Scope, receive: Receive, held_body: HeldBody) -> None:
        """Read the whole body into `held_body`."""
        self._check_size(_get_content_length(scope))
        remaining_s = _compute_remaining_s(scope, self._rules.request_timeout_s)
        arrival = _ArrivalTimer(self._rules, remaining_s)
        has_more = True
        while has_more:
            try:
                message = await arrival.receive(receive)
            except RequestTimeout:
                # A body that made room for others is told so, although it is now late as well.
                self._budget.check(held_body)
                raise
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            chunk = message.get("body", b"")
            self._budget.add(held_body, chunk)
            self._check_size(held_body.size_bytes)
            if held_body.size_bytes > MAX_SMALL_BODY_BYTES:
                await self._rate.wait(len(chunk))
            has_more = message.get("more_body", False)
        self._budget.mark_complete(held_body)

    def _check_size(self, num_bytes: int) -> None:
        if num_bytes > self._max_body_bytes:
            raise RequestTooLarge(f"the body is larger than {self._max_body_bytes} bytes")


class _ArrivalTimer:
    """Check of one body against the minimum rate, window by window, and its deadline."""

    def __init__(self, rules: BodyRules, timeout_s: float) -> None:
        """Allow `timeout_s` seconds for the whole body."""
        self._rules, self._started_at = rules, time.monotonic()
        self._deadline = self._started_at + timeout_s
        self._window_ends_at, self._window_bytes = self._started_at + rules.window_s, 0

    async def receive(self, receive: Receive) -> Message:
        """Return the next message. Raises `RequestTimeout` or `DeadlineExceeded`."""
        while True:
            timeout_s = min(self._window_ends_at, self._deadline) - time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, timeout_s)):
                    message = await receive()
                self._window_bytes += len(message.get("body", b""))
                if message.get("more_body", False):
                    self._check()
                return message
            self._check()

    def _check(self) -> None:
        """Check the deadline and, at the end of a window, the rate."""
        now, rules = time.monotonic(), self._rules
        if now >= self._deadline:
            elapsed_s = now - self._started_at
            raise DeadlineExceeded(f"the body had not arrived after {elapsed_s:.1f} s")
        if now < self._window_ends_at:
            return
        if self._window_bytes < rules.min_rate * rules.window_s:
            raise RequestTimeout(
                f"the body arrives too slowly: less than {rules.min_rate} bytes a second "
                f"for {rules.window_s:g} s"
            )
        self._window_ends_at, self._window_bytes = now + rules.window_s, 0


def _is_form(scope: Scope) -> bool:
    content_type = Headers(scope=scope).get("content-type", "")
    return content_type.lower().startswith(FORM_TYPE)


def _get_content_length(scope: Scope) -> int:
    """Return the Content-Length, or 0 if there is none."""
    content_length = Headers(scope=scope).get("content-length", "")
    return int(content_length) if content_length.isdecimal() else 0


def _compute_remaining_s(scope: Scope, request_timeout_s: float | None) -> float:
    """Return the seconds left for a body: the request's timeout less the time since it began."""
    limits = [math.inf if request_timeout_s is None else request_timeout_s]
    # The routes that use the header report an invalid one.
    with suppress(InvalidRequest):
        if (
            header_timeout_s := parse_timeout(Headers(scope=scope).get(TIMEOUT_HEADER))
        ) is not None:
            limits.append(header_timeout_s)
    now = time.monotonic()
    return min(limits) - (now - scope["state"].get("arrived_at", now))


def _replay_in_slices(held_body: HeldBody, receive: Receive) -> Receive:
    """Replay a large body in slices, unless it was taken, then pass on later messages."""
    position = 0
    is_exhausted = False

    async def replay() -> Message:
        nonlocal position, is_exhausted
        if is_exhausted:
            return await receive()
        body_slice = held_body.read(position, MAX_SMALL_BODY_BYTES)
        position += len(body_slice)
        is_exhausted = not body_slice or position >= held_body.size_bytes
        # A form is parsed slice by slice; let other tasks run in between.
        await asyncio.sleep(0)
        return {"type": "http.request", "body": body_slice, "more_body": not is_exhausted}

    return replay


def _replay_once(body: bytes, receive: Receive) -> Receive:
    """Replay the body once, then pass on later messages (the disconnect)."""
    unread = [body]

    async def replay() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return replay
