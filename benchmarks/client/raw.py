"""Many streams at once at the least cost: bytes are kept with their times, and read afterwards.

A client that parses every event spends more on it than the server does. This one notes what came
when; everything is looked at once the load is over.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.client.load import watch_lag
from sglang_omni.entrypoints.http.transport.uvicorn_server import run

# How a body in chunks ends. Samples that happen to end a read like this are 56 bits of chance.
END = b"\r\n0\r\n\r\n"
_BUFFER_BYTES = 256 << 10


@dataclass(frozen=True)
class Plan:
    """`streams` connections to a port on loopback, on each of which `question` (a whole HTTP
    request) is asked again as soon as it was answered, between two times on the machine's monotonic
    clock. They begin one after the other during the first `ramp_s` seconds, and all are cut off at
    the end. The bodies are kept if `keep`, or else those of each stream's first answer alone."""

    port: int
    question: bytes
    streams: int
    start_s: float
    end_s: float
    ramp_s: float
    keep: bool


@dataclass
class RawAnswer:
    """One answer as it came: the time and size of each read, and its bytes, headers and framing
    included, where they are kept."""

    began_s: float
    complete: bool = False
    reads: list[tuple[float, int]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True)
class RawLoad:
    """All answers, of all streams; the client's share of a core, and how late its loop ran (99 %,
    seconds)."""

    answers: list[RawAnswer]
    cpu: float
    lag_p99_s: float


class _Stream(asyncio.BufferedProtocol):
    """One connection of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._memory = memoryview(bytearray(_BUFFER_BYTES))
        self._tail = b""
        self._transport: asyncio.Transport
        self._now: RawAnswer
        self.answers: list[RawAnswer] = []
        self.lost: Exception | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._ask()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._memory

    def buffer_updated(self, nbytes: int) -> None:
        answer = self._now
        answer.reads.append((time.monotonic(), nbytes))
        data = self._memory[:nbytes]
        if self._plan.keep or len(self.answers) == 1:
            answer.body += data
        self._tail = (self._tail + bytes(data[-len(END) :]))[-len(END) :]
        if self._tail == END:
            answer.complete = True
            self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = exc or ConnectionError("the server hung up")

    def cut(self) -> None:
        """Hang up. Raises what had ended the connection before."""
        if self.lost:
            raise self.lost
        self._transport.abort()

    def _ask(self) -> None:
        self._tail = b""
        self._now = RawAnswer(time.monotonic())
        self.answers.append(self._now)
        self._transport.write(self._plan.question)


def post(path: str, body: bytes) -> bytes:
    """A whole HTTP request."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def carry_out(plan: Plan) -> RawLoad:
    """Run a plan to its end, in this process. Raises `OSError` where a connection broke."""
    return run(_carry_out(plan))


async def _carry_out(plan: Plan) -> RawLoad:
    loop, lags, streams = asyncio.get_running_loop(), [], []
    await asyncio.sleep(plan.start_s - time.monotonic())
    watching = asyncio.create_task(watch_lag(lags))
    began_s, cpu_s = time.monotonic(), time.process_time()
    for number in range(plan.streams):
        due_s = plan.start_s + plan.ramp_s * number / plan.streams
        await asyncio.sleep(max(0.0, due_s - time.monotonic()))
        _, stream = await loop.create_connection(lambda: _Stream(plan), "127.0.0.1", plan.port)
        streams.append(stream)
    await asyncio.sleep(plan.end_s - time.monotonic())
    cpu = (time.process_time() - cpu_s) / (time.monotonic() - began_s)
    watching.cancel()
    for stream in streams:
        stream.cut()
    answers = [answer for stream in streams for answer in stream.answers]
    return RawLoad(answers, cpu, sorted(lags)[int(0.99 * (len(lags) - 1))])


def pieces(body: bytes) -> list[tuple[int, bytes]]:
    """The chunks of an answer's body, each with the offset of its end in what was received; an
    incomplete last one is left out. Raises `ValueError` for any status but 200."""
    head, _, _ = body.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise ValueError(body[:400].decode(errors="replace"))
    place, found = len(head) + 4, []
    while (line := body.find(b"\r\n", place)) >= 0:
        size = int(body[place:line], 16)
        place = line + 2 + size + 2
        if not size or place > len(body):
            break
        found.append((place, body[line + 2 : line + 2 + size]))
    return found


def arrival_times(answer: RawAnswer, offsets: Sequence[int]) -> list[float]:
    """When the byte before each offset came; `offsets` ascend."""
    times, reads, at, received = [], iter(answer.reads), 0.0, 0
    for offset in offsets:
        while received < offset:
            at, size = next(reads)
            received += size
        times.append(at)
    return times
