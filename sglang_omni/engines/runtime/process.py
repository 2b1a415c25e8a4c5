"""Supervision of an engine process: start, health, restart after a death, stop."""

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from sglang_omni.engines.runtime.engine_connection import EngineConnection, ProcessSpec
from sglang_omni.engines.runtime.engine_group import EngineGroup
from sglang_omni.engines.runtime.start_phases import StartPhase
from sglang_omni.protocol.errors import EngineUnavailable, StartupError

__all__ = [
    "Engine",
    "EngineHealth",
    "EngineProcess",
    "EngineState",
    "ProcessSpec",
    "compute_restart_delay",
    "compute_restart_pause",
]

LOGGER = logging.getLogger(__name__)

EngineState = Literal[
    "starting", "ready", "unresponsive", "restarting", "failed", "stopped", "draining", "standby"
]

MIN_RESTART_DELAY_S = 0.5
MAX_RESTART_DELAY_S = 30.0
HEALTHY_UPTIME_S = 60.0


class Engine(Protocol):
    """The interface of an engine for its callers."""

    def submit(self, request: Any) -> AsyncGenerator[Any, None]:
        """Return the outputs of one request. Closing the generator aborts the request."""


@dataclass(frozen=True)
class EngineHealth:
    """A snapshot of an engine's health.

    Attributes:
        state: `failed` means that the first start failed and nothing is tried any more. After a
            first success an engine is `restarting` for as long as a restart takes. An engine
            without heartbeats for seconds is `unresponsive` until a heartbeat arrives or it is
            considered dead. Only a replica of a pool is `draining` or on `standby`.
        pid: The process id; None while there is no process.
        since: When the state began, in seconds since the epoch. `unresponsive` does not change it.
        restarts: The number of restarts.
        counters: At most half a second old; little more than a second when idle.
        info: What the engine reported when it was last ready; None before.
        progress: What its factory last reported.
        start_phases: How long each phase of its start took, once it was ready.
        error: Why the engine is down; None while it is up.
        last_error: Why it last died or failed to start; None if it never did.
        last_error_at: When that was, in seconds since the epoch.
    """

    state: EngineState
    pid: int | None
    since: float
    restarts: int
    counters: Mapping[str, float]
    info: Any
    progress: str
    start_phases: tuple[StartPhase, ...]
    error: str | None
    last_error: str | None
    last_error_at: float | None


def compute_restart_delay(previous_s: float, uptime_s: float) -> float:
    """Return the minimum number of seconds between two starts (exponential back-off).

    The delay doubles with each restart, and is reset after an uptime of `HEALTHY_UPTIME_S`.

    Args:
        previous_s: The delay before the previous start, 0 for the first.
        uptime_s: How long the engine was ready, in seconds.
    """
    if previous_s == 0 or uptime_s >= HEALTHY_UPTIME_S:
        return MIN_RESTART_DELAY_S
    return min(previous_s * 2, MAX_RESTART_DELAY_S)


def compute_restart_pause(delay_s: float, since_start_s: float) -> float:
    """Return the seconds to wait before a restart, `since_start_s` after the last start began.

    Back-off limits how often a process restarts. The delay counts from the last start, so an engine
    that takes long to start does not wait for longer.
    """
    return max(min(MIN_RESTART_DELAY_S, delay_s), delay_s - since_start_s)


