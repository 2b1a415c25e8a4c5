"""Runs one Realtime connection: receiving, sending, time limits and closing."""

import asyncio
import time
from typing import Protocol

from sglang_omni.config.realtime_options import RealtimeOptions
from sglang_omni.entrypoints.realtime.error_event import put_error
from sglang_omni.entrypoints.realtime.event_sender import EventSender, MonotonicClock, SlowClient
from sglang_omni.entrypoints.realtime.session import RealtimeSession
from sglang_omni.protocol.errors import Draining, InvalidRequest, OmniError

# Time limit for sending the last events of a session, in seconds.
FINAL_ERROR_TIMEOUT_S = 2.0
NORMAL, GOING_AWAY, POLICY = 1000, 1001, 1008


class SessionExpired(InvalidRequest):
    """The session reached its maximum duration or its idle timeout."""

    code = "session_expired"


class ClientLeft(Exception):
    """The client closed the connection, or it broke."""


class Socket(Protocol):
    """A connection that carries text frames."""

    async def receive(self) -> str:
        """Return the next frame.

        Raises:
            ClientLeft: The connection is closed.
            InvalidRequest: The frame is not text.
        """
        ...

    async def send(self, frame: str) -> None:
        """Send a frame. Return when the client accepts it. Raises `ClientLeft`."""
        ...

    async def close(self, code: int, reason: str) -> None:
        """Close the connection from the server's side."""
        ...


class SystemMonotonicClock:
    """The monotonic clock."""

    def now(self) -> float:
        """Return the time in seconds since an arbitrary start."""
        return time.monotonic()

    async def sleep_until(self, deadline: float) -> None:
        """Return once `now` has reached `deadline`."""
        await asyncio.sleep(max(deadline - self.now(), 0))


class Connection:
    """Runs a session over a socket. When `run` returns, every task of it has ended."""

    def __init__(
        self,
        socket: Socket,
        sender: EventSender,
        session: RealtimeSession,
        options: RealtimeOptions,
        clock: MonotonicClock,
        draining: asyncio.Event,
    ) -> None:
        """Create a connection. Once `draining` is set, it ends after the active response."""
        self._draining = draining
        self._socket, self._sender, self._session = socket, sender, session
        self._options, self._clock = options, clock
        self._last_event_at = clock.now()

    async def run(self) -> None:
        """Serve until either side ends the connection. Raises only errors of the server itself."""
        self._session.start()
        coroutines = [
            self._receive_events(),
            self._sender.run(self._socket.send),
            self._enforce_time_limits(),
            self._wait_for_drain(),
        ]
        tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self._session.close()
        await self._close([error for task in done if (error := task.exception()) is not None])

    async def _receive_events(self) -> None:
        while True:
            try:
                frame = await self._socket.receive()
            except InvalidRequest as error:
                put_error(self._sender, error)
                continue
            self._last_event_at = self._clock.now()
            await self._session.handle(frame)
            # Back-pressure: pause reads until the output drains.
            await self._sender.wait_for_room()

    async def _enforce_time_limits(self) -> None:
        """Raise `SessionExpired` at the maximum duration or the idle timeout."""
        options = self._options
        ends_at = self._clock.now() + options.max_seconds
        while True:
            idle_at = self._last_event_at + options.idle_seconds
            now = self._clock.now()
            if now >= ends_at:
                raise SessionExpired(
                    f"the session reached its maximum of {options.max_seconds:g} s; "
                    "open a new session"
                )
            if now >= idle_at:
                raise SessionExpired(
                    f"no event was received for {options.idle_seconds:g} s; open a new session"
                )
            await self._clock.sleep_until(min(ends_at, idle_at))

    async def _wait_for_drain(self) -> None:
        """Raise `Draining` when the server shuts down and no response is active."""
        await self._draining.wait()
        await self._session.wait_until_idle()
        raise Draining("the server is shutting down; open a new session")

    async def _close(self, errors: list[BaseException]) -> None:
        match errors:
            case [SessionExpired() | Draining() as error, *_]:
                await self._send_final_error(error)
                await self._socket.close(GOING_AWAY, error.code)
            case [SlowClient() as error, *_]:
                await self._socket.close(POLICY, error.code)
            case [ClientLeft(), *_]:
                return
            case [error, *_]:
                raise error

    async def _send_final_error(self, error: OmniError) -> None:
        put_error(self._sender, error)
        try:
            async with asyncio.timeout(FINAL_ERROR_TIMEOUT_S):
                await self._sender.flush(self._socket.send)
        except (TimeoutError, SlowClient, ClientLeft):
            return
