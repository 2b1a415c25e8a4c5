"""Turns at something that one may use at a time, fairly between tenants."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sglang_omni.errors import Overloaded

Turn = asyncio.Future[None]


class FairQueue:
    """Lets one in at a time: the tenants in turn, of each the oldest. Owned by the event loop.

    Beyond `max_waiting` the newest of the tenant with the most who wait is refused: a tenant who
    floods the queue refuses itself.
    """

    def __init__(self, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._is_taken = False
        # The tenants in the order of their turns.
        self._waiting: OrderedDict[str | None, deque[Turn]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, tenant: str | None) -> AsyncIterator[None]:
        """Be alone while the body runs. Raises `Overloaded`."""
        if self._is_taken:
            await self._wait(tenant)
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, tenant: str | None) -> None:
        turn: Turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        self._refuse_one()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._pass_on()  # Let in and cancelled in the same turn of the loop.
            raise
        finally:
            self._forget(tenant, turn)

    def _refuse_one(self) -> None:
        waiting = sum(map(len, self._waiting.values()))
        if waiting <= self._max_waiting:
            return
        crowd = max(self._waiting, key=lambda tenant: len(self._waiting[tenant]))
        refused = self._waiting[crowd][-1]
        self._forget(crowd, refused)
        refused.set_exception(Overloaded(f"{waiting - 1} schemas already wait to be compiled"))

    def _pass_on(self) -> None:
        """Let the next one in; it holds the turn from now on."""
        self._is_taken = False
        while self._waiting and not self._is_taken:
            tenant, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[tenant] = turns  # Behind the others.
            if not turn.done():
                self._is_taken = True
                turn.set_result(None)

    def _forget(self, tenant: str | None, turn: Turn) -> None:
        turns = self._waiting.get(tenant, deque())
        if turn in turns:
            turns.remove(turn)
        if not turns:
            self._waiting.pop(tenant, None)
