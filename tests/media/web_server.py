"""A web server on the loopback address: answers as it is told, remembers what it was asked."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class WebServer:
    """`answers` maps a path to raw bytes of an HTTP answer; a path without one is never answered.

    `asked` has the head of every request.
    """

    port: int = 0
    answers: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        """Host and port as a policy names them."""
        return f"127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        """The address of a path."""
        return f"http://{self.host}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head)
        answer = self.answers.get(head.split()[1])
        if answer is None:
            await asyncio.sleep(60)
        writer.write(answer or b"")
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()


def ok(body: bytes, *headers: str) -> bytes:
    """An answer 200 with a body."""
    lines = ["HTTP/1.1 200 OK", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def endless(size: int) -> bytes:
    """An answer 200 of `size` bytes that says no length."""
    return b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + bytes(size)


def redirect(location: str, status: int = 302) -> bytes:
    """An answer that leads elsewhere."""
    return f"HTTP/1.1 {status} Go\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n".encode()


@asynccontextmanager
async def web_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[WebServer]:
    """Run one."""
    web = WebServer()
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0, ssl=tls)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()
