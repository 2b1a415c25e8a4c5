"""Hostile clients, and the ordinary one beside them whose answers and waits are measured."""

import contextlib
import math
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.entrypoints.http.fake import Served
from tests.testing.machine import PATIENCE
from tests.testing.machine_stalls import MachineStalls, measured_stalls
from tests.testing.parallel import WORKERS

CHATS = "/v1/chat/completions"
CHAT = {"model": "org/ming", "messages": [{"role": "user", "content": "hello there"}]}
# What an ordinary client may wait for, at worst, whatever others do.
MAX_WAIT_S = 1.0 * PATIENCE
MAX_STALL_S = 0.1 * PATIENCE
STALLS = "sgl_omni_event_loop_stall_seconds"


def connect(served: Served, seconds: float = 20.0) -> socket.socket:
    """A connection on which reads and writes give up after `seconds`."""
    url = urlsplit(served.url)
    return socket.create_connection((url.hostname, url.port), timeout=seconds)


def head(path: str = CHATS, /, **headers: object) -> bytes:
    """The start of a POST, with the blank line; `_` in names of headers stands for `-`."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def read_all(end: socket.socket) -> bytes:
    """Everything until the server closes the connection, or resets it."""
    received = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while data := end.recv(65_536):
            received += data
    return bytes(received)


def status_of(answer: bytes) -> int:
    """The status of the first response in `answer`; 0 for none."""
    return int(answer.split(b" ", 2)[1]) if answer else 0


def send_until_refused(end: socket.socket, data: bytes, times: int) -> int:
    """Send `data` many times; returns how many bytes the server has let through."""
    sent = 0
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for _ in range(times):
            end.sendall(data)
            sent += len(data)
    return sent


@dataclass
class Bystander:
    """An ordinary client: chats, and asks whether the server is ready, all the time."""

    served: Served
    headers: dict[str, str] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def run(self, ending: threading.Event) -> None:
        """Ask until `ending` is set, and then once more."""
        with httpx.Client(base_url=self.served.url, headers=self.headers, timeout=20) as client:
            while not ending.is_set():
                self._ask(client)
                time.sleep(0.02)
            self._ask(client)

    def _ask(self, client: httpx.Client) -> None:
        for method, path, body in (("GET", "/ready", None), ("POST", CHATS, CHAT)):
            started = time.monotonic()
            self.statuses.append(client.request(method, path, json=body).status_code)
            self.waits.append(time.monotonic() - started)

    def check(self, machine: MachineStalls) -> None:
        """It was answered, always and soon."""
        statuses = Counter(self.statuses)
        assert len(self.statuses) >= 4
        assert set(statuses) == {200}, f"it was answered {statuses}"
        longest = max(self.waits)
        assert longest < machine.allow(MAX_WAIT_S), f"it waited {longest:.2f} s, {machine}"


@contextlib.contextmanager
def bystander(served: Served, headers: dict[str, str] | None = None) -> Iterator[Bystander]:
    """While the body runs, an ordinary client asks.

    The test fails unless it is served well, and the server's event loop never stands still for
    long: tests of other workers wait meanwhile. What the machine itself stood still is no fault of
    the server.
    """
    with WORKERS.alone():
        yield from _asking(served, headers)


def _asking(served: Served, headers: dict[str, str] | None) -> Iterator[Bystander]:
    before = stall_buckets(served, headers)
    one, ending = Bystander(served, headers or {}), threading.Event()
    thread = threading.Thread(target=one.run, args=(ending,))
    with measured_stalls() as machine:
        thread.start()
        try:
            while not one.statuses and thread.is_alive():
                time.sleep(0.01)
            yield one
        finally:
            ending.set()
            thread.join()
        after = stall_buckets(served, headers)
    one.check(machine)
    added = {bound: count - before[bound] for bound, count in after.items()}
    assert added[math.inf] > 0, "the event loop was not measured"
    # Stalls are counted by buckets; the first that holds the longest one allowed decides.
    allowed = min(bound for bound in added if bound >= machine.allow(MAX_STALL_S))
    assert added[allowed] == added[math.inf], f"the event loop stalled, {added}, {machine}"


def stall_buckets(served: Served, headers: dict[str, str] | None = None) -> dict[float, float]:
    """How often the event loop was late by at most so many seconds, since the server started."""
    text = httpx.get(f"{served.url}/metrics", headers=headers).text
    return {
        float(sample.labels["le"]): sample.value
        for family in text_string_to_metric_families(text)
        if family.name == STALLS
        for sample in family.samples
        if sample.name.endswith("_bucket")
    }
