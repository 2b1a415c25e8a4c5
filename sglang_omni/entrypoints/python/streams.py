"""Answers and speech that arrive in pieces, for callers without an event loop."""

from types import TracebackType
from typing import Generic, Self, TypeVar

import numpy as np

from sglang_omni.entrypoints.python.answer import ChatAnswer
from sglang_omni.entrypoints.python.async_streams import (
    AsyncChatStream,
    AsyncSpeechStream,
    AsyncStream,
    ChatEvent,
)
from sglang_omni.entrypoints.python.loop_thread import LoopThread
from sglang_omni.pipeline.request import TimedSegment

T = TypeVar("T")


class Stream(Generic[T]):
    """An iterator over the pieces of one request.

    The request starts with the first read. It is aborted when the stream is closed, when a `with`
    block ends, or when the stream is no longer referenced, as after a `break`.
    """

    def __init__(self, source: AsyncStream[T], thread: LoopThread, owner: object) -> None:
        """Take the parts of a stream.

        Args:
            source: The pieces, which nobody else may read.
            thread: The thread of their event loop.
            owner: The object whose engines must live as long as the stream.
        """
        self._source, self._thread, self._owner = source, thread, owner

    @property
    def sample_rate(self) -> int:
        """Return the rate of audio in Hz."""
        return self._source.sample_rate

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        """Return the next piece. Raises the error of the request."""
        pieces = self._thread.run(_read(self._source))
        if not pieces:
            raise StopIteration
        return pieces[0]

    def close(self) -> None:
        """Abort the request if it still runs."""
        self._thread.run(self._source.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()


class SpeechStream(Stream[np.ndarray]):
    """Speech in chunks: float32 [samples] in [-1, 1]."""

    _source: AsyncSpeechStream

    @property
    def segments(self) -> tuple[TimedSegment, ...]:
        """Return the segments of the speech read so far; none without `timestamps`."""
        return self._source.segments

    def read(self) -> np.ndarray:
        """Return all samples that were not read yet, as one array."""
        return self._thread.run(self._source.read())


class ChatStream(Stream[ChatEvent]):
    """An answer in pieces, as `AsyncChatStream` describes them."""

    _source: AsyncChatStream

    @property
    def answer(self) -> ChatAnswer | None:
        """Return the complete answer, or None before the end."""
        return self._source.answer

    def read(self) -> ChatAnswer:
        """Read to the end, and return the complete answer."""
        return self._thread.run(self._source.read())


async def _read(source: AsyncStream[T]) -> tuple[T, ...]:
    """Return the next piece, or nothing at the end."""
    async for piece in source:
        return (piece,)
    return ()
