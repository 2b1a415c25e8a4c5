"""The processes of one engine: the one that answers, and companions that work with it.

They start together, and when one of them ends, all end.
"""

import asyncio

from sglang_omni.engines.runtime.engine_connection import EngineConnection, ProcessSpec
from sglang_omni.protocol.errors import StartupError


class EngineGroup:
    """Owns the connections of one engine. `lead` takes the requests.

    The life cycle is that of an `EngineConnection`: `open`, then `wait_ended` or `stop`. `lost` is
    set when the first process ends or hangs.
    """

    def __init__(self, spec: ProcessSpec) -> None:
        """Spawn the processes.

        Raises:
            StartupError: The operating system cannot spawn one. None is left.
        """
        self.lost = asyncio.Event()
        self._connections: list[EngineConnection] = []
        try:
            for one in (spec, *spec.companions):
                self._connections.append(EngineConnection(one, self.lost))
        except StartupError:
            for connection in self._connections:
                connection.kill()
            raise

    @property
    def lead(self) -> EngineConnection:
        """Return the connection to the process that answers."""
        return self._connections[0]

    async def open(self) -> None:
        """Wait until every process is ready. If anything is raised, none is left by then.

        Raises:
            StartupError: The start of one failed.
        """
        opens = [asyncio.create_task(one.open()) for one in self._connections]
        try:
            await asyncio.gather(*opens)
        except BaseException:
            for task in opens:
                task.cancel()
            await asyncio.gather(*opens, return_exceptions=True)
            # Those that were ready already.
            await self.stop(0.0)
            raise

    async def wait_ended(self) -> tuple[str, str]:
        """End the processes that are left, and wait until all are gone.

        Returns:
            Why the first one ended, which continues the engine's name, and its last output lines.
        """
        first = next(one for one in self._connections if one.is_lost)
        for connection in self._connections:
            if connection is not first:
                connection.kill()
        reasons = await asyncio.gather(*(one.wait_ended() for one in self._connections))
        reason = reasons[self._connections.index(first)]
        if first is not self.lead:
            reason = f"lost {first.name}, which {reason}"
        return reason, first.error_suffix

    async def stop(self, deadline_s: float) -> None:
        """Stop every process; kill what is left after `deadline_s` seconds."""
        await asyncio.gather(*(one.stop(deadline_s) for one in self._connections))
