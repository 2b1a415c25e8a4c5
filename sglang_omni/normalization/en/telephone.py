"""Telephone, card, bank and other numbers that are read digit by digit in groups."""

import re

from sglang_omni.normalization.en.numbers import spell_digits, spell_integer, text_before
from sglang_omni.normalization.rule import FormStart, Match, Rule

_BEGIN = r"(?<![A-Za-z0-9_.,$€£¥#/+\-])"
_END = r"(?![A-Za-z0-9_%]|[.,:/]\d)"
_GAP = r"(?:[ \u00a0.-]|[-.] )?"
_EXTENSION = r"(?:,?[ ]?(?i:ext\.?|extension|x)[ .:#]{0,2}(?P<inner>\d{1,6})(?![A-Za-z0-9_]))?"
_AMERICAN = re.compile(
    rf"{_BEGIN}(?P<number>(?:\+?1{_GAP})?(?:\(\d{{3}}\){_GAP}|\d{{3}}[-. \u00a0/])"
    rf"\d{{3}}[-. \u00a0]\d{{4}}(?:-\d{{1,6}})?){_EXTENSION}{_END}"
)
_INTERNATIONAL = re.compile(
    rf"(?<![A-Za-z0-9_.,/])(?P<number>(?:\+|00(?=\d{{2}}[ -]))\d{{1,3}}"
    rf"(?:{_GAP}(?:\(\d{{1,5}}\)|\d{{1,12}})){{1,7}}){_EXTENSION}{_END}"
)
_NATIONAL = re.compile(
    rf"{_BEGIN}(?P<number>0\d{{2,4}}/\d{{5,8}}|\(?0\d{{1,4}}\)?[ -]\d{{3,4}}(?:"
    rf"[ -]?\d{{3,4}}){{0,2}}){_EXTENSION}{_END}"
)
_LOCAL = re.compile(rf"{_BEGIN}(?P<number>\d{{3}}[-.]\d{{4}}){_EXTENSION}{_END}(?!-)")
_VANITY = re.compile(
    r"(?<![A-Za-z0-9_.])(?P<number>(?:1-)?[89](?:00|\d\d)-(?=[A-Z0-9-]{0,11}[A-Z])"
    r"[A-Z0-9]{1,10}(?:-[A-Z0-9]{1,10}){0,4})(?![A-Za-z0-9_-])"
)
# Cards, social security and account numbers, ISBN: 4111 1111 1111 1111, 123-45-6789.
_GROUPS = re.compile(
    rf"{_BEGIN}(?P<number>\d{{4}}(?:[ -]\d{{4}}){{2,5}}(?:[ -]\d{{1,3}})?|\d{{4}}[ -]\d{{6}}"
    rf"[ -]\d{{5}}"
    r"|(?!\d{4}-\d{1,2}-\d{1,2}(?!\d))\d{3,12}(?:-\d{1,12}){2,6}(?:-[Xx])?"
    rf"|(?:978|979)[ -]?\d{{1,5}}[ -]\d{{1,7}}[ -]\d{{1,7}}[ -][\dX]|\d{{5}}-\d{{4}}){_END}(?!-\d)"
)
_ISBN = re.compile(
    r"(?<![A-Za-z0-9_])(?P<name>ISBN|ISSN|IMEI|SSN|IBAN)(?:-1[03])?:?[ ]"
    r"(?P<number>[A-Z]{0,2}\d[\d -]{4,32}[\dXx])(?![A-Za-z0-9])"
)
_SHORT = re.compile(rf"{_BEGIN}(?P<number>\d{{1,8}}){_END}")
_EXTENSION_ALONE = re.compile(
    r"(?<![A-Za-z0-9_])(?i:ext\.|ext(?= \d)|extension)[ ]?#?(?P<number>\d{1,6})(?![\w%])"
)

