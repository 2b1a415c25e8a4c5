"""Framed messages between the API process and an engine process.

A frame consists of the length of a pickle and the number of large arrays (4 bytes each,
big-endian), the length of each array, the pickle, and the arrays' bytes (pickle protocol 5,
out-of-band buffers). The bytes go from the sender's memory to the socket, and from the socket into
the receiver's arrays, without a copy in between. Pickle is safe here because the socket is one end
of a private socketpair, made by the parent and inherited by the child: both ends run this code and
no other process can connect. Frozen dataclasses and arrays need no second schema.
"""

import asyncio
import pickle
import socket
import struct
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from sglang_omni.engines.runtime.single_reader_queue import SingleReaderQueue
from sglang_omni.protocol.errors import OmniError

MAX_FRAME_BYTES = 256 << 20
HEARTBEAT_INTERVAL_S = 0.25

# For smaller arrays, one more buffer to send and to receive costs more than a copy.
_OUT_OF_BAND_BYTES = 4 << 10
_STAGING_BYTES = 16 << 10
_HEADER = struct.Struct(">II")


@dataclass(frozen=True)
class Start:
    """Build the worker: call `factory` with `settings`. This is the first message, sent once.

    A request with `window` unconsumed outputs counts as stalled.
    """

    factory: str
    settings: Any
    window: int


@dataclass(frozen=True)
class Submit:
    """Submit a new request."""

    request_id: str
    request: Any


@dataclass(frozen=True)
class Cancel:
    """Cancel a request: its client no longer waits for it."""

    request_id: str


@dataclass(frozen=True)
class Consumed:
    """Report that the client consumed `count` more outputs of a request."""

    request_id: str
    count: int


@dataclass(frozen=True)
class Profile:
    """Start the profiler; with `folder` None, stop it and write the trace to the folder before."""

    folder: str | None


@dataclass(frozen=True)
class Stop:
    """Close the worker and exit."""


@dataclass(frozen=True)
class Ready:
    """The worker is loaded and warmed up. `info` is what it reports."""

    info: Any


@dataclass(frozen=True)
class StartFailed:
    """The factory raised. `reason` is fit for an error message; the traceback is on stderr.

    `explained` means that the error is an `OmniError`, whose message needs no traceback.
    """

    reason: str
    explained: bool


@dataclass(frozen=True)
class Progress:
    """What the factory is doing now."""

    text: str


@dataclass(frozen=True)
class Outputs:
    """The outputs of one step, each with its request's id. A request's final one has `last` set."""

    outputs: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Failed:
    """The request ended in an error."""

    request_id: str
    error: OmniError


@dataclass(frozen=True)
class Heartbeat:
    """A heartbeat, sent every `HEARTBEAT_INTERVAL_S` from a thread of its own.

    `busy_s` is the age of the current step in seconds (for a `StreamWorker`, of the current loop
    iteration), 0 between steps. A step that hangs shows as a growing age. A step that holds the
    GIL shows as missing heartbeats.
    """

    counters: Mapping[str, float]
    busy_s: float


ToEngine = Start | Submit | Cancel | Consumed | Profile | Stop
FromEngine = Ready | StartFailed | Progress | Outputs | Failed | Heartbeat

Frame = list[bytes | memoryview]


class BufferCollector:
    """The `buffer_callback` of a pickler: takes large arrays out of the pickle.

    Attributes:
        views: Their bytes, views of the arrays.
    """

    def __init__(self) -> None:
        self.views: list[memoryview] = []

    def __call__(self, buffer: pickle.PickleBuffer) -> bool:
        """Take an array, or return True to leave it in the pickle."""
        with suppress(BufferError):  # A non-contiguous array cannot be viewed as bytes.
            if (view := buffer.raw()).nbytes >= _OUT_OF_BAND_BYTES:
                self.views.append(view)
                return False
        return True


def encode(message: Any) -> Frame:
    """Return the frame of a message as a list of buffers.

    The buffers are views of the message's large arrays, which must not change until sent.

    Raises:
        ValueError: The frame exceeds `MAX_FRAME_BYTES`.
    """
    collector = BufferCollector()
    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL, buffer_callback=collector)
    sizes = [view.nbytes for view in collector.views]
    if (total := len(body) + sum(sizes)) > MAX_FRAME_BYTES:
        raise ValueError(f"a {type(message).__name__} message of {total} bytes is too large")
    head = _HEADER.pack(len(body), len(sizes)) + struct.pack(f">{len(sizes)}I", *sizes)
    return [head + body, *collector.views]


