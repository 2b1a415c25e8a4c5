"""Every sign and digit that no other rule reads, and runs of letters that repeat themselves."""

import re
import unicodedata

from sglang_omni.normalization.en.numbers import spell_digits, spell_integer
from sglang_omni.normalization.rule import FormStart, Match, Rule, drop, replace_with

SIGNS = {
    "@": "at", "#": "hash", "&": "and", "%": "percent", "‰": "per mille", "°": "degrees",
    "§": "section", "¶": "paragraph", "©": "copyright", "®": "registered", "™": "trademark",
    "℠": "service mark", "℗": "copyright", "№": "number", "℃": "degrees Celsius",
    "℉": "degrees Fahrenheit", "$": "dollar", "€": "euro", "£": "pound", "¥": "yen",
    "\uffe5": "yen",
    "₹": "rupee", "₽": "rouble", "₩": "won", "₿": "bitcoin", "¢": "cent", "₫": "dong", "₺": "lira",
    "+": "plus", "=": "equals", "<": "less than", ">": "greater than", "~": "tilde",
    "/": "slash", "\\": "backslash", "_": "underscore", "^": "caret", "*": "asterisk",
    "|": "bar", "\u2044": "slash", "\uff20": "at", "\uff05": "percent", "\uff06": "and",
    "\uff0b": "plus", "\uff1d": "equals", "\uff03": "hash", "\uff0f": "slash", "\uff0a": "asterisk",
    "→": "to", "⇒": "implies", "←": "from", "↔": "to and from", "⇔": "if and only if",
    "↑": "up", "↓": "down", "†": "", "‡": "", "•": "", "·": "", "…": "...",
}  # fmt: skip
_TYPOGRAPHIC = {
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u2032": "'", "`": "",
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"', "\u2033": '"',
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2212": "-", "\u00a0": " ",
    "[": "", "]": "", "{": "", "}": "",
}  # fmt: skip
# Above this, a run that repeats itself is a long laugh or a cry of some seconds.
MAX_REPEAT_LETTERS = 16
_MIN_REPEATS = 4
_LONG_RUN = re.compile(rf"(?=[A-Za-z]{{{MAX_REPEAT_LETTERS + 1}}})[A-Za-z]++")
_REPEATS = re.compile(rf"([A-Za-z]{{1,24}}?)\1{{{_MIN_REPEATS - 1},}}", re.IGNORECASE)

_ABOUT = re.compile(r"(?<![\w~/)])~[ ]?(?=[-+]?[$€£¥]?\.?\d)")
_NUMBER_SIGN = re.compile(r"(?<![\w#&])#[ ]?(?=\d{1,6}(?!\d))")
_WITH = re.compile(
    r"(?<![\w/.])(?P<short>[wW]/o|[wW]/|[bB]/c|[cC]/o|[nN]/[aA])(?![\w/])|(?<!\w)w/(?=[a-z]{2})"
)
_SHORT_WORDS = {
    "w/": "with",
    "w/o": "without",
    "b/c": "because",
    "c/o": "care of",
    "n/a": "not applicable",
}
_AND_OR = re.compile(r"(?<=and)/(?=or(?!\w))")
_DASH = re.compile(r"(?P<before>[ ]?)(?:[\u2014\u2015]{1,3}+|(?<= )\u2013(?= ))[ ]?")
_SHARP = re.compile(r"(?<=\b[A-G])#(?!\w)")
_DOT = re.compile(r"(?<!\S)\.(?=[A-Za-z]{2})")
_STARS = re.compile(r"(?<=[1-7])\*(?=[ -]?(?:hotel|restaurant|rat|review|general|resort|service))")
_CENSORED = re.compile(r"(?<=[A-Za-z])\*{1,3}+(?=[A-Za-z])")
_NAMED = re.compile(r"(?<=\w)[©®™℠]")
_BLANK_LINE = re.compile(r"_{3,}+")
_REPEATED_SIGN = re.compile(r"([*#=~+<>|\\/^$%&@_-])\1{3,}+")
_PLACEHOLDER = re.compile(r"(?<!\w)<(?=[A-Za-z][\w .@-]{0,40}>)|(?<=[A-Za-z])>(?=[\s.,;:!?)]|\Z)")
_SIGN = re.compile("[" + re.escape("".join(SIGNS)) + "]")
_PLAIN = re.compile("[" + re.escape("".join(_TYPOGRAPHIC)) + "]")
_DIGITS = re.compile(r"\d++")
_OTHER_NUMBER = re.compile(
    r"[^\W\d_]|[\u00b2\u00b3\u00b9\u2070-\u209c\u2150-\u218b\u2460-\u24ff\u2776-\u2793]"
)
_WIDE = re.compile(r"[\uff01-\uff5e\u2100-\u214f\u3380-\u33df\ufb00-\ufb06]++")


