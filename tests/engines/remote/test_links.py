"""Only a host with the cluster's certificate and unused tokens gets a link."""

import logging
import os
import pickle
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from sglang_omni.engines.remote import links
from sglang_omni.engines.remote.contract import TlsFiles
from sglang_omni.engines.remote.links import (
    HostListener,
    Links,
    Tokens,
    connect,
    create_context,
)
from sglang_omni.protocol.errors import ConfigError

Machines = dict[str, TlsFiles]
REJECTED = (ConnectionError, ssl.SSLError)


@dataclass(frozen=True)
class Bytes:
    """A message."""

    data: np.ndarray


@dataclass(frozen=True)
class Payload:
    """Creates a file where it is unpickled."""

    path: Path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


@pytest.fixture
def listener(machines: Machines) -> Iterator[HostListener]:
    listening = HostListener("127.0.0.1", machines["a"])
    yield listening
    listening.close()


def join(listener: HostListener, machines: Machines) -> tuple[Links, Links]:
    """Connect machine `b`. Return the links of the proxy and of the host."""
    host = connect(listener.address, listener.tokens, machines["b"])
    proxy = listener.wait(5)
    assert proxy is not None
    return proxy, host


def test_messages_pass_both_ways(listener: HostListener, machines: Machines) -> None:
    proxy, host = join(listener, machines)
    content = np.random.default_rng(1).integers(0, 255, 5_000_000, np.uint8)
    for sender, receiver in ((proxy, host), (host, proxy)):
        thread = threading.Thread(target=sender.writer.send, args=(Bytes(content),))
        thread.start()
        assert np.array_equal(next(receiver.receive()).data, content)
        thread.join()
    host.close()
    assert list(proxy.receive()) == []
    proxy.close()


def test_the_port_is_closed_once_the_host_is_there(
    listener: HostListener, machines: Machines
) -> None:
    proxy, host = join(listener, machines)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(listener.address, 1)
    proxy.close()
    host.close()


def test_a_link_without_signs_of_life_is_lost(
    listener: HostListener, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "SILENCE_S", 0.5)
    monkeypatch.setattr(links, "KEEP_ALIVE_S", 60.0)
    proxy, host = join(listener, machines)
    asked_at = time.monotonic()
    with pytest.raises(TimeoutError):
        next(proxy.receive())
    assert 0.4 < time.monotonic() - asked_at < 3
    proxy.close()
    host.close()


def test_signs_of_life_keep_an_idle_link(
    listener: HostListener, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "SILENCE_S", 1.0)
    monkeypatch.setattr(links, "KEEP_ALIVE_S", 0.1)
    proxy, host = join(listener, machines)
    threading.Timer(2.5, host.writer.send, ("late",)).start()
    assert next(proxy.receive()) == "late"
    proxy.close()
    host.close()


def is_rejected(listener: HostListener, caplog: pytest.LogCaptureFixture, reason: str) -> bool:
    """Whether a rejection is logged in time and no connection counts."""
    deadline = time.monotonic() + 5
    while reason not in caplog.text and time.monotonic() < deadline:
        time.sleep(0.01)
    return reason in caplog.text and listener.wait(0.05) is None


def test_a_strangers_certificate_is_rejected(
    listener: HostListener, stranger: TlsFiles, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(REJECTED):
        connect(listener.address, listener.tokens, stranger)
    # The stranger, for its part, does not trust the listener's certificate.
    assert is_rejected(listener, caplog, "rejected a connection from 127.0.0.1")


def test_a_stranger_who_trusts_the_listener_is_rejected(
    listener: HostListener,
    machines: Machines,
    stranger: TlsFiles,
    caplog: pytest.LogCaptureFixture,
) -> None:
    mixed = TlsFiles(machines["a"].ca, stranger.certificate, stranger.key)
    with caplog.at_level(logging.WARNING), pytest.raises(REJECTED):
        connect(listener.address, listener.tokens, mixed)
    assert is_rejected(listener, caplog, "CERTIFICATE_VERIFY_FAILED")


def test_a_client_without_a_certificate_is_rejected(
    listener: HostListener, machines: Machines, caplog: pytest.LogCaptureFixture
) -> None:
    context = ssl.create_default_context(cafile=str(machines["a"].ca))
    context.check_hostname = False
    with (
        caplog.at_level(logging.WARNING),
        socket.create_connection(listener.address, 5) as plain,
        context.wrap_socket(plain) as secured,
        suppress(ssl.SSLError, ConnectionError),
    ):
        secured.sendall(listener.tokens.up)
        assert secured.recv(1) == b""
    assert is_rejected(listener, caplog, "PEER_DID_NOT_RETURN_A_CERTIFICATE")


def test_an_unknown_token_is_rejected(
    listener: HostListener, machines: Machines, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(REJECTED):
        connect(listener.address, Tokens.create(), machines["b"])
    assert is_rejected(listener, caplog, "unknown or used token")


def test_a_token_is_good_for_one_connection(
    listener: HostListener, machines: Machines, caplog: pytest.LogCaptureFixture
) -> None:
    used = Tokens(listener.tokens.up, listener.tokens.up)
    with caplog.at_level(logging.WARNING), pytest.raises(REJECTED):
        connect(listener.address, used, machines["b"])
    assert is_rejected(listener, caplog, "unknown or used token")


@pytest.mark.parametrize("content", [b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 4096, b""])
def test_garbage_is_rejected(
    listener: HostListener, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING),
        socket.create_connection(listener.address, 5) as plain,
    ):
        with suppress(OSError):  # Rejected already.
            plain.sendall(content)
            plain.shutdown(socket.SHUT_WR)
        assert is_rejected(listener, caplog, "rejected a connection from 127.0.0.1")


def test_a_pickle_in_place_of_a_token_is_not_read(
    listener: HostListener, machines: Machines, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = tmp_path / "executed"
    frame = pickle.dumps(Payload(target))
    pickle.loads(frame)
    assert target.exists()
    target.unlink()
    context = create_context(machines["b"], is_server=False)
    with (
        caplog.at_level(logging.WARNING),
        socket.create_connection(listener.address, 5) as plain,
        context.wrap_socket(plain) as secured,
    ):
        secured.sendall(frame)
        assert is_rejected(listener, caplog, "unknown or used token")
    assert not target.exists()


def test_who_says_nothing_holds_nobody_up(
    listener: HostListener, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = [socket.create_connection(listener.address, 5) for _ in range(3)]
    proxy, host = join(listener, machines)
    for sock in silent:
        sock.close()
    proxy.close()
    host.close()


def test_files_that_are_no_certificates_are_named(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text("nothing")
    files = TlsFiles(tmp_path / "ca", tmp_path / "cert", tmp_path / "key")
    with pytest.raises(ConfigError, match="TLS files"):
        create_context(files, is_server=True)


def test_keys_are_readable_by_their_owner_only(machines: Machines) -> None:
    assert os.stat(machines["a"].key).st_mode & 0o077 == 0
