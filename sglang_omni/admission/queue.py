"""In front of an engine: admits what it has room for, lets some wait, refuses the rest at once."""

import asyncio
import itertools
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sglang_omni.admission.policy import (
    Capacity,
    Reservation,
    fits,
    retry_after_s,
    select_next,
    select_rejected,
)
from sglang_omni.pipeline.request import Priority
from sglang_omni.protocol.errors import Overloaded

# Of the interval between two requests' ends, how much the last one counts.
_WEIGHT = 0.2
_LOOK_S = 0.25


@dataclass(frozen=True)
class QueueRules:
    """At most `length` requests wait, none longer than `seconds`."""

    length: int = 64
    seconds: float = 30.0


class AdmissionQueue:
    """Owns who is at work in one engine and who waits for it. Lives on the event loop.

    `budget` tells what the engine has; None while it is not up, when everybody is let through to
    meet its error.
    """

    def __init__(
        self,
        name: str,
        budget: Callable[[], Capacity | None],
        rules: QueueRules,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._budget, self._rules, self._clock = name, budget, rules, clock
        self._numbers = itertools.count()
        self._admissions = itertools.count()
        self._active: set[Reservation] = set()
        # The number of each tenant's latest admission.
        self._served: dict[str | None, int] = {}
        self._waiting: dict[Reservation, asyncio.Future[None]] = {}
        self._ended_at: float | None = None
        self._interval_s = math.inf
        self._refused = 0
        self._looking: asyncio.TimerHandle | None = None

    def counters(self) -> dict[str, float]:
        """Who is here now, and how many were refused since the start."""
        return {
            "admitted": len(self._active),
            "queued": len(self._waiting),
            "rejected": self._refused,
        }

    @asynccontextmanager
    async def admit(
        self, tenant: str | None, priority: Priority, kv_tokens: int = 0
    ) -> AsyncIterator[None]:
        """Be at work in the engine while the body runs; waits for room.

        Raises `Overloaded`, saying when to come again, where too many wait, or it took too long.
        """
        claim = Reservation(next(self._numbers), tenant, priority, kv_tokens)
        await self._enter(claim)
        try:
            yield
        finally:
            self._leave(claim)

    async def _enter(self, claim: Reservation) -> None:
        turn = self._waiting[claim] = asyncio.get_running_loop().create_future()
        self._let_in()
        if claim in self._active:
            return
        self._turn_away()
        self._look_later()
        try:
            async with asyncio.timeout(self._rules.seconds):
                await turn
        except TimeoutError:
            raise self._refusal(f"no room within {self._rules.seconds:g} s") from None
        except asyncio.CancelledError:
            if claim in self._active:  # Let in and cancelled in the same turn of the loop.
                self._leave(claim)
            raise
        finally:
            self._waiting.pop(claim, None)

    def _look_later(self) -> None:
        """Look again while anybody waits: an engine may have room without anyone's leaving, or die,
        and then nobody should wait for it."""
        if self._looking is None and self._waiting:
            self._looking = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        self._looking = None
        self._let_in()
        self._look_later()

    def _let_in(self) -> None:
        """Admit whoever is next for as long as there is room."""
        budget = self._budget()
        per_tenant = budget.per_tenant if budget else None
        while claim := select_next(self._waiting.keys(), self._active, self._served, per_tenant):
            if budget is not None and not fits(claim, self._active, budget):
                return
            self._active.add(claim)
            self._served[claim.tenant] = next(self._admissions)
            turn = self._waiting.pop(claim)
            if not turn.done():
                turn.set_result(None)

    def _turn_away(self) -> None:
        """Refuse whoever the queue has no place for."""
        claim = select_rejected(list(self._waiting), self._rules.length)
        if claim is not None:
            self._waiting.pop(claim).set_exception(self._refusal(f"{len(self._active)} at work"))

    def _refusal(self, why: str) -> Overloaded:
        self._refused += 1
        wait_s = retry_after_s(len(self._waiting), self._interval_s)
        return Overloaded(f"the {self._name} has its fill: {why}", retry_after_s=wait_s)

    def _leave(self, claim: Reservation) -> None:
        self._active.discard(claim)
        now = self._clock()
        if self._ended_at is not None:
            passed = now - self._ended_at
            known = math.isfinite(self._interval_s)
            self._interval_s = (
                _WEIGHT * passed + (1 - _WEIGHT) * self._interval_s if known else passed
            )
        self._ended_at = now
        self._let_in()
