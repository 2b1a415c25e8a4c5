"""The text front end: convert a text to normalised fragments for synthesis."""

from collections.abc import Iterator

from sglang_omni.models.ming.text.accumulate import collect_fragments
from sglang_omni.models.ming.text.chinese import spell_out_chinese
from sglang_omni.models.ming.text.clean import clean
from sglang_omni.models.ming.text.english import spell_out_english, spell_out_remaining_numbers
from sglang_omni.models.ming.text.grammar import normalize_chinese
from sglang_omni.models.ming.text.language import Language, detect_first_language, detect_language
from sglang_omni.models.ming.text.letters import complete_short_text
from sglang_omni.models.ming.text.prepare import prepare
from sglang_omni.models.ming.text.rules import PRODUCT, Rules
from sglang_omni.models.ming.text.split_text import split_text
from sglang_omni.models.ming.text.tokens import contains_chinese, is_speakable

MAX_FRAGMENT_UNITS = 50
# Fifty long words. Text with few units but many characters (a word of 4,000 letters, a script
# without units) is split at this length, so that a fragment always fits the talker's context.
MAX_FRAGMENT_CHARACTERS = 400


class MingTextFrontEnd:
    """Normalise the texts of one request, one after the other.

    The language of the previous text is kept: it decides how numbers are read in a fragment that
    has nothing else, such as 839201 after 验证码是.
    """

    def __init__(self) -> None:
        """Create a front end; the language is unknown until the first text."""
        self._language: Language | None = None

    def split_fragments(self, text: str) -> Iterator[str]:
        """Yield normalised fragments of `text` for synthesis, each of 1 to 50 units.

        A unit is a Chinese character or a word. A text with nothing to speak has no fragments. Pass
        the segments of a streamed answer one by one. Fragments are computed lazily, so that a book
        starts as soon as a line.
        """
        text = prepare(text)
        self._language = self._language or detect_first_language(text)
        for fragment in collect_fragments(text, PRODUCT):
            for piece in _split_by_length(fragment.text):
                for words in split_text(self._normalize(piece), MAX_FRAGMENT_UNITS):
                    yield from (
                        part.strip() for part in _split_by_length(words) if is_speakable(part)
                    )

    def _normalize(self, text: str) -> str:
        self._language = detect_language(text, self._language)
        words = normalize(text, language=self._language)
        return words if self._language == "zh" else complete_short_text(words)


def split_fragments(text: str) -> list[str]:
    """Return all fragments of a text that is a complete request."""
    return list(MingTextFrontEnd().split_fragments(text))


def warm_up() -> None:
    """Load the Chinese grammars and English number words, so that no request waits for them.

    Takes two seconds.
    """
    for text in ("第 1 X1。", "The 1st of 20."):
        split_fragments(text)


def normalize(text: str, rules: Rules = PRODUCT, language: Language | None = None) -> str:
    """Spell out everything in a fragment that is not written in words.

    Without `language`, a fragment with a Chinese character is Chinese, any other is English. The
    order is the reference's: English numbers, clean-up, then Chinese rules and the finite-state
    normaliser. Its English finite-state stage is left out, because the published grammar
    lower-cases month names, escapes quotation marks and fails on two blanks; `prepare` reads the
    abbreviations and symbols that matter.
    """
    language = language or ("zh" if contains_chinese(text) else "en")
    if language == "en":
        return spell_out_remaining_numbers(clean(spell_out_english(text, rules)))
    text = normalize_chinese(spell_out_chinese(clean(text), rules))
    return text.removeprefix("，").strip()


def normalize_as_reference(text: str, rules: Rules) -> str:
    """Normalise one fragment up to the point where the reference's own normaliser starts."""
    if not contains_chinese(text):
        text = spell_out_english(text, rules)
    return text.removeprefix("，")


def _split_by_length(text: str) -> Iterator[str]:
    """Split `text` into parts of at most `MAX_FRAGMENT_CHARACTERS`, at a blank where possible."""
    while len(text) > MAX_FRAGMENT_CHARACTERS:
        end = text.rfind(" ", 1, MAX_FRAGMENT_CHARACTERS) + 1 or MAX_FRAGMENT_CHARACTERS
        yield text[:end]
        text = text[end:]
    yield text
