"""In which language a number is read: by the words around it, or those before it.

A number between Chinese characters is Chinese, one between English words is English. Names and a
short run of English words in a Chinese sentence are part of it: in `iPhone 15 Pro Max发布了` the
number is Chinese. Without any word, a full-width mark shows Chinese.
The decision uses the words before a position and at most three after it, so a text that is still
arriving is read as it will be when it is complete.
"""

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Literal

from sglang_omni.normalization.tokens import HAN

Language = Literal["en", "zh"]

_FULL_WIDTH_MARK = re.compile("[，。！？；：、（）]")

LANGUAGES: tuple[Language, ...] = ("en", "zh")

# Fewer consecutive English words are a name in a Chinese text.
MIN_ENGLISH_WORDS = 3

# Links and addresses say nothing about the language around them.
_WORD = re.compile(
    rf"(?P<link>(?:[A-Za-z][\w+.-]*://|www\.)[^\s{HAN}]+|[\w.+-]+@[\w-]+\.[\w.-]+)"
    rf"|(?P<han>[{HAN}])"
    rf"|(?P<end>[。！？!?\n]|\.(?=\s|\Z))"
    rf"|(?P<word>[^\s{HAN}。！？!?\n，；：、（）,;:()]+)"
)
_QUOTES = "\"'“”‘’*_[]."
_PLAIN_WORD = re.compile(rf"[\"'“”‘’*_\[]*[^\W\d_{HAN}]+(?:['’-][^\W\d_{HAN}]+)*[.\"'“”‘’*_\]]*")
# Written alike in both languages after a number.
_UNIT = re.compile(
    r"(?:[nμµmckMGTP]?(?:m|g|b|B|Hz|W|A|V|s|L|l|Pa|bps|iB)|h|min|km/h|rpm|dB|kcal|am|pm|AM|PM|[KMB])"
    r"[.\"']*"
)


def to_language(code: str | None) -> Language | None:
    """Return the language of an ISO 639-1 code, or None if it has no rules."""
    return next((language for language in LANGUAGES if language == code), None)


def detect_last_language(text: str) -> Language | None:
    """Return the language in which a text ends, or None if it shows none."""
    return LanguageDetector(text, None, is_complete=True).language_before(len(text))


@dataclass(frozen=True)
class _Word:
    """A word that tells a language.

    Attributes:
        start: Where it starts in the text.
        end: Where it ends.
        language: Its language.
        sentence: Index of its sentence.
        num_han: Han characters in its sentence up to it.
        num_plain: English words in small letters in its sentence up to it; others are names.
        run: English words in a row up to it, 0 for a Han character.
        is_plain_run: Whether one of those words is not a name.
    """

    start: int
    end: int
    language: Language
    sentence: int
    num_han: int
    num_plain: int
    run: int
    is_plain_run: bool


