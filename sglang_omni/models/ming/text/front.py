"""The text front end: a text in, normalised fragments to synthesise out."""

from collections.abc import Iterator

from sglang_omni.models.ming.text.accumulate import accumulate
from sglang_omni.models.ming.text.chinese import chinese_words
from sglang_omni.models.ming.text.clean import clean
from sglang_omni.models.ming.text.cut import cut
from sglang_omni.models.ming.text.english import left_over_numbers, number_words
from sglang_omni.models.ming.text.grammar import normalize_chinese
from sglang_omni.models.ming.text.language import Language, first_language, language_of
from sglang_omni.models.ming.text.letters import complete_short_text
from sglang_omni.models.ming.text.prepare import prepare
from sglang_omni.models.ming.text.rules import PRODUCT, Rules
from sglang_omni.models.ming.text.tokens import contains_chinese, is_speakable

LIMIT = 50
# Fifty long words. What has few units but no end (a word of 4,000 letters, a script that has no
# units) is cut here, so that a fragment always fits the talker's context.
LONGEST = 400


class MingTextFrontEnd:
    """Puts the texts of one request into words, one text after the other.

    The language of what was said last is kept: it decides how numbers are read where a fragment
    has nothing else in it, such as 839201 after 验证码是.
    """

    def __init__(self) -> None:
        """Nothing was said yet, so that the language is unknown."""
        self._language: Language | None = None

    def fragments(self, text: str) -> Iterator[str]:
        """Normalised fragments of `text` to synthesise one after the other, each 1 to 50 units.

        A unit is a Chinese character or a word. A text with nothing to speak has none. The
        segments of a streamed answer are given one by one. Each fragment is made when it is asked
        for, so that a book is begun as soon as a line.
        """
        text = prepare(text)
        self._language = self._language or first_language(text)
        for fragment in accumulate(text, PRODUCT):
            for piece in _bounded(fragment.text):
                for words in cut(self._normalize(piece), LIMIT):
                    yield from (part.strip() for part in _bounded(words) if is_speakable(part))

    def _normalize(self, text: str) -> str:
        self._language = language_of(text, self._language)
        words = normalize(text, language=self._language)
        return words if self._language == "zh" else complete_short_text(words)


def fragments(text: str) -> list[str]:
    """Return all fragments of a text that is a request of its own."""
    return list(MingTextFrontEnd().fragments(text))


def warm_up() -> None:
    """Load the Chinese grammars and the English number words now (two seconds), so that no request
    waits for them."""
    for text in ("第 1 X1。", "The 1st of 20."):
        fragments(text)


def normalize(text: str, rules: Rules = PRODUCT, language: Language | None = None) -> str:
    """Return words for everything in one fragment that is written in another way.

    Without a `language`, a fragment with a Chinese character is Chinese and any other English. The
    order is the reference's: English numbers, clean-up, then Chinese rules and the finite-state
    normaliser. Its English finite-state stage is left out, because the published grammar puts names
    of months in lower case, escapes quotation marks and fails on two blanks; `prepare` reads the
    abbreviations and symbols that matter.
    """
    language = language or ("zh" if contains_chinese(text) else "en")
    if language == "en":
        return left_over_numbers(clean(number_words(text, rules)))
    text = normalize_chinese(chinese_words(clean(text), rules))
    return text.removeprefix("，").strip()


def spoken(text: str, rules: Rules) -> str:
    """One fragment up to the point where the reference's own normaliser takes over."""
    if not contains_chinese(text):
        text = number_words(text, rules)
    return text.removeprefix("，")


def _bounded(text: str) -> Iterator[str]:
    """`text` in pieces of at most `LONGEST` characters, cut at a blank where there is one."""
    while len(text) > LONGEST:
        at = text.rfind(" ", 1, LONGEST) + 1 or LONGEST
        yield text[:at]
        text = text[at:]
    yield text
