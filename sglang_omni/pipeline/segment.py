"""Stage 7: split the answer, while it is written, into segments to speak.

The rules are those of the reference implementation: cut at a sentence mark after at least 8 units,
after 40 units at the latest, and cut the first segment once 4 units have waited for 450 ms. There
are three differences:

* Each CJK character counts as one unit. The reference counts words between white space, so Chinese
  text is a single unit and is spoken only when the answer is complete.
* A number, date, link or address is never cut: the text front end says where a cut is safe. The
  reference takes "3." for a sentence when "14" is still to come. Without a front end, a word that
  may continue is cut only when waiting for its end would take too long.
* White space alone is not a segment.
"""

import asyncio
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from sglang_omni.protocol.errors import ConfigError

SENTENCE_MARKS = (".", "!", "?", "。", "！", "？", "；", ";")

# Han (with extensions and compatibility forms) and kana: scripts without spaces between words.
_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
# A unit is a CJK character with the punctuation around it, or any other run without white space.
_UNIT = re.compile(rf"[^\w\s]*+[{_CJK}][^\w\s]*+|[^\s{_CJK}]++")
# A word or number at the end of the buffer that the next characters may continue.
_OPEN_UNIT = re.compile(rf"[^\W{_CJK}]\Z|\d[.,:]\Z")
# A run that ends in an open number (or the sign before one), or also in an open word. They are
# matched on the reversed buffer, which takes linear time.
_RUN = rf"[^\s{_CJK}，。！？；：、（]*+"
_OPEN_NUMBER_REVERSED = re.compile(rf"(?:[.,:]?\d|[-+$£€¥￥]){_RUN}")
_OPEN_WORD_REVERSED = re.compile(rf"(?:[.,:]?\d|[-+$£€¥￥]|[^\W{_CJK}]){_RUN}")

# Text and end of a proposed cut -> the last safe cut at or before it; 0 for nowhere.
SafeCut = Callable[[str, int], int]

# A text with no safe place (a long table of numbers) is cut anyway at this many times `max_tokens`.
_MAX_OVERRUN = 3

# For this long after its deadline the first segment leaves out a last word that may continue. Then
# it takes the word as it is. The reference polls every 100 ms and always takes it.
OPEN_WORD_GRACE_S = 0.05


@dataclass(frozen=True)
class SegmentSettings:
    """Where to cut. Limits count words and CJK characters; waits are in seconds.

    Raises `ConfigError` for limits that are not positive or contradict each other.
    """

    min_tokens: int = 8
    max_tokens: int = 40
    first_min_tokens: int = 4
    first_max_wait_s: float = 0.45

    def __post_init__(self) -> None:
        """Validate the limits."""
        for name in ("min_tokens", "first_min_tokens"):
            value = getattr(self, name)
            if not 1 <= value <= self.max_tokens:
                raise ConfigError(
                    f"segment.{name} must be from 1 to segment.max_tokens, which is "
                    f"{self.max_tokens}, not {value}",
                    param=f"segment.{name}",
                )
        if not self.first_max_wait_s >= 0:
            raise ConfigError(
                f"segment.first_max_wait_s must be at least 0, not {self.first_max_wait_s}",
                param="segment.first_max_wait_s",
            )


@dataclass(frozen=True)
class Segment:
    """A piece of the answer to speak.

    `source` is the exact piece, which the text front end reads: the sources of all segments join to
    the answer without its trailing white space. `text` is what the reference speaks: equal to
    `source`, except that a segment cut at `max_tokens` has its words joined by single spaces.
    """

    index: int
    text: str
    source: str


def count_units(text: str) -> int:
    """Return the number of words (runs without white space) and CJK characters."""
    return sum(1 for _ in _UNIT.finditer(text))


