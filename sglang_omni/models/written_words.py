"""The written words of a text, and where they are in the words that are spoken for it.

A text front end spells out "$5" as "five dollars" and splits the result into fragments. Both keep
the order of the letters that are spoken. So the letters of a fragment tell which written words it
speaks.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from sglang_omni.normalization.half_width import to_half_width
from sglang_omni.normalization.rule import Reading
from sglang_omni.normalization.tokens import HAN

# No blank separates these marks from the next word.
_MARKS = "\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f"
# A word is one Han character, or a run of other characters between blanks.
_WORD = re.compile(rf"[{HAN}]|[{_MARKS}]+|[^\s{HAN}{_MARKS}]+")
# More than a front end is ahead of the talker. Older words are of fragments that are not found.
_MAX_WORDS = 4096
_Span = tuple[int, int, list[Reading]]


@dataclass(frozen=True)
class WordLetters:
    """A word, and which letters of a fragment speak it.

    Attributes:
        text: The word as it is written, without punctuation around it.
        first: Index of its first letter among the letters of the fragment.
        end: Index after its last letter.
    """

    text: str
    first: int
    end: int


@dataclass(frozen=True)
class WrittenFragment:
    """What is written where a fragment is spoken: the text, and its words."""

    text: str
    words: tuple[WordLetters, ...]


@dataclass(frozen=True)
class _WrittenWord:
    """A word with its letters as they are spoken, and what is written from it to the next."""

    text: str
    letters: str
    source: str
    is_continued: bool = False


def get_letters(text: str) -> str:
    """Return the letters and digits of a text."""
    return "".join(filter(str.isalnum, text))


class WrittenText:
    """The words that a front end has read and the talker has not spoken yet, in order.

    Only the task of one request uses it. It holds what the front end is ahead of the talker.
    """

    def __init__(self, signs: Mapping[str, str] | None = None) -> None:
        """Create an empty text. `signs` are characters that stand for something else."""
        self._signs = str.maketrans(dict(signs or {}))
        self._words: list[_WrittenWord] = []

    def add(self, text: str, readings: Sequence[Reading] = (), start: int = 0) -> None:
        """Add `text[start:]`, which follows what was added before.

        `readings` say how its forms are read, in order.
        """
        self._words += split_words(text, readings, start)
        del self._words[:-_MAX_WORDS]

    def take(self, fragment: str) -> WrittenFragment | None:
        """Return what is written where `fragment` is spoken. None if that is not known.

        Words before it are forgotten, because they are not spoken.
        """
        letters = get_letters(fragment)
        start = self._find(letters)
        if start is None:
            return None
        del self._words[:start]
        count = self._count_words(len(letters))
        taken, self._words = self._words[:count], self._words[count:]
        self._return_rest(taken, len(letters))
        return self._locate(taken, len(letters))

    def _find(self, letters: str) -> int | None:
        """Return the index of the word with which `letters` start."""
        if not letters:
            return None
        joined = "".join(word.letters for word in self._words)
        ends = accumulate(len(word.letters) for word in self._words)
        for index, (word, end) in enumerate(zip(self._words, ends, strict=True)):
            if word.letters and joined.startswith(letters, end - len(word.letters)):
                return index
        return None

    def _count_words(self, num_letters: int) -> int:
        """Return how many words have so many letters, with the punctuation that follows them."""
        position = 0
        for index, word in enumerate(self._words):
            if position >= num_letters and word.letters:
                return index
            position += len(word.letters)
        return len(self._words)

    def _return_rest(self, taken: list[_WrittenWord], num_letters: int) -> None:
        """Keep the letters of the last word that the next fragment speaks."""
        num_rest = sum(len(word.letters) for word in taken) - num_letters
        if num_rest:
            last = next(word for word in reversed(taken) if word.letters)
            rest = replace(last, letters=last.letters[-num_rest:], source="", is_continued=True)
            self._words.insert(0, rest)

    def _locate(self, taken: list[_WrittenWord], num_letters: int) -> WrittenFragment:
        words, position = [], 0
        for word in taken:
            first, position = position, position + len(word.letters)
            if word.letters and not word.is_continued:
                text = word.text.translate(self._signs)
                words.append(WordLetters(text, first, min(position, num_letters)))
        source = "".join(word.source for word in taken).strip()
        return WrittenFragment(source.translate(self._signs), tuple(words))


def split_words(
    text: str, readings: Sequence[Reading] = (), start: int = 0
) -> Iterator[_WrittenWord]:
    """Yield the words of `text[start:]`.

    A form that is read as a whole is one word, as "5 kg" is.
    """
    half_width = to_half_width(text)
    spans = list(_merge_spans(text, readings, start))
    next_starts = [*(span[0] for span in spans[1:]), len(text)]
    for (first, end, inner), next_start in zip(spans, next_starts, strict=False):
        yield _WrittenWord(
            _strip_marks(text, first, end, inner),
            _get_spoken_letters(half_width, first, end, inner),
            text[first:next_start],
        )


def _merge_spans(text: str, readings: Sequence[Reading], text_start: int) -> Iterator[_Span]:
    """Yield the start and the end of each word, and the readings in it."""
    spans: list[tuple[int, int, Reading | None]] = [
        (match.start(), match.end(), None) for match in _WORD.finditer(text, text_start)
    ]
    spans += [
        (reading.start, reading.end, reading)
        for reading in readings
        if get_letters(text[reading.start : reading.end] + reading.words)
    ]
    start = end = 0
    inner: list[Reading] = []
    for span_start, span_end, reading in sorted(spans, key=lambda span: span[:2]):
        if span_start >= end:
            if end:
                yield start, end, inner
            start, inner = span_start, []
        end = max(end, span_end)
        if reading is not None:
            inner.append(reading)
    if end:
        yield start, end, inner


def _get_spoken_letters(text: str, start: int, end: int, readings: Sequence[Reading]) -> str:
    """Return the letters that are spoken for `text[start:end]`."""
    parts, position = [], start
    for reading in readings:
        parts += [text[position : reading.start], reading.words]
        position = reading.end
    return get_letters("".join((*parts, text[position:end])))


def _strip_marks(text: str, start: int, end: int, readings: Sequence[Reading]) -> str:
    """Return `text[start:end]` without the marks around its letters and its readings."""
    spoken = [index for index in range(start, end) if text[index].isalnum()]
    first = min([*spoken[:1], *(reading.start for reading in readings)], default=start)
    last = max([*(index + 1 for index in spoken[-1:]), *(r.end for r in readings)], default=end)
    return text[first:last].strip()