_MIN_SHORT_CODE = 4
_EMERGENCY = re.compile(r"(?:911|999|988|112|110|119|000|111|[2-8]11|18\d|1[012]\d)")
_CALLING = re.compile(
    r"(?<![\w])(?i:call|calls|called|calling|phone|phoned|ring|reach|contact|to|or|with)"
    r"(?: (?:us|me|them|at|on))?[ :]{1,2}$"
)
_DIALLING = re.compile(
    r"(?<![\w])(?i:dial|dials|dialled|dialed|dialling|dialing|hotline(?: is)?|helpline(?: is)?"
    r"|short ?code)[ :]{1,2}$"
)
_TEXTING = re.compile(r"(?<![\w])(?i:text|texting|sms)(?: \S{1,12})?(?: to)?[ :]{1,2}$")
_CALLED_911 = re.compile(r"911 (?:calls?|operators?|dispatch|dispatcher|emergency)\b")
_NOT_A_NUMBER = re.compile(r"(?i:pages?|pp\.|from|between|about|years?|[$€£]) ?$")
_NUMBER_WORDS = re.compile(
    r"(?i:call|dial|text|phone|tel|telephone|fax|mobile|cell|number|hotline)\b[^\d]{0,20}$"
)
_PART = re.compile(r"\d+|[A-Za-z]+|\+")


def spell_groups(number: str) -> str:
    """Read groups of digits one by one: "555-0142" is "five five five, zero one four two"."""
    parts = _PART.findall(number)
    spoken = [_spell_part(part) for part in parts]
    # The toll-free code, which stands first or after the trunk digit.
    first = parts.index("1") + 1 if "1" in parts[:2] else 0
    if parts[first : first + 1] in (["800"], ["900"]):
        spoken[first] = spell_integer(parts[first])
    return ", ".join(spoken).replace("plus, ", "plus ")


def _spell_part(part: str) -> str:
    if part == "+":
        return "plus"
    return spell_digits(part) if part.isdecimal() else part


def _read_number(match: Match) -> str | None:
    """Read a number in groups, and its extension."""
    number = match["number"]
    inner = match.groupdict().get("inner")
    extension = f", extension {spell_digits(inner)}" if inner else ""
    return spell_groups(number) + extension


def _read_international(match: Match) -> str | None:
    num_digits = sum(character.isdecimal() for character in match["number"])
    return _read_number(match) if 7 <= num_digits <= 17 else None


def _read_local(match: Match) -> str | None:
    """Read seven digits; round ones are a range unless a telephone is spoken of."""
    before = text_before(match)
    is_range = match["number"].endswith("00") or _NOT_A_NUMBER.search(before)
    return None if is_range and not _NUMBER_WORDS.search(before) else _read_number(match)


def _read_named(match: Match) -> str:
    return f"{match['name']} {spell_groups(match['number'])}"


def _read_short(match: Match) -> str | None:
    """Read a short number digit by digit where somebody dials it."""
    before, number = text_before(match), match["number"]
    is_emergency = _EMERGENCY.fullmatch(number) and _CALLING.search(before)
    if is_emergency and re.search(r"(?i)\b(?:call|phone|ring|dial|reach|contact)", before):
        return spell_digits(number)
    if len(number) >= _MIN_SHORT_CODE and _TEXTING.search(before):
        return spell_digits(number)
    if _DIALLING.search(before) or _CALLED_911.match(match.string, match.start()):
        return spell_digits(number)
    return None


def _read_extension(match: Match) -> str:
    return f"extension {spell_digits(match['number'])}"


_STARTS = FormStart.DIGIT | FormStart.SIGN
RULES = (
    Rule("telephone", _VANITY, _read_number, FormStart.DIGIT),
    Rule("telephone", _AMERICAN, _read_number, _STARTS),
    Rule("telephone", _INTERNATIONAL, _read_international, _STARTS),
    Rule("telephone", _NATIONAL, _read_number, _STARTS),
    Rule("telephone", _GROUPS, _read_number, FormStart.DIGIT),
    Rule("telephone", _LOCAL, _read_local, FormStart.DIGIT),
    Rule("telephone", _ISBN, _read_named, FormStart.LETTER),
    Rule("telephone", _SHORT, _read_short, FormStart.DIGIT),
    Rule("telephone", _EXTENSION_ALONE, _read_extension, FormStart.LETTER),
)
