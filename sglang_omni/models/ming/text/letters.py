"""Letters that are no word: a lone one, and runs that repeat themselves."""

import re
from string import ascii_lowercase

from sglang_omni.models.ming.text.tokens import HAN

# What is left of a run that repeats itself, in letters: "hahahahahahahaha" is a long laugh, and a
# cry of 16 letters lasts some seconds. No word of a language repeats itself for longer.
LONGEST_REPEAT = 16
_LONGEST_GROUP = 24
_FEWEST_REPEATS = 4
# Numerals say something each, however many there are.
_NUMERALS = "〇零一二三四五六七八九十百千万亿兆"

_LONG_RUN = re.compile(rf"[A-Za-z]{{{LONGEST_REPEAT + 1},}}")
_REPEATS = re.compile(
    rf"([A-Za-z]{{1,{_LONGEST_GROUP}}}?)\1{{{_FEWEST_REPEATS - 1},}}", re.IGNORECASE
)
_CHARACTERS = re.compile(rf"((?![{_NUMERALS}])[{HAN}])\1{{{LONGEST_REPEAT},}}")

_LONE_LETTER = re.compile(r"[\W_]*([A-Za-z])[\W_]*")
_LONE_PAIR = re.compile(r"[A-Za-z]{2}")
_SPELLING = """
ay bee see dee ee eff gee aitch eye jay kay ell em en oh pee cue are ess tee you vee double-you ex
why zee
"""
_NAMES = dict(zip(ascii_lowercase, _SPELLING.split(), strict=True))


def shorten_repeats(text: str) -> str:
    """Cut a run that repeats one letter or group ("AAAA...", "hahaha...") to `LONGEST_REPEAT`."""
    text = _LONG_RUN.sub(lambda run: _REPEATS.sub(_shortened, run[0]), text)
    return _CHARACTERS.sub(lambda match: match[1] * LONGEST_REPEAT, text)


def complete_short_text(text: str) -> str:
    """Return an English text of one or two letters as a sentence: "a" as "ay.", "hi" as "hi.".

    Any other text is returned as it is. Talkers learn letters within words and words within
    sentences: of a lone one they make next to no sound, and after a short word they go on.
    """
    if lone := _LONE_LETTER.fullmatch(text):
        return f"{_NAMES[lone[1].lower()]}."
    return f"{text}." if _LONE_PAIR.fullmatch(text) else text


def _shortened(match: re.Match[str]) -> str:
    run, group = match[0], len(match[1])
    return run[: group * max(1, LONGEST_REPEAT // group)] if len(run) > LONGEST_REPEAT else run