class EngineProcess:
    """An engine in a process of its own. The pipeline uses this interface."""

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
        self._group: EngineGroup | None = None
        self._supervisor: asyncio.Task[None] | None = None

    @property
    def health(self) -> EngineHealth:
        """Return a snapshot of the engine's health."""
        connection = self._connection
        is_unresponsive = (
            self._state == "ready" and connection is not None and connection.is_unresponsive
        )
        return EngineHealth(
            state="unresponsive" if is_unresponsive else self._state,
            pid=self.pid,
            since=self._since,
            restarts=self._restarts,
            counters=connection.counters if connection else {},
            info=self._info,
            progress=connection.progress if connection else "",
            start_phases=connection.start_phases if connection else (),
            error=None if self._state in ("ready", "stopped") else self._last_error,
            last_error=self._last_error,
            last_error_at=self._last_error_at,
        )

    @property
    def _connection(self) -> EngineConnection | None:
        return self._group.lead if self._group else None

    @property
    def in_flight(self) -> int:
        """Return the number of requests in flight."""
        return self._connection.in_flight if self._connection else 0

    @property
    def pid(self) -> int | None:
        """Return the process id of the engine, None if there is no process."""
        return self._connection.pid if self._connection else None

    async def start(self) -> None:
        """Start the engine and wait until it is ready.

        Raises:
            StartupError: The start failed; no process is left. The message has the reason that the
                engine reported, or else its last output lines, and the path of its full output.
        """
        self._set_state("starting")
        try:
            await self._launch()
        except StartupError as error:
            self._record_error(error.message)
            if self._state == "starting":
                self._set_state("failed")
            raise
        self._supervisor = asyncio.create_task(self._supervise())

    def submit(self, request: Any) -> AsyncGenerator[Any, None]:
        """Return the outputs of a request, to be iterated up to the one with `last` set.

        The request is sent on the first iteration. Closing the iterator, or cancelling the task
        that waits for it, cancels the request in the engine at once. Use `contextlib.aclosing`
        wherever the iteration can end early.

        Raises:
            EngineUnavailable: The engine is not ready.
            Overloaded: The engine is at capacity.
            EngineFailed: The engine died.
            OmniError: The worker ended the request with this error.
        """
        if self._connection is None or self._state != "ready":
            raise EngineUnavailable(f"{self.spec.name} is {self._state}")
        return self._connection.run(f"{self.spec.name}-{next(self._ids)}", request)

    def profile(self, folder: str | None) -> None:
        """Start the engine's profiler; with None, stop it and write the trace to the folder before.

        Raises:
            EngineUnavailable: The engine is not ready.
        """
        if self._connection is None or self._state != "ready":
            raise EngineUnavailable(f"{self.spec.name} is {self._state}")
        self._connection.profile(folder)

    async def stop(self, deadline_s: float = 10.0) -> None:
        """Stop the engine; kill what is left of it after `deadline_s` seconds."""
        self._set_state("stopped")
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait({self._supervisor})
            self._supervisor = None
        if self._group is not None:
            await self._group.stop(deadline_s)
            self._group = None

    async def _launch(self) -> None:
        self._group = None
        self._started_at = time.monotonic()
        self._group = EngineGroup(self.spec)
        try:
            await self._group.open()
        except BaseException:
            self._group = None
            raise
        self._info = self._group.lead.info
        self._set_state("ready")

    async def _supervise(self) -> None:
        while self._group is not None:
            group, ready_at = self._group, time.monotonic()
            await group.lost.wait()
            self._set_state("restarting")
            reason, last_lines = await group.wait_ended()
            self._record_error(reason)
            LOGGER.error("%s %s%s", self.spec.name, reason, last_lines)
            await self._restart(time.monotonic() - ready_at)

    async def _restart(self, uptime_s: float) -> None:
        while self._state != "ready":
            self._delay_s = min(
                compute_restart_delay(self._delay_s, uptime_s), self.spec.max_restart_delay_s
            )
            pause_s = compute_restart_pause(self._delay_s, time.monotonic() - self._started_at)
            LOGGER.warning("%s restarts in %.3g s", self.spec.name, pause_s)
            await asyncio.sleep(pause_s)
            self._restarts += 1
            uptime_s = 0.0
            try:
                await self._launch()
            except StartupError as error:
                self._record_error(error.message)
                LOGGER.error("%s", error.message)

    def _record_error(self, error: str) -> None:
        self._last_error, self._last_error_at = error, time.time()

    def _set_state(self, state: EngineState) -> None:
        self._state = state
        self._since = time.time()
