"""Hosts an engine process on another machine for the server's proxy of it.

The engine is the same process as on the server's own machine: it speaks over a socket pair, here
with this host, which passes everything on over the links. When the links are lost, the engine is
killed, so a server that is gone leaves nothing behind.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sglang_omni.engines.remote.contract import TlsFiles
from sglang_omni.engines.remote.links import Links, MessageWriter, Tokens, connect
from sglang_omni.engines.remote.messages import Ended, Hello, OutputLine, ToHost, ToProxy, Written
from sglang_omni.engines.remote.packed_message import Part, pack, unpack
from sglang_omni.engines.remote.request_memory import ArrivingMemory, RequestMemory
from sglang_omni.engines.runtime.failure import describe
from sglang_omni.engines.runtime.subprocess import Subprocess
from sglang_omni.engines.runtime.transport import (
    Cancel,
    Failed,
    FromEngine,
    Outputs,
    Submit,
    receive,
)
from sglang_omni.protocol.errors import StartupError
from sglang_omni.system.malloc import keep_freed_blocks
from sglang_omni.version import package_version

# How long the last messages of an engine that has ended may take.
_FINAL_MESSAGES_S = 2.0


@dataclass(frozen=True)
class Launch:
    """What a host needs to start an engine.

    Attributes:
        name: The engine's name.
        env: Environment variables, added to the machine's own.
        address: Where the proxy listens.
        tokens: What it must be told.
        tls: This machine's certificate.
    """

    name: str
    env: Mapping[str, str]
    address: tuple[str, int]
    tokens: Tokens
    tls: TlsFiles


def serve_engine(launch: Launch) -> str:
    """Run an engine until it ends or the links are lost. Return how it ended.

    Raises:
        StartupError: The proxy cannot be reached.
    """
    try:
        links = connect(launch.address, launch.tokens, launch.tls)
    except OSError as error:
        host, port = launch.address
        raise StartupError(f"it cannot connect to the server at {host}:{port}: {error}") from error
    keep_freed_blocks()
    try:
        ended = asyncio.run(_run_engine(launch, links))
        with suppress(OSError):  # The proxy is gone.
            links.writer.send(ended)
        return ended.reason
    finally:
        links.close()


async def _run_engine(launch: Launch, links: Links) -> Ended:
    try:
        links.writer.send(Hello(package_version()))
        process = Subprocess(launch.name, launch.env, _OutputLines(links))
    except OSError as error:
        return Ended(1, f"could not be started: {error}")
    relay = EngineRelay(process.sock, links)
    link_lost, engine_silent = _start(relay.forward_up), _start(relay.forward_down)
    ends: set[asyncio.Future[Any]] = {process.exited, link_lost}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    reason = "" if process.exited.done() else link_lost.result()
    process.kill()
    await process.exited
    await asyncio.wait({engine_silent}, timeout=_FINAL_MESSAGES_S)
    return Ended(process.exited.result(), reason or process.exit_reason)


def _start(run: Callable[[], str]) -> asyncio.Future[str]:
    """Run a function in a daemon thread, which does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[str] = loop.create_future()

    def run_and_tell() -> None:
        result = run()
        with suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(ended.set_result, result)

    threading.Thread(target=run_and_tell, name=run.__name__, daemon=True).start()
    return ended


class EngineRelay:
    """Passes messages between the links and the engine's socket, in a thread for each direction."""

    def __init__(self, sock: socket.socket, links: Links) -> None:
        self._sock, self._links = sock, links
        self._engine = MessageWriter(sock)
        self._memory = RequestMemory()
        self._arriving = ArrivingMemory()

    def forward_up(self) -> str:
        """Pass messages on to the engine until the link ends. Return why it ended."""
        try:
            for message in self._links.receive():
                if isinstance(message, Part):
                    self._arriving.write(message)
                else:
                    self._forward(message)
        except Exception as error:
            return f"lost its server: {describe(error)}"
        return "lost its server: the connection was closed"

    def forward_down(self) -> str:
        """Pass messages of the engine on until it ends. Return the error, if there was one."""
        try:
            for message in receive(self._sock):
                packed, shared = pack(message)
                assert not shared, "an engine's message has shared memory of its own"
                self._send_written(message)
                self._links.writer.send(ToProxy(packed))
        except Exception as error:
            return describe(error)
        return ""

    def _forward(self, message: ToHost) -> None:
        shared = self._arriving.take(message.packed.num_shared)
        content = unpack(message.packed, shared)
        match content:
            case Submit(request_id):
                self._memory.hold(request_id, shared)
            case Cancel(request_id):
                self._memory.release(request_id)
        with suppress(OSError):  # The engine has ended, which is noticed elsewhere.
            self._engine.send(content)

    def _send_written(self, message: FromEngine) -> None:
        """Send what the outputs of a message tell of; drop the memory of requests that end."""
        match message:
            case Outputs(outputs):
                for request_id, output in outputs:
                    for part in self._memory.iter_new_parts(request_id):
                        self._links.writer.send(Written(request_id, part))
                    if output.last:
                        self._memory.release(request_id)
            case Failed(request_id):
                self._memory.release(request_id)


class _OutputLines:
    """Sends what the engine prints to the proxy."""

    def __init__(self, links: Links) -> None:
        self._links = links

    def handle_line(self, line: str) -> None:
        """Send a line, unless the proxy is gone."""
        with suppress(OSError):
            self._links.writer.send(OutputLine(line))

    def close(self) -> None:
        """Do nothing: the end of the process is a message of its own."""