class LanguageDetector:
    """The language at each position of one text."""

    def __init__(self, text: str, previous: Language | None, *, is_complete: bool) -> None:
        """Find the words of a text.

        Args:
            text: The text.
            previous: The language of what comes before it; None if nothing does.
            is_complete: Whether no more text follows.
        """
        self._previous, self._is_complete = previous, is_complete
        self._words, self._sentence_starts = _find_words(text, is_complete=is_complete)
        self._starts = [word.start for word in self._words]
        has_marks = is_complete and _FULL_WIDTH_MARK.search(text) is not None
        self._shown_by_marks: Language | None = "zh" if has_marks else None

    def language_at(self, position: int, end: int) -> Language | None:
        """Return the language of a form at `position:end`.

        None means that the words to come decide it or, in a complete text, that nothing does.
        """
        return self.decide(position, end)[0]

    def decide(self, position: int, end: int) -> tuple[Language | None, int]:
        """Return the language of a form, and the end of the last word that counted for it."""
        sentence = bisect_right(self._sentence_starts, position) - 1
        index = bisect_left(self._starts, position)
        last = self._words[index - 1] if index else None
        if last is None or last.sentence != sentence:
            last = None
        elif last.is_plain_run and last.run >= MIN_ENGLISH_WORDS:
            return "en", end
        elif last.language == "zh" and last.num_plain <= last.num_han:
            return "zh", end
        first = bisect_left(self._starts, end)
        after, is_decided = self._after(first, sentence)
        if not is_decided:
            return None, end
        decided_by = after[-1].end if after else end
        language = _decide(last, after, self._language_before(sentence))
        return language or self._language_after(index), decided_by

    def language_before(self, position: int) -> Language | None:
        """Return the language that the text before a position leaves to what follows it."""
        index = bisect_left(self._starts, position)
        tail = [word.language for word in self._words[max(0, index - MIN_ENGLISH_WORDS) : index]]
        if not tail:
            return self._previous
        if "zh" in tail:
            return "zh"
        return "zh" if self._previous == "zh" and len(tail) < MIN_ENGLISH_WORDS else "en"

    def _after(self, index: int, sentence: int) -> tuple[list[_Word], bool]:
        """Return up to three words of the sentence after a form, and whether no more will come."""
        words = self._words[index : index + MIN_ENGLISH_WORDS]
        found = [word for word in words if word.sentence == sentence]
        is_ended = self._is_complete or sentence + 1 < len(self._sentence_starts)
        return found, is_ended or len(found) == MIN_ENGLISH_WORDS

    def _language_before(self, sentence: int) -> Language | None:
        """Return the language of the last word before a sentence."""
        first = bisect_left(self._starts, self._sentence_starts[sentence])
        return self._words[first - 1].language if first else self._previous

    def _language_after(self, index: int) -> Language | None:
        """Return what tells the language where nothing before does: the next word, or a mark."""
        if index < len(self._words):
            return self._words[index].language
        return self._shown_by_marks


def _decide(last: _Word | None, after: list[_Word], previous: Language | None) -> Language | None:
    """Decide by the words of the sentence before and after a form, and by the sentence before.

    `last` is the word before the form in its sentence.
    """
    num_after = next((i for i, word in enumerate(after) if word.language == "zh"), len(after))
    run = (last.run if last else 0) + num_after
    is_plain_run = (last is not None and last.is_plain_run and last.run > 0) or any(
        word.is_plain_run for word in after[:num_after]
    )
    end = after[-1] if after else last
    num_han, num_plain = (end.num_han, end.num_plain) if end else (0, 0)
    if run >= MIN_ENGLISH_WORDS and (is_plain_run or not num_han):
        return "en"
    if num_han:
        return "zh" if num_han >= num_plain else "en"
    if previous == "zh":
        return "zh"
    return "en" if run else previous


def _find_words(text: str, *, is_complete: bool) -> tuple[list[_Word], list[int]]:
    """Return the words that tell a language, and where sentences start.

    What touches the end of a text that may go on is left out, unless it is a Han character: more
    letters may follow, and a dot may be that of a link or number.
    """
    words: list[_Word] = []
    starts = [0]
    after_number = False
    for match in _WORD.finditer(text):
        kind, form = match.lastgroup, match[0]
        if not is_complete and match.end() == len(text) and (kind == "word" or form == "."):
            break
        is_word = kind == "word" and _PLAIN_WORD.fullmatch(form) is not None
        if kind == "han" or (is_word and not (after_number and _UNIT.fullmatch(form))):
            words.append(_next_word(words, match, len(starts) - 1))
        if kind == "end" or (form.endswith(".") and text[match.end() : match.end() + 1].isspace()):
            starts.append(match.end())
        after_number = form[-1].isdigit()
    return words, starts


def _next_word(words: list[_Word], match: re.Match[str], sentence: int) -> _Word:
    """Return the word of a match, which follows `words`."""
    last = words[-1] if words and words[-1].sentence == sentence else None
    is_han = match.lastgroup == "han"
    is_plain = not is_han and match[0].strip(_QUOTES).islower()
    run = 0 if is_han else (last.run if last else 0) + 1
    return _Word(
        match.start(),
        match.end(),
        "zh" if is_han else "en",
        sentence,
        num_han=(last.num_han if last else 0) + is_han,
        num_plain=(last.num_plain if last else 0) + is_plain,
        run=run,
        is_plain_run=is_plain or (run > 1 and last is not None and last.is_plain_run),
    )
