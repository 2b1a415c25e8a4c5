"""The proxy of an engine on another machine: `python -m ... SOCKET_FD PARENT_PID`.

For the server it is the engine: a process of its own that speaks the same messages over the same
kind of socket, prints what the engine prints, and ends as the engine ends. So deadlines, restarts
and back-pressure are those of any engine. It asks Ray for a host on the engine's node, or waits for
`sgl-omni node` there, and passes messages on over two encrypted connections. Only this process
imports Ray.
"""

import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from sglang_omni.engines.remote.contract import ClusterSettings, RankAddress, RemoteSettings
from sglang_omni.engines.remote.host import Launch
from sglang_omni.engines.remote.links import HostListener, Links, MessageWriter, Tokens
from sglang_omni.engines.remote.messages import Ended, Hello, OutputLine, ToHost, ToProxy, Written
from sglang_omni.engines.remote.packed_message import iter_parts, pack, unpack
from sglang_omni.engines.remote.ray_nodes import join_cluster, start_host
from sglang_omni.engines.remote.request_memory import RequestMemory
from sglang_omni.engines.runtime.failure import describe
from sglang_omni.engines.runtime.local_address import find_local_address
from sglang_omni.engines.runtime.log_records import log_to_server
from sglang_omni.engines.runtime.orphan_reaper import die_with_parent
from sglang_omni.engines.runtime.output_sender import OutputSender
from sglang_omni.engines.runtime.transport import (
    Cancel,
    Failed,
    FromEngine,
    Outputs,
    Progress,
    Start,
    StartFailed,
    Submit,
    ToEngine,
    receive,
)
from sglang_omni.protocol.errors import StartupError
from sglang_omni.system.malloc import keep_freed_blocks
from sglang_omni.version import package_version

HOST_DEADLINE_S = 30.0
"""How long a node may take to start a host. Then the engine's start fails, and is tried again."""
_POLL_S = 0.2


def main(descriptor: int, parent: int) -> int:
    """Serve one engine over the inherited socket; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    log_to_server()
    die_with_parent(parent)
    keep_freed_blocks()
    os.set_inheritable(descriptor, False)
    sock = socket.socket(fileno=descriptor)
    messages = receive(sock)
    start = next(messages)
    assert isinstance(start, Start)
    sender = OutputSender(sock)
    try:
        links = open_links(start.settings, sender)
    except (StartupError, OSError) as error:
        explained = isinstance(error, StartupError)
        sender.send(StartFailed(_name_node(start.settings, describe(error)), explained))
        return 1
    finally:
        sender.close()
    # Ray's many objects would be looked through again and again.
    gc.freeze()
    relay = ProxyRelay(sock, links)
    relay.send(Start(start.factory, start.settings.settings, start.window))
    threading.Thread(target=relay.forward_up, args=(messages,), name="up", daemon=True).start()
    return exit_like(start.settings, relay.forward_down())


def open_links(settings: RemoteSettings, sender: OutputSender) -> Links:
    """Return the links to a host on the engine's machine.

    Raises:
        StartupError: There is no such machine, no host in time, or one of another version.
        OSError: This machine's address cannot be listened on.
    """
    if settings.listen is not None:
        links = _wait_for_rank(settings.listen, settings.cluster, sender)
    else:
        links = _start_host(settings, sender)
    hello = next(links.receive(), None)
    version = hello.version if isinstance(hello, Hello) else "no version"
    if version != package_version():
        links.close()
        raise StartupError(f"it has sglang-omni {version}, and the server {package_version()}")
    return links


def _wait_for_rank(listen: RankAddress, cluster: ClusterSettings, sender: OutputSender) -> Links:
    """Wait for `sgl-omni node`, for as long as the server lets the start take."""
    if find_local_address(listen.host, cluster.network) != listen.host:
        raise StartupError(f"{listen.host} is no address of this machine")
    tokens = Tokens.of_rank(listen.rank)
    listener = HostListener(listen.host, cluster.tls, listen.port, tokens)
    sender.send(Progress(f"waiting for sgl-omni node --rank {listen.rank}"))
    try:
        while True:
            links = listener.wait(_POLL_S)
            if links is not None:
                return links
    finally:
        listener.close()


def _start_host(settings: RemoteSettings, sender: OutputSender) -> Links:
    """Let Ray start a host on the engine's node."""
    cluster = settings.cluster
    assert cluster.ray_address is not None
    sender.send(Progress(f"joining the Ray cluster at {cluster.ray_address}"))
    address = join_cluster(cluster.ray_address, settings.node)
    listener = HostListener(find_local_address(address, cluster.network), cluster.tls)
    sender.send(Progress(f"waiting for a host on {settings.node}"))
    try:
        launch = Launch(
            name=settings.name,
            env=settings.env,
            address=listener.address,
            tokens=listener.tokens,
            tls=cluster.tls,
        )
        return _wait_for_host(listener, start_host(settings.node, launch))
    finally:
        listener.close()


