"""One connection from its greeting to its end: reading, writing and the time it may take."""

import asyncio
import time
from typing import Protocol

from sglang_omni.config.options import RealtimeOptions
from sglang_omni.entrypoints.realtime.error_event import put_error
from sglang_omni.entrypoints.realtime.event_sender import EventSender, MonotonicClock, SlowClient
from sglang_omni.entrypoints.realtime.session import RealtimeSession
from sglang_omni.protocol.errors import Draining, InvalidRequest, OmniError

# How long the last events of a session may take to leave.
FAREWELL_S = 2.0
NORMAL, GOING_AWAY, POLICY = 1000, 1001, 1008


class SessionExpired(InvalidRequest):
    """The session has lasted as long as it may, or nothing came for as long as may be."""

    code = "session_expired"


class ClientLeft(Exception):
    """The client closed the connection, or it broke."""


class Socket(Protocol):
    """A connection of text frames."""

    async def receive(self) -> str:
        """The next frame. Raises `ClientLeft`; `InvalidRequest` for a frame that is not text."""
        ...

    async def send(self, frame: str) -> None:
        """Send a frame; returns when the client takes it. Raises `ClientLeft`."""
        ...

    async def close(self, code: int, reason: str) -> None:
        """Close from this side."""
        ...


class SystemMonotonicClock:
    """The monotonic clock."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    async def sleep_until(self, moment: float) -> None:
        """Return once `now` has reached `moment`."""
        await asyncio.sleep(max(moment - self.now(), 0))


class Connection:
    """Runs a session over a socket. Nothing of it is left when `run` returns."""

    def __init__(
        self,
        socket: Socket,
        outbox: EventSender,
        session: RealtimeSession,
        options: RealtimeOptions,
        clock: MonotonicClock,
        draining: asyncio.Event,
    ) -> None:
        """Once `draining` is set, the session ends as soon as no response is under way."""
        self._draining = draining
        self._socket, self._outbox, self._session = socket, outbox, session
        self._options, self._clock = options, clock
        self._last_event_at = clock.now()

    async def run(self) -> None:
        """Serve until either side ends it. Raises only what no client can cause."""
        self._session.start()
        sending = self._outbox.run(self._socket.send)
        parts = [self._read(), sending, self._watch(), self._drain()]
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self._session.close()
        await self._end([error for task in done if (error := task.exception()) is not None])

    async def _read(self) -> None:
        while True:
            try:
                frame = await self._socket.receive()
            except InvalidRequest as error:
                put_error(self._outbox, error)
                continue
            self._last_event_at = self._clock.now()
            await self._session.handle(frame)
            # Who does not read is not listened to.
            await self._outbox.room()

    async def _watch(self) -> None:
        """Raises `SessionExpired` when the time is up."""
        options, begun_at = self._options, self._clock.now()
        ends_at = begun_at + options.max_seconds
        while True:
            idle_at = self._last_event_at + options.idle_seconds
            now = self._clock.now()
            if now >= ends_at:
                raise SessionExpired(f"a session lasts {options.max_seconds:g} s at most")
            if now >= idle_at:
                raise SessionExpired(f"no event came for {options.idle_seconds:g} s")
            await self._clock.sleep_until(min(ends_at, idle_at))

    async def _drain(self) -> None:
        """Raises `Draining` when the server ends and nobody is being answered."""
        await self._draining.wait()
        await self._session.until_idle()
        raise Draining("the server is shutting down; begin a new session")

    async def _end(self, errors: list[BaseException]) -> None:
        match errors:
            case [SessionExpired() | Draining() as error, *_]:
                await self._say_farewell(error)
                await self._socket.close(GOING_AWAY, error.code)
            case [SlowClient() as error, *_]:
                await self._socket.close(POLICY, error.code)
            case [ClientLeft(), *_]:
                return
            case [error, *_]:
                raise error

    async def _say_farewell(self, error: OmniError) -> None:
        put_error(self._outbox, error)
        try:
            async with asyncio.timeout(FAREWELL_S):
                await self._outbox.flush(self._socket.send)
        except (TimeoutError, SlowClient, ClientLeft):
            return