class Segmenter:
    """Split one answer. The caller passes the time, so the result depends on the input alone.

    A long delta is cut one segment per call: while more segments are due, `next_deadline` returns
    the current time, so the caller calls `tick` at once.
    """

    def __init__(self, settings: SegmentSettings, safe_cut: SafeCut | None = None) -> None:
        """Start with an empty buffer. The wait of the first segment starts with its first text."""
        self._settings = settings
        self._safe_cut = safe_cut
        self._buffer = ""
        self._index = 0
        self._started_at: float | None = None
        self._now = 0.0
        # Length of a sentence that may go on after its mark, as after a digit and a dot. The next
        # character decides.
        self._pending_sentence = 0
        # Length of the buffer, a position in it, and whether a segment may end there.
        self._checked = (0, 0, False)

    def push(self, text: str, now: float) -> list[Segment]:
        """Take more of the answer at time `now` (seconds) and cut a segment if one is due."""
        if not text:
            return self.tick(now)
        if self._started_at is None:
            self._started_at = now
        sentence, self._pending_sentence = self._pending_sentence, 0
        self._buffer += text
        if sentence and self._ends_at(sentence):
            return [self._take_segment(sentence)]
        return self.tick(now)

    def tick(self, now: float) -> list[Segment]:
        """Cut what is due at time `now` without more text."""
        self._now = now
        if end := self._due_end() or self._first_end(now):
            return [self._take_segment(end)]
        if self._closes_sentence():
            self._pending_sentence = len(self._buffer)
        return []

    def flush(self) -> Iterator[Segment]:
        """Cut all that is left, at the end of the answer. White space alone gives no segment.

        A segment is cut when it is asked for: a safe cut depends on what was spoken before.
        """
        while (num_units := count_units(self._buffer)) > 0:
            end = len(self._buffer)
            if num_units > self._settings.max_tokens:
                full = self._full_end()
                end = self._safe(full) or full
            yield self._take_segment(end)
        self._buffer = ""

    def next_deadline(self) -> float | None:
        """Return when `tick` would cut if no more text came, or None if it would not."""
        if self._due_end():
            return self._now
        deadline = self._first_deadline()
        times = (deadline, deadline + OPEN_WORD_GRACE_S) if deadline < math.inf else ()
        return next(filter(self._may_cut_first, times), None)

    def _may_cut_first(self, time: float) -> bool:
        """Whether `tick` may cut at a time. Whether the cut is safe is not asked before."""
        if time > self._now:
            return self._is_long_enough(self._open_end(time))
        return self._first_end(time) > 0

    def _due_end(self) -> int:
        """Return the end of a segment that is full or closes a sentence, or 0."""
        num_units, max_units = count_units(self._buffer), self._settings.max_tokens
        if num_units > max_units:
            return self._long_end(num_units)
        # The last word may continue. The next character decides, at no cost in length.
        is_full = num_units == max_units and not _OPEN_UNIT.search(self._buffer)
        is_sentence = self._closes_sentence() and self._stable_end(_OPEN_NUMBER_REVERSED) == len(
            self._buffer
        )
        is_due = (is_full or is_sentence) and self._ends_at(len(self._buffer))
        return len(self._buffer) if is_due else 0

    def _long_end(self, num_units: int) -> int:
        """Return the end of a segment in a buffer that is longer than one, or 0 to wait."""
        full = self._full_end()
        end = self._safe(full)
        if self._is_long_enough(end):
            return end
        return full if num_units > _MAX_OVERRUN * self._settings.max_tokens else 0

    def _is_long_enough(self, end: int) -> bool:
        return count_units(self._buffer[:end]) >= self._settings.first_min_tokens

    def _safe(self, end: int) -> int:
        return end if self._safe_cut is None else self._safe_cut(self._buffer, end)

    def _ends_at(self, end: int) -> bool:
        """Whether a sentence or full segment may end at a position, by what follows so far."""
        if self._safe_cut is None:
            return not self._buffer[end : end + 1].isdigit()
        # `tick` and `next_deadline` ask the same question.
        if self._checked[:2] != (len(self._buffer), end):
            is_end = self._safe_cut(self._buffer, end) == end
            self._checked = (len(self._buffer), end, is_end)
        return self._checked[2]

    def _closes_sentence(self) -> bool:
        has_mark = self._buffer.rstrip().endswith(SENTENCE_MARKS)
        return has_mark and count_units(self._buffer) >= self._settings.min_tokens

    def _first_deadline(self) -> float:
        """Return when the first segment has waited long enough; infinity after it was cut."""
        if self._index or self._started_at is None:
            return math.inf
        return self._started_at + self._settings.first_max_wait_s

    def _first_end(self, now: float) -> int:
        """Return the end of the first segment if it may be cut at time `now`, or 0."""
        if now < self._first_deadline() or not self._is_long_enough(self._open_end(now)):
            return 0
        end = self._safe(self._open_end(now))
        return end if self._is_long_enough(end) else 0

    def _open_end(self, now: float) -> int:
        """Return the end of the first segment at time `now`, without a word that may continue."""
        is_late = now >= self._first_deadline() + OPEN_WORD_GRACE_S
        return self._stable_end(_OPEN_NUMBER_REVERSED if is_late else _OPEN_WORD_REVERSED)

    def _stable_end(self, open_run: re.Pattern[str]) -> int:
        """Return the end of the buffer without a last run that may continue."""
        run = open_run.match(self._buffer[::-1])
        return len(self._buffer) - (run.end() if run else 0)

    def _full_end(self) -> int:
        """Return the end of the last unit that fits, with the white space after it."""
        units = _UNIT.finditer(self._buffer)
        end = [next(units).end() for _ in range(self._settings.max_tokens)][-1]
        return len(self._buffer) - len(self._buffer[end:].lstrip())

    def _take_segment(self, end: int) -> Segment:
        source, self._buffer = self._buffer[:end], self._buffer[end:]
        is_full = self._buffer and count_units(source) >= self._settings.max_tokens
        text = " ".join(source.split()) if is_full else source
        segment = Segment(self._index, text, source)
        self._index += 1
        self._pending_sentence = 0
        self._checked = (0, 0, False)
        return segment


