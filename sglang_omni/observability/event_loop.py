"""How late the event loop wakes: whatever holds it up holds up every client at once."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

# Short enough to meet nearly every stall that a listener could hear.
PERIOD_S = 0.05


@contextlib.asynccontextmanager
async def watch_event_loop(observe: Callable[[float], None]) -> AsyncGenerator[None, None]:
    """While the body runs, tell `observe` every `PERIOD_S` by how many seconds the running loop
    was late."""
    watching = asyncio.create_task(_watch(observe))
    try:
        yield
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


async def _watch(observe: Callable[[float], None]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + PERIOD_S
        await asyncio.sleep(PERIOD_S)
        # uvloop's clock counts whole milliseconds, so it may seem to wake too early.
        observe(max(0.0, loop.time() - due))
