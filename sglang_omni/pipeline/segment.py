"""Stage 7: cut the answer, while it is written, into segments worth speaking.

The rule is the reference's (a sentence mark after 8 units, 40 units at most, the first segment
as soon as 4 units have waited 450 ms), with three differences:

* CJK characters count one by one; the reference counts words between blanks, so that Chinese
  is one unit and is spoken only when the answer is complete;
* a number is never cut: the reference takes "3." for a sentence when "14" is still to come,
  and a word that may go on is cut only when waiting for its end would cost too much;
* white space alone is not a segment.
"""

import asyncio
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

from sglang_omni.protocol.errors import ConfigError

SENTENCE_MARKS = (".", "!", "?", "。", "！", "？", "；", ";")

# Han (with extensions and compatibility forms) and kana: scripts written without blanks.
_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
# A unit is a CJK character with the punctuation around it, or any other run without blanks.
_UNIT = re.compile(rf"[^\w\s]*+[{_CJK}][^\w\s]*+|[^\s{_CJK}]++")
# A word or number at the end of the buffer that the next characters may continue.
_OPEN_UNIT = re.compile(rf"[^\W{_CJK}]\Z|\d[.,:]\Z")
# A run that ends in an open number (or the sign before one), or in an open word as well. Matched
# on the reversed buffer, so that they take linear time.
_RUN = rf"[^\s{_CJK}，。！？；：、（]*+"
_OPEN_NUMBER_REVERSED = re.compile(rf"(?:[.,:]?\d|[-+$£€¥￥]){_RUN}")
_OPEN_WORD_REVERSED = re.compile(rf"(?:[.,:]?\d|[-+$£€¥￥]|[^\W{_CJK}]){_RUN}")

# For so long after its wait the first segment leaves a word that may go on behind; then it
# takes the word as it is. The reference looks every 100 ms and always takes it.
OPEN_WORD_GRACE_S = 0.05


@dataclass(frozen=True)
class SegmentSettings:
    """When to cut. Units are words and CJK characters; waits are in seconds.

    Raises `ConfigError` for limits that are not positive or contradict each other.
    """

    min_tokens: int = 8
    max_tokens: int = 40
    first_min_tokens: int = 4
    first_max_wait_s: float = 0.45

    def __post_init__(self) -> None:
        """Check the limits."""
        for name in ("min_tokens", "first_min_tokens"):
            value = getattr(self, name)
            if not 1 <= value <= self.max_tokens:
                raise ConfigError(
                    f"segment {name} is {value}, not within 1..max_tokens={self.max_tokens}"
                )
        if not self.first_max_wait_s >= 0:
            raise ConfigError(f"segment first_max_wait_s is {self.first_max_wait_s}, must be >= 0")


@dataclass(frozen=True)
class Segment:
    """A piece of the answer to speak.

    `source` is the exact piece; the sources of all segments join to the answer, less white
    space at its very end. `text` is what to speak: the same, but a cut at `max_tokens` joins
    its words by single blanks.
    """

    index: int
    text: str
    source: str


def count_units(text: str) -> int:
    """Number of words (runs without blanks) and CJK characters."""
    return sum(1 for _ in _UNIT.finditer(text))