class Clock(Protocol):
    """The time, and a wait with a deadline. Tests replace it to replay a chat."""

    def now(self) -> float:
        """Return the time in seconds, on the clock's own scale."""

    async def wait(self, work: "asyncio.Future[Any]", deadline: float | None) -> None:
        """Wait until `work` is done or `deadline` is reached. `work` keeps running."""


class SystemClock:
    """The clock of the running event loop."""

    def now(self) -> float:
        """Return monotonic seconds."""
        return asyncio.get_running_loop().time()

    async def wait(self, work: "asyncio.Future[Any]", deadline: float | None) -> None:
        """Wait for `work`, until `deadline` at the latest."""
        timeout = None if deadline is None else max(0.0, deadline - self.now())
        await asyncio.wait({work}, timeout=timeout)


async def stream_segments(
    texts: AsyncIterator[str],
    settings: SegmentSettings,
    clock: Clock,
    safe_cut: SafeCut | None = None,
) -> AsyncGenerator[Segment, None]:
    """Yield the segments of the answer whose deltas `texts` yields, each as soon as it is due.

    The caller owns `texts`. Cancelling or closing this generator cancels the pending read.
    """
    segmenter = Segmenter(settings, safe_cut)
    reading: asyncio.Task[str | None] | None = None
    try:
        while True:
            reading = reading or asyncio.create_task(_next_delta(texts))
            await clock.wait(reading, segmenter.next_deadline())
            if not reading.done():
                due = segmenter.tick(clock.now())
            elif (text := reading.result()) is None:
                break
            else:
                reading, due = None, segmenter.push(text, clock.now())
            for segment in due:
                yield segment
        for segment in segmenter.flush():
            yield segment
    finally:
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _next_delta(texts: AsyncIterator[str]) -> str | None:
    """Return the next delta, or None at the end."""
    return await anext(texts, None)