def _wait_for_host(listener: HostListener, ended: "Future[str]") -> Links:
    deadline = time.monotonic() + HOST_DEADLINE_S
    while time.monotonic() < deadline:
        links = listener.wait(_POLL_S)
        if links is not None:
            return links
        if ended.done():
            raise _host_error(ended)
    raise StartupError(f"no host answered within {HOST_DEADLINE_S:g} s")


def _host_error(ended: "Future[str]") -> StartupError:
    """Return the error of a host that ended before it connected."""
    error = ended.exception()
    # Ray wraps the error of an actor's method.
    cause = getattr(error, "cause", None) or error
    return StartupError(describe(cause) if isinstance(cause, Exception) else str(cause))


def _name_node(settings: RemoteSettings, reason: str) -> str:
    return f"on {settings.node}: {reason}"


class ProxyRelay:
    """Passes messages between the server's socket and the links, in a thread for each direction."""

    def __init__(self, sock: socket.socket, links: Links) -> None:
        self._server = MessageWriter(sock)
        self._links = links
        self._memory = RequestMemory()

    def send(self, message: ToEngine) -> None:
        """Pass a message on to the engine.

        Raises:
            OSError: The link is lost.
        """
        packed, shared = pack(message)
        match message:
            case Submit(request_id):
                self._memory.hold(request_id, shared)
            case Cancel(request_id):
                self._memory.release(request_id)
        for index, one in enumerate(shared):
            for part in iter_parts(index, one):
                self._links.writer.send(part)
        self._links.writer.send(ToHost(packed))

    def forward_up(self, messages: Iterator[Any]) -> None:
        """Pass messages on until the server is gone. Then close the link, which ends the engine."""
        with suppress(OSError):  # `forward_down` learns of it too.
            for message in messages:
                self.send(message)
        self._links.close()

    def forward_down(self) -> Ended:
        """Pass messages of the engine on until it, or the link, ends. Return how."""
        try:
            for message in self._links.receive():
                if isinstance(message, Ended):
                    return message
                self._handle(message)
        except OSError as error:
            return Ended(1, f"lost its connection: {error}")
        return Ended(1, "lost its connection: it was closed")

    def _handle(self, message: ToProxy | Written | OutputLine) -> None:
        match message:
            case OutputLine(text):
                print(text, flush=True)
            case Written(request_id, part):
                self._memory.write(request_id, part)
            case ToProxy(packed):
                self._pass_on(unpack(packed))

    def _pass_on(self, content: FromEngine) -> None:
        """Pass a message on to the server; drop the memory of requests that end."""
        match content:
            case Outputs(outputs):
                for request_id, output in outputs:
                    if output.last:
                        self._memory.release(request_id)
            case Failed(request_id):
                self._memory.release(request_id)
        self._server.send(content)


def exit_like(settings: RemoteSettings, ended: Ended) -> int:
    """Return the exit status of an engine, or end by the signal that ended it."""
    if ended.return_code:
        print(f"{settings.name} on {settings.node} {ended.reason}", flush=True)
    if ended.return_code < 0:
        os.kill(os.getpid(), -ended.return_code)
    return ended.return_code


if __name__ == "__main__":
    status = main(int(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.flush()
    # An orderly exit would wait for Ray's threads. Ray ends the actor with this process.
    os._exit(status)
