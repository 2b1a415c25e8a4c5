"""Server-sent events of a response."""

from collections.abc import AsyncIterator

import aiohttp


async def read_events(reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the data of each event, however the bytes are split; comments and names are skipped."""
    buffer = b""
    async for data in reply.content.iter_any():
        *complete, buffer = (buffer + data).replace(b"\r\n", b"\n").split(b"\n\n")
        for event in complete:
            for line in event.split(b"\n"):
                if line.startswith(b"data:"):
                    yield line[5:].lstrip()
