"""The two encrypted connections between an engine's proxy and its host on another machine.

Each connection carries messages in one direction, so each end of it is used by one thread. Both
ends need a certificate of the same authority (TLS 1.3). The host connects, and sends a token that
it got through Ray. A token is good for one connection. Nothing else is read before it, so a
stranger's bytes are never unpickled.
"""

import hashlib
import hmac
import logging
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sglang_omni.engines.remote.contract import TlsFiles
from sglang_omni.engines.runtime.output_sender import send_all
from sglang_omni.engines.runtime.transport import encode, read_frame
from sglang_omni.protocol.errors import ConfigError

LOGGER = logging.getLogger(__name__)

TOKEN_BYTES = 32
HANDSHAKE_S = 5.0
SILENCE_S = 8.0
"""A link is lost when nothing arrives, or can be sent, for so long."""
KEEP_ALIVE_S = 1.0
MAX_STRANGERS = 16
"""Connections that may be in their handshake at once."""
_LOG_INTERVAL_S = 1.0
_ADMITTED = b"\x01"


@dataclass(frozen=True)
class KeepAlive:
    """Nothing but a sign of life."""


@dataclass(frozen=True)
class Tokens:
    """The secrets of the two connections: `up` is that to the engine, `down` that from it."""

    up: bytes
    down: bytes

    @classmethod
    def create(cls) -> "Tokens":
        """Return new random tokens."""
        return cls(secrets.token_bytes(TOKEN_BYTES), secrets.token_bytes(TOKEN_BYTES))

    @classmethod
    def of_rank(cls, rank: int) -> "Tokens":
        """Return those of a machine of the thinker, which only tell the connections apart.

        Nobody can give that machine a secret, so its certificate alone lets it in.
        """
        names = (f"rank {rank} {direction}" for direction in ("up", "down"))
        return cls(*(hashlib.sha256(name.encode()).digest() for name in names))


def create_context(tls: TlsFiles, *, is_server: bool) -> ssl.SSLContext:
    """Return a TLS context that requires a certificate of the authority from the other end.

    Host names are not compared: the authority signs the machines of one cluster only.

    Raises:
        ConfigError: A file cannot be read, or is no certificate or key.
    """
    protocol = ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    if is_server:
        # A ticket would be data in the other direction of a connection that has only one.
        context.num_tickets = 0
    try:
        context.load_cert_chain(tls.certificate, tls.key)
        context.load_verify_locations(tls.ca)
    except OSError as error:
        files = f"{tls.certificate}, {tls.key}, {tls.ca}"
        raise ConfigError(f"the cluster's TLS files ({files}) cannot be used: {error}") from error
    return context


