"""The queue in front of an engine: it admits, queues or rejects requests."""

import asyncio
import itertools
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sglang_omni.protocol.errors import Overloaded
from sglang_omni.queueing.policy import (
    Capacity,
    Priority,
    Reservation,
    can_admit,
    estimate_retry_after_s,
    select_next,
    select_rejected,
)

# The weight of the latest interval in the moving average of the time between two requests' ends.
_LATEST_WEIGHT = 0.2
_POLL_S = 0.25


@dataclass(frozen=True)
class QueueRules:
    """How many requests may wait, and for how long (seconds)."""

    max_length: int = 64
    max_wait_s: float = 30.0


class AdmissionQueue:
    """The active and the waiting requests of one engine. Owned by the event loop.

    `get_capacity` returns the engine's capacity, or None while it is down. Then every request is
    admitted, and fails with the engine's own error.
    """

    def __init__(
        self,
        name: str,
        get_capacity: Callable[[], Capacity | None],
        rules: QueueRules,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the engine's name for messages, and a clock in seconds."""
        self._name, self._get_capacity, self._rules, self._clock = name, get_capacity, rules, clock
        self._numbers = itertools.count()
        self._admission_numbers = itertools.count()
        self._active: set[Reservation] = set()
        # The number of each tenant's latest admission.
        self._last_admissions: dict[str | None, int] = {}
        self._waiting: dict[Reservation, asyncio.Future[None]] = {}
        self._last_end_at: float | None = None
        self._interval_s = math.inf
        self._num_rejected = 0
        self._poll_timer: asyncio.TimerHandle | None = None

    def counters(self) -> dict[str, float]:
        """Return how many requests are admitted and queued, and how many were rejected so far."""
        return {
            "admitted": len(self._active),
            "queued": len(self._waiting),
            "rejected": self._num_rejected,
        }

    @asynccontextmanager
    async def admit(
        self, tenant: str | None, priority: Priority, kv_tokens: int = 0
    ) -> AsyncIterator[None]:
        """Wait for capacity, and hold it during the body.

        Raises `Overloaded`, with the time to retry after, if the queue is full or the wait is too
        long.
        """
        reservation = Reservation(next(self._numbers), tenant, priority, kv_tokens)
        await self._enter(reservation)
        try:
            yield
        finally:
            self._release(reservation)

    async def _enter(self, reservation: Reservation) -> None:
        admitted = self._waiting[reservation] = asyncio.get_running_loop().create_future()
        self._admit_waiting()
        if reservation in self._active:
            return
        self._reject_excess()
        self._schedule_poll()
        try:
            async with asyncio.timeout(self._rules.max_wait_s):
                await admitted
        except TimeoutError:
            raise self._overloaded(f"waited {self._rules.max_wait_s:g} s") from None
        except asyncio.CancelledError:
            if reservation in self._active:  # Admitted and cancelled in the same loop iteration.
                self._release(reservation)
            raise
        finally:
            self._waiting.pop(reservation, None)

    def _schedule_poll(self) -> None:
        """Poll the capacity while requests wait.

        An engine may gain capacity without the end of a request. It may also die, and then no
        request should wait for it.
        """
        if self._poll_timer is None and self._waiting:
            self._poll_timer = asyncio.get_running_loop().call_later(_POLL_S, self._poll)

    def _poll(self) -> None:
        self._poll_timer = None
        self._admit_waiting()
        self._schedule_poll()

    def _admit_waiting(self) -> None:
        """Admit waiting requests while there is capacity."""
        capacity = self._get_capacity()
        per_tenant = capacity.per_tenant if capacity else None
        while reservation := select_next(
            self._waiting.keys(), self._active, self._last_admissions, per_tenant
        ):
            if capacity is not None and not can_admit(reservation, self._active, capacity):
                return
            self._active.add(reservation)
            self._last_admissions[reservation.tenant] = next(self._admission_numbers)
            admitted = self._waiting.pop(reservation)
            if not admitted.done():
                admitted.set_result(None)

    def _reject_excess(self) -> None:
        """Reject the request that exceeds the queue's length, if any."""
        reservation = select_rejected(list(self._waiting), self._rules.max_length)
        if reservation is not None:
            error = self._overloaded(f"{len(self._active)} running")
            self._waiting.pop(reservation).set_exception(error)

    def _overloaded(self, reason: str) -> Overloaded:
        self._num_rejected += 1
        wait_s = estimate_retry_after_s(len(self._waiting), self._interval_s)
        message = f"the {self._name} is at capacity ({reason}); retry in {math.ceil(wait_s)} s"
        return Overloaded(message, retry_after_s=wait_s)

    def _release(self, reservation: Reservation) -> None:
        self._active.discard(reservation)
        now = self._clock()
        if self._last_end_at is not None:
            interval_s = now - self._last_end_at
            if math.isfinite(self._interval_s):
                interval_s = _LATEST_WEIGHT * interval_s + (1 - _LATEST_WEIGHT) * self._interval_s
            self._interval_s = interval_s
        self._last_end_at = now
        self._admit_waiting()
