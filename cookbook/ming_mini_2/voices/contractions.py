"""The short forms of everyday speech: "I am" as "I'm", "do not" as "don't"."""

import re
from functools import partial
from random import Random

_NOT = {
    "cannot": "can't", "will not": "won't",
    **{
        f"{verb} not": f"{verb}n't"
        for verb in (
            "do", "does", "did", "is", "are", "was", "were", "has", "have", "had", "would", "could",
            "should", "need",
        )
    },
}  # fmt: skip
_IS = (
    "he", "she", "it", "that", "there", "here", "what", "who", "where", "how", "when", "everyone",
    "everything", "nobody",
)  # fmt: skip
_ENDINGS = {
    "i am": "I'm",
    "let us": "let's",
    **{f"{one} are": f"{one}'re" for one in ("you", "we", "they")},
    **{
        f"{one} will".lower(): f"{one}'ll"
        for one in ("I", "you", "he", "she", "it", "we", "they", "that")
    },
    **{f"{one} would".lower(): f"{one}'d" for one in ("I", "you", "he", "she", "we", "they")},
    **{f"{one} is": f"{one}'s" for one in _IS},
}
NOUN_SHARE = 0.3
"""Of nouns before "is", where a text is shortened."""


def _pattern(forms: dict[str, str]) -> re.Pattern[str]:
    longest = sorted(forms, key=len, reverse=True)
    return re.compile(rf"\b({'|'.join(longest)})\b", re.IGNORECASE)


_SHORTENED_NOT = _pattern(_NOT)
# Not at the end of a clause: nobody says "I know who it's".
_SHORTENED_ENDING = re.compile(rf"{_pattern(_ENDINGS).pattern}(?= \w)", re.IGNORECASE)
_NOUN_IS = re.compile(r"(\b(?:the|my|your|his|their|our) [a-z]+[a-rt-z]) is(?= \w)", re.IGNORECASE)


def shorten(text: str, rng: Random) -> str:
    """Return a text with its long forms shortened, as people speak.

    Where two are possible, one is drawn: "it's not" or "it isn't".
    """
    steps = [(_SHORTENED_NOT, _NOT), (_SHORTENED_ENDING, _ENDINGS)]
    rng.shuffle(steps)
    for pattern, forms in steps:
        text = pattern.sub(partial(_replace, forms), text)
    if rng.random() < NOUN_SHARE:
        text = _NOUN_IS.sub(r"\1's", text)
    return text


def _replace(forms: dict[str, str], found: re.Match[str]) -> str:
    """Return the short form of what was found, with its capital letter."""
    long = found.group()
    short = forms[long.lower()]
    return short[0].upper() + short[1:] if long[0].isupper() else short
