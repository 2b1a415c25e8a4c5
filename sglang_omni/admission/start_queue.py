"""Requests that wait until an engine runs whose replicas may all be on standby."""

import asyncio
import time
from collections.abc import Sequence

from sglang_omni.engines.runtime.process import EngineProcess
from sglang_omni.protocol.errors import EngineUnavailable

POLL_S = 0.1
# A replica in one of these states takes requests soon, if its start succeeds.
_STARTABLE = ("standby", "starting")


class StartQueue:
    """The requests that wait for the first replica of an engine. Owned by the event loop.

    That they wait is what starts the replica: the autoscaler of the engine's pool counts them.
    """

    def __init__(self, replicas: Sequence[EngineProcess]) -> None:
        """Take all replicas of the engine."""
        self._replicas = replicas
        self.num_waiting = 0

    @property
    def must_wait(self) -> bool:
        """Return whether no replica runs, and one can be started."""
        return all(replica.health.state in _STARTABLE for replica in self._replicas)

    async def wait(self) -> None:
        """Return once a replica runs, or at once if one runs or failed while it ran.

        How long a start may take is limited by the engine.

        Raises:
            EngineUnavailable: A replica could not start.
        """
        began_at = time.time()
        self.num_waiting += 1
        try:
            while self.must_wait:
                self._raise_failure(began_at)
                await asyncio.sleep(POLL_S)
        finally:
            self.num_waiting -= 1

    def _raise_failure(self, since: float) -> None:
        for replica in self._replicas:
            health = replica.health
            if health.last_error_at is not None and health.last_error_at >= since:
                raise EngineUnavailable(f"{replica.spec.name} cannot start: {health.last_error}")
