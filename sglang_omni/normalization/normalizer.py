"""Apply the rules of both languages to a text, whole or still arriving."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from sglang_omni.normalization.cuts import is_closed
from sglang_omni.normalization.en.rule_set import RULE_SET as ENGLISH
from sglang_omni.normalization.half_width import to_half_width
from sglang_omni.normalization.language import LANGUAGES, Language, LanguageDetector
from sglang_omni.normalization.lexicon import build_lexicon_rule
from sglang_omni.normalization.rule import Reading, RuleSet
from sglang_omni.normalization.tokens import token_at
from sglang_omni.normalization.zh.rule_set import RULE_SET as CHINESE

DEFAULT_LANGUAGE: Language = "en"


class Normalizer:
    """Reads text by the rules of its language. It keeps no state, so one serves all requests."""

    def __init__(self, rule_sets: Mapping[Language, RuleSet]) -> None:
        """Create a normaliser of the languages that have rules."""
        self._rule_sets = rule_sets

    def normalize(self, text: str, start: int = 0, language: Language | None = None) -> str:
        """Return the words of `text[start:]`; what is before `start` is context for the rules.

        `language` is that of what comes before `text`; it decides for numbers without words around.
        """
        text = to_half_width(text)
        return join(text, start, self._read(text, start, language))

    def read(
        self, text: str, start: int = 0, language: Language | None = None
    ) -> Iterator[Reading]:
        """Yield the readings of the written forms in `text[start:]`, in order."""
        return self._read(to_half_width(text), start, language)

    def _read(self, text: str, start: int, language: Language | None) -> Iterator[Reading]:
        detector = LanguageDetector(text, language, is_complete=True)
        while start < len(text):
            start, reading = self._step(text, start, detector)
            if reading is not None:
                yield reading

    def safe_cut(
        self, text: str, end: int, start: int = 0, language: Language | None = None
    ) -> int:
        """Return where `text[start:]`, which may go on, can be cut: at `end` or before.

        Both parts are then read as they are within the whole text. Returns `start` for nowhere.
        """
        text = to_half_width(text)
        detector = LanguageDetector(text, language, is_complete=False)
        ends: list[int] = []
        position = decided_by = start
        while position < end:
            form_end, reading = self._step(text, position, detector)
            if reading is not None:
                language, last = detector.decide(position, token_at(text, position)[0])
                if language is None or form_end == len(text):
                    break  # The words to come decide the language, or the form may go on.
                decided_by = max(decided_by, last)
            position = form_end
            if decided_by <= position <= end:
                ends.append(position)
        return next((end for end in reversed(ends) if is_closed(text, end)), start)

    def _step(
        self, text: str, position: int, detector: LanguageDetector
    ) -> tuple[int, Reading | None]:
        """Return the end of the form or token at a position, and the reading of a form."""
        end, start = token_at(text, position)
        language = detector.language_at(position, end) or DEFAULT_LANGUAGE
        reading = self._rule_sets[language].read_at(text, position, start)
        return (reading.end, reading) if reading is not None else (end, None)


def join(text: str, start: int, readings: Iterable[Reading]) -> str:
    """Put the words of readings in place of their forms, in `text[start:]`.

    Words that were written without a blank are separated by one: B2B is "B two B".
    """
    spoken = ""
    position = start
    for reading in readings:
        spoken = _append(spoken, text[position : reading.start])
        spoken = _append(spoken, reading.words)
        position = reading.end
    return _append(spoken, text[position:])


def _append(spoken: str, more: str) -> str:
    needs_blank = _is_letter(spoken[-1:]) and _is_letter(more[:1])
    return f"{spoken} {more}" if needs_blank else spoken + more


def _is_letter(character: str) -> bool:
    return character.isalnum() and character < "\u2e80"


_RULE_SETS: Mapping[Language, RuleSet] = {"en": ENGLISH, "zh": CHINESE}
_NORMALIZER = Normalizer(_RULE_SETS)


def build_normalizer(lexicon: Mapping[str, str] | None = None) -> Normalizer:
    """Return the normaliser of English and Chinese, with a lexicon that comes before its rules."""
    rule = build_lexicon_rule(lexicon or {})
    if rule is None:
        return _NORMALIZER
    return Normalizer({name: rules.with_first(rule) for name, rules in _RULE_SETS.items()})


@cache
def build_forced_normalizer(language: Language, first: frozenset[str] = frozenset()) -> Normalizer:
    """Return a normaliser that reads all text in one language, with some rules before the others.

    Args:
        language: The language.
        first: The names of the rules that are tried first.
    """
    rules = _RULE_SETS[language].with_named_first(first)
    return Normalizer(dict.fromkeys(LANGUAGES, rules))
