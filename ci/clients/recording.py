"""Proxies before a server that keep what a client sends, sound and files as their length."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
from aiohttp import web
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

Json = dict[str, Any]
# What belongs to one connection, and is not passed on.
OF_THE_HOP = {"host", "connection", "content-length", "transfer-encoding"}


def without_sound(event: Any) -> Any:
    """The event with the base64 of its sound replaced by the number of characters."""
    if isinstance(event, list):
        return [without_sound(item) for item in event]
    if not isinstance(event, dict):
        return event
    return {
        name: len(value) if name == "audio" and isinstance(value, str) else without_sound(value)
        for name, value in event.items()
    }


class RealtimeProxy:
    """A WebSocket through which a client's events go."""

    def __init__(self, server: str) -> None:
        self._server = server.replace("http", "ws", 1)
        self.kept: list[Json] = []

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """The address of the server's OpenAI routes, by way of this proxy."""
        async with serve(self._serve, "127.0.0.1", 0, max_size=None) as listening:
            port = listening.sockets[0].getsockname()[1]
            yield f"http://127.0.0.1:{port}/v1"

    async def _serve(self, client: ServerConnection) -> None:
        request = client.request
        assert request is not None
        named = {"OpenAI-Beta": request.headers.get("OpenAI-Beta", "")}
        headers = {name: value for name, value in named.items() if value}
        url = self._server + request.path
        async with connect(url, additional_headers=headers, max_size=None) as server:
            ways = [self._to_server(client, server), self._to_client(server, client)]
            tasks = [asyncio.create_task(way) for way in ways]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _to_server(self, client: Any, server: Any) -> None:
        try:
            async for frame in client:
                self.kept.append(without_sound(json.loads(frame)))
                await server.send(frame)
        except ConnectionClosed:
            return

    async def _to_client(self, server: Any, client: Any) -> None:
        try:
            async for frame in server:
                await client.send(frame)
        except ConnectionClosed:
            return


class HttpProxy:
    """A web server through which a client's requests go; its WebSockets pass, and are not kept."""

    def __init__(self, server: str) -> None:
        self._server = server
        self.kept: list[Json] = []

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """The address of the server's OpenAI routes, by way of this proxy."""
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app)
        self._session = aiohttp.ClientSession(auto_decompress=False)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        finally:
            await runner.cleanup()
            await self._session.close()

    async def _pass_socket(self, request: web.Request) -> web.StreamResponse:
        client = web.WebSocketResponse(max_msg_size=0)
        url = self._server.replace("http", "ws", 1) + request.path_qs
        async with self._session.ws_connect(url, max_msg_size=0) as server:
            await client.prepare(request)
            ways = [_pass_frames(client, server), _pass_frames(server, client)]
            tasks = [asyncio.create_task(way) for way in ways]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await client.close()
        return client

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._pass_socket(request)
        body = await request.read()
        line = _request(request, body)
        self.kept.append(line)
        headers = {k: v for k, v in request.headers.items() if k.lower() not in OF_THE_HOP}
        url = self._server + request.path_qs
        async with self._session.request(request.method, url, data=body, headers=headers) as got:
            line["status"] = got.status
            kept = {k: v for k, v in got.headers.items() if k.lower() not in OF_THE_HOP}
            answer = web.StreamResponse(status=got.status, headers=kept)
            await answer.prepare(request)
            # A client may leave before the end.
            with suppress(ConnectionResetError):
                async for piece in got.content.iter_any():
                    await answer.write(piece)
                await answer.write_eof()
            return answer


async def _pass_frames(reader: Any, writer: Any) -> None:
    """Pass text frames on until one side leaves."""
    async for frame in reader:
        if frame.type is not aiohttp.WSMsgType.TEXT:
            return
        await writer.send_str(frame.data)


def _request(request: web.Request, body: bytes) -> Json:
    """Method, path, and the JSON of the body, or the kind and length of another one."""
    line: Json = {"method": request.method, "path": request.path}
    if not body:
        return line
    if request.content_type == "application/json":
        return {**line, "json": json.loads(body)}
    return {**line, "content_type": request.content_type, "bytes": len(body)}
