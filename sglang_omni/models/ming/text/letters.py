"""Letters that are not words: a single one, and runs that repeat themselves."""

import re
from string import ascii_lowercase

from sglang_omni.models.ming.text.tokens import HAN

# Maximum length of a run that repeats itself, in letters: "hahahahahahahaha" is a long laugh, and
# a cry of 16 letters lasts some seconds. No word repeats itself for longer.
MAX_REPEAT_LETTERS = 16
_MAX_GROUP_LETTERS = 24
_MIN_REPEATS = 4
# Every numeral has a meaning, however many there are.
_NUMERALS = "〇零一二三四五六七八九十百千万亿兆"

_LONG_RUN = re.compile(rf"[A-Za-z]{{{MAX_REPEAT_LETTERS + 1},}}")
_REPEATS = re.compile(
    rf"([A-Za-z]{{1,{_MAX_GROUP_LETTERS}}}?)\1{{{_MIN_REPEATS - 1},}}", re.IGNORECASE
)
_CHARACTERS = re.compile(rf"((?![{_NUMERALS}])[{HAN}])\1{{{MAX_REPEAT_LETTERS},}}")

_LONE_LETTER = re.compile(r"[\W_]*([A-Za-z])[\W_]*")
_LONE_PAIR = re.compile(r"[A-Za-z]{2}")
_SPELLING = """
ay bee see dee ee eff gee aitch eye jay kay ell em en oh pee cue are ess tee you vee double-you ex
why zee
"""
_NAMES = dict(zip(ascii_lowercase, _SPELLING.split(), strict=True))


def shorten_repeats(text: str) -> str:
    """Shorten a run that repeats a letter or group ("AAAA...", "hahaha...").

    At most `MAX_REPEAT_LETTERS` letters remain.
    """
    text = _LONG_RUN.sub(lambda run: _REPEATS.sub(_shorten_match, run[0]), text)
    return _CHARACTERS.sub(lambda match: match[1] * MAX_REPEAT_LETTERS, text)


def complete_short_text(text: str) -> str:
    """Return an English text of one or two letters as a sentence: "a" as "ay.", "hi" as "hi.".

    Any other text is returned unchanged. Talkers learn letters within words and words within
    sentences: a single letter makes almost no sound, and after a short word they continue speaking.
    """
    if lone := _LONE_LETTER.fullmatch(text):
        return f"{_NAMES[lone[1].lower()]}."
    return f"{text}." if _LONE_PAIR.fullmatch(text) else text


def _shorten_match(match: re.Match[str]) -> str:
    run, group = match[0], len(match[1])
    return (
        run[: group * max(1, MAX_REPEAT_LETTERS // group)] if len(run) > MAX_REPEAT_LETTERS else run
    )
