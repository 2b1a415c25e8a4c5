"""Framed messages between the API process and an engine process.

A frame is the length of a pickle and the number of large arrays (4 bytes each, big-endian), the
length of each array, the pickle, and the arrays' bytes behind it: they go from the sender's memory
to the socket, and from the socket into the receiver's arrays, without a copy in between. Pickle is
safe here and nowhere else: the socket is one end of a private socketpair, made by the parent and
inherited by the child, so both ends run this very code and nobody else can connect. It carries
frozen settings, requests and arrays as they are, without a second description of each.
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
BEAT_INTERVAL_S = 0.25

# Below, one more piece to send and to receive costs more than a copy.
_APART_BYTES = 4 << 10
_STAGING_BYTES = 16 << 10
_HEADER = struct.Struct(">II")


@dataclass(frozen=True)
class Start:
    """Build the worker: call `factory` with `settings`. The first message, sent once.

    `window` is how many outputs of a request may be unconsumed before it counts as stalled.
    """

    factory: str
    settings: Any
    window: int


@dataclass(frozen=True)
class Submit:
    """A new request."""

    request_id: str
    request: Any


@dataclass(frozen=True)
class Cancel:
    """Nobody waits for this request any more."""

    request_id: str


@dataclass(frozen=True)
class Consumed:
    """The client took `count` more outputs of this request."""

    request_id: str
    count: int


@dataclass(frozen=True)
class Profile:
    """Begin to profile; or with `folder` None, end it and write what was seen to the folder."""

    folder: str | None


@dataclass(frozen=True)
class Stop:
    """Close the worker and exit."""


@dataclass(frozen=True)
class Ready:
    """The worker is loaded and warm; `info` is what it says about itself."""

    info: Any


@dataclass(frozen=True)
class StartFailed:
    """The factory raised; `reason` is fit for a message, the traceback is on stderr.

    `explained` says that the error is one of ours, whose message needs no traceback.
    """

    reason: str
    explained: bool


@dataclass(frozen=True)
class Progress:
    """What the factory is doing now."""

    text: str


@dataclass(frozen=True)
class Outputs:
    """What came of one step, each output with its request's id; `last` on a request's final one."""

    outputs: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Failed:
    """The request ended in an error."""

    request_id: str
    error: OmniError


@dataclass(frozen=True)
class Heartbeat:
    """A sign of life, sent every `BEAT_INTERVAL_S` from a thread of its own.

    `busy_s` is the age of the step under way (of the loop's turn, for a `StreamWorker`), 0 between
    steps: a step that hangs shows by a growing age, and one that holds the interpreter lock by
    beats that stay away.
    """

    counters: Mapping[str, float]
    busy_s: float


ToEngine = Start | Submit | Cancel | Consumed | Profile | Stop
FromEngine = Ready | StartFailed | Progress | Outputs | Failed | Heartbeat

Frame = list[bytes | memoryview]


def encode(message: ToEngine | FromEngine) -> Frame:
    """Return the frame of a message, in pieces. Raises `ValueError` above `MAX_FRAME_BYTES`.

    The pieces are views of the message's large arrays: they must stay as they are until sent.
    """
    arrays: list[memoryview] = []

    def keep_inside(buffer: pickle.PickleBuffer) -> bool:
        with suppress(BufferError):  # Memory with gaps cannot be viewed as bytes.
            if (view := buffer.raw()).nbytes >= _APART_BYTES:
                arrays.append(view)
                return False
        return True

    body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL, buffer_callback=keep_inside)
    sizes = [view.nbytes for view in arrays]
    if (total := len(body) + sum(sizes)) > MAX_FRAME_BYTES:
        raise ValueError(f"a {type(message).__name__} message of {total} bytes is too large")
    head = _HEADER.pack(len(body), len(sizes)) + struct.pack(f">{len(sizes)}I", *sizes)
    return [head + body, *arrays]


def read_frame() -> Generator[memoryview, None, Any]:
    """Yield memory to be filled with the next bytes of the stream, and return the message.

    Raises `ValueError` for a header that cannot be one of ours.
    """
    header = bytearray(_HEADER.size)
    yield memoryview(header)
    length, count = _HEADER.unpack(header)
    _require_plausible(length + count * _APART_BYTES)
    table = bytearray(4 * count)
    if count:
        yield memoryview(table)
    sizes = struct.unpack(f">{count}I", table)
    _require_plausible(length + sum(sizes))
    yield memoryview(body := bytearray(length))
    # NumPy's memory is not cleared first: it is about to be overwritten.
    arrays = [np.empty(size, np.uint8) for size in sizes]
    for array in arrays:
        yield array.data
    return pickle.loads(body, buffers=arrays)


def _require_plausible(size: int) -> None:
    if size > MAX_FRAME_BYTES:
        raise ValueError(f"a frame announces {size} bytes: the stream is corrupt")


def receive(end: socket.socket) -> Iterator[ToEngine]:
    """Yield messages from a blocking socket until the other end closes (the engine's side)."""
    with end.makefile("rb") as stream:
        while (message := _receive_one(stream)) is not None:
            yield message


def _receive_one(stream: BinaryIO) -> ToEngine | None:
    """The next message, None where the stream ends."""
    frame = read_frame()
    try:
        while True:
            memory = next(frame)
            if stream.readinto(memory) < len(memory):  # type: ignore[attr-defined]
                return None
    except StopIteration as end:
        message: ToEngine = end.value
        return message


class _Incoming(asyncio.BufferedProtocol):
    """Cuts what arrives into messages. A large array is received in place; what is small is read
    with what follows it, since a call to the system costs more than a copy of it."""

    def __init__(self, deliver: Callable[[FromEngine | Exception], None]) -> None:
        """`deliver` is called with every message, and last with the error that ended them."""
        self._deliver = deliver
        self._staging = memoryview(bytearray(_STAGING_BYTES))
        self._frame = read_frame()
        self._missing = next(self._frame)
        self._in_place = False
        self._transport: asyncio.BaseTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        self._in_place = len(self._missing) >= _STAGING_BYTES
        return self._missing if self._in_place else self._staging

    def buffer_updated(self, nbytes: int) -> None:
        try:
            if self._in_place:
                self._advance(nbytes)
            else:
                self._unpack(self._staging[:nbytes])
        except Exception as error:
            self._deliver(error)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deliver(EOFError(str(exc or "the other end is gone")))

    def _unpack(self, data: memoryview) -> None:
        while data:
            count = min(len(data), len(self._missing))
            self._missing[:count] = data[:count]
            data = data[count:]
            self._advance(count)

    def _advance(self, count: int) -> None:
        """Note that `count` more bytes are there."""
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
    """The API process's end: reads without blocking the loop, writes without waiting.

    What is written but not yet sent stays small: the engine has a thread that does nothing but
    read, and the requests in flight are limited. What is read but not yet received is bounded by
    the window of every request.
    """

    def __init__(self) -> None:
        self._messages: SingleReaderQueue[FromEngine | Exception] = SingleReaderQueue()
        self._ended: Exception | None = None
        self._unsent: list[bytes | memoryview] = []
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport

    @classmethod
    async def over(cls, end: socket.socket) -> "AsyncChannel":
        """Take ownership of a connected socket."""
        channel = cls()
        channel._transport, _ = await channel._loop.create_unix_connection(
            lambda: _Incoming(channel._messages.put), sock=end
        )
        return channel

    def send(self, message: ToEngine) -> None:
        """Queue a message. Does nothing once the other end is gone: the reader tells of that.

        What is sent in one turn of the loop leaves together: a step is answered by many clients
        at once, and each write wakes the engine.
        """
        frame = encode(message)
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent += frame

    async def receive(self) -> FromEngine:
        """Wait for the next message. Raises `EOFError` when the other end is gone, and whatever
        kept a message from being read."""
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
        """Close the socket; what was not sent is lost."""
        self._transport.abort()