class Segmenter:
    """Cuts one answer. Pure apart from its buffer: the caller says what time it is.

    One long delta leaves segment by segment: `next_deadline` asks for a `tick` at once while
    more is due.
    """

    def __init__(self, settings: SegmentSettings) -> None:
        """Nothing is buffered, and the wait of the first segment has not begun."""
        self._settings = settings
        self._buffer = ""
        self._index = 0
        self._began: float | None = None
        self._now = 0.0
        # Length of a sentence that ends in a digit and a dot, until the next character tells.
        self._held_sentence = 0

    def push(self, text: str, now: float) -> list[Segment]:
        """Take more of the answer at time `now` (seconds) and cut what is due."""
        if not text:
            return self.tick(now)
        if self._began is None:
            self._began = now
        sentence, self._held_sentence = self._held_sentence, 0
        self._buffer += text
        ended = [self._cut(sentence)] if sentence and not text[0].isdigit() else []
        return ended + self.tick(now)

    def tick(self, now: float) -> list[Segment]:
        """Cut what is due at time `now` without more text."""
        self._now = now
        if end := self._due() or self._first_end(now):
            return [self._cut(end)]
        if self._closes_sentence():
            self._held_sentence = len(self._buffer)
        return []

    def flush(self) -> list[Segment]:
        """The rest, at the end of the answer; nothing if only white space is left."""
        rest = []
        while (count := count_units(self._buffer)) > 0:
            over = count > self._settings.max_tokens
            rest.append(self._cut(self._full_end() if over else len(self._buffer)))
        self._buffer = ""
        return rest

    def next_deadline(self) -> float | None:
        """When `tick` would cut if no more text came; None if it would not."""
        if self._due():
            return self._now
        wait = self._first_deadline()
        moments = (wait, wait + OPEN_WORD_GRACE_S) if wait < math.inf else ()
        return next((moment for moment in moments if self._first_end(moment)), None)

    def _due(self) -> int:
        """End of a segment that is full or closes a sentence, whatever the time; else 0."""
        count, most = count_units(self._buffer), self._settings.max_tokens
        if count > most:
            return self._full_end()
        # The last word may go on: the next character tells, at no cost in size.
        full = count == most and not _OPEN_UNIT.search(self._buffer)
        ends = self._closes_sentence() and self._settled_end(_OPEN_NUMBER_REVERSED) == len(
            self._buffer
        )
        return len(self._buffer) if full or ends else 0

    def _closes_sentence(self) -> bool:
        marked = self._buffer.rstrip().endswith(SENTENCE_MARKS)
        return marked and count_units(self._buffer) >= self._settings.min_tokens

    def _first_deadline(self) -> float:
        """When the first segment has waited long enough."""
        if self._index or self._began is None:
            return math.inf
        return self._began + self._settings.first_max_wait_s

    def _first_end(self, now: float) -> int:
        """End of what the first segment may take at time `now`, if that is enough; else 0."""
        deadline = self._first_deadline()
        if now < deadline:
            return 0
        late = now >= deadline + OPEN_WORD_GRACE_S
        end = self._settled_end(_OPEN_NUMBER_REVERSED if late else _OPEN_WORD_REVERSED)
        return end if count_units(self._buffer[:end]) >= self._settings.first_min_tokens else 0

    def _settled_end(self, open_run: re.Pattern[str]) -> int:
        """End of the buffer less a last run that may go on."""
        run = open_run.match(self._buffer[::-1])
        return len(self._buffer) - (run.end() if run else 0)

    def _full_end(self) -> int:
        """End of the last unit that fits, with the white space after it."""
        units = _UNIT.finditer(self._buffer)
        end = [next(units).end() for _ in range(self._settings.max_tokens)][-1]
        return len(self._buffer) - len(self._buffer[end:].lstrip())

    def _cut(self, end: int) -> Segment:
        source, self._buffer = self._buffer[:end], self._buffer[end:]
        forced = self._buffer and count_units(source) >= self._settings.max_tokens
        text = " ".join(source.split()) if forced else source
        segment = Segment(self._index, text, source)
        self._index += 1
        self._held_sentence = 0
        return segment


class Clock(Protocol):
    """The time, and a wait that ends at a moment; replaced by a fake one to replay a chat."""

    def now(self) -> float:
        """Seconds on the clock's own scale."""

    async def wait(self, work: "asyncio.Future[Any]", deadline: float | None) -> None:
        """Return when `work` is done or at `deadline`; `work` is left running."""


class SystemClock:
    """The clock of the running event loop."""

    def now(self) -> float:
        """Monotonic seconds."""
        return asyncio.get_running_loop().time()

    async def wait(self, work: "asyncio.Future[Any]", deadline: float | None) -> None:
        """Wait for `work`, at the longest until `deadline`."""
        timeout = None if deadline is None else max(0.0, deadline - self.now())
        await asyncio.wait({work}, timeout=timeout)


async def segments(
    texts: AsyncIterator[str], settings: SegmentSettings, clock: Clock
) -> AsyncGenerator[Segment, None]:
    """Segments of the answer whose deltas `texts` yields, each as soon as it is due.

    The caller owns `texts`. Cancelling or closing this generator cancels the read in flight.
    """
    segmenter = Segmenter(settings)
    reading: asyncio.Task[str | None] | None = None
    try:
        while True:
            reading = reading or asyncio.create_task(_read(texts))
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


async def _read(texts: AsyncIterator[str]) -> str | None:
    """The next delta, or None at the end."""
    return await anext(texts, None)
