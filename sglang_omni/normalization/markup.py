"""Markdown, HTML, line breaks and emoji, in both languages: what is written but not spoken."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from html import unescape

from sglang_omni.normalization.rule import FormStart, Match, Rule, drop

EMOJI = (
    "\U0001f000-\U0001faff\u2300-\u23ff\u25a0-\u25ff\u2600-\u27bf\u2b00-\u2bff"
    "\ufe0e\ufe0f\u200b-\u200d\u2060\ufeff\u20e3\u00ad\U000e0020-\U000e007f\ufffd"
)


@dataclass(frozen=True)
class MarkupWords:
    """What one language puts in the place of markup.

    Attributes:
        comma: Stands for a line break within a paragraph, and between the cells of a table.
        stop: Stands for the end of a paragraph, heading or list item that has no mark.
        blank: Stands for a line break after a mark.
        item: Reads the number of a list item.
        signs: The words of signs, for HTML entities such as "&lt;".
    """

    comma: str
    stop: str
    blank: str
    item: Callable[[str], str]
    signs: Mapping[str, str]


# How far back the line before a break is searched for a list marker.
_LOOK_BACK = 60
# A line that is at least this long and goes on with a small letter was broken to fit a page.
_WRAPPED = 40
_MARKS = ".,;:!?…\u3002\uff0c\uff01\uff1f\uff1b\uff1a\u3001"
_CLOSING = " \t*_`|~\"'\u201d\u2019)\uff09\u300d\u300f\u00bb]"
_PLAIN = "\"'\u201c\u201d\u2018\u2019\u2013\u2014…,.;:!?()"

_RULER = r"(?:[ \t]*+-){3,200}+|(?:[ \t]*+\*){3,200}+|(?:[ \t]*+_){3,200}+|={3,200}+"
_TABLE_RULER = r"\|?(?:[ \t]*+:?-{2,100}+:?[ \t]*+\|){1,50}+(?:[ \t]*+:?-{2,100}+:?)?"
_LINE_END = r"[ \t]*+(?=\n|\Z)"
_LIST_MARKER = r"[-*+•‣◦∙·●○▪■\u2013\u2014][ \t]++(?:\[[ xX]?\][ \t]++)?"
_ABSOLUTE = r"\|(?=[^\s|])[^|\n]{1,19}(?<=[^\s|])\|(?![\w|])"
_LINE_START = (
    rf"(?:(?:{_TABLE_RULER}|{_RULER}|```[\w+#.-]{{0,30}}){_LINE_END}|\#{{1,6}}[ \t]++"
    rf"|>(?=[\s>])[ \t]*+|{_LIST_MARKER}|(?!{_ABSOLUTE}[ \t]*+[=<>≤≥+-])\|[ \t]*+)"
)
_ITEM = r"(?P<item>\d{1,3})[.)][ \t]++(?=\S)"
_BREAK = re.compile(
    rf"(?:\A|[^\S\n]*+\n)(?P<blank>\s*+)(?P<markers>(?:{_LINE_START}\s*+){{0,8}}+)(?:{_ITEM})?"
)
_BLOCK = re.compile(rf"[ \t]*+(?:{_LIST_MARKER}|\#{{1,6}}[ \t]|\||\d{{1,3}}[.)][ \t])")

_CODE = re.compile(r"`++")
_IMAGE = re.compile(r"!\[[^\]\n]{0,300}+\]\([^()\s]{0,300}+(?:[ \t]\"[^\"\n]{0,200}+\")?\)")
_LINK_TARGET = re.compile(
    r"\]\((?=[^()\s]{0,99}[/.#:])(?:[^()\s]|\([^()\s]{0,60}+\)){1,300}+"
    r"(?:[ \t]++[\"'][^\"'\n]{0,200}+[\"'])?\)"
)
_FOOTNOTE = re.compile(r"\[\^[\w-]{1,20}+\]:?")
_TIMES = r"[ ]?[-(]?\d"
_EMPHASIS = re.compile(
    r"(?<![A-Za-z0-9)\]*])(?<![\d)\]] )\*{1,3}+(?=[^\s*])"  # opens
    rf"|(?<=[^\s*])\*{{1,3}}+(?![A-Za-z0-9(*=])(?<!\d\*(?={_TIMES}))"  # closes
    r"|(?<=[A-Za-z])\*\*(?=[A-Za-z]{2})|(?<=[A-Za-z]{2})\*\*(?=[A-Za-z])"
    r"|(?<![\w/])_{1,3}+(?=[^\W_])|(?<=[^\s_/(\[])_{1,3}+(?!\w)"
    r"|(?<!\d)~~|~~(?!\d)"
)
_TAGS = (
    "a|abbr|article|aside|audio|b|blockquote|body|br|button|caption|center|cite|code|del|details|"
    "div|dl|dd|dt|em|figure|figcaption|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|"
    "input|ins|kbd|label|li|link|main|mark|meta|nav|ol|option|p|pre|q|s|samp|script|section|"
    "select|small|source|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td|textarea|"
    "tfoot|th|thead|time|title|tr|tt|u|ul|var|video|wbr|speak|voice|prosody|break"
)
_TAG = re.compile(rf"<!--[^>]{{0,500}}?-->|</?(?P<tag>(?i:{_TAGS}))(?:\s[^<>]{{0,500}}+)?\s?/?>")
_BLOCK_TAG = re.compile(r"(?i:h[1-6]|p|div|li|tr|ul|ol|table|section|article|title|blockquote)")
_ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}\d{0,2}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_CELL = re.compile(rf"[ \t]*+(?!(?<![\w)]){_ABSOLUTE})\|++(?P<end>[ \t]*+(?=\n|\Z))?[ \t]*+")
_EMOTICON = re.compile(r"(?<!\S)[:;=]['\u2019]?-?[()DPp](?!\w)")
# With the blank in front of it where a mark or the end follows: "fine 😀." is "fine.".
_EMOJI = re.compile(rf"[ ]?[{EMOJI}]+(?=[ ]?[.,!?;:。，！？；：]|\s*\Z)|[{EMOJI}]+")
# One at a time: a lexicon may have words for each (see `ssml.py`), and is tried before this rule.
_PRIVATE = re.compile(r"[\ue000-\uf8ff]")
_ESCAPE = re.compile(r"\\(?=[$*_`#{}.!|~>+-])")


def build_rules(words: MarkupWords) -> tuple[Rule, ...]:
    """Return the rules that remove markup and read line breaks with the words of one language."""
    return (
        Rule("line", _BREAK, partial(_read_break, words), FormStart.SIGN | FormStart.DIGIT),
        Rule("markup", _IMAGE, drop, FormStart.SIGN),
        Rule("markup", _LINK_TARGET, drop, FormStart.SIGN),
        Rule("markup", _FOOTNOTE, drop, FormStart.SIGN),
        Rule("markup", _CODE, drop, FormStart.SIGN),
        Rule("markup", _EMPHASIS, drop, FormStart.SIGN),
        Rule("markup", _TAG, partial(_read_tag, words), FormStart.SIGN),
        Rule("entity", _ENTITY, partial(_read_entity, words), FormStart.SIGN),
        Rule("table", _CELL, partial(_read_cell, words), FormStart.SIGN),
        Rule("markup", _ESCAPE, drop, FormStart.SIGN),
        Rule("emoji", _EMOTICON, drop, FormStart.SIGN),
        Rule("emoji", _EMOJI, drop, FormStart.SIGN),
        Rule("emoji", _PRIVATE, drop, FormStart.SIGN),
    )


def _read_break(words: MarkupWords, match: Match) -> str:
    """Return the pause of a line break, and the number of the list item after it."""
    item = words.item(match["item"]) if match["item"] else ""
    return _pause_of(words, match) + item


def _pause_of(words: MarkupWords, match: Match) -> str:
    text, end = match.string, match.end()
    line = _line_before(text, match.start())
    before = line.rstrip(_CLOSING) or _text_before(text, match.start()).rstrip(_CLOSING + "\n")
    if not before or end == len(text):
        return ""
    if before[-1] in _MARKS:
        return words.blank
    if match["markers"] or match["item"] or "\n" in match["blank"] or _BLOCK.match(line):
        return words.stop
    return " " if len(line) >= _WRAPPED and text[end].islower() else words.comma


def _line_before(text: str, end: int) -> str:
    """Return the last characters of the line that ends at a position."""
    before = _text_before(text, end)
    line = before[before.rfind("\n") + 1 :]
    # The line started earlier: what was found is not its start, and is no list marker.
    return f".{line[1:]}" if len(line) == _LOOK_BACK else line


def _text_before(text: str, end: int) -> str:
    return text[max(0, end - _LOOK_BACK) : end]


def _read_tag(words: MarkupWords, match: Match) -> str:
    """Read a tag as nothing; one that starts or ends a block is a pause."""
    before = match.string[max(0, match.start() - 3) : match.start()].rstrip()
    is_inner = bool(before) and before[-1] not in _MARKS + ">\n" and match.end() < len(match.string)
    name = (match["tag"] or "").lower()
    if name == "br":
        return words.comma if is_inner else words.blank
    is_end = is_inner and match[0].startswith("</") and _BLOCK_TAG.fullmatch(name)
    return words.stop if is_end else ""


def _read_entity(words: MarkupWords, match: Match) -> str | None:
    """Read an HTML entity by its character: "&amp;" is "and"."""
    character = unescape(match[0])
    if character == match[0]:
        return None
    if character in words.signs:
        return words.signs[character]
    return character if character.isalpha() or character in _PLAIN else " "


def _read_cell(words: MarkupWords, match: Match) -> str:
    """Read the line between two cells of a table as a pause."""
    before = match.string[max(0, match.start() - 1) : match.start()]
    if match["end"] is not None:
        return ""
    return words.blank if not before or before in _MARKS + "(" else words.comma
