"""The body of a request, read whole and within its limits before anything parses it."""

import asyncio
import math
import time
from contextlib import suppress
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sglang_omni.entrypoints.http.errors import error_response
from sglang_omni.entrypoints.http.paths import is_watched
from sglang_omni.entrypoints.http.request_body.budget import BodyBudget, HeldBody
from sglang_omni.entrypoints.http.request_body.rate import BodyRate
from sglang_omni.entrypoints.http.request_metadata import TIMEOUT_HEADER, timeout_of
from sglang_omni.entrypoints.unicode import check_json_body
from sglang_omni.protocol.errors import (
    DeadlineExceeded,
    InvalidRequest,
    RequestTimeout,
    RequestTooLarge,
)

# A body of at most so many bytes is parsed where it is needed: that takes a few milliseconds, even
# where it is all brackets. A larger one is left to its route, which finds it under this name in the
# request's state.
SMALL_BYTES = 64 << 10
LARGE_BODY = "large_body"


def frame_size(frame: str) -> int:
    """Return the size of a frame as work, 0 for one that costs less than a change of threads."""
    return len(frame) if len(frame) > SMALL_BYTES else 0


class ClientGone(Exception):
    """The client went away before its request had arrived."""


@dataclass(frozen=True)
class BodyRules:
    """How bodies must arrive: at least `min_rate` bytes a second on average over every `window_s`
    seconds, all that are held within `max_held_bytes`, and `max_total_rate` bytes a second of all
    large ones. `request_timeout_s` bounds a request from its first byte to its last; None does not.
    """

    min_rate: int = 1024
    window_s: float = 20.0
    max_held_bytes: int = 512 << 20
    max_total_rate: int = 128 << 20
    request_timeout_s: float | None = None


class BodyLimit:
    """ASGI layer that reads a body of at most `max_body_bytes`, as `rules` have it.

    Raises `RequestTooLarge`, `RequestTimeout` for one that arrives too slowly, `DeadlineExceeded`
    for one that has not arrived when its request must be done, `BodyCapacityReached`, and
    `ClientGone` for a client that did not stay to send it. While the server drains, bodies of
    requests that will be refused are not read.
    """

    def __init__(
        self, app: ASGIApp, max_body_bytes: int, rules: BodyRules, draining: asyncio.Event
    ) -> None:
        self._app, self._max_body_bytes, self._rules = app, max_body_bytes, rules
        self._budget, self._draining = BodyBudget(rules.max_held_bytes), draining
        self._rate = BodyRate(rules.max_total_rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, then serve; anything but HTTP passes straight through."""
        if scope["type"] != "http" or self._will_be_refused(scope):
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})["request_timeout"] = self._rules.request_timeout_s
        with self._budget.hold() as held:
            await self._read(scope, receive, held)
            if held.size > SMALL_BYTES:
                scope["state"][LARGE_BODY] = held
                await self._app(scope, _replay_slices(held, receive), send)
                return
            body = bytes(held.take())
            try:
                check_json_body(scope, body)
            except InvalidRequest as error:
                await error_response(error)(scope, receive, send)
                return
            await self._app(scope, _replay(body, receive), send)

    def _will_be_refused(self, scope: Scope) -> bool:
        return self._draining.is_set() and not is_watched(scope["path"])

    async def _read(self, scope: Scope, receive: Receive, held: HeldBody) -> None:
        """Read the whole body."""
        self._check_size(_declared_size(scope))
        pace = _Pace(self._rules, _seconds_left(scope, self._rules.request_timeout_s))
        more = True
        while more:
            message = await pace.receive(receive)
            if message["type"] == "http.disconnect":
                raise ClientGone
            piece = message.get("body", b"")
            self._budget.add(held, piece)
            self._check_size(held.size)
            if held.size > SMALL_BYTES:
                await self._rate.wait(len(piece))
            more = message.get("more_body", False)
        self._budget.finish(held)

    def _check_size(self, size: int) -> None:
        if size > self._max_body_bytes:
            raise RequestTooLarge(f"the body is larger than {self._max_body_bytes} bytes")


class _Pace:
    """Holds one body to the least rate, window by window, and to its deadline."""

    def __init__(self, rules: BodyRules, seconds: float) -> None:
        """`seconds` are left for the whole body."""
        self._rules, self._started_at = rules, time.monotonic()
        self._deadline = self._started_at + seconds
        self._window_ends, self._window_bytes = self._started_at + rules.window_s, 0

    async def receive(self, receive: Receive) -> Message:
        """Return the next message. Raises `RequestTimeout` and `DeadlineExceeded`."""
        while True:
            seconds = min(self._window_ends, self._deadline) - time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, seconds)):
                    message = await receive()
                self._window_bytes += len(message.get("body", b""))
                if message.get("more_body", False):
                    self._check()
                return message
            self._check()

    def _check(self) -> None:
        """Look whether it is too late; at the end of a window, whether it has brought enough."""
        now, rules = time.monotonic(), self._rules
        if now >= self._deadline:
            seconds = now - self._started_at
            raise DeadlineExceeded(f"the body had not arrived after {seconds:.1f} s")
        if now < self._window_ends:
            return
        if self._window_bytes < rules.min_rate * rules.window_s:
            raise RequestTimeout(
                f"the body arrives too slowly: less than {rules.min_rate} bytes a second "
                f"for {rules.window_s:g} s"
            )
        self._window_ends, self._window_bytes = now + rules.window_s, 0


def _declared_size(scope: Scope) -> int:
    """Return the size that the headers announce, 0 if none."""
    declared = Headers(scope=scope).get("content-length", "")
    return int(declared) if declared.isdecimal() else 0


def _seconds_left(scope: Scope, request_timeout_s: float | None) -> float:
    """Return how long a body may take: its request's time, less what its head took."""
    limits = [math.inf if request_timeout_s is None else request_timeout_s]
    # The routes that heed the header refuse an unusable one by name, once they see it.
    with suppress(InvalidRequest):
        if (asked := timeout_of(Headers(scope=scope).get(TIMEOUT_HEADER))) is not None:
            limits.append(asked)
    now = time.monotonic()
    return min(limits) - (now - scope["state"].get("arrived_at", now))


def _replay_slices(held: HeldBody, receive: Receive) -> Receive:
    """Give a large body slice by slice, unless it has been taken, then whatever comes after it."""
    place = 0
    is_given = False

    async def replay() -> Message:
        nonlocal place, is_given
        if is_given:
            return await receive()
        piece = bytes(held.data[place : place + SMALL_BYTES])
        place += len(piece)
        is_given = place >= len(held.data)
        # A form is parsed piece by piece: others have their turn in between.
        await asyncio.sleep(0)
        return {"type": "http.request", "body": piece, "more_body": not is_given}

    return replay


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give the body once, then whatever comes after it (that is, the disconnect)."""
    unread = [body]

    async def replay() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return replay