def shorten_repeats(run: str) -> str:
    """Shorten each group of letters that repeats itself: "aaaaaaaaaaaaaaaaaaaa" keeps 16."""
    return _REPEATS.sub(_shorten, run)


def _shorten(match: Match) -> str:
    run, group = match[0], len(match[1])
    is_long = len(run) > MAX_REPEAT_LETTERS
    return run[: group * max(1, MAX_REPEAT_LETTERS // group)] if is_long else run


def _read_run(match: Match) -> str | None:
    shortened = shorten_repeats(match[0])
    return shortened if shortened != match[0] else None


def _read_sign(match: Match) -> str:
    return SIGNS[match[0]]


def _read_plain(match: Match) -> str:
    return _TYPOGRAPHIC[match[0]]


def _read_short_word(match: Match) -> str:
    return _SHORT_WORDS[(match["short"] or match[0]).lower()] + ("" if match["short"] else " ")


def _read_digits(match: Match) -> str:
    """Read digits of any script."""
    digits = "".join(str(unicodedata.decimal(digit)) for digit in match[0])
    return spell_digits(digits) if digits.startswith("0") else spell_integer(digits)


def _read_other_number(match: Match) -> str | None:
    """Read a superscript, a subscript, a number in a circle or one of another script."""
    value = unicodedata.numeric(match[0], None)
    return spell_integer(str(int(value))) if value is not None and value == int(value) else None


def _read_wide(match: Match) -> str | None:
    """Read full-width and letter-like forms as the plain ones."""
    plain = unicodedata.normalize("NFKC", match[0])
    if plain.isdecimal():
        return spell_integer(plain)
    if plain.isalnum():
        return re.sub(r"\d+", lambda digits: f" {spell_digits(digits[0])} ", plain).strip()
    return plain if plain in (",", ".", "!", "?", ":", ";", "(", ")") else None


SHORT_RULES = (Rule("abbreviation", _WITH, _read_short_word, FormStart.LETTER),)
RULES = (
    Rule("repeat", _LONG_RUN, _read_run, FormStart.LETTER),
    Rule("about", _ABOUT, replace_with("about "), FormStart.SIGN),
    Rule("number sign", _NUMBER_SIGN, replace_with("number "), FormStart.SIGN),
    Rule("symbol", _AND_OR, replace_with(" "), FormStart.SIGN),
    Rule("symbol", _SHARP, replace_with("sharp"), FormStart.SIGN),
    Rule("symbol", _DOT, replace_with("dot "), FormStart.SIGN),
    Rule("symbol", _STARS, replace_with(" star"), FormStart.SIGN),
    Rule("symbol", _CENSORED, drop, FormStart.SIGN),
    Rule("symbol", _NAMED, drop, FormStart.SIGN),
    Rule("symbol", _BLANK_LINE, replace_with("blank"), FormStart.SIGN),
    Rule("symbol", _REPEATED_SIGN, drop, FormStart.SIGN),
    Rule("symbol", _DASH, replace_with(", "), FormStart.SIGN),
    Rule("symbol", _PLACEHOLDER, drop, FormStart.SIGN),
    Rule("symbol", _SIGN, _read_sign, FormStart.SIGN),
    Rule("symbol", _PLAIN, _read_plain, FormStart.SIGN),
    Rule("symbol", _WIDE, _read_wide, FormStart.SIGN | FormStart.LETTER),
    Rule("number", _OTHER_NUMBER, _read_other_number, FormStart.SIGN | FormStart.LETTER),
    Rule("number", _DIGITS, _read_digits, FormStart.SIGN | FormStart.DIGIT),
)
