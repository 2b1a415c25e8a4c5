"""SSML: the plain text of a document, its pauses and its pronunciations.

What `<sub>` and `<say-as>` contain stays within its sentence: one private-use character stands for
it in the text, and a lexicon, which is tried before all rules, has its words.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sglang_omni.normalization.language import Language, LanguageDetector
from sglang_omni.normalization.normalizer import (
    DEFAULT_LANGUAGE,
    build_forced_normalizer,
    build_normalizer,
    join,
)
from sglang_omni.normalization.rule import Reading
from sglang_omni.normalization.say_as import read_as
from sglang_omni.normalization.ssml_elements import (
    Alias,
    Boundary,
    Piece,
    SayAs,
    Silence,
    Text,
    parse_elements,
    reject,
)

MAX_PRONUNCIATIONS = 1000
"""Different words of `<sub>`, `<say-as>` and `<lang>` in one document."""
MAX_LANG_CHARACTERS = 20_000
"""The text within all `<lang>`, which is read while the request waits."""
MAX_SILENCE_S = 600.0
"""The sum of all pauses."""

_FIRST_PLACEHOLDER = 0xE000
_START = re.compile(r"\s*(?:<\?xml[^>]{0,200}\?>\s*)?<speak(?=[\s>/])")
_BLANKS = re.compile(r"\s+")
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_HAN = re.compile("[\u4e00-\u9fff]")
_PARAGRAPH = "\n\n"
_SLOT = chr(_FIRST_PLACEHOLDER)


@dataclass(frozen=True)
class Break:
    """Silence of `seconds` in front of the character at `position` of the text."""

    position: int
    seconds: float


@dataclass(frozen=True)
class Spoken:
    """What is written in a document, and the words that are spoken for it."""

    written: str
    words: str


@dataclass(frozen=True)
class Ssml:
    """What a document says.

    Attributes:
        text: The text to read, with a private-use character in place of each pronunciation.
        breaks: The pauses, in order.
        pronunciations: The words of each private-use character.
        written: What each private-use character stands for in the document.
        language: The language of the document; None if it names none.
    """

    text: str
    breaks: tuple[Break, ...] = ()
    pronunciations: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    language: Language | None = None

    def spell_out(self) -> "Ssml":
        """Return the document with the words themselves in the text, for readers of text alone."""
        cuts = [*(pause.position for pause in self.breaks), len(self.text)]
        parts = [self._speak(start, end) for start, end in zip([0, *cuts], cuts, strict=False)]
        breaks, position = [], 0
        for part, pause in zip(parts, self.breaks, strict=False):
            position += len(part)
            breaks.append(Break(position, pause.seconds))
        return Ssml("".join(parts), tuple(breaks), language=self.language)

    def _speak(self, start: int, end: int) -> str:
        part = self.text[start:end]
        readings = (
            Reading(match.start(), match.end(), self.pronunciations[match[0]], "lexicon")
            for match in _PRIVATE.finditer(part)
        )
        return join(part, 0, readings)


def is_ssml(text: str) -> bool:
    """Whether a text is SSML: it starts with `<speak`."""
    return _START.match(text) is not None


def parse_ssml(source: str, language: Language | None = None, *, normalizes: bool = True) -> Ssml:
    """Parse SSML.

    Args:
        source: The document.
        language: The language of a text that shows none, if `<speak>` names none.
        normalizes: Whether numbers and the like in `alias` and `<lang>` are spelled out.

    Raises:
        InvalidRequest: It is malformed, or has something that is not supported. It tells where.
    """
    elements = parse_elements(source)
    language = elements.language or language
    draft = _Draft(normalizes, language)
    for piece in elements.pieces:
        draft.add(piece)
    text = draft.text.rstrip()
    breaks = tuple(Break(min(pause.position, len(text)), pause.seconds) for pause in draft.breaks)
    signs = _assign_signs(_read_slots(text, draft.slots, language))
    taken = iter(signs)
    text = _PRIVATE.sub(lambda _: next(taken)[0], text)
    pronunciations = {sign: spoken.words for sign, spoken in signs}
    written = {sign: spoken.written for sign, spoken in signs}
    return Ssml(text, breaks, pronunciations, written, language)


def _read_slots(
    text: str, slots: list[Spoken | SayAs], language: Language | None
) -> Iterator[Spoken]:
    """Yield the words of each slot in the text, in order."""
    has_say_as = any(isinstance(slot, SayAs) for slot in slots)
    detector = LanguageDetector(text if has_say_as else "", language, is_complete=True)
    # Each text is read once, so that a document with many equal ones is read quickly.
    known: dict[tuple[SayAs, Language], str] = {}
    for match, slot in zip(_PRIVATE.finditer(text), slots, strict=True):
        if isinstance(slot, SayAs):
            around = detector.language_at(match.start(), match.end()) or DEFAULT_LANGUAGE
            key = (replace(slot, place=""), around)
            if key not in known:
                known[key] = _read_say_as(slot, around)
            yield Spoken(slot.text, known[key])
        else:
            yield slot


def _read_say_as(say_as: SayAs, around: Language) -> str:
    language = "zh" if _HAN.search(say_as.text) else say_as.language or around
    words = read_as(say_as.kind, say_as.text, language, say_as.date_format)
    if words is None:
        quoted = repr(say_as.text[:40])
        reject(f"<say-as> cannot read {quoted} as {say_as.kind!r}", say_as.place)
    return words


def _assign_signs(words: Iterator[Spoken]) -> list[tuple[str, Spoken]]:
    """Return a private-use character for each entry, the same one for the same entry."""
    signs: dict[Spoken, str] = {}
    assigned = []
    for entry in words:
        sign = signs.setdefault(entry, chr(_FIRST_PLACEHOLDER + len(signs)))
        _check_number(len(signs))
        assigned.append((sign, entry))
    return assigned


def _check_number(pronunciations: int) -> None:
    if pronunciations > MAX_PRONUNCIATIONS:
        limit = f"{MAX_PRONUNCIATIONS} different pronunciations"
        reject(f"more than {limit}; send it in parts", "in all")


class _Draft:
    """The text that is made of pieces, with the same private-use character for each slot."""

    def __init__(self, normalizes: bool, language: Language | None) -> None:
        self.breaks: list[Break] = []
        self.slots: list[Spoken | SayAs] = []
        self._normalizes, self._language = normalizes, language
        self._aliases: dict[tuple[str, Language | None], str] = {}
        self._parts: list[str] = []
        self._length = 0
        self._silence_s = 0.0
        self._num_forced = 0
        self._starts_paragraph = False

    @property
    def text(self) -> str:
        """Return the text so far."""
        return "".join(self._parts)

    def add(self, piece: Piece) -> None:
        """Add the next piece."""
        match piece:
            case Text(text, language) if language and self._normalizes:
                self._add_forced(_clean(text), language)
            case Text(text):
                self._add_text(_clean(text))
            case Silence(seconds):
                self._add_break(seconds)
            case Boundary():
                self._starts_paragraph = self._length > 0
            case Alias(words, text, language):
                self._add_slot(Spoken(text, self._read_alias(words, language)))
            case SayAs():
                self._add_slot(piece)

    def _read_alias(self, alias: str, language: Language | None) -> str:
        """Return the words of an alias, which is normalised once."""
        key = (alias, language)
        if key not in self._aliases:
            _check_number(len(self._aliases) + 1)
            self._aliases[key] = self._normalize(alias, language) if self._normalizes else alias
        return self._aliases[key]

    def _normalize(self, alias: str, language: Language | None) -> str:
        normalizer = build_forced_normalizer(language) if language else build_normalizer()
        return normalizer.normalize(alias, 0, self._language)

    def _add_forced(self, text: str, language: Language) -> None:
        """Add text whose written forms are read in one language."""
        self._num_forced += len(text)
        if self._num_forced > MAX_LANG_CHARACTERS:
            limit = f"{MAX_LANG_CHARACTERS} characters"
            reject(f"<lang> contains more than {limit}; send it in parts", "in all")
        position = 0
        for reading in build_forced_normalizer(language).read(text):
            self._add_text(text[position : reading.start])
            self._add_words(text[reading.start : reading.end], reading.words)
            position = reading.end
        self._add_text(text[position:])

    def _add_words(self, written: str, words: str) -> None:
        if any(map(str.isalnum, words)):
            self._add_slot(Spoken(written, words))
        else:
            self._add_text(words)

    def _add_slot(self, slot: Spoken | SayAs) -> None:
        self._add_text(_SLOT)
        self.slots.append(slot)

    def _add_text(self, text: str) -> None:
        """Add text, with one blank for all white space between two words."""
        if self._starts_paragraph and text.strip():
            self._append(_PARAGRAPH)
            self._starts_paragraph = False
        if not self._parts or self._parts[-1][-1].isspace():
            text = text.lstrip()
        self._append(text)

    def _append(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._length += len(text)

    def _add_break(self, seconds: float) -> None:
        """Add a pause. What follows is no part of the word before."""
        if not seconds:
            return
        self._silence_s += seconds
        if self._silence_s > MAX_SILENCE_S:
            reject(f"the pauses last more than {MAX_SILENCE_S:g} s; send it in parts", "in all")
        if self._parts and not self._parts[-1][-1].isspace():
            self._append(_PARAGRAPH if self._starts_paragraph else " ")
        self._starts_paragraph = False
        self.breaks.append(Break(self._length, seconds))


def _clean(text: str) -> str:
    """Return text without line breaks, and without characters that would stand for a slot."""
    return _BLANKS.sub(" ", _PRIVATE.sub("", text))
