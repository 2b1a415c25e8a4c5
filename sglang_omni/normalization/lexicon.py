"""A pronunciation dictionary: words that are spoken other than they are written."""

import re
from collections.abc import Mapping

from sglang_omni.normalization.rule import FormStart, Match, Rule

ANY_START = FormStart.DIGIT | FormStart.LETTER | FormStart.HAN | FormStart.SIGN


def build_lexicon_rule(lexicon: Mapping[str, str]) -> Rule | None:
    """Return the rule that reads the words of a lexicon, or None for an empty one.

    A word is found where it stands alone, the longest first: SQL, but not in MySQL. One that is
    written in small letters is found in any case. What is spoken for it is not normalised.
    """
    if not lexicon:
        return None
    words = sorted(lexicon, key=len, reverse=True)
    spoken = {_fold(word): text for word, text in lexicon.items()}

    def read(match: Match) -> str:
        written = match[0]
        return spoken[written] if written in spoken else spoken[written.lower()]

    return Rule("lexicon", re.compile("|".join(map(_to_pattern, words))), read, ANY_START)


def apply_lexicon(text: str, lexicon: Mapping[str, str]) -> str:
    """Return a text with the words of a lexicon replaced, and everything else as it is."""
    rule = build_lexicon_rule(lexicon)
    if rule is None:
        return text
    read = rule.read
    return rule.pattern.sub(lambda match: read(match) or "", text)


def _fold(word: str) -> str:
    return word.lower() if word.islower() else word


def _to_pattern(word: str) -> str:
    """Return a pattern of a word that does not touch another letter or digit of its script."""
    pattern = re.escape(word)
    if word.islower():
        pattern = f"(?i:{pattern})"
    before = r"(?<![A-Za-z0-9])" if word[0].isascii() and word[0].isalnum() else ""
    after = r"(?![A-Za-z0-9])" if word[-1].isascii() and word[-1].isalnum() else ""
    return f"{before}{pattern}{after}"
