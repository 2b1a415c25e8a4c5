"""What happened to one request: its stages and their times. No content, only names and numbers."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from sglang_omni.observability.playback_stats import PlaybackStats

# A long speech has a span for each fragment; beyond this they are only counted.
MOST_SPANS = 512


@dataclass
class Span:
    """One stage of a request. Times are on the monotonic clock, in seconds; `first` is that of its
    first output. `error` is how it ended, None for a true end."""

    name: str
    started_at: float
    first: float | None = None
    ended: float | None = None
    outputs: int = 0
    error: str | None = None

    def output(self) -> None:
        """Note an output."""
        if self.first is None:
            self.first = time.monotonic()
        self.outputs += 1


@dataclass
class Trace:
    """A request from its arrival to its last byte.

    `began_at` is in seconds since the epoch, `started_at` and all other times on the monotonic
    clock. `audio` has the time and the number of samples of each piece of speech until the request
    has ended, `sound` what came of them then. `parent` is the caller's W3C `traceparent`, `owner`
    the lasting digest of its key, `client` its address. `refusal` has the status and the reason of
    the first error worth an entry in the audit log. Written by the request's own tasks only.
    """

    id: str
    began_at: float = field(default_factory=time.time)
    started_at: float = field(default_factory=time.monotonic)
    route: str = ""
    tenant: str | None = None
    owner: str | None = None
    client: str | None = None
    refusal: tuple[int, str] | None = None
    parent: str | None = None
    status: int | None = None
    ended: float | None = None
    first_text: float | None = None
    spans: list[Span] = field(default_factory=list)
    audio: list[tuple[float, int]] = field(default_factory=list)
    sound: PlaybackStats | None = None
    spans_left_out: int = 0

    def add(self, span: Span) -> None:
        """Take a stage in, unless there are too many."""
        if len(self.spans) < MOST_SPANS:
            self.spans.append(span)
        else:
            self.spans_left_out += 1

    def wrote(self) -> None:
        """Note that text left."""
        if self.first_text is None:
            self.first_text = time.monotonic()

    def spoke(self, samples: int) -> None:
        """Note that samples left."""
        if samples:
            self.audio.append((time.monotonic(), samples))


_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


def current_trace() -> Trace | None:
    """The trace of the request that this task works for, if any."""
    return _current.get()


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Let `trace` be that of this task, and of the tasks it starts, while the body runs."""
    token = _current.set(trace)
    try:
        yield trace
    finally:
        _current.reset(token)


@contextmanager
def stage(name: str) -> Iterator[Span]:
    """Time the body as a stage of the current request."""
    span, trace = Span(name, time.monotonic()), _current.get()
    if trace is not None:
        trace.add(span)
    try:
        yield span
    except (GeneratorExit, asyncio.CancelledError):
        span.error = "cancelled"
        raise
    except BaseException as error:
        span.error = type(error).__name__
        raise
    finally:
        span.ended = time.monotonic()
