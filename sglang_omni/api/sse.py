"""Server-sent events: JSON objects as `data:` lines."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from sglang_omni.api.errors import envelope, public_error

MEDIA_TYPE = "text/event-stream"
# Proxies must pass the events on as they come.
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
DONE = b"data: [DONE]\n\n"
# Proxies commonly give up after a minute, some after half of one.
KEEP_ALIVE = b": keep-alive\n\n"
QUIET_S = 15.0


def event(data: dict[str, Any]) -> bytes:
    """One event. Pure ASCII: several clients split lines at U+2028 and U+0085 as well."""
    return b"data: " + json.dumps(data, separators=(",", ":")).encode("ascii") + b"\n\n"


async def stream(
    objects: AsyncGenerator[dict[str, Any], None], end: bytes = b"", quiet_s: float = QUIET_S
) -> AsyncGenerator[bytes, None]:
    """Encode `objects`, then `end`. While nothing comes for `quiet_s` seconds a comment goes out,
    so that no proxy takes the connection for dead.

    An error before the first piece is raised, so that it can still be an HTTP status; a later
    one becomes an event `{"error": ...}`, which ends the stream without `end`.
    """
    started = False
    async with aclosing(_or_quiet(objects, quiet_s)) as items:
        try:
            async for item in items:
                started = True
                yield KEEP_ALIVE if item is None else event(item)
        except Exception as error:
            if not started:
                raise
            yield event(envelope(public_error(error)))
            return
    if end:
        yield end


async def _or_quiet(
    objects: AsyncGenerator[dict[str, Any], None], quiet_s: float
) -> AsyncGenerator[dict[str, Any] | None, None]:
    """The objects, and None for each `quiet_s` seconds without one. Closes `objects`.

    A task of its own reads them, for to give up a read would end them.
    """
    ready: asyncio.Queue[Any] = asyncio.Queue(1)
    pump = asyncio.create_task(_pump(objects, ready))
    try:
        while True:
            try:
                async with asyncio.timeout(quiet_s):
                    item = await ready.get()
            except TimeoutError:
                yield None
                continue
            if isinstance(item, _Ended):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        pump.cancel()
        await asyncio.gather(pump, return_exceptions=True)


class _Ended:
    """The end of the objects, with what ended them."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error


async def _pump(objects: AsyncGenerator[dict[str, Any], None], ready: "asyncio.Queue[Any]") -> None:
    error: Exception | None = None
    try:
        async with aclosing(objects):
            async for item in objects:
                await ready.put(item)
    except Exception as caught:
        error = caught
    await ready.put(_Ended(error))
