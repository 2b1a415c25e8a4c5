"""Amounts of money: $5, €2.50, £3bn, HK$20, 20 USD, $20-30, $350/yr, 50¢."""

import re

from sglang_omni.normalization.en.cardinals import SCALE_WORDS, SUFFIXES
from sglang_omni.normalization.en.currencies import (
    CODES,
    LETTERED,
    SHORT_NAMES,
    SIGNS,
    SMALL,
    SUFFIX_ONLY,
    Currency,
)
from sglang_omni.normalization.en.numbers import (
    BLANK,
    COMMA_DECIMAL,
    DASH,
    NUMBER,
    spell_integer,
    spell_number,
    text_before,
    with_point,
)
from sglang_omni.normalization.en.units import name_unit
from sglang_omni.normalization.rule import FormStart, Match, Rule

_SCALES = {word: word for word in (*SCALE_WORDS, "lakh", "crore")} | SUFFIXES
_BEFORE = SIGNS | LETTERED | CODES | SHORT_NAMES
_AFTER = SIGNS | LETTERED | CODES | SUFFIX_ONLY


def _one_of(forms: dict[str, Currency]) -> str:
    return "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))


def _scale(group: str) -> str:
    return (
        rf"(?:{BLANK}?(?P<{group}>{'|'.join(SCALE_WORDS)}|lakh|crore|mn|mln|mio|bn|bln|tn"
        rf"|(?<!{BLANK})[kKbBtT]|[mMB])(?![^\W_]))?"
    )


_NUMBER = rf"(?:{COMMA_DECIMAL}|{NUMBER})"
_AMOUNT = rf"(?P<low>{_NUMBER}){_scale('low_scale')}"
_UP_TO = rf"(?:{BLANK}?{DASH}{BLANK}?(?P<high>{_NUMBER}){_scale('high_scale')}(?![\w-]|[.,]\d))?"
_PER = rf"(?:{BLANK}?/{BLANK}?(?P<per>[A-Za-z]{{1,12}}[²³]?)(?![\w/]))?"
# $250-$300, $1 to $2 million.
_AGAIN = (
    rf"(?:{BLANK}?{DASH}{BLANK}?|{BLANK}to{BLANK})(?P=currency){BLANK}?(?P<last>{_NUMBER})"
    rf"{_scale('last_scale')}(?![\w-]|[.,]\d)"
)
_PREFIXED = re.compile(
    rf"(?<!\w)(?P<currency>{_one_of(_BEFORE)}){BLANK}?(?P<sign>[-\u2212](?=[\d.]))?"
    rf"{_AMOUNT}(?!\d)(?:{_AGAIN}|{_UP_TO})(?:{BLANK}?(?P<code>{_one_of(CODES)})(?!\w))?{_PER}"
)
_SUFFIXED = re.compile(
    rf"(?<![\w.]){_AMOUNT}{_UP_TO}{BLANK}?(?P<currency>{_one_of(_AFTER)})(?![\w$]|\d){_PER}"
)
_CENTS = re.compile(
    rf"(?<![\w.])(?P<number>\d{{1,3}})(?:{BLANK}?(?P<sign>[¢￠])|(?P<p>p))(?!\w){_PER}"
)
# $500 to $1 million is no shared million.
_MAX_SHARED = 2
_MAX_PENCE = 99
# $5-a-day
_JOINED = re.compile(r"-[a-z]")
_ARTICLE = re.compile(rf"(?<![\w'\u2019])(?:an?|An?){BLANK}$")


def _read_prefixed(match: Match) -> str:
    """Read $5, and $5 USD by its code."""
    currency = CODES[match["code"]] if match["code"] else _BEFORE[match["currency"]]
    words = _read_amount(match, currency) if match["last"] is None else _read_both(match, currency)
    return f"{'minus ' if match['sign'] else ''}{words}{_read_per(match)}"


def _read_both(match: Match, currency: Currency) -> str:
    """Read $250-$300 with the name of the currency twice, but $1-$2 million with it once."""
    high = _spell_one(match["last"], match["last_scale"], currency)
    if match["last_scale"] and not match["low_scale"] and len(match["low"]) <= _MAX_SHARED:
        return f"{spell_number(with_point(match['low']))} to {high}"
    return f"{_spell_one(match['low'], match['low_scale'], currency)} to {high}"


def _read_suffixed(match: Match) -> str:
    return _read_amount(match, _AFTER[match["currency"]]) + _read_per(match)


def _read_amount(match: Match, currency: Currency) -> str:
    """Read an amount or a range of amounts: "twenty to thirty dollars"."""
    if match["high"]:
        return _spell_range(match, currency)
    is_joined = _JOINED.match(match.string, match.end()) is not None
    is_adjective = is_joined or _ARTICLE.search(text_before(match)) is not None
    return _spell_one(match["low"], match["low_scale"], currency, is_adjective=is_adjective)


def _read_per(match: Match) -> str:
    return f" per {name_unit(match['per'])}" if match["per"] else ""


def _spell_range(match: Match, currency: Currency) -> str:
    low, high = with_point(match["low"]), with_point(match["high"])
    low_scale, high_scale = match["low_scale"], match["high_scale"]
    high_words = _spell_one(high, high_scale, currency)
    if currency.cents and not high_scale and ("." in low or "." in high):
        return f"{_spell_one(low, low_scale, currency)} to {high_words}"
    return f"{_spell_scaled(low, low_scale)} to {high_words}"


def _spell_one(
    number: str, scale: str | None, currency: Currency, *, is_adjective: bool = False
) -> str:
    """Read one amount: "five dollars", "fifty cents", "two point five million euros"."""
    number = with_point(number)
    units, _, decimals = number.replace(",", "").partition(".")
    cents = decimals.rstrip("0")
    if scale is None and not cents:
        return f"{spell_integer(units)} {_name(units, currency, is_adjective)}"
    if scale is None and currency.cents and len(cents) <= 2:
        return _spell_cents(units, cents.ljust(2, "0"), currency)
    return f"{_spell_scaled(number, scale)} {_name('', currency, is_adjective)}"


def _name(units: str, currency: Currency, is_adjective: bool) -> str:
    is_one = bool(units) and int(units) == 1
    return currency.one if is_adjective or is_one else currency.many


def _spell_cents(units: str, cents: str, currency: Currency) -> str:
    """Read an amount with two decimals: "three dollars and five cents", "five cents"."""
    small = f"{spell_integer(cents)} {currency.cent if int(cents) == 1 else currency.cents}"
    if not units or int(units) == 0:
        return small
    return f"{spell_integer(units)} {_name(units, currency, False)} and {small}"


def _spell_scaled(number: str, scale: str | None) -> str:
    if scale is None:
        return spell_number(number)
    return f"{spell_number(number)} {_SCALES[scale if scale in _SCALES else scale.lower()]}"


def _read_cents(match: Match) -> str | None:
    """Read 50¢ and 50p; 720p is a size of pictures."""
    number = int(match["number"])
    if match["p"] and number > _MAX_PENCE:
        return None
    one, many = SMALL[match["sign"] or "p"]
    return f"{spell_integer(match['number'])} {one if number == 1 else many}{_read_per(match)}"


RULES = (
    Rule("money", _PREFIXED, _read_prefixed, FormStart.SIGN | FormStart.LETTER),
    Rule("money", _SUFFIXED, _read_suffixed, FormStart.DIGIT | FormStart.SIGN),
    Rule("money", _CENTS, _read_cents, FormStart.DIGIT),
)
