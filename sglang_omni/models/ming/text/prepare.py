"""Prepare a whole text for splitting.

The reference splits first: it ends a sentence at the dot of "Dr." and within a link, reads markup
aloud that was split in two, and joins lines without a blank. So these are resolved on the whole
text, before the reference's steps.
"""

import re

from sglang_omni.models.ming.text.letters import shorten_repeats

# Full-width digits, letters and signs, as Chinese input methods write them. Full-width punctuation
# stays, because it ends sentences and clauses.
_FULL_WIDTH = {
    ord(sign) + 0xFEE0: sign
    for sign in map(chr, range(0x21, 0x7F))
    if sign.isalnum() or sign in "$%&+/=@"
} | {ord("￥"): "¥", ord("￡"): "£"}
# These belong to numbers only within one: ３．５, １２：３０ and －５.
_FULL_WIDTH_IN_NUMBER = re.compile(r"(?<=\d)[．：](?=\d)|－(?=\d)")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)")
_LINK = re.compile(r"\[([^\]\n]+)\]\([^)\n]*\)")
# A full stop or comma after a link belongs to the sentence. So do Chinese and Japanese characters
# and quotation marks, which may follow a link without a blank.
_URL = re.compile(
    r"(?:https?://|www\.)"
    r"[^\s\u2018-\u201f\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef]*(?<=[\w/])"
)
_HEAD = re.compile(r"^[ \t]*(?:#{1,6}|>|[-*+])[ \t]+", re.MULTILINE)
_RULE = re.compile(r"^[ \t]*(?:[-*_][ \t]*){3,}$", re.MULTILINE)
# A single asterisk between blanks or numbers is a sign, not emphasis.
_EMPHASIS = re.compile(r"\*{2,3}|(?<![\w)])\*(?=\w)|(?<=\w)\*(?![\w(])|~~|(?<!\w)__?|__?(?!\w)|`")
_PICTOGRAPHS = re.compile(
    "[\U0001f000-\U0001faff\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff"
    "\u200d\ufe0e\ufe0f\u20e3\U000e0020-\U000e007f]"
)
_ABBREVIATIONS = {
    "Mr": "Mister",
    "Mrs": "Missus",
    "Ms": "Miss",
    "Dr": "Doctor",
    "Prof": "Professor",
    "vs": "versus",
    "etc": "et cetera",
}
_ABBREVIATION = re.compile(rf"\b({'|'.join(_ABBREVIATIONS)})\.(?=[ ,;)]+[\w(])")
# "in St. Louis", but not "Main St. The".
_SAINT = re.compile(r"(^|\b[a-z]\w* )St\.(?= [A-Z])")
_LATIN = re.compile(r"\b([eE]\.g|[iI]\.e)\.")
_HALF_DAY = re.compile(r"(?<=\d) ?([aApP])\.[mM]\.(\s+[A-Z]|\s*\Z)?")
_SYMBOLS = {"&": " and ", "@": " at "}
_PARAGRAPH = re.compile(r"(?<=[\w)\"'])[ \t]*\n[ \t]*\n\s*")
_LINE = re.compile(r"(?<=[A-Za-z0-9)\"'])[ \t]*\n[ \t]*(?=[A-Za-z0-9(\"'])")
_AFTER_MARK = re.compile(r"(?<=[.!?,;:])[ \t]*\n\s*(?=[\x21-\x7e])")


def prepare(text: str) -> str:
    """Resolve markup, links, pictographs, abbreviations and line breaks of a whole text."""
    text = _to_half_width(text.replace("\r\n", "\n").replace("\r", "\n"))
    text = shorten_repeats(_remove_markup(text))
    text = _expand_abbreviations(text)
    for symbol, word in _SYMBOLS.items():
        text = text.replace(symbol, word)
    text = _PARAGRAPH.sub(_end_paragraph, text)
    return _AFTER_MARK.sub(" ", _LINE.sub(", ", text))


def _to_half_width(text: str) -> str:
    """Convert digits, letters and signs of numbers to ASCII."""
    text = text.translate(_FULL_WIDTH)
    return _FULL_WIDTH_IN_NUMBER.sub(lambda match: chr(ord(match[0]) - 0xFEE0), text)


def _remove_markup(text: str) -> str:
    """Remove code blocks, images and URLs; keep the text of links, emphasis and inline code."""
    for pattern in (_FENCE, _IMAGE):
        text = pattern.sub(" ", text)
    text = _LINK.sub(r"\1", text)
    for pattern in (_URL, _RULE, _HEAD, _EMPHASIS, _PICTOGRAPHS):
        text = pattern.sub("", text)
    return text


def _expand_abbreviations(text: str) -> str:
    text = _ABBREVIATION.sub(lambda m: _ABBREVIATIONS[m[1]], _SAINT.sub(r"\1Saint", text))
    text = _LATIN.sub(lambda m: {"e": "for example", "i": "that is"}[m[1][0].lower()], text)
    return _HALF_DAY.sub(_read_half_day, text)


def _read_half_day(match: re.Match[str]) -> str:
    """Read 10 a.m. as 10 AM, with a full stop where a sentence ends."""
    following = match[2]
    end = "" if following is None else f".{following}"
    return f" {match[1].upper()}M{end}"


def _end_paragraph(match: re.Match[str]) -> str:
    is_chinese = "\u4e00" <= match.string[match.start() - 1] <= "\u9fff"
    return "。" if is_chinese else ". "
