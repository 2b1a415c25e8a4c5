"""Traces of requests: their stages and times. No content, only names and numbers."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from sglang_omni.observability.playback_stats import PlaybackStats

# A long speech has a span for each fragment. Further spans are only counted.
MAX_SPANS = 512


@dataclass
class Span:
    """A stage of a request. Times are in seconds on the monotonic clock.

    Attributes:
        error: The type of the exception that ended it, or "cancelled"; None for success.
        replica: The replica of the engine that served it; None where no engine's process did.
        node: The machine of that replica, "" for the server's own.
    """

    name: str
    started_at: float
    first_output_at: float | None = None
    ended_at: float | None = None
    num_outputs: int = 0
    error: str | None = None
    replica: int | None = None
    node: str | None = None

    def record_output(self) -> None:
        """Record an output."""
        if self.first_output_at is None:
            self.first_output_at = time.monotonic()
        self.num_outputs += 1


@dataclass
class Trace:
    """A request from its arrival to its last byte. Only the request's own tasks write it.

    Attributes:
        given_id: The id that the caller or a router gave the request, if it is a plain word.
        started_at_epoch: The arrival in seconds since the epoch. All other times are in seconds on
            the monotonic clock.
        owner: The permanent digest of the caller's API key.
        client: The caller's address.
        refusal: The status and the reason of the first error that is worth an audit log entry.
        parent: The caller's W3C `traceparent`.
        audio_chunks: The time and the number of samples of each chunk of speech; empty after the
            end.
        playback: The statistics of the chunks, after the end.
        num_dropped_spans: The number of spans beyond `MAX_SPANS`.
    """

    id: str
    given_id: str | None = None
    started_at_epoch: float = field(default_factory=time.time)
    started_at: float = field(default_factory=time.monotonic)
    route: str = ""
    tenant: str | None = None
    owner: str | None = None
    client: str | None = None
    refusal: tuple[int, str] | None = None
    parent: str | None = None
    status: int | None = None
    ended_at: float | None = None
    first_text_at: float | None = None
    spans: list[Span] = field(default_factory=list)
    audio_chunks: list[tuple[float, int]] = field(default_factory=list)
    playback: PlaybackStats | None = None
    num_dropped_spans: int = 0

    @property
    def shown_id(self) -> str:
        """Return the id in logs and headers: the caller's if there is one, which others may use."""
        return self.given_id or self.id

    def add_span(self, span: Span) -> None:
        """Add a span, unless there are too many."""
        if len(self.spans) < MAX_SPANS:
            self.spans.append(span)
        else:
            self.num_dropped_spans += 1

    def record_text(self) -> None:
        """Record that text was sent."""
        if self.first_text_at is None:
            self.first_text_at = time.monotonic()

    def record_audio(self, num_samples: int) -> None:
        """Record that samples were sent."""
        if num_samples:
            self.audio_chunks.append((time.monotonic(), num_samples))


_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


def current_trace() -> Trace | None:
    """Return the trace of the request that this task works for, None if there is none."""
    return _current.get()


@contextmanager
def use_trace(trace: Trace) -> Iterator[Trace]:
    """Make `trace` the current one of this task, and of tasks it starts, during the body."""
    token = _current.set(trace)
    try:
        yield trace
    finally:
        _current.reset(token)


@contextmanager
def stage(name: str) -> Iterator[Span]:
    """Record the body as a stage of the current request."""
    span, trace = Span(name, time.monotonic()), _current.get()
    if trace is not None:
        trace.add_span(span)
    try:
        yield span
    except (GeneratorExit, asyncio.CancelledError):
        span.error = "cancelled"
        raise
    except BaseException as error:
        span.error = type(error).__name__
        raise
    finally:
        span.ended_at = time.monotonic()