class MessageWriter:
    """Writes messages to a connection; threads take turns."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()

    def send(self, message: Any) -> None:
        """Send a message.

        Raises:
            OSError: The link is lost.
            ValueError: The message is too large.
        """
        frame = encode(message)
        with self._lock:
            if isinstance(self._sock, ssl.SSLSocket):
                for buffer in frame:
                    self._sock.sendall(buffer)
            else:
                send_all(self._sock, frame)


class Links:
    """Both connections of one end: `writer` sends on one, `receive` reads the other."""

    def __init__(self, outgoing: socket.socket, incoming: socket.socket) -> None:
        self._sockets = (outgoing, incoming)
        self._incoming = _iter_messages(incoming)
        self.writer = MessageWriter(outgoing)
        self._closed = threading.Event()
        threading.Thread(target=self._keep_alive, name="keep-alive", daemon=True).start()

    def receive(self) -> Iterator[Any]:
        """Yield messages until the other end closes the link.

        Raises:
            OSError: The link is lost.
        """
        for message in self._incoming:
            if not isinstance(message, KeepAlive):
                yield message

    def close(self) -> None:
        """Close both connections, which ends `receive` at both ends."""
        self._closed.set()
        for sock in self._sockets:
            _close(sock)

    def _keep_alive(self) -> None:
        while not self._closed.wait(KEEP_ALIVE_S):
            try:
                self.writer.send(KeepAlive())
            except OSError:
                return  # The reader of the other connection learns of it too.


class HostListener:
    """Waits for the two connections of one host, and takes no others."""

    def __init__(
        self, address: str, tls: TlsFiles, port: int = 0, tokens: Tokens | None = None
    ) -> None:
        """Listen on an address of this machine, on a free port and with new tokens by default.

        Raises:
            ConfigError: The TLS files cannot be used.
            OSError: The address cannot be listened on.
        """
        self.tokens = tokens or Tokens.create()
        self._context = create_context(tls, is_server=True)
        self._unused = {self.tokens.up: "up", self.tokens.down: "down"}
        self._admitted: dict[str, ssl.SSLSocket] = {}
        self._changed = threading.Condition()
        self._strangers = threading.Semaphore(MAX_STRANGERS)
        self._logged_at = 0.0
        self._server = socket.create_server((address, port), backlog=MAX_STRANGERS)
        self.address: tuple[str, int] = self._server.getsockname()[:2]
        threading.Thread(target=self._accept, name="listener", daemon=True).start()

    def wait(self, timeout_s: float) -> Links | None:
        """Return the links once both connections are there, or None after `timeout_s` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._admitted) == 2, timeout_s)
            if len(self._admitted) < 2:
                return None
        self.close()
        return Links(self._admitted["up"], self._admitted["down"])

    def close(self) -> None:
        """Stop listening."""
        _close(self._server)

    def _accept(self) -> None:
        while True:
            try:
                sock, peer = self._server.accept()
            except OSError:
                return  # Closed.
            if self._strangers.acquire(blocking=False):
                arguments = (sock, peer[0])
                threading.Thread(target=self._admit, args=arguments, daemon=True).start()
            else:
                self._reject(sock, peer[0], "too many connections at once")

    def _admit(self, sock: socket.socket, peer: str) -> None:
        try:
            sock.settimeout(HANDSHAKE_S)
            secured = self._context.wrap_socket(sock, server_side=True)
            role = self._redeem(_receive_exactly(secured, TOKEN_BYTES))
            if role is None:
                self._reject(secured, peer, "unknown or used token")
                return
            _prepare(secured)
            secured.sendall(_ADMITTED)
        except OSError as error:
            self._reject(sock, peer, str(error))
            return
        finally:
            self._strangers.release()
        with self._changed:
            self._admitted[role] = secured
            self._changed.notify_all()

    def _redeem(self, token: bytes) -> str | None:
        """Return which connection a token is for, and make it useless, or return None."""
        with self._changed:
            # Compare with each one, so that the time tells nothing.
            matches = [known for known in self._unused if hmac.compare_digest(known, token)]
            return self._unused.pop(matches[0]) if matches else None

    def _reject(self, sock: socket.socket, peer: str, reason: str) -> None:
        _close(sock)
        now = time.monotonic()
        if now - self._logged_at > _LOG_INTERVAL_S:
            self._logged_at = now
            LOGGER.warning("rejected a connection from %s: %s", peer, reason)


def connect(address: tuple[str, int], tokens: Tokens, tls: TlsFiles) -> Links:
    """Connect a host to its proxy.

    Raises:
        ConfigError: The TLS files cannot be used.
        OSError: The proxy cannot be reached, or rejects the certificate or the tokens.
    """
    context = create_context(tls, is_server=False)
    incoming = _connect_one(address, tokens.up, context)
    return Links(_connect_one(address, tokens.down, context), incoming)


def _connect_one(address: tuple[str, int], token: bytes, context: ssl.SSLContext) -> ssl.SSLSocket:
    sock = socket.create_connection(address, HANDSHAKE_S)
    try:
        secured = context.wrap_socket(sock)
        secured.sendall(token)
        _receive_exactly(secured, len(_ADMITTED))
        _prepare(secured)
    except OSError:
        sock.close()
        raise
    return secured


def _prepare(sock: socket.socket) -> None:
    sock.settimeout(SILENCE_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _iter_messages(sock: socket.socket) -> Iterator[Any]:
    """Yield messages until the other end closes the connection.

    OpenSSL holds what is left of a record, so a buffer of Python's would only be one more copy.
    """
    while True:
        frame = read_frame()
        try:
            while True:
                missing = next(frame)
                while missing:
                    count = sock.recv_into(missing)
                    if count == 0:
                        return
                    missing = missing[count:]
        except StopIteration as end:
            yield end.value


def _receive_exactly(sock: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        part = sock.recv(count - len(received))
        if not part:
            raise ConnectionError("the other end closed the connection")
        received += part
    return received


def _close(sock: socket.socket) -> None:
    with suppress(OSError):  # It is not connected any more.
        # Not the method of `SSLSocket`, after which another thread would send plain text.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    sock.close()