def read_frame() -> Generator[memoryview, None, Any]:
    """Yield memory to be filled with the next bytes of the stream, and return the message.

    Raises:
        ValueError: The header is not one of ours.
    """
    header = bytearray(_HEADER.size)
    yield memoryview(header)
    length, count = _HEADER.unpack(header)
    _require_plausible(length + count * _OUT_OF_BAND_BYTES)
    table = bytearray(4 * count)
    if count:
        yield memoryview(table)
    sizes = struct.unpack(f">{count}I", table)
    _require_plausible(length + sum(sizes))
    yield memoryview(body := bytearray(length))
    # `np.empty` does not clear memory that is about to be overwritten.
    arrays = [np.empty(size, np.uint8) for size in sizes]
    for array in arrays:
        yield array.data
    return pickle.loads(body, buffers=arrays)


def _require_plausible(size: int) -> None:
    if size > MAX_FRAME_BYTES:
        raise ValueError(f"a frame announces {size} bytes: the stream is corrupt")


def receive(sock: socket.socket) -> Iterator[Any]:
    """Yield messages from a blocking socket until the peer closes it (the engine's side)."""
    with sock.makefile("rb") as stream:
        while (message := _receive_one(stream)) is not None:
            yield message


def _receive_one(stream: BinaryIO) -> Any:
    """Return the next message, or None at the end of the stream."""
    frame = read_frame()
    try:
        while True:
            memory = next(frame)
            if stream.readinto(memory) < len(memory):  # type: ignore[attr-defined]
                return None
    except StopIteration as end:
        return end.value


class FrameProtocol(asyncio.BufferedProtocol):
    """Splits the byte stream into messages.

    A large array is received in place. Small parts are read together through a staging buffer,
    because a system call costs more than a copy.
    """

    def __init__(self, deliver: Callable[[FromEngine | Exception], None]) -> None:
        """Call `deliver` with every message, and finally with the error that ended the stream."""
        self._deliver = deliver
        self._staging = memoryview(bytearray(_STAGING_BYTES))
        self._frame = read_frame()
        self._missing = next(self._frame)
        self._in_place = False
        self._transport: asyncio.BaseTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, to close it after a corrupt message."""
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes go: into the array that lacks many, or to be staged."""
        self._in_place = len(self._missing) >= _STAGING_BYTES
        return self._missing if self._in_place else self._staging

    def buffer_updated(self, nbytes: int) -> None:
        """Take `nbytes` that were received. A corrupt message is delivered as an error."""
        try:
            if self._in_place:
                self._advance(nbytes)
            else:
                self._unpack(self._staging[:nbytes])
        except Exception as error:
            self._deliver(error)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Deliver the end of the connection as `EOFError`."""
        self._deliver(EOFError(str(exc or "the peer closed the connection")))

    def _unpack(self, data: memoryview) -> None:
        while data:
            count = min(len(data), len(self._missing))
            self._missing[:count] = data[:count]
            data = data[count:]
            self._advance(count)

    def _advance(self, count: int) -> None:
        """Record that `count` more bytes were received."""
        self._missing = self._missing[count:]
        if self._missing:
            return
        try:
            self._missing = next(self._frame)
        except StopIteration as end:
            self._frame = read_frame()
            self._missing = next(self._frame)
            self._deliver(end.value)


class AsyncChannel:
    """The API process's end of the socket: reads without blocking the loop, writes without waiting.

    The write buffer stays small because the engine has a thread that only reads, and the number of
    requests in flight is limited. The read queue is bounded by the window of every request.
    """

    def __init__(self) -> None:
        self._messages: SingleReaderQueue[FromEngine | Exception] = SingleReaderQueue()
        self._ended: Exception | None = None
        self._unsent: list[bytes | memoryview] = []
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport

    @classmethod
    async def connect(cls, sock: socket.socket) -> "AsyncChannel":
        """Return a channel that owns a connected socket."""
        channel = cls()
        channel._transport, _ = await channel._loop.create_unix_connection(
            lambda: FrameProtocol(channel._messages.put), sock=sock
        )
        return channel

    def send(self, message: ToEngine) -> None:
        """Queue a message. It is dropped if the peer is gone, which `receive` reports.

        All messages of one loop iteration leave in one write: many clients answer a step at once,
        and each write wakes the engine.
        """
        frame = encode(message)
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent += frame

    async def receive(self) -> FromEngine:
        """Wait for the next message.

        Raises:
            EOFError: The peer is gone.
            Exception: A message could not be read. Every later call raises the same error.
        """
        message = self._ended or await self._messages.get()
        if isinstance(message, Exception):
            self._ended = message
            raise message
        return message

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if not self._transport.is_closing():
            self._transport.writelines(unsent)

    def close(self) -> None:
        """Close the socket; unsent messages are lost."""
        self._transport.abort()
