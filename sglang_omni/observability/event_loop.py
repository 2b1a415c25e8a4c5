"""A monitor of event loop stalls. A blocked event loop delays every client."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

# Short enough to detect nearly every stall that is audible.
PROBE_INTERVAL_S = 0.05


@contextlib.asynccontextmanager
async def monitor_event_loop(observe: Callable[[float], None]) -> AsyncGenerator[None, None]:
    """Pass the seconds by which the loop wakes up late to `observe` during the body.

    A sample is taken every `PROBE_INTERVAL_S`.
    """
    task = asyncio.create_task(_monitor(observe))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _monitor(observe: Callable[[float], None]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due_at = loop.time() + PROBE_INTERVAL_S
        await asyncio.sleep(PROBE_INTERVAL_S)
        # uvloop's clock has a resolution of milliseconds, so the difference may be negative.
        observe(max(0.0, loop.time() - due_at))
