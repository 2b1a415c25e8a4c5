"""A proxy before several servers, as operators put one there.

It passes a request to the next one when a server refuses the connection or says 503, and never once
something has been answered.
"""

import asyncio
import contextlib
import itertools
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import aiohttp
from aiohttp import web

from tests.server.running import free_port

BODY_BYTES = 32 << 20
# How long a request may look for a server before it is told that there is none.
LOOK_S = 30.0
UNAVAILABLE = 503


class Proxy:
    """Passes requests on to `servers` in turn. `passed` counts answers by server."""

    def __init__(self, servers: Sequence[str]) -> None:
        self.passed: Counter[str] = Counter()
        self._servers = servers
        self._turns = itertools.count()

    async def serve(self, port: int, ready: threading.Event, stop: asyncio.Event) -> None:
        """Serve on loopback until `stop`."""
        app = web.Application(client_max_size=BODY_BYTES)
        async with aiohttp.ClientSession() as self._session:
            app.router.add_route("*", "/{path:.*}", self._pass_on)
            runner = web.AppRunner(app)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", port).start()
            ready.set()
            await stop.wait()
            await runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        try:
            async with asyncio.timeout(LOOK_S):
                reply = await self._answer(request, await request.read())
        except TimeoutError:
            return web.json_response({"error": "no server is ready"}, status=502)
        async with reply:
            return await _relay(reply, request)

    async def _answer(self, request: web.Request, body: bytes) -> aiohttp.ClientResponse:
        """What the first server says that takes the request; its content is still to come."""
        headers = {"Content-Type": request.content_type}
        while True:
            server = self._servers[next(self._turns) % len(self._servers)]
            with contextlib.suppress(aiohttp.ClientConnectionError):
                reply = await self._session.request(
                    request.method, server + request.path_qs, data=body, headers=headers
                )
                if reply.status != UNAVAILABLE:
                    self.passed[server] += 1
                    return reply
                reply.close()
            await asyncio.sleep(0.05)


async def _relay(reply: aiohttp.ClientResponse, request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(status=reply.status)
    answer.content_type = reply.content_type
    await answer.prepare(request)
    async for piece in reply.content.iter_any():
        await answer.write(piece)
    await answer.write_eof()
    return answer


@contextmanager
def proxy(servers: Sequence[str]) -> Iterator[tuple[str, Proxy]]:
    """The address of a proxy before `servers`, in a thread of its own, and the proxy."""
    made, port = Proxy(servers), free_port()
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    run = threading.Thread(target=loop.run_until_complete, args=(made.serve(port, ready, stop),))
    run.start()
    try:
        assert ready.wait(10)
        yield f"http://127.0.0.1:{port}", made
    finally:
        loop.call_soon_threadsafe(stop.set)
        run.join()
        loop.close()
