"""Servers of sglang-omni on a Ray cluster, one a replica, behind the proxies of Ray Serve.

    pip install "ray[serve]==2.60.0"                        # beside sglang-omni, on every node
    PYTHONPATH=/path/to/deploy/ray_serve ray start --head    # on each, so that it is found there
    serve deploy deploy/ray_serve/omni_serve.yaml

Each replica runs `sgl-omni serve` on a loopback port of its node and passes HTTP, events and
WebSockets on to it. Requests with the same `x-session-id` reach the same replica.
"""

import asyncio
import contextlib
import ctypes
import os
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterable
from typing import Any

import aiohttp
import yarl
from pydantic import BaseModel
from ray import serve
from ray.serve.config import RequestRouterConfig

ROUTER = "ray.serve.experimental.consistent_hash_router:ConsistentHashRouter"
# Seconds until a server is ready, and until one has finished its requests and ended.
START_S, DRAIN_S = 1800, 60
# What concerns one connection only, and is therefore not passed on.
HOP_HEADERS = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te"})
PRIVATE_PATHS = ("/metrics", "/admin/")
PARENT_DEATH_SIGNAL = 1


class Settings(BaseModel):
    """The `args` of the application in `omni_serve.yaml`."""

    servers: int = 2
    gpus: float = 0
    cpus: float = 1
    options: str = ""
    """Further options of `sgl-omni serve`."""


def _end_with_parent() -> None:
    """Have this process get SIGTERM when the replica's process ends, however it ends."""
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _keep(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name.lower() not in HOP_HEADERS]


async def _read_body(receive: Any) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        yield message.get("body", b"")
        more = message.get("more_body", False)


class Forwarder:
    """ASGI application that passes everything on to the server at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        # A new connection for each request: a server may close an idle one as a request is sent.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=timeout, auto_decompress=False
        )

    async def is_ready(self) -> bool:
        """Return whether the server accepts requests."""
        try:
            async with self._session.get(f"{self._url}/ready") as reply:
                return reply.status == 200
        except aiohttp.ClientError:
            return False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass one request or WebSocket on."""
        if scope["type"] == "websocket":
            await self._pass_websocket(scope, receive, send)
        elif scope["type"] == "http" and scope["path"].startswith(PRIVATE_PATHS):
            await send({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body"})
        elif scope["type"] == "http":
            await self._pass_request(scope, receive, send)
        else:
            await self._answer_lifespan(receive, send)

    async def _answer_lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._session.close()
        await send({"type": "lifespan.shutdown.complete"})

    def _target(self, scope: Any) -> yarl.URL:
        query = scope["query_string"].decode("latin-1")
        path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        return yarl.URL(f"{self._url}{path}{'?' if query else ''}{query}", encoded=True)

    async def _pass_request(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [
            (name.decode(), value.decode("latin-1")) for name, value in _keep(scope["headers"])
        ]
        has_body = any(name.lower() in ("content-length", "content-type") for name, _ in headers)
        request = self._session.request(
            scope["method"],
            self._target(scope),
            headers=headers,
            data=_read_body(receive) if has_body else None,
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
            allow_redirects=False,
        )
        async with request as reply:
            kept = _keep(reply.raw_headers)
            await send({"type": "http.response.start", "status": reply.status, "headers": kept})
            async for chunk in reply.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body"})

    async def _pass_websocket(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [
            (name.decode(), value.decode("latin-1"))
            for name, value in _keep(scope["headers"])
            if not name.lower().startswith(b"sec-websocket-")
        ]
        await receive()
        async with self._session.ws_connect(
            self._target(scope), headers=headers, protocols=scope["subprotocols"], max_msg_size=0
        ) as peer:
            await send({"type": "websocket.accept", "subprotocol": peer.protocol})
            tasks = [
                asyncio.create_task(_pass_to_server(receive, peer)),
                asyncio.create_task(_pass_to_client(peer, send)),
            ]
            _, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in pending:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _pass_to_server(receive: Any, peer: aiohttp.ClientWebSocketResponse) -> None:
    while (message := await receive())["type"] == "websocket.receive":
        if message.get("text") is not None:
            await peer.send_str(message["text"])
        else:
            await peer.send_bytes(message["bytes"])


async def _pass_to_client(peer: aiohttp.ClientWebSocketResponse, send: Any) -> None:
    async for message in peer:
        kind = "text" if message.type is aiohttp.WSMsgType.TEXT else "bytes"
        await send({"type": "websocket.send", kind: message.data})
    await send({"type": "websocket.close", "code": peer.close_code or 1000})


@serve.deployment(
    # The server has a queue of its own, and says 429 when it is full.
    max_ongoing_requests=10_000,
    request_router_config=RequestRouterConfig(request_router_class=ROUTER),
    # An engine that restarts makes a server not ready for some seconds: after three checks that
    # fail, Serve replaces the replica.
    health_check_period_s=20,
    graceful_shutdown_timeout_s=2 * DRAIN_S,
)
@serve.ingress()
class OmniServer:
    """A replica: a server in a process of its own, and what passes requests on to it."""

    async def __init__(self, options: str) -> None:
        port = _find_free_port()
        self._forward = Forwarder(f"http://127.0.0.1:{port}")
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "sglang_omni", "serve", "--version", "v1"),
            *("--port", str(port), "--drain-timeout", str(DRAIN_S), *shlex.split(options)),
            preexec_fn=_end_with_parent,
        )
        async with asyncio.timeout(START_S):
            while not await self._forward.is_ready():
                if self._process.returncode is not None:
                    raise RuntimeError(f"the server ended with {self._process.returncode}")
                await asyncio.sleep(0.5)
        self._watch = asyncio.create_task(self._exit_with_server())

    async def _exit_with_server(self) -> None:
        """End the replica when its server ends by itself, so that Serve starts another one."""
        await self._process.wait()
        os._exit(1)

    def __serve_build_asgi_app__(self) -> Forwarder:
        """Return the application that Serve calls."""
        return self._forward

    async def check_health(self) -> None:
        """Raise `RuntimeError` if the server is not ready."""
        if not await self._forward.is_ready():
            raise RuntimeError("the server is not ready")

    async def __del__(self) -> None:
        """Have the server end. Serve has waited for its requests before."""
        self._watch.cancel()
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        await self._process.wait()


def build(settings: Settings) -> serve.Application:
    """Return the application for `serve run` and `serve deploy`."""
    resources = {"num_cpus": settings.cpus, "num_gpus": settings.gpus}
    deployment = OmniServer.options(num_replicas=settings.servers, ray_actor_options=resources)
    return deployment.bind(settings.options)
