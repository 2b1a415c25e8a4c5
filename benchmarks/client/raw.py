"""Many streams at the lowest cost: bytes are kept with their arrival times, and parsed afterwards.

A client that parses every event needs more CPU time than the server. This one only records what
arrived when; everything is parsed after the load.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.client.load import record_lag
from sglang_omni.entrypoints.http.transport.uvicorn_server import run

# The end of a chunked body. Samples look like this with a probability of 2 ** -56.
LAST_CHUNK = b"\r\n0\r\n\r\n"
_BUFFER_BYTES = 256 << 10


@dataclass(frozen=True)
class StreamPlan:
    """`streams` connections to a port on loopback, each of which repeats one request.

    `request` is a whole HTTP request; it is sent again as soon as it was answered, between two
    times on the machine's monotonic clock. The streams start one after the other during the first
    `ramp_s` seconds, and all are closed at the end. `keep` keeps all bodies; otherwise only that of
    each stream's first answer is kept.
    """

    port: int
    request: bytes
    streams: int
    start_s: float
    end_s: float
    ramp_s: float
    keep: bool


@dataclass
class RawAnswer:
    """One answer as it arrived: the time and size of each read, and its bytes where they are kept.

    The bytes have the headers and the framing.
    """

    began_s: float
    complete: bool = False
    reads: list[tuple[float, int]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True)
class RawLoad:
    """The answers of all streams, the client's share of a core, and the lag of its event loop.

    `lag_p99_s` is the 99th percentile in seconds.
    """

    answers: list[RawAnswer]
    cpu: float
    lag_p99_s: float


class _Stream(asyncio.BufferedProtocol):
    """One connection of a plan."""

    def __init__(self, plan: StreamPlan) -> None:
        self._plan = plan
        self._memory = memoryview(bytearray(_BUFFER_BYTES))
        self._tail = b""
        self._transport: asyncio.Transport
        self._answer: RawAnswer
        self.answers: list[RawAnswer] = []
        self.connection_error: Exception | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._memory

    def buffer_updated(self, nbytes: int) -> None:
        answer = self._answer
        answer.reads.append((time.monotonic(), nbytes))
        data = self._memory[:nbytes]
        if self._plan.keep or len(self.answers) == 1:
            answer.body += data
        self._tail = (self._tail + bytes(data[-len(LAST_CHUNK) :]))[-len(LAST_CHUNK) :]
        if self._tail == LAST_CHUNK:
            answer.complete = True
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self.connection_error = exc or ConnectionError("the server closed the connection")

    def close(self) -> None:
        """Close the connection. Raises the error that had ended it before."""
        if self.connection_error:
            raise self.connection_error
        self._transport.abort()

    def _send(self) -> None:
        self._tail = b""
        self._answer = RawAnswer(time.monotonic())
        self.answers.append(self._answer)
        self._transport.write(self._plan.request)


def build_post(path: str, body: bytes) -> bytes:
    """Build a whole HTTP request."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def run_plan(plan: StreamPlan) -> RawLoad:
    """Run a plan in this process. Raises `OSError` if a connection broke."""
    return run(_run_plan(plan))


async def _run_plan(plan: StreamPlan) -> RawLoad:
    loop, streams = asyncio.get_running_loop(), []
    lags: list[float] = []
    await asyncio.sleep(plan.start_s - time.monotonic())
    lag_task = asyncio.create_task(record_lag(lags))
    began_s, cpu_s = time.monotonic(), time.process_time()
    for number in range(plan.streams):
        due_s = plan.start_s + plan.ramp_s * number / plan.streams
        await asyncio.sleep(max(0.0, due_s - time.monotonic()))
        _, stream = await loop.create_connection(lambda: _Stream(plan), "127.0.0.1", plan.port)
        streams.append(stream)
    await asyncio.sleep(plan.end_s - time.monotonic())
    cpu = (time.process_time() - cpu_s) / (time.monotonic() - began_s)
    lag_task.cancel()
    for stream in streams:
        stream.close()
    answers = [answer for stream in streams for answer in stream.answers]
    return RawLoad(answers, cpu, sorted(lags)[int(0.99 * (len(lags) - 1))])


def body_chunks(body: bytes) -> list[tuple[int, bytes]]:
    """Return the chunks of an answer's body, each with the offset of its end in the received bytes.

    An incomplete last chunk is left out.

    Raises:
        ValueError: The status is not 200.
    """
    head, _, _ = body.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise ValueError(body[:400].decode(errors="replace"))
    position, chunks = len(head) + 4, []
    while (line := body.find(b"\r\n", position)) >= 0:
        size = int(body[position:line], 16)
        position = line + 2 + size + 2
        if not size or position > len(body):
            break
        chunks.append((position, body[line + 2 : line + 2 + size]))
    return chunks


def arrival_times(answer: RawAnswer, offsets: Sequence[int]) -> list[float]:
    """Return when the byte before each offset arrived; `offsets` ascend."""
    times, reads, read_at, received = [], iter(answer.reads), 0.0, 0
    for offset in offsets:
        while received < offset:
            read_at, size = next(reads)
            received += size
        times.append(read_at)
    return times
