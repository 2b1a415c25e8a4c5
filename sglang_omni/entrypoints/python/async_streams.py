"""Answers and speech that arrive in pieces, for callers with an event loop."""

from types import TracebackType
from typing import Generic, Self, TypeVar

import numpy as np

from sglang_omni.entrypoints.python.answer import AnswerBuilder, ChatAnswer
from sglang_omni.entrypoints.python.task_stream import TaskStream
from sglang_omni.pipeline.request import (
    AudioDelta,
    Event,
    ReasoningDelta,
    TextDelta,
    TimedSegment,
    ToolCalled,
    UnspokenText,
)

T = TypeVar("T")
ChatEvent = TextDelta | ReasoningDelta | ToolCalled | AudioDelta | UnspokenText
"""A piece of an answer."""


class AsyncStream(Generic[T]):
    """An asynchronous iterator over the pieces of one request.

    The request starts with the first read. It is aborted when the stream is closed, when a
    `async with` block ends, or when the stream is no longer referenced.

    Attributes:
        sample_rate: The rate of audio in Hz.
    """

    def __init__(self, pieces: TaskStream[T], sample_rate: int) -> None:
        """Take the pieces, which nobody else may read."""
        self._pieces, self.sample_rate = pieces, sample_rate

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next piece. Raises the error of the request."""
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Abort the request if it still runs."""
        await self._pieces.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        await self.aclose()


class AsyncSpeechStream(AsyncStream[np.ndarray]):
    """Speech in chunks: float32 [samples] in [-1, 1]."""

    def __init__(
        self, pieces: TaskStream[np.ndarray], sample_rate: int, segments: list[TimedSegment]
    ) -> None:
        """Take the pieces, which nobody else may read, and the list that gets their segments."""
        super().__init__(pieces, sample_rate)
        self._segments = segments

    @property
    def segments(self) -> tuple[TimedSegment, ...]:
        """Return the segments of the speech read so far; none without `timestamps`."""
        return tuple(self._segments)

    async def read(self) -> np.ndarray:
        """Return all samples that were not read yet, as one array."""
        async with self:
            return np.concatenate([np.zeros(0, np.float32), *[chunk async for chunk in self]])


class AsyncChatStream(AsyncStream[ChatEvent]):
    """An answer in pieces.

    `TextDelta`, `ReasoningDelta`, `ToolCalled`, `AudioDelta`, and `UnspokenText` for words that the
    audio leaves out because the model does not speak them.

    Attributes:
        answer: The complete answer; None before the end.
    """

    def __init__(self, events: TaskStream[Event], builder: AnswerBuilder) -> None:
        """Take the events, which nobody else may read."""
        self._events, self._builder = events, builder
        self.sample_rate = builder.sample_rate
        self.answer: ChatAnswer | None = None

    async def __anext__(self) -> ChatEvent:
        """Return the next piece. Raises the error of the request."""
        async for event in self._events:
            self.answer = self._builder.add(event) or self.answer
            if isinstance(event, ChatEvent):
                return event
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Abort the request if it still runs."""
        await self._events.aclose()

    async def read(self) -> ChatAnswer:
        """Read to the end, and return the complete answer."""
        async with self:
            async for _ in self:
                pass
        assert self.answer is not None
        return self.answer
