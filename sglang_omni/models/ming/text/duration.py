"""How long a text sounds: the guard against endless speech, and which words are being heard."""

import math
from dataclasses import dataclass

from sglang_omni.models.ming.text.accumulate import Fragment
from sglang_omni.models.ming.text.tokens import contains_chinese

# The reference's reading speed is 16000 / 5818 characters a second, and never under two seconds.
SECONDS_PER_CHARACTER = 5818 / 16000
MIN_SECONDS = 2.0
CHINESE_RATE = 6.07  # characters a second
OTHER_RATE = 16.0


def enough(text: str, seconds: float) -> bool:
    """Whether `seconds` of speech are more than reading `text` can reasonably take."""
    return seconds / SECONDS_PER_CHARACTER >= len(text) and seconds > MIN_SECONDS


@dataclass(frozen=True)
class Heard:
    """What a chunk of audio speaks: the text, and its first and last character's position."""

    text: str
    first: int
    last: int


class Alignment:
    """Which part of the text each chunk of audio speaks, by the usual reading speed.

    Streamed fragments advance chunk by chunk; of the others every chunk reports the whole.
    Positions continue from fragment to fragment, after the last position reported.
    """

    def __init__(self) -> None:
        """Nothing was heard yet."""
        self._index = 0
        self._base = 0
        self._end = -1
        self._next = 0

    def begin(self, fragment: Fragment) -> None:
        """The chunks that follow speak `fragment`."""
        if fragment.index != self._index:
            self._index, self._base = fragment.index, self._end + 1
        self._next = 0

    def hear(self, fragment: Fragment, seconds: float) -> Heard:
        """Locate the next `seconds` of the fragment begun last."""
        text = fragment.text
        if fragment.streamed:
            first, last = self._advance(text, seconds)
            spoken = text[first : last + 1] if first != last else ""
        else:
            first, last, spoken = 0, len(text) - 1, text
        self._end = self._base + last
        return Heard(spoken, self._base + first, self._end)

    def _advance(self, text: str, seconds: float) -> tuple[int, int]:
        rate = CHINESE_RATE if contains_chinese(text) else OTHER_RATE
        first = min(self._next, len(text) - 1)
        last = min(first + math.ceil(seconds * rate), len(text)) - 1
        self._next = last + 1
        return first, last
