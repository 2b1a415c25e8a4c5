"""Framed messages between the API process and an engine process.

A frame is a 4-byte big-endian length and a pickle. Pickle is safe here and nowhere else: the
socket is one end of a private socketpair, made by the parent and inherited by the child, so both
ends run this very code and nobody else can connect. It carries frozen settings, requests and
arrays as they are, without a second description of each.
"""

import asyncio
import pickle
import socket
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sglang_omni.errors import OmniError

MAX_FRAME_BYTES = 256 << 20
BEAT_INTERVAL_S = 0.25

_HEADER = struct.Struct(">I")


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
class Stop:
    """Close the worker and exit."""


@dataclass(frozen=True)
class Ready:
    """The worker is loaded and warm; `info` is what it says about itself."""

    info: Any


@dataclass(frozen=True)
class StartFailed:
    """The factory raised; `reason` is fit for a message, the traceback is on stderr."""

    reason: str


@dataclass(frozen=True)
class Progress:
    """What the factory is doing now."""

    text: str


@dataclass(frozen=True)
class Output:
    """One output of a request; `last` on the final one."""

    request_id: str
    output: Any


@dataclass(frozen=True)
class Failed:
    """The request ended in an error."""

    request_id: str
    error: OmniError


@dataclass(frozen=True)
class Beat:
    """A sign of life, sent every `BEAT_INTERVAL_S` from a thread of its own.

    `busy_s` is the age of the step under way (of the loop's turn, for a `StreamWorker`), 0 between
    steps: a step that hangs shows by a growing age, and one that holds the interpreter lock by
    beats that stay away.
    """

    counters: Mapping[str, float]
    busy_s: float


ToEngine = Start | Submit | Cancel | Consumed | Stop
FromEngine = Ready | StartFailed | Progress | Output | Failed | Beat


def encode(message: ToEngine | FromEngine) -> bytes:
    """Return the frame of a message. Raises `ValueError` above `MAX_FRAME_BYTES`."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    if len(body) > MAX_FRAME_BYTES:
        raise ValueError(f"a {type(message).__name__} message of {len(body)} bytes is too large")
    return _HEADER.pack(len(body)) + body


def _body_length(header: bytes) -> int:
    """Return the length a header announces, refusing one that cannot be a frame of ours."""
    (length,) = _HEADER.unpack(header)
    if length > MAX_FRAME_BYTES:
        raise ValueError(f"a frame announces {length} bytes: the stream is corrupt")
    return int(length)


def receive(end: socket.socket) -> Iterator[ToEngine]:
    """Yield messages from a blocking socket until the other end closes (the engine's side)."""
    with end.makefile("rb") as stream:
        while len(header := stream.read(_HEADER.size)) == _HEADER.size:
            body = stream.read(length := _body_length(header))
            if len(body) < length:
                return
            yield pickle.loads(body)


class AsyncChannel:
    """The API process's end: reads without blocking the loop, writes without waiting.

    What is written but not yet sent stays small: the engine has a thread that does nothing but
    read, and the requests in flight are limited.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, end: socket.socket) -> "AsyncChannel":
        """Take ownership of a connected socket."""
        return cls(*await asyncio.open_unix_connection(sock=end))

    def send(self, message: ToEngine) -> None:
        """Queue a message. Does nothing once the other end is gone: the reader tells of that."""
        if not self._writer.is_closing():
            self._writer.write(encode(message))

    async def receive(self) -> FromEngine:
        """Wait for the next message. Raises `EOFError` when the other end is gone."""
        try:
            header = await self._reader.readexactly(_HEADER.size)
            body = await self._reader.readexactly(_body_length(header))
        except ConnectionError as error:
            raise EOFError(str(error)) from error
        message: FromEngine = pickle.loads(body)
        return message

    def close(self) -> None:
        """Close the socket; what was not sent is lost."""
        self._writer.transport.abort()
