"""The text front end: convert a text to normalised fragments for synthesis."""

import re
from collections.abc import Iterator

from sglang_omni.models.ming.text.accumulate import collect_fragments
from sglang_omni.models.ming.text.letters import complete_short_text
from sglang_omni.models.ming.text.limits import MAX_FRAGMENT_UNITS, split_by_length
from sglang_omni.models.ming.text.split_text import split_text
from sglang_omni.models.ming.text.tokens import contains_chinese, is_speakable
from sglang_omni.models.written_words import WrittenText
from sglang_omni.normalization.cuts import find_closed
from sglang_omni.normalization.half_width import to_half_width
from sglang_omni.normalization.language import Language, LanguageDetector
from sglang_omni.normalization.normalizer import Normalizer, build_normalizer, join

# A long text is normalised in blocks of about this many characters, so that a book starts as soon
# as a line.
_BLOCK_CHARACTERS = 1000
# How much of the text before is context for the rules, unless its sentence starts later.
_CONTEXT_CHARACTERS = 200
# The model was trained on Chinese with these marks in half width.
_HALF_WIDTH_MARKS = str.maketrans("！？；", "!?;")
_SENTENCE_START = re.compile(r"(?<=[.!?]\s)|(?<=[。！？])|(?<=\n\n)")


class NormalizingFrontEnd:
    """Normalise the texts of one request, one after the other.

    What was said before is kept as context: the language, and the sentence that goes on.
    """

    def __init__(
        self,
        normalizer: Normalizer | None,
        language: Language | None = None,
        written: WrittenText | None = None,
    ) -> None:
        """Create a front end.

        Args:
            normalizer: Reads the text; None speaks it as it is written.
            language: Language of a text that does not show one.
            written: Gets the text and how it is read; None if nobody asks.
        """
        self._normalizer, self._written = normalizer, written
        self._context = ""
        # The language before the context, and at its end.
        self._language = self._last_language = language

    def safe_cut(self, text: str, end: int) -> int:
        """See `TextFrontEnd`."""
        if self._normalizer is None:
            return find_closed(text, end)
        start = len(self._context)
        joined = self._context + text
        return self._normalizer.safe_cut(joined, start + end, start, self._language) - start

    def split_fragments(self, text: str) -> Iterator[str]:
        """Yield normalised fragments of `text` for synthesis, each of 1 to 50 units.

        A unit is a Chinese character or a word. A text with nothing to speak has no fragments. Pass
        the segments of a streamed answer one by one. Fragments are computed lazily, so that a book
        starts as soon as a line.
        """
        characters = self._iter_characters(text)
        for fragment in collect_fragments(characters, is_speakable, _BLOCK_CHARACTERS):
            for piece in split_by_length(fragment.text):
                for words in split_text(piece, MAX_FRAGMENT_UNITS):
                    yield from map(self._finish, filter(is_speakable, split_by_length(words)))

    def _finish(self, words: str) -> str:
        """Return a fragment as the talker is asked to speak it."""
        words = " ".join(words.split())
        if contains_chinese(words) or self._last_language == "zh":
            return words.translate(_HALF_WIDTH_MARKS)
        return complete_short_text(words)

    def _iter_characters(self, text: str) -> Iterator[str]:
        """Yield the characters of the normalised text, block by block."""
        start = 0
        while start < len(text):
            window = text[start : start + 2 * _BLOCK_CHARACTERS]
            end = len(window)
            if start + end < len(text):
                end = self.safe_cut(window, _BLOCK_CHARACTERS) or _BLOCK_CHARACTERS
            yield from self._normalize(window[:end])
            if window[end - 1].isspace():
                yield " "  # A line break at the end of a text is read as nothing.
            start += end

    def _normalize(self, text: str) -> str:
        if self._normalizer is None:
            if self._written is not None:
                self._written.add(text)
            return text
        start = len(self._context)
        joined = self._context + text
        if self._written is None:
            words = self._normalizer.normalize(joined, start, self._language)
        else:
            readings = tuple(self._normalizer.read(joined, start, self._language))
            self._written.add(joined, readings, start)
            words = join(to_half_width(joined), start, readings)
        self._keep_context(joined)
        return words

    def _keep_context(self, text: str) -> None:
        """Keep the sentence at the end of what was read, and the language before it.

        The character before the sentence stays: a heading starts a line, not just any sentence.
        """
        starts = [match.start() - 1 for match in _SENTENCE_START.finditer(text)]
        start = max([0, len(text) - _CONTEXT_CHARACTERS, *starts[-1:]])
        detector = LanguageDetector(text, self._language, is_complete=True)
        self._last_language = detector.language_before(len(text))
        self._language = detector.language_before(start)
        self._context = text[start:]


def split_fragments(text: str) -> list[str]:
    """Return all fragments of a text that is a complete request."""
    return list(NormalizingFrontEnd(build_normalizer()).split_fragments(text))
