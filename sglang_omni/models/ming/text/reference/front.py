"""The reference's front end: it splits a text first, and normalises each fragment by itself.

Of English its finite-state stage is left out, because the published grammar lower-cases month
names, escapes quotation marks and fails on two blanks.
"""

import re
from collections.abc import Iterable, Iterator

from sglang_omni.models.ming.text.accumulate import Fragment, collect_fragments
from sglang_omni.models.ming.text.limits import split_by_length
from sglang_omni.models.ming.text.reference.chinese import spell_out_chinese
from sglang_omni.models.ming.text.reference.clean import clean
from sglang_omni.models.ming.text.reference.english import number_to_words, spell_out_english
from sglang_omni.models.ming.text.reference.grammar import normalize_chinese
from sglang_omni.models.ming.text.tokens import contains_chinese, is_speakable
from sglang_omni.normalization.cuts import find_closed

_SPEAKABLE = re.compile(r"[a-zA-Z\u4e00-\u9fff1-9]")
_REMAINING_NUMBER = re.compile(r" ?\d++(?:\.\d++)? ?")


class ReferenceFrontEnd:
    """Implements `TextFrontEnd`. It has no state."""

    def safe_cut(self, text: str, end: int) -> int:
        """Return the end of the last word or sentence at or before `end`."""
        return find_closed(text, end)

    def split_fragments(self, text: str) -> Iterator[str]:
        """Yield normalised fragments of `text`."""
        for fragment in collect_reference_fragments(text):
            for piece in split_by_length(fragment.text):
                yield from filter(is_speakable, split_by_length(normalize(piece)))


def collect_reference_fragments(elements: Iterable[str]) -> Iterator[Fragment]:
    """Yield the fragments of a text that arrives as `elements`; a lone zero is not spoken."""
    return collect_fragments(elements, lambda text: _SPEAKABLE.search(text) is not None)


def normalize(text: str) -> str:
    """Spell out everything in a fragment that is not written in words.

    A fragment with a Chinese character is Chinese, any other is English.
    """
    if contains_chinese(text):
        return normalize_chinese(spell_out_chinese(clean(text))).removeprefix("，").strip()
    text = clean(spell_out_english(text))
    return _REMAINING_NUMBER.sub(lambda m: f" {number_to_words(m[0].strip())} ", text).strip()


def normalize_partly(text: str) -> str:
    """Normalise a fragment up to the point where the reference's finite-state stage starts."""
    if not contains_chinese(text):
        text = spell_out_english(text)
    return text.removeprefix("，")


def warm_up() -> None:
    """Load the Chinese grammars and the English number words (two seconds)."""
    for text in ("第 1 X1。", "The 1st of 20."):
        normalize(text)
