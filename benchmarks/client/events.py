"""Server-sent events of an answer."""

from collections.abc import AsyncIterator

import aiohttp


async def events(reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The data of each event, however the bytes are cut; comments and names are passed over."""
    rest = b""
    async for data in reply.content.iter_any():
        *whole, rest = (rest + data).replace(b"\r\n", b"\n").split(b"\n\n")
        for event in whole:
            for line in event.split(b"\n"):
                if line.startswith(b"data:"):
                    yield line[5:].lstrip()
