"""Supervision: an engine that is started, watched, restarted when it dies, and stopped."""

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from sglang_omni.engines.runtime.engine_connection import EngineConnection, ProcessSpec
from sglang_omni.protocol.errors import EngineUnavailable, StartupError

__all__ = [
    "Engine",
    "EngineHealth",
    "EngineProcess",
    "EngineState",
    "ProcessSpec",
    "next_delay",
    "pause_before_start",
]

LOGGER = logging.getLogger(__name__)

EngineState = Literal["starting", "ready", "unresponsive", "restarting", "failed", "stopped"]

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0
HEALTHY_S = 60.0


class Engine(Protocol):
    """An engine as its callers use it."""

    def submit(self, request: Any) -> AsyncGenerator[Any, None]:
        """Outputs of one request; closing the generator aborts it."""


@dataclass(frozen=True)
class EngineHealth:
    """A snapshot of an engine.

    `failed` means that the first start failed: nothing is tried any more. After a first success an
    engine is `restarting` for as long as it takes. One that has been silent for seconds is
    `unresponsive` until it is heard again, or taken for dead. `since` is when the state began,
    seconds since the epoch; a silence leaves it alone. `counters` are at most half a second old,
    and little more than a second where nothing is in flight. `info` is what the engine said when it
    was last ready, None before. `progress` is what its factory last said it was doing. `error` is
    why the engine is down, None while it is up. `last_error` is why it last died or did not start,
    and `last_error_at` when, seconds since the epoch; None if it never did. `pid` is None while
    there is no process.
    """

    state: EngineState
    pid: int | None
    since: float
    restarts: int
    counters: Mapping[str, float]
    info: Any
    progress: str
    error: str | None
    last_error: str | None
    last_error_at: float | None


def next_delay(previous: float, healthy_s: float) -> float:
    """Return the least seconds from one start to the next: doubling, until a life lasted
    `HEALTHY_S`.

    `previous` is the delay before the life that just ended, 0 for the first.
    """
    if previous == 0 or healthy_s >= HEALTHY_S:
        return FIRST_DELAY_S
    return min(previous * 2, LONGEST_DELAY_S)


def pause_before_start(delay_s: float, since_start_s: float) -> float:
    """Return the seconds to wait with a restart, `since_start_s` after the last start began.

    What is to be spared is the machine, from one start after the other. So an engine that took its
    time to start is not kept away for longer, however often it was killed.
    """
    return max(min(FIRST_DELAY_S, delay_s), delay_s - since_start_s)


class EngineProcess:
    """An engine in a process of its own; the one interface the pipeline uses."""

    def __init__(self, spec: ProcessSpec) -> None:
        self.spec = spec
        self._ids = itertools.count(1)
        self._state: EngineState = "stopped"
        self._since = time.time()
        self._restarts = 0
        self._delay_s = 0.0
        self._started_at = 0.0
        self._info: Any = None
        self._last_error: str | None = None
        self._last_error_at: float | None = None
        self._session: EngineConnection | None = None
        self._supervisor: asyncio.Task[None] | None = None

    @property
    def health(self) -> EngineHealth:
        """How the engine is now."""
        session = self._session
        silent = self._state == "ready" and session is not None and session.unresponsive
        return EngineHealth(
            state="unresponsive" if silent else self._state,
            pid=self.pid,
            since=self._since,
            restarts=self._restarts,
            counters=session.counters if session else {},
            info=self._info,
            progress=session.progress if session else "",
            error=None if self._state in ("ready", "stopped") else self._last_error,
            last_error=self._last_error,
            last_error_at=self._last_error_at,
        )

    @property
    def in_flight(self) -> int:
        """The number of requests the engine works on."""
        return self._session.in_flight if self._session else 0

    @property
    def pid(self) -> int | None:
        """The process id of the engine, None if there is no process."""
        return self._session.pid if self._session else None

    async def start(self) -> None:
        """Start the engine and wait until it is ready.

        Raises `StartupError` with the reason the engine gave, or else with its last lines, and
        where all of its output is; no process is left then.
        """
        self._enter("starting")
        try:
            await self._launch()
        except StartupError as error:
            self._note(error.message)
            if self._state == "starting":
                self._enter("failed")
            raise
        self._supervisor = asyncio.create_task(self._supervise())

    def submit(self, request: Any) -> AsyncGenerator[Any, None]:
        """Return the outputs of a request, to be iterated up to the one with `last` set.

        The request is sent on the first iteration. Closing the iterator, or cancelling the task
        that waits on it, cancels the request in the engine at once; use `contextlib.aclosing`
        wherever the iteration can end early.

        Raises `EngineUnavailable` if the engine is not ready, `Overloaded` if it has its fill of
        requests, `EngineFailed` if it dies meanwhile, or the error the worker ended the request
        with.
        """
        if self._session is None or self._state != "ready":
            raise EngineUnavailable(f"{self.spec.name} is {self._state}")
        return self._session.run(f"{self.spec.name}-{next(self._ids)}", request)

    def profile(self, folder: str | None) -> None:
        """Have the engine profiled, or with None stop that and write what was seen to the folder.

        Raises `EngineUnavailable` if it is not ready.
        """
        if self._session is None or self._state != "ready":
            raise EngineUnavailable(f"{self.spec.name} is {self._state}")
        self._session.profile(folder)

    async def stop(self, deadline_s: float = 10.0) -> None:
        """Stop the engine; whatever is left of it after `deadline_s` is killed."""
        self._enter("stopped")
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait({self._supervisor})
            self._supervisor = None
        if self._session is not None:
            await self._session.stop(deadline_s)
            self._session = None

    async def _launch(self) -> None:
        self._session = None
        self._started_at = time.monotonic()
        self._session = EngineConnection(self.spec)
        try:
            await self._session.open()
        except BaseException:
            self._session = None
            raise
        self._info = self._session.info
        self._enter("ready")

    async def _supervise(self) -> None:
        while self._session is not None:
            session, ready_at = self._session, time.monotonic()
            await session.lost.wait()
            self._enter("restarting")
            reason = await session.ended()
            self._note(reason)
            LOGGER.error("%s %s%s", self.spec.name, reason, session.last_words)
            await self._restart(time.monotonic() - ready_at)

    async def _restart(self, healthy_s: float) -> None:
        while self._state != "ready":
            self._delay_s = min(next_delay(self._delay_s, healthy_s), self.spec.longest_delay_s)
            pause_s = pause_before_start(self._delay_s, time.monotonic() - self._started_at)
            LOGGER.warning("%s restarts in %.3g s", self.spec.name, pause_s)
            await asyncio.sleep(pause_s)
            self._restarts += 1
            healthy_s = 0.0
            try:
                await self._launch()
            except StartupError as error:
                self._note(error.message)
                LOGGER.error("%s", error.message)

    def _note(self, error: str) -> None:
        self._last_error, self._last_error_at = error, time.time()

    def _enter(self, state: EngineState) -> None:
        self._state = state
        self._since = time.time()
