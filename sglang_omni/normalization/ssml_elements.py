"""The elements of SSML: from XML to a sequence of pieces of text, pauses and pronunciations."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from sglang_omni.normalization.language import Language, to_language
from sglang_omni.normalization.say_as import DATE_FORMATS, KINDS
from sglang_omni.protocol.errors import InvalidRequest

MAX_DEPTH = 20
MAX_ELEMENTS = 50_000
MAX_BREAK_S = 10.0
MAX_CONTENT_CHARACTERS = 300
"""The length of an alias and of the text in `<sub>` and `<say-as>`."""

_TIME = re.compile(r"\+?(?P<number>\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})(?P<unit>ms|s)")
STRENGTHS = {
    "none": 0.0,
    "x-weak": 0.1,
    "weak": 0.25,
    "medium": 0.5,
    "strong": 0.75,
    "x-strong": 1.25,
}
"""The pause of each strength of `<break>` in seconds."""


@dataclass(frozen=True)
class Text:
    """Text to read; `language` is that of `<lang>` around it, None outside of one."""

    text: str
    language: Language | None


@dataclass(frozen=True)
class Silence:
    """A `<break>`."""

    seconds: float


@dataclass(frozen=True)
class Boundary:
    """The start or the end of a `<p>` or `<s>`."""


@dataclass(frozen=True)
class Alias:
    """A `<sub>`: the words to speak in place of the text that it contains."""

    words: str
    text: str
    language: Language | None


@dataclass(frozen=True)
class SayAs:
    """A `<say-as>`.

    Attributes:
        kind: Its `interpret-as`.
        text: What it contains.
        date_format: Order of the parts of a date; "" for the usual one.
        language: Language of `<lang>` around it; None outside of one.
        place: Where it starts, for messages.
    """

    kind: str
    text: str
    date_format: str
    language: Language | None
    place: str


Piece = Text | Silence | Boundary | Alias | SayAs


@dataclass(frozen=True)
class Elements:
    """A document: its pieces, and the language of `<speak>`."""

    pieces: tuple[Piece, ...]
    language: Language | None


@dataclass
class _Open:
    """An element that is open."""

    name: str
    attributes: Mapping[str, str]
    language: Language | None
    place: str
    content: list[str] = field(default_factory=list)


def parse_elements(source: str) -> Elements:
    """Parse SSML. Raises `InvalidRequest` for what is malformed or not supported."""
    return _Parser().parse(source)


def reject(reason: str, place: str) -> NoReturn:
    """Raise the error for a problem at a place."""
    raise InvalidRequest(f"input: SSML, {place}: {reason}", param="input")


class _Parser:
    """Collects the pieces of one document while expat calls the handlers."""

    def __init__(self) -> None:
        self._expat = expat.ParserCreate("utf-8")
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._add_text
        self._expat.StartDoctypeDeclHandler = self._refuse_doctype
        self._open: list[_Open] = []
        self._pieces: list[Piece] = []
        self._language: Language | None = None
        self._num_elements = 0

    def parse(self, source: str) -> Elements:
        """Parse a complete document."""
        try:
            self._expat.Parse(source.strip().encode("utf-8", "surrogatepass"), True)
        except expat.ExpatError as error:
            place = _describe_place(error.lineno, error.offset)
            reject(f"not well-formed XML: {expat.ErrorString(error.code)}", place)
        return Elements(tuple(self._pieces), self._language)

    @property
    def _place(self) -> str:
        return _describe_place(self._expat.CurrentLineNumber, self._expat.CurrentColumnNumber)

    def _refuse_doctype(self, *_: object) -> None:
        reject("a document type (<!DOCTYPE>) is not allowed", self._place)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        place = self._place
        if len(self._open) >= MAX_DEPTH:
            reject(f"elements are nested more than {MAX_DEPTH} deep", place)
        self._num_elements += 1
        if self._num_elements > MAX_ELEMENTS:
            reject(f"more than {MAX_ELEMENTS} elements; send it in parts", place)
        _check_element(name, self._open, place)
        _check_attributes(name, attributes, place)
        self._open.append(_Open(name, attributes, self._choose_language(name, attributes), place))
        if name in ("p", "s"):
            self._pieces.append(Boundary())

    def _choose_language(self, name: str, attributes: Mapping[str, str]) -> Language | None:
        """Return the language within an element. That of `<speak>` counts where none shows."""
        code = attributes.get("xml:lang")
        outer = self._open[-1].language if self._open else None
        if code is None:
            return outer
        language = to_language(code.split("-")[0].lower())
        if language is None:
            reject(f"xml:lang {code[:20]!r} is not supported; use en-US or zh-CN", self._place)
        if name == "speak":
            self._language = language
            return None
        return language

    def _add_text(self, text: str) -> None:
        if not self._open:
            return
        element = self._open[-1]
        if element.name in _CONTENT_ONLY:
            element.content.append(text)
        elif element.name == "break":
            reject("<break> must be empty", element.place)
        else:
            self._pieces.append(Text(text, element.language))

    def _end(self, name: str) -> None:
        element = self._open.pop()
        if name in ("p", "s"):
            self._pieces.append(Boundary())
        elif name in _BUILDERS:
            self._pieces.append(_BUILDERS[name](element))


def _build_break(element: _Open) -> Silence:
    """Return the pause of a `<break>`: `time`, or `strength` without one."""
    time, strength = element.attributes.get("time"), element.attributes.get("strength", "medium")
    if strength not in STRENGTHS:
        known = ", ".join(STRENGTHS)
        reject(f"<break> has strength {strength[:20]!r}; it may be {known}", element.place)
    if time is None:
        return Silence(STRENGTHS[strength])
    match = _TIME.fullmatch(time.strip())
    if match is None:
        reject(f"<break> has time {time[:20]!r}; write it as 500ms or 1.5s", element.place)
    seconds = float(match["number"]) / (1000 if match["unit"] == "ms" else 1)
    if seconds > MAX_BREAK_S:
        reject(f"<break> lasts {time[:20]}; at most {MAX_BREAK_S:g} s are allowed", element.place)
    return Silence(seconds)


def _build_alias(element: _Open) -> Alias:
    alias = element.attributes.get("alias")
    if alias is None:
        reject("<sub> needs the attribute alias", element.place)
    if len(alias) > MAX_CONTENT_CHARACTERS:
        reject(f"alias has more than {MAX_CONTENT_CHARACTERS} characters", element.place)
    return Alias(" ".join(alias.split()), _get_content(element), element.language)


def _get_content(element: _Open) -> str:
    return " ".join("".join(element.content).split())


def _build_say_as(element: _Open) -> SayAs:
    kind = element.attributes.get("interpret-as")
    if kind not in KINDS:
        problem = "needs the attribute interpret-as"
        if kind is not None:
            problem = f"has interpret-as {kind[:20]!r}, which is not supported"
        reject(f"<say-as> {problem}; it may be {', '.join(KINDS)}", element.place)
    text = _get_content(element)
    if not text or len(text) > MAX_CONTENT_CHARACTERS:
        limit = f"1 to {MAX_CONTENT_CHARACTERS} characters"
        reject(f"<say-as> must contain {limit}", element.place)
    order = element.attributes.get("format", "") if kind == "date" else ""
    if order and order not in DATE_FORMATS:
        known = ", ".join(DATE_FORMATS)
        reject(f"<say-as> has format {order[:20]!r}; it may be {known}", element.place)
    return SayAs(kind, text, order, element.language, element.place)


_BUILDERS: Mapping[str, Callable[[_Open], Piece]] = {
    "break": _build_break,
    "sub": _build_alias,
    "say-as": _build_say_as,
}
_CONTENT_ONLY = frozenset({"sub", "say-as"})
_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    "speak": frozenset({"version"}),
    "p": frozenset(),
    "s": frozenset(),
    "break": frozenset({"time", "strength"}),
    "sub": frozenset({"alias"}),
    "say-as": frozenset({"interpret-as", "format", "detail"}),
    "lang": frozenset({"onlangfailure"}),
}
ELEMENTS = tuple(_ATTRIBUTES)
"""The elements that are supported."""


def _check_element(name: str, parents: list[_Open], place: str) -> None:
    if name == "phoneme":
        advice = "the model takes no phonemes; write how it sounds in <sub alias> or a lexicon"
        reject(f"<phoneme> is not supported: {advice}", place)
    if name not in ELEMENTS:
        known = ", ".join(f"<{element}>" for element in ELEMENTS)
        reject(f"<{name[:40]}> is not supported; these elements are: {known}", place)
    if (name == "speak") != (not parents):
        reject("<speak> must contain all other elements, and no other <speak>", place)
    if parents and parents[-1].name in (*_CONTENT_ONLY, "break"):
        reject(f"<{parents[-1].name}> must not contain <{name}>", place)


def _check_attributes(name: str, attributes: Mapping[str, str], place: str) -> None:
    for attribute in attributes:
        is_general = attribute == "xmlns" or attribute.startswith(("xml:", "xmlns:", "xsi:"))
        if not is_general and attribute not in _ATTRIBUTES[name]:
            reject(f"<{name}> has the unknown attribute {attribute[:40]!r}", place)
    if name == "lang" and "xml:lang" not in attributes:
        reject("<lang> needs the attribute xml:lang", place)


def _describe_place(line: int, column: int) -> str:
    return f"line {line}, column {column + 1}"
