"""How long this machine takes to send so many bytes over TLS, with nothing else to do for it."""

import socket
import ssl
import statistics
import threading
import time

from sglang_omni.engines.remote.contract import TlsFiles
from sglang_omni.engines.remote.links import create_context


def time_plain_tls(tls: TlsFiles, sent_bytes: int, answer_bytes: int, repeats: int = 40) -> float:
    """Return the median in milliseconds of sending bytes and receiving an answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        arguments = (listener, tls, sent_bytes, answer_bytes)
        answering = threading.Thread(target=_answer, args=arguments)
        answering.start()
        try:
            with socket.create_connection(listener.getsockname()) as plain:
                context = create_context(tls, is_server=False)
                with context.wrap_socket(plain) as secured:
                    times = [_exchange(secured, sent_bytes, answer_bytes) for _ in range(repeats)]
        finally:
            answering.join()
    return 1000 * statistics.median(times)


def _exchange(connection: ssl.SSLSocket, sent_bytes: int, answer_bytes: int) -> float:
    began = time.perf_counter()
    connection.sendall(bytes(sent_bytes))
    assert _receive(connection, answer_bytes)
    return time.perf_counter() - began


def _answer(listener: socket.socket, tls: TlsFiles, sent_bytes: int, answer_bytes: int) -> None:
    accepted, _ = listener.accept()
    with create_context(tls, is_server=True).wrap_socket(accepted, server_side=True) as secured:
        while _receive(secured, sent_bytes):
            secured.sendall(bytes(answer_bytes))


def _receive(connection: ssl.SSLSocket, count: int) -> bool:
    """Receive so many bytes; returns whether they came before the end."""
    missing = memoryview(bytearray(count))
    while missing:
        received = connection.recv_into(missing)
        if received == 0:
            return False
        missing = missing[received:]
    return True
